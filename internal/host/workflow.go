package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/flow"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// checkWorkflow reads the file of a workflow, or says why none can be started with it, and
// which field of the command is wrong.
func (h *Host) checkWorkflow(w *decide.StartWorkflow) (field, refusal string) {
	def, err := flow.Read([]byte(w.Definition), "")
	if err != nil {
		return "definition", err.Error()
	}
	if len(w.Input) > flow.MaxData/2 {
		return "input", fmt.Sprintf("the input is larger than %d bytes", flow.MaxData/2)
	}
	for _, name := range def.Agents() {
		if _, known := h.agents.Kind(name); !known {
			return "definition", fmt.Sprintf("no agent has the name %q", name)
		}
	}
	w.Name, w.Start, w.Steps = def.Name, def.Start, counted(def.Total())
	return "", ""
}

// loadFlow reads the active workflow, if there is one.
func (o *owner) loadFlow(ctx context.Context) error {
	id := o.control.Session.ActiveWorkflowID()
	if id == "" {
		return nil
	}
	o.flow = flow.NewProgress()
	for after := uint64(0); ; {
		order := journal.ByWorkflow{Session: o.id, WorkflowID: id, After: after}
		chunk, err := o.host.journal.Read(ctx, order, journal.Page{})
		if err != nil {
			return fmt.Errorf("read the workflow: %w", err)
		}
		for _, record := range chunk.Records {
			rec, err := narad.Decode(record.Bytes)
			fact, ok := rec.(narad.Authority)
			if err != nil || !ok {
				return fmt.Errorf("read the workflow: fact %d: %w", record.Sequence, errors.Join(err, journal.ErrDamaged))
			}
			o.flow.Apply(fact)
			after = record.WorkflowSequence
		}
		if !chunk.More {
			return nil
		}
	}
}

// follow tells the workflow what was recorded of it. It is forgotten with its end.
func (o *owner) follow(list []narad.Authority) {
	for _, fact := range list {
		if _, starts := fact.(*narad.WorkflowStarted); starts {
			o.flow = flow.NewProgress()
		}
		if o.flow == nil || fact.Envelope().WorkflowID == "" {
			continue
		}
		if o.flow.Apply(fact); o.flow.Ended() {
			o.flow = nil
		}
	}
}

// move is what comes next in the workflow; nothing if it waits, or could not be recorded
// a moment ago.
func (o *owner) move() flow.Move {
	if o.flow == nil || o.stall != nil || o.failure != nil {
		return flow.Move{}
	}
	return o.flow.Next(o.host.opt.Now())
}

// moves reports whether the workflow is to go on now, and whether that takes a place
// among the running agents.
func (o *owner) moves() (ready, run bool) {
	m := o.move()
	return !m.IsZero(), m.Begin != nil && m.Begin.Run
}

// advance returns the task that takes the workflow on, nil if there is nothing to do or
// no place is free. The workflow's facts alone say what that is, so that it is done once
// wherever the host dies.
func (o *owner) advance() *task {
	m := o.move()
	if m.IsZero() {
		return nil
	}
	if m.Begin != nil && m.Begin.Run && !o.mayRun() {
		return nil
	}
	return &task{command: o.advanceBy(m), actor: hostActor, reply: make(chan reply, 1)}
}

// mayRun takes a place for the run of a step. Where none is free, or there is no room to
// write, the workflow waits.
func (o *owner) mayRun() bool {
	if !o.place {
		o.place = o.host.places.take(o.id)
	}
	if !o.place {
		o.host.places.wait(o.id)
		return false
	}
	if o.host.journal.Admit(false) != nil {
		o.rest()
		return false
	}
	return true
}

// rest lets the workflow wait a little: something could not be recorded now.
func (o *owner) rest() { o.stall = time.After(retryPause) }

// takeOn performs a task of the workflow's own, and lets it rest if that was no use. What
// no fact can hold stays so: then the step fails, or the workflow.
func (o *owner) takeOn(t *task) {
	o.perform(t)
	r := <-t.reply
	if r.err == nil && r.answer.Err == decide.RefusedTooLarge {
		t = &task{command: t.command.(decide.Advance).TooLarge(), actor: hostActor, reply: make(chan reply, 1)}
		o.perform(t)
		r = <-t.reply
	}
	if r.err == nil && r.answer.Status.Accepted() {
		return
	}
	o.rest()
	if !errors.Is(r.err, journal.ErrStorageFull) {
		o.log.Error("take a workflow on", "status", string(r.answer.Status), "detail", r.answer.Detail, "error", r.err)
	}
}

// advanceBy makes a move a command.
func (o *owner) advanceBy(m flow.Move) decide.Advance {
	a := decide.Advance{
		WorkflowID: o.control.Session.ActiveWorkflowID(), Completed: int64(o.flow.Completed()), Total: counted(o.flow.Total(m)),
		Unstarted: o.flow.Unstarted(),
	}
	if f := m.Finish; f != nil {
		a.Finish = &decide.FinishStep{NodeID: f.NodeID, Attempt: int64(f.Attempt), Again: o.flow.Finished(f.NodeID), RunID: f.RunID, Data: f.Data, StartedAt: f.StartedAt, Output: f.Output}
		if why := f.Failure; why != nil {
			a.Finish.Failed, a.Finish.Code, a.Finish.Message, a.Finish.Retry = true, shorten(why.Code), shorten(why.Message), why.Retry
		}
	}
	if e := m.Edge; e != nil {
		a.Edge = &decide.Edge{From: e.From, To: e.To, Case: int64(e.Case), Pointer: e.Pointer, Op: e.Op}
	}
	if b := m.Begin; b != nil {
		a.Begin = &decide.BeginStep{NodeID: b.NodeID, Attempt: int64(b.Attempt), Again: o.flow.Finished(b.NodeID), Prompt: b.Prompt, Data: b.Data, Ask: o.askBy(b.Ask)}
		if b.Run {
			a.Begin.RunID, a.Begin.Agent = o.host.opt.NewID(), b.Agent
			a.Begin.Executor = o.host.opt.Assign(b.Agent, "")
		}
	}
	if e := m.End; e != nil {
		a.End = &decide.EndWorkflow{Kind: endKinds[e.State], Code: e.Code, Message: e.Message, Output: e.Output}
	}
	return a
}

// counted is a number of steps, nil where it is not known.
func counted(steps int, known bool) *int64 {
	if !known {
		return nil
	}
	n := int64(steps)
	return &n
}

var endKinds = map[flow.EndState]narad.Type{
	flow.Completed: narad.TypeWorkflowFinished, flow.Failed: narad.TypeWorkflowError, flow.Cancelled: narad.TypeWorkflowCancelled,
}

func (o *owner) askBy(a *flow.Ask) *decide.Ask {
	if a == nil {
		return nil
	}
	ask := &decide.Ask{
		InterruptID: o.host.opt.NewID(), WaitID: o.host.opt.NewID(), Title: a.Title, Message: a.Message, ExpiresIn: a.Expires,
	}
	if !a.Approval {
		q := decide.Question{Text: a.Text, Options: a.Options, Free: a.Free}
		if a.Recommended >= 0 {
			q.Recommended = &a.Recommended
		}
		ask.Questions = []decide.Question{q}
	}
	return ask
}

// performer is what performs a root run of the session: its agent, or what the step of
// the workflow says. Alone says that it performs that run and no other.
type performer struct {
	name     string // for people
	agent    string // as configured, "" where it is not
	branches map[string]string
	kind     agent.Kind // nil if it is not there
	alone    bool
}

func (o *owner) performer() performer {
	if o.flow == nil {
		name := o.agentName()
		kind, _ := o.host.agents.Kind(name)
		return performer{name: name, agent: name, kind: kind}
	}
	by := o.flow.Performer(o.host.agents.Kind)
	return performer{by.NodeID, by.Agent, by.Branches, by.Kind, true}
}

// endedWorkflow tells the state of a workflow of the session that is no longer active.
func (o *owner) endedWorkflow(ctx context.Context) func(string) (session.RunState, bool) {
	return func(workflow string) (session.RunState, bool) {
		row, known := lookUp[journal.WorkflowRow](ctx, o, journal.WorkflowKey(workflow))
		if !known || row.Session != o.id {
			return "", false
		}
		return session.RunState(row.State), true
	}
}

// retry is the command of a timer at whose time a workflow tries a step again.
func retry(row journal.TimerRow) (decide.Command, bool) {
	return decide.Wake{}, strings.HasPrefix(row.ID, index.RetryTimerID(""))
}
