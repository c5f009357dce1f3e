package field_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/session"
)

// waiting is a script that asks once, in one of the ways there are; what is answered runs
// a tool.
type waiting struct {
	script string
	answer string // a decision that is offered
	paused bool   // the run itself waits; else only a run opened to ask
}

var waitings = map[string]waiting{
	"an approval": {answer: "approve", paused: true, script: `
script: 1
steps:
  - ask:
      title: "Release?"
      message: "All tests pass."
      input: {version: 1.10}
      EXPIRES
      on: {approve: [{tool: {name: released}}], expired: [{tool: {name: late}}]}
`},
	"a pack": {answer: "approve", paused: true, script: `
script: 1
steps:
  - ask:
      title: "Release?"
      members:
        - {id: tag, tool: git, kind: execute, action: tag, resource: v1}
        - {id: push, tool: git, kind: execute, action: push, resource: origin}
      EXPIRES
      on: {approve: [{tool: {name: released}}], expired: [{tool: {name: late}}]}
`},
	"a choice": {answer: "1", paused: true, script: `
script: 1
steps:
  - question:
      text: "Which colour?"
      options: [red, green]
      EXPIRES
      on: {"1": [{tool: {name: released}}], expired: [{tool: {name: late}}]}
`},
	"a permission": {answer: "approve", script: `
script: 1
steps:
  - tool: {name: released, permit: {title: "Release?", resource: v1}}
`},
}

// with is the script with an expiry, or without one if it is empty.
func (w waiting) with(expires string) string {
	if expires != "" {
		expires = "expires: " + expires
	}
	return strings.ReplaceAll(w.script, "EXPIRES", expires)
}

// expires reports whether such a question can expire at all. A permission cannot.
func (w waiting) expires() bool { return strings.Contains(w.script, "EXPIRES") }

// Case 30. Owed: a question belongs to the session, not to who was there when it was asked.
// A client that comes later and knows nothing finds it, as it was asked, and answers it.
func TestCase30AskedBeforeTheyCame(t *testing.T) {
	t.Parallel()
	for name, w := range waitings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, w.with("1h"))
			b.session("s1")
			first := b.stream("s1", "", "")
			run := b.say("s1", "go")
			var asked *narad.InterruptRequested
			for asked == nil {
				_, event := first.fact()
				asked, _ = event.(*narad.InterruptRequested)
			}
			first.close()

			// Somebody who has nothing but a token that may decide.
			late := b.as(b.run("token", "create", "--name", "late", "--role", "observe,decide"))
			c := late.client()
			inbox, err := c.Inbox(b.context(), client.InboxQuery{})
			if err != nil || len(inbox.Items) != 1 {
				t.Fatalf("the inbox: got %+v, %v; want one entry", inbox, err)
			}
			entry := inbox.Items[0]
			if entry.InterruptID != asked.InterruptID || entry.WaitID != asked.WaitID || !slices.Equal(entry.Actions, asked.Actions) ||
				entry.ExpiresAt != asked.ExpiresAt || entry.RunID != asked.RunID || entry.RootRunID != run || entry.SessionID != "s1" ||
				entry.Kind != asked.Kind || entry.Title != asked.Title || entry.Message != asked.Message ||
				!bytes.Equal(entry.Input, asked.Input) || entry.SessionSequence != asked.SessionSequence || entry.RequestedAt != asked.Timestamp {
				t.Errorf("the inbox: got %s, want what was asked: %+v", entry.Raw, asked)
			}
			if (asked.ExpiresAt != "") != w.expires() {
				t.Errorf("expiresAt is %q, want one: %v", asked.ExpiresAt, w.expires())
			}
			attached, err := c.Attach(b.context(), "s1", client.AttachQuery{})
			if err != nil || attached.Capabilities.ActiveRootRunID != run || attached.Boundary < asked.SessionSequence {
				t.Errorf("attach: got %+v, %v; want the active run %s and the question behind the boundary", attached, err, run)
			}
			open := reduce(t, late.facts("s1")).OpenInterrupts()
			if len(open) != 1 || open[0].InterruptID != asked.InterruptID || open[0].WaitID != asked.WaitID ||
				!slices.Equal(open[0].Actions, asked.Actions) || open[0].ExpiresAt != asked.ExpiresAt {
				t.Errorf("history: open are %+v, want what was asked: %+v", open, asked)
			}
			if again := late.awaitAsk("s1", 1); again.InterruptID != asked.InterruptID || again.EventID != asked.EventID {
				t.Errorf("a stream shows %+v, want %+v", again, asked)
			}
			if a := late.resolve(entry.InterruptID, w.answer, ""); a.status != http.StatusAccepted {
				t.Fatalf("resolve: got %v, want 202", a)
			}
			if end := b.awaitEnd("s1", run); end.Type() != narad.TypeRunFinished {
				t.Errorf("the run ended as %s, want finished", end.Type())
			}
			wantAskedOnce(t, b, asked, w.answer, "released")
		})
	}
}

// wantAskedOnce demands that a session asked once and was answered once, and that a tool
// ran once for it. An empty tool is none.
func wantAskedOnce(t *testing.T, b *bed, asked *narad.InterruptRequested, decision, tool string) {
	t.Helper()
	events := decode(t, b.facts("s1"))
	state := b.state("s1")
	requested, resolved := only[*narad.InterruptRequested](events), only[*narad.InterruptResolved](events)
	if len(requested) != 1 || requested[0].InterruptID != asked.InterruptID {
		t.Errorf("asked were %+v, want %s once", requested, asked.InterruptID)
	}
	if len(resolved) != 1 || resolved[0].InterruptID != asked.InterruptID || resolved[0].Decision != decision {
		t.Errorf("decided were %+v, want %s once, as %s", resolved, asked.InterruptID, decision)
	}
	var ran []string
	for _, f := range only[*narad.ToolCallFinished](events) {
		if call, _ := state.Tool(f.ToolCallID); call.ToolName != "ask_user" && f.Outcome == narad.OutcomeSuccess {
			ran = append(ran, call.ToolName)
		}
	}
	if got := strings.Join(ran, " "); got != tool {
		t.Errorf("the tools that ran are %q, want %q", got, tool)
	}
	if open := b.open("s1"); len(open) != 0 {
		t.Errorf("still open: %v", open)
	}
}

// Case 31. Owed: a question outlives the host that asked it. The next one has it open and
// listed as it was, and the answer moves the run on.
func TestCase31AskedBeforeARestart(t *testing.T) {
	t.Parallel()
	for name, w := range waitings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, w.with(""))
			b.session("s1")
			run := b.say("s1", "go")
			asked := b.awaitAsk("s1", 1)
			// The pause is in the batch of the question, and nothing more is to come.
			inbox, summary, facts := b.get("/interrupts?state=open"), b.get("/sessions/s1"), b.facts("s1")

			b.restart()
			if got := b.get("/interrupts?state=open"); string(got.body) != string(inbox.body) {
				t.Errorf("the inbox: got %v, want as before %v", got, inbox)
			}
			if got := b.get("/sessions/s1"); string(got.body) != string(summary.body) {
				t.Errorf("the summary: got %v, want as before %v", got, summary)
			}
			wantFacts(t, "history after the restart", b.facts("s1"), facts)
			state := b.state("s1")
			paused, _ := state.Run(asked.RunID)
			if paused.State != session.Paused || paused.OpenInterruptID != asked.InterruptID || paused.OpenWaitID != asked.WaitID {
				t.Errorf("who asked is %+v, want paused for %s", paused, asked.InterruptID)
			}
			if w.paused != (asked.RunID == run) {
				t.Errorf("run %s of root %s asked", asked.RunID, run)
			}

			if a := b.resolve(asked.InterruptID, w.answer, ""); a.status != http.StatusAccepted {
				t.Fatalf("resolve: got %v, want 202", a)
			}
			if end := b.awaitEnd("s1", run); end.Type() != narad.TypeRunFinished {
				t.Errorf("the run ended as %s, want finished", end.Type())
			}
			wantAskedOnce(t, b, asked, w.answer, "released")
			events := decode(t, b.facts("s1"))
			at := slices.IndexFunc(events, func(e narad.Authority) bool { return e.Type() == narad.TypeInterruptResolved })
			if next, ok := events[at+1].(*narad.RunResumed); !ok || next.RunID != asked.RunID || next.WaitID != asked.WaitID {
				t.Errorf("after the decision comes %+v, want that run %s resumes", events[at+1], asked.RunID)
			}
		})
	}
}

// Case 33. Owed: a deadline that passes while the host is down has passed when it is back.
// The question is closed as expired, once, before anybody is heard, and who answers it late
// is told so.
func TestCase33DeadlineWhileDown(t *testing.T) {
	t.Parallel()
	expires := 3 * time.Second
	if os.Getenv("MAHATI_FIELD_LONG") != "" {
		expires = 5 * time.Second
	}
	for name, w := range waitings {
		if !w.expires() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, w.with(expires.String()))
			b.session("s1")
			run := b.say("s1", "go")
			asked := b.awaitAsk("s1", 1)
			b.kill()
			due, err := time.Parse(time.RFC3339Nano, asked.ExpiresAt)
			if err != nil || time.Until(due) <= 0 || time.Until(due) > expires {
				t.Fatalf("expiresAt is %s, want at most %s from now, %s", asked.ExpiresAt, expires, time.Now().UTC())
			}
			time.Sleep(time.Until(due) + 100*time.Millisecond)

			// Late answers come in from before the host listens.
			b.listen = freeAddress(t)
			early := b.as(b.token)
			var first answer
			var hammer sync.WaitGroup
			hammer.Go(func() { first = early.firstWord(asked.InterruptID, w.answer) })
			b.start()
			hammer.Wait()
			if first.status != http.StatusGone || first.field("status") != "expired" || first.field("decision") != "expired" {
				t.Errorf("the first that is not told to come again: got %v, want 410 expired", first)
			}
			b.awaitEnd("s1", run)
			wantAskedOnce(t, b, asked, "expired", "late")
			resolved := only[*narad.InterruptResolved](decode(t, b.facts("s1")))[0]
			if at := first.field("sessionSequence"); at != fmt.Sprint(resolved.SessionSequence) {
				t.Errorf("who answered late was told %s, want the place of the expiry, %d", at, resolved.SessionSequence)
			}
			if pause := asked.SessionSequence + 1; resolved.SessionSequence != pause+1 {
				t.Errorf("the expiry is at %d, want right after the pause, %d", resolved.SessionSequence, pause+1)
			}

			head := b.head("s1")
			b.restart()
			if a := b.resolve(asked.InterruptID, w.answer, ""); a.status != http.StatusGone || a.field("status") != "expired" {
				t.Errorf("after another restart: got %v, want 410 expired", a)
			}
			if got := b.head("s1"); got != head {
				t.Errorf("the session moved from %d to %d", head, got)
			}
		})
	}
}

// firstWord decides again and again, until the host no longer says that it recovers.
func (b *bed) firstWord(interruptID, decision string) answer {
	deadline := time.Now().Add(patience)
	for {
		a, err := b.do("http://"+b.listen, http.MethodPost, "/commands/resolve-interrupt", object{"interruptId": interruptID, "decision": decision})
		if err == nil && a.status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			return a
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// freeAddress is a local address that nobody uses now, below the ports that systems give
// to clients.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000)))
		if err == nil {
			defer listener.Close()
			return listener.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// Case 36. Owed: a stop closes what the run asks, and nothing of the run happens or is
// asked any more. An answer that comes too late is refused, by the next host too.
func TestCase36AskedByARunThatWasStopped(t *testing.T) {
	t.Parallel()
	const one = `{name: one, run: "echo one >> ran", permit: true}`
	const two = `{name: two, run: "echo two >> ran", permit: true}`
	for name, test := range map[string]struct {
		steps string
		open  int
	}{
		"two permissions, one after the other": {"  - tool: " + one + "\n  - tool: " + two + "\n", 1},
		"two permissions at once":              {"  - parallel: [[{tool: " + one + "}], [{tool: " + two + "}]]\n", 2},
		"two questions of the run": {`
  - ask: {title: One, on: {approve: [{tool: {name: one, run: "echo one >> ran"}}], else: [{tool: {name: other, run: "echo other >> ran"}}]}}
  - ask: {title: Two}
`, 1},
		"a question two levels down": {"  - agent: {name: a, tool: task, steps: [{agent: {name: b, tool: task, steps: [{tool: " + one + "}, {tool: " + two + "}]}}]}\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "script: 1\nsteps:\n"+test.steps)
			dir := b.session("s1")
			run := b.say("s1", "go")
			for i := range test.open {
				b.awaitAsk("s1", i+1)
			}
			open := b.open("s1")
			if len(open) != test.open {
				t.Fatalf("the inbox is %v, want %d", open, test.open)
			}
			stop := b.post("/commands/stop-active-root", object{"sessionId": "s1", "rootRunId": run})
			if stop.status != http.StatusAccepted {
				t.Fatalf("stop: got %v, want 202", stop)
			}
			if end := b.awaitEnd("s1", run); end.Type() != narad.TypeRunCancelled {
				t.Errorf("the run ended as %s, want cancelled", end.Type())
			}
			head := b.head("s1")
			refused := func(when string) {
				t.Helper()
				for _, id := range open {
					for _, decision := range []string{"approve", "deny"} {
						if a := b.resolve(id, decision, ""); a.status != http.StatusGone && a.status != http.StatusConflict || a.field("decision") != "expired" {
							t.Errorf("%s, %s: got %v, want 410 or 409 and the word expired", when, decision, a)
						}
					}
				}
				if got := b.head("s1"); got != head || len(b.open("s1")) != 0 {
					t.Errorf("%s: the session moved from %d to %d, or the inbox is %v", when, head, got, b.open("s1"))
				}
			}
			refused("late")
			b.restart()
			refused("after a restart")
			wantStopped(t, b, stop.field("sessionSequence"), open)
			if ran, err := os.ReadFile(filepath.Join(dir, "ran")); err == nil {
				t.Errorf("tools ran: %q", ran)
			}
		})
	}
}

// wantStopped demands that after a stop everything that was asked is closed, that each
// paused run resumed before its end, and that nothing began.
func wantStopped(t *testing.T, b *bed, stop string, open []string) {
	t.Helper()
	events := decode(t, b.facts("s1"))
	b.state("s1")
	at := slices.IndexFunc(events, func(e narad.Authority) bool { return fmt.Sprint(e.Envelope().SessionSequence) == stop })
	if at < 0 || events[at].Type() != narad.TypeRunStopRequested {
		t.Fatalf("the stop is said to be at %s; no such fact", stop)
	}
	steps := map[string][]narad.Type{} // of each run
	var closed []string
	for _, event := range events[at+1:] {
		switch e := event.(type) {
		case *narad.InterruptRequested, *narad.ToolCallStarted, *narad.RunStarted:
			t.Errorf("after the stop something began: %+v", e)
		case *narad.InterruptResolved:
			closed = append(closed, e.InterruptID)
			if e.Decision != "expired" {
				t.Errorf("closed as %s, want expired: %+v", e.Decision, e)
			}
		}
		if run := event.Envelope().RunID; event.Type() == narad.TypeInterruptResolved || event.Type() == narad.TypeRunResumed || terminal(event) {
			steps[run] = append(steps[run], event.Type())
		}
	}
	slices.Sort(closed)
	want := slices.Sorted(slices.Values(open))
	if !slices.Equal(closed, want) {
		t.Errorf("closed are %v, want %v", closed, want)
	}
	for _, event := range only[*narad.InterruptRequested](events) {
		if want := []narad.Type{narad.TypeInterruptResolved, narad.TypeRunResumed, narad.TypeRunCancelled}; !slices.Equal(steps[event.RunID], want) {
			t.Errorf("the run that asked: got %v, want %v", steps[event.RunID], want)
		}
	}
}
