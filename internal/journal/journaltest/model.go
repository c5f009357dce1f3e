package journaltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// Model is the obvious journal: one list of facts, one map of rows, and every
// question answered by looking at all of them. It checks what an engine checks
// of heads, conditions and sequences, and gives the numbers an engine gives.
type Model struct {
	seed     uint64
	records  []journal.Record
	offset   uint64
	event    uint64
	sessions []string
	deleted  map[string]bool
	rows     map[journal.Key]journal.Row
	terms    map[string]journal.Term
}

// NewModel makes an empty journal whose event numbers start at seed.
func NewModel(seed uint64) *Model {
	return &Model{
		seed: seed, event: seed - 1, deleted: map[string]bool{},
		rows: map[journal.Key]journal.Row{}, terms: map[string]journal.Term{},
	}
}

// Append decides a batch.
func (m *Model) Append(batch journal.Batch) (journal.Receipt, error) {
	if _, err := batch.Validate(); err != nil {
		return journal.Receipt{}, err
	}
	if err := m.expect(batch.Session, batch.ExpectHead, batch.ExpectTerm); err != nil {
		return journal.Receipt{}, err
	}
	for _, condition := range batch.Conditions {
		if !m.holds(condition) {
			return journal.Receipt{}, journal.ErrCondition
		}
	}
	if err := m.follows(batch); err != nil {
		return journal.Receipt{}, err
	}
	if !slices.Contains(m.sessions, batch.Session) {
		m.sessions = append(m.sessions, batch.Session)
	}
	receipt := m.add(batch)
	m.change(batch)
	return receipt, nil
}

// Term makes a term the newest of a session.
func (m *Model) Term(session string, term journal.Term) { m.terms[session] = term }

// Delete decides a deletion.
func (m *Model) Delete(deletion journal.Deletion) error {
	if !slices.Contains(m.sessions, deletion.Session) {
		return journal.ErrNotFound
	}
	if err := m.expect(deletion.Session, deletion.ExpectHead, deletion.ExpectTerm); err != nil {
		return err
	}
	m.deleted[deletion.Session] = true
	m.records = slices.DeleteFunc(m.records, func(r journal.Record) bool { return r.Session == deletion.Session })
	for key, row := range m.rows {
		if journal.Owner(row) == deletion.Session {
			delete(m.rows, key)
		}
	}
	return nil
}

func (m *Model) expect(session string, head uint64, term journal.Term) error {
	if m.deleted[session] {
		return journal.ErrDeleted
	}
	if m.head(session).Sequence != head || m.terms[session] != term {
		return journal.ErrConflict
	}
	return nil
}

func (m *Model) holds(condition journal.Condition) bool {
	switch condition := condition.(type) {
	case journal.IfAbsent:
		return m.rows[condition.Key] == nil
	case journal.IfEqual:
		row := m.rows[condition.Row.Key()]
		return row != nil && bare(row) == bare(condition.Row)
	default:
		return false
	}
}

// bare writes a row down without the offset that the journal put in.
func bare(row journal.Row) string {
	if interrupt, ok := row.(journal.InterruptRow); ok {
		interrupt.Offset = 0
		row = interrupt
	}
	return fmt.Sprintf("%T %+v", row, row)
}

// follows checks run and workflow sequences, and that interrupts name a request.
func (m *Model) follows(batch journal.Batch) error {
	next := map[string]uint64{}
	count := func(kind, id string, belongs func(journal.Record) bool) uint64 {
		if _, known := next[kind+id]; !known {
			for _, r := range m.records {
				if r.Session == batch.Session && belongs(r) {
					next[kind+id]++
				}
			}
		}
		next[kind+id]++
		return next[kind+id]
	}
	for _, f := range batch.Facts {
		if f.RootRunID != "" && f.RunSequence != count("run", f.RootRunID, func(r journal.Record) bool { return r.RootRunID == f.RootRunID }) {
			return journal.ErrInvalid
		}
		if f.WorkflowID != "" && f.WorkflowSequence != count("workflow", f.WorkflowID, func(r journal.Record) bool { return r.WorkflowID == f.WorkflowID }) {
			return journal.ErrInvalid
		}
	}
	for _, change := range batch.Changes {
		put, _ := change.(journal.Put)
		interrupt, ok := put.Row.(journal.InterruptRow)
		if !ok || interrupt.Sequence > batch.ExpectHead && interrupt.Sequence <= batch.ExpectHead+uint64(len(batch.Facts)) {
			continue
		}
		known, ok := m.rows[interrupt.Key()].(journal.InterruptRow)
		if !ok || known.Sequence != interrupt.Sequence || known.Session != interrupt.Session {
			return journal.ErrInvalid
		}
	}
	return nil
}

func (m *Model) add(batch journal.Batch) journal.Receipt {
	receipt := journal.Receipt{FirstLogs: make([]uint64, len(batch.Facts))}
	for i, fact := range batch.Facts {
		m.offset++
		record := journal.Record{
			Fact: fact, Session: batch.Session, Sequence: batch.ExpectHead + uint64(i) + 1,
			Offset: m.offset, Time: batch.Time.Truncate(time.Microsecond).UTC(),
		}
		if fact.EventCount > 0 {
			record.FirstEvent = m.event + 1
			m.event += uint64(fact.EventCount)
		}
		if fact.LogCount > 0 {
			record.FirstLog = 1
			for _, r := range m.records {
				if r.Session == batch.Session && r.LogRun == fact.LogRun {
					record.FirstLog += uint64(r.LogCount)
				}
			}
		}
		if i == 0 {
			receipt.FirstSequence, receipt.FirstOffset = record.Sequence, record.Offset
		}
		if receipt.FirstEvent == 0 {
			receipt.FirstEvent = record.FirstEvent
		}
		receipt.FirstLogs[i] = record.FirstLog
		m.records = append(m.records, record)
	}
	return receipt
}

func (m *Model) change(batch journal.Batch) {
	for _, change := range batch.Changes {
		switch change := change.(type) {
		case journal.Remove:
			delete(m.rows, change.Key)
		case journal.Put:
			m.rows[change.Row.Key()] = m.completed(change.Row)
		}
	}
}

func (m *Model) completed(row journal.Row) journal.Row {
	switch row := row.(type) {
	case journal.InterruptRow:
		for _, r := range m.records {
			if r.Session == row.Session && r.Sequence == row.Sequence {
				row.Offset = r.Offset
			}
		}
		return row
	case journal.WorkflowRow:
		if known, ok := m.rows[row.Key()].(journal.WorkflowRow); ok && row.First == 0 && known.Session == row.Session {
			row.First = known.First
		}
		return row
	case journal.TimerRow:
		row.Due = row.Due.Truncate(time.Microsecond).UTC()
		return row
	}
	return row
}

func (m *Model) head(session string) journal.Head {
	var head journal.Head
	for _, r := range m.records {
		if r.Session == session {
			head = journal.Head{Sequence: r.Sequence, Offset: r.Offset, Time: r.Time}
		}
	}
	return head
}

// Durable implements Source.
func (m *Model) Durable() journal.Mark { return journal.Mark{Offset: m.offset, Event: m.event} }

// Head implements Source.
func (m *Model) Head(_ context.Context, session string) (journal.Head, error) {
	return m.head(session), m.exists(session)
}

func (m *Model) exists(session string) error {
	switch {
	case m.deleted[session]:
		return journal.ErrDeleted
	case !slices.Contains(m.sessions, session):
		return journal.ErrNotFound
	}
	return nil
}

// Find implements Source.
func (m *Model) Find(_ context.Context, session, id string) (journal.Record, error) {
	if err := m.exists(session); err != nil {
		return journal.Record{}, err
	}
	for _, r := range m.records {
		if r.Session == session && r.EventID == id {
			return r, nil
		}
	}
	return journal.Record{}, journal.ErrNotFound
}

// Scan implements Source.
func (m *Model) Scan(ctx context.Context, order journal.Order, page journal.Page, visit func(*journal.Record)) (bool, error) {
	chunk, err := m.Read(ctx, order, page)
	for i := range chunk.Records {
		visit(&chunk.Records[i])
	}
	return chunk.More, err
}

// Read implements Source.
func (m *Model) Read(_ context.Context, order journal.Order, page journal.Page) (journal.Chunk, error) {
	var wanted func(journal.Record) bool
	session := ""
	switch o := order.(type) {
	case journal.BySession:
		session, wanted = o.Session, func(r journal.Record) bool { return r.Sequence > o.After }
	case journal.ByRun:
		session, wanted = o.Session, func(r journal.Record) bool { return r.RootRunID == o.RootRunID && r.RunSequence > o.After }
	case journal.ByWorkflow:
		session, wanted = o.Session, func(r journal.Record) bool { return r.WorkflowID == o.WorkflowID && r.WorkflowSequence > o.After }
	case journal.ByLog:
		session, wanted = o.Session, func(r journal.Record) bool {
			return r.LogRun == o.LogRun && r.FirstLog+uint64(r.LogCount) > o.After+1
		}
	case journal.ByOffset:
		wanted = func(r journal.Record) bool { return r.Offset > o.After }
	case journal.ByEvent:
		wanted = func(r journal.Record) bool {
			return r.EventCount > 0 && r.FirstEvent+uint64(r.EventCount) > o.After+1
		}
	}
	if session != "" {
		if err := m.exists(session); err != nil {
			return journal.Chunk{}, err
		}
	}
	var chunk journal.Chunk
	bytes := 0
	for _, r := range m.records {
		if session != "" && r.Session != session || !wanted(r) {
			continue
		}
		if n := len(chunk.Records); n == page.Limit || n > 0 && bytes+len(r.Bytes) > page.Bytes {
			chunk.More = true
			break
		}
		bytes += len(r.Bytes)
		chunk.Records = append(chunk.Records, r)
	}
	return chunk, nil
}

// Row implements Source.
func (m *Model) Row(_ context.Context, key journal.Key) (journal.Row, error) {
	if row := m.rows[key]; row != nil {
		return row, nil
	}
	if m.deleted[key.Session] {
		return nil, journal.ErrDeleted
	}
	return nil, journal.ErrNotFound
}

// Rows implements Source. Its cursor is the number of rows already given.
func (m *Model) Rows(_ context.Context, list journal.List, page journal.RowPage) (journal.Rows, error) {
	type placed struct {
		place string
		row   journal.Row
	}
	var members []placed
	for _, row := range m.rows {
		if place, ok := m.place(list, row); ok {
			members = append(members, placed{place, row})
		}
	}
	slices.SortFunc(members, func(a, b placed) int { return strings.Compare(a.place, b.place) })
	_, workflows := list.(journal.Workflows)
	if sessions, ok := list.(journal.Sessions); workflows || ok && sessions.NewestFirst {
		slices.Reverse(members)
	}
	var rows journal.Rows
	start := len(page.Cursor)
	for i := start; i < len(members) && i < start+page.Limit; i++ {
		rows.Rows = append(rows.Rows, members[i].row)
	}
	if end := start + len(rows.Rows); end < len(members) {
		rows.Next = strings.Repeat("x", end)
	}
	return rows, nil
}

func (m *Model) place(list journal.List, row journal.Row) (string, bool) {
	created := func(session string) string { return fmt.Sprintf("%09d", slices.Index(m.sessions, session)) }
	switch list := list.(type) {
	case journal.Sessions:
		r, ok := row.(journal.SessionRow)
		return created(r.Session), ok && (list.State == "" || list.State == r.State) &&
			(list.Workspace == "" || list.Workspace == r.Workspace)
	case journal.OpenInterrupts:
		r, ok := row.(journal.InterruptRow)
		return fmt.Sprintf("%09d", r.Offset), ok && r.Open && (list.Session == "" || list.Session == r.Session)
	case journal.OpenWork:
		r, ok := row.(journal.OpenWorkRow)
		return created(r.Session), ok
	case journal.TimersDue:
		r, ok := row.(journal.TimerRow)
		owner := "" // timers of no session come first, the others by creation
		if r.Session != "" {
			owner = created(r.Session)
		}
		return fmt.Sprintf("%020d %s %s", r.Due.UnixMicro(), owner, r.ID), ok && !r.Due.After(list.Until)
	case journal.Leases:
		r, ok := row.(journal.LeaseRow)
		return r.Executor, ok
	case journal.Tokens:
		r, ok := row.(journal.TokenRow)
		return r.ID, ok && r.Executor == list.Executor
	case journal.Agents:
		r, ok := row.(journal.AgentRow)
		return r.ID, ok
	case journal.Materials:
		r, ok := row.(journal.MaterialRow)
		return created(r.Session) + r.Space + " " + r.ID, ok && (list == journal.Materials{} || list == journal.Materials{Session: r.Session, Space: r.Space})
	case journal.Workflows:
		r, ok := row.(journal.WorkflowRow)
		return r.ID, ok && (list.Session == "" || list.Session == r.Session) && (list.State == "" || list.State == r.State)
	case journal.Decisions:
		r, ok := row.(journal.DecisionRow)
		return r.ID, ok && r.Of == list.Session && (list.Decision == "" || list.Decision == r.Decision)
	}
	return "", false
}
