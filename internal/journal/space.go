package journal

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// How often free space is looked at, at the least.
const (
	spaceInterval = time.Second
	spaceBytes    = 64 << 20
)

// Gate decides from the free space what may be written. It looks when it is
// asked and the last look is a second or 64 MiB of writes old, so it needs no
// goroutine: an idle store looks before it accepts anything again.
type Gate struct {
	path string
	free func() (uint64, error)
	now  func() time.Time

	mu      sync.Mutex
	space   Space
	looked  time.Time
	written uint64
}

// NewGate looks at the free space and refuses to open a store that could not
// even be recovered. The path is for messages.
func NewGate(path string, options Options) (*Gate, error) {
	g := &Gate{path: path, free: options.Free, now: options.Now, space: Space{Reserve: options.Reserve}}
	if g.free == nil {
		g.free = func() (uint64, error) { return math.MaxUint64, nil }
	}
	if err := g.lookLocked(); err != nil {
		return nil, err
	}
	if g.space.Level == SpaceNone {
		return nil, fmt.Errorf("open the journal: %w", g.fullLocked(true))
	}
	return g, nil
}

// Admit refuses a batch with ErrStorageFull when there is too little space.
func (g *Gate) Admit(closing bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refreshLocked()
	if g.space.Level == SpaceOpen || g.space.Level == SpaceClosing && closing {
		return nil
	}
	return g.fullLocked(closing)
}

// Wrote counts bytes that were written.
func (g *Gate) Wrote(bytes int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.written += uint64(bytes)
}

// Space is the room left.
func (g *Gate) Space() Space {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refreshLocked()
	return g.space
}

func (g *Gate) refreshLocked() {
	if g.written < spaceBytes && g.now().Sub(g.looked).Abs() < spaceInterval {
		return
	}
	// A file system that cannot be asked now is judged by the last look.
	_ = g.lookLocked()
}

func (g *Gate) lookLocked() error {
	free, err := g.free()
	g.looked, g.written = g.now(), 0
	if err != nil {
		return fmt.Errorf("free space of %s: %w", g.path, err)
	}
	g.space.Free = free
	switch {
	case free >= g.space.Reserve:
		g.space.Level = SpaceOpen
	case free >= g.lastLineLocked():
		g.space.Level = SpaceClosing
	default:
		g.space.Level = SpaceNone
	}
	return nil
}

func (g *Gate) lastLineLocked() uint64 {
	return g.space.Reserve - min(ClosingShare, g.space.Reserve)
}

func (g *Gate) fullLocked(closing bool) error {
	needed := g.space.Reserve
	if closing {
		needed = g.lastLineLocked()
	}
	return &StorageFullError{Path: g.path, Free: g.space.Free, Needed: needed}
}
