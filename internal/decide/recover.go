package decide

import (
	"slices"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Recover repairs a session that a dead host left with open work (R17). Calls whose
// outcome nobody knows are finished as such; then the run goes on if its agent can,
// and is closed otherwise. It may be given again: what is repaired stays.
type Recover struct {
	// Resumes says that the agent can go on with an open run.
	Resumes bool
}

func (r Recover) propose(d *draft) Answer {
	id := d.state.ActiveRootRunID()
	run, open := d.run(id)
	if !open {
		return Answer{Status: AlreadyApplied}
	}
	d.closing = true
	if r.Resumes && !run.StopRequested {
		d.finishUnknown()
		d.completeText()
		if len(d.facts) == 0 {
			return Answer{Status: AlreadyApplied, RunID: id}
		}
		return Answer{Status: Accepted, RunID: id}
	}
	how, terminal := restartedClosing(), narad.Authority(&narad.RunError{Code: hostRestarted, Message: hostRestartedText})
	if run.StopRequested {
		terminal = &narad.RunCancelled{Code: "stopped"}
	}
	d.endRoot(run, how, terminal)
	return Answer{Status: Accepted, RunID: id}
}

// finishUnknown finishes the backend calls that were under way: a call that waits for
// an answer, or at its gate, has not run.
func (d *draft) finishUnknown() {
	how := restartedClosing()
	for _, run := range d.state.OpenRuns() {
		for _, t := range d.state.OpenTools(run.RunID) {
			if t.Executor != narad.ExecutorBackend || d.waits(t) {
				continue
			}
			d.in(run, d.finish(t, how.outcome, narad.Raw("null"), how.code, how.message))
		}
	}
}

// completeText completes what the dead host was told and will not be told the rest of,
// outputs that it was to get too:
// an agent that goes on begins a new message.
func (d *draft) completeText() {
	for _, run := range d.state.OpenRuns() {
		d.closeText(run)
		d.failArtifacts(run, hostRestarted)
	}
}

// waits reports whether a call has not begun its work: it asks somebody, or its gate
// is open, or a nested run that goes on does the work.
func (d *draft) waits(t session.Tool) bool {
	if t.ToolName == askUser {
		return true
	}
	return slices.ContainsFunc(d.state.OpenRuns(), func(r session.Run) bool { return r.ParentToolCallID == t.ToolCallID })
}
