package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// traceSuffix ends the name of a side session, which holds the trace and debug facts of a
// session (R6). It has no row in the catalogue: no list, inbox or watch ever meets it.
const traceSuffix = "~trace"

// traceOf returns the session that a side session belongs to.
func traceOf(id string) (session string, ok bool) {
	session, ok = strings.CutSuffix(id, traceSuffix)
	return session, ok && session != ""
}

// Trace records in the side session. It goes past what waits in the run: nothing of the
// session's own journal depends on it.
func (h *handle) Trace(ctx context.Context, t agent.Trace) error {
	fact, err := h.tracing(t)
	if err != nil {
		return err
	}
	if err := h.open(); err != nil {
		return err
	}
	return h.o.host.trace(ctx, h.o.id+traceSuffix, fact)
}

// trace hands a fact to the owner of a side session. It waits where there are many.
func (h *Host) trace(ctx context.Context, side string, fact *narad.Tracing) error {
	for {
		o, err := h.owner(ctx, side)
		if err != nil {
			return fmt.Errorf("find the side session: %w", err)
		}
		answer, err := o.record(ctx, &task{command: decide.Trace{Fact: fact}, actor: hostActor, agent: true, reply: make(chan reply, 1)})
		switch {
		case errors.Is(err, errOwnerEnded) && h.life.Err() == nil:
			continue // it was idle
		case err != nil:
			return fmt.Errorf("trace: %w", err)
		}
		return refusalOf(answer, nil)
	}
}

// open says why nothing is recorded any more.
func (h *handle) open() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return agent.ErrEnded
	}
	return nil
}

// tracing makes a fact of what an agent traces. Run ids stand in it as fields of its own:
// a side session has no run trees.
func (h *handle) tracing(t agent.Trace) (*narad.Tracing, error) {
	switch t.Type {
	case narad.TypeTraceSpanStarted, narad.TypeTraceSpanCompleted, narad.TypeTraceEvent, narad.TypeDebugLog, narad.TypeDebugSnapshot:
	default:
		return nil, invalid("this is no type of the trace and debug profiles")
	}
	fact := &narad.Tracing{Kind: t.Type}
	fact.SetOptional("aboutRunId", narad.Quote(h.info.RunID))
	fact.SetOptional("aboutRootRunId", narad.Quote(h.info.RootRunID))
	if t.Value == nil {
		return fact, nil
	}
	members, ok := t.Value.Members()
	if !ok {
		return nil, invalid("the value of a trace is an object")
	}
	for _, m := range members {
		if envelope[m.Name] {
			return nil, invalid("a trace has a field of the envelope")
		}
		fact.SetOptional(m.Name, m.Value)
	}
	return fact, nil
}

// envelope names the fields that are the host's.
var envelope = map[string]bool{
	"type": true, "protocolVersion": true, "eventId": true, "timestamp": true, "sessionId": true, "sessionSequence": true,
	"rootRunId": true, "runId": true, "sequence": true, "workflowId": true, "workflowSequence": true, "parentRunId": true,
	"sourceEventId": true, "sourceSessionId": true, "aboutRunId": true, "aboutRootRunId": true,
}

// attachTrace returns the view of a side session, for who may see traces there.
func (h *Host) attachTrace(ctx context.Context, p access.Principal, action access.Action, id, session string) (*View, error) {
	if action != access.ReadSession {
		return nil, ErrNotFound
	}
	workspace, err := h.workspace(ctx, p, access.ReadTrace, session)
	if err != nil {
		return nil, err
	}
	if workspace == unknownSession {
		return nil, ErrNotFound
	}
	row, err := h.sessionRow(ctx, session)
	if err != nil {
		return nil, fmt.Errorf("find session: %w", err)
	}
	if _, err := h.journal.Head(ctx, id); err != nil {
		return nil, fmt.Errorf("find side session: %w", err) // nothing was traced
	}
	of := index.Read[index.Session](row.Value)
	side := index.Session{
		Title: of.Title, Agent: of.Agent, CreatedAt: of.CreatedAt, UpdatedAt: of.UpdatedAt,
		RequiredProfiles: (narad.Trace | narad.Debug).IDs(),
	}
	return &View{host: h, p: p, row: journal.SessionRow{
		Session: id, Workspace: row.Workspace, State: index.Idle, Value: index.Value(side),
	}}, nil
}

// removeTrace removes the side session of one that is being deleted.
func (h *Host) removeTrace(ctx context.Context, session string) error {
	id := session + traceSuffix
	_, err := h.journal.Head(ctx, id)
	if errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrDeleted) {
		return nil
	}
	if err == nil {
		_, err = h.hand(ctx, id, &task{remove: true, actor: hostActor, reply: make(chan reply, 1)})
	}
	if err != nil {
		return fmt.Errorf("delete the trace: %w", err)
	}
	return nil
}
