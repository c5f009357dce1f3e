package harness

import "github.com/mahati-host/mahati/narad"

// In is what every payload of a nested run's record has beside its own fields (R36). It is
// empty for the run itself.
type In struct {
	SubrunID string `json:"subrun_id,omitzero"`
}

// Lifecycle is the payload of run.started, run.completed and run.canceled.
type Lifecycle struct {
	// Status is free text: running, completed, failed, canceled.
	Status string `json:"status"`
	Reason string `json:"reason,omitzero"`
}

// Message is the payload of message.started, message.delta and message.completed, whose
// texts in order make the message.
type Message struct {
	MessageID string `json:"message_id"`
	Role      string `json:"role,omitzero"`
	Text      string `json:"text,omitzero"`
}

// Block is the payload of ui.block.
type Block struct {
	BlockID string    `json:"block_id"`
	Kind    string    `json:"kind"`
	Data    narad.Raw `json:"data,omitzero"`
}

// Tool is the payload of tool.started and tool.completed.
type Tool struct {
	CallID  string `json:"call_id"`
	Name    string `json:"name"`
	Status  string `json:"status,omitzero"`
	Summary string `json:"summary,omitzero"`
}

// Plan is the payload of plan.updated.
type Plan struct {
	Steps []Step `json:"steps"`
}

// Step is one step of a plan.
type Step struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Status string `json:"status"`
}

// Approval is the payload of approval.requested and approval.resolved.
type Approval struct {
	ApprovalID string `json:"approval_id"`
	Prompt     string `json:"prompt,omitzero"`
	// Status is pending, approved, denied or expired.
	Status string `json:"status"`
	// Scope is all that an approval grants.
	Scope              string `json:"scope,omitzero"`
	Kind               string `json:"kind,omitzero"`
	Summary            string `json:"summary,omitzero"`
	Workspace          string `json:"workspace,omitzero"`
	Risk               string `json:"risk,omitzero"`
	Consequence        string `json:"consequence,omitzero"`
	PolicyReason       string `json:"policy_reason,omitzero"`
	FakCapabilityFloor string `json:"fak_capability_floor,omitzero"`
	CodexSandboxPolicy string `json:"codex_sandbox_policy,omitzero"`
}

// Artifact is the payload of artifact.published: a reference, never bytes.
type Artifact struct {
	ArtifactID string `json:"artifact_id"`
	MediaType  string `json:"media_type"`
	URI        string `json:"uri"`
	Name       string `json:"name,omitzero"`
}

// Failure is the payload of error.
type Failure struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Retryable bool   `json:"retryable"`
}

// Usage is the payload of usage.
type Usage struct {
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	// CostMicros is in millionths of a US dollar.
	CostMicros int64 `json:"cost_micros,omitzero"`
}

// Checkpoint is the payload of checkpoint.
type Checkpoint struct {
	Cursor Cursor `json:"cursor"`
}

// Cursor is an exclusive position: everything through Sequence was applied. The zero value
// is the start of a log.
type Cursor struct {
	Version  string `json:"version"`
	RunID    string `json:"run_id"`
	Sequence uint64 `json:"sequence"`
	// Checkpoint is the producer's token for the position, opaque to consumers.
	Checkpoint string `json:"checkpoint"`
}
