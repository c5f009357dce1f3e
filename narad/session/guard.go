package session

import (
	"cmp"

	"github.com/mahati-host/mahati/narad"
)

// guard says why an event, which is the next one, must not stand here. The empty
// code means that it may.
func (s *State) guard(rec narad.Authority, strict bool) Code {
	e := rec.Envelope()
	if code := s.guardPause(rec, e, strict); code != "" {
		return code
	}
	if strict {
		if code := cmp.Or(s.guardRun(rec, e), s.guardWorkflowOpen(rec, e)); code != "" {
			return code
		}
	}
	return s.guardType(rec, strict)
}

// guardPause keeps the place right after an interrupt for its pause (§7.6).
func (s *State) guardPause(rec narad.Authority, e *narad.Event, strict bool) Code {
	if w := s.workflows[e.WorkflowID]; w != nil && w.awaiting != nil && rec.Type() != narad.TypeWorkflowPaused {
		return PauseMustFollow
	}
	if strict {
		t := s.trees[e.RootRunID]
		if t == nil || t.awaiting == nil {
			return ""
		}
		if rec.Type() != narad.TypeRunPaused || e.RunID != t.awaiting.RunID {
			return PauseMustFollow
		}
		return ""
	}
	if r := s.runs[e.RunID]; r != nil && r.awaiting && rec.Type() != narad.TypeRunPaused {
		return PauseMustFollow
	}
	return ""
}

// guardWorkflowOpen demands that the workflow that an event names is there and open.
func (s *State) guardWorkflowOpen(rec narad.Authority, e *narad.Event) Code {
	if e.WorkflowID == "" || rec.Type() == narad.TypeWorkflowStarted || !s.knowsWorkflows() {
		return ""
	}
	switch w := s.workflows[e.WorkflowID]; {
	case w == nil:
		return WorkflowNotStarted
	case w.ended():
		return WorkflowEnded
	}
	return ""
}

// guardRun demands that the run that an event names is there, open, in that tree and
// that workflow, and that the event is the next of the tree.
func (s *State) guardRun(rec narad.Authority, e *narad.Event) Code {
	if e.RunID == "" || rec.Type() == narad.TypeRunStarted {
		return ""
	}
	r := s.runs[e.RunID]
	switch {
	case r == nil:
		return RunNotStarted
	case r.RootRunID != e.RootRunID:
		return RootMismatch
	case r.WorkflowID != e.WorkflowID:
		return WorkflowMismatch
	case r.State.Ended():
		return RunEnded
	}
	return s.guardTree(e)
}

// guardTree demands the next place of the run tree.
func (s *State) guardTree(e *narad.Event) Code {
	if t := s.trees[e.RootRunID]; t != nil && e.Sequence != t.last+1 {
		return RunSequence
	}
	return ""
}

// guardType applies the rules of the event's own type.
func (s *State) guardType(rec narad.Authority, strict bool) Code {
	switch r := rec.(type) {
	case *narad.RunStarted:
		return s.guardRunStarted(r, strict)
	case *narad.RunPaused:
		return s.guardRunPaused(r, strict)
	case *narad.RunResumed:
		return s.guardRunResumed(r, strict)
	case *narad.RunStopRequested:
		return s.guardRunStopRequested(r, strict)
	case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		return s.guardRunEnded(rec.Envelope(), strict)
	case *narad.InterruptRequested:
		return s.guardInterruptRequested(r, strict)
	case *narad.InterruptResolved:
		return s.guardInterruptResolved(r, strict)
	case *narad.ToolCallStarted:
		return s.guardToolCallStarted(r, strict)
	case *narad.ToolCallFinished:
		return s.guardToolCallFinished(r)
	case *narad.ProgressRecorded:
		return s.guardProgress(r)
	}
	if code, ok := s.guardConversation(rec, strict); ok {
		return code
	}
	if code, ok := s.guardWorkflow(rec, strict); ok {
		return code
	}
	return s.guardMaterial(rec, strict)
}

// change applies an event that may stand here.
func (s *State) change(rec narad.Authority) {
	switch r := rec.(type) {
	case *narad.RunStarted:
		s.runStarted(r)
	case *narad.RunPaused:
		s.runPaused(r)
	case *narad.RunResumed:
		s.runResumed(r)
	case *narad.RunStopRequested:
		s.runs[r.TargetRunID].StopRequested = true
	case *narad.RunFinished:
		s.runEnded(&r.Event, Finished, r.Usage, "", "")
	case *narad.RunError:
		s.runEnded(&r.Event, Failed, r.Usage, r.Code, r.Message)
	case *narad.RunCancelled:
		s.runEnded(&r.Event, Cancelled, r.Usage, r.Code, r.Message)
	case *narad.InterruptRequested:
		s.interruptRequested(r)
	case *narad.InterruptResolved:
		s.interruptResolved(r)
	case *narad.ToolCallStarted:
		s.toolCallStarted(r)
	case *narad.ToolCallFinished:
		s.toolCallFinished(r)
	case *narad.ProgressRecorded:
		s.progressRecorded(r)
	default:
		s.changeConversation(rec)
		s.changeWorkflow(rec)
		s.changeMaterial(rec)
	}
}
