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

// FollowEvents reads the facts that have an event above a number, of the whole host, as
// frames, and goes on with it. A fact with events on both sides is given whole. The caller
// has authorised the reader.
func (h *Host) FollowEvents(f *Framer, after uint64) *Frames { return f.Subscribe(feed.Events(after)) }

// FollowHostStream is the part of FollowEvents that belongs to no session. It shares the
// wake-up of another reader, and tells the position at which the past ends.
func (h *Host) FollowHostStream(ctx context.Context, f *Framer, after uint64, with *Frames) (*Frames, uint64, error) {
	return h.followEvents(ctx, HostStream, f, after, with)
}

// FollowEvents is the part of [Host.FollowEvents] that belongs to the session: its own facts
// are all that is read. It shares the wake-up of another reader, if there is one, and tells
// the position at which the past ends.
func (v *View) FollowEvents(ctx context.Context, f *Framer, after uint64, with *Frames) (frames *Frames, past uint64, err error) {
	return v.host.followEvents(ctx, v.row.Session, f, after, with)
}

func (h *Host) followEvents(ctx context.Context, session string, f *Framer, after uint64, with *Frames) (*Frames, uint64, error) {
	head, err := h.journal.Head(ctx, session)
	if errors.Is(err, journal.ErrNotFound) && session == HostStream { // nothing was published yet
		head, err = journal.Head{}, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("follow the events of a session: %w", err)
	}
	from, err := h.sequenceBehind(ctx, session, head.Sequence, after)
	if err != nil {
		return nil, 0, fmt.Errorf("follow the events of a session: %w", err)
	}
	return f.Join(feed.Session(session, from), with), head.Sequence, nil
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
		var one journal.Chunk
		if err == nil {
			one, err = h.journal.Read(ctx, journal.BySession{Session: session, After: uint64(i)}, journal.Page{Limit: 1})
		}
		return err != nil || len(one.Records) == 0 || one.Records[0].Offset >= from
	})
	return uint64(found), err
}

// BehindDamage returns the event number behind stored data that cannot be read, where an
// error of following the whole host is about such: a reader goes on there, and sees a gap in
// the numbers.
func (h *Host) BehindDamage(err error) (after uint64, ok bool) {
	var damage *journal.DamagedError
	if !errors.As(err, &damage) || damage.ResumeEvent == 0 {
		return 0, false
	}
	h.opt.Logger.Error("events cannot be read and are left out", "upTo", damage.ResumeEvent, "cause", damage.Error())
	return damage.ResumeEvent, true
}

// Writable reports whether the store takes new work.
func (h *Host) Writable() bool {
	return h.journal.Err() == nil && h.journal.Space().Level == journal.SpaceOpen
}
