package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"

	"github.com/mahati-host/mahati/internal/journal"
)

// Store is the part of the journal that a Replay uses.
type Store interface {
	journal.Reader
	journal.Snapshots
}

// Options are the optional parts of a Replay. The zero value is for production.
type Options struct {
	// Every is how many facts lie between two snapshots of a session whose owner
	// works; an owner that ends leaves one behind from an eighth of that on. Zero:
	// 1,024.
	Every uint64
	// Displays and DisplayBytes bound the display states that are kept. Zero: 16
	// states, and 64 MiB of facts.
	Displays     int
	DisplayBytes int
	// Logger is told of snapshots that were dropped or could not be kept. Zero:
	// nobody.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Every == 0 {
		o.Every = 1024
	}
	if o.Displays <= 0 {
		o.Displays = 16
	}
	if o.DisplayBytes <= 0 {
		o.DisplayBytes = 64 << 20
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Replay makes states of sessions. [New] makes one.
type Replay struct {
	store    Store
	options  Options
	displays *displays
}

// New makes a Replay over a journal.
func New(store Store, options Options) *Replay {
	options = options.withDefaults()
	return &Replay{store: store, options: options, displays: newDisplays(options.Displays, options.DisplayBytes)}
}

// ErrAhead says that a session has not come to the sequence asked for.
var ErrAhead = errors.New("the session has not come so far")

// head stands for the sequence of a session's last fact, whatever that is.
const head = math.MaxUint64

// Open gives the control state at a session's head. A session that is not there
// is journal.ErrNotFound or journal.ErrDeleted.
func (r *Replay) Open(ctx context.Context, sessionID string) (*Control, error) {
	c, err := r.control(ctx, sessionID, head)
	if err != nil {
		return nil, fmt.Errorf("open session %q: %w", sessionID, err)
	}
	return c, nil
}

// At gives the control state right after the fact of a sequence, 0 for that
// before the first.
func (r *Replay) At(ctx context.Context, sessionID string, sequence uint64) (*Control, error) {
	c, err := r.control(ctx, sessionID, sequence)
	if err != nil {
		return nil, fmt.Errorf("session %q at sequence %d: %w", sessionID, sequence, err)
	}
	if c.Sequence() != sequence {
		return nil, fmt.Errorf("session %q at sequence %d: %w: it is at %d", sessionID, sequence, ErrAhead, c.Sequence())
	}
	return c, nil
}

func (r *Replay) control(ctx context.Context, sessionID string, upTo uint64) (*Control, error) {
	c, err := r.load(ctx, sessionID, upTo)
	if err != nil {
		return nil, err
	}
	if _, err := r.advance(ctx, c.State, sessionID, upTo); err != nil {
		return nil, err
	}
	r.save(ctx, sessionID, c, r.options.Every)
	return c, nil
}

// advance applies the facts behind a state, up to a sequence or the head, and
// gives their bytes.
func (r *Replay) advance(ctx context.Context, s State, sessionID string, upTo uint64) (size int, err error) {
	for {
		after := s.Sequence()
		// One read at least: it tells whether the session is there.
		page := journal.Page{Limit: int(min(max(upTo-after, 1), journal.MaxPageRecords))}
		chunk, err := r.store.Read(ctx, journal.BySession{Session: sessionID, After: after}, page)
		if err != nil {
			return size, fmt.Errorf("read its facts: %w", err)
		}
		for i := range chunk.Records {
			record := &chunk.Records[i]
			if record.Sequence > upTo {
				return size, nil
			}
			if err := s.apply(record); err != nil {
				return size, err
			}
			size += len(record.Bytes)
		}
		if !chunk.More || s.Sequence() >= upTo {
			return size, nil
		}
	}
}
