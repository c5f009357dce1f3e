package decide

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// The records of an agent: what it tells of a run is a command like any other, and is
// refused where the state does not allow it.

// open returns the run that a record is about. starting says that the record begins
// something, which a stop forbids.
func (d *draft) open(runID string, starting bool) (session.Run, Answer, bool) {
	run, ok := d.run(runID)
	switch {
	case !ok:
		return run, refuseRecord(RefusedEnded, "the run has ended"), false
	case starting && d.state.Stopped(runID):
		return run, refuseRecord(RefusedStopped, "a stop was requested"), false
	}
	return run, Answer{Status: Accepted, RunID: runID}, true
}

// scope is where the text of a run belongs (R9).
func scope(run session.Run) narad.Scope {
	if run.RunID == run.RootRunID {
		return narad.ScopeSession
	}
	return narad.ScopeRun
}

// Say adds to the assistant's message of a run, and begins it if it is not there.
type Say struct {
	RunID     string
	MessageID string
	Text      string
}

func (s Say) propose(d *draft) Answer {
	run, answer, ok := d.open(s.RunID, false)
	if !ok {
		return answer
	}
	if !contains(d.state.OpenMessages(s.RunID), s.MessageID) {
		d.in(run, &narad.MessageTextStarted{MessageID: s.MessageID, Role: narad.RoleAssistant, MessageScope: scope(run)})
	}
	d.in(run, &narad.MessageTextDelta{MessageID: s.MessageID, Delta: s.Text})
	return answer
}

// Think adds to the reasoning that belongs to a message, and begins it if it is not
// there.
type Think struct {
	RunID     string
	MessageID string
	Text      string
}

func (t Think) propose(d *draft) Answer {
	run, answer, ok := d.open(t.RunID, false)
	if !ok {
		return answer
	}
	id := "reasoning:" + t.MessageID // R4
	if !contains(d.state.OpenReasoning(t.RunID), id) {
		d.in(run, &narad.ReasoningStarted{ReasoningID: id, MessageID: t.MessageID})
	}
	d.in(run, &narad.ReasoningDelta{ReasoningID: id, Delta: t.Text})
	return answer
}

// EndMessage completes a run's open message and reasoning.
type EndMessage struct{ RunID string }

func (e EndMessage) propose(d *draft) Answer {
	run, answer, ok := d.open(e.RunID, false)
	if !ok {
		return answer
	}
	d.closeText(run)
	return d.orNothing(answer)
}

// orNothing is the answer, or that there was nothing to do.
func (d *draft) orNothing(a Answer) Answer {
	if len(d.facts) == 0 && a.Status.Accepted() {
		return Answer{Status: AlreadyApplied, RunID: a.RunID}
	}
	return a
}

// Progress records an activity of a run.
type Progress struct {
	RunID      string
	ProgressID string
	Category   string
	Label      string
	Detail     string
	Status     narad.ProgressStatus
	Privacy    narad.Privacy
}

func (p Progress) propose(d *draft) Answer {
	run, answer, ok := d.open(p.RunID, false)
	if !ok {
		return answer
	}
	d.in(run, &narad.ProgressRecorded{
		ProgressID: p.ProgressID, Category: p.Category, Label: p.Label, Detail: p.Detail,
		Status: p.Status, Privacy: p.Privacy,
	})
	return answer
}

// Custom records a fact of an agent's own about its run, or of the host's.
type Custom struct {
	RunID string
	Name  string
	Value narad.Raw
}

func (c Custom) propose(d *draft) Answer {
	run, answer, ok := d.open(c.RunID, false)
	if !ok {
		return answer
	}
	d.in(run, &narad.Custom{Kind: narad.TypeRunCustom, Name: c.Name, Value: c.Value})
	return answer
}

// Remember records how the agent finds its session again.
type Remember struct {
	Agent string
	Ref   string
}

func (r Remember) propose(d *draft) Answer {
	if d.desk.Ref == r.Ref {
		return Answer{Status: AlreadyApplied}
	}
	d.add(facts.Session(facts.AgentRemembered, facts.Remembered(r)))
	return Answer{Status: Accepted}
}

func contains(list []string, s string) bool {
	for _, t := range list {
		if t == s {
			return true
		}
	}
	return false
}
