package feed

import "github.com/mahati-host/mahati/internal/journal"

// Place is what a subscription follows and the position behind which it begins.
// [Session], [Host] and [Events] make one.
type Place struct {
	line  line
	after uint64
}

// Session follows one session by its sequence.
func Session(session string, after uint64) Place { return Place{line{bySession, session}, after} }

// Host follows all sessions by host offset.
func Host(after uint64) Place { return Place{line{byOffset, ""}, after} }

// Events follows the facts that have event numbers, by these numbers. A fact
// some of whose numbers are above after is given whole.
func Events(after uint64) Place { return Place{line{byEvent, ""}, after} }

// line is one ordered sequence of facts that can be followed.
type line struct {
	order   order
	session string
}

type order uint8

const (
	bySession order = iota
	byOffset
	byEvent
)

// after is how the journal is asked for what stands behind a position.
func (l line) after(position uint64) journal.Order {
	switch l.order {
	case byOffset:
		return journal.ByOffset{After: position}
	case byEvent:
		return journal.ByEvent{After: position}
	default:
		return journal.BySession{Session: l.session, After: position}
	}
}

// span gives the position just before a fact and that of the fact itself, the
// last one where it has several.
func (l line) span(record *journal.Record) (before, last uint64) {
	switch l.order {
	case byOffset:
		return record.Offset - 1, record.Offset
	case byEvent:
		return record.FirstEvent - 1, record.FirstEvent + uint64(record.EventCount) - 1
	default:
		return record.Sequence - 1, record.Sequence
	}
}
