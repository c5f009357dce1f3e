package naryahttp_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/script"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
	"github.com/mahati-host/mahati/narya/naryatest"
)

// promise plays something on a host and returns the events that its stream has told, each
// of which was held to what is promised of its type; at the end all sessions are at rest.
func promise(t *testing.T, o bedOptions, play func(b *bed)) (events []event) {
	t.Helper()
	bubble(t, o, func(t *testing.T, b *bed) {
		s := b.stream("", "")
		play(b)
		events = s.now()
		judge := naryatest.NewJudge()
		for _, e := range events {
			if err := judge.See(e.Event); err != nil {
				t.Error(err)
			}
		}
		if err := judge.Rest(); err != nil {
			t.Error(err)
		}
	})
	return events
}

// opened makes a session by the operation of the contract, and says something in it if text is not
// empty. What the promises are about is caused over HTTP alone, as users cause it.
func (b *bed) opened(text string) (id string) {
	b.t.Helper()
	id = b.made(in("/"))
	if text != "" {
		b.tell(id, text, "")
	}
	return id
}

// interrupts stops the turn that is under way.
func (b *bed) interrupts(id string) {
	b.t.Helper()
	b.want(b.post(path(id, "interrupt"), ""), 202)
	synctest.Wait()
}

// told are the payloads of one type, in the words of the wire.
func told(events []event, kind narya.Type) (list []string) {
	for _, e := range events {
		if e.Type() == kind {
			_, payload, _ := strings.Cut(e.data, `"payload":`)
			list = append(list, strings.TrimSuffix(payload, "}"))
		}
	}
	return list
}

// field returns a field of each payload of one type.
func fields(events []event, kind narya.Type, name string) (list []string) {
	for _, payload := range told(events, kind) {
		list = append(list, text(payload, name))
	}
	return list
}

func wantList(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestPromiseStatusOnlyOnAChange(t *testing.T) {
	events := promise(t, bedOptions{}, func(b *bed) {
		id := b.opened("hello")
		synctest.Wait()
		for _, what := range []string{"archive", "archive", "restore", "restore"} {
			b.want(b.post(path(id, what), ""), 200)
		}
	})
	wantList(t, "statuses", fields(events, narya.TypeSessionStatusChanged, "status"), "running", "idle", "archived", "idle")
}

func TestPromisePostureOnlyIfItMoved(t *testing.T) {
	events := promise(t, bedOptions{}, func(b *bed) {
		id := b.opened("")
		for _, word := range []string{"detached", "detached", "attended", "attended"} {
			b.want(b.put(path(id, "posture"), `{"posture":"`+word+`"}`), 200)
		}
		b.stream("sessionId="+id, "").close() // who comes or goes moves nothing
	})
	wantList(t, "postures", fields(events, narya.TypeSessionPostureChanged, "posture"), "detached", "attended")
}

func TestPromiseMovedOnlyIfThePathChanged(t *testing.T) {
	dir := t.TempDir()
	events := promise(t, bedOptions{}, func(b *bed) {
		id := b.opened("")
		for range 2 {
			b.want(b.post(path(id, "move"), `{"repository":`+quote(dir)+`}`), 200)
		}
	})
	wantList(t, "moves", fields(events, narya.TypeSessionMoved, "repository"), dir)
}

func TestPromiseModelOnlyOnAChange(t *testing.T) {
	events := promise(t, bedOptions{agent: scripted(t, offering)}, func(b *bed) {
		id := b.opened("")
		for _, model := range []string{"two", "two", "one", "one"} {
			b.want(b.put(path(id, "model"), `{"provider":"p","model":"`+model+`"}`), 200)
		}
	})
	wantList(t, "models", fields(events, narya.TypeModelSwitch, "model"), "two", "one")
}

// Each turn ends once, however it ends: done, failed, stopped, or cut by a restart.
func TestPromiseOneEndForEachTurn(t *testing.T) {
	ends := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		switch h.Info().Prompt.Content {
		case "fail":
			return agent.Ending{Outcome: agent.Failed, Code: "c", Message: "why"}
		case "wait":
			return waits(ctx, h)
		}
		return speaks(ctx, h)
	})
	events := promise(t, bedOptions{agent: ends}, func(b *bed) {
		id := b.opened("hello")
		synctest.Wait()
		b.tell(id, "fail", "")
		synctest.Wait()
		b.tell(id, "wait", "")
		synctest.Wait()
		b.interrupts(id)
	})
	wantList(t, "ends", fields(events, narya.TypeTurnFinished, "stopReason"), "completed", "error", "interrupted")
	if len(told(events, narya.TypeTurnStarted)) != 3 {
		t.Errorf("got %v", kinds(events))
	}
}

// After a restart the turn that the host could not go on with has its end, with the error.
func TestPromiseTheRestartEndsATurn(t *testing.T) {
	bubble(t, bedOptions{agent: acts(waits)}, func(t *testing.T, b *bed) {
		b.opened("hello")
		synctest.Wait()
		b.close()
		b = begin(t, bedOptions{agent: acts(waits), before: b})
		synctest.Wait()
		events := b.stream("", fmt.Sprint(b.journal.Identity().FirstEvent)).now()
		wantList(t, "ends", fields(events, narya.TypeTurnFinished, "stopReason"), "error")
		if got := told(events, narya.TypeTurnFinished); len(got) != 1 || text(got[0], "error", "code") != "NRY-0020" {
			t.Errorf("got %q, want the code NRY-0020", got)
		}
	})
}

// A turn over a restart tells how long it was by the times of its facts, whether the host ends
// it or its agent goes on; nothing is told where the clock went back behind its start.
func TestPromiseElapsedOverARestart(t *testing.T) {
	asking := scripted(t, `
script: 1
steps:
  - ask: {title: "Go on?"}
`)
	for _, tt := range []struct {
		name  string
		agent agent.Kind
		now   func() time.Time
		end   func(b *bed)
		want  string
	}{
		{"ended by the host", acts(waits), time.Now, func(*bed) {}, "3000"},
		{"ended by its agent", asking, time.Now, func(b *bed) {
			pass(2 * time.Second)
			b.want(b.decide(b.only(), "allow", ""), 200)
		}, "5000"},
		{"the clock went back", acts(waits), func() time.Time { return time.Now().Add(-time.Hour) }, func(*bed) {}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, bedOptions{agent: tt.agent}, func(t *testing.T, b *bed) {
				b.opened("hello")
				pass(time.Second)
				b.close()
				pass(2 * time.Second)
				b = begin(t, bedOptions{agent: tt.agent, before: b, host: host.Options{Now: tt.now}})
				synctest.Wait()
				tt.end(b)
				synctest.Wait()
				events := b.stream("", fmt.Sprint(b.journal.Identity().FirstEvent)).now()
				wantList(t, "how long", fields(events, narya.TypeTurnFinished, "elapsedMs"), tt.want)
			})
		})
	}
}

// A turn's figures are those that are known: the last round's usage, the cost of all, the
// model's window, and how long it took by a clock that no change of the time moves.
func TestPromiseFiguresAreKnownOnes(t *testing.T) {
	spends := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		<-time.After(1500 * time.Millisecond)
		e := done
		if h.Info().Prompt.Content == "spend" {
			cost, window := 0.5, int64(1000)
			e.Turn = facts.Turn{LastRound: &facts.Tokens{Input: 7, Output: 2}, CostUSD: &cost, ContextWindow: &window}
		}
		return e
	})
	var jumps atomic.Int64
	back := func() time.Time { return time.Now().Add(-time.Hour * time.Duration(jumps.Add(1))) }
	o := bedOptions{agent: spends, host: host.Options{Now: back}}
	events := promise(t, o, func(b *bed) {
		id := b.opened("spend")
		pass(2 * time.Second)
		b.tell(id, "again", "")
		pass(2 * time.Second)
	})
	var got []string
	for _, e := range told(events, narya.TypeTurnFinished) {
		got = append(got, fmt.Sprint(text(e, "usage"), text(e, "costUsd"), " ", text(e, "contextWindow"), " ", text(e, "elapsedMs")))
	}
	wantList(t, "figures", got, `{"inputTokens":7,"outputTokens":2}0.5 1000 1500`, "  1500")
}

// Messages are counted by their ends, each with the entry before it; rounds by their starts.
func TestPromiseMessagesAndRounds(t *testing.T) {
	rounds := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		for _, text := range []string{"Hel", "lo"} {
			_ = h.Round(ctx, agent.Round{Provider: "p", Model: "m"})
			_ = h.Thought(ctx, "hm")
			_ = h.Text(ctx, text)
			_ = h.EndMessage(ctx)
		}
		return done
	})
	events := promise(t, bedOptions{agent: rounds}, func(b *bed) { b.opened("hello") })
	wantList(t, "rounds", fields(events, narya.TypeMessageStart, "model"), "m", "m")
	wantList(t, "pieces", fields(events, narya.TypeMessageDelta, "delta"), "hm", "Hel", "hm", "lo")
	wantList(t, "channels", fields(events, narya.TypeMessageDelta, "channel"), "reasoning", "", "reasoning", "")
	wantList(t, "entries", fields(events, narya.TypeEntryAppended, "kind"), "user-message", "assistant-message", "assistant-message")
	if len(told(events, narya.TypeMessageEnd)) != 2 {
		t.Errorf("got %v", kinds(events))
	}
}

// A script tells of its rounds as any agent does: of the model of the session, and of itself
// where there is none; another one follows the result of a call.
func TestPromiseRoundsOfScripts(t *testing.T) {
	echo, err := script.Builtin("echo")
	if err != nil {
		t.Fatal(err)
	}
	modelled := scripted(t, "script: 1\nmodels: [p/one, p/two]\nsteps: [{say: Hello.}, {tool: {name: t}}, {say: Bye.}]")
	for model, kind := range map[string]agent.Kind{"script/echo": echo, "p/one,p/one": modelled} {
		events := promise(t, bedOptions{agent: kind}, func(b *bed) {
			b.opened("hello")
			pass(time.Minute)
		})
		start := slices.IndexFunc(events, func(e event) bool { return e.Type() == narya.TypeMessageStart })
		var rounds []string
		for _, r := range told(events, narya.TypeMessageStart) {
			rounds = append(rounds, text(r, "provider")+"/"+text(r, "model"))
		}
		if got := strings.Join(rounds, ","); got != model {
			t.Errorf("got the rounds %s, want %s", got, model)
		}
		said := slices.IndexFunc(events, func(e event) bool { return e.Type() == narya.TypeMessageDelta })
		began := slices.IndexFunc(events, func(e event) bool { return e.Type() == narya.TypeTurnStarted })
		if began > start || start > said {
			t.Errorf("%s: got %v, want the round after the start of its turn and before what is said", model, kinds(events))
		}
	}
}

// The start of a call, its output and its one end stand in that order, and output ends with
// one line that says that there was more.
func TestPromiseOfCalls(t *testing.T) {
	calls := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		id, _ := h.StartTool(ctx, agent.Tool{Name: "t", Args: narad.Raw(`{"a":1}`)})
		_ = h.ToolOutput(ctx, id, strings.Repeat("x", 1<<20))
		_ = h.ToolOutput(ctx, id, "more")
		_ = h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess, Touches: []facts.FileTouch{{Path: "/a", Op: "edit"}}})
		return done
	})
	events := promise(t, bedOptions{agent: calls}, func(b *bed) { b.opened("hello") })
	if got := strings.Join(fields(events, narya.TypeToolCallUpdate, "delta"), ""); strings.Count(got, "more output than is kept") != 1 || strings.Count(got, "x") != 1<<20 {
		t.Errorf("got %d bytes of output", len(got))
	}
	wantList(t, "ends", fields(events, narya.TypeToolCallFinished, "fileTouches"), `[{"path":"/a","op":"edit"}]`)
}

// A call that did not succeed says why in the words that its caller was given, and nothing
// where there were none: no word of the host stands for them.
func TestPromiseOfFailures(t *testing.T) {
	const script = `
script: 1
steps:
  - tool: {name: told, outcome: error, code: e, message: no disk}
  - tool: {name: shown, output: "cannot read x\n", outcome: error, code: exit_3}
  - tool: {name: answered, outcome: error, code: e, respond: no such file}
  - tool: {name: silent, outcome: error, code: e}
  - tool: {name: refused, permit: true}
  - tool: {name: denied, permit: true}
  - tool: {name: stopped, delay: 1h}
`
	events := promise(t, bedOptions{agent: scripted(t, script)}, func(b *bed) {
		id := b.opened("hello")
		synctest.Wait()
		b.want(b.post("/v1/permissions/"+b.only()+"/decision", `{"decision":"deny","reason":"no way"}`), 200)
		synctest.Wait()
		b.want(b.decide(b.only(), "deny", ""), 200)
		synctest.Wait()
		b.interrupts(id)
	})
	wantList(t, "ends", fields(events, narya.TypeToolCallFinished, "status"), "error", "error", "error", "error", "denied", "denied", "cancelled")
	wantList(t, "failures", fields(events, narya.TypeToolCallFinished, "failure"), "no disk", "cannot read x", "no such file", "", "no way", "", "")
}

// In a detached session nobody has said anything.
func TestPromiseOfFailuresWhereNobodyIs(t *testing.T) {
	const script = `
script: 1
steps:
  - tool: {name: rm, permit: true}
`
	events := promise(t, bedOptions{agent: scripted(t, script)}, func(b *bed) {
		id := b.opened("")
		b.want(b.put(path(id, "posture"), `{"posture":"detached"}`), 200)
		b.tell(id, "hello", "")
		synctest.Wait()
	})
	wantList(t, "failures", fields(events, narya.TypeToolCallFinished, "failure"), "")
}

// Each member of a pack is asked once and decided once; the first decision is the only one.
func TestPromiseOfPermissions(t *testing.T) {
	const script = `
script: 1
steps:
  - ask: {title: "Two?", kind: approval, actions: [approve, deny], members: [{id: a, action: edit}, {id: b, action: run}]}
  - tool: {name: rm, permit: true}
`
	events := promise(t, bedOptions{agent: scripted(t, script)}, func(b *bed) {
		id := b.opened("hello")
		synctest.Wait()
		members := b.pendingIDs("?sessionId=" + id)
		if len(members) != 2 {
			t.Fatalf("%d permissions wait, want those of both members", len(members))
		}
		b.want(b.decide(members[0], "deny", ""), 200)
		b.want(b.decide(members[0], "deny", ""), 200) // told again
		b.wantError(b.decide(members[0], "allow", ""), narya.CodeAlreadyDecided)
		b.want(b.decide(members[1], "allow", ""), 200)
		b.only()
		b.interrupts(id)
	})
	wantList(t, "decisions", fields(events, narya.TypePermissionDecided, "decision"), "deny", "allow", "expired")
	wantList(t, "deciders", fields(events, narya.TypePermissionDecided, "decidedBy"), "user", "user", "policy")
	if asked := fields(events, narya.TypePermissionAsked, "permissionId"); !slices.Equal(asked, fields(events, narya.TypePermissionDecided, "permissionId")) {
		t.Errorf("asked for %q", asked)
	}
}

// A question names its call, whose end retires it.
func TestPromiseOfQuestions(t *testing.T) {
	const script = `
script: 1
steps:
  - question: {text: "Colour?", options: [red, green], recommended: 1}
`
	events := promise(t, bedOptions{agent: scripted(t, script)}, func(b *bed) {
		b.opened("hello")
		b.want(b.reply(b.asking().field("questionId"), `{"answers":[{"options":[0]}]}`), 200)
		synctest.Wait()
	})
	asked, ended := fields(events, narya.TypeQuestionAsked, "toolCallId"), fields(events, narya.TypeToolCallFinished, "toolCallId")
	if len(asked) != 1 || !slices.Equal(asked, ended) || asked[0] == "" {
		t.Errorf("asked by %q, ended %q", asked, ended)
	}
}

// A run that a call began is a lane of its own, within which all of its turn stands.
func TestPromiseOfLanes(t *testing.T) {
	const script = `
script: 1
steps:
  - agent: {name: helper, prompt: Help, tool: task, steps: [{say: Helped.}]}
`
	events := promise(t, bedOptions{agent: scripted(t, script)}, func(b *bed) { b.opened("hello") })
	wantList(t, "lanes", fields(events, narya.TypeLaneStarted, "kind"), "main", "subagent")
	wantList(t, "ends", fields(events, narya.TypeLaneFinished, "status"), "completed")
}

// A message that waits has its entry as it begins to wait, and none when its turn begins; one
// that is taken back has no turn.
func TestPromiseOfWaitingMessages(t *testing.T) {
	events := promise(t, bedOptions{agent: acts(waits)}, func(b *bed) {
		id := b.opened("hello")
		synctest.Wait()
		b.tell(id, "second", "")
		third := b.tell(id, "third", "").field("entryId")
		b.want(b.delete(path(id, "inputs/"+third)), 200)
		b.interrupts(id)
		b.want(b.post(path(id, "inputs/release"), ""), 202)
		synctest.Wait()
		b.interrupts(id)
	})
	entries := fields(events, narya.TypeEntryAppended, "entryId")
	if len(entries) != 3 || len(told(events, narya.TypeTurnStarted)) != 2 {
		t.Fatalf("got %v", kinds(events))
	}
	wantList(t, "taken back", fields(events, narya.TypeQueuedInputWithdrawn, "entryId"), entries[2])
	wantList(t, "statuses", fields(events, narya.TypeSessionStatusChanged, "status"), "running", "waiting", "running", "idle")
}

// The status of a workflow is that after the change, and each step tells how far it is.
func TestPromiseOfWorkflows(t *testing.T) {
	const definition = `
workflow: 1
start: one
nodes:
  one: {script: [{say: "Done."}], prompt: go, next: two}
  two: {set: {x: "1"}, next: end}
  end: {end: completed}
`
	events := promise(t, bedOptions{}, func(b *bed) {
		b.want(b.post("/v1/workflows", `{"sessionId":`+quote(b.opened(""))+`,"definition":`+quote(definition)+`}`), 202)
		synctest.Wait()
	})
	var got []string
	for _, e := range told(events, narya.TypeWorkflowProgress) {
		got = append(got, strings.TrimSpace(fmt.Sprint(text(e, "status"), " ", text(e, "step", "name"), " ", text(e, "step", "status"), " ", text(e, "completedSteps"), "/", text(e, "totalSteps"), " ", text(e, "step", "output"))))
	}
	wantList(t, "progress", got, "running   0/2", "running one running 0/2", "running one completed 1/2 Done.",
		"running two running 1/2", "running two completed 2/2", "completed   2/2")
	wantList(t, "lanes", fields(events, narya.TypeLaneStarted, "kind"), "main", "workflow")
}

// A step that comes again counts once, and how many there will be is not told any more where
// a failed step has left the way.
func TestPromiseOfStepsThatComeAgain(t *testing.T) {
	const definition = `
workflow: 1
start: one
max_steps: 4
nodes:
  one: {set: {x: "1"}, next: two}
  two: {script: [{fail: {code: no, message: No.}}], prompt: go, on_failure: one, next: end}
  end: {end: completed}
`
	events := promise(t, bedOptions{}, func(b *bed) {
		started := b.want(b.post("/v1/workflows", `{"sessionId":`+quote(b.opened(""))+`,"definition":`+quote(definition)+`}`), 202)
		synctest.Wait()
		run := b.want(b.get("/v1/workflows/"+started.field("runId")), 200)
		if run.field("completedSteps") != "1" || run.field("totalSteps") != "" {
			t.Errorf("got %s, want one completed step of nobody knows how many", run.body)
		}
	})
	var got []string
	for _, e := range told(events, narya.TypeWorkflowProgress) {
		got = append(got, fmt.Sprint(text(e, "step", "name"), " ", text(e, "step", "status"), " ", text(e, "completedSteps"), "/", text(e, "totalSteps")))
	}
	wantList(t, "progress", got, "  0/2", "one running 0/2", "one completed 1/2", "two running 1/2", "two failed 1/2",
		"one running 1/", "one completed 1/", "two running 1/", "two failed 1/", "  1/")
}

// A workflow that ends tells of the steps that it leaves out, and then of its end.
func TestPromiseOfSkippedSteps(t *testing.T) {
	const definition = `
workflow: 1
start: one
nodes:
  one: {approval: {title: Continue}, next: two}
  two: {set: {x: "1"}, next: three}
  three: {set: {x: "1"}, next: end}
  end: {end: completed}
`
	events := promise(t, bedOptions{}, func(b *bed) {
		run := b.want(b.post("/v1/workflows", `{"sessionId":`+quote(b.opened(""))+`,"definition":`+quote(definition)+`}`), 202).field("runId")
		synctest.Wait()
		b.want(b.post("/v1/workflows/"+run+"/stop", ""), 202)
		synctest.Wait()
		var steps []string
		for _, step := range b.want(b.get("/v1/workflows/"+run), 200).items("steps") {
			steps = append(steps, text(step, "name")+" "+text(step, "status"))
		}
		wantList(t, "steps", steps, "one stopped", "two skipped", "three skipped")
	})
	var got []string
	for _, e := range told(events, narya.TypeWorkflowProgress) {
		got = append(got, strings.TrimSpace(fmt.Sprint(text(e, "status"), " ", text(e, "step", "name"), " ", text(e, "step", "status"))))
	}
	wantList(t, "progress", got, "running", "running one running", "running one stopped", "running two skipped", "running three skipped", "stopped")
}

// The lanes of parallel branches tell the agents that work in them; a script of the file is
// none.
func TestPromiseOfBranches(t *testing.T) {
	const definition = `
workflow: 1
start: both
nodes:
  both:
    parallel:
      left: {agent: test, prompt: go}
      right: {script: [{say: "Done."}], prompt: go}
    next: end
  end: {end: completed}
`
	events := promise(t, bedOptions{}, func(b *bed) {
		id := b.opened("")
		b.want(b.post("/v1/workflows", `{"sessionId":`+quote(id)+`,"definition":`+quote(definition)+`}`), 202)
		synctest.Wait()
		var listed []string
		for _, lane := range b.want(b.get(path(id, "lanes")), 200).items("items") {
			listed = append(listed, text(lane, "kind")+" "+text(lane, "agent"))
		}
		slices.Sort(listed)
		wantList(t, "listed", listed, "main ", "workflow ", "workflow ", "workflow test")
	})
	agents := fields(events, narya.TypeLaneStarted, "agent")
	slices.Sort(agents)
	wantList(t, "lanes", agents, "", "", "", "test")
}

// Where somebody is asked, another session speaks or a workflow ends, there is news for who
// saw the session before.
func TestPromiseOfNews(t *testing.T) {
	const definition = `
workflow: 1
start: one
nodes:
  one: {approval: {title: Continue}, next: end}
  end: {end: completed}
`
	promise(t, bedOptions{agent: acts(waits)}, func(b *bed) {
		id, other := b.opened(""), b.opened("")
		seen := func() {
			pass(time.Second)
			b.want(b.post(path(id, "viewed"), ""), 200)
			pass(time.Second)
		}
		news := func(what string) {
			t.Helper()
			synctest.Wait()
			if got := b.want(b.get("/v1/sessions/"+id), 200); got.field("updatedAt") <= got.field("viewedAt") {
				t.Errorf("%s is no news: %s", what, got)
			}
		}
		b.want(b.post("/v1/workflows", `{"sessionId":`+quote(id)+`,"definition":`+quote(definition)+`}`), 202)
		news("a workflow")
		permission := b.only()
		seen()
		b.want(b.decide(permission, "allow", ""), 200)
		news("a decision, and the end of the workflow")
		if got := b.want(b.get("/v1/sessions/"+id), 200).field("lastOutcome"); got != "finished" {
			t.Errorf("the outcome of the workflow is %q", got)
		}
		b.tell(id, "wait", "")
		synctest.Wait()
		seen()
		b.want(b.post("/v1/sessions/"+other+"/intercom", `{"to":`+quote(b.nameOf(id))+`,"content":"hello"}`), 202)
		news("what another session says")
		b.interrupts(id)
		b.want(b.post(path(id, "inputs/release"), ""), 202)
		synctest.Wait()
		b.interrupts(id)
	})
}

// A session that waits for a person has news.
func TestPromiseOfNewsThatSomebodyIsAsked(t *testing.T) {
	promise(t, bedOptions{agent: scripted(t, `
script: 1
steps:
  - delay: 10s
  - tool: {name: rm, permit: true}
`)}, func(b *bed) {
		id := b.opened("hello")
		pass(time.Second)
		b.want(b.post(path(id, "viewed"), ""), 200)
		pass(time.Minute)
		if got := b.want(b.get("/v1/sessions/"+id), 200); got.field("updatedAt") <= got.field("viewedAt") {
			t.Errorf("what is asked is no news: %s", got)
		}
		b.interrupts(id)
	})
}

func TestPromiseOfExtensions(t *testing.T) {
	events := promise(t, bedOptions{}, func(b *bed) {
		where := `,"sessionId":` + quote(b.opened(""))
		for i, in := range []string{where, "", where} {
			b.want(b.post("/v1/extensions/events", fmt.Sprintf(`{"extension":"a/b","name":"n%d"%s}`, i, in)), 202)
		}
	})
	wantList(t, "names", fields(events, narya.TypeExtension, "name"), "n0", "n1", "n2")
}

// The list is told whole, and an empty one after it was cleared.
func TestPromiseOfTasks(t *testing.T) {
	const script = `
script: 1
steps:
  - plan: [One, {text: Two, status: active}]
  - plan: []
`
	events := promise(t, bedOptions{agent: scripted(t, script)}, func(b *bed) { b.opened("hello") })
	if got := fields(events, narya.TypeTaskList, "tasks"); len(got) < 2 || !strings.Contains(got[0], "One") || !strings.Contains(got[0], "Two") || got[1] != "[]" {
		t.Errorf("got %q", got)
	}
}

func TestPromiseOfIntercom(t *testing.T) {
	events := promise(t, bedOptions{}, func(b *bed) {
		one, two := b.opened(""), b.opened("")
		for _, said := range []string{"first", "second"} {
			b.want(b.post("/v1/sessions/"+one+"/intercom", `{"to":`+quote(b.nameOf(two))+`,"content":"`+said+`"}`), 202)
		}
		pass(time.Second)
	})
	wantList(t, "said", fields(events, narya.TypeIntercomMessage, "content"), "first", "second")
	for i, e := range events {
		if m, ok := e.Payload.(*narya.IntercomMessage); ok {
			entry, ok := events[i-1].Payload.(*narya.EntryAppended)
			if !ok || entry.Kind != narya.EntryIntercom || events[i-1].SessionID != e.SessionID {
				t.Errorf("%q stands behind %s", m.Content, events[i-1].data)
			}
		}
	}
}

// TestPromisesHaveTests holds the table of docs/narya.md to the tests.
func TestPromisesHaveTests(t *testing.T) {
	page, err := os.ReadFile("../../../docs/narya.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Promises and their tests\n")
	section, _, _ = strings.Cut(section, "\n## ")
	sources, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z-]+)`.*\\| `(Test\\w+)` \\|$").FindAllStringSubmatch(section, -1)
	if len(rows) == 0 {
		t.Fatal("there is no table of promises")
	}
	var types []string
	for _, row := range rows {
		types = append(types, row[1])
		if !strings.Contains(all.String(), "func "+row[2]+"(") {
			t.Errorf("%s: there is no test %s", row[1], row[2])
		}
	}
	for _, kind := range caused {
		if !slices.Contains(types, string(kind)) {
			t.Errorf("no promise of %s has a test", kind)
		}
	}
}

// caused are the types that something on this host causes.
var caused = []narya.Type{
	narya.TypeSessionCreated, narya.TypeSessionStatusChanged, narya.TypeSessionPostureChanged, narya.TypeSessionMoved,
	narya.TypeModelSwitch, narya.TypeTurnStarted, narya.TypeTurnFinished, narya.TypeMessageStart, narya.TypeMessageDelta,
	narya.TypeMessageEnd, narya.TypeEntryAppended, narya.TypeToolCallStarted, narya.TypeToolCallUpdate,
	narya.TypeToolCallFinished, narya.TypePermissionAsked, narya.TypePermissionDecided, narya.TypeQuestionAsked,
	narya.TypeLaneStarted, narya.TypeLaneFinished, narya.TypeQueuedInputWithdrawn, narya.TypeTaskList,
	narya.TypeIntercomMessage, narya.TypeWorkflowProgress, narya.TypeExtension,
}
