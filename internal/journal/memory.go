package journal

import (
	"context"
	"fmt"
	"sync"
)

// Memory is the engine that keeps everything in memory, for tests and for
// programs that need no durability. It means what the port means, with maps
// and slices; what is published is copied out under one lock.
type Memory struct {
	options   Options
	identity  Identity
	gate      *Gate
	terms     *Terms
	committer *Committer
	staged    memoryGroup // the committer's own

	mu      sync.RWMutex
	closed  bool
	streams map[string]*memoryStream
	created uint64    // streams ever created
	facts   []*Record // by offset-1; nil when the session was deleted
	events  []uint64  // offsets of the facts that have event numbers
	rows    map[Key]Row
	damaged map[Key]bool // rows that cannot be read, whatever rows says: see Damage
	mark    Mark
}

var _ Journal = (*Memory)(nil)

// memoryStream is one session as published.
type memoryStream struct {
	place   uint64 // order of creation
	deleted bool
	records []*Record
	spans   map[span][]uint64
	caches  []Snapshot // by sequence
}

// span names a run tree, a workflow or a log of a session. Its value in
// memoryStream is the session sequences of its facts in order: the fact of run
// sequence n is the n-th.
type span struct {
	kind spanKind
	id   string
}

type spanKind uint8

const (
	spanRun spanKind = iota + 1
	spanWorkflow
	spanLog
)

// NewMemory makes an empty store in memory.
func NewMemory(options Options) (*Memory, error) {
	options = options.WithDefaults()
	gate, err := NewGate("memory", options)
	if err != nil {
		return nil, err
	}
	identity, err := options.NewIdentity()
	if err != nil {
		return nil, err
	}
	m := &Memory{
		options:  options,
		identity: identity,
		gate:     gate,
		terms:    NewTerms(options),
		streams:  map[string]*memoryStream{},
		rows:     map[Key]Row{},
		damaged:  map[Key]bool{},
		mark:     Mark{Event: identity.FirstEvent - 1},
	}
	m.staged.reset(m.mark)
	m.committer = NewCommitter(m, m.mark, options)
	return m, nil
}

// Admit implements Appender.
func (m *Memory) Admit(closing bool) error {
	if err := m.readable(); err != nil {
		return err
	}
	if err := m.committer.Err(); err != nil {
		return err
	}
	return m.gate.Admit(closing)
}

// Append implements Appender.
func (m *Memory) Append(ctx context.Context, batch Batch) (Receipt, error) {
	size, err := batch.Validate()
	if err != nil {
		return Receipt{}, fmt.Errorf("append to %q: %w", batch.Session, err)
	}
	var receipt Receipt
	err = m.committer.Do(ctx, Request{
		Facts: len(batch.Facts),
		Bytes: size,
		Stage: func() (err error) {
			receipt, err = m.stageBatch(batch, size)
			return err
		},
	})
	if err != nil {
		return Receipt{}, fmt.Errorf("append to %q: %w", batch.Session, err)
	}
	receipt.UpTo = m.Durable()
	return receipt, nil
}

// AcquireTerm implements Appender.
func (m *Memory) AcquireTerm(ctx context.Context, session string) (Term, error) {
	if err := validSession(session); err != nil {
		return 0, err
	}
	var term Term
	err := m.committer.Do(ctx, Request{ReadOnly: true, Stage: func() error {
		if m.deleted(session) {
			return ErrDeleted
		}
		term = m.terms.Give(session)
		return nil
	}})
	if err != nil {
		return 0, fmt.Errorf("acquire a term of %q: %w", session, err)
	}
	return term, nil
}

// ReleaseTerm implements Appender.
func (m *Memory) ReleaseTerm(session string, term Term) { m.terms.Release(session, term) }

// Delete implements Appender.
func (m *Memory) Delete(ctx context.Context, deletion Deletion) error {
	err := m.committer.Do(ctx, Request{Alone: true, Stage: func() error {
		return m.stageDeletion(deletion)
	}})
	if err != nil {
		return fmt.Errorf("delete %q: %w", deletion.Session, err)
	}
	return nil
}

// Snapshot implements Snapshots.
func (m *Memory) Snapshot(ctx context.Context, session string, atOrBefore uint64) (Snapshot, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	stream, err := m.streamLocked(ctx, session)
	if err != nil {
		return Snapshot{}, err
	}
	for i := len(stream.caches) - 1; i >= 0; i-- {
		if cache := stream.caches[i]; cache.Sequence <= atOrBefore {
			return cloneSnapshot(cache), nil
		}
	}
	return Snapshot{}, fmt.Errorf("snapshot of %q: %w", session, ErrNotFound)
}

// PutSnapshot implements Snapshots.
func (m *Memory) PutSnapshot(ctx context.Context, session string, snapshot Snapshot) error {
	snapshot = cloneSnapshot(snapshot)
	return m.changeCaches(ctx, session, func(stream *memoryStream) error {
		if snapshot.Sequence > uint64(len(stream.records)) {
			return invalid("snapshot of %q at %d, above its head", session, snapshot.Sequence)
		}
		stream.caches = insertSnapshot(stream.caches, snapshot)
		return nil
	})
}

// DropSnapshots implements Snapshots.
func (m *Memory) DropSnapshots(ctx context.Context, session string, below uint64) error {
	return m.changeCaches(ctx, session, func(stream *memoryStream) error {
		for len(stream.caches) > 0 && stream.caches[0].Sequence < below {
			stream.caches = stream.caches[1:]
		}
		return nil
	})
}

func (m *Memory) changeCaches(ctx context.Context, session string, change func(*memoryStream) error) error {
	if err := m.committer.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	stream, err := m.streamLocked(ctx, session)
	if err != nil {
		return err
	}
	return change(stream)
}

// Identity implements Keeper.
func (m *Memory) Identity() Identity { return m.identity }

// Durable implements Keeper.
func (m *Memory) Durable() Mark {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.mark
}

// OnDurable implements Keeper.
func (m *Memory) OnDurable(watcher func(Mark)) (cancel func()) { return m.committer.OnDurable(watcher) }

// Space implements Keeper.
func (m *Memory) Space() Space { return m.gate.Space() }

// Broken implements Keeper.
func (m *Memory) Broken() <-chan struct{} { return m.committer.Broken() }

// Err implements Keeper.
func (m *Memory) Err() error { return m.committer.Err() }

// Stats implements Keeper.
func (m *Memory) Stats() Stats { return m.committer.Stats() }

// Close implements Keeper.
func (m *Memory) Close() error {
	m.committer.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

func (m *Memory) readable() error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return ErrClosed
	}
	return nil
}

// streamLocked finds a session that exists, for reading.
func (m *Memory) streamLocked(ctx context.Context, session string) (*memoryStream, error) {
	if m.closed {
		return nil, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	stream := m.streams[session]
	switch {
	case stream == nil:
		return nil, fmt.Errorf("session %q: %w", session, ErrNotFound)
	case stream.deleted:
		return nil, fmt.Errorf("session %q: %w", session, ErrDeleted)
	}
	return stream, nil
}
