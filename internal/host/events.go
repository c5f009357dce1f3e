package host

import (
	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/journal"
)

// HostStream is the session of facts that belong to none (R8).
const HostStream = journal.HostStream

// ErrBroken says that the store was lost to writers.
var ErrBroken = journal.ErrBroken

// EventRange is which event numbers can be read: Oldest is one above Newest where there are
// none.
type EventRange struct{ Oldest, Newest uint64 }

// Events returns the events that can be read now (R39, R40).
func (h *Host) Events() EventRange {
	return EventRange{Oldest: h.journal.Identity().FirstEvent, Newest: h.journal.Durable().Event}
}

// FollowEvents reads the facts that have an event above a number, of the whole host, as
// frames, and goes on with it. A fact with events on both sides is given whole. The caller
// has authorised the reader.
func (h *Host) FollowEvents(f *Framer, after uint64) *Frames { return f.Subscribe(feed.Events(after)) }

// Writable reports whether the store takes new work.
func (h *Host) Writable() bool {
	return h.journal.Err() == nil && h.journal.Space().Level == journal.SpaceOpen
}
