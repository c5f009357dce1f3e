package feed

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// Feed is the fan-out of one journal. [New] makes one.
type Feed struct {
	store   Store
	options Options

	ctx    context.Context // the life of the waker
	cancel context.CancelFunc
	forget func() // undoes OnDurable
	moved  chan struct{}
	done   chan struct{}

	// What belongs to the waker:
	seen   uint64      // the offset up to which it has gone
	owing  []*topic    // those that owe a wake-up
	rested *time.Timer // set for the first of them that may give it

	held                atomic.Int64
	wakes, fills, reads atomic.Uint64

	mu            sync.Mutex
	topics        map[line][]*topic
	sessions      int // topics that follow a session
	subscriptions int
	err           error // why the feed has ended
}

// New starts a feed. Its owner closes it before the journal.
func New(store Store, options Options) *Feed {
	ctx, cancel := context.WithCancel(context.Background())
	f := &Feed{
		store: store, options: options.withDefaults(), ctx: ctx, cancel: cancel,
		moved: make(chan struct{}, 1), done: make(chan struct{}), topics: map[line][]*topic{},
	}
	f.forget = store.OnDurable(f.poke)
	f.seen = store.Durable().Offset
	go f.run()
	return f
}

// Subscribe follows a place. The wake-up is registered when it returns, nothing
// has been read.
func (f *Feed) Subscribe(place Place) *Subscription {
	s := &Subscription{}
	f.add(&s.cursor, place, nil)
	return s
}

// Deleted tells that a session was deleted, which moves no mark: the
// subscriptions of the session end with journal.ErrDeleted. Its owner calls it
// after journal.Delete.
func (f *Feed) Deleted(session string) {
	for _, t := range f.listTopics() {
		switch {
		case t.line.order != bySession:
			t.cool() // its facts are in the rings of the whole host
		case t.line.session == session:
			t.end(fmt.Errorf("follow session %q: %w", session, journal.ErrDeleted))
		}
	}
}

// Stats are the figures of now.
func (f *Feed) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	stats := Stats{
		Subscriptions: f.subscriptions, RingBytes: f.held.Load(),
		Wakes: f.wakes.Load(), Fills: f.fills.Load(), Reads: f.reads.Load(),
	}
	for _, topics := range f.topics {
		stats.Topics += len(topics)
	}
	return stats
}

// Close ends every subscription with ErrClosed and joins the waker. It may be
// called twice.
func (f *Feed) Close() {
	f.forget()
	f.finish(ErrClosed)
	f.cancel()
	<-f.done
}

// finish ends every subscription, those to come too. The first error stays.
func (f *Feed) finish(err error) {
	f.mu.Lock()
	if f.err == nil {
		f.err = err
	}
	f.mu.Unlock()
	for _, t := range f.listTopics() {
		t.end(err)
	}
}

// add and remove are the only doors to the set of topics.
func (f *Feed) add(c *cursor, place Place, framer *Framer) {
	c.feed = f
	if c.slot == nil {
		c.slot = make(chan struct{}, 1)
	}
	c.position.Store(place.after)
	f.mu.Lock()
	defer f.mu.Unlock()
	c.topic = f.topicLocked(place.line, framer)
	c.topic.join(c)
	f.subscriptions++
}

func (f *Feed) topicLocked(l line, framer *Framer) *topic {
	at := slices.IndexFunc(f.topics[l], func(t *topic) bool { return t.framer == framer })
	if at >= 0 {
		return f.topics[l][at]
	}
	t := &topic{
		line: l, framer: framer, options: &f.options, held: &f.held,
		subscribers: map[*cursor]struct{}{}, err: f.err,
	}
	f.topics[l] = append(f.topics[l], t)
	if l.order == bySession {
		f.sessions++
	}
	return t
}

func (f *Feed) remove(c *cursor) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subscriptions--
	t := c.topic
	if !t.leave(c) {
		return
	}
	if t.line.order == bySession {
		f.sessions--
	}
	f.topics[t.line] = slices.DeleteFunc(f.topics[t.line], func(other *topic) bool { return other == t })
	if len(f.topics[t.line]) == 0 {
		delete(f.topics, t.line)
	}
}

func (f *Feed) listTopics() []*topic {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]*topic, 0, len(f.topics))
	for _, topics := range f.topics {
		list = append(list, topics...)
	}
	return list
}

// end is the durable end of a line.
func (f *Feed) end(ctx context.Context, l line) (uint64, error) {
	switch l.order {
	case byOffset:
		return f.store.Durable().Offset, nil
	case byEvent:
		return f.store.Durable().Event, nil
	}
	head, err := f.store.Head(ctx, l.session)
	if err != nil {
		return 0, fmt.Errorf("how far a reader is behind: %w", err)
	}
	return head.Sequence, nil
}
