package journal

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Head implements Reader.
func (m *Memory) Head(ctx context.Context, session string) (Head, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	stream, err := m.streamLocked(ctx, session)
	if err != nil || len(stream.records) == 0 {
		return Head{}, err
	}
	last := stream.records[len(stream.records)-1]
	return Head{Sequence: last.Sequence, Offset: last.Offset, Time: last.Time}, nil
}

// Find implements Reader.
func (m *Memory) Find(ctx context.Context, session, eventID string) (Record, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	stream, err := m.streamLocked(ctx, session)
	if err != nil {
		return Record{}, err
	}
	sequence, ok := SequenceOfEventID(eventID)
	if ok && sequence > 0 && sequence <= uint64(len(stream.records)) {
		if record := stream.records[sequence-1]; record.EventID == eventID {
			return cloneRecord(record), nil
		}
	}
	return Record{}, fmt.Errorf("event %q of %q: %w", eventID, session, ErrNotFound)
}

// Read implements Reader.
func (m *Memory) Read(ctx context.Context, order Order, page Page) (Chunk, error) {
	return ReadPage(ctx, m, order, page)
}

// Scan implements Reader.
func (m *Memory) Scan(ctx context.Context, order Order, page Page, visit func(*Record)) (more bool, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	records, err := m.afterLocked(ctx, order)
	if err != nil {
		return false, err
	}
	filler := NewFiller(page, visit)
	for record := range records {
		if lent := *record; !filler.Add(&lent) {
			break
		}
	}
	return filler.More(), nil
}

// records is a sequence of records, for one reader under the lock.
type records func(yield func(*Record) bool)

// afterLocked gives the records of an order behind its position.
func (m *Memory) afterLocked(ctx context.Context, order Order) (records, error) {
	if m.closed {
		return nil, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch order := order.(type) {
	case BySession:
		stream, err := m.streamLocked(ctx, order.Session)
		if err != nil {
			return nil, err
		}
		return each(stream.records[min(order.After, uint64(len(stream.records))):]), nil
	case ByRun:
		return m.spanLocked(ctx, order.Session, span{spanRun, order.RootRunID},
			func(r *Record) bool { return r.RunSequence > order.After })
	case ByWorkflow:
		return m.spanLocked(ctx, order.Session, span{spanWorkflow, order.WorkflowID},
			func(r *Record) bool { return r.WorkflowSequence > order.After })
	case ByLog:
		return m.spanLocked(ctx, order.Session, span{spanLog, order.LogRun},
			func(r *Record) bool { return r.FirstLog+uint64(r.LogCount)-1 > order.After })
	case ByOffset:
		return each(m.facts[min(order.After, uint64(len(m.facts))):]), nil
	case ByEvent:
		return m.eventsLocked(order.After), nil
	default:
		return nil, invalid("unknown order %T", order)
	}
}

// each yields what is not deleted.
func each(slice []*Record) records {
	return func(yield func(*Record) bool) {
		for _, record := range slice {
			if record != nil && !yield(record) {
				return
			}
		}
	}
}

func (m *Memory) spanLocked(ctx context.Context, session string, s span, after func(*Record) bool) (records, error) {
	stream, err := m.streamLocked(ctx, session)
	if err != nil {
		return nil, err
	}
	sequences := stream.spans[s]
	first := sort.Search(len(sequences), func(i int) bool { return after(stream.records[sequences[i]-1]) })
	return func(yield func(*Record) bool) {
		for _, sequence := range sequences[first:] {
			if !yield(stream.records[sequence-1]) {
				return
			}
		}
	}, nil
}

func (m *Memory) eventsLocked(after uint64) records {
	first := sort.Search(len(m.events), func(i int) bool {
		record := m.facts[m.events[i]-1]
		return record.FirstEvent+uint64(record.EventCount)-1 > after
	})
	return func(yield func(*Record) bool) {
		for _, offset := range m.events[first:] {
			if !yield(m.facts[offset-1]) {
				return
			}
		}
	}
}

// Row implements Index.
func (m *Memory) Row(ctx context.Context, key Key) (Row, error) {
	if err := key.Validate(); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return nil, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	row, found := m.rows[key]
	if m.damaged[key] {
		return nil, damageOf(row).Err()
	}
	if stream := m.streams[key.Session]; !found && stream != nil && stream.deleted {
		return nil, fmt.Errorf("%s: %w", key, ErrDeleted)
	}
	if !found {
		return nil, fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	return ownRow(row), nil
}

// Rows implements Index. Each row of the list gets a text by which it is
// sorted, and which is its cursor.
func (m *Memory) Rows(ctx context.Context, list List, page RowPage) (Rows, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.closed {
		return Rows{}, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return Rows{}, err
	}
	descending, err := checkList(list)
	if err != nil {
		return Rows{}, err
	}
	type entry struct {
		place string
		row   Row
	}
	var entries []entry
	for key, row := range m.rows {
		place, member := m.placeLocked(list, row, m.damaged[key])
		if member && (page.Cursor == "" || (place > page.Cursor) != descending && place != page.Cursor) {
			entries = append(entries, entry{place, row})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if descending {
			a, b = b, a
		}
		return strings.Compare(a.place, b.place)
	})
	var rows Rows
	if limit := clamp(page.Limit, MaxPageRecords); len(entries) > limit {
		entries = entries[:limit]
		rows.Next = entries[limit-1].place
	}
	for _, e := range entries {
		if m.damaged[e.row.Key()] {
			rows.Damaged = append(rows.Damaged, damageOf(e.row))
		} else {
			rows.Rows = append(rows.Rows, ownRow(e.row))
		}
	}
	return rows, nil
}

func checkList(list List) (descending bool, err error) {
	switch list := list.(type) {
	case Sessions:
		return list.NewestFirst, nil
	case Workflows:
		return true, nil
	case OpenInterrupts, OpenWork, TimersDue, Leases, Tokens, Agents, Materials, Decisions:
		return false, nil
	default:
		return false, invalid("unknown list %T", list)
	}
}

// placeLocked decides whether a row is in a list, and where. What a row holds decides
// nothing where it is damaged.
func (m *Memory) placeLocked(list List, row Row, damaged bool) (place string, member bool) {
	number := func(n uint64) string { return fmt.Sprintf("%016x", n) }
	switch row := row.(type) {
	case SessionRow:
		want, ok := list.(Sessions)
		return number(m.streams[row.Session].place),
			ok && (damaged || cmp.Or(want.State, row.State) == row.State && cmp.Or(want.Workspace, row.Workspace) == row.Workspace)
	case InterruptRow:
		want, ok := list.(OpenInterrupts)
		return number(row.Offset), ok && row.Open && cmp.Or(want.Session, row.Session) == row.Session
	case OpenWorkRow:
		_, ok := list.(OpenWork)
		return number(m.streams[row.Session].place), ok
	case TimerRow:
		want, ok := list.(TimersDue)
		var owner uint64 // timers of no session come first
		if stream := m.streams[row.Session]; stream != nil {
			owner = stream.place
		}
		due := number(uint64(row.Due.UnixMicro()) ^ 1<<63)
		return due + number(owner) + row.ID, ok && !row.Due.After(want.Until)
	case LeaseRow:
		_, ok := list.(Leases)
		return row.Executor, ok
	case TokenRow:
		want, ok := list.(Tokens)
		return row.ID, ok && row.Executor == want.Executor
	case AgentRow:
		_, ok := list.(Agents)
		return row.ID, ok
	case MaterialRow:
		want, ok := list.(Materials)
		place := number(m.streams[row.Session].place) + row.Space + "\x00" + row.ID
		return place, ok && (want == Materials{} || want == Materials{row.Session, row.Space})
	case WorkflowRow:
		want, ok := list.(Workflows)
		return row.ID, ok && (damaged || cmp.Or(want.Session, row.Session) == row.Session && cmp.Or(want.State, row.State) == row.State)
	case DecisionRow:
		want, ok := list.(Decisions)
		return row.ID, ok && want.Session == row.Of && (damaged || cmp.Or(want.Decision, row.Decision) == row.Decision)
	default:
		return "", false
	}
}

func cloneRecord(record *Record) Record {
	own := *record
	own.Bytes = bytes.Clone(record.Bytes)
	return own
}

func cloneSnapshot(snapshot Snapshot) Snapshot {
	return Snapshot{Sequence: snapshot.Sequence, Bytes: bytes.Clone(snapshot.Bytes)}
}

func insertSnapshot(caches []Snapshot, snapshot Snapshot) []Snapshot {
	at, found := slices.BinarySearchFunc(caches, snapshot.Sequence, func(c Snapshot, sequence uint64) int {
		return cmp.Compare(c.Sequence, sequence)
	})
	if found {
		caches[at] = snapshot
		return caches
	}
	return slices.Insert(caches, at, snapshot)
}
