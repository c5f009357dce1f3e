package host

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/journal"
)

// HostStream is the session of facts that belong to none (R8).
const HostStream = journal.HostStream

// ErrBroken says that the store was lost to writers.
var ErrBroken = journal.ErrBroken

// EventRange is which event numbers can be resumed after: Oldest is the first that is kept,
// one above Newest where none is.
type EventRange struct{ Oldest, Newest uint64 }

// Events returns the events that are kept now (R39, R40).
func (h *Host) Events() EventRange {
	newest := h.journal.Durable().Event
	return EventRange{Oldest: min(h.retention.oldest.Load(), newest+1), Newest: newest}
}

// EventFrames is a reader of events, of the whole host or of a part of it. Stored data that
// cannot be read is left out, as the log says: a reader sees a gap in the numbers. It belongs
// to one goroutine, but for Wake.
type EventFrames struct {
	host   *Host
	framer *Framer
	frames *Frames
	// session is what is followed, "" for the whole host.
	session string
	past    uint64 // the position at which what was there ended
	ended   bool   // behind the position is damage and nothing else, as was logged
}

// FollowEvents reads the facts that have an event above a number, of the whole host, as
// frames, and goes on with it. A fact with events on both sides is given whole. The caller
// has authorised the reader.
func (h *Host) FollowEvents(f *Framer, after uint64) *EventFrames {
	e := &EventFrames{host: h, framer: f, past: h.journal.Durable().Event}
	e.frames = f.Subscribe(e.at(after))
	return e
}

// FollowHostStream is the part of FollowEvents that belongs to no session. It shares the
// wake-up of another reader.
func (h *Host) FollowHostStream(ctx context.Context, f *Framer, after uint64, with *EventFrames) (*EventFrames, error) {
	return h.followEvents(ctx, HostStream, f, after, with)
}

// FollowEvents is the part of [Host.FollowEvents] that belongs to the session: its own facts
// are all that is read. It shares the wake-up of another reader, if there is one.
func (v *View) FollowEvents(ctx context.Context, f *Framer, after uint64, with *EventFrames) (*EventFrames, error) {
	return v.host.followEvents(ctx, v.row.Session, f, after, with)
}

func (h *Host) followEvents(ctx context.Context, session string, f *Framer, after uint64, with *EventFrames) (*EventFrames, error) {
	head, err := h.headOf(ctx, session)
	if err != nil {
		return nil, fmt.Errorf("follow the events of a session: %w", err)
	}
	from, err := h.sequenceBehind(ctx, session, head, after)
	if err != nil {
		return nil, fmt.Errorf("follow the events of a session: %w", err)
	}
	e := &EventFrames{host: h, framer: f, session: session, past: head}
	var shared *Frames
	if with != nil {
		shared = with.frames
	}
	e.frames = f.Join(e.at(from), shared)
	return e, nil
}

// headOf is the last sequence of a session that can be known: where its end is damaged, that
// before the damage.
func (h *Host) headOf(ctx context.Context, session string) (uint64, error) {
	head, err := h.journal.Head(ctx, session)
	var damage *journal.DamagedError
	switch {
	case errors.Is(err, journal.ErrNotFound) && session == HostStream: // nothing was published yet
		return 0, nil
	case errors.As(err, &damage):
		return max(damage.Sequence, 1) - 1, nil
	}
	return head.Sequence, err
}

// at is a place in the order that is followed, and behind that behind damage, 0 where none
// is known.
func (e *EventFrames) at(position uint64) feed.Place {
	if e.session == "" {
		return feed.Events(position)
	}
	return feed.Session(e.session, position)
}

func (e *EventFrames) behind(d *journal.DamagedError) uint64 {
	if e.session == "" {
		return d.ResumeEvent
	}
	return d.ResumeSequence
}

// Wake gives a value when it may be worth to poll again.
func (e *EventFrames) Wake() <-chan struct{} { return e.frames.Wake() }

// Position is that of the last fact given, in the order that is followed.
func (e *EventFrames) Position() uint64 { return e.frames.Position() }

// CaughtUp reports whether all was given that was there as the reader began.
func (e *EventFrames) CaughtUp() bool { return e.Position() >= e.past }

// Close takes the reader off the feed. It may be called twice.
func (e *EventFrames) Close() { e.frames.Close() }

// Lag is how many positions what can be read is ahead of what was given.
func (e *EventFrames) Lag(ctx context.Context) (uint64, error) {
	lag, err := e.frames.Lag(ctx)
	if errors.Is(err, journal.ErrDamaged) {
		return 0, nil // there is no end that anything could be ahead of
	}
	return lag, err
}

// Poll gives the frames of the facts behind the position, and nothing when there are none
// yet: then wait for Wake. The bytes may be shared with other readers and must not be changed.
func (e *EventFrames) Poll(ctx context.Context) ([]byte, error) {
	for {
		data, err := e.frames.Poll(ctx)
		var damage *journal.DamagedError
		if err == nil || !errors.As(err, &damage) {
			return data, err
		}
		position, next := e.Position(), e.behind(damage)
		if next <= position {
			return nil, e.end(position, err)
		}
		e.host.opt.Logger.Error("events cannot be read and are left out", "from", position, "upTo", next, "cause", damage.Error())
		before := e.frames
		e.frames = e.framer.Join(e.at(next), before)
		before.Close()
	}
}

// end is met where nothing is known behind damage. A session can have nothing there: nothing
// is appended behind facts that cannot be read. In the order of the whole host it is an error.
func (e *EventFrames) end(position uint64, err error) error {
	if e.session == "" {
		return err
	}
	if !e.ended {
		e.ended = true
		e.host.opt.Logger.Error("events cannot be read and are left out", "session", e.session, "from", position, "cause", err)
	}
	return nil
}

// sequenceBehind finds the sequence, up to a head, behind which every fact with an event
// above a number is. Events get their numbers in the order of offsets: the first fact of the
// whole host that has such an event says from which offset on they are, and a session's
// offsets rise, so few of its facts are looked at however long it is.
func (h *Host) sequenceBehind(ctx context.Context, session string, head, after uint64) (uint64, error) {
	first, err := h.journal.Read(ctx, journal.ByEvent{After: after}, journal.Page{Limit: 1})
	switch {
	case errors.Is(err, journal.ErrDamaged):
		return 0, nil // which says too little: all is read, and what was had is left out
	case err != nil:
		return 0, err
	case len(first.Records) == 0:
		return head, nil // whatever is appended from now on is behind it
	}
	from := first.Records[0].Offset
	found := sort.Search(int(head), func(i int) bool {
		var one *journal.Record
		if err == nil {
			one, err = h.readableBehind(ctx, session, uint64(i))
		}
		return err != nil || one == nil || one.Offset >= from
	})
	return uint64(found), err
}

// readableBehind is the first fact behind a sequence that can be read, nil if there is none.
func (h *Host) readableBehind(ctx context.Context, session string, after uint64) (*journal.Record, error) {
	for {
		chunk, err := h.journal.Read(ctx, journal.BySession{Session: session, After: after}, journal.Page{Limit: 1})
		var damage *journal.DamagedError
		switch {
		case errors.As(err, &damage) && damage.ResumeSequence > after:
			after = damage.ResumeSequence
		case errors.As(err, &damage):
			return nil, nil
		case err != nil || len(chunk.Records) == 0:
			return nil, err
		default:
			return &chunk.Records[0], nil
		}
	}
}

// Writable reports whether the store takes new work.
func (h *Host) Writable() bool {
	return h.journal.Err() == nil && h.journal.Space().Level == journal.SpaceOpen
}
