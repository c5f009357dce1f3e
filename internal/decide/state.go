package decide

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Scoped says which state of a run's session a change is about.
type Scoped struct {
	RunID   string
	Scope   narad.Scope
	UI      bool
	AgentID string
}

// at returns the state as it is, and a fact's envelope in its scope.
func (s Scoped) at(d *draft) (run session.Run, is session.ScopedState, known bool, answer Answer, ok bool) {
	run, answer, ok = d.open(s.RunID)
	if !ok {
		return run, is, false, answer, false
	}
	if s.Scope == narad.ScopeWorkflow && run.WorkflowID == "" {
		return run, is, false, refuseRecord(RefusedInvalid, "the run is of no workflow"), false
	}
	e := &narad.Event{RootRunID: run.RootRunID, RunID: run.RunID, WorkflowID: run.WorkflowID}
	is, known = d.state.ScopedState(s.Scope, s.UI, e)
	return run, is, known, answer, true
}

// SetState replaces a scoped state (specification §9.6).
type SetState struct {
	Scoped
	Value narad.Raw
}

func (s SetState) propose(d *draft) Answer {
	run, is, _, answer, ok := s.at(d)
	if !ok {
		return answer
	}
	d.snapshot(run, s.Scoped, is.Revision+1, s.Value)
	answer.Revision = is.Revision + 1
	return answer
}

func (d *draft) snapshot(run session.Run, s Scoped, revision int64, value narad.Raw) {
	f := &narad.StateSnapshot{Kind: narad.TypeStateSnapshot, Scope: s.Scope, Revision: revision, State: value}
	if s.UI {
		f.Kind = narad.TypeUIStateSnapshot
	}
	facts.SetAgentID(&f.Event, s.AgentID)
	d.in(run, f)
}

// PatchState changes a scoped state. The host has tried the patch on the state of the
// base revision.
type PatchState struct {
	Scoped
	Base  int64
	Patch narad.Raw
}

func (p PatchState) propose(d *draft) Answer {
	run, is, known, answer, ok := p.at(d)
	switch {
	case !ok:
		return answer
	case !known || is.Revision != p.Base:
		return refuseRecord(RefusedConflict, "the state has another revision")
	}
	f := &narad.StateDelta{
		Kind: narad.TypeStateDelta, Scope: p.Scope, BaseRevision: p.Base, Revision: p.Base + 1, Patch: p.Patch,
	}
	if p.UI {
		f.Kind = narad.TypeUIStateDelta
	}
	facts.SetAgentID(&f.Event, p.AgentID)
	d.in(run, f)
	answer.Revision = p.Base + 1
	return answer
}

// CompactState puts all changes of a state into one snapshot: its value at the base
// revision.
type CompactState struct {
	Scoped
	Base  int64
	Value narad.Raw
}

func (c CompactState) propose(d *draft) Answer {
	run, is, known, answer, ok := c.at(d)
	switch {
	case !ok:
		return answer
	case c.UI:
		return refuseRecord(RefusedInvalid, "a UI state is not compacted")
	case !known || is.Revision != c.Base:
		return refuseRecord(RefusedConflict, "the state has another revision")
	}
	d.snapshot(run, c.Scoped, c.Base+1, c.Value)
	d.in(run, &narad.StateCompacted{
		Scope: c.Scope, SnapshotRevision: c.Base + 1, CoversThroughSessionSequence: d.state.Last() + int64(len(d.facts)),
	})
	answer.Revision = c.Base + 1
	return answer
}

// maxViews bounds the open views of a session.
const maxViews = 64

// OpenView opens a view.
type OpenView struct {
	RunID   string
	ViewID  string
	AgentID string
	Model   narad.Raw
}

func (o OpenView) propose(d *draft) Answer {
	run, answer, ok := d.open(o.RunID)
	switch {
	case !ok:
		return answer
	case d.state.OpenViews() >= maxViews:
		return refuseRecord(RefusedInvalid, "too many views are open")
	}
	f := &narad.ViewOpened{ViewID: o.ViewID, Model: o.Model}
	facts.SetAgentID(&f.Event, o.AgentID)
	d.in(run, f)
	answer.ID = o.ViewID
	return answer
}

// UpdateView changes an open view. The host has tried a patch on its model.
type UpdateView struct {
	RunID   string
	ViewID  string
	AgentID string
	Model   narad.Raw
	Patch   narad.Raw
}

func (u UpdateView) propose(d *draft) Answer {
	run, answer, ok := d.openView(u.RunID, u.ViewID)
	switch {
	case !ok:
		return answer
	case (u.Model == nil) == (u.Patch == nil):
		return refuseRecord(RefusedInvalid, "an update is a model or a patch")
	}
	f := &narad.ViewUpdated{ViewID: u.ViewID, Operation: narad.OperationReplace, Model: u.Model, Patch: u.Patch}
	if u.Patch != nil {
		f.Operation = narad.OperationPatch
	}
	facts.SetAgentID(&f.Event, u.AgentID)
	d.in(run, f)
	return answer
}

// CloseView closes an open view.
type CloseView struct {
	RunID   string
	ViewID  string
	AgentID string
}

func (c CloseView) propose(d *draft) Answer {
	run, answer, ok := d.openView(c.RunID, c.ViewID)
	if !ok {
		return answer
	}
	f := &narad.ViewClosed{ViewID: c.ViewID}
	facts.SetAgentID(&f.Event, c.AgentID)
	d.in(run, f)
	return answer
}

func (d *draft) openView(runID, viewID string) (session.Run, Answer, bool) {
	run, answer, ok := d.open(runID)
	if !ok {
		return run, answer, false
	}
	if v, known := d.state.ViewModel(viewID); !known || !v.Open {
		return run, refuseRecord(RefusedInvalid, "no such view is open"), false
	}
	return run, answer, true
}

// Raw records an encoded payload of an extension (§9.9).
type Raw struct {
	RunID       string
	AgentID     string
	ContentType string
	Payload     string
}

func (r Raw) propose(d *draft) Answer {
	run, answer, ok := d.open(r.RunID)
	if !ok {
		return answer
	}
	f := &narad.Opaque{Kind: narad.TypeRunRaw, ContentType: r.ContentType, Payload: r.Payload}
	facts.SetAgentID(&f.Event, r.AgentID)
	d.in(run, f)
	return answer
}

// Trace records a fact of the trace or debug profile. It is for side sessions alone (R6),
// which have no runs of their own: what it is about stands in its fields.
type Trace struct{ Fact *narad.Tracing }

func (t Trace) propose(d *draft) Answer {
	d.add(t.Fact)
	return Answer{Status: Accepted}
}
