package field_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/session"
)

// Case 65. A question from two levels down reaches everybody who looks: a stream of the
// session, a follower, and the inbox, which knows no session. It says whose it is, the
// links up to the root are there, the interrupt's id alone decides it, and everything above
// comes to its end.
func TestCase65GrandchildAsks(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
steps:
  - agent:
      name: child
      tool: task
      steps:
        - agent:
            name: grandchild
            tool: {name: task, title: Deeper}
            steps: [{ask: {title: "Deep?", as: deep}}, {say: "deep {{deep.decision}}"}]
        - say: the child goes on
  - say: the root goes on
`)
	b.session("s1")
	live := b.stream("s1", "", "")
	follower := b.client().Follow("s1", client.FollowOptions{})
	asked := make(chan session.Interrupt, 1)
	ended := make(chan error, 1)
	go func() {
		var err error
		defer func() { ended <- err }()
		for u, failed := range follower.Updates(b.context()) {
			if failed != nil {
				err = failed
				return
			}
			if r, ok := u.Record.(*narad.InterruptRequested); ok {
				i, _ := follower.Interrupt(r.InterruptID)
				asked <- i
			}
			if e, ok := u.Record.(narad.Authority); ok && terminal(e) && e.Envelope().RunID == e.Envelope().RootRunID {
				return
			}
		}
	}()
	root := b.say("s1", "go")
	var chain []*narad.RunStarted
	var request *narad.InterruptRequested
	for request == nil {
		switch _, e := live.fact(); f := e.(type) {
		case *narad.RunStarted:
			chain = append(chain, f)
		case *narad.InterruptRequested:
			request = f
		}
	}
	if len(chain) != 3 || chain[0].RunID != root || request.RunID != chain[2].RunID || request.RootRunID != root {
		t.Fatalf("got %d runs, a question of %s below %s; want the grandchild's below %s", len(chain), request.RunID, request.RootRunID, root)
	}
	state := b.state("s1")
	for i, r := range chain[1:] {
		call, ok := state.Tool(r.ParentToolCallID)
		if r.ParentRunID != chain[i].RunID || r.RootRunID != root || !ok || call.RunID != r.ParentRunID {
			t.Errorf("run %d: parent %s by call %q of run %s, want %s by one of its calls", i+1, r.ParentRunID, r.ParentToolCallID, call.RunID, chain[i].RunID)
		}
	}
	select {
	case i := <-asked:
		if i.InterruptID != request.InterruptID || i.RunID != request.RunID || i.RootRunID != root || !i.Open {
			t.Errorf("the follower has %+v, want the grandchild's question", i)
		}
	case err := <-ended:
		t.Fatalf("the follower ended: %v", err)
	}
	page, err := b.client().Inbox(b.context(), client.InboxQuery{})
	b.must(err)
	if len(page.Items) != 1 || page.Items[0].InterruptID != request.InterruptID || page.Items[0].RunID != request.RunID || page.Items[0].RootRunID != root {
		t.Fatalf("the inbox has %+v, want the grandchild's question", page.Items)
	}
	if a := b.post("/commands/resolve-interrupt", object{"interruptId": request.InterruptID, "decision": "approve"}); a.status != http.StatusAccepted {
		t.Fatalf("resolve by the id alone: got %v", a)
	}
	b.awaitEnd("s1", root)
	b.must(<-ended)
	if got := endings(decode(t, b.facts("s1"))); len(got) != 3 {
		t.Errorf("%d runs ended, want all 3", len(got))
	}
	if got := saidBy(b.state("s1")); got[root] != "the root goes on" || got[chain[1].RunID] != "the child goes on" || got[chain[2].RunID] != "deep approve" {
		t.Errorf("got %q", got)
	}
}

// saidBy joins what the assistant of each run said.
func saidBy(state *session.State) map[string]string {
	said := map[string]string{}
	for _, m := range state.Messages() {
		if m.Role == narad.RoleAssistant {
			said[m.RunID] += m.Content
		}
	}
	return said
}

// Case 68. Fragments of runs that speak at the same time name their own run and message, so
// that each reads as one clean text, and the transcript that is shown when nobody asks
// for more is the root's.
func TestCase68ChildrenSpeakForThemselves(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
defaults: {chunk: 3, pace: 50ms}
steps:
  - parallel:
      - - delay: 60ms # the calls that start the children come first
        - say: "root root root root root root root"
      - - agent: {name: left, tool: task, steps: [{say: "LEFT LEFT LEFT LEFT LEFT LEFT LEFT"}]}
      - - agent: {name: right, tool: task, steps: [{say: "right? right? right? right? right?"}]}
`)
	b.session("s1")
	root := b.say("s1", "go")
	b.awaitEnd("s1", root)
	facts := b.facts("s1")
	changes, last := 0, ""
	byRun, byMessage, names := map[string]string{}, map[string]string{}, map[string]string{root: "root"}
	for _, e := range decode(t, facts) {
		switch f := e.(type) {
		case *narad.RunStarted:
			if name, ok := narad.Raw(f.Optional("name")).IsString(); ok {
				names[f.RunID] = name
			}
		case *narad.MessageTextDelta:
			if f.RunID == "" || f.RootRunID != root || f.MessageID == "" {
				t.Fatalf("a fragment of run %q, root %q, message %q", f.RunID, f.RootRunID, f.MessageID)
			}
			byRun[f.RunID] += f.Delta
			byMessage[f.MessageID] += f.Delta
			if f.RunID != last {
				changes, last = changes+1, f.RunID
			}
		}
	}
	if changes < 6 {
		t.Errorf("the texts changed %d times only: nothing was interleaved", changes)
	}
	want := []string{"LEFT LEFT LEFT LEFT LEFT LEFT LEFT", "right? right? right? right? right?", "root root root root root root root"}
	for how, texts := range map[string]map[string]string{"run": byRun, "message": byMessage, "state": saidBy(reduce(t, facts))} {
		if got := slices.Sorted(maps.Values(texts)); !slices.Equal(got, want) {
			t.Errorf("joined by %s: got %q, want %q", how, got, want)
		}
	}
	if byRun[root] != want[2] {
		t.Errorf("the root said %q, want %q", byRun[root], want[2])
	}
	snapshot, err := b.client().Messages(b.context(), "s1")
	b.must(err)
	var shown strings.Builder
	for _, item := range snapshot.Messages {
		scope, _ := item.Field("messageScope").IsString()
		run, _ := item.Field("runId").IsString()
		content, _ := item.Field("content").IsString()
		if (scope == "session") != (run == root) {
			t.Errorf("the transcript has %s of run %s, root %s", scope, run, root)
		}
		if scope == "session" {
			shown.WriteString(content + "|")
		}
	}
	if got := shown.String(); got != "go|"+want[2]+"|" {
		t.Errorf("the session's own transcript: got %q, want the prompt and the root's words", got)
	}
}

// Case 69. A run ends once. Whatever ends it at the same moment, a failing call, the end of
// the text, a failure or a stop, there is one terminal, and every view has the same.
func TestCase69OneEnding(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
rules:
  - {contains: fail, play: fails}
  - {play: ends}
scenarios:
  fails:
    - parallel: [[{tool: {name: thrower, delay: 8ms, outcome: error, code: thrown}}], [{say: {text: "words to the end", chunk: 2, pace: 1ms}}]]
    - fail: {code: thrown, message: It was thrown.}
  ends:
    - parallel: [[{tool: {name: thrower, delay: 8ms, outcome: error, code: thrown}}], [{say: {text: "words to the end", chunk: 2, pace: 1ms}}]]
    - finish: completed
`)
	const sessions = 4
	rounds := sized(15, 125) // of each session
	var all sync.WaitGroup
	for n := range sessions {
		id := fmt.Sprint("s", n)
		b.session(id)
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 0))
			live := b.stream(id, "?afterSessionSequence=0", "")
			answered := map[string]string{} // run -> the word that its stop got
			seen := map[string]narad.Type{}
			for range rounds {
				run := b.say(id, []string{"end", "fail"}[random.IntN(2)])
				time.Sleep(time.Duration(random.IntN(70)) * time.Millisecond)
				answered[run] = b.post("/commands/stop-active-root", object{"sessionId": id, "rootRunId": run}).field("status")
				for seen[run] == "" {
					if _, e := live.fact(); terminal(e) {
						if seen[e.Envelope().RunID] != "" {
							t.Errorf("%s: run %s ended twice on the stream", id, e.Envelope().RunID)
						}
						seen[e.Envelope().RunID] = e.Type()
					}
				}
			}
			events := decode(t, b.facts(id))
			stopped := 0
			for run, n := range endings(events) {
				if n != 1 {
					t.Errorf("%s: run %s has %d terminals", id, run, n)
				}
			}
			state := b.state(id)
			for run, word := range answered {
				if (word == "accepted") != (seen[run] == narad.TypeRunCancelled) {
					t.Errorf("%s: the stop was answered %q, the run ended as %s", id, word, seen[run])
				}
				if word == "accepted" {
					stopped++
				}
				if r, ok := state.Run(run); !ok || string(seen[run]) != "run."+string(r.State) {
					t.Errorf("%s: the stream ended run %s as %s, the state has %q", id, run, seen[run], r.State)
				}
			}
			t.Logf("%s: %d of %d were stopped before their end", id, stopped, rounds)
		})
	}
	all.Wait()
}
