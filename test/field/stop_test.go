package field_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
)

// deaf runs a command whose grandchild works on, whatever it is told, and would go on to
// another call and a nested run.
const deaf = `
script: 1
rules:
  - {contains: work, play: work}
  - {play: other}
scenarios:
  other: [{say: "You said: {{prompt}}"}]
  work:
    - parallel:
        - - tool:
              name: shell
              run: |
                trap "" HUP INT TERM
                (trap "" HUP INT TERM; sh -c 'echo $$ > grandchild.pid; while :; do echo alive >> grows; sleep 0.1; done') &
                echo $$ > shell.pid
                wait
        - - repeat: {times: 1000, steps: [{tool: {name: quick}}, {agent: {name: helper, tool: task, steps: [{say: hm}]}}, {delay: 5ms}]}
    - tool: {name: never, run: "echo never >> never"}
`

// Case 58. A stop that was acknowledged stops the work itself: the fact is there at once,
// nothing starts after it, the call ends cancelled, the run ends within the bound, and
// no process of the tool's whole group lives or writes on.
func TestCase58StopReachesTheTool(t *testing.T) {
	t.Parallel()
	const grace = 2 * time.Second
	b := newBed(t, deaf, "MAHATI_AGENTS_CANCEL_GRACE="+grace.String())
	dir := b.session("s1")
	run := b.say("s1", "work")
	shell, grandchild := b.pidIn(filepath.Join(dir, "shell.pid")), b.pidIn(filepath.Join(dir, "grandchild.pid"))
	grows := filepath.Join(dir, "grows")
	b.eventually("the grandchild writes", func() bool { return sizeOf(grows) > 10 })

	a := b.post("/commands/stop-active-root", object{"sessionId": "s1", "rootRunId": run})
	if a.status != http.StatusAccepted {
		t.Fatalf("stop: got %v, want 202", a)
	}
	at, err := strconv.Atoi(a.field("sessionSequence"))
	b.must(err)
	events := decode(t, b.facts("s1"))
	if stop, ok := events[at-1].(*narad.RunStopRequested); !ok || stop.RunID != run {
		t.Errorf("at %d, which the answer names: got %s, want the stop of the run", at, events[at-1].Type())
	}
	end := b.awaitEnd("s1", run)
	if end.Type() != narad.TypeRunCancelled {
		t.Errorf("the run ended as %s, want run.cancelled", end.Type())
	}
	// The processes first: nothing may need more time than the run did.
	if alive(shell) || alive(grandchild) {
		b.eventually("the group of the tool is gone", func() bool { return !alive(shell) && !alive(grandchild) })
	}
	size := sizeOf(grows)
	time.Sleep(500 * time.Millisecond)
	if now := sizeOf(grows); now != size {
		t.Errorf("the file grew from %d to %d bytes after the end", size, now)
	}

	events = decode(t, b.facts("s1"))
	for _, e := range events[at:] {
		switch f := e.(type) {
		case *narad.ToolCallStarted, *narad.RunStarted, *narad.InterruptRequested:
			t.Errorf("%s at %d, after the stop", e.Type(), e.Envelope().SessionSequence)
		case *narad.ToolCallFinished:
			if f.Outcome != narad.OutcomeCancelled && f.Outcome != narad.OutcomeSuccess {
				t.Errorf("a call ended %s after the stop, want cancelled", f.Outcome)
			}
		}
	}
	state := reduce(t, b.facts("s1"))
	if !slices.ContainsFunc(only[*narad.ToolCallFinished](events), func(f *narad.ToolCallFinished) bool {
		call, _ := state.Tool(f.ToolCallID)
		return call.ToolName == "shell" && f.Outcome == narad.OutcomeCancelled
	}) {
		t.Error("the shell's call did not end cancelled")
	}
	asked, ended := timeOf(t, events[at-1]), timeOf(t, end)
	if took := ended.Sub(asked); took > grace+patience/2 {
		t.Errorf("the run ended %s after the stop, with a grace of %s", took, grace)
	}
	if _, err := os.Stat(filepath.Join(dir, "never")); err == nil {
		t.Error("a command ran after the stop")
	}
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func timeOf(t *testing.T, e narad.Authority) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, e.Envelope().Timestamp)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Case 59. A second stop is no error and no second stop, while the run is stopping and
// after it; the same key gives the same answer, also after a restart. A run that had ended
// by itself is another matter: that is said, and nothing is appended.
func TestCase59StopTwice(t *testing.T) {
	t.Parallel()
	b := newBed(t, deaf)
	dir := b.session("s1")
	run := b.say("s1", "work")
	b.pidIn(filepath.Join(dir, "grandchild.pid"))
	stop := func(key string) answer {
		return b.post("/commands/stop-active-root", object{"sessionId": "s1", "rootRunId": run, "commandId": key})
	}
	var words sync.Map
	var presses sync.WaitGroup
	for i := range 20 {
		key := "press" + strconv.Itoa(i)
		presses.Go(func() {
			words.Store(key, b.try(http.MethodPost, "/commands/stop-active-root", object{"sessionId": "s1", "rootRunId": run, "commandId": key}))
		})
	}
	presses.Wait()
	accepted := 0
	var first answer
	var firstKey string
	words.Range(func(key, value any) bool {
		switch a := value.(answer); {
		case a.status == http.StatusAccepted && a.field("status") == "accepted":
			accepted++
			first, firstKey = a, key.(string)
		case a.status != http.StatusOK || a.field("status") != "already_applied":
			t.Errorf("a press: got %v, want accepted or already_applied", a)
		}
		return true
	})
	if accepted != 1 {
		t.Errorf("%d presses were the first, want one", accepted)
	}
	b.awaitEnd("s1", run)
	if a := stop("after"); a.status != http.StatusOK || a.field("status") != "already_applied" {
		t.Errorf("after the end: got %v, want already_applied", a)
	}
	if a := stop(firstKey); a.String() != first.String() {
		t.Errorf("the first press again: got %v, want %v", a, first)
	}
	events := decode(t, b.facts("s1"))
	stops := slices.DeleteFunc(only[*narad.RunStopRequested](events), func(f *narad.RunStopRequested) bool {
		return f.TargetRunID != run // of a run below it, in the same batch
	})
	if len(stops) != 1 {
		t.Errorf("got %d run.stop.requested for the root, want one", len(stops))
	}
	if n := endings(events)[run]; n != 1 {
		t.Errorf("the run ended %d times", n)
	}
	b.restart()
	if a := stop(firstKey); a.String() != first.String() {
		t.Errorf("the first press after a restart: got %v, want %v", a, first)
	}
	if a := stop("late"); a.status != http.StatusOK {
		t.Errorf("another press after a restart: got %v, want already_applied", a)
	}

	other := b.say("s1", "hello")
	b.awaitEnd("s1", other)
	before := b.facts("s1")
	a := b.post("/commands/stop-active-root", object{"sessionId": "s1", "rootRunId": other})
	if a.status != http.StatusConflict || a.field("status") != "conflict" {
		t.Errorf("stop of a run that had ended: got %v, want conflict", a)
	}
	if a.field("runId") != other || !strings.Contains(a.field("detail"), "finished") {
		t.Errorf("got %v, want the run and how it ended", a)
	}
	if after := b.facts("s1"); len(after) != len(before) {
		t.Errorf("the late stop appended %d facts", len(after)-len(before))
	}
	b.state("s1")
}

// endings counts the terminals of each run.
func endings(events []narad.Authority) map[string]int {
	ends := map[string]int{}
	for _, e := range events {
		if terminal(e) {
			ends[e.Envelope().RunID]++
		}
	}
	return ends
}

// Case 63. What has not begun can be cancelled: it never starts and leaves no fact of a
// run, the answer says that it is withdrawn, and what comes after it has its turn.
func TestCase63CancelWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps: [{ask: {title: \"Go on?\"}}, {say: \"You said: {{prompt}}\"}]\n")
	for id, cancel := range map[string]func(run string) answer{
		"withdraw": func(run string) answer {
			return b.post("/commands/queue", object{"sessionId": "withdraw", "action": "withdraw", "runId": run})
		},
		"stop": func(run string) answer {
			return b.post("/commands/stop-active-root", object{"sessionId": "stop", "rootRunId": run})
		},
	} {
		b.session(id)
		first, second := b.say(id, "one"), b.say(id, "two")
		if a := cancel(second); a.status != http.StatusAccepted || a.field("status") != "accepted" {
			t.Fatalf("%s: got %v, want accepted", id, a)
		}
		if a := cancel(second); a.status != http.StatusOK || a.field("status") != "already_applied" {
			t.Errorf("%s again: got %v, want already_applied", id, a)
		}
		b.resolve(b.awaitAsk(id, 1).InterruptID, "approve", "")
		b.awaitEnd(id, first)
		third := b.say(id, "three")
		b.resolve(b.awaitAsk(id, 2).InterruptID, "approve", "")
		b.awaitEnd(id, third)
		b.restart()

		var started []string
		for _, e := range decode(t, b.facts(id)) {
			if s, ok := e.(*narad.RunStarted); ok {
				started = append(started, s.RunID)
			}
			if e.Envelope().RunID == second {
				t.Errorf("%s: a fact of the run that never began: %s", id, e.Type())
			}
		}
		if !slices.Equal(started, []string{first, third}) {
			t.Errorf("%s: started %v, want the first and the third", id, started)
		}
		if a := b.get("/sessions/" + id + "/events?rootRunId=" + second); a.status != http.StatusOK || a.field("events") != "[]" {
			t.Errorf("%s: history of the withdrawn run: got %v, want an empty page", id, a)
		}
		if a := cancel(second); a.status != http.StatusOK {
			t.Errorf("%s after a restart: got %v, want already_applied", id, a)
		}
		b.state(id)
	}
}

// Case 64. Losing a client is nothing that happens to a run. Whoever comes next sees it go
// on, and may stop it, though somebody else had started it.
func TestCase64DropIsNoStop(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
steps:
  - repeat: {times: 600, steps: [{tool: {name: tick, output: "{{round}}", delay: 50ms}}]}
`)
	b.session("s1")
	// The very connection that starts the run is cut before it hears the answer.
	starter := b.send(http.MethodPost, "/commands/message", `{"sessionId":"s1","content":"work","commandId":"c1","messageId":"m1"}`)
	follower := b.send(http.MethodGet, "/sessions/s1/stream", "")
	b.eventually("the run works", func() bool { return b.head("s1") > 6 })
	reset(starter)
	reset(follower)
	at := b.head("s1")

	mine := b.token
	b.token = b.newToken("b", "drive,observe")
	s := b.stream("s1", "?afterSessionSequence="+strconv.FormatInt(at, 10), "")
	ticks := 0
	for ticks < 10 {
		switch _, e := s.fact(); e.(type) {
		case *narad.ToolCallStarted:
			ticks++
		case *narad.ToolCallFinished, *narad.Custom:
		default:
			t.Fatalf("the drop caused %s", e.Type())
		}
	}
	run := ""
	if a := b.post("/commands/message", object{"sessionId": "s1", "content": "work", "messageId": "m1"}); true {
		run = a.field("runId") // whoever repeats the message learns the run
	}
	if a := b.post("/commands/stop-active-root", object{"sessionId": "s1", "rootRunId": run}); run == "" || a.status != http.StatusAccepted {
		t.Errorf("stop of run %q by another: got %v, want accepted", run, a)
	}
	if end := b.awaitEnd("s1", run); end.Type() != narad.TypeRunCancelled {
		t.Errorf("got %s, want run.cancelled", end.Type())
	}
	b.token = mine
	events := decode(t, b.facts("s1"))
	if n := len(only[*narad.RunStarted](events)); n != 1 {
		t.Errorf("%d runs started, want one", n)
	}
	for _, f := range only[*narad.ToolCallFinished](events[:at]) {
		if f.Outcome != narad.OutcomeSuccess {
			t.Errorf("a call ended %s before the stop", f.Outcome)
		}
	}
	b.state("s1")
}
