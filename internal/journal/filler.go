package journal

import "slices"

// Filler fills one page of records for an engine: it is given records in order
// until it says that it has enough.
type Filler struct {
	page  Page
	bytes int
	chunk Chunk
}

// firstRecords is how many records a page has room for before it grows to its limit.
const firstRecords = 128

// NewFiller starts a page.
func NewFiller(page Page) *Filler { return &Filler{page: page.Clamped()} }

// Add offers the next record. It reports false when the record is not in the
// page, which then is complete and known to have more behind it.
func (f *Filler) Add(record Record) bool {
	full := len(f.chunk.Records) >= f.page.Limit || f.bytes+len(record.Bytes) > f.page.Bytes
	if full && len(f.chunk.Records) > 0 {
		f.chunk.More = true
		return false
	}
	f.bytes += len(record.Bytes)
	switch n := len(f.chunk.Records); {
	case n == 0:
		f.chunk.Records = make([]Record, 0, min(f.page.Limit, firstRecords))
	case n == firstRecords:
		f.chunk.Records = slices.Grow(f.chunk.Records, f.page.Limit-n)
	}
	f.chunk.Records = append(f.chunk.Records, record)
	return true
}

// Chunk is the page.
func (f *Filler) Chunk() Chunk { return f.chunk }
