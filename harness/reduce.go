package harness

// Sight is how much of a log a reducer may look at. What it may not see moves the cursor
// and is counted.
type Sight uint8

const (
	// SeeAll is a trusted consumer's: every payload, as in the public implementation.
	SeeAll Sight = iota
	// SeePrivate is an authenticated private consumer's: everything but secrets.
	SeePrivate
	// SeePublic is anybody's.
	SeePublic
)

func (s Sight) sees(class Sensitivity) bool {
	return s == SeeAll || class.Class().visible(s == SeePrivate)
}

// Reducer folds the records of one run's log, in time that grows with the bytes read. Its
// memory is what the log says, not how long it is.
type Reducer struct {
	sight Sight
	order order
	decoder

	status, reason string
	canceled       bool
	messages       keyed[messageText]
	part           messagePart
	blocks         []Block
	tools          keyed[ToolState]
	plan           []Step
	approvals      keyed[ApprovalState]
	artifacts      []Artifact
	failures       []Failure
	usage          Usage
	overflow       bool
	checkpoint     Cursor
	lastType       Type
	beforeCancel   Type   // of the record before the first run.canceled
	hiddenAsks     uint64 // approvals that were asked in records whose payload was replaced
	counts         Counts
	findings       findings
	line           int // of the record, where it has one
}

// NewReducer returns the reducer of an empty log.
func NewReducer(sight Sight) *Reducer { return &Reducer{sight: sight} }

// Apply takes the next record. A record that is refused changes nothing. The classes are
// CodeEnvelope, CodeOrder, CodeCanceled and CodePayload.
func (r *Reducer) Apply(e Event) error {
	if refusal := r.apply(&e); refusal != nil {
		return refusal
	}
	return nil
}

func (r *Reducer) apply(e *Event) *Error {
	before := r.order
	if refusal := r.order.take(e); refusal != nil {
		return refusal
	}
	refusal := r.reduce(e)
	if refusal != nil {
		r.order = before
		return refusal
	}
	r.lastType = e.Type
	r.counts.Records++
	return nil
}

func (r *Reducer) reduce(e *Event) *Error {
	if r.canceled && e.Type != RunCanceled && e.Type != Checkpointed {
		return (&Error{Code: CodeCanceled, Rule: "after run.canceled only run.canceled and checkpoint may follow"}).of(e)
	}
	apply, known := reductions[e.Type]
	if !known {
		r.counts.Ignored++
		return nil
	}
	if e.Redacted() {
		r.replaced(e)
		return nil
	}
	return apply(r, e, r.sight.sees(e.Sensitivity))
}

// replaced takes a record whose payload somebody took away.
func (r *Reducer) replaced(e *Event) {
	r.counts.Redacted++
	switch e.Type {
	case RunCanceled:
		r.close()
	case ApprovalRequested:
		r.hiddenAsks++
	}
}

// reductions are the known types. Each checks the payload even where it may not be seen, so
// that whether a log is sound does not depend on who looks.
var reductions = map[Type]func(r *Reducer, e *Event, seen bool) *Error{
	RunStarted:        (*Reducer).lifecycle,
	RunCompleted:      (*Reducer).lifecycle,
	RunCanceled:       (*Reducer).cancel,
	MessageStarted:    (*Reducer).message,
	MessageDelta:      (*Reducer).message,
	MessageCompleted:  (*Reducer).message,
	UIBlock:           (*Reducer).block,
	ToolStarted:       (*Reducer).tool,
	ToolCompleted:     (*Reducer).tool,
	PlanUpdated:       (*Reducer).planned,
	ApprovalRequested: (*Reducer).asked,
	ApprovalResolved:  (*Reducer).resolved,
	ArtifactPublished: (*Reducer).artifact,
	ErrorReported:     (*Reducer).failure,
	UsageReported:     (*Reducer).used,
	Checkpointed:      (*Reducer).checkpointed,
}

// payloadOf decodes the payload of a record. It reports whether the record is to be
// applied; one that may not be seen is counted instead.
func payloadOf[T any, P interface {
	*T
	target
}](r *Reducer, e *Event, seen bool, to P) (apply bool, refusal *Error) {
	if refusal := decodePayload[T](&r.decoder, e, to); refusal != nil {
		return false, refusal
	}
	if !seen {
		r.counts.Redacted++
	}
	return seen, nil
}

func (r *Reducer) lifecycle(e *Event, seen bool) *Error {
	var said Lifecycle
	apply, refusal := payloadOf(r, e, seen, &said)
	if apply {
		r.status, r.reason = said.Status, said.Reason
	}
	return refusal
}

// cancel closes the log, whoever looks.
func (r *Reducer) cancel(e *Event, seen bool) *Error {
	refusal := r.lifecycle(e, seen)
	if refusal == nil {
		r.close()
	}
	return refusal
}

func (r *Reducer) close() {
	if !r.canceled {
		r.canceled, r.beforeCancel = true, r.lastType
	}
}

func (r *Reducer) message(e *Event, seen bool) *Error {
	said := &r.part
	said.Message, said.text = Message{}, nil
	apply, refusal := payloadOf(r, e, seen, said)
	if !apply {
		return refusal
	}
	m := r.messages.at(said.MessageID)
	if said.Role != "" {
		m.role = said.Role
	}
	m.text = append(append(m.text, said.text...), said.Text...)
	m.completed = m.completed || e.Type == MessageCompleted
	return nil
}

// messageText is a message that still grows.
type messageText struct {
	role      string
	text      []byte
	completed bool
}

func (r *Reducer) block(e *Event, seen bool) *Error {
	var said Block
	apply, refusal := payloadOf(r, e, seen, &said)
	if apply {
		r.blocks = append(r.blocks, said)
	}
	return refusal
}

func (r *Reducer) tool(e *Event, seen bool) *Error {
	var said Tool
	apply, refusal := payloadOf(r, e, seen, &said)
	if !apply {
		return refusal
	}
	t := r.tools.at(said.CallID)
	t.Tool = said
	if said.Name != "" {
		t.Title = said.Name
	}
	if said.Summary != "" {
		t.Note = said.Summary
	}
	t.Completed = e.Type == ToolCompleted
	return nil
}

func (r *Reducer) planned(e *Event, seen bool) *Error {
	var said Plan
	apply, refusal := payloadOf(r, e, seen, &said)
	if apply {
		r.plan = said.Steps
	}
	return refusal
}

func (r *Reducer) asked(e *Event, seen bool) *Error {
	var said Approval
	apply, refusal := payloadOf(r, e, seen, &said)
	if refusal != nil {
		return refusal
	}
	if !apply {
		r.hiddenAsks++
		return nil
	}
	*r.approvals.at(said.ApprovalID) = ApprovalState{Approval: said, Asked: said, Pending: true}
	return nil
}

func (r *Reducer) resolved(e *Event, seen bool) *Error {
	var said Approval
	apply, refusal := payloadOf(r, e, seen, &said)
	if !apply {
		return refusal
	}
	known := r.approvals.has(said.ApprovalID)
	a := r.approvals.at(said.ApprovalID)
	switch {
	case !known && r.hiddenAsks > 0:
		r.hiddenAsks--
	case !a.Pending:
		r.note(&Error{Code: CodeApproval, Rule: "this approval does not wait for a decision"}, e)
	case said.Scope != "" && said.Scope != a.Asked.Scope:
		r.note(&Error{Code: CodeApproval, Field: "payload.scope", Rule: "a decision grants no other scope than was asked for"}, e)
	}
	a.Approval, a.Pending = said, false
	return nil
}

// note keeps what is remarkable about a record.
func (r *Reducer) note(what *Error, e *Event) {
	what.Line = r.line
	r.findings.note(what, e)
}

func (r *Reducer) artifact(e *Event, seen bool) *Error {
	var said Artifact
	apply, refusal := payloadOf(r, e, seen, &said)
	if apply {
		r.artifacts = append(r.artifacts, said)
	}
	return refusal
}

func (r *Reducer) failure(e *Event, seen bool) *Error {
	var said Failure
	apply, refusal := payloadOf(r, e, seen, &said)
	if apply {
		r.failures = append(r.failures, said)
	}
	return refusal
}

func (r *Reducer) used(e *Event, seen bool) *Error {
	var said Usage
	apply, refusal := payloadOf(r, e, seen, &said)
	if !apply {
		return refusal
	}
	overflow := false
	for _, sum := range []struct {
		to *int64
		n  int64
	}{{&r.usage.InputTokens, said.InputTokens}, {&r.usage.OutputTokens, said.OutputTokens}, {&r.usage.CostMicros, said.CostMicros}} {
		before := *sum.to
		*sum.to += sum.n
		overflow = overflow || sum.n > 0 && *sum.to < before || sum.n < 0 && *sum.to > before
	}
	if overflow && !r.overflow {
		r.overflow = true
		r.note(&Error{Code: CodeUsage, Rule: "a sum passed what 64 bits hold and wrapped"}, e)
	}
	return nil
}

func (r *Reducer) checkpointed(e *Event, seen bool) *Error {
	var said Checkpoint
	apply, refusal := payloadOf(r, e, seen, &said)
	if !apply {
		return refusal
	}
	r.checkpoint = said.Cursor
	if said.Cursor != (Cursor{}) && said.Cursor.Checkpoint == "" {
		r.note(&Error{Code: CodeCheckpoint, Field: "payload.cursor.checkpoint", Rule: "a checkpoint without a token resumes nothing"}, e)
	}
	return nil
}
