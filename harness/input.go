package harness

// Input is what a client tells a run.
type Input struct {
	Version string `json:"version"`
	RunID   string `json:"run_id"`
	// InputID is chosen by the caller: one effect for each within a run, however often it
	// is told.
	InputID       string    `json:"input_id"`
	CorrelationID string    `json:"correlation_id,omitzero"`
	Type          InputType `json:"type"`
	// Message, Approval, Reason and Credit belong to one type each.
	Message  *Submission `json:"message,omitzero"`
	Approval *Resolution `json:"approval,omitzero"`
	Reason   string      `json:"reason,omitzero"`
	// Credit is how many more records a subscriber can take.
	Credit uint32 `json:"credit,omitzero"`
}

// InputType names what an input asks for. Unknown ones are refused.
type InputType string

// The four inputs of v1.
const (
	MessageSubmit   InputType = "message.submit"
	ApprovalResolve InputType = "approval.resolve"
	RunCancel       InputType = "run.cancel"
	FlowCredit      InputType = "flow.credit"
)

// Submission is the body of message.submit.
type Submission struct {
	Text        string      `json:"text"`
	Sensitivity Sensitivity `json:"sensitivity,omitzero"`
}

// Resolution is the body of approval.resolve.
type Resolution struct {
	ApprovalID string `json:"approval_id"`
	// Decision is approve or deny.
	Decision string `json:"decision"`
	// Scope is empty or the scope that the approval declared.
	Scope string `json:"scope,omitzero"`
}
