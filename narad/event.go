package narad

// Record is one wire record of any class. Its types are those of this package;
// none can be added from outside.
type Record interface {
	// Type returns the record's type.
	Type() Type
	// fields lets c visit every field but type and protocolVersion.
	fields(c *coder)
}

// Authority is a [Record] of the authority class: an immutable fact of a session.
type Authority interface {
	Record
	// Envelope returns the fields that every authority event has. It is a part of
	// the event, so a change to it is a change to the event.
	Envelope() *Event
}

// Event is the envelope of an authority event (specification §5). It is embedded
// in every authority type.
type Event struct {
	// EventID identifies the fact within its session, for ever (§4.1).
	EventID string
	// Timestamp is informational and never orders anything (§4.2). A host writes
	// RFC 3339 in UTC.
	Timestamp string
	// SessionID and SessionSequence place the fact in its session, from 1.
	SessionID       string
	SessionSequence int64
	// WorkflowID and WorkflowSequence place it in its workflow; both or neither.
	WorkflowID       string
	WorkflowSequence int64
	// RootRunID and Sequence place it in a run tree, and RunID names the run; all
	// or none.
	RootRunID string
	RunID     string
	Sequence  int64
	// SourceEventID and SourceSessionID mark a projection: a row that another host
	// copied from a child session (R20). Such a row has no Sequence of its own. A
	// host that follows the specification writes none, and Encode refuses it.
	SourceEventID   string
	SourceSessionID string
	// Extra holds the fields that this package does not know, in the order in which
	// they came. Encode writes them last.
	Extra []Member

	print uint64
}

// Envelope returns e itself.
func (e *Event) Envelope() *Event { return e }

// Fingerprint tells contents apart: two spellings of one record (order of names,
// white space, escapes, 100 and 1e2) share it, and two records of different
// content do not, but for an accident of one in 2^64. It is 0 for an event that
// was not decoded.
func (e *Event) Fingerprint() uint64 { return e.print }

// Nested reports whether the event belongs to a run below the root of its tree.
func (e *Event) Nested() bool { return e.RunID != "" && e.RootRunID != "" && e.RunID != e.RootRunID }

// Projection reports whether the event was copied from a child session.
func (e *Event) Projection() bool { return e.SourceEventID != "" }

// Optional returns the value of a field that this package does not know, or nil.
func (e *Event) Optional(name string) Raw {
	for _, m := range e.Extra {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// SetOptional adds a field that this package does not know, or replaces it. The
// name must not be one that the event's type defines.
func (e *Event) SetOptional(name string, value Raw) {
	for i := range e.Extra {
		if e.Extra[i].Name == name {
			e.Extra[i].Value = value
			return
		}
	}
	e.Extra = append(e.Extra, Member{name, value})
}

// A lane says which orderings an event takes part in (§4.2).
type lane uint8

const (
	laneSession      lane = iota // the session's; run and workflow fields may stand
	laneWorkflow                 // a workflow's too; run fields may stand
	laneWorkflowOnly             // a workflow's too; run fields must not stand
	laneRun                      // a run tree's too; workflow fields may stand
	laneActivity                 // the same, in a profile: a client does not pair the workflow fields
)

// envelope visits the fields of the envelope.
func (e *Event) envelope(c *coder, l lane) {
	c.id("eventId", &e.EventID, required)
	timestamp(c, "timestamp", &e.Timestamp, required)
	c.id("sessionId", &e.SessionID, required)
	c.count("sessionSequence", &e.SessionSequence, 1, required)
	tree := l == laneRun || l == laneActivity
	if e.source(c, need(tree)) && tree {
		e.projected(c)
		return
	}
	workflow := l == laneWorkflow || l == laneWorkflowOnly
	c.group(&e.WorkflowID, &e.WorkflowSequence, workflow, l == laneRun)
	switch l {
	case laneWorkflowOnly:
		e.withoutRun(c)
		return
	case laneRun:
		c.asideIDs("parentRunId", "parentToolCallId")
	default:
		c.asideIDs("nodeId")
	}
	e.run(c, need(tree))
}

// source visits what marks a projection and reports whether the event is one. A
// host must not write one.
func (e *Event) source(c *coder, n need) bool {
	if c.describes("sourceEventId", formNever, optional) {
		return false
	}
	c.id("sourceEventId", &e.SourceEventID, optional)
	if e.SourceEventID == "" {
		return false
	}
	if c.host() {
		c.fail("sourceEventId", "a host writes nested runs as ordinary events, never as projections")
	}
	c.id("sourceSessionId", &e.SourceSessionID, n)
	return true
}

// projected visits what a projection has instead of run-tree and workflow order.
func (e *Event) projected(c *coder) {
	c.id("rootRunId", &e.RootRunID, required)
	c.id("runId", &e.RunID, required)
	c.forbid(c.code, "a projection carries no run-tree or workflow order",
		"sequence", "workflowId", "workflowSequence")
}

// group visits workflowId and workflowSequence. paired demands both or neither of
// a client's input too.
func (c *coder) group(id *string, sequence *int64, demanded, paired bool) {
	c.id("workflowId", id, need(demanded))
	c.count("workflowSequence", sequence, 1, need(demanded))
	c.together("workflowId", "workflowSequence")
	if c.err == nil && (paired || c.host()) && (*id == "") != (*sequence == 0) {
		c.fail("workflowSequence", "workflowId and workflowSequence stand together or not at all")
	}
}

// run visits the run-tree fields.
func (e *Event) run(c *coder, n need) {
	c.id("rootRunId", &e.RootRunID, n)
	c.id("runId", &e.RunID, n)
	c.count("sequence", &e.Sequence, 1, n)
	c.together("rootRunId", "runId", "sequence")
	if c.err != nil || !c.host() {
		return
	}
	if (e.RootRunID == "") != (e.RunID == "") || (e.RunID == "") != (e.Sequence == 0) {
		c.fail("sequence", "rootRunId, runId and sequence stand together or not at all")
	}
}

func (e *Event) withoutRun(c *coder) {
	const rule = "a workflow-scope event carries no run fields"
	c.forbid(c.code, rule, "runId", "rootRunId", "sequence")
	if c.mode == encoding && (e.RunID != "" || e.RootRunID != "" || e.Sequence != 0) {
		c.fail("runId", rule)
	}
}

// Scope says what a message, a state or an interrupt belongs to.
type Scope string

// The scopes. An interrupt has no session scope.
const (
	ScopeSession  Scope = "session"
	ScopeWorkflow Scope = "workflow"
	ScopeRun      Scope = "run"
)

var scopes = []Scope{ScopeSession, ScopeWorkflow, ScopeRun}

// scoped demands of a host that the ids of the scope stand in the envelope.
func (e *Event) scoped(c *coder, s Scope) {
	if !c.host() {
		return
	}
	switch {
	case c.mode == schema:
		c.demand(map[Scope]string{ScopeWorkflow: "workflowId", ScopeRun: "runId"}[s])
	case s == ScopeWorkflow && e.WorkflowID == "":
		c.fail("workflowId", "the scope demands it")
	case s == ScopeRun && e.RunID == "":
		c.fail("runId", "the scope demands it")
	}
}
