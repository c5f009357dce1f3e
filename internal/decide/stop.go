package decide

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Stop asks for the end of a root run, by its id or the active one (R14). A run that
// waits in the queue is withdrawn.
type Stop struct {
	RootRunID string
	Reason    string
}

func (s Stop) propose(d *draft) Answer {
	if !d.desk.Exists() {
		return refuse(NotFound, "no such session")
	}
	active := d.state.ActiveRootRunID()
	id := s.RootRunID
	if id == "" {
		id = active
	}
	switch {
	case id == "":
		return refuse(AlreadyApplied, "no run is active")
	case id == active && d.desk.Stopping == active:
		return Answer{Status: AlreadyApplied, RunID: id}
	case id == active:
		return s.stop(d, id)
	}
	if q, waiting := d.desk.Queued(id); waiting {
		d.add(facts.Session(facts.InputWithdrawn, facts.Withdrawn{MessageID: q.MessageID, RunID: q.RunID}))
		return Answer{Status: Accepted, RunID: id}
	}
	return d.stopEnded(id)
}

// stop requests the stop of the root run and, in the same batch, of all below it.
func (s Stop) stop(d *draft, id string) Answer {
	d.closing = true
	for _, run := range d.state.OpenRuns() {
		if run.RootRunID != id || run.StopRequested {
			continue
		}
		stop := &narad.RunStopRequested{TargetRunID: run.RunID}
		stop.RootRunID, stop.RunID = id, id
		stop.WorkflowID = run.WorkflowID
		if s.Reason != "" {
			stop.SetOptional("reason", narad.Quote(s.Reason))
		}
		d.add(stop)
	}
	return Answer{Status: Accepted, RunID: id}
}

func (d *draft) stopEnded(id string) Answer {
	var state session.RunState
	known := false
	if d.env.Run != nil {
		state, known = d.env.Run(id)
	}
	switch {
	case !known:
		return refuse(NotFound, "no such run in this session")
	case state == session.Cancelled:
		return Answer{Status: AlreadyApplied, RunID: id}
	}
	return Answer{Status: Conflict, RunID: id, Detail: "the run " + terminalWord(state)}
}
