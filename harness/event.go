package harness

import (
	"github.com/mahati-host/mahati/narad"
)

// Version is the protocol that a record or an input names. It is compared whole: any
// other text is another major version.
const Version = "fak.harness.run/v1"

// Event is the envelope of one record of a run's log.
type Event struct {
	Version string `json:"version"`
	RunID   string `json:"run_id"`
	// Sequence is the record's place in the log, from 1, without a gap.
	Sequence uint64 `json:"sequence"`
	// EventID is stable and unique within the run.
	EventID string `json:"event_id"`
	// CorrelationID groups the records of one tool call, approval, nested run or input;
	// it may be empty.
	CorrelationID string `json:"correlation_id,omitzero"`
	// CausationID is the event_id or input_id that directly caused the record; it may be
	// empty.
	CausationID string      `json:"causation_id,omitzero"`
	Type        Type        `json:"type"`
	Sensitivity Sensitivity `json:"sensitivity,omitzero"`
	// Payload is free-form JSON whose bytes are kept; nil where the record has none.
	Payload narad.Raw `json:"payload,omitzero"`
}

// Type names what a record says. Unknown types are allowed and mean nothing.
type Type string

// The sixteen types of v1.
const (
	RunStarted        Type = "run.started"
	RunCompleted      Type = "run.completed"
	MessageStarted    Type = "message.started"
	MessageDelta      Type = "message.delta"
	MessageCompleted  Type = "message.completed"
	UIBlock           Type = "ui.block"
	ToolStarted       Type = "tool.started"
	ToolCompleted     Type = "tool.completed"
	PlanUpdated       Type = "plan.updated"
	ApprovalRequested Type = "approval.requested"
	ApprovalResolved  Type = "approval.resolved"
	ArtifactPublished Type = "artifact.published"
	ErrorReported     Type = "error"
	UsageReported     Type = "usage"
	RunCanceled       Type = "run.canceled"
	Checkpointed      Type = "checkpoint"
)

// The types that Mahati adds: v1 lets a producer add types, which consumers ignore (R36).
const (
	SubrunStarted      Type = "subrun.started"
	SubrunCompleted    Type = "subrun.completed"
	ReasoningStarted   Type = "reasoning.started"
	ReasoningDelta     Type = "reasoning.delta"
	ReasoningCompleted Type = "reasoning.completed"
)

// Sensitivity is the class of a record: who may see its payload.
type Sensitivity string

// The declared classes. A record without one is private, one with another is secret (R37).
const (
	Public  Sensitivity = "public"
	Private Sensitivity = "private"
	Secret  Sensitivity = "secret"
)
