package graph

import "github.com/mahati-host/mahati/narad"

// Kind is what became of a record.
type Kind uint8

// The kinds of results.
const (
	// Applied: the graph has changed.
	Applied Kind = iota
	// Buffered: the record waits, for the authority that it was derived from or for a
	// snapshot.
	Buffered
	// Duplicate: the graph says this already.
	Duplicate
	// Ignored: the record is sound and changes nothing here.
	Ignored
	// Rejected: the record does not fit. Unless it is another session's, its graph can
	// be followed no further without a snapshot.
	Rejected
)

var kindNames = [...]string{"applied", "buffered", "duplicate", "ignored", "rejected"}

// String returns the kind's name in lower case.
func (k Kind) String() string { return kindNames[k] }

// Result is the answer to one record.
type Result struct {
	Kind Kind
	// Code says why, from a closed set: a code of this package, or one of package narad
	// for a patch that does not apply. It is empty for what was applied.
	Code Code
	// Detail is a sentence for people. It names rules and fields, never values.
	Detail string
}

// Code names a reason.
type Code string

// The reasons.
const (
	OtherSession     Code = "other_session"
	ScopeUnknown     Code = "graph_scope_unknown"
	CursorAhead      Code = "graph_cursor_ahead"
	CursorRegressed  Code = "graph_cursor_regressed"
	RevisionPassed   Code = "graph_revision_passed"
	RevisionGap      Code = "graph_revision_gap"
	RevisionConflict Code = "graph_revision_conflict"
	SnapshotMissing  Code = "graph_snapshot_missing"
	SnapshotNeeded   Code = "graph_snapshot_needed"
	BufferFull       Code = "graph_buffer_full"
	NotAGraph        Code = "graph_invalid"
)

var details = map[Code]string{
	OtherSession:     "the record belongs to another session",
	ScopeUnknown:     "the run or workflow of the graph has not started",
	CursorAhead:      "the graph is ahead of the authority",
	CursorRegressed:  "the source cursor is before that of an earlier revision",
	RevisionPassed:   "the graph is at this revision or beyond it",
	RevisionGap:      "the revision does not follow the present one",
	RevisionConflict: "the graph had another content at this revision",
	SnapshotMissing:  "a delta needs a snapshot before it",
	SnapshotNeeded:   "deltas wait until a snapshot comes",
	BufferFull:       "too much waits for the authority",
	NotAGraph:        "a graph has a rootNodeId and arrays of nodes and edges",
}

func result(k Kind, c Code) Result { return Result{k, c, details[c]} }

// refusalOf returns the result for a patch that does not apply.
func refusalOf(err *narad.Error) Result { return Result{Rejected, Code(err.Code), err.Error()} }
