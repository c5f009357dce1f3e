package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// Request returns the fact that asked for an open interrupt, and which members of a pack
// are decided by now. It is nil for one that is not open any more.
func (h *Host) Request(ctx context.Context, a Asked) (*narad.InterruptRequested, map[string]string, error) {
	fact, err := h.fact(ctx, a.SessionID, int64(a.Sequence))
	if err != nil {
		return nil, nil, ignoreGone(err)
	}
	request, ok := fact.(*narad.InterruptRequested)
	if !ok || request.InterruptID != a.InterruptID {
		return nil, nil, fmt.Errorf("fact %d is not the request of %q: %w", a.Sequence, a.InterruptID, journal.ErrDamaged)
	}
	if a.Input == nil || a.Input.Field("members") == nil {
		return request, nil, nil
	}
	control, err := h.replay.Open(ctx, a.SessionID)
	if err != nil {
		return nil, nil, ignoreGone(err)
	}
	if asked, _ := control.Session.Interrupt(a.InterruptID); !asked.Open {
		return nil, nil, nil
	}
	return request, control.Desk.Votes[a.InterruptID], nil
}

// Settled is a permission that is decided, as Narya tells of it, with the facts of its
// request and of its decision.
type Settled struct {
	SessionID    string
	PermissionID string
	// Mapping is the version of Narya's that applies to the facts.
	Mapping int
	Request narad.Authority
	Decided narad.Authority
}

// DecisionFilter narrows a list of decisions.
type DecisionFilter struct {
	// Session and Decision, when not empty, are those of the decision: its word is Narya's.
	Session  string
	Decision string
	Cursor   string
	Limit    int
}

// Decisions lists the decisions of permissions that the caller may audit, the newest first
// by the time at which they were made. A page may be shorter than its limit and still have
// a next one: what is damaged, or of no interest to the caller, is left out.
func (h *Host) Decisions(ctx context.Context, p access.Principal, f DecisionFilter) (list []Settled, next string, err error) {
	if !h.ready.Load() {
		return nil, "", h.notReady()
	}
	if err := access.Authorize(p, access.ReadAudit, ""); err != nil {
		return nil, "", err
	}
	of := journal.Decisions{Session: f.Session, Decision: f.Decision}
	rows, next, err := journal.OnePage[journal.DecisionRow](ctx, h.journal, of, journal.RowPage{Cursor: f.Cursor, Limit: f.Limit}, h.damaged)
	if err != nil {
		return nil, "", fmt.Errorf("list decisions: %w", err)
	}
	for _, row := range rows {
		one, err := h.settled(ctx, p, row)
		switch {
		case errors.Is(err, journal.ErrDamaged):
			h.damaged(journal.Damage{Session: row.Session, Key: row.Key(), Cause: err})
		case err != nil:
			return nil, "", err
		case one != nil:
			list = append(list, *one)
		}
	}
	return list, next, nil
}

// settled is a decision for a caller, nil if he may not know who made it.
func (h *Host) settled(ctx context.Context, p access.Principal, row journal.DecisionRow) (*Settled, error) {
	of, err := h.sessionRow(ctx, row.Session)
	if err != nil {
		return nil, ignoreGone(err)
	}
	if access.Authorize(p, access.AuditSession, of.Workspace) != nil {
		return nil, nil
	}
	at := index.Read[index.Decided](row.Value)
	request, err := h.fact(ctx, row.Session, int64(at.Asked))
	if err != nil {
		return nil, ignoreGone(err)
	}
	decided, err := h.fact(ctx, row.Session, int64(at.Decided))
	if err != nil {
		return nil, ignoreGone(err)
	}
	return &Settled{
		SessionID: row.Session, PermissionID: at.PermissionID, Mapping: index.Read[index.Session](of.Value).Narya,
		Request: request, Decided: decided,
	}, nil
}
