package harness

// Inventory is the machine-readable summary of the contract.
type Inventory struct {
	Version               string      `json:"version"`
	Events                []Type      `json:"events"`
	Inputs                []InputType `json:"inputs"`
	Ordering              string      `json:"ordering"`
	Resume                string      `json:"resume"`
	UnknownEvents         string      `json:"unknown_events"`
	ApprovalBoundary      string      `json:"approval_boundary"`
	SensitiveDataBoundary string      `json:"sensitive_data_boundary"`
}

// Contract returns the inventory of v1: its values are the published ones, word for word,
// since programs compare them. The types that Mahati adds are not in it.
func Contract() Inventory {
	return Inventory{
		Version:               Version,
		Events:                Types(),
		Inputs:                []InputType{MessageSubmit, ApprovalResolve, RunCancel, FlowCredit},
		Ordering:              "sequence starts at 1 and increases exactly once per immutable run event",
		Resume:                "cursor is exclusive; checkpoint authenticates run_id and sequence; credit bounds delivery",
		UnknownEvents:         "validate envelope, advance cursor, ignore payload without rendering or authority",
		ApprovalBoundary:      "approval.resolve must name one pending approval and grants only its declared scope",
		SensitiveDataBoundary: "secret always redacted; private requires an authenticated private consumer",
	}
}

// Types returns the sixteen types of v1 in the contract's order.
func Types() []Type {
	return []Type{
		RunStarted, RunCompleted, MessageStarted, MessageDelta, MessageCompleted, UIBlock, ToolStarted, ToolCompleted, PlanUpdated,
		ApprovalRequested, ApprovalResolved, ArtifactPublished, ErrorReported, UsageReported, RunCanceled, Checkpointed,
	}
}
