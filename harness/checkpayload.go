package harness

import (
	"fmt"
	"slices"
)

// payload judges the payload of a known type, and what it means for the rest of the log.
func (c *checker) payload() {
	judge, known := judgements[c.event.Type]
	switch {
	case !known:
	case c.event.Redacted():
		if c.event.Type == ApprovalRequested {
			c.hiddenAsks++
		}
	case len(c.event.Payload) == 0:
		c.violation(&Error{Code: CodeField, Field: "payload", Rule: "a known type has its payload"})
	default:
		judge(c)
	}
}

var judgements = map[Type]func(*checker){
	RunStarted:        (*checker).lifecyclePayload,
	RunCompleted:      (*checker).lifecyclePayload,
	RunCanceled:       (*checker).lifecyclePayload,
	MessageStarted:    (*checker).message,
	MessageDelta:      (*checker).message,
	MessageCompleted:  (*checker).message,
	UIBlock:           (*checker).block,
	ToolStarted:       (*checker).tool,
	ToolCompleted:     (*checker).tool,
	PlanUpdated:       (*checker).plan,
	ApprovalRequested: (*checker).approvalRequested,
	ApprovalResolved:  (*checker).approvalResolved,
	ArtifactPublished: (*checker).artifact,
	ErrorReported:     (*checker).failure,
	UsageReported:     (*checker).usage,
	Checkpointed:      (*checker).checkpoint,
}

// strictly decodes a payload and demands fields of it. It reports whether the payload could
// be read.
func strictly[T any, P interface {
	*T
	target
}](c *checker, to P, required ...string) bool {
	if refusal := decodePayload[T](&c.decoder, c.event, to); refusal != nil {
		c.violation(refusal)
		return false
	}
	have := seenFields(c.seen, to.fields())
	if c.slow {
		c.folded("payload.", c.event.Payload, to.fields())
		have = names(c.event.Payload)
	}
	c.lacking = c.lacking[:0]
	for _, name := range required {
		if !slices.Contains(have, name) {
			c.lacking = append(c.lacking, name)
			c.violation(&Error{Code: CodeField, Field: "payload." + name, Rule: "this field is required"})
		}
	}
	return true
}

func seenFields(seen uint32, fields []string) (list []string) {
	for i, field := range fields {
		if seen&(1<<i) != 0 {
			list = append(list, field)
		}
	}
	return list
}

// named demands that an id which is there is not empty.
func (c *checker) named(field, id string) bool {
	if id == "" && !slices.Contains(c.lacking, field) {
		c.violation(&Error{Code: CodeField, Field: "payload." + field, Rule: "an id is not empty"})
	}
	return id != ""
}

func (c *checker) lifecyclePayload() { strictly(c, &Lifecycle{}, "status") }

func (c *checker) block() {
	var said Block
	if strictly(c, &said, "block_id", "kind") {
		c.named("block_id", said.BlockID)
	}
}

func (c *checker) plan() {
	if !strictly(c, &Plan{}, "steps") {
		return
	}
	steps, _ := c.event.Payload.Field("steps").Elements()
	for i, step := range steps {
		have := names(step)
		for _, name := range stepFields {
			if !slices.Contains(have, name) {
				c.violation(&Error{Code: CodeField, Field: fmt.Sprintf("payload.steps[%d].%s", i, name), Rule: "this field is required"})
			}
		}
	}
}

func (c *checker) failure() { strictly(c, &Failure{}, "code", "message", "retryable") }
func (c *checker) usage()   { strictly(c, &Usage{}, "input_tokens", "output_tokens") }

func (c *checker) artifact() {
	var said Artifact
	if strictly(c, &said, "artifact_id", "media_type", "uri") {
		c.named("artifact_id", said.ArtifactID)
	}
}

// message: a message may begin with any of its records, and ends with message.completed.
func (c *checker) message() {
	var said Message
	if !strictly(c, &said, "message_id") || !c.named("message_id", said.MessageID) {
		return
	}
	if c.messages == nil {
		c.messages = map[string]progress{}
	}
	now := c.messages[said.MessageID]
	switch {
	case now == closed:
		c.violation(&Error{Code: CodeLifecycle, Field: "payload.message_id", Rule: "nothing follows the message.completed of a message"})
	case now == open && c.event.Type == MessageStarted:
		c.violation(&Error{Code: CodeLifecycle, Field: "payload.message_id", Rule: "a message starts once, with its first record"})
	}
	if now != closed {
		now = open
	}
	if c.event.Type == MessageCompleted {
		now = closed
	}
	c.messages[said.MessageID] = now
}

// tool: a call may be told by tool.completed alone, and a finished one's id used again.
func (c *checker) tool() {
	var said Tool
	if !strictly(c, &said, "call_id", "name") || !c.named("call_id", said.CallID) {
		return
	}
	if c.tools == nil {
		c.tools = map[string]progress{}
	}
	now, next := c.tools[said.CallID], open
	if c.event.Type == ToolCompleted {
		next = closed
	}
	if now == next {
		c.violation(&Error{Code: CodeLifecycle, Field: "payload.call_id", Rule: "a tool call starts once and is completed once"})
	}
	c.tools[said.CallID] = next
}

func (c *checker) approvalRequested() {
	var said Approval
	if !strictly(c, &said, "approval_id", "status") || !c.named("approval_id", said.ApprovalID) {
		return
	}
	if c.approvals == nil {
		c.approvals = map[string]*asked{}
	}
	if c.approvals[said.ApprovalID] != nil {
		c.violation(&Error{Code: CodeApproval, Field: "payload.approval_id", Rule: "an approval is asked for once"})
	}
	c.approvals[said.ApprovalID] = &asked{said.Scope, true}
}

func (c *checker) approvalResolved() {
	var said Approval
	if !strictly(c, &said, "approval_id", "status") || !c.named("approval_id", said.ApprovalID) {
		return
	}
	approval := c.approvals[said.ApprovalID]
	wrong := func(field, rule string) { c.violation(&Error{Code: CodeApproval, Field: field, Rule: rule}) }
	switch {
	case approval == nil && c.hiddenAsks > 0: // perhaps one of these
		c.hiddenAsks--
	case approval == nil:
		wrong("payload.approval_id", "only what was asked for is resolved")
	case !approval.pending:
		wrong("payload.approval_id", "an approval is resolved once")
	case said.Scope != "" && said.Scope != approval.scope:
		wrong("payload.scope", "a decision grants no other scope than was asked for")
	}
	if approval != nil {
		approval.pending = false
	}
}

// checkpoint: its cursor names this run and a record that stands before it, or itself.
func (c *checker) checkpoint() {
	var said Checkpoint
	if !strictly(c, &said, "cursor") {
		return
	}
	cursor := said.Cursor
	wrong := func(field, expected, rule string) {
		c.violation(&Error{Code: CodeCheckpoint, Field: "payload.cursor." + field, Expected: expected, Rule: rule})
	}
	switch {
	case cursor == Cursor{}: // the start of the log
		return
	case cursor.Version != Version:
		wrong("version", Version, "a cursor is of this protocol")
	case cursor.RunID != c.run:
		wrong("run_id", c.run, "a cursor is of this run")
	case cursor.Sequence > c.event.Sequence:
		wrong("sequence", "", "a cursor is not ahead of its checkpoint")
	}
	if cursor.Checkpoint == "" {
		c.note(&Error{Code: CodeCheckpoint, Field: "payload.cursor.checkpoint", Rule: "a checkpoint without a token resumes nothing"})
	}
}
