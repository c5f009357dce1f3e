package feed

import (
	"context"

	"github.com/mahati-host/mahati/internal/journal"
)

// Subscription gives facts as records. [Feed.Subscribe] makes one.
type Subscription struct{ cursor }

// Poll gives what stands behind the cursor, up to a page, and nothing when
// there is nothing yet: then wait for Wake. The records may be shared with other
// readers and must not be changed.
func (s *Subscription) Poll(ctx context.Context) ([]journal.Record, error) {
	b, err := s.poll(ctx)
	return b.records, err
}

// Next is Poll, but it waits until there is something.
func (s *Subscription) Next(ctx context.Context) ([]journal.Record, error) {
	b, err := s.next(ctx)
	return b.records, err
}

// Framer gives facts as the frames of one encoding, each made once for all the
// readers at the head. A binding makes one and keeps it.
type Framer struct {
	feed   *Feed
	encode func(journal.Record) []byte
}

// NewFramer makes a framer. encode makes the bytes of one fact, or nothing for a
// fact that is not shown. It must depend on the fact alone, must not wait, and
// is called by several goroutines.
func NewFramer(feed *Feed, encode func(journal.Record) []byte) *Framer {
	return &Framer{feed: feed, encode: encode}
}

// Subscribe follows a place.
func (f *Framer) Subscribe(place Place) *Frames { return f.Join(place, nil) }

// Join is Subscribe for one who looks at several places: what fills the slot of the other
// subscription, or of this one, fills the one slot of both. Nil joins nothing.
func (f *Framer) Join(place Place, other *Frames) *Frames {
	s := &Frames{}
	if other != nil {
		s.slot = other.slot
	}
	f.feed.add(&s.cursor, place, f)
	return s
}

// join makes the frames of the facts that fit into the limit, at least of one,
// and says of how many facts.
func (f *Framer) join(records []journal.Record, limit int) (joined []byte, facts int) {
	for i := range records {
		frame := f.encode(records[i])
		if len(joined) > 0 && len(joined)+len(frame) > limit {
			return joined, i
		}
		joined = append(joined, frame...)
	}
	return joined, len(records)
}

// Frames gives facts as frames. [Framer.Subscribe] makes one.
type Frames struct{ cursor }

// Poll gives the frames of the facts behind the cursor, joined into one piece
// of about a page, and nothing when there are none yet: then wait for Wake. The
// bytes may be shared with other readers and must not be changed.
func (s *Frames) Poll(ctx context.Context) ([]byte, error) {
	b, err := s.poll(ctx)
	return b.frames, err
}

// Next is Poll, but it waits until there is something.
func (s *Frames) Next(ctx context.Context) ([]byte, error) {
	b, err := s.next(ctx)
	return b.frames, err
}
