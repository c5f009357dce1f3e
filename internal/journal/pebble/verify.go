package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"

	lsm "github.com/cockroachdb/pebble/v2"

	"github.com/mahati-host/mahati/internal/journal"
)

// Verify implements journal.Keeper: it walks the view published when it was
// called, beside writers.
func (j *Journal) Verify(ctx context.Context, options journal.VerifyOptions) (journal.Report, error) {
	v, err := j.use(ctx)
	if err != nil {
		return journal.Report{}, err
	}
	defer v.release()
	c := &check{
		ctx: ctx, view: v, Verifier: journal.NewVerifier(j.identity, options),
		heads: map[string]uint64{}, sids: map[uint64]stream{}, bad: map[groupEntry]bool{}, seed: maphash.MakeSeed(),
	}
	for _, step := range []func() error{c.sessions, c.strays, c.groups, c.rows, c.sides} {
		if err := step(); err != nil {
			return journal.Report{}, fmt.Errorf("verify: %w", err)
		}
	}
	return c.Report(v.mark), nil
}

// check is one Verify. Its steps return an error only for a context that ended;
// what they find goes into the report.
type check struct {
	*journal.Verifier
	ctx  context.Context
	view *view

	heads map[string]uint64 // of live sessions
	sids  map[uint64]stream // session "" for one deleted
	// bad are the batches already reported; only place and session are set.
	bad map[groupEntry]bool
	// prints is the sum of the fingerprints of all batches found in sessions,
	// less that of all found in groups: 0 when both are the same.
	seed   maphash.Seed
	prints uint64
}

func (c *check) found(code journal.ProblemCode, session string, sequence uint64, format string, args ...any) {
	c.Problem(journal.Problem{Code: code, Session: session, Sequence: sequence, Detail: fmt.Sprintf(format, args...)})
}

// each visits a prefix; what cannot be read is reported.
func (c *check) each(prefix []byte, visit func(key, value []byte)) error {
	err := c.view.each(prefix, func(key, value []byte, unreadable error) error {
		if unreadable != nil {
			c.found(journal.ProblemDamaged, c.sessionOfKey(key), 0, "value at %q: %v", key, unreadable)
		} else {
			visit(key, value)
		}
		return c.ctx.Err()
	}, c.hole)
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	if err != nil {
		c.found(journal.ProblemDamaged, "", 0, "keys at %q: %v", prefix, err)
	}
	return nil
}

// hole reports what cannot be read: of each session that may have something there, as far as
// its keys tell, else of none.
func (c *check) hole(h hole) {
	c.found(journal.ProblemDamaged, "", 0, "%v", h.err())
	if bytes.IndexByte(tagsOfSid, h.from[0]) < 0 {
		return
	}
	_ = c.view.sessionsIn(c.ctx, h, h.from[:1], lastInSession, false, func(key []byte) bool {
		if sid := numberAt(key, 1); !c.view.gone(sid) {
			session, _ := c.view.sessionOf(sid)
			c.found(journal.ProblemDamaged, session, 0, "may have had something under %q, which cannot be read", key[:1])
		}
		return true
	})
}

func (c *check) sessions() error {
	var err error
	each := c.each([]byte{tagSession}, func(key, value []byte) {
		session := string(key[1:])
		if len(value) != 9 {
			c.found(journal.ProblemDamaged, session, 0, "entry of the session holds %x", value)
			return
		}
		s := stream{session, numberAt(value, 0)}
		if named, e := c.view.sessionOf(s.sid); e != nil || named != session {
			c.found(journal.ProblemOrder, session, 0, "sid %d is of %q: %v", s.sid, named, e)
		}
		if value[8] == streamDeleted {
			c.sids[s.sid] = stream{}
			c.Tombstone()
			return
		}
		c.sids[s.sid] = s
		if err == nil {
			err = c.walkSession(s)
		}
	})
	return errors.Join(err, each)
}

// walkSession walks the batches of one session, over those that are damaged too.
func (c *check) walkSession(s stream) error {
	w := &sessionWalk{check: c, stream: s, records: c.Session(s.session), spans: newTracker(s.sid), marks: map[string]string{}}
	err := c.view.scan(batchKey(s.sid, 0), batchEnd(s.sid), false, func(it *lsm.Iterator) (bool, error) {
		w.batch(it)
		return c.ctx.Err() == nil, nil
	}, func(h hole) (bool, error) {
		c.found(journal.ProblemDamaged, s.session, w.records.Sequence()+1, "%v", h.err())
		w.records.Hole(w.records.Sequence())
		w.unknown = true
		return c.ctx.Err() == nil, nil
	})
	if err != nil {
		c.found(journal.ProblemDamaged, s.session, w.records.Sequence()+1, "%v", err)
		w.records.Hole(w.records.Sequence())
	}
	c.heads[s.session] = w.records.Sequence()
	w.compareMarks()
	w.records.Finish(func(key journal.Key) (journal.Row, error) {
		sid := uint64(0)
		if key.Session != "" {
			sid = s.sid
		}
		return c.view.row(key, sid)
	})
	return c.ctx.Err()
}

// sessionWalk is the walk over one session.
type sessionWalk struct {
	*check
	stream
	records *journal.SessionCheck
	spans   *tracker
	marks   map[string]string // as the facts say
	hash    chainHash
	unknown bool // the batch before could not be read, nor so its hash
}

func (w *sessionWalk) batch(it *lsm.Iterator) {
	first := numberAt(it.Key(), 9)
	w.Batch()
	if first != w.records.Sequence()+1 && !w.unknown {
		w.found(journal.ProblemGap, w.session, first, "batch follows sequence %d", w.records.Sequence())
		w.unknown = true
	}
	if w.unknown {
		w.records.Hole(first - 1)
	}
	value, err := valueAt(it)
	b := &storedBatch{}
	if err == nil {
		err = b.open(bytes.Clone(value), w.stream, first)
	}
	if err != nil {
		w.found(journal.ProblemDamaged, w.session, first, "%v", err)
		w.bad[groupEntry{sid: w.sid, firstSequence: first}] = true
		w.records.Hole(first)
		w.unknown = true
		return
	}
	if b.previous != w.hash && !w.unknown {
		w.found(journal.ProblemChain, w.session, first, "the batch before has another hash")
	}
	w.hash, w.unknown = b.hash(), false
	w.prints += w.fingerprint(b.firstOffset, b.firstEvent, groupEntry{b.sid, first, uint64(b.count), b.events()})
	for i := range b.records {
		w.records.Record(b.records[i])
		w.spans.observe(&b.records[i],
			func(key, value []byte) { w.marks[string(key)] = string(value) },
			func(key []byte) { delete(w.marks, string(key)) })
	}
}

// compareMarks compares the marks of a session with those its facts say.
func (w *sessionWalk) compareMarks() {
	if w.records.Holed() || w.ctx.Err() != nil {
		return
	}
	compare := func(key, value []byte) {
		if want, ok := w.marks[string(key)]; !ok || want != string(value) {
			w.found(journal.ProblemInterval, w.session, 0, "mark %q leads to %x, the facts say %x", key, value, want)
		}
		delete(w.marks, string(key))
	}
	_ = w.each(keyOf(tagMark, w.sid), compare)
	_ = w.each(keyOf(tagCurrent, w.sid), compare)
	for key := range w.marks {
		w.found(journal.ProblemInterval, w.session, 0, "mark %q is missing", key)
	}
}

// strays looks for what stands under a sid of no live session.
func (c *check) strays() error {
	for _, tag := range []byte{tagBatch, tagMark, tagCurrent} {
		it, err := c.view.iterate([]byte{tag}, []byte{tag + 1})
		if err != nil {
			c.found(journal.ProblemDamaged, "", 0, "%v", err)
			continue
		}
		for valid := it.First(); valid && c.ctx.Err() == nil; {
			sid := numberAt(it.Key(), 1)
			if c.sids[sid].session == "" {
				c.found(journal.ProblemDangling, "", 0, "key %q of no session", it.Key())
			}
			valid = it.SeekGE(keyOf(tag, sid+1))
		}
		if err := errors.Join(it.Error(), it.Close()); err != nil {
			c.found(journal.ProblemDamaged, "", 0, "%v", err)
		}
	}
	return c.ctx.Err()
}

func (c *check) fingerprint(offset, event uint64, e groupEntry) uint64 {
	type place struct {
		offset, event uint64
		entry         groupEntry
	}
	return maphash.Comparable(c.seed, place{offset, event, e})
}

// groups holds the order of the whole store to be dense, and to be that of the
// sessions. Only when their sums differ is each batch looked for.
func (c *check) groups() error {
	offset, event := uint64(1), c.firstEvent()
	var events uint64
	err := c.each([]byte{tagGroup}, func(key, value []byte) {
		g, err := decodeGroup(value)
		if err != nil {
			c.found(journal.ProblemDamaged, "", 0, "group at offset %d: %v", numberAt(key, 1), err)
			return
		}
		if g.firstOffset != numberAt(key, 1) || g.firstOffset != offset || g.firstEvent != event {
			c.found(journal.ProblemGap, "", 0, "group at offset %d has offset %d and event %d, due are %d and %d",
				numberAt(key, 1), g.firstOffset, g.firstEvent, offset, event)
		}
		c.countGroup(g)
		if offset, event = g.end(); event > g.firstEvent {
			events++
			c.eventKey(g)
		}
	})
	if err != nil {
		return err
	}
	if mark := c.view.mark; offset != mark.Offset+1 || event != mark.Event+1 {
		c.found(journal.ProblemGap, "", 0, "groups end before offset %d and event %d, the store at %+v", offset, event, mark)
	}
	if err := c.each([]byte{tagEvent}, func(_, _ []byte) { events-- }); err != nil {
		return err
	}
	if events != 0 {
		c.found(journal.ProblemDangling, "", 0, "%d event keys of no group", -int64(events))
	}
	if c.prints != 0 {
		return c.compareOrders()
	}
	return nil
}

// firstEvent is the event number with which the store's groups begin.
func (c *check) firstEvent() uint64 {
	identity, err := c.view.identity()
	if err == nil {
		if known, err := decodeIdentity(identity); err == nil {
			return known.FirstEvent
		}
	}
	c.found(journal.ProblemDamaged, "", 0, "identity of the store: %v", err)
	return 0
}

func (c *check) countGroup(g *storedGroup) {
	offset, event := g.firstOffset, g.firstEvent
	for _, e := range g.entries {
		s, known := c.sids[e.sid]
		if !known {
			c.found(journal.ProblemDangling, "", 0, "group at offset %d names sid %d of no session", g.firstOffset, e.sid)
		}
		if s.session != "" {
			c.prints -= c.fingerprint(offset, event, e)
		}
		offset, event = offset+e.facts, event+e.events
	}
}

func (c *check) eventKey(g *storedGroup) {
	value, err := c.view.get(keyOf(tagEvent, g.firstEvent))
	offset, decodeErr := decodeMark(value)
	if err != nil || decodeErr != nil || offset != g.firstOffset {
		c.found(journal.ProblemOrder, "", 0, "event %d does not lead to offset %d", g.firstEvent, g.firstOffset)
	}
}

// compareOrders finds where sessions and groups disagree.
func (c *check) compareOrders() error {
	listed := map[groupEntry]bool{}
	err := c.each([]byte{tagGroup}, func(_, value []byte) {
		g, err := decodeGroup(value)
		if err != nil {
			return
		}
		offset := g.firstOffset
		for _, e := range g.entries {
			place := groupEntry{sid: e.sid, firstSequence: e.firstSequence}
			listed[place] = true
			if s := c.sids[e.sid]; s.session != "" && !c.bad[place] {
				if _, err := c.view.batchOf(c.sids, e, offset); err != nil {
					c.found(journal.ProblemOrder, s.session, e.firstSequence, "offset %d: %v", offset, err)
				}
			}
			offset += e.facts
		}
	})
	if err != nil {
		return err
	}
	return c.each([]byte{tagBatch}, func(key, _ []byte) {
		place := groupEntry{sid: numberAt(key, 1), firstSequence: numberAt(key, 9)}
		if !listed[place] {
			c.found(journal.ProblemOrder, c.sids[place.sid].session, place.firstSequence, "batch is in no group")
		}
	})
}
