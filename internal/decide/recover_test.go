package decide_test

import (
	"testing"

	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
)

// dead is a session whose host died in the middle of everything.
func dead(t *testing.T) (*bed, string) {
	t.Helper()
	b, run := running(t)
	b.ok(decide.StartTool{RunID: run, ToolCallID: "shell", Name: "shell", Args: narad.Raw("{}")})
	b.ok(decide.StartTool{RunID: run, ToolCallID: "gated", Name: "write", Args: narad.Raw("{}")})
	b.ok(permit(run, "gated", "gate", "i-gate"))
	b.ok(decide.StartTool{RunID: run, ToolCallID: "delegate", Name: "agent", Args: narad.Raw("{}")})
	b.ok(decide.StartRun{ParentRunID: run, ParentToolCallID: "delegate", RunID: "child"})
	b.ok(decide.Say{RunID: "child", MessageID: "m-child", Text: "x"})
	b.ok(decide.Progress{RunID: "child", ProgressID: "p", Category: "phase", Label: "l", Status: narad.ProgressActive, Privacy: narad.PrivacyPublic})
	b.ok(decide.Think{RunID: run, MessageID: "m", Text: "x"})
	b.ok(decide.Ask{RunID: "child", InterruptID: "q", WaitID: "w", ToolCallID: "asked", Questions: []decide.Question{{Text: "?"}}})
	b.ok(decide.Message{MessageID: "m-2", Content: "next"})
	b.story()
	return b, run
}

// R17: the run of an agent that cannot resume is closed in legal order, its open calls
// with an unknown outcome, and the queue moves.
func TestRecoverCloses(t *testing.T) {
	b, _ := dead(t)
	b.ok(decide.Recover{})
	b.tells(`
		interrupt.resolved child q expired host_restarted
		run.resumed child
		tool.call.finished child asked error outcome_unknown
		progress.recorded child p cancelled
		run.error child host_restarted
		interrupt.resolved gate i-gate expired host_restarted
		run.resumed gate
		run.finished gate
		tool.call.finished run-1 shell error outcome_unknown
		tool.call.finished run-1 gated error outcome_unknown
		tool.call.finished run-1 delegate error outcome_unknown
		reasoning.completed run-1 reasoning:m
		run.error run-1 host_restarted
		run.started run-2
		message.user.recorded run-2 m-2 session next queued`)
	b.ok(decide.Ended{RunID: b.runs()[1]})
	b.refuses(decide.Recover{}, decide.AlreadyApplied)
	b.idle()
}

// An agent that resumes keeps its questions, its gates and the nested runs at work; what
// nobody knows the outcome of is never run again.
func TestRecoverResumes(t *testing.T) {
	b, run := dead(t)
	b.ok(decide.Recover{Resumes: true})
	b.tells(`
		tool.call.finished run-1 shell error outcome_unknown
		reasoning.completed run-1 reasoning:m`)
	b.refuses(decide.Recover{Resumes: true}, decide.AlreadyApplied)
	if len(b.owner.OpenInterrupts()) != 2 || b.owner.ActiveRootRunID() != run {
		t.Errorf("open: got %+v of %s, want both questions of %s", b.owner.OpenInterrupts(), b.owner.ActiveRootRunID(), run)
	}
}

// R14: a stop stays a stop in recovery, whoever performs the run, and parks the queue.
func TestRecoverStopped(t *testing.T) {
	for _, resumes := range []bool{true, false} {
		b, run := dead(t)
		b.ok(decide.Stop{})
		b.story()
		b.ok(decide.Recover{Resumes: resumes})
		if state, _ := b.ended(run); state != "cancelled" || !b.desk.Parked || b.owner.HasOpenWork() {
			t.Errorf("resumes %v: the run is %s, the queue parked %v:\n%s", resumes, state, b.desk.Parked, b.story())
		}
	}
}

// What is recovered where no place is free waits for one.
func TestRecoverWithoutAPlace(t *testing.T) {
	b, _ := dead(t)
	b.env.MayStart = false
	b.ok(decide.Recover{})
	if b.owner.HasOpenWork() || len(b.desk.Queue) != 1 || !b.outcome.Closing {
		t.Errorf("open %v, queue %v, closing %v", b.owner.HasOpenWork(), b.desk.Queue, b.outcome.Closing)
	}
}
