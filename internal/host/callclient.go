package host

import (
	"context"
	"errors"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
)

func (h *handle) CallClient(ctx context.Context, t agent.Tool, started func(string)) (agent.ToolResult, error) {
	to := h.o.host.opt.Assign(h.agentName, t.Name)
	if to == "" || to == h.info.Executor {
		return h.callClient(ctx, t, started)
	}
	// One executor a run (R34): another one's tool runs below.
	below, err := h.StartRun(ctx, agent.Nested{Name: to, Executor: to})
	if err != nil {
		return agent.ToolResult{}, err
	}
	return endAfter(ctx, below, func() (agent.ToolResult, error) { return below.(*handle).callClient(ctx, t, started) })
}

// endAfter ends a run below with the call that it was made for. One whose call nobody waits
// for any more is the stop's to end.
func endAfter(ctx context.Context, below agent.Handle, call func() (agent.ToolResult, error)) (agent.ToolResult, error) {
	r, err := call()
	if ctx.Err() != nil || errors.Is(err, agent.ErrEnded) {
		return r, err
	}
	e := agent.Ending{StopReason: "completed"}
	if err != nil {
		e = agent.Ending{Outcome: agent.Failed, Code: "call_refused", Message: "The call was refused."}
	}
	return r, errors.Join(err, below.End(ctx, e))
}

func (h *handle) callClient(ctx context.Context, t agent.Tool, started func(string)) (agent.ToolResult, error) {
	id := h.o.host.opt.NewID()
	if t.Args == nil {
		t.Args = narad.Raw("{}")
	}
	finished := make(chan *narad.ToolCallFinished, 1)
	_, err := h.do(ctx, &task{
		command: decide.StartClientTool{
			StartTool: decide.StartTool{
				RunID: h.info.RunID, ToolCallID: id, AgentID: t.AgentID, Name: t.Name, Kind: t.Kind, Title: t.Title, Args: t.Args,
			},
			WaitID: h.o.host.opt.NewID(),
		},
		toolCall: id, finished: finished,
	})
	if err != nil {
		return agent.ToolResult{}, err
	}
	if started != nil {
		started(id)
	}
	return h.o.awaitCall(ctx, finished)
}

// awaitCall waits for the end of a client tool call, a stop or the end of the owner.
func (o *owner) awaitCall(ctx context.Context, finished <-chan *narad.ToolCallFinished) (agent.ToolResult, error) {
	select {
	case f := <-finished:
		return agent.ResultOf(f), nil
	case <-ctx.Done():
		return agent.ToolResult{}, ctx.Err()
	case <-o.ended:
		return agent.ToolResult{}, agent.ErrEnded
	}
}

// AwaitClient waits for a call that was open. Where it has ended meanwhile its fact is
// read.
func (h *handle) AwaitClient(ctx context.Context, toolCallID string) (agent.ToolResult, error) {
	run := runOfCall(h.info.Past, toolCallID)
	if run == "" || run == h.info.RunID {
		return h.awaitClient(ctx, toolCallID)
	}
	below, err := h.Resume(ctx, run) // of another executor
	if err != nil {
		return agent.ToolResult{}, err
	}
	return endAfter(ctx, below, func() (agent.ToolResult, error) { return below.(*handle).awaitClient(ctx, toolCallID) })
}

// runOfCall is the run in which a call was made before a restart, "" for none.
func runOfCall(past []narad.Authority, toolCallID string) string {
	for _, fact := range past {
		if f, ok := fact.(*narad.ToolCallStarted); ok && f.ToolCallID == toolCallID {
			return f.RunID
		}
	}
	return ""
}

func (h *handle) awaitClient(ctx context.Context, toolCallID string) (agent.ToolResult, error) {
	finished := make(chan *narad.ToolCallFinished, 1)
	answer, err := h.do(ctx, &task{
		command:  decide.AwaitClientTool{RunID: h.info.RunID, ToolCallID: toolCallID},
		toolCall: toolCallID, finished: finished,
	})
	if err != nil {
		return agent.ToolResult{}, err
	}
	if answer.Status.Accepted() {
		return h.o.awaitCall(ctx, finished)
	}
	past, err := h.o.past(ctx, h.info.RootRunID)
	if err != nil {
		return agent.ToolResult{}, err
	}
	for _, fact := range past {
		if f, ok := fact.(*narad.ToolCallFinished); ok && f.ToolCallID == toolCallID && f.RunID == h.info.RunID {
			return agent.ResultOf(f), nil
		}
	}
	return agent.ToolResult{}, invalid("no such call of an executor in the run")
}
