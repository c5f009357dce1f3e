package pebble

import (
	"fmt"

	lsm "github.com/cockroachdb/pebble/v2"

	"github.com/mahati-host/mahati/internal/journal"
)

// keep adds a checked batch to the group. It cannot fail.
func (j *Journal) keep(p *plan, body batchBody) {
	g := &j.staged
	if p.tail.sid == g.nextSid {
		g.nextSid++
	}
	for _, c := range p.entries {
		if c.remove {
			_ = g.batch.Delete(c.key, nil)
		} else {
			_ = g.batch.Set(c.key, c.value, nil)
		}
	}
	for key, row := range p.rows {
		g.rows[key] = row
	}
	if p.header.count > 0 {
		g.keepFacts(p, body)
	}
	g.tails[p.tail.session] = p.tail
	g.mark = p.mark
}

// keepFacts writes the stored batch straight into the group's memory.
func (g *group) keepFacts(p *plan, body batchBody) {
	header := p.header.append(make([]byte, 0, 128))
	key := batchKey(p.header.sid, p.header.firstSequence)
	op := g.batch.SetDeferred(len(key), sealedSize(header, body))
	copy(op.Key, key)
	sealBatch(op.Value, header, body)
	_ = op.Finish()
	p.tail.hash = hashBatch(header, body.digest)
	g.order.entries = append(g.order.entries, groupEntry{
		sid: p.header.sid, firstSequence: p.header.firstSequence,
		facts: uint64(p.header.count), events: p.mark.Event + 1 - p.header.firstEvent,
	})
}

// Write implements journal.Storage. Pebble shows a batch before it is durable;
// nobody looks but through the view.
func (j *Journal) Write(written func() error) error {
	g := &j.staged
	if g.batch == nil {
		return written()
	}
	if len(g.order.entries) > 0 {
		_ = g.batch.Set(keyOf(tagGroup, g.order.firstOffset), g.order.encode(), nil)
		if g.mark.Event >= g.order.firstEvent {
			_ = g.batch.Set(keyOf(tagEvent, g.order.firstEvent), markValue(g.order.firstOffset), nil)
		}
	}
	g.bytes = g.batch.Len()
	return j.commit(g.batch, written)
}

// commit writes a batch and syncs it. What goes wrong inside of Pebble, a panic
// included, is noted as the loss of Pebble.
func (j *Journal) commit(batch *lsm.Batch, written func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("pebble panicked: %v", r)
			j.log.lost(err)
		}
	}()
	if err := j.db.ApplyNoSyncWait(batch, lsm.Sync); err != nil {
		j.log.lost(err)
		return err
	}
	// After a fatal error, which Pebble tells its logger alone, nobody may come
	// to end the wait for the sync.
	if err := j.log.failure(); err != nil {
		return err
	}
	fault := written()
	if err := batch.SyncWait(); err != nil {
		j.log.lost(err)
		return err
	}
	return fault
}

// Publish implements journal.Storage.
func (j *Journal) Publish() journal.Mark {
	g := &j.staged
	fresh := newView(j.db, g.mark, &j.views)
	j.current.Swap(fresh).release()
	for session, t := range g.tails {
		t.spans.prune()
		j.remember(session, t)
	}
	j.gate.Wrote(g.bytes)
	_ = g.batch.Close()
	g.batch, g.tails, g.rows = nil, nil, nil
	return g.mark
}

// Discard implements journal.Storage.
func (j *Journal) Discard() {
	j.staged.discard()
	j.staged.mark = j.Durable()
}
