package sessiontest

// scopeKey names what a scoped state belongs to.
func (f fact) scopeKey() string {
	switch f.text("scope") {
	case "workflow":
		return "workflow:" + f.workflowID()
	case "run":
		return "run:" + f.rootID() + ":" + f.runID()
	default:
		return "session"
	}
}

// scopedState is the state of one scope.
type scopedState struct {
	revision int64
	state    any
	resync   bool
}

// scopes tells the scoped states of a profile, whose types begin with prefix
// ("state." or "ui.state."). resync reports whether one of them was ever found to
// have lost touch.
func (h history) scopes(prefix string) (all map[string]scopedState, resync bool) {
	all = map[string]scopedState{}
	for f := range h.told(prefix+"snapshot", prefix+"delta", prefix+"compacted") {
		s, known := all[f.scopeKey()]
		switch f.kind {
		case prefix + "snapshot":
			all[f.scopeKey()] = scopedState{revision: f.whole("revision", 1), state: f.body["state"]}
		case prefix + "compacted":
			resync = true
			all[f.scopeKey()] = scopedState{revision: f.whole("snapshotRevision", 1), state: s.state, resync: true}
		case prefix + "delta":
			if !known {
				continue
			}
			if !s.fits(f) {
				s.resync, resync = true, true
				all[f.scopeKey()] = s
				continue
			}
			state, _ := patched(s.state, f.body["patch"])
			all[f.scopeKey()] = scopedState{revision: f.whole("revision", 1), state: state}
		}
	}
	return all, resync
}

// fits reports whether a delta continues the state.
func (s scopedState) fits(f fact) bool {
	base := f.whole("baseRevision", 0)
	return base == s.revision && f.whole("revision", 1) == base+1
}

// viewState is a view.
type viewState struct {
	open     bool
	hasModel bool
	model    any
}

// views tells the views.
func (h history) views() map[string]viewState {
	all := map[string]viewState{}
	for f := range h.told("view.opened", "view.updated", "view.closed") {
		id := f.text("viewId")
		v := all[id]
		switch {
		case f.is("view.opened"):
			v = viewState{open: true, hasModel: f.has("model"), model: f.body["model"]}
		case f.is("view.closed"):
			v.open = false
		default:
			v, _ = v.updated(f)
		}
		all[id] = v
	}
	return all
}

// updated returns the view after a view.updated, or the code of its refusal.
func (v viewState) updated(f fact) (viewState, string) {
	if f.text("operation") == "replace" {
		v.hasModel, v.model = true, f.body["model"]
		return v, ""
	}
	model := v.model
	if !v.hasModel {
		model = object{}
	}
	model, code := patched(model, f.body["patch"])
	if code != "" {
		return v, code
	}
	v.hasModel, v.model = true, model
	return v, ""
}

// lastOf returns the last fact about an attachment or an artifact.
func (h history) lastOf(prefix, idField, id string) (fact, bool) {
	var last fact
	for f := range h.told(prefix+".added", prefix+".ready", prefix+".failed", prefix+".removed") {
		if f.text(idField) == id {
			last = f
		}
	}
	return last, last.kind != ""
}
