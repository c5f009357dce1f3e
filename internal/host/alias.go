package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narya"
)

// Alias returns what a UUID of Narya's stands for: the session, and in it the id of the
// run, interrupt or workflow, or of a member as [index.Member] reads it. An id that is
// shown as it is stands for itself (R5). ErrNotFound is for what is not there, and for what
// is in a session that began before the host spoke Narya (R1); ErrGone for a session that
// was deleted, if the caller may know of such. Whether he may know of one that is there is
// for [Host.Attach] to say.
func (h *Host) Alias(ctx context.Context, p access.Principal, kind narya.Kind, uuid string) (session, id string, err error) {
	session, id, err = h.alias(ctx, kind, uuid)
	if hidden(p, err) {
		err = ErrNotFound
	}
	return session, id, err
}

func (h *Host) alias(ctx context.Context, kind narya.Kind, uuid string) (session, id string, err error) {
	key := index.NaryaAlias(kind, uuid)
	if key.Validate() != nil {
		return "", "", ErrNotFound
	}
	row, err := journal.Get[journal.AliasRow](ctx, h.journal, key)
	switch {
	case errors.Is(err, journal.ErrNotFound):
		session, id, err = h.itself(ctx, kind, uuid)
	case err == nil:
		session, id = row.Session, row.ID
	}
	if err != nil {
		return "", "", fmt.Errorf("find a %s: %w", kind, err)
	}
	return session, id, h.speaksNarya(ctx, session)
}

// itself finds what is shown under its own id.
func (h *Host) itself(ctx context.Context, kind narya.Kind, id string) (session, same string, err error) {
	if narya.UUID(kind, id) != id {
		return "", "", ErrNotFound
	}
	var row journal.Row
	switch kind {
	case narya.KindSession:
		return id, id, nil
	case narya.KindRun:
		row, err = h.journal.Row(ctx, journal.RunKey(id))
	case narya.KindInterrupt:
		row, err = h.journal.Row(ctx, journal.InterruptKey(id))
	case narya.KindWorkflow:
		row, err = h.journal.Row(ctx, journal.WorkflowKey(id))
	default:
		return "", "", ErrNotFound
	}
	if err != nil {
		return "", "", err
	}
	return journal.Owner(row), id, nil
}

func (h *Host) speaksNarya(ctx context.Context, session string) error {
	row, err := h.sessionRow(ctx, session)
	switch {
	case err != nil:
		return fmt.Errorf("find session: %w", err)
	case index.Read[index.Session](row.Value).Narya == 0:
		return fmt.Errorf("the session began before Narya: %w", ErrNotFound)
	}
	return nil
}

// shownAlike reports whether another session is shown under the UUID under which one of
// this id would be (R5): the id of one may be the UUID of the other.
func (h *Host) shownAlike(ctx context.Context, id string) (bool, error) {
	_, err := h.journal.Row(ctx, alike(id))
	if errors.Is(err, journal.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// alike names the row that is there if another session is shown as this one.
func alike(id string) journal.Key {
	uuid := narya.UUID(narya.KindSession, id)
	if uuid != id {
		return journal.SessionKey(uuid)
	}
	return index.NaryaAlias(narya.KindSession, uuid)
}

// Member reads what [Host.Alias] gives of a member of a pack.
func Member(id string) (interruptID, requestID string) { return index.Member(id) }
