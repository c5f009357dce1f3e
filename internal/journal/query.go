package journal

import (
	"cmp"
	"time"
)

// Order is one of the orders in which records can be read, with the position
// after which reading starts: [BySession], [ByRun], [ByWorkflow], [ByLog],
// [ByOffset], [ByEvent]. A position above the end gives an empty page.
type Order interface{ order() }

// BySession reads a session by its sequence. A session that is not there is
// ErrNotFound or ErrDeleted, in this order and in the next three.
type BySession struct {
	Session string
	After   uint64
}

// ByRun reads the run tree of a root run by run sequence.
type ByRun struct {
	Session   string
	RootRunID string
	After     uint64
}

// ByWorkflow reads a workflow by workflow sequence.
type ByWorkflow struct {
	Session    string
	WorkflowID string
	After      uint64
}

// ByLog reads the facts behind a log: those with a log number above After, the
// one that straddles After included.
type ByLog struct {
	Session string
	LogRun  string
	After   uint64
}

// ByOffset reads all sessions by host offset. Deleted sessions leave gaps.
type ByOffset struct{ After uint64 }

// ByEvent reads the facts that have an event number above After, the one that
// straddles After included, in the order of those numbers.
type ByEvent struct{ After uint64 }

func (BySession) order()  {}
func (ByRun) order()      {}
func (ByWorkflow) order() {}
func (ByLog) order()      {}
func (ByOffset) order()   {}
func (ByEvent) order()    {}

// Limits of one page.
const (
	// MaxPageRecords is the most records, or rows, in a page, and what a zero
	// limit means.
	MaxPageRecords = 1_000
	// MaxPageBytes is the most bytes of facts in a page, and what a zero limit
	// means. The first record is given whatever its size.
	MaxPageBytes = 4 << 20
)

// Page bounds what one Read returns. Values outside of the limits are clamped.
type Page struct {
	Limit int
	Bytes int
}

// Clamped is the page with its limits in force.
func (p Page) Clamped() Page {
	return Page{Limit: clamp(p.Limit, MaxPageRecords), Bytes: clamp(p.Bytes, MaxPageBytes)}
}

func clamp[N cmp.Ordered](n, limit N) N {
	var zero N
	if n <= zero || n > limit {
		return limit
	}
	return n
}

// Chunk is one page of records. The records are the caller's to keep.
type Chunk struct {
	Records []Record
	// More says that the order has further records now.
	More bool
}

// List is one of the lists of rows that an Index serves: [Sessions],
// [OpenInterrupts], [OpenWork], [TimersDue], [Leases], [Tokens], [Agents],
// [Materials], [Decisions], [Workflows].
type List interface{ list() }

// Sessions lists the catalogue (SessionRow) in the order of creation.
type Sessions struct {
	// State and Workspace, when not empty, must be equal to the row's.
	State     string
	Workspace string
	// NewestFirst reverses the order.
	NewestFirst bool
}

// OpenInterrupts lists the interrupts that are open (InterruptRow) in the
// order of their requests, of one session or of all.
type OpenInterrupts struct{ Session string }

// OpenWork lists the sessions with open work (OpenWorkRow) in the order of
// their creation.
type OpenWork struct{}

// TimersDue lists the timers due at Until or before (TimerRow), by due time.
type TimersDue struct{ Until time.Time }

// Leases lists the leases (LeaseRow) by executor.
type Leases struct{}

// Tokens lists the tokens of an executor (TokenRow) by id.
type Tokens struct{ Executor string }

// Agents lists the owner records of agents (AgentRow) by id.
type Agents struct{}

// Materials lists the attachments and artifacts (MaterialRow): those of a session in one
// space, by id, or, where both are empty, all of all sessions in the order of the
// sessions' creation, by space and id.
type Materials struct{ Session, Space string }

// Workflows lists workflows (WorkflowRow) by id, the last first: ids that a host makes rise.
type Workflows struct {
	// Session and State, when not empty, must be equal to the row's.
	Session string
	State   string
}

// Decisions lists what was settled (DecisionRow), of one session or of all, by id.
type Decisions struct {
	Session string
	// Decision, when not empty, must be equal to the row's.
	Decision string
}

func (Sessions) list()       {}
func (OpenInterrupts) list() {}
func (OpenWork) list()       {}
func (TimersDue) list()      {}
func (Leases) list()         {}
func (Tokens) list()         {}
func (Agents) list()         {}
func (Materials) list()      {}
func (Decisions) list()      {}
func (Workflows) list()      {}

// RowPage bounds what one Rows call returns. Cursor is the Next of the page
// before, empty for the first.
type RowPage struct {
	Cursor string
	Limit  int
}

// Clamped is the page with its limit in force.
func (p RowPage) Clamped() RowPage {
	return RowPage{Cursor: p.Cursor, Limit: clamp(p.Limit, MaxPageRecords)}
}

// Rows is one page of rows. Next is empty when there are no more.
type Rows struct {
	Rows []Row
	// Damaged are the rows of the page that cannot be given. They count for its limit.
	Damaged []Damage
	Next    string
}
