package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/internal/journal"
)

// Snapshot implements journal.Snapshots.
func (j *Journal) Snapshot(ctx context.Context, session string, atOrBefore uint64) (found journal.Snapshot, err error) {
	v, err := j.use(ctx)
	if err != nil {
		return found, err
	}
	defer v.release()
	s, err := v.stream(session)
	if err != nil {
		return found, err
	}
	upper := keyOf(tagSnapshot, s.sid+1)
	if atOrBefore < ^uint64(0) {
		upper = keyOf(tagSnapshot, s.sid, atOrBefore+1)
	}
	it, err := v.iterate(keyOf(tagSnapshot, s.sid), upper)
	if err != nil {
		return found, damaged(session, 0, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.Last() {
		if err := it.Error(); err != nil {
			return found, damaged(session, 0, err)
		}
		return found, fmt.Errorf("snapshot of %q: %w", session, journal.ErrNotFound)
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return found, damaged(session, 0, err)
	}
	return journal.Snapshot{Sequence: numberAt(it.Key(), 9), Bytes: bytes.Clone(value)}, nil
}

// PutSnapshot implements journal.Snapshots.
func (j *Journal) PutSnapshot(ctx context.Context, session string, snapshot journal.Snapshot) error {
	return j.changeCache(ctx, session, len(snapshot.Bytes), func(t *tail) error {
		if snapshot.Sequence > t.head {
			return fmt.Errorf("%w: snapshot at %d, the head is %d", journal.ErrInvalid, snapshot.Sequence, t.head)
		}
		return j.staged.batch.Set(keyOf(tagSnapshot, t.sid, snapshot.Sequence), snapshot.Bytes, nil)
	})
}

// DropSnapshots implements journal.Snapshots.
func (j *Journal) DropSnapshots(ctx context.Context, session string, below uint64) error {
	return j.changeCache(ctx, session, 0, func(t *tail) error {
		return j.current.Load().each(keyOf(tagSnapshot, t.sid), func(key, _ []byte, _ error) error {
			if numberAt(key, 9) >= below {
				return nil
			}
			return j.staged.batch.Delete(key, nil)
		}, func(hole) {}) // no older one is looked for there
	})
}

// changeCache changes snapshots on the committer, so that none is written for
// a session that has been deleted meanwhile.
func (j *Journal) changeCache(ctx context.Context, session string, size int, change func(*tail) error) error {
	err := j.committer.Do(ctx, journal.Request{Bytes: size, Stage: func() error {
		if err := j.gate.Admit(false); err != nil {
			return err
		}
		t, err := j.tail(session)
		switch {
		case err != nil:
			return err
		case t.deleted:
			return journal.ErrDeleted
		case !t.exists:
			return journal.ErrNotFound
		}
		j.staged.begin(j.db)
		return change(t)
	}})
	if err != nil {
		return fmt.Errorf("snapshots of %q: %w", session, err)
	}
	return nil
}
