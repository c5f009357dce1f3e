package decide

import (
	"slices"
	"unicode/utf8"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// The records of an agent: what it tells of a run is a command like any other, and is
// refused where the state does not allow it.

// open returns the open run that a record is about. A gate run is the host's own, and
// holds nothing but its question (R10).
func (d *draft) open(runID string) (session.Run, Answer, bool) {
	run, ok := d.run(runID)
	switch {
	case !ok:
		return run, refuseRecord(RefusedEnded, "the run has ended"), false
	case d.gate(run):
		return run, refuseRecord(RefusedInvalid, "nothing is told in a gate run"), false
	}
	return run, Answer{Status: Accepted, RunID: runID}, true
}

// starting is open for a record that begins something: a stop forbids it, and so does a
// pause (§6.2).
func (d *draft) starting(runID string) (session.Run, Answer, bool) {
	run, answer, ok := d.open(runID)
	switch {
	case !ok:
	case d.state.Stopped(runID):
		return run, refuseRecord(RefusedStopped, "a stop was requested"), false
	case run.State != session.Running:
		refusal := refuseRecord(RefusedPaused, "the run is paused")
		refusal.RunID = runID
		return run, refusal, false
	}
	return run, answer, ok
}

// What may be open in a session at once, so that all of it can be closed in one batch.
const (
	maxOpenRuns   = 96
	maxOpenTools  = 256 // in one run
	maxActivities = 96  // of one run, under way
)

// mayStartRun refuses a run that could not be closed with all others.
func (d *draft) mayStartRun() (Answer, bool) {
	if len(d.state.OpenRuns()) >= maxOpenRuns {
		return refuseRecord(RefusedInvalid, "too many runs are open"), false
	}
	return Answer{}, true
}

// tool returns an open tool call of a run.
func (d *draft) tool(id, runID string) (session.Tool, Answer, bool) {
	t, known := d.state.Tool(id)
	if !known || !t.Open || t.RunID != runID {
		return t, refuseRecord(RefusedInvalid, "no such tool call is open in the run"), false
	}
	return t, Answer{}, true
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
	// Last says that the run ends with it, so that it may use the last of the space.
	Last bool
}

func (s Say) propose(d *draft) Answer {
	run, answer, ok := d.open(s.RunID)
	if !ok {
		return answer
	}
	d.closing = s.Last
	if !slices.Contains(d.state.OpenMessages(s.RunID), s.MessageID) {
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
	Last      bool // as in Say
}

func (t Think) propose(d *draft) Answer {
	run, answer, ok := d.open(t.RunID)
	if !ok {
		return answer
	}
	d.closing = t.Last
	id := "reasoning:" + t.MessageID // R4
	if !slices.Contains(d.state.OpenReasoning(t.RunID), id) {
		d.in(run, &narad.ReasoningStarted{ReasoningID: id, MessageID: t.MessageID})
	}
	d.in(run, &narad.ReasoningDelta{ReasoningID: id, Delta: t.Text})
	return answer
}

// EndMessage completes a run's open message and reasoning.
type EndMessage struct{ RunID string }

func (e EndMessage) propose(d *draft) Answer {
	run, answer, ok := d.open(e.RunID)
	if !ok {
		return answer
	}
	d.closing = true
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
	// InPlan says that it is a step of a plan, which Plan tells whole, unless PlanLater
	// says that a later record of the same change does.
	InPlan    bool
	PlanLater bool
	Plan      []facts.Planned
}

func (p Progress) propose(d *draft) Answer {
	run, answer, ok := d.open(p.RunID)
	if !ok {
		return answer
	}
	if p.Status == narad.ProgressActive && len(d.state.ActiveProgress(p.RunID)) >= maxActivities {
		return refuseRecord(RefusedInvalid, "too many activities are under way")
	}
	f := &narad.ProgressRecorded{
		ProgressID: p.ProgressID, Category: p.Category, Label: p.Label, Detail: p.Detail,
		Status: p.Status, Privacy: p.Privacy,
	}
	switch {
	case p.PlanLater:
		facts.SetOfPlan(&f.Event)
	case p.InPlan:
		facts.SetPlan(&f.Event, boundedPlan(p.Plan))
	}
	d.in(run, f)
	if p.InPlan && !p.PlanLater {
		d.tasks(run, p.Plan, "")
	}
	return answer
}

// Tasks records the agent's list of tasks where no activity tells of a change of it: an
// empty one, or one that says the same again.
type Tasks struct {
	RunID   string
	AgentID string
	Plan    []facts.Planned
}

func (t Tasks) propose(d *draft) Answer {
	run, answer, ok := d.open(t.RunID)
	if ok {
		d.tasks(run, t.Plan, t.AgentID)
	}
	return answer
}

// tasks records a plan as the session's list of tasks. That of a nested run is not the
// session's.
func (d *draft) tasks(run session.Run, plan []facts.Planned, agentID string) {
	if run.RunID != run.RootRunID {
		return
	}
	f := facts.Run(run.RootRunID, run.RunID, facts.TaskList, facts.TasksOf(boundedPlan(plan)))
	facts.SetAgentID(&f.Event, agentID)
	d.in(run, f)
}

// Bounds of a plan as it stands in one fact.
const (
	maxPlan     = 256
	maxPlanText = 512 // bytes
)

// boundedPlan is as much of a plan as one fact may hold.
func boundedPlan(steps []facts.Planned) []facts.Planned {
	bounded := slices.Clone(steps[:min(len(steps), maxPlan)])
	for i := range bounded {
		bounded[i].ID, bounded[i].Text = cut(bounded[i].ID, maxPlanText), cut(bounded[i].Text, maxPlanText)
	}
	return bounded
}

// cut shortens a text, and never inside a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// Custom records a fact of an agent's own about its run, or of the host's.
type Custom struct {
	RunID string
	Name  string
	Value narad.Raw
}

func (c Custom) propose(d *draft) Answer {
	run, answer, ok := d.open(c.RunID)
	if !ok {
		return answer
	}
	d.in(run, &narad.Custom{Kind: narad.TypeRunCustom, Name: c.Name, Value: c.Value})
	return answer
}

// Remember records how the agent finds its session again.
type Remember struct {
	RunID string
	Agent string
	Ref   string
}

func (r Remember) propose(d *draft) Answer {
	_, answer, ok := d.open(r.RunID)
	switch {
	case !ok:
		return answer
	case d.desk.Ref == r.Ref:
		return Answer{Status: AlreadyApplied, RunID: r.RunID}
	}
	d.add(facts.Session(facts.AgentRemembered, facts.Remembered{Agent: r.Agent, Ref: r.Ref}))
	return answer
}
