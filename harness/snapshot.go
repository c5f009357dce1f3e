package harness

import "slices"

// Snapshot is all that a log said so far, for programs. Its values are the owner's.
type Snapshot struct {
	RunID string `json:"run_id"`
	// Sequence is the last record's: the cursor.
	Sequence uint64 `json:"sequence"`
	// Status and Reason are those of the last lifecycle record.
	Status string `json:"status,omitzero"`
	Reason string `json:"reason,omitzero"`
	// Canceled says that run.canceled was read: only that and checkpoints may follow.
	Canceled bool `json:"canceled,omitzero"`
	// Messages, Tools and Approvals stand in the order in which their ids first appeared.
	Messages  []MessageState  `json:"messages,omitzero"`
	Blocks    []Block         `json:"ui,omitzero"`
	Tools     []ToolState     `json:"tools,omitzero"`
	Plan      []Step          `json:"plan,omitzero"`
	Approvals []ApprovalState `json:"approvals,omitzero"`
	Artifacts []Artifact      `json:"artifacts,omitzero"`
	Failures  []Failure       `json:"errors,omitzero"`
	Usage     Usage           `json:"usage"`
	// UsageOverflow says that a sum of Usage passed what 64 bits hold and wrapped, as the
	// public implementation's does.
	UsageOverflow bool `json:"usage_overflow,omitzero"`
	// Checkpoint is the cursor of the last checkpoint.
	Checkpoint Cursor `json:"checkpoint,omitzero"`
	Counts     Counts `json:"counts"`
}

// Counts says how many records were read, and how many of them only moved the cursor.
type Counts struct {
	Records uint64 `json:"records"`
	// Ignored are those of a type that v1 does not have.
	Ignored uint64 `json:"ignored"`
	// Redacted are those whose payload was replaced, or may not be seen.
	Redacted uint64 `json:"redacted"`
}

// MessageState is one message.
type MessageState struct {
	MessageID string `json:"message_id"`
	Role      string `json:"role,omitzero"`
	// Text is that of all its records in order; message.completed adds its own.
	Text      string `json:"text"`
	Completed bool   `json:"completed,omitzero"`
}

// ToolState is one tool call.
type ToolState struct {
	// Tool is the last record as it was.
	Tool
	// Title is the last name that was not empty, and Note the last such summary: a record
	// without them takes them from Tool.
	Title     string `json:"title,omitzero"`
	Note      string `json:"note,omitzero"`
	Completed bool   `json:"completed,omitzero"`
}

// ApprovalState is one approval.
type ApprovalState struct {
	// Approval is the last record as it was.
	Approval
	// Asked is the request, whose prompt and scope a resolution may lack.
	Asked Approval `json:"asked,omitzero"`
	// Pending says that it waits for a decision.
	Pending bool `json:"pending,omitzero"`
}

// Snapshot returns all that was read so far. Its memory is its owner's.
func (r *Reducer) Snapshot() Snapshot {
	s := Snapshot{
		RunID: r.order.run, Sequence: r.order.last, Status: r.status, Reason: r.reason, Canceled: r.canceled, Blocks: slices.Clone(r.blocks),
		Plan: slices.Clone(r.plan), Artifacts: slices.Clone(r.artifacts), Failures: slices.Clone(r.failures), Usage: r.usage,
		UsageOverflow: r.overflow, Checkpoint: r.checkpoint, Counts: r.counts,
	}
	for _, id := range r.messages.ids {
		m := r.messages.at(id)
		s.Messages = append(s.Messages, MessageState{MessageID: id, Role: m.role, Text: string(m.text), Completed: m.completed})
	}
	for _, id := range r.tools.ids {
		s.Tools = append(s.Tools, *r.tools.at(id))
	}
	for _, id := range r.approvals.ids {
		s.Approvals = append(s.Approvals, *r.approvals.at(id))
	}
	return s
}
