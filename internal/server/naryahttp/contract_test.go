package naryahttp_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/narya"
)

// A page of large messages, which are shown shorter than they are, ends where it has looked,
// and the next one goes on there.
func TestTranscriptOfLargeMessages(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		b.create("s1", "")
		var want []string
		for range 24 {
			told := b.tell("s1", strings.Repeat("x", 400_000), "")
			want = append(want, told.field("entryId"))
			synctest.Wait()
		}
		var got []string
		for _, e := range b.allItems(b.session("s1") + "/transcript?limit=200") {
			if text(e, "kind") == string(narya.EntryUserMessage) {
				got = append(got, text(e, "entryId"))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %d messages, want %d", len(got), len(want))
		}
		exported := b.want(b.send(b.request("GET", path("s1", "export"), "")), 200)
		if n := strings.Count(exported.body, `"kind":"user-message"`); n != len(want) {
			t.Errorf("the export has %d messages, want %d", n, len(want))
		}
	})
}
