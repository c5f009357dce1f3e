package journal

import (
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"reflect"
)

// Verifier collects what an engine's Verify finds and makes the checks that
// need no knowledge of how an engine stores: the numbers of each session, and
// derived rows against the facts. An engine walks its sessions first and its
// rows after them.
type Verifier struct {
	options VerifyOptions
	report  Report
	seed    maphash.Seed
	// expected has the hash of the key of every derived row that the facts
	// cause; holed the sessions of which not all facts could be read.
	expected map[uint64]struct{}
	holed    map[string]bool
	reported uint64
}

// progressFacts is how many facts lie between two calls of Progress.
const progressFacts = 10_000

// NewVerifier starts a report.
func NewVerifier(identity Identity, options VerifyOptions) *Verifier {
	if options.MaxProblems <= 0 {
		options.MaxProblems = maxProblems
	}
	return &Verifier{
		options:  options,
		report:   Report{Format: identity.Format, Epoch: identity.Epoch, Problems: []Problem{}},
		seed:     maphash.MakeSeed(),
		expected: map[uint64]struct{}{},
		holed:    map[string]bool{},
	}
}

// Problem adds a problem.
func (v *Verifier) Problem(p Problem) {
	v.report.ProblemCount++
	if len(v.report.Problems) < v.options.MaxProblems {
		v.report.Problems = append(v.report.Problems, p)
	}
}

// Tombstone counts a deleted session.
func (v *Verifier) Tombstone() { v.report.Deleted++ }

// Batch counts a batch.
func (v *Verifier) Batch() { v.report.Batches++ }

// Report is what was found, with the mark up to which was looked.
func (v *Verifier) Report(mark Mark) Report {
	v.report.LastOffset, v.report.LastEvent = mark.Offset, mark.Event
	v.progress()
	return v.report
}

func (v *Verifier) progress() {
	v.reported = v.report.Facts
	if v.options.Progress != nil {
		v.options.Progress(VerifyProgress{Sessions: v.report.Sessions, Facts: v.report.Facts, Bytes: v.report.Bytes})
	}
}

// Row checks a stored row: that its session lives, that the facts it names are
// there, and, for a derived row, that the facts cause it. The content of
// derived rows was compared by SessionCheck.Finish. head gives the last sequence
// of a session and whether it exists.
func (v *Verifier) Row(row Row, head func(session string) (uint64, bool)) {
	v.report.Rows++
	owner := row.owner()
	if owner == "" {
		return
	}
	problem := func(code ProblemCode, format string, args ...any) {
		v.Problem(Problem{Code: code, Session: owner, Row: row.Key().String(), Detail: fmt.Sprintf(format, args...)})
	}
	last, alive := head(owner)
	if !alive {
		problem(ProblemDangling, "its session does not exist")
		return
	}
	if named := lastNamed(row); named > last {
		problem(ProblemDangling, "names sequence %d, the head is %d", named, last)
	}
	if !row.Derived() || v.options.Derive == nil || v.holed[owner] {
		return
	}
	if _, caused := v.expected[v.hash(row.Key())]; !caused {
		problem(ProblemDerived, "no fact causes it")
	}
}

// lastNamed is the highest sequence that a row names.
func lastNamed(row Row) uint64 {
	switch row := row.(type) {
	case InterruptRow:
		return row.Sequence
	case RunRow:
		return max(row.First, row.Last)
	case WorkflowRow:
		return max(row.First, row.Last)
	default:
		return 0
	}
}

func (v *Verifier) hash(key Key) uint64 { return maphash.Comparable(v.seed, key) }

// SessionCheck follows the records of one session.
type SessionCheck struct {
	v        *Verifier
	session  string
	sequence uint64
	offset   uint64
	event    uint64
	ends     map[span]uint64
	derive   func(Record) (Derived, error)
	rows     map[Key]Row
}

// Session starts the check of a session.
func (v *Verifier) Session(session string) *SessionCheck {
	if session != HostStream && session != RowStream { // which are sessions of nobody
		v.report.Sessions++
	}
	s := &SessionCheck{v: v, session: session, ends: map[span]uint64{}, rows: map[Key]Row{}}
	if v.options.Derive != nil {
		s.derive = v.options.Derive(session)
	}
	return s
}

// Hole says that records up to a sequence could not be read. What depends on
// all facts of the session is not checked any more.
func (s *SessionCheck) Hole(upTo uint64) {
	s.sequence = upTo
	s.ends = nil
	s.derive = nil
	s.v.holed[s.session] = true
}

// Holed says that not all facts of the session could be read.
func (s *SessionCheck) Holed() bool { return s.v.holed[s.session] }

// Sequence is the last sequence seen.
func (s *SessionCheck) Sequence() uint64 { return s.sequence }

// Record checks the next record.
func (s *SessionCheck) Record(record Record) {
	s.v.report.Facts++
	s.v.report.Bytes += uint64(len(record.Bytes))
	if s.v.report.Facts-s.v.reported >= progressFacts {
		s.v.progress()
	}
	s.checkPlace(record)
	s.checkSpan("run", span{spanRun, record.RootRunID}, record, record.RunSequence, 1)
	s.checkSpan("workflow", span{spanWorkflow, record.WorkflowID}, record, record.WorkflowSequence, 1)
	s.checkSpan("log", span{spanLog, record.LogRun}, record, record.FirstLog, uint64(record.LogCount))
	s.deriveRows(record)
}

func (s *SessionCheck) problem(code ProblemCode, sequence uint64, format string, args ...any) {
	s.v.Problem(Problem{Code: code, Session: s.session, Sequence: sequence, Detail: fmt.Sprintf(format, args...)})
}

func (s *SessionCheck) checkPlace(record Record) {
	if record.Sequence != s.sequence+1 {
		s.problem(ProblemGap, record.Sequence, "sequence %d follows %d", record.Sequence, s.sequence)
	}
	if named, ok := SequenceOfEventID(record.EventID); !ok || named != record.Sequence {
		s.problem(ProblemGap, record.Sequence, "event id %q", record.EventID)
	}
	if record.Offset <= s.offset {
		s.problem(ProblemOrder, record.Sequence, "host offset %d follows %d", record.Offset, s.offset)
	}
	s.sequence, s.offset = record.Sequence, record.Offset
	if record.EventCount == 0 {
		return
	}
	if record.FirstEvent <= s.event {
		s.problem(ProblemOrder, record.Sequence, "event number %d follows %d", record.FirstEvent, s.event)
	}
	s.event = record.FirstEvent + uint64(record.EventCount) - 1
}

func (s *SessionCheck) checkSpan(what string, key span, record Record, first, count uint64) {
	if key.id == "" || s.ends == nil {
		return
	}
	if first != s.ends[key]+1 {
		s.problem(ProblemGap, record.Sequence, "number %d of %s %q follows %d", first, what, key.id, s.ends[key])
	}
	s.ends[key] = first + count - 1
}

func (s *SessionCheck) deriveRows(record Record) {
	if s.derive == nil {
		return
	}
	derived, err := s.derive(record)
	if err != nil {
		s.problem(ProblemDerived, record.Sequence, "derive rows: %v", err)
		s.derive = nil
		s.v.holed[s.session] = true
		return
	}
	if want := derived.Numbers; want != nil && *want != record.Numbers() {
		s.problem(ProblemNumbers, record.Sequence, "the fact has %+v, it should have %+v", record.Numbers(), *want)
	}
	for _, change := range derived.Changes {
		switch change := change.(type) {
		case Put:
			s.rows[change.Row.Key()] = s.completed(change.Row, record)
		case Remove:
			delete(s.rows, change.Key)
		}
	}
}

// completed puts into a row what the engine added: see CompleteRow.
func (s *SessionCheck) completed(row Row, record Record) Row {
	switch row := row.(type) {
	case InterruptRow:
		if row.Sequence == record.Sequence {
			row.Offset = record.Offset
		} else if known, ok := s.rows[row.Key()].(InterruptRow); ok {
			row.Offset = known.Offset
		}
		return row
	case WorkflowRow:
		return begunAs(row, s.rows[row.Key()])
	}
	return row
}

// Finish compares the derived rows with those stored; rowAt gives nil for none.
func (s *SessionCheck) Finish(rowAt func(Key) (Row, error)) {
	if s.derive == nil {
		return
	}
	for key, want := range s.rows {
		if !want.Derived() {
			continue
		}
		s.v.expected[s.v.hash(key)] = struct{}{}
		stored, err := rowAt(key)
		detail := ""
		switch {
		case err != nil:
			detail = err.Error()
		case stored == nil:
			detail = "is missing"
		case !EqualRows(stored, want):
			detail = fmt.Sprintf("is %s, the facts say %s", described(stored), described(want))
		default:
			continue
		}
		s.v.Problem(Problem{Code: ProblemDerived, Session: s.session, Row: key.String(), Detail: detail})
	}
}

// described is a row for people. Its value, which may be long and hold what an agent asked
// for, is told by its length and checksum.
func described(row Row) string {
	shown := reflect.New(reflect.TypeOf(row)).Elem()
	shown.Set(reflect.ValueOf(row))
	value := shown.FieldByName("Value")
	if !value.IsValid() {
		return fmt.Sprintf("%+v", row)
	}
	bytes := value.Bytes()
	value.SetBytes(nil)
	return fmt.Sprintf("%+v with a value of %d bytes (%08x)", shown, len(bytes), crc32.ChecksumIEEE(bytes))
}
