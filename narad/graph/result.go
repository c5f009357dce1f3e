package graph

import (
	"maps"
	"slices"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// What became of a record, in the words of package narad/session, whose state gives
// graph records to a [View].
type (
	// Result is the answer to one record.
	Result = session.Result
	// Kind is what became of it.
	Kind = session.Kind
	// Code names a reason.
	Code = session.Code
)

// The kinds of results for a graph record. A rejected one makes its graph useless
// until a snapshot comes, unless it is another session's.
const (
	Applied   = session.Applied
	Buffered  = session.Buffered
	Duplicate = session.Duplicate
	Ignored   = session.Ignored
	Rejected  = session.Rejected
)

// The reasons.
const (
	OtherSession          = session.OtherSession
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

// Codes returns every reason, in no particular order.
func Codes() []Code { return slices.Collect(maps.Keys(details)) }

func result(k Kind, c Code) Result { return Result{Kind: k, Code: c, Detail: details[c]} }

// refusalOf returns the result for a patch that does not apply.
func refusalOf(err *narad.Error) Result {
	return Result{Kind: Rejected, Code: Code(err.Code), Detail: err.Error()}
}
