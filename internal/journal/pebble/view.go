package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	lsm "github.com/cockroachdb/pebble/v2"

	"github.com/mahati-host/mahati/internal/journal"
)

// view is what is published: a snapshot and the mark that belongs to it.
type view struct {
	db       *lsm.DB
	snapshot *lsm.Snapshot
	mark     journal.Mark
	users    atomic.Int64
	open     *sync.WaitGroup

	reading sync.Once
	named   map[uint64]string // see names
}

// newView counts its publisher as a user.
func newView(db *lsm.DB, mark journal.Mark, open *sync.WaitGroup) *view {
	open.Add(1)
	v := &view{db: db, snapshot: db.NewSnapshot(), mark: mark, open: open}
	v.users.Store(1)
	return v
}

// retain takes the view into use, unless its last user has gone.
func (v *view) retain() bool {
	for {
		users := v.users.Load()
		if users == 0 {
			return false
		}
		if v.users.CompareAndSwap(users, users+1) {
			return true
		}
	}
}

func (v *view) release() {
	if v.users.Add(-1) == 0 {
		_ = v.snapshot.Close()
		v.open.Done()
	}
}

// get reads a copy of a value; nil when there is none.
func (v *view) get(key []byte) ([]byte, error) {
	value, closer, err := v.snapshot.Get(key)
	if errors.Is(err, lsm.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	copied := append([]byte{}, value...)
	return copied, closer.Close()
}

// iterate goes over [lower, upper).
func (v *view) iterate(lower, upper []byte) (*lsm.Iterator, error) {
	return v.snapshot.NewIter(&lsm.IterOptions{LowerBound: lower, UpperBound: upper})
}

// each calls visit with the keys and values of a prefix, which are good until it returns,
// and lost with each hole among them. A value that cannot be read comes as an error, and
// those behind it follow.
func (v *view) each(prefix []byte, visit func(key, value []byte, unreadable error) error, lost func(hole)) error {
	return v.scan(prefix, after(prefix), false, func(it *lsm.Iterator) (bool, error) {
		value, unreadable := valueAt(it)
		err := visit(it.Key(), value, unreadable)
		return err == nil, err
	}, func(h hole) (bool, error) {
		lost(h)
		return true, nil
	})
}

// valueAt reads the value that the iterator stands on, until it moves on. Unlike
// ValueAndErr it leaves the iterator where it is when it cannot.
func valueAt(it *lsm.Iterator) ([]byte, error) {
	lazy := it.LazyValue()
	value, _, err := lazy.Value(nil)
	return value, err
}

// stream is a session that exists.
type stream struct {
	session string
	sid     uint64
}

// What a session's entry under its name says.
const (
	streamLive    = 0
	streamDeleted = 1
)

func encodeStream(sid uint64, state byte) []byte { return append(keyOf(state, sid)[1:], state) }

// stream finds a session by name.
func (v *view) stream(session string) (stream, error) {
	value, err := v.get(textKey(tagSession, session))
	switch {
	case err != nil:
		return stream{}, damaged(session, 0, err)
	case value == nil:
		return stream{}, fmt.Errorf("session %q: %w", session, journal.ErrNotFound)
	case len(value) != 9:
		return stream{}, damaged(session, 0, errors.New("entry of the session"))
	case value[8] == streamDeleted:
		return stream{}, fmt.Errorf("session %q: %w", session, journal.ErrDeleted)
	}
	return stream{session, numberAt(value, 0)}, nil
}

// errNoSession says that a sid was never given.
var errNoSession = errors.New("sid of no session")

// sessionOf finds the name of a sid, also of one deleted.
func (v *view) sessionOf(sid uint64) (string, error) {
	value, err := v.get(keyOf(tagSid, sid))
	if err == nil && value != nil {
		return string(value), nil
	}
	if err == nil {
		err = errNoSession
	} else if session, known := v.names()[sid]; known {
		return session, nil
	}
	return "", damaged("", 0, fmt.Errorf("sid %d: %w", sid, err))
}

// names are the sessions by their sids, as their own entries say: for when sessionOf cannot
// tell. Those whose entry cannot be read are not there.
func (v *view) names() map[uint64]string {
	v.reading.Do(func() {
		v.named = map[uint64]string{}
		_ = v.each([]byte{tagSession}, func(key, value []byte, unreadable error) error {
			if unreadable == nil && len(value) == 9 {
				v.named[numberAt(value, 0)] = string(key[1:])
			}
			return nil
		}, func(hole) {})
	})
	return v.named
}

// walk visits the batches of a session from the one that holds a sequence on,
// until visit says to stop. A batch and its bytes are good until visit returns; the
// texts of its records are for good.
// Damage comes with the sequence behind which the session can be read again.
func (v *view) walk(s stream, from uint64, visit func(*storedBatch) (bool, error)) error {
	err := v.walkUnbroken(s, from, visit)
	var damage *journal.DamagedError
	if errors.As(err, &damage) {
		damage.ResumeSequence = v.sequenceBehind(s, damage.Sequence)
	}
	return err
}

// sequenceBehind finds the sequence before the first batch of a session that begins behind
// another sequence; 0 if there is none.
func (v *view) sequenceBehind(s stream, damaged uint64) (sequence uint64) {
	if damaged == ^uint64(0) {
		return 0
	}
	_ = v.scan(batchKey(s.sid, damaged+1), batchEnd(s.sid), false, func(it *lsm.Iterator) (bool, error) {
		sequence = numberAt(it.Key(), 9) - 1
		return false, nil
	}, func(hole) (bool, error) { return true, nil }) // what the scan cannot pass has nothing behind it
	return sequence
}

func (v *view) walkUnbroken(s stream, from uint64, visit func(*storedBatch) (bool, error)) (err error) {
	it, err := v.iterate(batchKey(s.sid, 0), batchEnd(s.sid))
	if err != nil {
		return damaged(s.session, from, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	expect, valid := uint64(0), from > 0 && it.SeekLT(batchKey(s.sid, from+1))
	if !valid {
		expect, valid = 1, it.First()
	}
	var b storedBatch
	for ; valid; valid = it.Next() {
		first := numberAt(it.Key(), 9)
		if expect != 0 && first != expect {
			return damaged(s.session, expect, errors.New("batch is missing"))
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return damaged(s.session, first, err)
		}
		if err := b.open(value, s, first); err != nil {
			return err
		}
		if more, err := visit(&b); err != nil || !more {
			return err
		}
		expect = b.last() + 1
	}
	if err := it.Error(); err != nil {
		return damaged(s.session, max(expect, from), err)
	}
	return nil
}

// readBatch reads the batch that the iterator stands on, for good.
func readBatch(it *lsm.Iterator, s stream, first uint64) (*storedBatch, error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return nil, damaged(s.session, first, err)
	}
	return openBatch(bytes.Clone(value), s, first)
}

// openBatch decodes a stored batch and holds it to its place.
func openBatch(value []byte, s stream, first uint64) (*storedBatch, error) {
	b := &storedBatch{}
	return b, b.open(value, s, first)
}

func (b *storedBatch) open(value []byte, s stream, first uint64) error {
	err := b.decode(value)
	if err == nil {
		err = b.standsAt(s, first)
	}
	if err != nil {
		return damaged(s.session, first, err)
	}
	for i := range b.records {
		b.records[i].Session = s.session
	}
	return nil
}

// standsAt holds a batch to its place.
func (h *batchHeader) standsAt(s stream, first uint64) error {
	if h.sid != s.sid || h.firstSequence != first {
		return fmt.Errorf("batch %d of sid %d stands here", h.firstSequence, h.sid)
	}
	return nil
}

// lastBatch reads the last batch of a session, nil when it has no facts.
func (v *view) lastBatch(s stream) (b *storedBatch, err error) {
	err = v.atLast(s, func(it *lsm.Iterator, first uint64) error {
		b, err = readBatch(it, s, first)
		return err
	})
	return b, err
}

// lastHeader reads no more than the header of the last batch, nil when the session has
// no facts.
func (v *view) lastHeader(s stream) (h *batchHeader, err error) {
	err = v.atLast(s, func(it *lsm.Iterator, first uint64) error {
		value, err := it.ValueAndErr()
		if err == nil {
			h = &batchHeader{}
			_, err = h.decode(value)
		}
		if err == nil {
			err = h.standsAt(s, first)
		}
		if err != nil {
			return damaged(s.session, first, err)
		}
		return nil
	})
	return h, err
}

// atLast calls read where the last batch of a session stands, unless it has none.
func (v *view) atLast(s stream, read func(it *lsm.Iterator, first uint64) error) (err error) {
	it, err := v.iterate(batchKey(s.sid, 0), batchEnd(s.sid))
	if err != nil {
		return damaged(s.session, 0, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if it.Last() {
		return read(it, numberAt(it.Key(), 9))
	}
	if err := it.Error(); err != nil {
		return damaged(s.session, 0, err)
	}
	return nil
}

// markBefore finds the newest mark of a span with a number below a limit. It
// reports false when there is none.
func (v *view) markBefore(s stream, sp span, limit uint64) (number, sequence uint64, found bool, err error) {
	prefix := markPrefix(s.sid, sp)
	it, err := v.iterate(prefix, markKey(s.sid, sp, lastMark))
	if err != nil {
		return 0, 0, false, damaged(s.session, 0, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.SeekLT(markKey(s.sid, sp, limit)) && !it.First() {
		if err := it.Error(); err != nil {
			return 0, 0, false, damaged(s.session, 0, err)
		}
		return 0, 0, false, nil
	}
	value, err := it.ValueAndErr()
	if err == nil {
		sequence, err = decodeMark(value)
	}
	if err != nil {
		return 0, 0, false, damaged(s.session, 0, fmt.Errorf("mark of %s: %w", sp.id, err))
	}
	return numberAt(it.Key(), len(prefix)), sequence, true, nil
}

// spanLimit is the sequence at which the facts of a span end, if another span
// has taken its place.
func (v *view) spanLimit(s stream, sp span) (uint64, error) {
	value, err := v.get(markKey(s.sid, sp, lastMark))
	if err == nil && value == nil {
		return ^uint64(0), nil
	}
	var limit uint64
	if err == nil {
		limit, err = decodeMark(value)
	}
	if err != nil {
		return 0, damaged(s.session, 0, fmt.Errorf("end of %s: %w", sp.id, err))
	}
	return limit, nil
}

// spanEnd finds how far a span has come.
func (v *view) spanEnd(s stream, sp span) (spanEnd, error) {
	number, sequence, found, err := v.markBefore(s, sp, lastMark)
	if err != nil || !found {
		return spanEnd{}, err
	}
	limit, err := v.spanLimit(s, sp)
	if err != nil {
		return spanEnd{}, err
	}
	end := spanEnd{number: number, mark: number}
	err = v.walk(s, sequence, func(b *storedBatch) (bool, error) {
		for i := range b.records {
			r := &b.records[i]
			if r.Sequence < sequence || r.Sequence >= limit {
				continue
			}
			for _, place := range spansOf(r) {
				if place.span == sp {
					end.number = place.last
				}
			}
		}
		return b.last() < limit-1, nil
	})
	return end, err
}

// row reads a row, nil for none.
func (v *view) row(key journal.Key, sid uint64) (journal.Row, error) {
	value, err := v.get(rowKey(key, sid))
	if err != nil || value == nil {
		return nil, err
	}
	row, err := journal.DecodeRow(value)
	if err != nil {
		return nil, err
	}
	if row.Key() != key {
		return nil, fmt.Errorf("%s stands here", row.Key())
	}
	return row, nil
}

func damaged(session string, sequence uint64, cause error) error {
	return &journal.DamagedError{Session: session, Sequence: sequence, Cause: cause}
}
