package graph

// The most that one graph keeps while it waits.
const (
	maxWaiting      = 256
	maxWaitingBytes = 4 << 20
)

// queue holds records that wait, in the order in which they came. The zero value is
// empty.
type queue struct {
	records []record
	bytes   int
}

// first returns the record that waits longest, or nil.
func (q *queue) first() record {
	if len(q.records) == 0 {
		return nil
	}
	return q.records[0]
}

// fits reports whether there is room for a record. There always is in an empty queue.
func (q *queue) fits(r record) bool {
	return len(q.records) == 0 || len(q.records) < maxWaiting && q.bytes+r.bytes() <= maxWaitingBytes
}

func (q *queue) put(r record) {
	q.records, q.bytes = append(q.records, r), q.bytes+r.bytes()
}

// drop removes the first record.
func (q *queue) drop() {
	q.bytes -= q.records[0].bytes()
	q.records[0], q.records = nil, q.records[1:]
}
