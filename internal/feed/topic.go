package feed

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// topic is a line that somebody follows, in one form: as records, or as the
// frames of one framer.
type topic struct {
	line    line
	framer  *Framer // nil: records
	options *Options
	held    *atomic.Int64 // bytes in the rings of all topics

	mu          sync.Mutex
	subscribers map[*cursor]struct{}
	ring        ring
	// turn counts what the waker did here. A reader that has read the journal up
	// to its end may say so only while the turn is still that before its read:
	// else the end has moved on.
	turn uint64
	pace pace
	err  error // why the topic has ended
	gone bool  // nobody follows it any more
}

// waiting gives what the ring has behind a position. covered says that the ring
// knows, so that nothing means that there is nothing yet.
func (t *topic) waiting(c *cursor, after uint64) (found batch, covered bool, turn uint64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pace.looked(c) {
		c.feed.poke(journal.Mark{}) // the waker may go on sooner than it thought
	}
	if t.err != nil || !t.ring.covers(after) {
		return batch{last: after}, false, t.turn, t.err
	}
	return t.ring.waiting(after, t.options.PageBytes), true, t.turn, nil
}

// reached tells that the line ended at a position when the journal was read
// after the turn had been looked at: a cold ring begins there. The waker, which
// goes on behind it, may not have come so far; so those who wait are woken here.
func (t *topic) reached(position, turn uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.turn == turn && !t.ring.warm && !t.gone && t.options.RingFacts > 0 {
		t.ring.begin(position)
		t.wakeLocked()
	}
}

// fill adds facts that follow each other on the line. It reports whether the topic now
// owes its subscribers a wake-up that it did not owe before: see settle.
func (t *topic) fill(records []*journal.Record) (owes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return false
	}
	was := t.ring.bytes
	if t.options.RingFacts > 0 {
		for _, record := range records {
			t.addLocked(record)
		}
		t.ring.bound(t.options.RingFacts, t.options.RingBytes)
	}
	t.held.Add(int64(t.ring.bytes - was))
	t.turn++
	return t.pace.owe()
}

// settle wakes the subscribers that are owed it, unless they rest: then it tells for how
// long.
func (t *topic) settle(now time.Time) (left time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if left = t.pace.left(now); left > 0 && !t.gone {
		return left
	}
	t.pace.begin()
	t.turn++
	for c := range t.subscribers {
		if c.poke() {
			t.pace.woke(c)
		}
	}
	t.pace.rest(now)
	return 0
}

func (t *topic) addLocked(record *journal.Record) {
	before, last := t.line.span(record)
	if t.ring.warm && last <= t.ring.high {
		return // a reader came here first
	}
	if t.line.order == bySession && t.ring.warm && before != t.ring.high {
		t.ring = ring{} // a hole: cover only what comes behind it
	}
	e := entry{last: last, size: len(record.Bytes) + entrySize}
	if t.framer == nil {
		own := *record // the page that it came in must not live as long
		e.record = &own
	} else {
		frame := t.framer.encode(*record)
		e.size = len(frame) + entrySize
		e.chunk, e.start, e.end = t.ring.frame(frame, t.options.PageBytes)
	}
	t.ring.add(before, e)
}

// cool drops the ring and wakes, so that everybody reads the journal.
func (t *topic) cool() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropLocked()
	t.wakeLocked()
}

// high is the end of a warm ring. A cold topic is woken instead, and false.
func (t *topic) high() (uint64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ring.warm {
		t.wakeLocked()
	}
	return t.ring.high, t.ring.warm
}

// trim empties the ring; who has read it all does not notice.
func (t *topic) trim() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ring.warm {
		t.held.Add(-int64(t.ring.bytes))
		t.ring.empty()
	}
}

// end makes every look at the topic give an error. The first error stays.
func (t *topic) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
	t.dropLocked()
	t.wakeLocked()
}

func (t *topic) dropLocked() {
	t.held.Add(-int64(t.ring.bytes))
	t.ring = ring{}
}

func (t *topic) wakeLocked() {
	t.turn++
	for c := range t.subscribers {
		c.poke()
	}
}

func (t *topic) join(c *cursor) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subscribers[c] = struct{}{}
}

// leave reports whether that was the last subscriber; the topic is then gone.
func (t *topic) leave(c *cursor) (last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.subscribers, c)
	if len(t.subscribers) > 0 {
		return false
	}
	t.gone = true
	t.dropLocked()
	return true
}
