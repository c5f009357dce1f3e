package script

import (
	"context"
	"slices"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
	"go.yaml.in/yaml/v3"
)

// once performs what leaves a fact with the step's path, unless the past tells of it.
func (sc *scene) once(at spot, perform func() error) error {
	if sc.play.past.done[at.path] {
		sc.play.past.consume()
		return nil
	}
	return perform()
}

// state sets, patches or compacts a state.
type state struct {
	scope   narad.Scope
	ui      bool
	set     value
	patch   value
	compact bool
}

func readState(r *reader, n *yaml.Node, _ manner) action {
	o := r.object(n, "state")
	s := &state{
		scope: narad.Scope(o.word("scope", "session", "run")), ui: o.yes("ui"), set: o.value("set"), patch: o.value("patch"),
		compact: o.yes("compact"),
	}
	o.close("scope", "ui", "set", "patch", "compact")
	if count(s.set.kind != 0, s.patch.kind != 0, s.compact) != 1 {
		r.fail(n, "state: exactly one of set, patch and compact")
	}
	if s.compact && s.ui {
		r.fail(n, "state: a UI state is not compacted")
	}
	return s
}

func count(truths ...bool) (n int) {
	for _, is := range truths {
		if is {
			n++
		}
	}
	return n
}

func (s *state) perform(ctx context.Context, sc *scene, at spot) error {
	return sc.once(at, func() error {
		scope := agent.StateScope{Scope: s.scope, UI: s.ui, AgentID: at.path}
		switch {
		case s.compact:
			_, err := sc.h.CompactState(ctx, scope)
			return err
		case s.set.kind != 0:
			value, err := s.set.fill(sc, at)
			if err == nil {
				_, err = sc.h.SetState(ctx, scope, value)
			}
			return err
		}
		patch, err := s.patch.fill(sc, at)
		if err != nil {
			return err
		}
		_, base, err := sc.h.State(ctx, scope)
		if err == nil {
			_, err = sc.h.PatchState(ctx, scope, base, patch)
		}
		return err
	})
}

// view opens, changes or closes a view, which the script knows by a name.
type view struct {
	open, update, close string
	model, patch        value
}

func readView(r *reader, n *yaml.Node, _ manner) action {
	o := r.object(n, "view")
	v := &view{open: o.name("open"), update: o.name("update"), close: o.name("close"), model: o.value("model"), patch: o.value("patch")}
	o.close("open", "update", "close", "model", "patch")
	switch {
	case count(v.open != "", v.update != "", v.close != "") != 1:
		r.fail(n, "view: exactly one of open, update and close, with the view's name")
	case v.update != "" && count(v.model.kind != 0, v.patch.kind != 0) != 1:
		r.fail(n, "view: an update has a model or a patch")
	case v.close != "" && v.model.kind+v.patch.kind != 0, v.open != "" && v.patch.kind != 0:
		r.fail(n, "view: only an update has a patch, and what is closed has no model")
	}
	return v
}

func (v *view) perform(ctx context.Context, sc *scene, at spot) error {
	views := &sc.play.views
	if v.open != "" {
		if id, known := sc.play.past.opened[at.path]; known {
			views.Store(v.open, id)
		}
	}
	return sc.once(at, func() error {
		model, err := v.model.fill(sc, at)
		if err != nil {
			return err
		}
		if v.open != "" {
			id, err := sc.h.OpenView(ctx, agent.View{AgentID: at.path, Model: model})
			views.Store(v.open, id)
			return err
		}
		known, _ := views.Load(v.update + v.close)
		id, _ := known.(string) // the host refuses the view that was never opened
		if v.close != "" {
			return sc.h.CloseView(ctx, id, at.path)
		}
		patch, err := v.patch.fill(sc, at)
		if err != nil {
			return err
		}
		return sc.h.UpdateView(ctx, id, agent.ViewUpdate{AgentID: at.path, Model: model, Patch: patch})
	})
}

// raw records an encoded payload.
type raw struct {
	contentType string
	payload     template
}

func readRaw(r *reader, n *yaml.Node, _ manner) action {
	o := r.object(n, "raw")
	step := &raw{o.plain("type"), o.template("payload")}
	o.close("type", "payload")
	if step.contentType == "" {
		r.fail(n, "raw must have a type")
	}
	return step
}

func (s *raw) perform(ctx context.Context, sc *scene, at spot) error {
	return sc.once(at, func() error {
		payload, err := s.payload.fill(sc, at)
		if err != nil {
			return err
		}
		return sc.h.Raw(ctx, s.contentType, payload, at.path)
	})
}

// trace records in the side session.
type trace struct {
	kind  narad.Type
	value value
}

var traceTypes = []string{
	string(narad.TypeTraceEvent), string(narad.TypeTraceSpanStarted), string(narad.TypeTraceSpanCompleted),
	string(narad.TypeDebugLog), string(narad.TypeDebugSnapshot),
}

func readTrace(r *reader, n *yaml.Node, _ manner) action {
	o := r.object(n, "trace")
	t := &trace{narad.Type(o.word("type", slices.Clone(traceTypes)...)), o.value("value")}
	o.close("type", "value")
	if t.value.kind != 0 && t.value.kind != yaml.MappingNode {
		r.fail(n, "trace: value must be a mapping")
	}
	return t
}

// A trace is nothing that a run depends on: after a restart what came before is not traced
// again, and what was about to be may be missing.
func (t *trace) perform(ctx context.Context, sc *scene, at spot) error {
	if sc.play.past.behind() {
		return nil
	}
	value, err := t.value.fill(sc, at)
	if err != nil {
		return err
	}
	return sc.h.Trace(ctx, agent.Trace{Type: t.kind, Value: value})
}
