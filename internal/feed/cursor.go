package feed

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/mahati-host/mahati/internal/journal"
)

// ErrClosed says that the feed, or the subscription, was closed.
var ErrClosed = errors.New("feed is closed")

// cursor is a subscription, but for the form in which it gives facts.
type cursor struct {
	feed     *Feed
	topic    *topic
	slot     chan struct{}
	position atomic.Uint64
	// found says that the position is that of a fact, not a reader's claim. It
	// belongs to the goroutine that looks.
	found  bool
	closed atomic.Bool
	round  uint64 // of the topic's pace, in which it was woken and has not looked; guarded by the topic
}

// Wake gives a value when it may be worth to look again: facts were added, or
// the subscription has ended. It holds at most one, and never misses one that
// comes while nobody waits.
func (c *cursor) Wake() <-chan struct{} { return c.slot }

// Position is that of the last fact given.
func (c *cursor) Position() uint64 { return c.position.Load() }

// Lag is how many positions the durable end is ahead of what was given. It may
// read the journal.
func (c *cursor) Lag(ctx context.Context) (uint64, error) {
	position := c.position.Load()
	end, err := c.feed.end(ctx, c.topic.line)
	if err != nil || end < position {
		return 0, err
	}
	return end - position, nil
}

// Close takes the subscription off the feed; looks then give ErrClosed. It may
// be called twice.
func (c *cursor) Close() {
	if c.closed.Swap(true) {
		return
	}
	c.feed.remove(c)
	c.poke()
}

// poke fills the slot, and reports whether it was empty.
func (c *cursor) poke() bool {
	select {
	case c.slot <- struct{}{}:
		return true
	default:
		return false
	}
}

// next looks until there is something.
func (c *cursor) next(ctx context.Context) (batch, error) {
	for {
		b, err := c.poll(ctx)
		if err != nil || !b.empty() {
			return b, err
		}
		select {
		case <-c.slot:
		case <-ctx.Done():
			return batch{}, ctx.Err()
		}
	}
}

// poll looks once, and again while what it finds are facts without a frame.
func (c *cursor) poll(ctx context.Context) (batch, error) {
	for {
		if err := ctx.Err(); err != nil {
			return batch{}, err
		}
		after := c.position.Load()
		b, err := c.look(ctx, after)
		if err != nil || b.last == after {
			return batch{}, err
		}
		c.position.Store(b.last)
		c.found = true
		if !b.empty() {
			return b, nil
		}
	}
}

func (c *cursor) look(ctx context.Context, after uint64) (batch, error) {
	if c.closed.Load() {
		return batch{}, ErrClosed
	}
	b, covered, turn, err := c.topic.waiting(c, after)
	if err != nil || covered {
		return b, err
	}
	return c.read(ctx, after, turn)
}

// read looks into the journal.
func (c *cursor) read(ctx context.Context, after, turn uint64) (batch, error) {
	c.feed.reads.Add(1)
	chunk, err := c.feed.store.Read(ctx, c.topic.line.after(after), journal.Page{Bytes: c.feed.options.PageBytes})
	if err != nil {
		return batch{}, fmt.Errorf("follow the journal: %w", err)
	}
	b := batch{last: after}
	given := len(chunk.Records)
	if framer := c.topic.framer; framer != nil {
		b.frames, given = framer.join(chunk.Records, c.feed.options.PageBytes)
	} else {
		b.records = chunk.Records
	}
	if given > 0 {
		_, b.last = c.topic.line.span(&chunk.Records[given-1])
	}
	atEnd := !chunk.More && given == len(chunk.Records)
	if atEnd && (c.found || b.last > after) {
		c.topic.reached(b.last, turn)
	}
	return b, nil
}
