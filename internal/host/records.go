package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/journal"
)

// Records is one reader of facts.
type Records = feed.Subscription

// Records reads the session's facts after a sequence, and goes on with them.
func (v *View) Records(after uint64) *Records {
	return v.host.feed.Subscribe(feed.Session(v.row.Session, after))
}

// Session returns the session's id.
func (v *View) Session() string { return v.row.Session }

// ActiveRoot returns the top-level run that was active right after the fact of a
// sequence, "" for none.
func (v *View) ActiveRoot(ctx context.Context, sequence uint64) (string, error) {
	control, err := v.host.replay.At(ctx, v.row.Session, sequence)
	if err != nil {
		return "", err
	}
	return control.Session.ActiveRootRunID(), nil
}

// RunTree goes through the facts of a run tree in their order, up to a sequence of the
// session. A run that is no root of the session has none.
func (v *View) RunTree(ctx context.Context, rootRunID string, upTo uint64, use func(Record) error) error {
	for after := uint64(0); ; {
		chunk, err := v.Read(ctx, Cursor{RootRunID: rootRunID, After: after}, Page{})
		if err != nil {
			return err
		}
		for _, r := range chunk.Records {
			if r.Sequence > upTo {
				return nil
			}
			if err := use(r); err != nil {
				return err
			}
			after = r.RunSequence
		}
		if !chunk.More {
			return nil
		}
	}
}

// Workspace is a workspace in the eyes of a reader who may watch it. It belongs to one
// goroutine.
type Workspace struct {
	host  *Host
	id    string
	holds map[string]bool // whether a session is in it, of those that were looked at
}

// Watch returns a workspace for a caller who may watch it. There is one of any name. An
// error is one of package access, or ErrRecovering and its like.
func (h *Host) Watch(_ context.Context, p access.Principal, id string) (*Workspace, error) {
	if !h.ready.Load() {
		return nil, h.notReady()
	}
	if err := access.Authorize(p, access.WatchWorkspace, id); err != nil {
		return nil, err
	}
	return &Workspace{host: h, id: id, holds: map[string]bool{}}, nil
}

// Head returns the host offset up to which everything is durable.
func (w *Workspace) Head() uint64 { return w.host.journal.Durable().Offset }

// Records reads the facts of the whole host after an offset, and goes on with them: what
// is the workspace's, Holds tells. So idle sessions cost nothing.
func (w *Workspace) Records(after uint64) *Records { return w.host.feed.Subscribe(feed.Host(after)) }

// At returns the fact at a host offset, or ErrNotFound. A deleted session leaves none.
func (w *Workspace) At(ctx context.Context, offset uint64) (Record, error) {
	chunk, err := w.host.journal.Read(ctx, journal.ByOffset{After: offset - 1}, Page{Limit: 1})
	if err != nil {
		return Record{}, err
	}
	if len(chunk.Records) == 0 || chunk.Records[0].Offset != offset {
		return Record{}, ErrNotFound
	}
	return chunk.Records[0], nil
}

// maxHolds bounds how many sessions a reader of a workspace remembers.
const maxHolds = 8_192

// Holds reports whether a session is in the workspace. The stream of the host is in
// none, and one that was deleted is no longer.
func (w *Workspace) Holds(ctx context.Context, session string) (bool, error) {
	if is, known := w.holds[session]; known {
		return is, nil
	}
	row, err := w.host.sessionRow(ctx, session)
	if errors.Is(err, ErrDamaged) { // in its facts too: it was told, and costs no other session
		err = ErrNotFound
	}
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrGone) {
		return false, fmt.Errorf("find the workspace of a session: %w", err)
	}
	if len(w.holds) >= maxHolds {
		clear(w.holds)
	}
	w.holds[session] = err == nil && row.Workspace == w.id
	return w.holds[session], nil
}
