package pebble

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	lsm "github.com/cockroachdb/pebble/v2"

	"github.com/mahati-host/mahati/internal/journal"
)

// Head implements journal.Reader.
func (j *Journal) Head(ctx context.Context, session string) (journal.Head, error) {
	v, err := j.use(ctx)
	if err != nil {
		return journal.Head{}, err
	}
	defer v.release()
	s, err := v.stream(session)
	if err != nil {
		return journal.Head{}, err
	}
	last, err := v.lastHeader(s)
	if err != nil || last == nil {
		return journal.Head{}, err
	}
	return journal.Head{
		Sequence: last.last(),
		Offset:   last.firstOffset + uint64(last.count) - 1,
		Time:     last.time,
	}, nil
}

// Find implements journal.Reader.
func (j *Journal) Find(ctx context.Context, session, eventID string) (journal.Record, error) {
	v, err := j.use(ctx)
	if err != nil {
		return journal.Record{}, err
	}
	defer v.release()
	s, err := v.stream(session)
	if err != nil {
		return journal.Record{}, err
	}
	sequence, ok := journal.SequenceOfEventID(eventID)
	if !ok {
		return journal.Record{}, notThere(session, eventID)
	}
	var found journal.Record
	err = v.walk(s, sequence, func(b *storedBatch) (bool, error) {
		if sequence >= b.firstSequence && sequence <= b.last() {
			found = b.records[sequence-b.firstSequence]
			found.Bytes = bytes.Clone(found.Bytes)
		}
		return false, nil
	})
	if err != nil {
		return journal.Record{}, err
	}
	if found.EventID != eventID {
		return journal.Record{}, notThere(session, eventID)
	}
	return found, nil
}

func notThere(session, eventID string) error {
	return fmt.Errorf("event %q of %q: %w", eventID, session, journal.ErrNotFound)
}

// Read implements journal.Reader.
func (j *Journal) Read(ctx context.Context, order journal.Order, page journal.Page) (journal.Chunk, error) {
	return journal.ReadPage(ctx, j, order, page)
}

// Scan implements journal.Reader. Damage behind the first record of a page ends
// the page; the next one meets it first.
func (j *Journal) Scan(ctx context.Context, order journal.Order, page journal.Page, visit func(*journal.Record)) (more bool, err error) {
	v, err := j.use(ctx)
	if err != nil {
		return false, err
	}
	defer v.release()
	r := &reading{ctx: ctx, view: v, filler: journal.NewFiller(page, visit)}
	err = r.read(order)
	if errors.Is(err, journal.ErrDamaged) && r.filler.Count() > 0 {
		return true, nil
	}
	return r.filler.More(), err
}

// reading is one Scan.
type reading struct {
	ctx    context.Context
	view   *view
	filler *journal.Filler
}

func (r *reading) read(order journal.Order) error {
	switch o := order.(type) {
	case journal.BySession:
		return r.session(o.Session, o.After)
	case journal.ByRun:
		return r.span(o.Session, span{spanRun, o.RootRunID}, o.After)
	case journal.ByWorkflow:
		return r.span(o.Session, span{spanWorkflow, o.WorkflowID}, o.After)
	case journal.ByLog:
		return r.span(o.Session, span{spanLog, o.LogRun}, o.After)
	case journal.ByOffset:
		return r.offsets(o.After)
	case journal.ByEvent:
		return r.events(o.After)
	default:
		return fmt.Errorf("%w: order %T", journal.ErrInvalid, order)
	}
}

func (r *reading) session(session string, after uint64) error {
	s, err := r.view.stream(session)
	if err != nil || after == ^uint64(0) {
		return err
	}
	return r.view.walk(s, after+1, func(b *storedBatch) (bool, error) {
		return r.add(b, func(record *journal.Record) bool { return record.Sequence > after })
	})
}

// add offers the wanted records of a batch; it reports false when the page is
// full.
func (r *reading) add(b *storedBatch, wanted func(*journal.Record) bool) (bool, error) {
	for i := range b.records {
		if wanted(&b.records[i]) && !r.filler.Add(&b.records[i]) {
			return false, nil
		}
	}
	return true, r.ctx.Err()
}

func (r *reading) span(session string, sp span, after uint64) error {
	s, err := r.view.stream(session)
	if err != nil || after >= lastMark-2 {
		return err
	}
	_, from, found, err := r.view.markBefore(s, sp, after+2)
	if err != nil || !found {
		return err
	}
	limit, err := r.view.spanLimit(s, sp)
	if err != nil {
		return err
	}
	return r.view.walk(s, from, func(b *storedBatch) (bool, error) {
		more, err := r.add(b, func(record *journal.Record) bool {
			for _, place := range spansOf(record) {
				if place.span == sp {
					return place.last > after && record.Sequence < limit
				}
			}
			return false
		})
		return more && b.last() < limit-1, err
	})
}

func (r *reading) offsets(after uint64) error {
	if after >= r.view.mark.Offset {
		return nil
	}
	return r.groups(after+1, func(e groupEntry, offset, _ uint64) bool { return offset+e.facts-1 > after },
		func(record *journal.Record) bool { return record.Offset > after })
}

func (r *reading) events(after uint64) error {
	if after >= r.view.mark.Event {
		return nil
	}
	from, err := r.groupOfEvent(after + 1)
	if err != nil || from == 0 {
		return err
	}
	return r.groups(from, func(e groupEntry, _, event uint64) bool { return e.events > 0 && event+e.events-1 > after },
		func(record *journal.Record) bool {
			return record.EventCount > 0 && record.FirstEvent+uint64(record.EventCount)-1 > after
		})
}

// groupOfEvent finds the first offset of the group that has an event number, or
// of the first group with a later one.
func (r *reading) groupOfEvent(event uint64) (offset uint64, err error) {
	prefix := keyOf(tagEvent)
	it, err := r.view.iterate(prefix, after(prefix))
	if err != nil {
		return 0, damaged("", 0, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.SeekLT(keyOf(tagEvent, event+1)) && !it.First() {
		return 0, it.Error()
	}
	value, err := it.ValueAndErr()
	if err != nil {
		return 0, damaged("", 0, err)
	}
	return decodeMark(value)
}

// groups goes through commit groups from the one that has an offset on, and
// reads the batches that are wanted.
func (r *reading) groups(
	from uint64, wantedBatch func(e groupEntry, offset, event uint64) bool, wanted func(*journal.Record) bool,
) (err error) {
	it, err := r.view.iterate(keyOf(tagGroup), keyOf(tagGroup, lastNumber))
	if err != nil {
		return damaged("", 0, err)
	}
	defer func() { _ = it.Close() }() // its error is dealt with
	sessions := map[uint64]stream{}
	due, valid := uint64(0), it.SeekLT(keyOf(tagGroup, from+1))
	if err := it.Error(); !valid && err == nil {
		due, valid = 1, it.First()
	}
	visit := func(g *storedGroup) (bool, error) {
		offset, event := g.firstOffset, g.firstEvent
		if due != 0 && offset != due {
			return false, behind(g, fmt.Errorf("group at offset %d is missing", due))
		}
		for _, e := range g.entries {
			if wantedBatch(e, offset, event) {
				if more, err := r.groupBatch(sessions, e, offset, event, wanted); err != nil || !more {
					return false, err
				}
			}
			offset, event = offset+e.facts, event+e.events
		}
		due = offset
		return true, nil
	}
	for ; valid; valid = it.Next() {
		g, err := readGroup(it)
		if err != nil {
			return behindGroup(it, err)
		}
		if more, err := visit(g); err != nil || !more {
			return err
		}
	}
	if err := it.Error(); err == nil {
		return nil
	}
	return r.groupsInHole(cmp.Or(due, from), visit)
}

// groupsInHole goes on from a group to the next where no iterator can stand: groups that are
// newer than the hole can be had one by one.
func (r *reading) groupsInHole(at uint64, visit func(*storedGroup) (bool, error)) error {
	var cause error
	for at <= r.view.mark.Offset {
		value, err := r.view.get(keyOf(tagGroup, at))
		if err == nil && value == nil {
			err = fmt.Errorf("no group at offset %d", at)
		}
		var g *storedGroup
		if err == nil {
			g, err = decodeGroup(value)
		}
		if cause = err; err != nil {
			break
		}
		if more, err := visit(g); err != nil || !more {
			return err
		}
		at, _ = g.end()
	}
	if cause == nil {
		return nil
	}
	resume := &journal.DamagedError{ResumeOffset: r.view.mark.Offset, ResumeEvent: r.view.mark.Event, Cause: cause}
	h := r.view.hole(keyOf(tagGroup, at), keyOf(tagGroup, lastNumber), false)
	it, err := r.view.iterate(h.to, keyOf(tagGroup, lastNumber))
	if err != nil {
		return resume
	}
	defer func() { _ = it.Close() }()
	if it.First() {
		if g, err := readGroup(it); err == nil {
			return behind(g, cause)
		}
	}
	return resume
}

// behindGroup says where to go on behind a group that cannot be read: at the
// next one.
func behindGroup(it *lsm.Iterator, err error) error {
	if it.Next() {
		if g, next := readGroup(it); next == nil {
			return behind(g, err)
		}
	}
	return err
}

func behind(g *storedGroup, cause error) error {
	return &journal.DamagedError{ResumeOffset: g.firstOffset - 1, ResumeEvent: g.firstEvent - 1, Cause: cause}
}

func (r *reading) groupBatch(
	sessions map[uint64]stream, e groupEntry, offset, event uint64, wanted func(*journal.Record) bool,
) (bool, error) {
	b, err := r.view.batchOf(sessions, e, offset)
	if err != nil {
		var damage *journal.DamagedError
		if errors.As(err, &damage) {
			damage.ResumeOffset, damage.ResumeEvent = offset+e.facts-1, event+e.events-1
		}
		return false, err
	}
	if b == nil {
		return true, r.ctx.Err()
	}
	return r.add(b, wanted)
}

// batchOf reads the batch of a group's entry, nil when its session was deleted.
func (v *view) batchOf(sessions map[uint64]stream, e groupEntry, offset uint64) (*storedBatch, error) {
	s, known := sessions[e.sid]
	if !known {
		session, err := v.sessionOf(e.sid)
		if err != nil {
			return nil, err
		}
		s, err = v.stream(session)
		switch {
		case errors.Is(err, journal.ErrDeleted):
			s = stream{} // no session has sid 0
		case err != nil:
			return nil, err
		}
		sessions[e.sid] = s
	}
	if s.sid == 0 {
		return nil, nil
	}
	value, err := v.get(batchKey(e.sid, e.firstSequence))
	if err == nil && value == nil {
		err = errors.New("batch is missing")
	}
	if err != nil {
		return nil, damaged(s.session, e.firstSequence, err)
	}
	b, err := openBatch(value, s, e.firstSequence)
	if err == nil && (b.firstOffset != offset || uint64(b.count) != e.facts) {
		err = damaged(s.session, e.firstSequence, fmt.Errorf("batch has offset %d, its group says %d", b.firstOffset, offset))
	}
	return b, err
}

// readGroup reads the group that the iterator stands on.
func readGroup(it *lsm.Iterator) (*storedGroup, error) {
	value, err := it.ValueAndErr()
	var g *storedGroup
	if err == nil {
		g, err = decodeGroup(value)
	}
	if err == nil && g.firstOffset != numberAt(it.Key(), 1) {
		err = fmt.Errorf("group of offset %d stands here", g.firstOffset)
	}
	if err != nil {
		return nil, damaged("", 0, fmt.Errorf("group at offset %d: %w", numberAt(it.Key(), 1), err))
	}
	return g, nil
}
