package host

import (
	"context"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
)

func (h *handle) CallClient(ctx context.Context, t agent.Tool, started func(string)) (agent.ToolResult, error) {
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
		return resultOf(f), nil
	case <-ctx.Done():
		return agent.ToolResult{}, ctx.Err()
	case <-o.ended:
		return agent.ToolResult{}, agent.ErrEnded
	}
}

func resultOf(f *narad.ToolCallFinished) agent.ToolResult {
	return agent.ToolResult{Outcome: f.Outcome, Response: f.Response, Code: f.Code, Message: f.Message}
}

// AwaitClient waits for a call that was open. Where it has ended meanwhile its fact is
// read.
func (h *handle) AwaitClient(ctx context.Context, toolCallID string) (agent.ToolResult, error) {
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
			return resultOf(f), nil
		}
	}
	return agent.ToolResult{}, invalid("no such call of an executor in the run")
}
