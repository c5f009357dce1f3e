package journal

import (
	"bytes"
	"fmt"
	"slices"
	"time"
)

// memoryGroup is what the committer has staged on top of what is published.
type memoryGroup struct {
	mark    Mark
	streams map[string]*memoryTail
	created []string    // sessions of streams that are new, in order
	rows    map[Key]Row // nil: removed
	facts   []*Record
	bytes   int
	delete  string
}

// memoryTail is the staged end of a session.
type memoryTail struct {
	head    uint64
	records []*Record
	spans   map[span][]uint64
}

func (g *memoryGroup) reset(mark Mark) {
	*g = memoryGroup{mark: mark, streams: map[string]*memoryTail{}, rows: map[Key]Row{}}
}

// Write implements Storage: memory has nothing to write.
func (m *Memory) Write(written func() error) error { return written() }

// Discard implements Storage.
func (m *Memory) Discard() { m.staged.reset(m.Durable()) }

// Publish implements Storage.
func (m *Memory) Publish() Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, row := range m.staged.rows {
		m.publishRowLocked(key, row)
	}
	for _, session := range m.staged.created {
		m.created++
		m.streams[session] = &memoryStream{place: m.created, spans: map[span][]uint64{}}
	}
	for session, tail := range m.staged.streams {
		m.publishTailLocked(session, tail)
	}
	for _, record := range m.staged.facts {
		m.facts = append(m.facts, record)
		if record.EventCount > 0 {
			m.events = append(m.events, record.Offset)
		}
	}
	if m.staged.delete != "" {
		m.deleteLocked(m.staged.delete)
	}
	m.mark = m.staged.mark
	m.gate.Wrote(m.staged.bytes)
	m.staged.reset(m.mark)
	return m.mark
}

func (m *Memory) publishRowLocked(key Key, row Row) {
	delete(m.damaged, key)
	if row == nil {
		delete(m.rows, key)
		return
	}
	m.rows[key] = row
}

func (m *Memory) publishTailLocked(session string, tail *memoryTail) {
	stream := m.streams[session]
	stream.records = append(stream.records, tail.records...)
	for s, sequences := range tail.spans {
		stream.spans[s] = append(stream.spans[s], sequences...)
	}
}

func (m *Memory) deleteLocked(session string) {
	stream := m.streams[session]
	for _, record := range stream.records {
		m.facts[record.Offset-1] = nil
	}
	m.events = slices.DeleteFunc(m.events, func(offset uint64) bool { return m.facts[offset-1] == nil })
	for key, row := range m.rows {
		if row.owner() == session {
			m.publishRowLocked(key, nil)
		}
	}
	m.streams[session] = &memoryStream{place: stream.place, deleted: true}
}

// stageBatch checks a batch against what is published and staged, numbers it
// and adds it to the group.
func (m *Memory) stageBatch(batch Batch, size int) (Receipt, error) {
	if err := m.gate.Admit(batch.Closing); err != nil {
		return Receipt{}, err
	}
	if err := m.compare(batch.Session, batch.ExpectHead, batch.ExpectTerm); err != nil {
		return Receipt{}, err
	}
	if err := m.checkConditions(batch.Conditions); err != nil {
		return Receipt{}, err
	}
	records, receipt, err := m.number(batch)
	if err != nil {
		return Receipt{}, err
	}
	changes, err := m.complete(batch.Changes, receipt)
	if err != nil {
		return Receipt{}, err
	}
	m.stageRecords(batch.Session, records)
	m.stageChanges(changes)
	m.staged.bytes += size
	return receipt, nil
}

func (m *Memory) stageDeletion(deletion Deletion) error {
	if err := m.gate.Admit(true); err != nil {
		return err
	}
	if stream := m.streams[deletion.Session]; stream == nil {
		return ErrNotFound
	}
	if err := m.compare(deletion.Session, deletion.ExpectHead, deletion.ExpectTerm); err != nil {
		return err
	}
	m.staged.delete = deletion.Session
	return nil
}

// deleted tells of what is published: a deletion has a group of its own.
func (m *Memory) deleted(session string) bool {
	stream := m.streams[session]
	return stream != nil && stream.deleted
}

// compare fences off owners that know less than the store.
func (m *Memory) compare(session string, head uint64, term Term) error {
	if m.deleted(session) {
		return ErrDeleted
	}
	is, newest := m.head(session), m.terms.Newest(session)
	if is != head || newest != term {
		return &ConflictError{Session: session, ExpectHead: head, Head: is, ExpectTerm: term, NewestTerm: newest}
	}
	return nil
}

func (m *Memory) head(session string) uint64 {
	if tail := m.staged.streams[session]; tail != nil {
		return tail.head
	}
	if stream := m.streams[session]; stream != nil {
		return uint64(len(stream.records))
	}
	return 0
}

func (m *Memory) row(key Key) (Row, error) {
	if row, staged := m.staged.rows[key]; staged {
		return row, nil
	}
	return m.rows[key], nil
}

// readableRow is a row for who must know what it holds.
func (m *Memory) readableRow(key Key) (Row, error) {
	row, err := m.row(key)
	if _, staged := m.staged.rows[key]; !staged && m.damaged[key] {
		return nil, damageOf(row).Err()
	}
	return row, err
}

func (m *Memory) checkConditions(conditions []Condition) error {
	for i, condition := range conditions {
		if err := CheckCondition(i, condition, m.readableRow); err != nil {
			return err
		}
	}
	return nil
}

// number gives a batch its places, and holds the sequences of runs and
// workflows to be 1, 2, 3, ... within the session.
func (m *Memory) number(batch Batch) ([]*Record, Receipt, error) {
	var (
		records = make([]*Record, len(batch.Facts))
		receipt = Receipt{FirstLogs: make([]uint64, len(batch.Facts))}
		mark    = m.staged.mark
		ends    = map[span]uint64{}
		at      = time.UnixMicro(batch.Time.UnixMicro()).UTC()
	)
	for i, fact := range batch.Facts {
		mark.Offset++
		record := &Record{
			Fact: fact, Session: batch.Session, Time: at,
			Sequence: batch.ExpectHead + uint64(i) + 1, Offset: mark.Offset,
		}
		record.Bytes = bytes.Clone(fact.Bytes)
		if fact.EventCount > 0 {
			record.FirstEvent = mark.Event + 1
			mark.Event += uint64(fact.EventCount)
		}
		if err := m.follow(ends, batch.Session, record); err != nil {
			return nil, Receipt{}, fmt.Errorf("fact %d: %w", i, err)
		}
		receipt.FirstLogs[i] = record.FirstLog
		if receipt.FirstEvent == 0 {
			receipt.FirstEvent = record.FirstEvent
		}
		records[i] = record
	}
	if len(records) > 0 {
		receipt.FirstSequence, receipt.FirstOffset = records[0].Sequence, records[0].Offset
	}
	return records, receipt, nil
}

// follow checks that a record is the next of its run and workflow and gives it
// its log numbers. ends holds what the batch itself added so far.
func (m *Memory) follow(ends map[span]uint64, session string, record *Record) error {
	end := func(s span) uint64 {
		if n, ok := ends[s]; ok {
			return n
		}
		return m.spanEnd(session, s)
	}
	if run := (span{spanRun, record.RootRunID}); run.id != "" {
		if err := CheckNext("run", run.id, end(run), record.RunSequence); err != nil {
			return err
		}
		ends[run] = record.RunSequence
	}
	if workflow := (span{spanWorkflow, record.WorkflowID}); workflow.id != "" {
		if err := CheckNext("workflow", workflow.id, end(workflow), record.WorkflowSequence); err != nil {
			return err
		}
		ends[workflow] = record.WorkflowSequence
	}
	if log := (span{spanLog, record.LogRun}); log.id != "" {
		record.FirstLog = end(log) + 1
		ends[log] = end(log) + uint64(record.LogCount)
	}
	return nil
}

// spanEnd is the last number given in a span, staged facts included.
func (m *Memory) spanEnd(session string, s span) uint64 {
	stream, tail := m.streams[session], m.staged.streams[session]
	var last *Record
	if tail != nil && len(tail.spans[s]) > 0 {
		sequences := tail.spans[s]
		last = tail.records[sequences[len(sequences)-1]-tail.records[0].Sequence]
	} else if stream != nil && len(stream.spans[s]) > 0 {
		sequences := stream.spans[s]
		last = stream.records[sequences[len(sequences)-1]-1]
	}
	switch {
	case last == nil:
		return 0
	case s.kind == spanRun:
		return last.RunSequence
	case s.kind == spanWorkflow:
		return last.WorkflowSequence
	default:
		return last.FirstLog + uint64(last.LogCount) - 1
	}
}

// complete puts into rows what the engine adds, given those before them.
func (m *Memory) complete(changes []Change, receipt Receipt) ([]Change, error) {
	completed := slices.Clone(changes)
	for i, change := range completed {
		put, ok := change.(Put)
		if !ok {
			continue
		}
		row, err := CompleteRow(put.Row, len(receipt.FirstLogs), receipt, func(key Key) (Row, error) {
			if row, changed := rowBy(completed[:i], key); changed {
				return row, nil
			}
			return m.row(key)
		})
		if err != nil {
			return nil, fmt.Errorf("change %d: %w", i, err)
		}
		completed[i] = Put{Row: row}
	}
	return completed, nil
}

// rowBy is a row as changes leave it, nil for none; false if they leave it alone.
func rowBy(changes []Change, key Key) (row Row, changed bool) {
	for _, change := range slices.Backward(changes) {
		switch change := change.(type) {
		case Put:
			if change.Row.Key() == key {
				return change.Row, true
			}
		case Remove:
			if change.Key == key {
				return nil, true
			}
		}
	}
	return nil, false
}

func (m *Memory) stageRecords(session string, records []*Record) {
	tail := m.staged.streams[session]
	if tail == nil {
		tail = &memoryTail{head: m.head(session), spans: map[span][]uint64{}}
		m.staged.streams[session] = tail
		if m.streams[session] == nil {
			m.staged.created = append(m.staged.created, session)
		}
	}
	for _, record := range records {
		tail.head = record.Sequence
		tail.records = append(tail.records, record)
		for _, s := range []span{{spanRun, record.RootRunID}, {spanWorkflow, record.WorkflowID}, {spanLog, record.LogRun}} {
			if s.id != "" {
				tail.spans[s] = append(tail.spans[s], record.Sequence)
			}
		}
	}
	m.staged.facts = append(m.staged.facts, records...)
	for _, record := range records {
		m.staged.mark.Offset = record.Offset
		m.staged.mark.Event += uint64(record.EventCount)
	}
}

// stageChanges takes rows in their stored form, so that nothing is shared with
// the caller.
func (m *Memory) stageChanges(changes []Change) {
	for _, change := range changes {
		switch change := change.(type) {
		case Put:
			m.staged.rows[change.Row.Key()] = ownRow(change.Row)
		case Remove:
			m.staged.rows[change.Key] = nil
		}
	}
}

// ownRow copies a row by way of its stored form.
func ownRow(row Row) Row {
	own, err := DecodeRow(EncodeRow(row))
	if err != nil {
		panic(fmt.Sprintf("journal: row %s does not survive its encoding: %v", row.Key(), err))
	}
	return own
}
