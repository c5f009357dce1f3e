package script

import (
	"context"
	"sync"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// provider is who runs the model of a script on which no model was chosen (R42).
const provider = "script"

// asking is where the rounds of a run stand: a model is asked as the run begins, and again
// for what comes after an answer, or after the results of its calls.
type asking struct {
	due  bool            // what is told next begins a round
	open map[string]bool // calls that have not ended
}

func newAsking() *asking { return &asking{due: true, open: map[string]bool{}} }

// answered notes that the model gets something new, once no call is open any more.
func (a *asking) answered() { a.due = a.due || len(a.open) == 0 }

func (a *asking) ended(call string) {
	delete(a.open, call)
	a.answered()
}

// round reads what a fact of the past says of the rounds of its run.
func (h *historian) round(rec narad.Authority, runID string) {
	a := h.asking[runID]
	if a == nil {
		a = newAsking()
		h.asking[runID] = a
	}
	switch r := rec.(type) {
	case *narad.ToolCallStarted:
		if r.ToolName != askUser {
			a.open[r.ToolCallID] = true
		}
	case *narad.ToolCallFinished:
		a.ended(r.ToolCallID)
	case *narad.InterruptResolved:
		a.answered()
	case *narad.Custom:
		a.due = a.due && r.Name != facts.Round
	}
}

// rounds is a handle that tells of the rounds of its run.
type rounds struct {
	agent.Handle
	is agent.Round

	mu sync.Mutex // branches may tell at once
	at *asking
}

// rounds returns a handle that tells of the rounds of the run, where there is a model to name.
func (pl *play) rounds(ctx context.Context, h agent.Handle) (agent.Handle, error) {
	is := agent.Round{Provider: provider, Model: pl.opt.Agent}
	if pl.chose.Model != "" {
		is = agent.Round{Provider: pl.chose.Provider, Model: pl.chose.Model}
	}
	if is.Model == "" {
		return h, nil
	}
	r := &rounds{Handle: h, is: is, at: pl.past.asking[h.Info().RunID]}
	if r.at != nil {
		return r, nil // it goes on
	}
	r.at = newAsking()
	return r, r.begin(ctx)
}

// begin tells of a round, if one is due.
func (r *rounds) begin(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.at.due {
		return nil
	}
	if err := r.Handle.Round(ctx, r.is); err != nil {
		return err
	}
	r.at.due = false
	return nil
}

func (r *rounds) note(what func(*asking)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what(r.at)
}

func (r *rounds) Text(ctx context.Context, text string) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	return r.Handle.Text(ctx, text)
}

func (r *rounds) Thought(ctx context.Context, text string) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	return r.Handle.Thought(ctx, text)
}

func (r *rounds) StartTool(ctx context.Context, t agent.Tool) (string, error) {
	if err := r.begin(ctx); err != nil {
		return "", err
	}
	id, err := r.Handle.StartTool(ctx, t)
	if err == nil {
		r.note(func(a *asking) { a.open[id] = true })
	}
	return id, err
}

func (r *rounds) FinishTool(ctx context.Context, id string, result agent.ToolResult) error {
	err := r.Handle.FinishTool(ctx, id, result)
	r.note(func(a *asking) { a.ended(id) })
	return err
}

func (r *rounds) CallClient(ctx context.Context, t agent.Tool, started func(string)) (agent.ToolResult, error) {
	if err := r.begin(ctx); err != nil {
		return agent.ToolResult{}, err
	}
	r.note(func(a *asking) { a.open[t.AgentID] = true })
	result, err := r.Handle.CallClient(ctx, t, started)
	r.note(func(a *asking) { a.ended(t.AgentID) })
	return result, err
}

func (r *rounds) AwaitClient(ctx context.Context, id string) (agent.ToolResult, error) {
	result, err := r.Handle.AwaitClient(ctx, id)
	r.note(func(a *asking) { a.ended(id) })
	return result, err
}

func (r *rounds) Ask(ctx context.Context, ask agent.Ask) (agent.Answer, error) {
	if err := r.begin(ctx); err != nil {
		return agent.Answer{}, err
	}
	answer, err := r.Handle.Ask(ctx, ask)
	r.note((*asking).answered)
	return answer, err
}

func (r *rounds) Await(ctx context.Context, interruptID string) (agent.Answer, error) {
	answer, err := r.Handle.Await(ctx, interruptID)
	r.note((*asking).answered)
	return answer, err
}
