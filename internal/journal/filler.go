package journal

import (
	"context"
	"slices"
)

// Filler fills one page for an engine: it is given records in order until it says that
// it has enough.
type Filler struct {
	page         Page
	visit        func(*Record)
	count, bytes int
	more         bool
}

// NewFiller starts a page whose records are visited.
func NewFiller(page Page, visit func(*Record)) *Filler {
	return &Filler{page: page.Clamped(), visit: visit}
}

// Add offers the next record. It reports false when the record is not in the
// page, which then is complete and known to have more behind it.
func (f *Filler) Add(record *Record) bool {
	full := f.count >= f.page.Limit || f.bytes+len(record.Bytes) > f.page.Bytes
	if full && f.count > 0 {
		f.more = true
		return false
	}
	f.count, f.bytes = f.count+1, f.bytes+len(record.Bytes)
	f.visit(record)
	return true
}

// Count is how many records are in the page.
func (f *Filler) Count() int { return f.count }

// More says that a record was offered that is not in the page.
func (f *Filler) More() bool { return f.more }

// ReadPage is Read by means of Scan: the records of a page with bytes of their own.
func ReadPage(ctx context.Context, reader Reader, order Order, page Page) (Chunk, error) {
	c := collector{limit: page.Clamped().Limit}
	more, err := reader.Scan(ctx, order, page, c.add)
	if err != nil {
		return Chunk{}, err
	}
	return Chunk{Records: c.records, More: more}, nil
}

// collector keeps records, their bytes in blocks that grow: a page of many small facts is
// a few allocations, and one of a single fact is no larger than that.
type collector struct {
	limit   int
	records []Record
	block   []byte
	size    int
}

const (
	// firstRecords is how many records a page has room for before it grows to its limit.
	firstRecords = 128
	// firstBlock and maxBlock bound the blocks, in bytes; a larger fact has its own.
	firstBlock, maxBlock = 4 << 10, 64 << 10
)

func (c *collector) add(record *Record) {
	switch n := len(c.records); {
	case n == 0:
		c.records = make([]Record, 0, min(c.limit, firstRecords))
	case n == firstRecords:
		c.records = slices.Grow(c.records, c.limit-n)
	}
	own := *record
	own.Bytes = c.keep(record.Bytes)
	c.records = append(c.records, own)
}

func (c *collector) keep(data []byte) []byte {
	if len(data) > cap(c.block)-len(c.block) {
		if c.limit == 1 || len(data) >= maxBlock {
			return slices.Clone(data)
		}
		c.size = min(max(2*c.size, firstBlock), maxBlock)
		c.block = make([]byte, 0, max(c.size, len(data)))
	}
	from := len(c.block)
	c.block = append(c.block, data...)
	return c.block[from:len(c.block):len(c.block)]
}
