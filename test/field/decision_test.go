package field_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mahati-host/mahati/narad"
)

// The ways in which an agent can ask for one decision, each with a tool that runs only
// when it is approved.
var askings = map[string]string{
	"a question of the run": `
script: 1
steps:
  - ask: {title: "Write it?", on: {approve: [{tool: {name: write}}], deny: [{say: Not then.}]}}
`,
	"the permission of a tool": `
script: 1
steps:
  - tool: {name: write, permit: {title: "Write it?"}, on: {deny: [{say: Not then.}]}}
`,
}

// Case 21. Owed: of many who answer one question at once, one decides. Everybody else is
// told so, and what the decision was. The one whose answer counted may repeat it and is
// told the same as the first time, also by the next host.
func TestCase21AnsweredTwice(t *testing.T) {
	t.Parallel()
	for name, script := range askings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, script)
			b.session("s1")
			run := b.say("s1", "go")
			asked := b.awaitAsk("s1", 1)

			const clients = 50
			words := []string{"approve", "deny"}
			answers := make([]answer, clients)
			errs := make([]error, clients)
			var ready, all sync.WaitGroup
			ready.Add(clients)
			for i := range clients {
				all.Go(func() {
					body := object{"interruptId": asked.InterruptID, "decision": words[i%2], "commandId": fmt.Sprint("click-", i)}
					ready.Done()
					ready.Wait()
					answers[i], errs[i] = b.do(b.url, http.MethodPost, "/commands/resolve-interrupt", body)
				})
			}
			all.Wait()
			for i, err := range errs {
				if err != nil {
					b.fatalf("client %d has no answer: %v", i, err)
				}
			}
			winner := slices.IndexFunc(answers, func(a answer) bool { return a.status == http.StatusAccepted })
			if winner < 0 {
				t.Fatalf("nobody was accepted: %v", answers)
			}
			decision, place := words[winner%2], answers[winner].field("sessionSequence")
			verdict := func(i int) (status int, word string) {
				switch {
				case i == winner:
					return http.StatusAccepted, "accepted"
				case i%2 == winner%2:
					return http.StatusOK, "already_applied"
				}
				return http.StatusConflict, "conflict"
			}
			told := func(i int, a answer) {
				t.Helper()
				status, word := verdict(i)
				if a.status != status || a.field("status") != word || a.field("decision") != decision ||
					a.field("sessionSequence") != place || a.field("requestId") != asked.InterruptID {
					t.Errorf("client %d, who said %s: got %v, want %d %s with %s of %s at %s",
						i, words[i%2], a, status, word, decision, asked.InterruptID, place)
				}
			}
			for i, a := range answers {
				told(i, a)
			}
			again := func(i int) {
				t.Helper()
				a := b.resolve(asked.InterruptID, words[i%2], fmt.Sprint("click-", i))
				told(i, a)
				if i == winner && string(a.body) != string(answers[i].body) {
					t.Errorf("the winner again: got %v, want the first answer %v", a, answers[i])
				}
			}
			b.awaitEnd("s1", run)
			again(winner)
			head := b.head("s1")
			b.restart()
			for i := range 4 {
				again((winner + i) % clients)
			}
			if now := b.head("s1"); now != head {
				t.Errorf("repetitions moved the session from %d to %d", head, now)
			}
			wantDecided(t, b, asked, decision, place)
		})
	}
}

// wantDecided demands one decision of an interrupt in the whole session, at a place, with
// the tool run only if that was the decision.
func wantDecided(t *testing.T, b *bed, asked *narad.InterruptRequested, decision, place string) {
	t.Helper()
	facts := b.facts("s1")
	reduce(t, facts)
	resolved := only[*narad.InterruptResolved](decode(t, facts))
	if len(resolved) != 1 || resolved[0].InterruptID != asked.InterruptID || resolved[0].Decision != decision ||
		strconv.FormatInt(resolved[0].SessionSequence, 10) != place {
		t.Errorf("decisions: got %+v, want one, %s at %s", resolved, decision, place)
	}
	ran := 0
	for _, f := range only[*narad.ToolCallFinished](decode(t, facts)) {
		if f.Outcome == narad.OutcomeSuccess {
			ran++
		}
	}
	if want := map[string]int{"approve": 1, "deny": 0}[decision]; ran != want {
		t.Errorf("%s, and the tool ran %d times, want %d", decision, ran, want)
	}
	if open := b.open("s1"); len(open) != 0 {
		t.Errorf("still open: %v", open)
	}
}

// Case 22. Owed: a decision about what is not asked, not theirs, or closed is refused in
// so many words. It is never told to have worked, and nothing is recorded.
func TestCase22NoSuchQuestion(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
steps:
  - ask: {title: "First?"}
  - ask: {title: "Second?"}
`)
	sessions := []string{"s1", "s2"}
	for _, id := range sessions {
		if a := b.post("/sessions", object{"sessionId": id, "workspaceId": "of-" + id}); a.status != http.StatusCreated {
			t.Fatalf("create: got %v", a)
		}
	}
	run := b.say("s1", "go")
	b.say("s2", "go")
	first := b.awaitAsk("s1", 1).InterruptID
	foreign := b.awaitAsk("s2", 1).InterruptID
	if a := b.resolve(first, "approve", "c1"); a.status != http.StatusAccepted {
		t.Fatalf("resolve: got %v, want 202", a)
	}
	second := b.awaitAsk("s1", 2).InterruptID

	decider := b.as(b.run("token", "create", "--name", "d", "--role", "observe,decide", "--workspace", "of-s1"))
	watcher := b.as(b.run("token", "create", "--name", "w", "--role", "observe"))
	nobody := b.as("mht_" + strings.Repeat("a", 40))
	refuse := func(when string) {
		t.Helper()
		heads, open := []int64{b.head("s1"), b.head("s2")}, slices.Concat(b.open("s1"), b.open("s2"))
		for _, test := range []struct {
			what      string
			by        *bed
			interrupt string
			decision  string
			status    []int
		}{
			{"a made-up id", b, "01a2f3c4-0000-7000-8000-000000000000", "approve", []int{404}},
			{"an id of no form", b, "../i1", "approve", []int{400, 404}},
			{"the id of a run", b, run, "approve", []int{404}},
			{"of a session that is not theirs", decider, foreign, "approve", []int{403, 404}},
			{"without the role", watcher, foreign, "approve", []int{403}},
			{"without a valid token", nobody, foreign, "approve", []int{401}},
			{"closed, otherwise", b, first, "deny", []int{409}},
			{"closed, by somebody else", decider, first, "deny", []int{409}},
			{"closed, under the id of the decision", b, first, "deny", []int{409}},
		} {
			command := "again-" + test.what
			if strings.HasSuffix(test.what, "the id of the decision") {
				command = "c1"
			}
			a := test.by.resolve(test.interrupt, test.decision, strings.Map(idByte, command))
			if !slices.Contains(test.status, a.status) {
				t.Errorf("%s, %s: got %v, want one of %v", when, test.what, a, test.status)
			}
		}
		// Repeated in agreement it is known to hold (R22), and no second fact.
		if a := decider.resolve(first, "approve", ""); a.status != http.StatusOK || a.field("status") != "already_applied" {
			t.Errorf("%s, closed, likewise: got %v, want 200 already_applied", when, a)
		}
		if got := []int64{b.head("s1"), b.head("s2")}; !slices.Equal(got, heads) {
			t.Errorf("%s: refusals moved the sessions from %v to %v", when, heads, got)
		}
		if got := slices.Concat(b.open("s1"), b.open("s2")); !slices.Equal(got, open) || !slices.Equal(got, []string{second, foreign}) {
			t.Errorf("%s: the inbox is %v, want %v", when, got, []string{second, foreign})
		}
	}
	refuse("at once")
	b.restart()
	for _, other := range []*bed{decider, watcher, nobody} {
		other.url = b.url
	}
	refuse("after a restart")
	for i, id := range []string{second, foreign} {
		if a := b.resolve(id, "approve", ""); a.status != http.StatusAccepted {
			t.Errorf("%d: a decision that can be: got %v, want 202", i, a)
		}
	}
}

// idByte makes text an id that a client may choose.
func idByte(r rune) rune {
	if r == ' ' || r == ',' {
		return '-'
	}
	return r
}

// Case 24. Owed: with several questions open, an answer decides the one that it names, and
// the work that waits for it alone goes on. The others stay listed, in the order in which
// they were asked, and are answered in any order.
func TestCase24OneAnswerOneQuestion(t *testing.T) {
	t.Parallel()
	branch := func(name, wait, steps string) string {
		return fmt.Sprintf("      - - delay: %s\n        - agent: {name: %s, steps: [%s]}\n", wait, name, steps)
	}
	steps := map[string]func(name string) string{
		"questions of nested runs": func(name string) string {
			return "{ask: {title: " + name + ", on: {approve: [{tool: {name: " + name + "}}]}}}"
		},
		"permissions of tools in nested runs": func(name string) string {
			return "{tool: {name: " + name + ", permit: {title: " + name + "}}}"
		},
	}
	for kind, step := range steps {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			names := []string{"one", "two", "three"}
			script := "script: 1\nsteps:\n  - parallel:\n"
			for i, name := range names {
				script += branch(name, fmt.Sprintf("%dms", 200-100*i), step(name)) // the last one asks first
			}
			b := newBed(t, script)
			b.session("s1")
			run := b.say("s1", "go")
			asked := make([]*narad.InterruptRequested, len(names))
			ids := make([]string, len(names))
			for i := range names {
				asked[i] = b.awaitAsk("s1", i+1)
				ids[i] = asked[i].InterruptID
			}
			wantOpen := func(want ...string) {
				t.Helper()
				if got := b.open("s1"); !slices.Equal(got, want) {
					t.Errorf("the inbox is %v, want %v", got, want)
				}
				b.restart()
				if got := b.open("s1"); !slices.Equal(got, want) {
					t.Errorf("after a restart the inbox is %v, want %v", got, want)
				}
			}
			wantOpen(ids...)
			decide := func(id, decision string) {
				t.Helper()
				if a := b.resolve(id, decision, ""); a.status != http.StatusAccepted {
					t.Fatalf("%s: got %v, want 202", decision, a)
				}
			}
			decide(ids[1], "deny")
			b.await("s1", "the end of the run that was denied", func(e narad.Authority) bool {
				return terminal(e) && e.Envelope().RunID == helperOf(b, asked[1])
			})
			wantOpen(ids[0], ids[2])
			wantRan(t, b, 1, nil)

			decide(ids[2], "approve")
			b.await("s1", "the end of the run that was approved", func(e narad.Authority) bool {
				return terminal(e) && e.Envelope().RunID == helperOf(b, asked[2])
			})
			wantOpen(ids[0])
			wantRan(t, b, 2, []string{asked[2].Title})
			decide(ids[0], "approve")
			if end := b.awaitEnd("s1", run); end.Type() != narad.TypeRunFinished {
				t.Errorf("the run ended as %s, want finished", end.Type())
			}
			wantRan(t, b, 3, []string{asked[2].Title, asked[0].Title})
		})
	}
}

// helperOf is the nested run that waits for an interrupt: the run itself, or the one above
// it where it was opened to ask.
func helperOf(b *bed, asked *narad.InterruptRequested) string {
	b.t.Helper()
	run, _ := b.state("s1").Run(asked.RunID)
	if parent, _ := b.state("s1").Run(run.ParentRunID); parent.ParentRunID != "" {
		return parent.RunID
	}
	return run.RunID
}

// wantRan demands that so many decisions are recorded, and that exactly these tools ran,
// in this order.
func wantRan(t *testing.T, b *bed, decisions int, tools []string) {
	t.Helper()
	facts := b.facts("s1")
	state := reduce(t, facts)
	if got := len(only[*narad.InterruptResolved](decode(t, facts))); got != decisions {
		t.Errorf("got %d decisions, want %d", got, decisions)
	}
	var ran []string
	for _, f := range only[*narad.ToolCallFinished](decode(t, facts)) {
		if tool, _ := state.Tool(f.ToolCallID); f.Outcome == narad.OutcomeSuccess {
			ran = append(ran, tool.ToolName)
		}
	}
	if !slices.Equal(ran, tools) {
		t.Errorf("the tools that ran are %v, want %v", ran, tools)
	}
}

// Case 27. Owed: what was not offered is no answer, whoever sends it and however it is
// spelled. It changes nothing, and the question can still be answered.
func TestCase27NotOffered(t *testing.T) {
	t.Parallel()
	for name, script := range askings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, script)
			b.session("s1")
			run := b.say("s1", "go")
			asked := b.awaitAsk("s1", 1)
			if !slices.Equal(asked.Actions, []string{"approve", "deny"}) {
				t.Fatalf("actions %v, want approve and deny", asked.Actions)
			}
			head := b.head("s1")
			for _, decision := range []string{
				`"approve_always"`, `""`, `"APPROVE"`, `"Approve"`, `" approve"`, `"approve\u0000"`, `"yes"`, `"0"`,
				`"expired"`, `"stop"`, `null`, `true`, `1`, `["approve"]`, `{"decision":"approve"}`,
			} {
				body := fmt.Sprintf(`{"interruptId":%q,"decision":%s}`, asked.InterruptID, decision)
				if a := b.post("/commands/resolve-interrupt", body); a.status != 422 && a.status != 400 {
					t.Errorf("decision %s: got %v, want 422 or 400", decision, a)
				}
			}
			for _, body := range []string{
				fmt.Sprintf(`{"interruptId":%q}`, asked.InterruptID),
				fmt.Sprintf(`{"interruptId":%q,"decision":"deny","decision":"approve"}`, asked.InterruptID),
			} {
				if a := b.post("/commands/resolve-interrupt", body); a.status != http.StatusBadRequest {
					t.Errorf("%s: got %v, want 400", body, a)
				}
			}
			if got := b.head("s1"); got != head || !slices.Equal(b.open("s1"), []string{asked.InterruptID}) {
				t.Errorf("refusals moved the session from %d to %d, or the inbox to %v", head, got, b.open("s1"))
			}
			a := b.resolve(asked.InterruptID, "approve", "")
			if a.status != http.StatusAccepted {
				t.Fatalf("approve: got %v, want 202", a)
			}
			b.awaitEnd("s1", run)
			wantDecided(t, b, asked, "approve", a.field("sessionSequence"))
		})
	}
}
