package script

import (
	"context"
	"errors"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
	"go.yaml.in/yaml/v3"
)

// nested is a run below the present one, with steps of its own, perhaps started by a
// tool call.
type nested struct {
	name   string
	prompt template
	call   *delegation
	steps  sequence
	as     string
	on     branches
}

// delegation is the tool call that starts a nested run.
type delegation struct {
	name, kind string
	title      template
	args       value
}

func readNested(r *reader, n *yaml.Node, m manner) action {
	parallel, spoke := r.parallel, r.spoke
	r.parallel = false // the steps stand in a run of their own
	o := r.object(n, "agent")
	a := &nested{name: o.plain("name"), prompt: o.template("prompt")}
	if a.name == "" {
		r.fail(n, "an agent must have a name")
	}
	if t := o.take("tool"); t != nil {
		a.call = r.delegation(t)
	}
	if steps := o.take("steps"); steps != nil {
		a.steps = r.steps(steps, m)
	}
	r.parallel, r.spoke = parallel, spoke
	a.as = r.as(o)
	a.on = r.on(o, m, "finished", "error", "cancelled")
	o.close("name", "prompt", "tool", "steps", "as", "on")
	return a
}

func (r *reader) delegation(n *yaml.Node) *delegation {
	if n.Kind == yaml.ScalarNode {
		return &delegation{name: r.plain(n, "agent: tool"), kind: toolKinds[0]}
	}
	o := r.object(n, "agent: tool")
	d := &delegation{name: o.plain("name"), kind: o.word("kind", toolKinds...), title: o.template("title"), args: o.value("args")}
	if d.name == "" {
		r.fail(n, "agent: tool must have a name")
	}
	o.close("name", "kind", "title", "args")
	return d
}

func (a *nested) perform(ctx context.Context, sc *scene, at spot) error {
	callID, err := a.delegate(ctx, sc, at)
	if err != nil {
		return err
	}
	ending, err := a.run(ctx, sc, at, callID)
	if err != nil {
		return err
	}
	if callID != "" {
		if err := sc.h.FinishTool(ctx, callID, delegated(ending)); err != nil {
			return err
		}
	}
	outcome := endingWord(ending.Outcome)
	sc.play.vars.set(a.as, result{outcome: outcome, code: ending.Code})
	return a.on.follow(ctx, sc, at, outcome)
}

// delegate returns the open tool call of the run, "" for none. A call whose outcome
// became unknown in a restart stays so; the run below it is another matter.
func (a *nested) delegate(ctx context.Context, sc *scene, at spot) (string, error) {
	if a.call == nil {
		return "", nil
	}
	path := at.into("call").path
	if known := sc.play.past.calls[path]; known != nil {
		sc.play.past.consume()
		if known.finish != nil {
			return "", nil
		}
		return known.id, nil
	}
	t := agent.Tool{AgentID: path, Name: a.call.name, Kind: a.call.kind}
	var err error
	if t.Args, err = a.call.args.arguments(sc, at); err != nil {
		return "", err
	}
	if t.Title, err = a.call.title.fill(sc, at); err != nil {
		return "", err
	}
	return sc.h.StartTool(ctx, t)
}

// run performs the nested run, or what is left of it.
func (a *nested) run(ctx context.Context, sc *scene, at spot, callID string) (agent.Ending, error) {
	known := sc.play.past.runs[at.path]
	if known != nil {
		sc.play.past.consume()
		if known.ending != nil {
			sc.play.past.leave(known.id, at.into("agent").path)
			return *known.ending, nil
		}
	}
	child, err := a.begin(ctx, sc, at, callID, known)
	if err != nil {
		return agent.Ending{}, err
	}
	err = sc.play.perform(ctx, child, a.steps, at.into("agent"))
	if ctx.Err() != nil {
		return agent.Ending{}, ctx.Err() // the host closes what is open
	}
	ending := endingOf(ctx, err)
	if errors.Is(err, agent.ErrEnded) {
		return ending, err
	}
	return ending, child.End(ctx, ending)
}

func (a *nested) begin(ctx context.Context, sc *scene, at spot, callID string, known *pastRun) (agent.Handle, error) {
	if known != nil {
		return sc.h.Resume(ctx, known.id)
	}
	prompt, err := a.prompt.fill(sc, at)
	if err != nil {
		return nil, err
	}
	return sc.h.StartRun(ctx, agent.Nested{AgentID: at.path, Name: a.name, ParentToolCallID: callID, Prompt: prompt})
}

func endingWord(o agent.Outcome) string {
	return [...]string{agent.Finished: "finished", agent.Failed: "error", agent.Cancelled: "cancelled"}[o]
}

// delegated is how a tool call ends whose run has ended.
func delegated(e agent.Ending) agent.ToolResult {
	r := agent.ToolResult{
		Outcome: narad.OutcomeSuccess, Code: e.Code,
		Response: narad.Raw(`{"outcome":"` + endingWord(e.Outcome) + `"}`),
	}
	switch e.Outcome {
	case agent.Failed:
		r.Outcome, r.Message = narad.OutcomeError, e.Message
	case agent.Cancelled:
		r.Outcome = narad.OutcomeCancelled
	}
	return r
}
