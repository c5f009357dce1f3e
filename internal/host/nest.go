package host

import (
	"cmp"
	"context"
	"slices"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
)

func (h *handle) StartRun(ctx context.Context, n agent.Nested) (agent.Handle, error) {
	id := h.o.host.opt.NewID()
	branch := h.branches[n.AgentID]
	if branch != "" && n.Executor == "" {
		n.Executor = h.o.host.opt.Assign(branch, "")
	}
	info := agent.Info{
		SessionID: h.info.SessionID, RunID: id, RootRunID: h.info.RootRunID, Cwd: h.info.Cwd,
		Executor: cmp.Or(n.Executor, h.info.Executor),
	}
	if n.Prompt != "" {
		info.Prompt = agent.Message{MessageID: h.o.host.opt.NewID(), Content: n.Prompt}
	}
	_, err := h.do(ctx, &task{command: decide.StartRun{
		ParentRunID: h.info.RunID, ParentToolCallID: n.ParentToolCallID, RunID: id, AgentID: n.AgentID,
		Name: n.Name, Prompt: n.Prompt, MessageID: info.Prompt.MessageID, ClientExecutorID: n.Executor,
	}})
	if err != nil {
		return nil, err
	}
	return h.nest(info, branch)
}

// nest makes the handle of a run below, which an agent of its own may perform. What it
// holds is recorded before this run ends.
func (h *handle) nest(info agent.Info, branch string) (agent.Handle, error) {
	n := newHandle(h.o, info, cmp.Or(branch, h.agentName))
	n.above, n.forgets = h, h.forgets
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, agent.ErrEnded
	}
	h.below = append(h.below, n)
	return n, nil
}

func (h *handle) Resume(_ context.Context, runID string) (agent.Handle, error) {
	past, open := pastOf(h.info.Past, runID)
	if !open {
		return nil, invalid("no such nested run was open before the restart")
	}
	info, branch := h.info, ""
	info.RunID, info.Past, info.Prompt = runID, past, agent.Message{}
	for _, fact := range past {
		if r, ok := fact.(*narad.RunStarted); ok && r.RunID == runID {
			info.Executor, branch = r.ClientExecutorID, h.branches[facts.AgentID(&r.Event)]
		}
		if m, ok := fact.(*narad.MessageUserRecorded); ok && m.RunID == runID {
			info.Prompt = agent.Message{MessageID: m.MessageID, Content: m.Content}
			break
		}
	}
	return h.nest(info, branch)
}

// pastOf returns the facts of a nested run and of what is below it, and whether it is
// one that an agent works in and has not ended.
func pastOf(list []narad.Authority, runID string) (past []narad.Authority, open bool) {
	below := map[string]bool{runID: true}
	for _, fact := range list {
		e := fact.Envelope()
		switch f := fact.(type) {
		case *narad.RunStarted:
			below[f.RunID] = below[f.RunID] || below[f.ParentRunID]
			open = open || f.RunID == runID && f.ParentRunID != "" && !facts.Gate(e)
		case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
			open = open && e.RunID != runID
		}
		if below[e.RunID] {
			past = append(past, fact)
		}
	}
	return past, open
}

func (h *handle) End(ctx context.Context, e agent.Ending) error {
	if h.above == nil {
		return invalid("a top-level run ends when its agent returns")
	}
	h.close()
	_, err := h.do(ctx, &task{command: decide.EndRun{RunID: h.info.RunID, Ending: endingOf(e)}})
	if err != nil {
		return err
	}
	h.above.mu.Lock()
	defer h.above.mu.Unlock()
	h.above.below = slices.DeleteFunc(h.above.below, func(n *handle) bool { return n == h })
	return nil
}
