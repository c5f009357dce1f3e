package decide

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// The codes of client tool calls that no executor has finished (§11.3).
const (
	CodeExecutionExpired  = "client_execution_expired"
	CodeClientUnavailable = "client_unavailable"
	CodeDeliveryFailed    = "delivery_failed"
	reasonUnavailable     = "client_executor_unavailable"
)

// StartClientTool records that a run calls a tool of its executor. Where the executor is
// there, the call is issued; else the run pauses until it comes, or the call fails at
// once, as the host is configured (R32).
type StartClientTool struct {
	StartTool
	// WaitID names the pause, if there is one.
	WaitID string
}

func (t StartClientTool) propose(d *draft) Answer {
	run, answer, ok := d.starting(t.RunID)
	switch {
	case !ok:
		return answer
	case run.ClientExecutorID == "":
		return refuseRecord(RefusedInvalid, "no executor is bound to the run")
	case len(d.state.OpenTools(t.RunID)) >= maxOpenTools:
		return refuseRecord(RefusedInvalid, "too many tool calls are open")
	}
	d.call(run, t.StartTool, narad.ExecutorClient)
	answer.ID = t.ToolCallID
	switch {
	case d.present(run):
		d.issue = append(d.issue, t.ToolCallID)
	case d.env.AwaitExecutor:
		d.await = append(d.await, t.ToolCallID)
		d.in(run, &narad.RunPaused{WaitID: t.WaitID, Reason: reasonUnavailable, ResumeMode: narad.ResumeAutomatic})
	default:
		called := session.Tool{ToolCallID: t.ToolCallID, ToolName: t.Name, StartedAt: narad.Timestamp(d.env.Now)}
		d.in(run, d.unavailable(called))
	}
	return answer
}

// present reports whether the run's executor can take a call now.
func (d *draft) present(run session.Run) bool {
	return d.env.ExecutorPresent != nil && d.env.ExecutorPresent(run.ClientExecutorID)
}

func (d *draft) unavailable(t session.Tool) *narad.ToolCallFinished {
	return d.finish(t, narad.OutcomeError, narad.Raw("null"), CodeClientUnavailable, "Its executor is not there.")
}

// awaited returns the call for which a run waits until its executor comes. Nothing starts
// in a paused run, so it is the last of the run's calls.
func (d *draft) awaited(run session.Run) (session.Tool, bool) {
	if _, asks := d.state.OpenInterrupt(run.RunID); asks || run.State != session.Paused {
		return session.Tool{}, false
	}
	tools := d.state.OpenTools(run.RunID)
	for i := len(tools) - 1; i >= 0; i-- {
		if tools[i].Executor == narad.ExecutorClient {
			return tools[i], true
		}
	}
	return session.Tool{}, false
}

// AwaitedExecutors returns the executors for which runs of a session wait.
func AwaitedExecutors(state *session.State) []string {
	d := &draft{state: state}
	var out []string
	for _, run := range state.OpenRuns() {
		if _, ok := d.awaited(run); ok && !state.Stopped(run.RunID) {
			out = append(out, run.ClientExecutorID)
		}
	}
	return out
}

// ExecutorArrived lets the runs go on that wait for an executor: their calls are issued.
type ExecutorArrived struct{ Executor string }

func (a ExecutorArrived) propose(d *draft) Answer {
	for _, run := range d.state.OpenRuns() {
		tool, ok := d.awaited(run)
		if !ok || run.ClientExecutorID != a.Executor || d.state.Stopped(run.RunID) || !d.present(run) {
			continue
		}
		d.in(run, &narad.RunResumed{WaitID: run.OpenWaitID})
		d.issue = append(d.issue, tool.ToolCallID)
	}
	return d.orNothing(Answer{Status: Accepted})
}

// FinishClientTool ends a call as its executor says. That the executor may say so was
// judged before.
type FinishClientTool struct {
	ToolCallID string
	Outcome    narad.Outcome
	Response   narad.Raw
}

func (f FinishClientTool) propose(d *draft) Answer {
	tool, run, ok := d.clientTool(f.ToolCallID)
	if !ok {
		return refuse(Conflict, "the call has ended")
	}
	d.closing = true
	finish := d.finish(tool, f.Outcome, f.Response, "", "")
	if said, told := f.Response.Field("message").IsString(); told && f.Outcome != narad.OutcomeSuccess {
		facts.SetFailure(&finish.Event, cut(said, maxFailure))
	}
	d.in(run, finish)
	return Answer{Status: Accepted, RunID: run.RunID}
}

// EndClientTool ends a call that no executor has finished: nobody took it, or its time is
// over. A call that has ended stays as it is.
type EndClientTool struct {
	ToolCallID string
	// Undelivered says that the connection did not take it; else its time is over.
	Undelivered bool
}

func (e EndClientTool) propose(d *draft) Answer {
	tool, run, ok := d.clientTool(e.ToolCallID)
	if !ok {
		return Answer{Status: AlreadyApplied}
	}
	d.closing = true
	code, message := CodeExecutionExpired, "No result came in time; nobody knows whether the call took effect."
	if e.Undelivered {
		code, message = CodeDeliveryFailed, "The call could not be handed to its executor."
	}
	if waits, ok := d.awaited(run); ok && waits.ToolCallID == tool.ToolCallID {
		d.in(run, &narad.RunResumed{WaitID: run.OpenWaitID})
		d.in(run, d.unavailable(tool))
		return Answer{Status: Accepted, RunID: run.RunID}
	}
	d.in(run, d.finish(tool, narad.OutcomeError, narad.Raw("null"), code, message))
	return Answer{Status: Accepted, RunID: run.RunID}
}

// clientTool returns an open call of an executor, with its run.
func (d *draft) clientTool(id string) (session.Tool, session.Run, bool) {
	tool, known := d.state.Tool(id)
	if !known || !tool.Open || tool.Executor != narad.ExecutorClient {
		return tool, session.Run{}, false
	}
	run, ok := d.run(tool.RunID)
	return tool, run, ok
}

// AwaitClientTool says whether a call of the run's executor is still open: accepted if it
// is.
type AwaitClientTool struct {
	RunID      string
	ToolCallID string
}

func (a AwaitClientTool) propose(d *draft) Answer {
	if _, answer, ok := d.open(a.RunID); !ok {
		return answer
	}
	if tool, run, ok := d.clientTool(a.ToolCallID); ok && run.RunID == a.RunID {
		return Answer{Status: Accepted, ID: tool.ToolCallID}
	}
	return Answer{Status: AlreadyApplied}
}
