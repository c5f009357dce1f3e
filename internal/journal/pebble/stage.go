package pebble

import (
	"context"
	"fmt"
	"slices"
	"time"

	lsm "github.com/cockroachdb/pebble/v2"

	"github.com/mahati-host/mahati/internal/journal"
)

// group is what is staged on top of the published view.
type group struct {
	batch   *lsm.Batch // nil while nothing is staged
	mark    journal.Mark
	nextSid uint64
	// sids is nextSid before the group, for Discard.
	sids  uint64
	tails map[string]*tail
	rows  map[journal.Key]journal.Row // nil: removed
	order storedGroup
	bytes int
}

// begin makes the group ready for its first request.
func (g *group) begin(db *lsm.DB) {
	if g.batch != nil {
		return
	}
	g.batch = db.NewBatch()
	g.sids = g.nextSid
	g.tails = map[string]*tail{}
	g.rows = map[journal.Key]journal.Row{}
	g.order = storedGroup{firstOffset: g.mark.Offset + 1, firstEvent: g.mark.Event + 1}
	g.bytes = 0
}

func (g *group) discard() {
	if g.batch != nil {
		_ = g.batch.Close()
		g.batch, g.nextSid = nil, g.sids
		g.tails, g.rows = nil, nil
	}
}

// Admit implements journal.Appender.
func (j *Journal) Admit(closing bool) error {
	if j.current.Load() == nil {
		return journal.ErrClosed
	}
	if err := j.committer.Err(); err != nil {
		return err
	}
	return j.gate.Admit(closing)
}

// Append implements journal.Appender.
func (j *Journal) Append(ctx context.Context, batch journal.Batch) (journal.Receipt, error) {
	size, err := batch.Validate()
	if err != nil {
		return journal.Receipt{}, fmt.Errorf("append to %q: %w", batch.Session, err)
	}
	var body batchBody
	if len(batch.Facts) > 0 {
		body = encodeBody(batch.Facts)
	}
	var receipt journal.Receipt
	err = j.committer.Do(ctx, journal.Request{
		Facts: len(batch.Facts),
		Bytes: size,
		Stage: func() (err error) {
			receipt, err = j.stageBatch(batch, body)
			return err
		},
	})
	if err != nil {
		return journal.Receipt{}, fmt.Errorf("append to %q: %w", batch.Session, err)
	}
	receipt.UpTo = j.Durable()
	return receipt, nil
}

// AcquireTerm implements journal.Appender.
func (j *Journal) AcquireTerm(ctx context.Context, session string) (journal.Term, error) {
	if err := journal.SessionKey(session).Validate(); err != nil {
		return 0, err
	}
	var term journal.Term
	err := j.committer.Do(ctx, journal.Request{ReadOnly: true, Stage: func() error {
		t, err := j.tail(session)
		if err != nil {
			return err
		}
		if t.deleted {
			return journal.ErrDeleted
		}
		term = j.terms.Give(session)
		return nil
	}})
	if err != nil {
		return 0, fmt.Errorf("acquire a term of %q: %w", session, err)
	}
	return term, nil
}

// ReleaseTerm implements journal.Appender.
func (j *Journal) ReleaseTerm(session string, term journal.Term) { j.terms.Release(session, term) }

// plan is a batch that has been checked, with everything it will write.
type plan struct {
	tail    *tail
	mark    journal.Mark
	receipt journal.Receipt
	header  batchHeader
	entries []change
	rows    map[journal.Key]journal.Row
}

// change is one write; a removal has remove set.
type change struct {
	entry
	remove bool
}

func (p *plan) set(key, value []byte) {
	p.entries = append(p.entries, change{entry: entry{key, value}})
}
func (p *plan) remove(key []byte) {
	p.entries = append(p.entries, change{entry: entry{key: key}, remove: true})
}

// stageBatch checks a batch against what is published and staged, numbers it
// and adds it to the group. Until all is checked the group is left alone.
func (j *Journal) stageBatch(batch journal.Batch, body batchBody) (journal.Receipt, error) {
	if err := j.gate.Admit(batch.Closing); err != nil {
		return journal.Receipt{}, err
	}
	t, err := j.expect(batch.Session, batch.ExpectHead, batch.ExpectTerm)
	if err != nil {
		return journal.Receipt{}, err
	}
	for i, condition := range batch.Conditions {
		if err := journal.CheckCondition(i, condition, j.rowAt); err != nil {
			return journal.Receipt{}, err
		}
	}
	j.staged.begin(j.db)
	p := &plan{tail: t, mark: j.staged.mark}
	if !t.exists {
		t.sid, t.exists = j.staged.nextSid, true
		t.spans.sid = t.sid
		p.set(textKey(tagSession, batch.Session), encodeStream(t.sid, streamLive))
		p.set(keyOf(tagSid, t.sid), []byte(batch.Session))
	}
	if err := j.number(p, batch); err != nil {
		return journal.Receipt{}, err
	}
	if err := j.planRows(p, batch.Changes); err != nil {
		return journal.Receipt{}, err
	}
	j.keep(p, body)
	return p.receipt, nil
}

// expect fences off owners that know less than the store.
func (j *Journal) expect(session string, head uint64, term journal.Term) (*tail, error) {
	t, err := j.tail(session)
	if err != nil {
		return nil, err
	}
	if t.deleted {
		return nil, journal.ErrDeleted
	}
	if newest := j.terms.Newest(session); t.head != head || newest != term {
		return nil, &journal.ConflictError{
			Session: session, ExpectHead: head, Head: t.head, ExpectTerm: term, NewestTerm: newest,
		}
	}
	return t, nil
}

// number gives the facts their places and marks their spans.
func (j *Journal) number(p *plan, batch journal.Batch) error {
	p.receipt.FirstLogs = make([]uint64, len(batch.Facts))
	if len(batch.Facts) == 0 {
		return nil
	}
	p.receipt.FirstSequence, p.receipt.FirstOffset = p.tail.head+1, p.mark.Offset+1
	p.header = batchHeader{
		sid:           p.tail.sid,
		firstSequence: p.receipt.FirstSequence,
		firstOffset:   p.receipt.FirstOffset,
		firstEvent:    p.mark.Event + 1,
		time:          time.UnixMicro(batch.Time.UnixMicro()).UTC(),
		previous:      p.tail.hash,
		count:         len(batch.Facts),
	}
	var logs []string
	for i := range batch.Facts {
		f := &batch.Facts[i]
		r := journal.Record{Fact: *f, Sequence: p.tail.head + 1}
		if err := j.follow(p.tail, &r); err != nil {
			return fmt.Errorf("fact %d: %w", i, err)
		}
		if f.LogCount > 0 && !slices.Contains(logs, f.LogRun) {
			logs = append(logs, f.LogRun)
			p.header.firstLogs = append(p.header.firstLogs, r.FirstLog)
		}
		if f.EventCount > 0 && p.receipt.FirstEvent == 0 {
			p.receipt.FirstEvent = p.mark.Event + 1
		}
		p.receipt.FirstLogs[i] = r.FirstLog
		p.tail.spans.observe(&r, p.set, p.remove)
		p.tail.head++
		p.mark.Offset++
		p.mark.Event += uint64(f.EventCount)
	}
	return nil
}

// follow holds a fact to be the next of its run and workflow and gives it its
// first log number.
func (j *Journal) follow(t *tail, r *journal.Record) error {
	for _, place := range spansOf(r) {
		if place.id == "" {
			continue
		}
		end, err := t.end(j.current.Load(), place.span)
		if err != nil {
			return err
		}
		switch place.kind {
		case spanLog:
			r.FirstLog = end.number + 1
		case spanRun:
			err = journal.CheckNext("run", place.id, end.number, place.first)
		case spanWorkflow:
			err = journal.CheckNext("workflow", place.id, end.number, place.first)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
