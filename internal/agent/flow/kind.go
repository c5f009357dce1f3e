package flow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// Performer is what performs the run of a step.
type Performer struct {
	// NodeID names the step for people.
	NodeID string
	// Agent is the name of the configured agent, "" for a script of the node's own and
	// for parallel branches.
	Agent string
	// Branches are the agents of parallel branches, by the AgentID of their runs.
	Branches map[string]string
	// Kind is nil where the step names an agent that is not configured any more.
	Kind agent.Kind
}

// Performer returns what performs the run of the step under way, if it has one.
func (p *Progress) Performer(configured func(name string) (agent.Kind, bool)) Performer {
	if p.def == nil || p.step.run == "" {
		return Performer{}
	}
	n := p.def.nodes[p.step.node]
	f, by := fork{}, Performer{NodeID: n.id, Branches: map[string]string{}}
	for _, w := range n.work {
		kind, ok := w.script, true
		if kind == nil {
			kind, ok = configured(w.agent)
		}
		prompt, err := w.prompt.fill(p.data)
		if !ok || err != nil {
			return by
		}
		f.branches = append(f.branches, forked{w.name, w.agent, prompt, kind})
		by.Branches[w.name] = w.agent
	}
	if by.Kind = f; !n.parallel {
		by.Agent, by.Branches, by.Kind = n.work[0].agent, nil, f.branches[0].kind
	}
	return by
}

// fork performs the parallel branches of a node: nested runs of the node's own (R19).
type fork struct{ branches []forked }

type forked struct {
	name   string
	agent  string // as configured, "" for a script of the node's own
	prompt string
	kind   agent.Kind
}

// Resumes reports whether each branch does: one that cannot go on would end the node.
func (f fork) Resumes() bool {
	for _, b := range f.branches {
		if !b.kind.Resumes() {
			return false
		}
	}
	return true
}

// Steers reports false: a message would be for nobody in particular.
func (fork) Steers() bool { return false }

// Open opens an agent for each branch.
func (f fork) Open(ctx context.Context, s agent.Session) (agent.Agent, error) {
	g := &group{fork: f}
	for _, b := range f.branches {
		a, err := b.kind.Open(ctx, s)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open the branch %s: %w", b.name, err), g.Close())
		}
		g.agents = append(g.agents, a)
	}
	return g, nil
}

// group is the agents of the branches.
type group struct {
	fork
	agents []agent.Agent
}

func (g *group) Steer(context.Context, agent.Message) error {
	return fmt.Errorf("steer parallel branches: %w", errors.ErrUnsupported)
}

// Close closes all of them.
func (g *group) Close() error {
	var errs []error
	for _, a := range g.agents {
		errs = append(errs, a.Close())
	}
	return errors.Join(errs...)
}

// Run performs the branches that have not ended yet. The run has finished when each of
// them has.
func (g *group) Run(ctx context.Context, h agent.Handle) agent.Ending {
	past := pastBranches(h.Info())
	endings := make([]agent.Ending, len(g.branches))
	var all sync.WaitGroup
	for i, b := range g.branches {
		all.Go(func() { endings[i] = g.branch(ctx, h, b, g.agents[i], past[b.name]) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	var wrong []string
	for i, e := range endings {
		if e.Outcome != agent.Finished {
			wrong = append(wrong, g.branches[i].name)
		}
	}
	if len(wrong) > 0 {
		return agent.Ending{
			Outcome: agent.Failed, Code: "branch_failed", Message: "These branches did not finish: " + strings.Join(wrong, ", ") + ".",
		}
	}
	return agent.Ending{StopReason: "completed"}
}

// branch performs one branch, or what is left of it.
func (g *group) branch(ctx context.Context, h agent.Handle, b forked, a agent.Agent, past pastBranch) (e agent.Ending) {
	if past.ended {
		return past.ending
	}
	var nested agent.Handle
	var err error
	if past.run != "" {
		nested, err = h.Resume(ctx, past.run)
	} else {
		nested, err = h.StartRun(ctx, agent.Nested{AgentID: b.name, Name: b.agent, Prompt: b.prompt})
	}
	if err != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	e = perform(ctx, a, alone{nested})
	if ctx.Err() != nil {
		return agent.Ending{Outcome: agent.Cancelled} // the host closes what is open
	}
	if nested.End(ctx, e) != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	return e
}

// perform lets an agent perform a run; one that panics has failed.
func perform(ctx context.Context, a agent.Agent, h agent.Handle) (e agent.Ending) {
	defer func() {
		if recover() != nil {
			e = agent.Ending{Outcome: agent.Failed, Code: "agent_failed", Message: "The agent failed."}
		}
	}()
	return a.Run(ctx, h)
}

// alone is the handle of a nested run in the eyes of an agent that performs whole runs:
// there is nothing above it.
type alone struct{ agent.Handle }

func (h alone) Info() agent.Info {
	info := h.Handle.Info()
	info.RootRunID = info.RunID
	return info
}

// pastBranch is what the facts of an earlier life tell of a branch.
type pastBranch struct {
	run    string
	ended  bool
	ending agent.Ending
}

// pastBranches reads the branches of a run that goes on, by their names.
func pastBranches(info agent.Info) map[string]pastBranch {
	byRun, byName := map[string]string{}, map[string]pastBranch{}
	end := func(run string, outcome agent.Outcome) {
		if name, ok := byRun[run]; ok {
			byName[name] = pastBranch{run, true, agent.Ending{Outcome: outcome}}
		}
	}
	for _, fact := range info.Past {
		switch f := fact.(type) {
		case *narad.RunStarted:
			if f.ParentRunID == info.RunID && !facts.Gate(&f.Event) {
				name := facts.AgentID(&f.Event)
				byRun[f.RunID], byName[name] = name, pastBranch{run: f.RunID}
			}
		case *narad.RunFinished:
			end(f.RunID, agent.Finished)
		case *narad.RunError:
			end(f.RunID, agent.Failed)
		case *narad.RunCancelled:
			end(f.RunID, agent.Cancelled)
		}
	}
	return byName
}
