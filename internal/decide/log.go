package decide

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Log is what a root run records of its headless log: the version of the mapping, 0 for
// none, how its records are classified, and the session's agent, by whose name they may be.
type Log struct {
	Mapping int
	Policy  narad.Raw
	Agent   string
}

// markAsked records what the headless log needs to show what a gate run asks as asked by
// the run above, and nothing else of the gate (R10), and to tell for which call a question
// is asked (R13).
func (d *draft) markAsked(r session.Run, f narad.Authority) {
	switch f := f.(type) {
	case *narad.InterruptRequested:
		d.markCall(r, &f.Event, f.Kind, f.Input)
	case *narad.InterruptResolved:
		asked := d.asked(f.InterruptID)
		d.markCall(r, &f.Event, asked.Kind, asked.Input)
	case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		if d.gate(r) {
			facts.SetGate(f.Envelope())
			break
		}
		d.markTook(r, f.Envelope())
	}
}

func (d *draft) markCall(r session.Run, e *narad.Event, kind string, input narad.Raw) {
	switch {
	case d.gate(r):
		call, _ := d.state.Tool(r.ParentToolCallID)
		facts.SetGateOf(e, r.ParentRunID)
		facts.SetAskedFor(e, r.ParentToolCallID, call.ToolName)
	case kind == kindQuestion:
		if id := word(input, "toolCallId"); d.callsToAsk(id) {
			facts.SetAskedFor(e, id, askUser)
		}
	}
}

// callsToAsk reports whether an open call, or one that this draft begins, is that of a
// question: the input of an interrupt may name any.
func (d *draft) callsToAsk(id string) bool {
	for _, f := range d.facts {
		if t, ok := f.(*narad.ToolCallStarted); ok && t.ToolCallID == id {
			return t.ToolName == askUser
		}
	}
	t, _ := d.state.Tool(id)
	return t.ToolName == askUser
}

// asked returns an interrupt that is open, or that this draft requests.
func (d *draft) asked(id string) session.Interrupt {
	for _, f := range d.facts {
		if i, ok := f.(*narad.InterruptRequested); ok && i.InterruptID == id {
			return session.Interrupt{Kind: i.Kind, Input: i.Input, Actions: i.Actions}
		}
	}
	i, _ := d.state.Interrupt(id)
	return i
}

// markStart records on the start of a root run what applies to its headless log.
func (d *draft) markStart(run *narad.RunStarted) {
	e := &run.Event
	facts.SetHarness(e, d.env.Log.Mapping)
	if d.env.Log.Mapping > 0 {
		facts.SetHarnessPolicy(e, d.env.Log.Policy)
		facts.SetAgent(e, d.env.Log.Agent)
	}
}

// markQueued records on the facts of a run that has not started that it has a headless
// log: one that a host before this contract queued has none.
func (d *draft) markQueued(f *narad.Custom) {
	if d.env.Log.Mapping > 0 {
		facts.SetHarness(&f.Event, d.env.Log.Mapping)
	}
}

// markStopped records on the terminal of a root run that was stopped what has stopped it.
func (d *draft) markStopped(run session.Run, terminal narad.Authority) {
	if run.StopRequested && run.RunID == run.RootRunID {
		facts.SetStoppedBy(terminal.Envelope(), d.desk.StoppedBy)
	}
}
