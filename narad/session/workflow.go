package session

import "github.com/mahati-host/mahati/narad"

// Workflow is one workflow as the facts tell it.
type Workflow struct {
	WorkflowID      string          `json:"workflowId"`
	State           RunState        `json:"state"`
	StopRequested   bool            `json:"stopRequested,omitzero"`
	CurrentNodeID   string          `json:"currentNodeId,omitzero"`
	OpenWaitID      string          `json:"openWaitId,omitzero"`
	OpenInterruptID string          `json:"openInterruptId,omitzero"`
	Steps           map[string]Step `json:"steps,omitempty"`
	Transitions     []Transition    `json:"transitions,omitempty"`

	awaiting *Interrupt // the next event of the workflow must be its pause
}

func (w *Workflow) ended() bool { return w.State.Ended() }

// Step is how a node of a workflow stands.
type Step struct {
	Status    string `json:"status"`
	Attempt   int64  `json:"attempt,omitzero"`
	RunID     string `json:"runId,omitzero"`
	SessionID string `json:"sessionId,omitzero"`
}

// Failed reports whether the last attempt has failed.
func (s Step) Failed() bool { return s.Status == stepFailed }

// The statuses of a step.
const (
	stepRunning  = "running"
	stepFinished = "finished"
	stepFailed   = "failed"
)

// Transition is an edge that was taken.
type Transition struct {
	From             string  `json:"from"`
	To               string  `json:"to"`
	CaseIndex        *int64  `json:"caseIndex,omitzero"`
	Pointer          *string `json:"pointer,omitzero"`
	Op               string  `json:"op,omitzero"`
	WorkflowSequence int64   `json:"workflowSequence"`
}

// Workflow returns a workflow that the state still knows. Its maps are the state's own, to
// be read only.
func (s *State) Workflow(id string) (Workflow, bool) {
	if w := s.workflows[id]; w != nil {
		return *w, true
	}
	return Workflow{}, false
}

// knowsWorkflows reports whether workflow events are taken. Runs and interrupts are of
// the core and name workflows all the same.
func (s *State) knowsWorkflows() bool { return s.opt.Without&narad.Workflow == 0 }

// guardWorkflow applies the rules of workflows. The second result is false for an
// event of another profile.
func (s *State) guardWorkflow(rec narad.Authority, strict bool) (Code, bool) {
	w := s.workflows[rec.Envelope().WorkflowID]
	switch r := rec.(type) {
	case *narad.WorkflowStarted:
		return s.guardWorkflowStarted(w, strict), true
	case *narad.WorkflowPaused:
		return guardWorkflowPaused(w, r, strict), true
	case *narad.WorkflowResumed:
		return s.guardWorkflowResumed(w, r, strict), true
	case *narad.WorkflowStep:
		return guardStep(w, r, strict), true
	case *narad.WorkflowEdgeTaken:
		return guardEdge(w, r), true
	case *narad.WorkflowEnded:
		return s.guardWorkflowEnded(w, strict), true
	}
	return "", false
}

func (s *State) guardWorkflowStarted(w *Workflow, strict bool) Code {
	switch {
	case strict && w != nil:
		return WorkflowAlreadyStarted
	case strict && (s.activeRoot != "" || s.activeWorkflow != ""):
		return ExecutionActive
	}
	return ""
}

func guardWorkflowPaused(w *Workflow, r *narad.WorkflowPaused, strict bool) Code {
	switch {
	case w == nil:
		return WorkflowNotStarted
	case w.State != Running:
		return WorkflowNotRunning
	case strict && (w.awaiting == nil || w.awaiting.InterruptID != r.InterruptID || w.awaiting.WaitID != r.WaitID):
		return PauseMismatch
	}
	return ""
}

func (s *State) guardWorkflowResumed(w *Workflow, r *narad.WorkflowResumed, strict bool) Code {
	switch {
	case w == nil:
		return WorkflowNotStarted
	case w.State != Paused:
		return WorkflowNotPaused
	case w.OpenWaitID != r.WaitID:
		return WaitMismatch
	case strict && s.workflowAsks[r.WorkflowID] != "":
		return OpenInterrupt
	}
	return ""
}

func guardStep(w *Workflow, r *narad.WorkflowStep, strict bool) Code {
	if !strict {
		return ""
	}
	if w == nil {
		return WorkflowNotStarted
	}
	running := w.Steps[r.NodeID].Status == stepRunning
	switch {
	case r.Kind == narad.TypeWorkflowStepStarted && running:
		return StepAlreadyStarted
	case r.Kind != narad.TypeWorkflowStepStarted && !running:
		return StepNotStarted
	}
	return ""
}

func guardEdge(w *Workflow, r *narad.WorkflowEdgeTaken) Code {
	switch {
	case w == nil:
		return WorkflowNotStarted
	case w.State != Running:
		return WorkflowNotRunning
	case w.CurrentNodeID != "" && w.CurrentNodeID != r.From:
		return WorkflowEdgeSource
	}
	return ""
}

func (s *State) guardWorkflowEnded(w *Workflow, strict bool) Code {
	if !strict {
		return ""
	}
	if r := s.runs[s.activeRoot]; r != nil && r.WorkflowID == w.WorkflowID {
		return OpenRun
	}
	if s.workflowAsks[w.WorkflowID] != "" {
		return OpenInterrupt
	}
	return ""
}

func (s *State) changeWorkflow(rec narad.Authority) {
	id := rec.Envelope().WorkflowID
	w := s.workflows[id]
	switch r := rec.(type) {
	case *narad.WorkflowStarted:
		s.runningWorkflow(id).moveTo(r.NodeID)
	case *narad.WorkflowPaused:
		w.State, w.OpenWaitID, w.OpenInterruptID, w.awaiting = Paused, r.WaitID, r.InterruptID, nil
	case *narad.WorkflowResumed:
		s.runningWorkflow(id).moveTo(r.NodeID)
	case *narad.WorkflowStopRequested:
		if w != nil {
			w.StopRequested = true
		}
	case *narad.WorkflowStep:
		s.stepped(r)
	case *narad.WorkflowEdgeTaken:
		w.edgeTaken(r, !s.opt.NoDisplay)
	case *narad.WorkflowEnded:
		s.workflowEnded(w, r)
	}
}

// runningWorkflow returns the workflow, made or set running, as the active one.
func (s *State) runningWorkflow(id string) *Workflow {
	w := s.workflows[id]
	if w == nil {
		w = &Workflow{WorkflowID: id, Steps: map[string]Step{}}
		s.workflows[id] = w
	}
	w.State, w.OpenWaitID, w.OpenInterruptID = Running, "", ""
	s.activeWorkflow = id
	return w
}

func (w *Workflow) moveTo(node string) {
	if node != "" {
		w.CurrentNodeID = node
	}
}

var stepStatus = map[narad.Type]string{
	narad.TypeWorkflowStepStarted:  stepRunning,
	narad.TypeWorkflowStepFinished: stepFinished,
	narad.TypeWorkflowStepFailed:   stepFailed,
}

func (s *State) stepped(r *narad.WorkflowStep) {
	w := s.workflows[r.WorkflowID]
	if w == nil { // a client that joined in the middle
		w = s.runningWorkflow(r.WorkflowID)
	}
	w.Steps[r.NodeID] = Step{
		Status: stepStatus[r.Kind], Attempt: r.StepAttempt, RunID: r.AgentRunID, SessionID: r.AgentSessionID,
	}
	w.moveTo(r.NodeID)
	s.activeWorkflow = r.WorkflowID
}

func (w *Workflow) edgeTaken(r *narad.WorkflowEdgeTaken, keep bool) {
	w.moveTo(r.To)
	if !keep {
		return
	}
	w.Transitions = append(w.Transitions, Transition{
		From: r.From, To: r.To, CaseIndex: r.CaseIndex, Pointer: r.Pointer, Op: r.Op,
		WorkflowSequence: r.WorkflowSequence,
	})
}

var workflowEnd = map[narad.Type]RunState{
	narad.TypeWorkflowFinished:  Finished,
	narad.TypeWorkflowError:     Failed,
	narad.TypeWorkflowCancelled: Cancelled,
}

func (s *State) workflowEnded(w *Workflow, r *narad.WorkflowEnded) {
	if s.activeWorkflow == r.WorkflowID {
		s.activeWorkflow = ""
	}
	if w == nil {
		return
	}
	w.State, w.OpenWaitID, w.OpenInterruptID = workflowEnd[r.Kind], "", ""
	if s.opt.NoDisplay {
		delete(s.workflows, r.WorkflowID)
		delete(s.workflowAsks, r.WorkflowID)
		s.forgetScope(narad.ScopeWorkflow, r.WorkflowID, "")
	}
}
