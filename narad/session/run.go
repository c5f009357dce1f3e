package session

import "github.com/mahati-host/mahati/narad"

// RunState is one of the five states of a run (specification §6.1).
type RunState string

// The states of a run, and of a workflow.
const (
	Running   RunState = "running"
	Paused    RunState = "paused"
	Finished  RunState = "finished"
	Failed    RunState = "error"
	Cancelled RunState = "cancelled"
)

// Ended reports whether the state is terminal.
func (r RunState) Ended() bool { return r == Finished || r == Failed || r == Cancelled }

// Run is one run as the facts tell it.
type Run struct {
	RunID            string       `json:"runId"`
	RootRunID        string       `json:"rootRunId"`
	State            RunState     `json:"state"`
	StopRequested    bool         `json:"stopRequested,omitzero"`
	ParentRunID      string       `json:"parentRunId,omitzero"`
	ParentToolCallID string       `json:"parentToolCallId,omitzero"`
	ClientExecutorID string       `json:"clientExecutorId,omitzero"`
	WorkflowID       string       `json:"workflowId,omitzero"`
	OpenWaitID       string       `json:"openWaitId,omitzero"`
	OpenInterruptID  string       `json:"openInterruptId,omitzero"`
	StartedAt        string       `json:"startedAt,omitzero"`
	CompletedAt      string       `json:"completedAt,omitzero"`
	Usage            *narad.Usage `json:"usage,omitzero"`
	Code             string       `json:"code,omitzero"`
	Message          string       `json:"message,omitzero"`

	// StartedSequence is the sessionSequence of the start.
	StartedSequence int64 `json:"-"`

	awaiting  bool   // the next event of the run must be its pause
	interrupt string // the open interrupt, paused for or not
	children  int    // open runs whose parent this is
	tools     int    // open tool calls
}

// tree is what belongs to a whole run tree.
type tree struct {
	last     int64
	awaiting *Interrupt
}

// tree returns a run tree, made if nothing of it was seen.
func (s *State) tree(root string) *tree {
	t := s.trees[root]
	if t == nil {
		t = &tree{}
		s.trees[root] = t
	}
	return t
}

// Run returns a run that the state still knows.
func (s *State) Run(id string) (Run, bool) {
	if r := s.runs[id]; r != nil {
		return *r, true
	}
	return Run{}, false
}

func (s *State) guardRunStarted(r *narad.RunStarted, strict bool) Code {
	switch {
	case s.runs[r.RunID] != nil:
		return RunAlreadyStarted
	case r.ParentRunID != "" && s.runs[r.ParentRunID] == nil:
		return ParentNotStarted
	case !strict:
		return ""
	case r.RunID == r.RootRunID:
		return s.guardRootStarted(r)
	}
	return s.guardChildStarted(r)
}

func (s *State) guardRootStarted(r *narad.RunStarted) Code {
	switch {
	case r.ParentRunID != "":
		return ParentMismatch
	case r.Sequence != 1:
		return RunSequence
	case s.activeRoot != "", s.activeWorkflow != "" && s.activeWorkflow != r.WorkflowID:
		return ExecutionActive
	}
	return ""
}

func (s *State) guardChildStarted(r *narad.RunStarted) Code {
	parent := s.runs[r.ParentRunID]
	switch {
	case parent == nil:
		return ParentNotStarted
	case parent.RootRunID != r.RootRunID:
		return ParentMismatch
	case parent.WorkflowID != r.WorkflowID:
		return WorkflowMismatch
	case parent.State.Ended():
		return RunEnded
	case parent.State != Running:
		return RunNotRunning
	case s.stopped(parent):
		return RunStopped
	}
	if r.ParentToolCallID != "" {
		switch t := s.tools[r.ParentToolCallID]; {
		case t == nil || !t.Open:
			return ToolNotOpen
		case t.RunID != parent.RunID:
			return ToolRunMismatch
		}
	}
	return s.guardTree(&r.Event)
}

// stopped reports whether a stop was requested of a run or of one above it.
func (s *State) stopped(r *Run) bool {
	for range len(s.runs) + 1 {
		if r == nil {
			return false
		}
		if r.StopRequested {
			return true
		}
		r = s.runs[r.ParentRunID]
	}
	return false
}

func (s *State) runStarted(r *narad.RunStarted) {
	s.runs[r.RunID] = &Run{
		RunID: r.RunID, RootRunID: r.RootRunID, State: Running, ParentRunID: r.ParentRunID,
		ParentToolCallID: r.ParentToolCallID, ClientExecutorID: r.ClientExecutorID,
		WorkflowID: r.WorkflowID, StartedAt: r.Timestamp, StartedSequence: r.SessionSequence,
	}
	s.tree(r.RootRunID)
	if r.RunID == r.RootRunID {
		s.activeRoot = r.RunID
	}
	if r.WorkflowID != "" && s.knowsWorkflows() {
		s.activeWorkflow = r.WorkflowID
	}
	if parent := s.runs[r.ParentRunID]; parent != nil {
		parent.children++
	}
}

func (s *State) guardRunPaused(r *narad.RunPaused, strict bool) Code {
	switch run := s.runs[r.RunID]; {
	case run == nil:
		return RunNotStarted
	case run.State != Running:
		return RunNotRunning
	}
	if !strict {
		return ""
	}
	switch t := s.trees[r.RootRunID]; {
	case t.awaiting == nil && r.InterruptID != "",
		t.awaiting != nil && (t.awaiting.InterruptID != r.InterruptID || t.awaiting.WaitID != r.WaitID):
		return PauseMismatch
	}
	return ""
}

func (s *State) runPaused(r *narad.RunPaused) {
	run := s.runs[r.RunID]
	run.State, run.OpenWaitID, run.OpenInterruptID = Paused, r.WaitID, r.InterruptID
	run.awaiting = false
	if t := s.trees[r.RootRunID]; t != nil && t.awaiting != nil && t.awaiting.RunID == r.RunID {
		t.awaiting = nil
	}
}

func (s *State) guardRunResumed(r *narad.RunResumed, strict bool) Code {
	run := s.runs[r.RunID]
	switch {
	case run == nil:
		return RunNotStarted
	case run.State != Paused:
		return RunNotPaused
	case run.OpenWaitID != r.WaitID:
		return WaitMismatch
	case strict && run.interrupt != "":
		return OpenInterrupt
	}
	return ""
}

func (s *State) runResumed(r *narad.RunResumed) {
	run := s.runs[r.RunID]
	run.State, run.OpenWaitID, run.OpenInterruptID = Running, "", ""
}

func (s *State) guardRunStopRequested(r *narad.RunStopRequested, strict bool) Code {
	target := s.runs[r.TargetRunID]
	switch {
	case target == nil:
		return RunNotStarted
	case !strict:
		return ""
	case target.RootRunID != r.RootRunID:
		return RootMismatch
	case target.State.Ended():
		return RunEnded
	}
	return ""
}

func (s *State) guardRunEnded(e *narad.Event, strict bool) Code {
	run := s.runs[e.RunID]
	switch {
	case run == nil:
		return RunNotStarted
	case run.State == Paused:
		return RunPaused
	case run.State.Ended():
		return RunEnded
	case !strict:
		return ""
	case run.children > 0:
		return OpenChild
	case run.tools > 0:
		return OpenTool
	case run.interrupt != "":
		return OpenInterrupt
	}
	return ""
}

func (s *State) runEnded(e *narad.Event, state RunState, u *narad.Usage, code, message string) {
	run := s.runs[e.RunID]
	run.State, run.CompletedAt, run.Code, run.Message = state, e.Timestamp, code, message
	run.OpenWaitID, run.OpenInterruptID, run.awaiting = "", "", false
	if u != nil {
		run.Usage = u
	}
	if parent := s.runs[run.ParentRunID]; parent != nil {
		parent.children--
	}
	if s.activeRoot == run.RunID {
		s.activeRoot = ""
	}
	if s.opt.NoDisplay {
		s.forgetRun(run)
	}
}

// forgetRun drops what only display needs: nothing can follow a run's terminal.
func (s *State) forgetRun(run *Run) {
	delete(s.runs, run.RunID)
	delete(s.progress, run.RunID)
	s.forgetScope(narad.ScopeRun, run.RootRunID, run.RunID)
	if run.RunID == run.RootRunID {
		delete(s.trees, run.RootRunID)
	}
}
