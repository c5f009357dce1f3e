package decide

import (
	"slices"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Stop asks for the end of a root run, by its id or the active one (R14). A run that
// waits in the queue is withdrawn. The run of a workflow is stopped with its workflow,
// which can also be named itself: one that waits for a person has no run.
type Stop struct {
	RootRunID  string
	WorkflowID string
	Reason     string
	// Turn says that a turn of the session's own conversation is meant: a workflow, and what
	// runs in it, is never stopped so.
	Turn bool
}

func (s Stop) propose(d *draft) Answer {
	if !d.desk.Exists() {
		return refuse(NotFound, "no such session")
	}
	active, workflow := d.state.ActiveRootRunID(), d.state.ActiveWorkflowID()
	switch {
	case s.WorkflowID != "" && s.WorkflowID != workflow:
		return s.endedWorkflow(d)
	case workflow != "" && s.Turn && s.RootRunID == "":
		return refuse(AlreadyApplied, "no turn of the conversation is under way")
	case workflow != "" && s.Turn && s.RootRunID == active:
		return Answer{Status: Conflict, RunID: active, Detail: "the turn is a part of a workflow, which can be stopped"}
	case workflow != "" && (s.RootRunID == "" || s.RootRunID == active):
		return s.stopWorkflow(d, workflow)
	}
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
		return d.withdraw(q)
	}
	if run, open := d.run(id); open {
		return Answer{Status: Conflict, RunID: id, Detail: "the run is a part of run " + run.RootRunID + ", which can be stopped"}
	}
	return d.stopEnded(id)
}

// stop requests the stop of the root run and, in the same batch, of all below it. What
// somebody was asked is closed at once: a stopped run can use no answer.
func (s Stop) stop(d *draft, id string) Answer {
	d.closing = true
	runs := d.state.OpenRuns()
	for _, run := range runs {
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
	for _, run := range slices.Backward(runs) {
		if run.RootRunID == id {
			d.closeQuestion(run, stoppedClosing())
		}
	}
	return Answer{Status: Accepted, RunID: id}
}

func (d *draft) stopEnded(id string) Answer {
	switch state, known := d.endedRun(id); {
	case !known:
		return refuse(NotFound, "no such run in this session")
	case state == session.Cancelled, state == Withdrawn:
		return Answer{Status: AlreadyApplied, RunID: id}
	default:
		return Answer{Status: Conflict, RunID: id, Detail: "the run " + terminalWord(state)}
	}
}
