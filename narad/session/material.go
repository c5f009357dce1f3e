package session

import (
	"errors"

	"github.com/mahati-host/mahati/narad"
)

// Material is how an attachment or an artifact stands.
type Material struct {
	State   string `json:"state"`
	Code    string `json:"code,omitzero"`
	Message string `json:"message,omitzero"`
}

const (
	materialAdded   = "added"
	materialReady   = "ready"
	materialFailed  = "failed"
	materialRemoved = "removed"
)

var materialState = map[narad.Type]string{
	narad.TypeAttachmentAdded: materialAdded, narad.TypeAttachmentReady: materialReady,
	narad.TypeAttachmentFailed: materialFailed, narad.TypeAttachmentRemoved: materialRemoved,
	narad.TypeArtifactAdded: materialAdded, narad.TypeArtifactReady: materialReady,
	narad.TypeArtifactFailed: materialFailed,
}

// follows reports whether a material may come into a state: added first, then ready
// or failed, and removed at any time after.
func (m *Material) follows(next string) bool {
	switch next {
	case materialAdded:
		return m == nil
	case materialRemoved:
		return m != nil && m.State != materialRemoved
	}
	return m != nil && m.State == materialAdded
}

// follows is Material.follows, but gives the benefit of the doubt to what a state of
// open work alone has forgotten.
func (s *State) follows(m *Material, kind narad.Type) bool {
	if m == nil && s.opt.NoDisplay {
		return true
	}
	return m.follows(materialState[kind])
}

func (s *State) putMaterial(all map[string]*Material, id string, m Material) {
	if s.opt.NoDisplay && m.State != materialAdded {
		delete(all, id)
		return
	}
	all[id] = &m
}

// scopeKey names what a scoped state belongs to. UI states are keyed apart.
type scopeKey struct {
	scope  narad.Scope
	first  string // the workflow, or the root run
	second string // the run
}

// scopedState is the state of one scope.
type scopedState struct {
	revision int64
	resync   bool
	document *narad.Document // nil in a state that keeps open work alone
}

// keyOf returns the key of an event's scope. The prefix "ui/" keeps the two kinds of
// state apart.
func keyOf(e *narad.Event, kind narad.Type, scope narad.Scope) scopeKey {
	if kind == narad.TypeUIStateSnapshot || kind == narad.TypeUIStateDelta {
		scope = uiPrefix + scope
	}
	switch scope {
	case narad.ScopeWorkflow, uiPrefix + narad.ScopeWorkflow:
		return scopeKey{scope, e.WorkflowID, ""}
	case narad.ScopeRun, uiPrefix + narad.ScopeRun:
		return scopeKey{scope, e.RootRunID, e.RunID}
	}
	return scopeKey{scope, "", ""}
}

const uiPrefix = "ui/"

// forgetScope drops both kinds of state of a scope that has ended.
func (s *State) forgetScope(scope narad.Scope, first, second string) {
	delete(s.scoped, scopeKey{scope, first, second})
	delete(s.scoped, scopeKey{uiPrefix + scope, first, second})
}

// view is one view.
type view struct {
	open  bool
	model *narad.Document // nil while it has no model
}

// guardMaterial applies the rules of attachments, artifacts, states and views.
func (s *State) guardMaterial(rec narad.Authority, strict bool) Code {
	switch r := rec.(type) {
	case *narad.Attachment:
		if strict && !s.follows(s.attachments[r.AttachmentID], r.Kind) {
			return AttachmentOrder
		}
	case *narad.Artifact:
		if strict && !s.follows(s.artifacts[r.ArtifactID], r.Kind) {
			return ArtifactOrder
		}
	case *narad.StateSnapshot:
		if old := s.scoped[keyOf(&r.Event, r.Kind, r.Scope)]; strict && old != nil && r.Revision <= old.revision {
			return StateRevision
		}
	case *narad.StateDelta:
		return s.guardDelta(r, strict)
	case *narad.StateCompacted:
		return s.guardCompacted(r, strict)
	case *narad.ViewOpened:
		if v := s.views[r.ViewID]; strict && v != nil && v.open {
			return ViewOpen
		}
	case *narad.ViewUpdated:
		return s.guardViewUpdated(r, strict)
	case *narad.ViewClosed:
		return s.guardView(r.ViewID, strict)
	}
	return ""
}

func (s *State) guardDelta(r *narad.StateDelta, strict bool) Code {
	state := s.scoped[keyOf(&r.Event, r.Kind, r.Scope)]
	switch {
	case state == nil && strict:
		return StateNotFound
	case state == nil:
		return ""
	case state.revision != r.BaseRevision || r.Revision != r.BaseRevision+1:
		if strict {
			return StateRevision
		}
		return ""
	}
	return tryPatch(state.document, r.Patch)
}

// tryPatch says why a patch does not apply to a document, which stays as it is. An
// unknown document is taken to fit.
func tryPatch(doc *narad.Document, raw narad.Raw) Code {
	patch, err := narad.ParsePatch(raw)
	if err == nil && doc != nil {
		err = doc.Test(patch)
	}
	return patchCode(err)
}

func patchCode(err error) Code {
	if err == nil {
		return ""
	}
	var refusal *narad.Error
	if errors.As(err, &refusal) {
		return Code(refusal.Code)
	}
	return Code(narad.CodeInvalidPatch)
}

func (s *State) guardCompacted(r *narad.StateCompacted, strict bool) Code {
	switch state := s.scoped[keyOf(&r.Event, r.Type(), r.Scope)]; {
	case state == nil:
		return StateNotFound
	case strict && (r.CoversThroughSessionSequence > r.SessionSequence || r.SnapshotRevision < state.revision):
		return StateRevision
	}
	return ""
}

func (s *State) guardView(id string, strict bool) Code {
	if v := s.views[id]; v == nil || strict && !v.open {
		return ViewNotOpen
	}
	return ""
}

func (s *State) guardViewUpdated(r *narad.ViewUpdated, strict bool) Code {
	if code := s.guardView(r.ViewID, strict); code != "" || r.Operation == narad.OperationReplace {
		return code
	}
	if s.opt.NoDisplay {
		return tryPatch(nil, r.Patch)
	}
	return tryPatch(s.views[r.ViewID].patchable(), r.Patch)
}

// patchable returns the view's model, {} where it has none yet.
func (v *view) patchable() *narad.Document {
	if v.model == nil {
		return narad.NewDocument(narad.Raw("{}"))
	}
	return v.model
}

func (s *State) changeMaterial(rec narad.Authority) {
	switch r := rec.(type) {
	case *narad.Attachment:
		s.putMaterial(s.attachments, r.AttachmentID, Material{materialState[r.Kind], r.Code, r.Message})
	case *narad.Artifact:
		s.putMaterial(s.artifacts, r.ArtifactID, Material{materialState[r.Kind], r.Code, r.Message})
	case *narad.StateSnapshot:
		s.scoped[keyOf(&r.Event, r.Kind, r.Scope)] = &scopedState{revision: r.Revision, document: s.document(r.State)}
	case *narad.StateDelta:
		s.stateDelta(r)
	case *narad.StateCompacted:
		state := s.scoped[keyOf(&r.Event, r.Type(), r.Scope)]
		state.revision, state.resync, s.resync = r.SnapshotRevision, true, true
	case *narad.ViewOpened:
		s.views[r.ViewID] = &view{open: true, model: s.document(r.Model)}
	case *narad.ViewUpdated:
		s.viewUpdated(r)
	case *narad.ViewClosed:
		s.views[r.ViewID].open = false
		if s.opt.NoDisplay {
			delete(s.views, r.ViewID)
		}
	}
}

// document returns a value as a document, nil for an absent one.
func (s *State) document(value narad.Raw) *narad.Document {
	if value == nil || s.opt.NoDisplay {
		return nil
	}
	return narad.NewDocument(value)
}

// stateDelta patches a scope's state, or marks it as lost where the delta does not
// follow it.
func (s *State) stateDelta(r *narad.StateDelta) {
	state := s.scoped[keyOf(&r.Event, r.Kind, r.Scope)]
	switch {
	case state == nil:
	case state.revision != r.BaseRevision || r.Revision != r.BaseRevision+1:
		state.resync, s.resync = true, true
	default:
		apply(state.document, r.Patch)
		state.revision, state.resync = r.Revision, false
	}
}

func (s *State) viewUpdated(r *narad.ViewUpdated) {
	if s.opt.NoDisplay {
		return
	}
	v := s.views[r.ViewID]
	if r.Operation == narad.OperationReplace {
		v.model = narad.NewDocument(r.Model)
		return
	}
	v.model = v.patchable()
	apply(v.model, r.Patch)
}

// apply applies a patch that the guard has tried.
func apply(doc *narad.Document, raw narad.Raw) {
	if doc == nil {
		return
	}
	patch, err := narad.ParsePatch(raw)
	if err == nil {
		err = doc.Apply(patch)
	}
	if err != nil {
		panic("session: a patch that the guard accepted does not apply: " + err.Error())
	}
}
