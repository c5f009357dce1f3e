package field_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// eventRange is the first event that the host keeps and the newest.
func (b *bed) eventRange() (oldest, newest int64) {
	b.t.Helper()
	store := narad.Raw(b.owner("/v1/host")).Field("store")
	read := func(name string) int64 {
		text, _ := store.Field(name).IsString()
		id, ok := narya.ParseID(text)
		if !ok {
			b.fatalf("the host tells of its events %s", store)
		}
		return id
	}
	return read("oldestEventId"), read("newestEventId")
}

// events follows the stream behind an event, over the ends of blocks, until one of which it is
// told that it is the last. Each must follow the one before: by one where all is asked for.
func (b *bed) events(query string, after int64, last func(narya.Event) bool) (all []narya.Event) {
	b.t.Helper()
	for late := time.Now().Add(2 * patience); time.Now().Before(late); {
		response, err := b.overSocket(http.MethodGet, "/v1/events?"+query, "", "Last-Event-ID", narya.FormatID(after))
		if err != nil || response.StatusCode != http.StatusOK {
			b.t.Errorf("events behind %d: %v, %v", after, response, err)
			return all
		}
		in := sse.NewReader(response.Body, sse.Options{})
		for {
			frame, err := in.Next()
			if err != nil {
				break
			}
			e, err := narya.Decode(frame.Data)
			if err != nil || e.ID <= after || query == "" && e.ID != after+1 {
				b.t.Errorf("%q: behind %d comes %d, %v", query, after, e.ID, err)
				_ = response.Body.Close()
				return all
			}
			all, after = append(all, e), e.ID
			if last(e) {
				_ = response.Body.Close()
				return all
			}
		}
		_ = response.Body.Close()
	}
	b.t.Errorf("%q: no end after %d events", query, len(all))
	return all
}

// kept is every event that the host has.
func (b *bed) kept() []narya.Event {
	b.t.Helper()
	oldest, newest := b.eventRange()
	if newest < oldest {
		return nil
	}
	return b.events("", oldest-1, func(e narya.Event) bool { return e.ID >= newest })
}

// Case 52. Owed: wherever the last record of the store's log is cut, the stream has each event
// before it, the same as ever, and its numbers go on without a hole and without one that was
// given twice; so they do after another start.
func TestCase52EventsOverATornTail(t *testing.T) {
	t.Parallel()
	b := newBed(t, countUp)
	b.session("s1")
	b.awaitEnd("s1", b.say("s1", "héllo 日本語 👩‍👩‍👧"))
	before := texts(t, b.kept())
	size := b.logSize()
	if a := b.post("/sessions", object{"sessionId": "last", "title": "日本語 👩‍👩‍👧"}); a.status != http.StatusCreated {
		t.Fatalf("create: got %v", a)
	}
	end := b.logSize()
	b.kill()
	step := max(1, (end-size)/sized[int64](3, end-size))
	for cut := size; cut < end; cut += step {
		torn := b.copyOf(t)
		torn.must(os.Truncate(torn.lastLog(), cut))
		torn.start()
		if got := texts(t, torn.kept()); !slices.Equal(got, before) {
			t.Errorf("cut at byte %d of %d..%d: %d events are there, want %d", cut, size, end, len(got), len(before))
		}
		torn.awaitEnd("s1", torn.say("s1", "three"))
		after := texts(t, torn.kept())
		if len(after) < len(before)+3 || !slices.Equal(after[:len(before)], before) {
			t.Errorf("cut at byte %d: %d events are there after a turn, want the %d from before and its own", cut, len(after), len(before))
		}
		torn.kill()
		torn.start()
		if got := texts(t, torn.kept()); !slices.Equal(got, after) {
			t.Errorf("cut at byte %d: after another start %d events are there, want %d", cut, len(got), len(after))
		}
		torn.stop()
	}
}

func texts(t *testing.T, events []narya.Event) (list []string) {
	t.Helper()
	for _, e := range events {
		text, err := narya.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(text))
	}
	return list
}

// Case 77. Owed: what a program writes byte by byte, also when it ends within a character, is on
// the stream as whole characters.
func TestCase77OutputOnTheStream(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
steps:
  - tool:
      name: bytewise
      run: |
        for b in 360 237 216 265 174 346 227 245 174 377 174 360 237; do
          printf "\\$b"; sleep 0.15
        done
`)
	begun, _ := b.eventRange()
	b.session("s1")
	b.say("s1", "go")
	output := ""
	for _, e := range b.events("", begun-1, func(e narya.Event) bool { return e.Type() == narya.TypeTurnFinished }) {
		if u, ok := e.Payload.(*narya.ToolCallUpdate); ok {
			output += u.Delta
		}
	}
	if want := "🎵|日|\uFFFD|"; strings.TrimRight(output, "\uFFFD") != want || output == want {
		t.Errorf("got %q, want %q and a replacement of what was cut", output, want)
	}
}

// Case 86. Owed: sessions that begin and work at the same time each have their own stream whole,
// the stream of all has no hole, and no reader of lists and no writer sees an error of a store.
func TestCase86EventsOfParallelSessions(t *testing.T) {
	t.Parallel()
	sessions, readers, ticks := sized(20, 100), sized(4, 20), sized(10, 500)
	b := newBed(t, fmt.Sprintf(`
script: 1
steps:
  - repeat: {times: %d, steps: [{tool: {name: tick, delay: 35ms, respond: {round: "{{round}}"}}}]}
`, ticks), "MAHATI_AGENTS_MAX_RUNNING="+strconv.Itoa(sessions))
	oldest, _ := b.eventRange()
	var over atomic.Bool
	var reading, all sync.WaitGroup
	for range readers {
		reading.Go(func() {
			for !over.Load() {
				for _, path := range []string{"/v1/sessions?limit=7", "/v1/permissions", "/v1/intercom"} {
					if text := b.owner(path); !strings.Contains(text, `"items"`) {
						t.Errorf("%s: %s", path, text)
						return
					}
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	ends := func(e narya.Event) bool { return e.Type() == narya.TypeTurnFinished }
	var ended atomic.Int64
	all.Go(func() { // the stream of all
		b.events("", oldest-1, func(e narya.Event) bool { return ends(e) && ended.Add(1) == int64(sessions) })
	})
	for n := range sessions {
		id := fmt.Sprintf("0f9c1d52-7c1e-4b0a-9f0e-%012d", n)
		all.Go(func() {
			b.accepted("/v1/sessions", fmt.Sprintf(`{"sessionId":%q,"repository":%q}`, id, b.home))
			b.accepted("/v1/sessions/"+id+"/messages", `{"content":"go"}`)
			calls := 0
			for _, e := range b.events("sessionId="+id, oldest-1, ends) {
				if e.SessionID != id {
					t.Errorf("%s hears of %s", id, e.SessionID)
				}
				if e.Type() == narya.TypeToolCallFinished {
					calls++
				}
			}
			if calls != ticks {
				t.Errorf("%s has %d of %d calls", id, calls, ticks)
			}
		})
	}
	all.Wait()
	over.Store(true)
	reading.Wait()
}

// accepted sends what must be done.
func (b *bed) accepted(path, body string) {
	b.t.Helper()
	response, err := b.overSocket(http.MethodPost, path, body)
	if err != nil {
		b.t.Error(err)
		return
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		b.t.Errorf("%s: got %s", path, response.Status)
	}
}
