package host

import (
	"context"
	"strings"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/replay"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// States and views are changed one at a time in a session: a patch is tried on the value
// as it is recorded, which the owner does not keep, and nothing comes in between.

func (h *handle) State(ctx context.Context, s agent.StateScope) (value narad.Raw, revision int64, err error) {
	release, err := h.o.changing(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer release()
	is, err := h.recordedState(ctx, s)
	return is.State, is.Revision, err
}

// changing waits for the turn to change states and views of the session.
func (o *owner) changing(ctx context.Context) (release func(), err error) {
	select {
	case o.change <- struct{}{}:
		return func() { <-o.change }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// recordedState reads a state from the facts.
func (h *handle) recordedState(ctx context.Context, s agent.StateScope) (is session.ScopedState, err error) {
	err = h.o.host.replay.Display(ctx, h.o.id, func(state replay.State) error {
		run, _ := state.Session.Run(h.info.RunID)
		e := &narad.Event{RootRunID: h.info.RootRunID, RunID: h.info.RunID, WorkflowID: run.WorkflowID}
		is, _ = state.Session.ScopedState(s.Scope, s.UI, e)
		return nil
	})
	return is, err
}

func (h *handle) scoped(s agent.StateScope) decide.Scoped {
	return decide.Scoped{RunID: h.info.RunID, Scope: s.Scope, UI: s.UI, AgentID: shorten(s.AgentID)}
}

func (h *handle) SetState(ctx context.Context, s agent.StateScope, value narad.Raw) (int64, error) {
	release, err := h.o.changing(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	a, err := h.do(ctx, &task{command: decide.SetState{Scoped: h.scoped(s), Value: value}})
	return a.Revision, err
}

func (h *handle) PatchState(ctx context.Context, s agent.StateScope, base int64, patch narad.Raw) (int64, error) {
	release, err := h.o.changing(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	is, err := h.recordedState(ctx, s)
	switch {
	case err != nil:
		return 0, err
	case is.Revision != base || base == 0:
		return 0, agent.ErrConflict
	}
	if err := tried(is.State, patch); err != nil {
		return 0, err
	}
	a, err := h.do(ctx, &task{command: decide.PatchState{Scoped: h.scoped(s), Base: base, Patch: patch}})
	return a.Revision, err
}

// tried says why a patch does not apply to a value.
func tried(value, raw narad.Raw) error {
	patch, err := narad.ParsePatch(raw)
	if err == nil {
		err = narad.NewDocument(value).Test(patch)
	}
	if err != nil {
		return invalid("the patch does not apply: " + err.Error())
	}
	return nil
}

func (h *handle) CompactState(ctx context.Context, s agent.StateScope) (int64, error) {
	release, err := h.o.changing(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	is, err := h.recordedState(ctx, s)
	switch {
	case err != nil:
		return 0, err
	case is.Revision == 0:
		return 0, invalid("there is no such state")
	}
	a, err := h.do(ctx, &task{command: decide.CompactState{Scoped: h.scoped(s), Base: is.Revision, Value: is.State}})
	return a.Revision, err
}

func (h *handle) OpenView(ctx context.Context, v agent.View) (string, error) {
	id := h.o.host.opt.NewID()
	_, err := h.do(ctx, &task{command: decide.OpenView{RunID: h.info.RunID, ViewID: id, AgentID: shorten(v.AgentID), Model: v.Model}})
	return id, err
}

func (h *handle) UpdateView(ctx context.Context, viewID string, u agent.ViewUpdate) error {
	release, err := h.o.changing(ctx)
	if err != nil {
		return err
	}
	defer release()
	if u.Patch != nil {
		if err := h.tryOnView(ctx, viewID, u.Patch); err != nil {
			return err
		}
	}
	_, err = h.do(ctx, &task{command: decide.UpdateView{
		RunID: h.info.RunID, ViewID: viewID, AgentID: shorten(u.AgentID), Model: u.Model, Patch: u.Patch,
	}})
	return err
}

// tryOnView tries a patch on a view's model, which is {} where there is none.
func (h *handle) tryOnView(ctx context.Context, viewID string, patch narad.Raw) error {
	model := narad.Raw("{}")
	err := h.o.host.replay.Display(ctx, h.o.id, func(state replay.State) error {
		if v, known := state.Session.ViewModel(viewID); known && v.Model != nil {
			model = v.Model
		}
		return nil
	})
	if err != nil {
		return err
	}
	return tried(model, patch)
}

func (h *handle) CloseView(ctx context.Context, viewID, agentID string) error {
	_, err := h.do(ctx, &task{command: decide.CloseView{RunID: h.info.RunID, ViewID: viewID, AgentID: shorten(agentID)}})
	return err
}

func (h *handle) Raw(ctx context.Context, contentType, payload, agentID string) error {
	mediaType, err := CheckMediaType(contentType)
	if err != nil {
		return invalid(err.Error())
	}
	_, err = h.do(ctx, &task{command: decide.Raw{
		RunID: h.info.RunID, AgentID: shorten(agentID), ContentType: mediaType, Payload: strings.ToValidUTF8(payload, "\uFFFD"),
	}})
	return err
}
