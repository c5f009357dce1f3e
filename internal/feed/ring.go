package feed

import (
	"slices"
	"sort"

	"github.com/mahati-host/mahati/internal/journal"
)

// batch is what one look found.
type batch struct {
	records []journal.Record
	frames  []byte
	// last is the position behind which the next look goes on.
	last uint64
}

func (b batch) empty() bool { return len(b.records) == 0 && len(b.frames) == 0 }

// ring holds the newest facts of a line. A warm ring covers the positions above
// low: all facts up to high are in it, and its filler adds all that follow. A
// cold ring, the zero value, covers nothing.
type ring struct {
	warm      bool
	low, high uint64
	entries   []entry
	bytes     int
}

// entry is a fact in a ring: its record, or its frame in a chunk.
type entry struct {
	last       uint64
	size       int
	record     *journal.Record
	chunk      *chunk
	start, end int
}

// chunk is an array of frames one behind the other, so that readers get what
// waits as one piece. What is written is never changed; readers share it.
type chunk struct{ bytes []byte }

// entrySize is what an entry costs beside its bytes, for the bounds.
const entrySize = 256

// covers reports whether the ring knows what stands behind a position.
func (r *ring) covers(after uint64) bool { return r.warm && r.low <= after && after <= r.high }

// begin makes a cold ring cover what comes behind a position.
func (r *ring) begin(position uint64) { *r = ring{warm: true, low: position, high: position} }

// empty forgets the facts and goes on to cover what comes.
func (r *ring) empty() { r.begin(r.high) }

// add puts a fact at the end. before is the position just before it.
func (r *ring) add(before uint64, e entry) {
	if !r.warm {
		r.begin(before)
	}
	r.entries = append(r.entries, e)
	r.high = e.last
	r.bytes += e.size
}

// bound drops the oldest facts until the ring has at most so many facts and
// bytes. The newest fact stays, whatever its size.
func (r *ring) bound(facts, bytes int) {
	for len(r.entries) > 1 && (len(r.entries) > facts || r.bytes > bytes) {
		r.low = r.entries[0].last
		r.bytes -= r.entries[0].size
		r.entries[0] = entry{} // the array lives on; what it held should not
		r.entries = r.entries[1:]
	}
}

// frame puts a frame into the newest chunk, or into a new one when it would
// grow beyond the limit.
func (r *ring) frame(frame []byte, limit int) (c *chunk, start, end int) {
	if n := len(r.entries); n > 0 {
		c = r.entries[n-1].chunk
	}
	if c == nil || len(c.bytes)+len(frame) > limit {
		c = &chunk{}
	}
	start = len(c.bytes)
	c.bytes = append(c.bytes, frame...)
	return c, start, len(c.bytes)
}

// waiting gives the facts behind a position that the ring covers, up to about
// limit bytes.
func (r *ring) waiting(after uint64, limit int) batch {
	first := sort.Search(len(r.entries), func(i int) bool { return r.entries[i].last > after })
	entries := r.entries[first:]
	if len(entries) == 0 {
		return batch{last: after}
	}
	if entries[0].chunk != nil {
		return framesOf(entries)
	}
	return recordsOf(entries, limit)
}

// framesOf gives the frames at the beginning that are one piece.
func framesOf(entries []entry) batch {
	first := entries[0]
	n := slices.IndexFunc(entries, func(e entry) bool { return e.chunk != first.chunk })
	if n < 0 {
		n = len(entries)
	}
	last := entries[n-1]
	return batch{frames: first.chunk.bytes[first.start:last.end:last.end], last: last.last}
}

func recordsOf(entries []entry, limit int) batch {
	var b batch
	size := 0
	for _, e := range entries {
		if size += len(e.record.Bytes); size > limit && len(b.records) > 0 {
			break
		}
		b.records = append(b.records, *e.record)
		b.last = e.last
	}
	return b
}
