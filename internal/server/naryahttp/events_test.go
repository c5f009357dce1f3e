package naryahttp_test

import (
	"slices"
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narya"
)

// create makes a session by the host itself, and says something in it if text is not empty.
func (b *bed) create(id, text string) {
	b.t.Helper()
	a, err := b.host.Do(b.t.Context(), access.Owner(), host.Request{
		Action: access.CreateSession, Session: id,
		Command: decide.Create{Payload: facts.Created{WorkspaceID: "default", Cwd: "/", RequiredProfiles: host.RequiredProfiles.IDs()}},
	})
	if err != nil || a.Status != decide.Accepted {
		b.t.Fatalf("create %s: %v, %v", id, a, err)
	}
	if text != "" {
		b.say(id, text)
	}
}

// say sends a message by the host itself.
func (b *bed) say(id, text string) host.Answer {
	b.t.Helper()
	a, err := b.host.Do(b.t.Context(), access.Owner(), host.Request{
		Action: access.SendMessage, Session: id, Command: decide.Message{Content: text},
	})
	if err != nil {
		b.t.Fatalf("say: %v", err)
	}
	return a
}

// TestFirehose: what happens comes as events, in the order of their numbers, and again the
// same behind any of them.
func TestFirehose(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		s := b.stream("", "")
		b.create("one", "hello")
		got := s.now()
		want := []narya.Type{
			narya.TypeSessionCreated, narya.TypeLaneStarted, narya.TypeSessionStatusChanged, narya.TypeTurnStarted, narya.TypeEntryAppended,
			narya.TypeMessageDelta, narya.TypeEntryAppended, narya.TypeMessageEnd, narya.TypeTurnFinished,
			narya.TypeSessionStatusChanged,
		}
		if !slices.Equal(kinds(got), want) {
			t.Fatalf("got  %v\nwant %v", kinds(got), want)
		}
		for i, e := range got {
			if i > 0 && e.ID != got[i-1].ID+1 {
				t.Errorf("%d is followed by %d", got[i-1].ID, e.ID)
			}
			again := b.stream("", narya.FormatID(e.ID))
			rest := again.now()
			if len(rest) != len(got)-i-1 || len(rest) > 0 && rest[0].data != got[i+1].data {
				t.Errorf("behind event %d of %d came %d", i, len(got), len(rest))
			}
			again.close()
		}
	})
}
