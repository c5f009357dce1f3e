package narad

// WorkflowStarted begins a workflow (specification §6.5). A nodeId names where it
// starts (R19).
type WorkflowStarted struct {
	Event
	NodeID                  string
	DefaultClientExecutorID string
}

// Type returns workflow.started.
func (*WorkflowStarted) Type() Type { return TypeWorkflowStarted }

func (w *WorkflowStarted) fields(c *coder) {
	w.envelope(c, laneWorkflow)
	c.id("nodeId", &w.NodeID, optional)
	c.id("defaultClientExecutorId", &w.DefaultClientExecutorID, optional)
	c.asideTexts("code", "message")
}

// WorkflowPaused suspends a workflow for an interrupt of workflow scope (§7.6).
type WorkflowPaused struct {
	Event
	WaitID      string
	InterruptID string
	NodeID      string
}

// Type returns workflow.paused.
func (*WorkflowPaused) Type() Type { return TypeWorkflowPaused }

func (w *WorkflowPaused) fields(c *coder) {
	w.envelope(c, laneWorkflow)
	c.id("waitId", &w.WaitID, required)
	c.id("interruptId", &w.InterruptID, required)
	c.id("nodeId", &w.NodeID, optional)
}

// WorkflowResumed ends a workflow's pause (§7.7).
type WorkflowResumed struct {
	Event
	WaitID string
	NodeID string
}

// Type returns workflow.resumed.
func (*WorkflowResumed) Type() Type { return TypeWorkflowResumed }

func (w *WorkflowResumed) fields(c *coder) {
	w.envelope(c, laneWorkflow)
	c.id("waitId", &w.WaitID, required)
	c.id("nodeId", &w.NodeID, optional)
}

// WorkflowStopRequested records the wish to stop a workflow (R19).
type WorkflowStopRequested struct{ Event }

// Type returns workflow.stop.requested.
func (*WorkflowStopRequested) Type() Type { return TypeWorkflowStopRequested }

func (w *WorkflowStopRequested) fields(c *coder) { w.envelope(c, laneWorkflow) }

// WorkflowEnded ends a workflow (§6.5). Kind is one of workflow.finished,
// workflow.error and workflow.cancelled.
type WorkflowEnded struct {
	Event
	Kind    Type
	Code    string
	Message string
}

// Type returns w.Kind.
func (w *WorkflowEnded) Type() Type { return w.Kind }

func (w *WorkflowEnded) fields(c *coder) {
	w.envelope(c, laneWorkflow)
	c.text("code", &w.Code, optional)
	c.text("message", &w.Message, optional)
	c.asideIDs("defaultClientExecutorId")
}

// WorkflowStep tells how a node of a workflow goes (R19). Kind is one of
// workflow.step.started, workflow.step.finished and workflow.step.failed.
type WorkflowStep struct {
	Event
	Kind           Type
	NodeID         string
	AgentRunID     string
	AgentSessionID string
	StepAttempt    int64
}

// Type returns w.Kind.
func (w *WorkflowStep) Type() Type { return w.Kind }

func (w *WorkflowStep) fields(c *coder) {
	w.envelope(c, laneWorkflow)
	c.id("nodeId", &w.NodeID, required)
	c.id("agentRunId", &w.AgentRunID, optional)
	c.id("agentSessionId", &w.AgentSessionID, optional)
	c.count("stepAttempt", &w.StepAttempt, 0, optional)
}

// WorkflowEdgeTaken records which path an exclusive choice took (§6.6).
type WorkflowEdgeTaken struct {
	Event
	From string
	To   string
	// CaseIndex is the condition that matched, from 0; nil where it is not told.
	CaseIndex *int64
	// Pointer is the field that the condition read; "" is the default path.
	Pointer *string
	Op      string
}

// Type returns workflow.edge.taken.
func (*WorkflowEdgeTaken) Type() Type { return TypeWorkflowEdgeTaken }

func (w *WorkflowEdgeTaken) fields(c *coder) {
	w.envelope(c, laneWorkflow)
	c.id("from", &w.From, required)
	c.id("to", &w.To, required)
	c.index("caseIndex", &w.CaseIndex)
	c.presentText("pointer", &w.Pointer)
	c.id("op", &w.Op, need(c.mode == decoding && c.has("op")))
}
