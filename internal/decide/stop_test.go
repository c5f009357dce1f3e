package decide_test

import (
	"testing"

	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// R14, R15: a stop names every open descendant and closes what was asked; the end then
// closes the rest, leaves first.
func TestStopOfATree(t *testing.T) {
	b, run := running(t)
	b.ok(decide.StartTool{RunID: run, ToolCallID: "call", Name: "delegate", Args: narad.Raw(`{}`)})
	b.ok(decide.StartRun{ParentRunID: run, ParentToolCallID: "call", RunID: "child", Name: "helper"})
	b.ok(decide.StartRun{ParentRunID: "child", RunID: "grandchild"})
	b.ok(decide.Say{RunID: "child", MessageID: "m-child", Text: "hm"})
	b.ok(decide.Progress{RunID: "child", ProgressID: "p", Category: "phase", Label: "l", Status: narad.ProgressActive, Privacy: narad.PrivacyPublic})
	b.ok(decide.StartTool{RunID: "grandchild", ToolCallID: "write", Name: "write", Args: narad.Raw(`{}`)})
	b.ok(permit("grandchild", "write", "gate", "i-1"))
	b.ok(decide.Think{RunID: run, MessageID: "m", Text: "so"})
	b.story()

	b.ok(decide.Stop{Reason: "enough"})
	b.tells(`
		run.stop.requested run-1 target=run-1
		run.stop.requested run-1 target=child
		run.stop.requested run-1 target=grandchild
		run.stop.requested run-1 target=gate
		interrupt.resolved gate i-1 expired stopped
		run.resumed gate
		run.cancelled gate stopped`)
	if !b.outcome.Closing {
		t.Error("a stop only closes")
	}
	b.refuses(decide.Stop{}, decide.AlreadyApplied)
	b.refuses(decide.Stop{RootRunID: run}, decide.AlreadyApplied)
	b.refuses(decide.Resolve{InterruptID: "i-1", Decision: "approve"}, decide.Expired)

	b.bars(decide.StartTool{RunID: run, ToolCallID: "t", Name: "x", Args: narad.Raw(`{}`)}, decide.RefusedStopped)
	b.bars(decide.StartRun{ParentRunID: "grandchild", RunID: "late"}, decide.RefusedStopped)
	b.bars(permit("grandchild", "write", "gate-2", "i-2"), decide.RefusedStopped)
	b.bars(decide.Ask{RunID: run, InterruptID: "i-3", WaitID: "w", Kind: "approval", Actions: []string{"approve"}}, decide.RefusedStopped)
	b.ok(decide.Say{RunID: run, MessageID: "m", Text: "last words"}) // a stop ends no sentence

	b.story()
	b.ok(decide.Ended{RunID: run, Ending: decide.Ending{State: session.Finished}})
	b.tells(`
		tool.call.finished grandchild write cancelled stopped
		run.cancelled grandchild stopped
		message.text.completed child m-child
		progress.recorded child p cancelled
		run.cancelled child stopped
		tool.call.finished run-1 call cancelled stopped
		reasoning.completed run-1 reasoning:m
		message.text.completed run-1 m
		run.cancelled run-1 stopped running>idle`)
	b.idle()
	b.refuses(decide.Stop{RootRunID: run}, decide.AlreadyApplied)
	b.refuses(decide.Stop{}, decide.AlreadyApplied)
	b.bars(decide.Ended{RunID: run}, decide.RefusedEnded)
}

// Field case 36: a question does not outlive the stop of its run.
func TestStopClosesAQuestion(t *testing.T) {
	b, run := running(t)
	b.ok(decide.Ask{RunID: run, InterruptID: "i", WaitID: "w", ToolCallID: "call", Questions: []decide.Question{{Text: "?", Options: []string{"a"}}}})
	b.story()
	b.ok(decide.Stop{RootRunID: run})
	b.tells(`
		run.stop.requested run-1 target=run-1
		interrupt.resolved run-1 i expired stopped
		run.resumed run-1
		tool.call.finished run-1 call cancelled stopped`)
	b.refuses(decide.Resolve{InterruptID: "i", Decision: "0"}, decide.Expired)
	b.ok(decide.Ended{RunID: run})
	b.idle()
}

// Field case 59: a stop means one run and never hits the next one.
func TestStopNamesItsRun(t *testing.T) {
	b, first := running(t)
	second := b.ok(decide.Message{Content: "two"}).RunID
	b.ok(decide.Ended{RunID: first})
	if a := b.refuses(decide.Stop{RootRunID: first}, decide.Conflict); a.RunID != first {
		t.Errorf("got %+v, want it to name %s", a, first)
	}
	b.refuses(decide.Stop{RootRunID: "nothing"}, decide.NotFound)
	if got := b.owner.ActiveRootRunID(); got != second {
		t.Errorf("the active run is %q, want %s", got, second)
	}
	b.ok(decide.Ended{RunID: second, Ending: decide.Ending{State: session.Failed, Code: "c", Message: "m"}})
	b.refuses(decide.Stop{RootRunID: second}, decide.Conflict)
	b.refuses(decide.Stop{}, decide.AlreadyApplied)
}

// R15: every way to end a run closes what is open in it and below.
func TestEndingsCloseWhatIsOpen(t *testing.T) {
	for _, end := range []struct {
		state session.RunState
		want  string
	}{
		{session.Finished, "run.finished run-1 completed running>idle"},
		{session.Failed, "run.error run-1 agent_failed running>idle"},
		{session.Cancelled, "run.cancelled run-1 running>idle"},
	} {
		t.Run(string(end.state), func(t *testing.T) {
			b, run := running(t)
			b.ok(decide.Say{RunID: run, MessageID: "m", Text: "x"})
			b.ok(decide.StartRun{ParentRunID: run, RunID: "child", Prompt: "do", MessageID: "p"})
			b.ok(decide.StartTool{RunID: "child", ToolCallID: "call", Name: "x", Args: narad.Raw(`{}`)})
			b.ok(permit("child", "call", "gate", "i"))
			b.story()
			b.ok(decide.Ended{RunID: run, Ending: decide.Ending{State: end.state, StopReason: "completed"}})
			b.tells(`
				interrupt.resolved gate i expired ended
				run.resumed gate
				run.finished gate
				tool.call.finished child call cancelled run_ended
				run.cancelled child parent_ended
				message.text.completed run-1 m
				` + end.want)
			b.idle()
		})
	}
}

func permit(run, call, gate, interrupt string) decide.Permit {
	return decide.Permit{
		RunID: run, ToolCallID: call, GateRunID: gate, InterruptID: interrupt, WaitID: "wait-" + interrupt,
		Actions: []string{"approve", "approve_always", "deny"}, Title: "May I?", Input: narad.Raw(`{"toolCallId":"` + call + `"}`),
	}
}
