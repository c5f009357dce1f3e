package field_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// Case 86. Many sessions append at once while others page through history: no append fails,
// no sequence has a hole, and no error of a store reaches anybody. (A second process on the
// store is refused as a whole: case 93.)
func TestCase86ParallelSessions(t *testing.T) {
	t.Parallel()
	sessions, readers := sized(20, 100), sized(4, 20)
	ticks := sized(20, 500) // of two facts, each 40 ms: 50 facts a second
	b := newBed(t, fmt.Sprintf(`
script: 1
steps:
  - repeat: {times: %d, steps: [{tool: {name: tick, delay: 35ms, respond: {round: "{{round}}"}}}]}
`, ticks), "MAHATI_AGENTS_MAX_RUNNING="+strconv.Itoa(sessions))
	runs := make([]string, sessions)
	for i := range sessions {
		b.session(fmt.Sprint("s", i))
	}
	var writing sync.WaitGroup
	for i := range sessions {
		writing.Go(func() {
			a := b.try(http.MethodPost, "/commands/message", object{"sessionId": fmt.Sprint("s", i), "content": "go"})
			if runs[i] = a.field("runId"); a.status != http.StatusAccepted {
				t.Errorf("s%d: got %v", i, a)
			}
		})
	}
	writing.Wait()
	var stop atomic.Bool
	var paged atomic.Int64
	var reading sync.WaitGroup
	for r := range readers {
		reading.Go(func() {
			c := b.client()
			for n := r; !stop.Load(); n++ {
				time.Sleep(10 * time.Millisecond)
				last := int64(0)
				for raw, err := range c.Events(t.Context(), fmt.Sprint("s", n%sessions), client.HistoryQuery{Limit: 1 + n%50}) {
					if err != nil {
						t.Errorf("a reader: %v", err)
						return
					}
					e, err := narad.Decode(raw)
					fact, ok := e.(narad.Authority)
					if err != nil || !ok || fact.Envelope().SessionSequence != last+1 {
						t.Errorf("a reader: after %d: %v %s", last, err, raw)
						return
					}
					last++
					paged.Add(1)
				}
			}
		})
	}
	for i, run := range runs {
		b.eventuallyEnds(fmt.Sprint("s", i), run)
	}
	stop.Store(true)
	reading.Wait()
	for i, run := range runs {
		events := decode(t, b.facts(fmt.Sprint("s", i)))
		if end := events[len(events)-1]; end.Type() != narad.TypeRunFinished || end.Envelope().RunID != run {
			t.Errorf("s%d ended with %s", i, end.Type())
		}
		if n := len(only[*narad.ToolCallFinished](events)); n != ticks {
			t.Errorf("s%d has %d of %d calls", i, n, ticks)
		}
		b.state(fmt.Sprint("s", i))
	}
	t.Logf("%d facts were written, %d read meanwhile", sessions*(2*ticks+4), paged.Load())
}

// eventuallyEnds waits for the end of a run for as long as the session goes on growing.
func (b *bed) eventuallyEnds(sessionID, run string) {
	b.t.Helper()
	head, grew := int64(-1), time.Now()
	for {
		s, err := b.client().Session(b.context(), sessionID)
		b.must(err)
		switch {
		case s.ActiveRootRunID != run && s.State == "idle":
			return
		case s.CurrentSessionSequence > head:
			head, grew = s.CurrentSessionSequence, time.Now()
		case time.Since(grew) > patience:
			b.fatalf("%s stands still at %d: %s", sessionID, head, s.Raw)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Case 89. What a client is told of is there: whoever asks at once, over another
// connection, finds the fact in history, the session at least so far, the run active or
// over, and the question in the inbox exactly while it is open.
func TestCase89SeenIsThere(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
defaults: {chunk: 4, pace: 5ms}
steps:
  - say: "Some words to begin with."
  - tool: {name: write, kind: edit, permit: true, respond: 1}
  - parallel:
      - - tool: {name: a, delay: 20ms}
      - - agent: {name: helper, tool: task, steps: [{ask: {title: Deep}}, {say: helping}]}
      - - say: "More words while others work."
  - question: {text: "Colour?", options: [red, blue]}
  - say: Done.
`)
	for n := range sized(3, 30) {
		id := fmt.Sprint("s", n)
		b.session(id)
		live := b.stream(id, "?afterSessionSequence=0", "")
		run := b.say(id, "go")
		for {
			f, e := live.fact()
			at := e.Envelope().SessionSequence
			page := b.get("/sessions/" + id + "/events?limit=1&afterSessionSequence=" + strconv.FormatInt(at-1, 10))
			if got, _ := narad.Raw(page.field("events")).Elements(); len(got) != 1 || string(got[0]) != f.data {
				t.Fatalf("seen %s\nin history: %v", f.data, page)
			}
			summary, err := b.client().Session(b.context(), id)
			b.must(err)
			if summary.CurrentSessionSequence < at {
				t.Errorf("fact %d was seen, the session is said to be at %d", at, summary.CurrentSessionSequence)
			}
			active := summary.ActiveRootRunID
			switch f := e.(type) {
			case *narad.RunStarted:
				// It may be over again only if more facts have come since.
				if f.RunID == run && active != run && summary.CurrentSessionSequence == at {
					t.Errorf("a run was seen to start, the session says %s", summary.Raw)
				}
			case *narad.InterruptRequested:
				if open := b.open(id); len(open) != 1 || open[0] != f.InterruptID {
					t.Errorf("question %s was seen, the inbox has %v", f.InterruptID, open)
				}
				if a := b.resolve(f.InterruptID, f.Actions[0], ""); a.status != http.StatusAccepted {
					t.Errorf("it cannot be decided: %v", a)
				}
			case *narad.InterruptResolved:
				for _, open := range b.open(id) {
					if open == f.InterruptID {
						t.Errorf("question %s was seen to be decided, the inbox still has it", open)
					}
				}
			case *narad.RunFinished:
				if f.RunID == run && (active != "" || summary.State != "idle") {
					t.Errorf("the run was seen to end, the session says %s", summary.Raw)
				}
			}
			if terminal(e) && e.Envelope().RunID == run {
				break
			}
		}
		live.close()
		b.state(id)
	}
}
