package feed

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// poke is called on the committer: it must not wait.
func (f *Feed) poke(journal.Mark) {
	select {
	case f.moved <- struct{}{}:
	default:
	}
}

// run is the waker.
func (f *Feed) run() {
	defer close(f.done)
	f.rested = time.NewTimer(0)
	defer f.rested.Stop()
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-f.store.Broken():
			f.finish(fmt.Errorf("follow the journal: %w", f.store.Err()))
			return
		case <-f.moved:
			f.round()
		case <-f.rested.C:
			f.settle()
		}
	}
}

// round wakes who follows something that moved since the last round.
func (f *Feed) round() {
	defer f.settle()
	from, to := f.seen, f.store.Durable().Offset
	if from == to {
		return
	}
	f.wakes.Add(1)
	f.seen = to
	if err := f.wake(from, to); err != nil {
		f.failed(err)
	}
	f.trim()
}

// fill gives a topic what was added to its line.
func (f *Feed) fill(t *topic, records []*journal.Record) {
	if t.fill(records) {
		f.owing = append(f.owing, t)
	}
}

// settle wakes who is owed it and does not rest, and comes back for the others.
func (f *Feed) settle() {
	now := time.Now()
	var next time.Duration
	f.owing = slices.DeleteFunc(f.owing, func(t *topic) bool {
		left := t.settle(now)
		if left > 0 && (next == 0 || left < next) {
			next = left
		}
		return left == 0
	})
	if next > 0 {
		f.rested.Reset(next)
	}
}

// wake takes the cheapest way to find out who follows what moved. To read the
// subscribed sessions costs a read for each of them, to read what was added
// costs its facts.
func (f *Feed) wake(from, to uint64) error {
	f.mu.Lock()
	sessions, all := f.sessions, len(f.topics)
	wholeHost := len(f.topics[line{order: byOffset}]) + len(f.topics[line{order: byEvent}])
	f.mu.Unlock()
	facts := to - from
	switch {
	case all == 0:
		return nil
	case wholeHost == 0 && uint64(sessions) <= facts/2+1:
		return f.fillSessions()
	case facts > uint64(f.options.MaxSpan):
		f.coolAll()
		return nil
	default:
		return f.fillSpan(from, to)
	}
}

// fillSessions reads what each followed session has behind its ring.
func (f *Feed) fillSessions() error {
	for _, t := range f.listTopics() {
		after, warm := t.high()
		if !warm || t.line.order != bySession {
			continue // woken, or come too late to have missed something
		}
		f.fills.Add(1)
		page := journal.Page{Limit: f.options.RingFacts, Bytes: f.options.RingBytes}
		chunk, err := f.store.Read(f.ctx, t.line.after(after), page)
		switch {
		case isOver(err):
			return err
		case err != nil || chunk.More:
			t.cool() // its readers see for themselves
		case len(chunk.Records) > 0:
			f.fill(t, pointers(chunk.Records))
		}
	}
	return nil
}

// fillSpan goes through what was added and gives it to who follows it.
func (f *Feed) fillSpan(from, to uint64) error {
	for from < to {
		f.fills.Add(1)
		chunk, err := f.store.Read(f.ctx, journal.ByOffset{After: from}, journal.Page{})
		if err != nil {
			return err
		}
		if len(chunk.Records) == 0 {
			return nil // what was there was deleted
		}
		for t, records := range f.sort(chunk.Records) {
			f.fill(t, records)
		}
		from = chunk.Records[len(chunk.Records)-1].Offset
	}
	f.seen = max(f.seen, from)
	return nil
}

// sort gives to each topic its facts.
func (f *Feed) sort(records []journal.Record) map[*topic][]*journal.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	sorted := map[*topic][]*journal.Record{}
	give := func(l line, record *journal.Record) {
		for _, t := range f.topics[l] {
			sorted[t] = append(sorted[t], record)
		}
	}
	for i := range records {
		record := &records[i]
		give(line{bySession, record.Session}, record)
		give(line{order: byOffset}, record)
		if record.EventCount > 0 {
			give(line{order: byEvent}, record)
		}
	}
	return sorted
}

func pointers(records []journal.Record) []*journal.Record {
	list := make([]*journal.Record, len(records))
	for i := range records {
		list[i] = &records[i]
	}
	return list
}

// isOver reports errors after which the journal gives nothing more.
func isOver(err error) bool {
	return errors.Is(err, journal.ErrClosed) || errors.Is(err, journal.ErrBroken)
}

// failed lets every reader see for itself what the waker could not read.
func (f *Feed) failed(err error) {
	switch {
	case f.ctx.Err() != nil:
	case isOver(err):
		f.finish(fmt.Errorf("follow the journal: %w", err))
	default:
		f.options.Logger.Warn("tail rings were dropped", "cause", err)
		f.coolAll()
	}
}

func (f *Feed) coolAll() {
	for _, t := range f.listTopics() {
		t.cool()
	}
}

// trim empties rings, in no order, when all together hold too much.
func (f *Feed) trim() {
	limit := int64(f.options.RingTotal)
	if f.held.Load() <= limit {
		return
	}
	for _, t := range f.listTopics() {
		if f.held.Load() <= limit/2 {
			return
		}
		t.trim()
	}
}
