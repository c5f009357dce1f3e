package harness

import (
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Converter makes run logs of the facts of one session as an export has them. What Mahati
// itself recorded becomes what the host serves, but for the tokens of checkpoints, which
// only the store can give: they are empty. Facts of another host, or from before the
// contract, lack what Mahati writes beside Narad's own fields: the converter adds what
// follows from the facts before, and applies the present mapping. It belongs to one
// goroutine.
type Converter struct {
	state     *session.State
	standings Standings
	runs      map[string]*converted
	gates     map[string]bool
	over      map[string]bool   // runs that have ended
	calls     map[string]string // the tools of open calls
	stops     map[string]facts.Cause
	streams   map[string]stream // open messages and reasoning, by their record
}

// converted is a run whose log is being made.
type converted struct {
	run  Run
	next uint64
}

// stream is the run that a message or reasoning began in.
type stream struct{ root, run string }

// NewConverter returns a converter for the facts of a session from its first one on.
func NewConverter() *Converter {
	return &Converter{
		state: session.New(session.Options{NoDisplay: true, Remember: session.RememberAll}),
		runs:  map[string]*converted{}, gates: map[string]bool{}, over: map[string]bool{}, calls: map[string]string{}, stops: map[string]facts.Cause{}, streams: map[string]stream{},
	}
}

// ErrIllegal says that a fact cannot stand where it does.
var ErrIllegal = errors.New("no legal fact")

// Add takes the next record of the export and returns the records that it becomes, all of
// one run. It is the converter's from then on. What is no fact, or comes again, says
// nothing; what may not stand there is ErrIllegal.
func (c *Converter) Add(rec narad.Record) ([]Event, error) {
	r := c.state.Admit(rec)
	fact, ok := rec.(narad.Authority)
	switch {
	case r.Refused():
		return nil, fmt.Errorf("%s, %s: %s: %w", rec.Type(), r.Code, r.Detail, ErrIllegal)
	case !ok || r.Kind != session.Applied:
		return nil, nil
	}
	c.complete(fact)
	if c.over[fact.Envelope().RunID] {
		return nil, nil // it comes after the end of its run: no log has it
	}
	id, n := Count(c.standings.Before(fact), fact)
	c.standings.Apply(fact)
	c.follow(fact)
	if n == 0 {
		return nil, nil
	}
	of := c.runs[id]
	if of == nil {
		run, err := RunOf(fact)
		if err != nil {
			return nil, err
		}
		of = &converted{run, 1}
		c.runs[id] = of
	}
	events, err := of.run.Project(fact, of.next, n, nil)
	of.next += uint64(len(events))
	return events, err
}

// complete adds what Mahati would have written beside Narad's own fields (R1).
func (c *Converter) complete(fact narad.Authority) {
	e := fact.Envelope()
	switch f := fact.(type) {
	case *narad.RunStarted:
		if f.RunID == f.RootRunID && facts.Harness(e) == 0 {
			facts.SetHarness(e, Mapping)
		}
	case *narad.Custom:
		if f.Name == facts.InputWithdrawn && facts.Harness(e) == 0 {
			facts.SetHarness(e, Mapping)
		}
	case *narad.InterruptRequested, *narad.InterruptResolved:
		c.completeAsked(e)
	case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		c.completeEnd(e)
	case *narad.ToolCallStarted:
		above, known := c.state.Tool(f.ParentToolCallID)
		if !known || above.RootRunID != f.RootRunID || above.ToolCallID == f.ToolCallID {
			f.ParentToolCallID = "" // it names nothing that stands before it
		}
	case *narad.ToolCallFinished:
		if facts.ToolName(e) == "" {
			facts.SetToolName(e, c.calls[f.ToolCallID])
		}
		delete(c.calls, f.ToolCallID)
	case *narad.MessageTextDelta:
		c.completeStream(e, messageID(f.MessageID, ""))
	case *narad.MessageTextCompleted:
		c.completeStream(e, messageID(f.MessageID, ""))
	case *narad.ReasoningDelta:
		c.completeStream(e, reasoningID(f.ReasoningID, ""))
	case *narad.ReasoningCompleted:
		c.completeStream(e, reasoningID(f.ReasoningID, ""))
	}
}

func (c *Converter) completeAsked(e *narad.Event) {
	if run, _ := c.state.Run(e.RunID); c.gates[e.RunID] && facts.GateOf(e) == "" {
		call, _ := c.state.Tool(run.ParentToolCallID)
		facts.SetGateOf(e, run.ParentRunID)
		facts.SetAskedFor(e, run.ParentToolCallID, call.ToolName)
	}
}

func (c *Converter) completeEnd(e *narad.Event) {
	if c.gates[e.RunID] {
		facts.SetGate(e)
	}
	by, stopped := c.stops[e.RunID]
	if _, told := facts.StoppedBy(e); stopped && !told {
		facts.SetStoppedBy(e, by)
	}
}

// completeStream says of which run a part of a message is: other hosts need not repeat it.
func (c *Converter) completeStream(e *narad.Event, record string) {
	of := c.streams[record]
	e.RootRunID, e.RunID = of.root, of.run
}

// follow keeps what later facts may need.
func (c *Converter) follow(fact narad.Authority) {
	e := fact.Envelope()
	of := stream{e.RootRunID, e.RunID}
	switch f := fact.(type) {
	case *narad.RunStarted:
		c.gates[f.RunID] = facts.Gate(e)
	case *narad.ToolCallStarted:
		c.calls[f.ToolCallID] = f.ToolName
	case *narad.RunStopRequested:
		if f.TargetRunID == f.RootRunID {
			c.stops[f.RootRunID] = facts.Cause{CommandID: facts.Caused(e), InputID: facts.InputID(e)}
		}
	case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		c.over[e.RunID] = true
		delete(c.gates, e.RunID)
		delete(c.stops, e.RunID)
	case *narad.MessageTextStarted:
		c.streams[messageID(f.MessageID, "")] = of
	case *narad.ReasoningStarted:
		c.streams[reasoningID(f.ReasoningID, "")] = of
	case *narad.MessageTextCompleted:
		delete(c.streams, messageID(f.MessageID, ""))
	case *narad.ReasoningCompleted:
		delete(c.streams, reasoningID(f.ReasoningID, ""))
	}
}
