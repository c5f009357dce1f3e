package host_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narad"
)

// plays is an agent whose run is a function that may fail the test.
func plays(t *testing.T, play func(context.Context, agent.Handle)) acts {
	return acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
		play(ctx, h)
		return agent.Ending{}
	}}
}

func (s *stage) count(id string, kind narad.Type) (n int) {
	for _, f := range s.facts(id) {
		if f.Type() == kind {
			n++
		}
	}
	return n
}

// §9.6: revisions are contiguous, a change on another base is refused and leaves nothing,
// and so does a patch that does not apply.
func TestStateRevisions(t *testing.T) {
	for _, scope := range []agent.StateScope{{Scope: narad.ScopeSession}, {Scope: narad.ScopeRun}, {Scope: narad.ScopeRun, UI: true}} {
		var last narad.Raw
		alone(t, plays(t, func(ctx context.Context, h agent.Handle) {
			if v, n, err := h.State(ctx, scope); v != nil || n != 0 || err != nil {
				t.Errorf("before: %s %d %v", v, n, err)
			}
			if _, err := h.PatchState(ctx, scope, 0, narad.Raw(`[]`)); !errors.Is(err, agent.ErrConflict) {
				t.Errorf("a patch of nothing: %v", err)
			}
			n, err := h.SetState(ctx, scope, narad.Raw(`{"n":1.10}`))
			if n != 1 || err != nil {
				t.Errorf("set: %d %v", n, err)
			}
			n, err = h.PatchState(ctx, scope, 1, narad.Raw(`[{"op":"add","path":"/a","value":1}]`))
			if n != 2 || err != nil {
				t.Errorf("patch: %d %v", n, err)
			}
			if _, err := h.PatchState(ctx, scope, 1, narad.Raw(`[{"op":"add","path":"/b","value":1}]`)); !errors.Is(err, agent.ErrConflict) {
				t.Errorf("a patch of an old revision: %v", err)
			}
			for _, patch := range []string{`[{"op":"remove","path":"/none"}]`, `{}`, `[{"op":"jump","path":"/a"}]`} {
				if _, err := h.PatchState(ctx, scope, 2, narad.Raw(patch)); !errors.Is(err, agent.ErrInvalid) {
					t.Errorf("%s: %v", patch, err)
				}
			}
			last, n, err = h.State(ctx, scope)
			if n != 2 || err != nil || string(last) != `{"n":1.10,"a":1}` {
				t.Errorf("state: %s %d %v", last, n, err)
			}
		}), host.Options{}, func(t *testing.T, s *stage) {
			s.say("s1", "go")
			synctest.Wait()
			if snapshots, deltas := s.count("s1", "state.snapshot")+s.count("s1", "ui.state.snapshot"), s.count("s1", "state.delta")+s.count("s1", "ui.state.delta"); snapshots != 1 || deltas != 1 {
				t.Errorf("%d snapshots and %d deltas, want 1 and 1: %s", snapshots, deltas, s.story("s1"))
			}
		})
	}
}

// Branches that change one state at once: each change is based on the one before it.
func TestStateFromManyBranches(t *testing.T) {
	scope := agent.StateScope{Scope: narad.ScopeSession}
	alone(t, plays(t, func(ctx context.Context, h agent.Handle) {
		_, _ = h.SetState(ctx, scope, narad.Raw(`[]`))
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for {
					_, base, err := h.State(ctx, scope)
					if err == nil {
						_, err = h.PatchState(ctx, scope, base, narad.Raw(`[{"op":"add","path":"/-","value":0}]`))
					}
					if errors.Is(err, agent.ErrConflict) {
						continue
					}
					if err != nil {
						t.Error(err)
					}
					return
				}
			})
		}
		all.Wait()
		if v, n, err := h.State(ctx, scope); string(v) != "[0,0,0,0,0,0,0,0]" || n != 9 || err != nil {
			t.Errorf("got %s at %d, %v", v, n, err)
		}
	}), host.Options{}, func(t *testing.T, s *stage) {
		s.say("s1", "go")
		synctest.Wait()
	})
}

// state.compacted covers the snapshot before it, and changes go on from there.
func TestCompactedState(t *testing.T) {
	scope := agent.StateScope{Scope: narad.ScopeSession}
	alone(t, plays(t, func(ctx context.Context, h agent.Handle) {
		if _, err := h.CompactState(ctx, scope); !errors.Is(err, agent.ErrInvalid) {
			t.Errorf("nothing to compact: %v", err)
		}
		_, _ = h.SetState(ctx, scope, narad.Raw(`{"a":1}`))
		if n, err := h.CompactState(ctx, scope); n != 2 || err != nil {
			t.Errorf("compact: %d %v", n, err)
		}
		if _, err := h.CompactState(ctx, agent.StateScope{Scope: narad.ScopeSession, UI: true}); !errors.Is(err, agent.ErrInvalid) {
			t.Errorf("a UI state: %v", err)
		}
		if n, err := h.PatchState(ctx, scope, 2, narad.Raw(`[{"op":"remove","path":"/a"}]`)); n != 3 || err != nil {
			t.Errorf("patch: %d %v", n, err)
		}
	}), host.Options{}, func(t *testing.T, s *stage) {
		s.say("s1", "go")
		synctest.Wait()
		for _, f := range s.facts("s1") {
			if c, ok := f.(*narad.StateCompacted); ok && (c.CoversThroughSessionSequence != c.SessionSequence-1 || c.SnapshotRevision != 2) {
				t.Errorf("got %+v at %d", c, c.SessionSequence)
			}
		}
		if s.count("s1", "state.compacted") != 1 {
			t.Errorf("got %s", s.story("s1"))
		}
	})
}

func TestViews(t *testing.T) {
	alone(t, plays(t, func(ctx context.Context, h agent.Handle) {
		id, err := h.OpenView(ctx, agent.View{Model: narad.Raw(`{"rows":[]}`)})
		if err == nil {
			err = h.UpdateView(ctx, id, agent.ViewUpdate{Patch: narad.Raw(`[{"op":"add","path":"/rows/-","value":1}]`)})
		}
		if err == nil {
			err = h.UpdateView(ctx, id, agent.ViewUpdate{Model: narad.Raw(`{}`)})
		}
		if err != nil {
			t.Error(err)
		}
		for name, err := range map[string]error{
			"a patch that does not apply": h.UpdateView(ctx, id, agent.ViewUpdate{Patch: narad.Raw(`[{"op":"remove","path":"/rows"}]`)}),
			"nothing":                     h.UpdateView(ctx, id, agent.ViewUpdate{}),
			"another view":                h.UpdateView(ctx, "none", agent.ViewUpdate{Model: narad.Raw(`{}`)}),
			"to close another view":       h.CloseView(ctx, "none", ""),
		} {
			if !errors.Is(err, agent.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := h.CloseView(ctx, id, ""); err != nil {
			t.Error(err)
		}
		if err := h.CloseView(ctx, id, ""); !errors.Is(err, agent.ErrInvalid) {
			t.Errorf("to close it again: %v", err)
		}
		if err := h.Raw(ctx, "application/cbor", "oA==", ""); err != nil {
			t.Error(err)
		}
	}), host.Options{}, func(t *testing.T, s *stage) {
		s.say("s1", "go")
		synctest.Wait()
		if !strings.Contains(s.story("s1"), "view.opened view.updated view.updated view.closed run.raw") {
			t.Errorf("got %s", s.story("s1"))
		}
	})
}

// R6: what is traced stands in the side session alone, with sequences of its own; it is in
// no list, and goes with its session.
func TestTraceIsBeside(t *testing.T) {
	alone(t, plays(t, func(ctx context.Context, h agent.Handle) {
		for range 3 {
			if err := h.Trace(ctx, agent.Trace{Type: narad.TypeTraceEvent, Value: narad.Raw(`{"name":"secret-span","n":1.10}`)}); err != nil {
				t.Error(err)
			}
		}
		for name, bad := range map[string]agent.Trace{
			"another type": {Type: narad.TypeRunFinished}, "no object": {Type: narad.TypeDebugLog, Value: narad.Raw(`1`)},
			"a field of the envelope": {Type: narad.TypeDebugLog, Value: narad.Raw(`{"sessionSequence":7}`)},
		} {
			if err := h.Trace(ctx, bad); !errors.Is(err, agent.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}), host.Options{}, func(t *testing.T, s *stage) {
		s.say("s1", "go")
		synctest.Wait()
		if strings.Contains(s.story("s1"), "trace.") {
			t.Errorf("the session's own journal holds it: %s", s.story("s1"))
		}
		if got := s.story("s1~trace"); got != "trace.event trace.event trace.event" {
			t.Errorf("the side session holds %q", got)
		}
		list, _, _, err := s.host.Sessions(t.Context(), access.Owner(), host.Filter{Limit: 10})
		if err != nil || len(list) != 1 {
			t.Errorf("listed are %v, %v", list, err)
		}
		a, err := s.host.Do(t.Context(), access.Owner(), host.Request{
			Action: access.SendMessage, Session: "s1~trace", Command: decide.Message{Content: "x"},
		})
		if err != nil || a.Status != decide.NotFound {
			t.Errorf("a command to it: %+v %v", a, err)
		}
		if _, err := s.host.Delete(t.Context(), access.Owner(), "s1"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.host.Attach(t.Context(), access.Owner(), access.ReadSession, "s1~trace"); err == nil {
			t.Error("the trace outlives its session")
		}
		if _, err := s.journal.Head(t.Context(), "s1~trace"); err == nil {
			t.Error("the facts of the trace are kept")
		}
	})
}
