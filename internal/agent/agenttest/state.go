package agenttest

import (
	"context"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// Traces returns what agents traced, in its order. It stands in no fact of the session.
func (s *Session) Traces() []agent.Trace {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]agent.Trace(nil), s.traces...)
}

// State implements agent.Handle; so do the methods below.
func (h *handle) State(ctx context.Context, sc agent.StateScope) (value narad.Raw, revision int64, err error) {
	err = h.in(ctx, func(b *book) error {
		e := b.event()
		is, _ := h.s.state.ScopedState(sc.Scope, sc.UI, &e)
		value, revision = is.State, is.Revision
		return nil
	})
	return value, revision, err
}

func (h *handle) SetState(ctx context.Context, sc agent.StateScope, value narad.Raw) (revision int64, err error) {
	err = h.in(ctx, func(b *book) error {
		e := b.event()
		is, _ := h.s.state.ScopedState(sc.Scope, sc.UI, &e)
		revision = is.Revision + 1
		return h.flushAnd(b, snapshotFact(b, sc, revision, value))
	})
	return revision, err
}

// flushAnd records a batch behind what waits.
func (h *handle) flushAnd(b *book, batch ...narad.Authority) error {
	if err := h.s.flush(b); err != nil {
		return err
	}
	return h.s.record(batch...)
}

func snapshotFact(b *book, sc agent.StateScope, revision int64, value narad.Raw) *narad.StateSnapshot {
	f := &narad.StateSnapshot{Event: b.event(), Kind: narad.TypeStateSnapshot, Scope: sc.Scope, Revision: revision, State: value}
	if sc.UI {
		f.Kind = narad.TypeUIStateSnapshot
	}
	facts.SetAgentID(&f.Event, sc.AgentID)
	return f
}

func (h *handle) PatchState(ctx context.Context, sc agent.StateScope, base int64, patch narad.Raw) (revision int64, err error) {
	err = h.in(ctx, func(b *book) error {
		e := b.event()
		if is, known := h.s.state.ScopedState(sc.Scope, sc.UI, &e); !known || is.Revision != base {
			return agent.ErrConflict
		}
		revision = base + 1
		f := &narad.StateDelta{Event: b.event(), Kind: narad.TypeStateDelta, Scope: sc.Scope, BaseRevision: base, Revision: revision, Patch: patch}
		if sc.UI {
			f.Kind = narad.TypeUIStateDelta
		}
		facts.SetAgentID(&f.Event, sc.AgentID)
		return h.flushAnd(b, f)
	})
	return revision, err
}

func (h *handle) CompactState(ctx context.Context, sc agent.StateScope) (revision int64, err error) {
	err = h.in(ctx, func(b *book) error {
		e := b.event()
		is, known := h.s.state.ScopedState(sc.Scope, sc.UI, &e)
		if !known || sc.UI {
			return h.s.refuse("a state that is not there, or of the UI, is not compacted")
		}
		revision = is.Revision + 1
		if err := h.s.flush(b); err != nil {
			return err
		}
		return h.s.record(snapshotFact(b, sc, revision, is.State), &narad.StateCompacted{
			Event: b.event(), Scope: sc.Scope, SnapshotRevision: revision, CoversThroughSessionSequence: h.s.state.Last() + 1,
		})
	})
	return revision, err
}

func (h *handle) OpenView(ctx context.Context, v agent.View) (id string, err error) {
	err = h.tell(ctx, func(b *book) narad.Authority {
		id = h.s.id("view")
		f := &narad.ViewOpened{Event: b.event(), ViewID: id, Model: v.Model}
		facts.SetAgentID(&f.Event, v.AgentID)
		return f
	})
	return id, err
}

func (h *handle) UpdateView(ctx context.Context, viewID string, u agent.ViewUpdate) error {
	return h.tell(ctx, func(b *book) narad.Authority {
		f := &narad.ViewUpdated{Event: b.event(), ViewID: viewID, Operation: narad.OperationReplace, Model: u.Model, Patch: u.Patch}
		if u.Patch != nil {
			f.Operation = narad.OperationPatch
		}
		facts.SetAgentID(&f.Event, u.AgentID)
		return f
	})
}

func (h *handle) CloseView(ctx context.Context, viewID, agentID string) error {
	return h.tell(ctx, func(b *book) narad.Authority {
		f := &narad.ViewClosed{Event: b.event(), ViewID: viewID}
		facts.SetAgentID(&f.Event, agentID)
		return f
	})
}

func (h *handle) Raw(ctx context.Context, contentType, payload, agentID string) error {
	return h.tell(ctx, func(b *book) narad.Authority {
		f := &narad.Opaque{Event: b.event(), Kind: narad.TypeRunRaw, ContentType: contentType, Payload: payload}
		facts.SetAgentID(&f.Event, agentID)
		return f
	})
}

func (h *handle) Trace(ctx context.Context, t agent.Trace) error {
	return h.in(ctx, func(*book) error {
		h.s.traces = append(h.s.traces, t)
		return nil
	})
}
