package journal

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of a commit group and of the queue before it.
const (
	maxGroupBatches = 512
	maxGroupBytes   = 4 << 20
	maxWaiting      = 1_024
)

// Storage is what a committer needs of an engine. Its methods, and the Stage
// functions of requests, are called by the committer's goroutine alone.
type Storage interface {
	// Write hands the staged group to the storage, calls written, and syncs. It
	// is not called again after an error.
	Write(written func() error) error
	// Publish makes the group and its mark visible, in one step, and gives the
	// mark.
	Publish() Mark
	// Discard forgets the staged group.
	Discard()
}

// Request is one thing to be done on the committer.
type Request struct {
	// Stage checks and adds the request to the group, or refuses it and leaves
	// the group as it was. Later requests of the group must see its effect.
	Stage func() error
	// ReadOnly says that Stage adds nothing to write.
	ReadOnly bool
	// Alone gives the request a group of its own.
	Alone bool
	// Facts and Bytes are what it holds.
	Facts, Bytes int
}

// Committer is the one writer of an engine: it gathers requests into groups
// and takes each group through write, sync, publish, notify and answer, in
// this order and one at a time. Engines build on it so that the order exists
// once.
type Committer struct {
	storage Storage
	options Options

	queue   chan *pending
	closing chan struct{}
	stop    chan struct{}
	done    chan struct{}
	broken  chan struct{}

	failure atomic.Pointer[error]
	stats   counters
	mark    Mark // the committer's own, to see whether it moved

	mu       sync.Mutex
	closed   bool
	senders  sync.WaitGroup
	watchers map[int]func(Mark)
	nextID   int
}

type pending struct {
	Request
	ctx    context.Context
	answer chan error
}

type counters struct {
	batches, facts, bytes, groups, refused, nanos atomic.Uint64
}

// NewCommitter starts a committer. Close ends it.
func NewCommitter(storage Storage, mark Mark, options Options) *Committer {
	c := &Committer{
		storage:  storage,
		options:  options,
		queue:    make(chan *pending, maxWaiting),
		closing:  make(chan struct{}),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
		broken:   make(chan struct{}),
		watchers: map[int]func(Mark){},
		mark:     mark,
	}
	go c.run()
	return c
}

// Do waits for a place in the queue, as long as the context allows, and then
// for the outcome.
func (c *Committer) Do(ctx context.Context, request Request) error {
	p := &pending{Request: request, ctx: ctx, answer: make(chan error, 1)}
	if err := c.enqueue(p); err != nil {
		c.stats.refused.Add(1)
		return err
	}
	return <-p.answer
}

func (c *Committer) enqueue(p *pending) error {
	if err := c.enter(); err != nil {
		return err
	}
	defer c.senders.Done()
	if err := p.ctx.Err(); err != nil {
		return err
	}
	select {
	case c.queue <- p:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	case <-c.closing:
		return ErrClosed
	}
}

// enter counts a sender, so that Close knows when the queue gets no more.
func (c *Committer) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	if err := c.Err(); err != nil {
		return err
	}
	c.senders.Add(1)
	return nil
}

// Close refuses what is not yet in a group, waits for the group under way and
// joins the goroutine.
func (c *Committer) Close() {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	if first {
		close(c.closing)
		c.senders.Wait()
		close(c.stop)
	}
	<-c.done
}

// Broken is closed when the committer has failed.
func (c *Committer) Broken() <-chan struct{} { return c.broken }

// Err is nil, or ErrBroken with its cause.
func (c *Committer) Err() error {
	if failure := c.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// Fail breaks the committer, for engines that learn of a failure elsewhere.
// The first failure stays.
func (c *Committer) Fail(cause error) error {
	failure := fmt.Errorf("%w: %w", ErrBroken, cause)
	if c.failure.CompareAndSwap(nil, &failure) {
		close(c.broken)
		c.options.Logger.Error("journal is broken", "cause", cause)
	}
	return c.Err()
}

// OnDurable registers a watcher of the mark.
func (c *Committer) OnDurable(watcher func(Mark)) (cancel func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.nextID
	c.nextID++
	c.watchers[id] = watcher
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, id)
	}
}

// Stats are the counters.
func (c *Committer) Stats() Stats {
	return Stats{
		Batches:    c.stats.batches.Load(),
		Facts:      c.stats.facts.Load(),
		Bytes:      c.stats.bytes.Load(),
		Groups:     c.stats.groups.Load(),
		Refused:    c.stats.refused.Load(),
		Waiting:    len(c.queue),
		CommitTime: time.Duration(c.stats.nanos.Load()),
	}
}

func (c *Committer) run() {
	defer close(c.done)
	var held *pending
	for {
		first := held
		if held = nil; first == nil {
			if first = c.next(); first == nil {
				return
			}
		}
		var group []*pending
		group, held = c.gather(first)
		c.commit(group)
	}
}

// next waits for a request; it gives nil when the committer is to end, after it
// has refused what was left in the queue.
func (c *Committer) next() *pending {
	select {
	case <-c.stop:
	default:
		select {
		case p := <-c.queue:
			return p
		case <-c.stop:
		}
	}
	for {
		select {
		case p := <-c.queue:
			c.refuse(p, ErrClosed)
		default:
			return nil
		}
	}
}

// gather adds what waits to a group, up to its bounds. A request that does not
// fit is held for the next group. Those who were answered a moment ago are let
// in first: without that groups are a tenth of the size when all are busy.
func (c *Committer) gather(first *pending) (group []*pending, held *pending) {
	runtime.Gosched()
	group = []*pending{first}
	if first.Alone {
		return group, nil
	}
	for bytes := first.Bytes; len(group) < maxGroupBatches; {
		select {
		case p := <-c.queue:
			if bytes += p.Bytes; p.Alone || bytes > maxGroupBytes {
				return group, p
			}
			group = append(group, p)
		default:
			return group, nil
		}
	}
	return group, nil
}

func (c *Committer) commit(group []*pending) {
	writers, readers := c.stage(group)
	var err error
	if len(writers) > 0 {
		err = c.write(writers)
	}
	for _, p := range writers {
		if err != nil {
			c.stats.refused.Add(1)
		}
		p.answer <- err
	}
	for _, p := range readers {
		p.answer <- c.Err()
	}
}

// stage lets each request check itself; those refused are answered at once.
func (c *Committer) stage(group []*pending) (writers, readers []*pending) {
	for _, p := range group {
		if err := c.stageOne(p); err != nil {
			c.refuse(p, err)
			continue
		}
		if p.ReadOnly {
			readers = append(readers, p)
		} else {
			writers = append(writers, p)
		}
	}
	return writers, readers
}

func (c *Committer) stageOne(p *pending) error {
	if err := c.Err(); err != nil {
		return err
	}
	if err := p.ctx.Err(); err != nil {
		return err
	}
	return p.Stage()
}

func (c *Committer) refuse(p *pending, err error) {
	c.stats.refused.Add(1)
	p.answer <- err
}

// write is the order that the package promises.
func (c *Committer) write(writers []*pending) error {
	info := describe(writers)
	if err := c.fault(StageBuilt, info); err != nil {
		c.storage.Discard()
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	start := time.Now()
	if err := c.storage.Write(func() error { return c.fault(StageWritten, info) }); err != nil {
		return c.Fail(err)
	}
	if err := c.fault(StageSynced, info); err != nil {
		return c.Fail(err)
	}
	info.UpTo = c.storage.Publish()
	moved := info.UpTo != c.mark
	c.mark = info.UpTo
	info.Took = time.Since(start)
	if err := c.fault(StagePublished, info); err != nil {
		return c.Fail(err)
	}
	if moved {
		if err := c.notify(info.UpTo); err != nil {
			return c.Fail(err)
		}
	}
	if err := c.fault(StageNotified, info); err != nil {
		return c.Fail(err)
	}
	c.count(info)
	return nil
}

func describe(writers []*pending) Group {
	info := Group{Batches: len(writers)}
	for _, p := range writers {
		info.Facts += p.Facts
		info.Bytes += p.Bytes
	}
	return info
}

func (c *Committer) fault(stage Stage, info Group) error {
	if c.options.Fault == nil {
		return nil
	}
	if err := c.options.Fault(stage, info); err != nil {
		return fmt.Errorf("%s: %w", stage, err)
	}
	return nil
}

// notify calls the watchers outside of the lock, so that they may register and
// cancel. A watcher that panics has lost a wake-up for good: that breaks the
// store for writers rather than leave readers waiting.
func (c *Committer) notify(mark Mark) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("OnDurable panicked: %v", r)
		}
	}()
	c.mu.Lock()
	watchers := make([]func(Mark), 0, len(c.watchers))
	for _, watcher := range c.watchers {
		watchers = append(watchers, watcher)
	}
	c.mu.Unlock()
	for _, watcher := range watchers {
		watcher(mark)
	}
	return nil
}

func (c *Committer) count(info Group) {
	c.stats.groups.Add(1)
	c.stats.batches.Add(uint64(info.Batches))
	c.stats.facts.Add(uint64(info.Facts))
	c.stats.bytes.Add(uint64(info.Bytes))
	c.stats.nanos.Add(uint64(info.Took))
	if c.options.Observe != nil {
		c.options.Observe(info)
	}
}
