package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/mahati-host/mahati/internal/blob"
	"github.com/mahati-host/mahati/internal/journal"
)

// shelf keeps the bytes of attachments and artifacts. A content is pinned from before it
// has its place until the fact that names it is durable, or was not written; what no fact
// names and nobody has pinned is swept away.
type shelf struct {
	store   *blob.Store // nil keeps nothing
	journal journal.Journal

	mu      sync.Mutex
	pins    map[blob.Digest]int  // guarded by mu
	touched map[blob.Digest]bool // guarded by mu: pinned since the sweep began; nil while there is none

	sweeps sweeps
}

func newShelf(store *blob.Store, j journal.Journal) *shelf {
	return &shelf{store: store, journal: j, pins: map[blob.Digest]int{}}
}

// kept is content that is kept, and pinned until it is released.
type kept struct {
	blob.Info
	release func()
}

// put reads content of at most limit bytes and keeps it. The errors are ErrTooLarge,
// ErrStorageFull, those of the reader, and of the disk.
func (s *shelf) put(content io.Reader, limit int64) (kept, error) {
	if s.store == nil {
		return kept{}, ErrNoMaterials
	}
	if err := s.journal.Admit(false); err != nil {
		return kept{}, err
	}
	room, short := s.room(limit)
	staged, err := s.store.Stage(content, room)
	switch {
	case errors.Is(err, blob.ErrFull), short && errors.Is(err, blob.ErrTooLarge):
		return kept{}, fmt.Errorf("%w: %v", ErrStorageFull, err) // not that it is too large
	case err != nil:
		return kept{}, err
	}
	k := kept{staged.Info(), s.pin(staged.Info().Digest)}
	if err := staged.Keep(); err != nil {
		k.release()
		if errors.Is(err, blob.ErrFull) {
			err = fmt.Errorf("%w: %v", ErrStorageFull, err)
		}
		return kept{}, err
	}
	return k, nil
}

// room is how many bytes may be written: the limit, or what there is above the reserve.
func (s *shelf) room(limit int64) (room int64, short bool) {
	space := s.journal.Space()
	if space.Free < space.Reserve {
		return 0, true
	}
	if free := space.Free - space.Reserve; free < uint64(limit) {
		return int64(free), true
	}
	return limit, false
}

// pin keeps a digest from being swept away until it is released.
func (s *shelf) pin(d blob.Digest) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pins[d]++
	if s.touched != nil {
		s.touched[d] = true
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.pins[d]--; s.pins[d] == 0 {
			delete(s.pins, d)
		}
	})
}

// sweep removes every content that no fact names. Where the facts' rows cannot all be
// read nothing is removed.
func (s *shelf) sweep(ctx context.Context) (removed int, err error) {
	s.begin()
	defer s.finish()
	named := map[string]bool{}
	var lost error // what a row names that cannot be read must stay
	damaged := func(d journal.Damage) { lost = d.Err() }
	for row, err := range journal.Each[journal.MaterialRow](ctx, s.journal, journal.Materials{}, damaged) {
		if err = cmp.Or(err, lost); err != nil {
			return 0, fmt.Errorf("list attachments and artifacts: %w", err)
		}
		named[row.Digest] = true
	}
	if lost != nil {
		return 0, fmt.Errorf("list attachments and artifacts: %w", lost)
	}
	var errs []error
	for info, err := range s.store.All() {
		switch {
		case ctx.Err() != nil:
			return removed, ctx.Err()
		case err != nil:
			errs = append(errs, err)
			continue
		case named[info.Digest.String()]:
			continue
		}
		gone, err := s.remove(info.Digest)
		errs = append(errs, err)
		if gone {
			removed++
		}
	}
	return removed, errors.Join(errs...)
}

func (s *shelf) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched = map[blob.Digest]bool{}
	for d := range s.pins { // their facts may become durable behind the list's back
		s.touched[d] = true
	}
}

func (s *shelf) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched = nil
}

// remove takes a content away, unless somebody has claimed it since the sweep began.
// Whoever pins it meanwhile waits, and puts it anew.
func (s *shelf) remove(d blob.Digest) (gone bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.touched[d] {
		return false, nil
	}
	if err := s.store.Remove(d); err != nil {
		return false, err
	}
	return true, nil
}

// sweeps lets one sweep run at a time, and one more after it if it was asked for
// meanwhile.
type sweeps struct {
	mu      sync.Mutex
	running bool // guarded by mu
	again   bool // guarded by mu
}

func (s *sweeps) start() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		s.again = true
		return false
	}
	s.running = true
	return true
}

func (s *sweeps) next() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = s.again
	s.again = false
	return s.running
}

// sweepSoon removes, beside all else, the bytes that nothing names any more.
func (h *Host) sweepSoon() {
	if h.shelf.store == nil || !h.shelf.sweeps.start() {
		return
	}
	h.spawn(func() {
		for more := true; more; more = h.shelf.sweeps.next() {
			removed, err := h.shelf.sweep(h.life)
			if err != nil && h.life.Err() == nil {
				h.opt.Logger.Error("remove contents that nothing names", "error", err)
			}
			if removed > 0 {
				h.opt.Logger.Info("removed contents that nothing names", "contents", removed)
			}
		}
	})
}
