package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/internal/journal"
)

// Deletion is two steps. The first, atomic, leaves the tombstone and removes
// all that stands under the sid. Rows that stand under ids of their own are
// then looked for and removed in portions, with a note (tagUnfinished) until
// that is done, so that the next open can finish what was interrupted.

// rangesOfSid are the tags whose keys of a session are removed as a range.
var rangesOfSid = []byte{tagBatch, tagMark, tagCurrent, tagCatalogue, tagOpenWork, tagCommand, tagMaterial, tagSnapshot}

// sweptTags are the tags whose rows have to be looked through.
var sweptTags = []byte{tagInterrupt, tagRun, tagWorkflow, tagTimer, tagAlias, tagToken, tagDecision}

// sweepPortion is the number of rows removed in one write.
const sweepPortion = 1_000

// Delete implements journal.Appender.
func (j *Journal) Delete(ctx context.Context, deletion journal.Deletion) error {
	var sid uint64
	err := j.committer.Do(ctx, journal.Request{Alone: true, Stage: func() (err error) {
		sid, err = j.stageDeletion(deletion)
		return err
	}})
	if err == nil {
		// The session is gone for everybody now; what is left is no longer the
		// caller's to cancel.
		err = j.sweep(context.WithoutCancel(ctx), stream{deletion.Session, sid})
	}
	if err != nil {
		return fmt.Errorf("delete %q: %w", deletion.Session, err)
	}
	return nil
}

func (j *Journal) stageDeletion(deletion journal.Deletion) (sid uint64, err error) {
	if err := j.gate.Admit(true); err != nil {
		return 0, err
	}
	t, err := j.tail(deletion.Session)
	if err != nil {
		return 0, err
	}
	if !t.exists {
		return 0, journal.ErrNotFound
	}
	if t, err = j.expect(deletion.Session, deletion.ExpectHead, deletion.ExpectTerm); err != nil {
		return 0, err
	}
	g := &j.staged
	g.begin(j.db)
	for _, tag := range rangesOfSid {
		_ = g.batch.DeleteRange(keyOf(tag, t.sid), keyOf(tag, t.sid+1), nil)
	}
	_ = g.batch.Set(textKey(tagSession, t.session), encodeStream(t.sid, streamDeleted), nil)
	_ = g.batch.Set(keyOf(tagUnfinished, t.sid), []byte(t.session), nil)
	g.tails[t.session] = &tail{stream: t.stream, exists: true, deleted: true, spans: newTracker(t.sid)}
	return t.sid, nil
}

// sweep removes the rows that a deleted session owns.
func (j *Journal) sweep(ctx context.Context, s stream) error {
	keys, err := j.rowsOwnedBy(ctx, s)
	if err != nil {
		return err
	}
	for len(keys) > 0 {
		portion := keys[:min(sweepPortion, len(keys))]
		keys = keys[len(portion):]
		if err := j.removeKeys(ctx, portion); err != nil {
			return err
		}
	}
	return j.removeKeys(ctx, [][]byte{keyOf(tagUnfinished, s.sid)})
}

func (j *Journal) rowsOwnedBy(ctx context.Context, s stream) (keys [][]byte, err error) {
	v, err := j.use(ctx)
	if err != nil {
		return nil, err
	}
	defer v.release()
	for _, tag := range sweptTags {
		err := v.each([]byte{tag}, func(key, value []byte, unreadable error) error {
			row, err := journal.DecodeRow(value)
			if unreadable != nil || err != nil || journal.Owner(row) != s.session {
				return nil // for one that cannot be read see lostOf
			}
			// A row goes last: while it is there, it is found again after a crash, and its
			// side keys lead to something.
			for _, side := range sideKeys(row, s.sid) {
				keys = append(keys, side.key)
			}
			keys = append(keys, bytes.Clone(key))
			return nil
		}, j.passed(s.session))
		if err != nil {
			return nil, fmt.Errorf("look for rows: %w", err)
		}
	}
	lost, err := v.lostOf(s, j.passed(s.session))
	if err != nil {
		return nil, fmt.Errorf("look for damaged rows: %w", err)
	}
	return append(keys, lost...), nil
}

// lostOf finds what lists hold of a session though it leads to no row that can be read, and
// those rows before it. What no list names is left for verify.
func (v *view) lostOf(s stream, passed func(hole)) (keys [][]byte, err error) {
	for _, l := range []*listing{openInterrupts(), openInterruptsOf(s), timersDue()} {
		err := v.each(l.lower, func(key, _ []byte, _ error) error {
			_, err := l.open(v, key, nil)
			if err == nil {
				return nil
			}
			lost := l.name(v, key)
			if lost.Session != s.session {
				return nil
			}
			if !errors.Is(err, errMoved) {
				keys = append(keys, rowKey(lost.Key, s.sid))
			}
			keys = append(keys, bytes.Clone(key))
			return nil
		}, passed)
		if err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// passed tells of a hole that a deletion goes on behind: what is in it of the session, if
// anything, leads to nothing.
func (j *Journal) passed(session string) func(hole) {
	return func(h hole) {
		j.options.Logger.Error("stored data is damaged: a deletion cannot look for rows there", "session", session, "error", h.err())
	}
}

// removeKeys removes keys that no batch will write again.
func (j *Journal) removeKeys(ctx context.Context, keys [][]byte) error {
	return j.committer.Do(ctx, journal.Request{Alone: true, Stage: func() error {
		j.staged.begin(j.db)
		for _, key := range keys {
			_ = j.staged.batch.Delete(key, nil)
		}
		return nil
	}})
}

// finishDeletions finishes what a crash interrupted.
func (j *Journal) finishDeletions() error {
	var unfinished []stream
	v := j.current.Load()
	err := v.each(keyOf(tagUnfinished), func(key, value []byte, unreadable error) error {
		if unreadable != nil {
			j.passed("")(hole{from: key, to: key, cause: unreadable})
			return nil
		}
		unfinished = append(unfinished, stream{string(value), numberAt(key, 1)})
		return nil
	}, j.passed(""))
	for _, s := range unfinished {
		if err == nil {
			err = j.sweep(context.Background(), s)
		}
	}
	if err != nil {
		return fmt.Errorf("finish a deletion: %w", err)
	}
	return nil
}
