package decide_test

import (
	"slices"
	"testing"

	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
)

// withExecutor is a bed with a run that is bound to the executor "desk", which is there
// or not.
func withExecutor(t *testing.T, present bool) (*bed, string, *bool) {
	t.Helper()
	b := newBed(t)
	payload := created("default")
	payload.ClientExecutorID = "desk"
	b.ok(decide.Create{Payload: payload})
	there := present
	b.env.ExecutorPresent = func(id string) bool { return there && id == "desk" }
	b.env.AwaitExecutor = true
	run := b.ok(decide.Message{Content: "go"}).RunID
	b.story()
	return b, run, &there
}

func clientCall(run, id string) decide.StartClientTool {
	return decide.StartClientTool{
		StartTool: decide.StartTool{RunID: run, ToolCallID: id, Name: "open.file", Args: narad.Raw(`{}`)}, WaitID: "w-" + id,
	}
}

func (b *bed) issues(want ...string) {
	b.t.Helper()
	if !slices.Equal(b.outcome.Issue, want) {
		b.t.Errorf("issues %v, want %v", b.outcome.Issue, want)
	}
}

// §11.3: a call whose executor is there is issued in the batch of its start, and ends as
// the executor says.
func TestClientTool(t *testing.T) {
	b, run, _ := withExecutor(t, true)
	b.ok(clientCall(run, "c1"))
	b.issues("c1")
	if start, ok := b.outcome.Facts[0].(*narad.ToolCallStarted); !ok || start.Executor != narad.ExecutorClient {
		t.Errorf("the call starts as %+v, want the executor client", b.outcome.Facts[0])
	}
	b.ok(decide.Say{RunID: run, MessageID: "m", Text: "meanwhile"})
	b.ok(decide.FinishClientTool{ToolCallID: "c1", Outcome: narad.OutcomeSuccess, Response: narad.Raw(`{"n":1.10}`)})
	b.tells(`
		tool.call.started run-1 c1 open.file
		message.text.started run-1 m session
		message.text.delta run-1 m meanwhile
		tool.call.finished run-1 c1 success`)
	b.refuses(decide.FinishClientTool{ToolCallID: "c1", Outcome: narad.OutcomeSuccess, Response: narad.Raw("null")}, decide.Conflict)
	b.refuses(decide.EndClientTool{ToolCallID: "c1"}, decide.AlreadyApplied)
}

// §11.2, R32: where the executor is away the run pauses until it comes, and the token is
// issued with the resume.
func TestClientToolWaits(t *testing.T) {
	b, run, there := withExecutor(t, false)
	b.ok(clientCall(run, "c1"))
	b.issues()
	if !slices.Equal(b.outcome.Await, []string{"c1"}) || !slices.Equal(decide.AwaitedExecutors(b.owner), []string{"desk"}) {
		t.Errorf("awaits %v of %v, want c1 of desk", b.outcome.Await, decide.AwaitedExecutors(b.owner))
	}
	b.bars(decide.StartTool{RunID: run, ToolCallID: "c2", Name: "x", Args: narad.Raw("{}")}, decide.RefusedPaused)
	b.refuses(decide.ExecutorArrived{Executor: "desk"}, decide.AlreadyApplied)
	*there = true
	b.refuses(decide.ExecutorArrived{Executor: "other"}, decide.AlreadyApplied)
	b.ok(decide.ExecutorArrived{Executor: "desk"})
	b.issues("c1")
	b.refuses(decide.ExecutorArrived{Executor: "desk"}, decide.AlreadyApplied)
	b.ok(decide.FinishClientTool{ToolCallID: "c1", Outcome: narad.OutcomeError, Response: narad.Raw("null")})
	b.tells(`
		tool.call.started run-1 c1 open.file
		run.paused run-1
		run.resumed run-1
		tool.call.finished run-1 c1 error`)
}

// A second call of the run, while the first is under way and the executor has gone, waits
// without touching the first.
func TestSecondClientToolWaits(t *testing.T) {
	b, run, there := withExecutor(t, true)
	b.ok(clientCall(run, "c1"))
	*there = false
	b.ok(clientCall(run, "c2"))
	b.ok(decide.FinishClientTool{ToolCallID: "c1", Outcome: narad.OutcomeSuccess, Response: narad.Raw("1")})
	*there = true
	b.ok(decide.ExecutorArrived{Executor: "desk"})
	b.issues("c2")
}

func TestClientToolAtOnce(t *testing.T) {
	b, run, _ := withExecutor(t, false)
	b.env.AwaitExecutor = false
	b.ok(clientCall(run, "c1"))
	b.tells(`
		tool.call.started run-1 c1 open.file
		tool.call.finished run-1 c1 error client_unavailable`)
	plain, other := running(t)
	plain.bars(clientCall(other, "c1"), decide.RefusedInvalid)
}

// §11.3 rules 9 and 11: what nobody finishes ends with a code that says why.
func TestClientToolEnds(t *testing.T) {
	for _, tt := range []struct {
		name    string
		present bool
		end     decide.EndClientTool
		want    string
	}{
		{"its time is over", true, decide.EndClientTool{ToolCallID: "c1"}, `
			tool.call.finished run-1 c1 error client_execution_expired`},
		{"it was not delivered", true, decide.EndClientTool{ToolCallID: "c1", Undelivered: true}, `
			tool.call.finished run-1 c1 error delivery_failed`},
		{"nobody came", false, decide.EndClientTool{ToolCallID: "c1"}, `
			run.resumed run-1
			tool.call.finished run-1 c1 error client_unavailable`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, run, _ := withExecutor(t, tt.present)
			b.ok(clientCall(run, "c1"))
			b.story()
			b.ok(tt.end)
			b.tells(tt.want)
			b.ok(decide.Ended{RunID: run})
		})
	}
}

// A stop, and the end of the run, close the call whether it was issued or waits.
func TestStopEndsClientTools(t *testing.T) {
	for _, present := range []bool{true, false} {
		b, run, _ := withExecutor(t, present)
		b.ok(clientCall(run, "c1"))
		b.story()
		b.ok(decide.Stop{})
		b.ok(decide.Ended{RunID: run})
		want := `
			run.stop.requested run-1 target=run-1
			tool.call.finished run-1 c1 cancelled stopped
			run.cancelled run-1 stopped running>idle`
		if !present {
			want = `
			run.stop.requested run-1 target=run-1
			run.resumed run-1
			tool.call.finished run-1 c1 cancelled stopped
			run.cancelled run-1 stopped running>idle`
		}
		b.tells(want)
	}
}

// R17: a restart leaves the calls of executors open where the agent goes on, since they
// are not the host's to judge, and closes them with the run where it does not.
func TestRecoverLeavesClientTools(t *testing.T) {
	for _, present := range []bool{true, false} {
		b, run, _ := withExecutor(t, present)
		b.ok(clientCall(run, "c1"))
		b.refuses(decide.Recover{Resumes: true}, decide.AlreadyApplied)
		b.ok(decide.Recover{})
		if _, open := b.whole.Run(run); !open {
			t.Fatal("the run is unknown")
		}
		if tool, _ := b.whole.Tool("c1"); tool.Open || tool.Code != "outcome_unknown" {
			t.Errorf("the call is %+v, want it closed as outcome_unknown", tool)
		}
	}
}
