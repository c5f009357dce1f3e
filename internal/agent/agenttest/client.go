package agenttest

import (
	"context"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// executorID is the executor of a session that has one.
const executorID = "executor"

// executor is what the runs of the session are bound to.
func (s *Session) executor() string {
	if s.opt.Client == nil {
		return ""
	}
	return executorID
}

// CallClient implements agent.Handle: Options.Client is the executor, which is there
// always.
func (h *handle) CallClient(ctx context.Context, t agent.Tool, started func(string)) (agent.ToolResult, error) {
	var id string
	err := h.starts(ctx, func(b *book) error {
		if h.s.opt.Client == nil {
			return h.s.refuse("no executor is bound to the run")
		}
		start := h.s.toolStart(b, t)
		start.Executor = narad.ExecutorClient
		id = start.ToolCallID
		return h.s.recordAfterText(b, start)
	})
	if err != nil {
		return agent.ToolResult{}, err
	}
	if started != nil {
		started(id)
	}
	return h.AwaitClient(ctx, id)
}

// AwaitClient implements agent.Handle.
func (h *handle) AwaitClient(ctx context.Context, toolCallID string) (agent.ToolResult, error) {
	var name string
	err := h.in(ctx, func(b *book) error {
		c, err := h.s.call(b, toolCallID)
		if err == nil {
			name = c.name
		}
		return err
	})
	if err != nil {
		return agent.ToolResult{}, err
	}
	r, err := h.s.opt.Client(ctx, toolCallID, name)
	if err != nil {
		return r, err
	}
	return r, h.in(ctx, func(b *book) error {
		c, err := h.s.call(b, toolCallID)
		if err != nil {
			return err
		}
		return h.s.record(h.s.toolFinish(c, r))
	})
}
