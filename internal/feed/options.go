package feed

import (
	"log/slog"

	"github.com/mahati-host/mahati/internal/journal"
)

// Store is the part of the journal that a feed reads.
type Store interface {
	journal.Reader
	// Durable is the mark up to which everything can be read.
	Durable() journal.Mark
	// OnDurable registers a function that is called when the mark has moved.
	OnDurable(func(journal.Mark)) (cancel func())
	// Broken is closed when the store is lost to writers; Err says why.
	Broken() <-chan struct{}
	Err() error
}

// Options are the optional parts of a Feed. The zero value is for production.
type Options struct {
	// RingFacts and RingBytes bound one tail ring. Zero: 256 facts and 256 KiB;
	// negative RingFacts: no rings, every look reads the journal.
	RingFacts int
	RingBytes int
	// RingTotal bounds the bytes of all tail rings. Zero: 64 MiB.
	RingTotal int
	// PageBytes bounds what one look gives, but for a single larger fact, and so
	// what a binding writes at once. Zero: 64 KiB.
	PageBytes int
	// MaxSpan is how many facts the waker goes through one by one. When the mark
	// has moved by more, it wakes everybody and leaves the reading to them. Zero:
	// 8,192.
	MaxSpan int
	// Logger is told when a ring could not be filled. Zero: nobody.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	set := func(n *int, to int) {
		if *n == 0 {
			*n = to
		}
	}
	set(&o.RingFacts, 256)
	set(&o.RingBytes, 256<<10)
	set(&o.RingTotal, 64<<20)
	set(&o.PageBytes, 64<<10)
	set(&o.MaxSpan, 8192)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Stats are figures of a feed. The counters count from its beginning.
type Stats struct {
	// Subscriptions is how many are open, Topics how many different things they
	// follow.
	Subscriptions, Topics int
	// RingBytes is what the tail rings hold.
	RingBytes int64
	// Wakes counts the rounds of the waker, Fills its reads of the journal.
	Wakes, Fills uint64
	// Reads counts the pages that readers read from the journal because no ring
	// covered their cursor.
	Reads uint64
}
