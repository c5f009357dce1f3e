package field_test

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narya"
)

// Case 114. A host with many sessions, some of them long, starts, lists and opens a small one
// without reading what they hold: what it reads and keeps in memory is a small part of what
// is there, and does not grow with the length of sessions.
func TestCase114ListingOpensNothing(t *testing.T) {
	t.Parallel()
	sessions := sized(300, 10_000)
	large, medium := sized(60, 1_250), sized(3, 25) // facts of 400 kB
	mediums := sized(4, 100)
	b := newBed(t, fmt.Sprintf(`
script: 1
rules:
  - {contains: large, play: large}
  - {contains: medium, play: medium}
  - {play: other}
scenarios:
  other: [{say: "You said: {{prompt}}"}]
  large: [{repeat: {times: %d, steps: [{tool: {name: dump, respond_bytes: 400000}}]}}]
  medium: [{repeat: {times: %d, steps: [{tool: {name: dump, respond_bytes: 400000}}]}}]
`, large, medium))
	var making sync.WaitGroup
	next := make(chan int)
	for range 8 {
		making.Go(func() {
			for n := range next {
				if a := b.try(http.MethodPost, "/sessions", object{"sessionId": fmt.Sprint("s", n), "title": fmt.Sprint("Session ", n)}); a.status != http.StatusCreated {
					t.Errorf("create: %v", a)
				}
			}
		})
	}
	for n := range sessions {
		next <- n
	}
	close(next)
	making.Wait()
	b.eventuallyEnds("s0", b.say("s0", "large"))
	for n := range mediums {
		id := fmt.Sprint("s", 1+n)
		b.eventuallyEnds(id, b.say(id, "medium"))
	}
	small := fmt.Sprint("s", sessions-1)
	b.awaitEnd(small, b.say(small, "hello"))
	b.stop() // what a killed host left in its log the next start must read, so not here

	var stored int64
	b.must(filepath.WalkDir(filepath.Join(b.home, "store"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			stored += info.Size()
		}
		return err
	}))
	began := time.Now()
	b.start()
	t.Logf("the start took %s over %d MB in %d sessions", time.Since(began), stored>>20, sessions)
	began = time.Now()
	page, err := b.client().ListSessions(b.context(), client.SessionQuery{Limit: 100})
	b.must(err)
	t.Logf("the first page took %s", time.Since(began))
	if len(page.Items) != 100 || page.NextCursor == "" {
		t.Errorf("the first page has %d sessions, cursor %q", len(page.Items), page.NextCursor)
	}
	for _, id := range []string{small, "s0"} { // opened as clients do
		if _, err := b.client().Attach(b.context(), id, client.AttachQuery{}); err != nil {
			t.Error(err)
		}
	}
	began = time.Now()
	if page := b.owner("/v1/sessions?limit=100"); strings.Count(page, `"repository"`) != 100 || !strings.Contains(page, `"nextCursor"`) {
		t.Errorf("the first page of Narya's list is %.500s", page)
	}
	t.Logf("the first page of Narya's list took %s", time.Since(began))
	for _, id := range []string{small, "s0"} {
		if s := b.owner("/v1/sessions/" + narya.UUID(narya.KindSession, id)); !strings.Contains(s, `"status":"idle"`) {
			t.Errorf("%s is read as %.500s", id, s)
		}
	}
	began = time.Now()
	if facts := b.facts(small); !strings.Contains(string(facts[2]), "hello") {
		t.Errorf("the small session has %s", facts)
	}
	b.awaitEnd(small, b.say(small, "again"))
	t.Logf("reading and using a small session took %s", time.Since(began))
	read, memory := b.hasRead(), b.resident()
	t.Logf("the host has read %d kB and holds %d MB", read>>10, memory>>20)
	if most := stored/8 + int64(sessions)<<10; read > most {
		t.Errorf("the host has read %d kB of the %d that are stored, want at most %d", read>>10, stored>>10, most>>10)
	}
	if memory > 256<<20 {
		t.Errorf("the host holds %d MB", memory>>20)
	}
}

// owner reads something over the socket of the home, as its owner may without a token.
func (b *bed) owner(path string) string {
	b.t.Helper()
	socket := filepath.Join(b.home, "narya.sock")
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(b.context(), http.MethodGet, "http://localhost"+path, nil)
	b.must(err)
	response, err := transport.RoundTrip(request)
	b.must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	b.must(err)
	return string(body)
}
