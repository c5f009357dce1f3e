package session

import (
	"cmp"
	"slices"

	"github.com/mahati-host/mahati/narad"
)

// HasOpenWork reports whether a run, a workflow, or anything inside one is open.
func (s *State) HasOpenWork() bool {
	if s.activeRoot != "" || s.activeWorkflow != "" {
		return true
	}
	for _, r := range s.runs {
		if !r.State.Ended() {
			return true
		}
	}
	return false
}

// OpenRuns returns the runs that have not ended, in the order of their starts, so
// that a parent stands before its children.
func (s *State) OpenRuns() []Run {
	return pick(s.runs, func(r *Run) bool { return !r.State.Ended() },
		func(r Run) int64 { return r.StartedSequence })
}

// OpenTools returns a run's open tool calls in the order of their starts.
func (s *State) OpenTools(runID string) []Tool {
	return pick(s.tools, func(t *Tool) bool { return t.Open && t.RunID == runID },
		func(t Tool) int64 { return t.StartedSequence })
}

// OpenInterrupts returns the interrupts that wait for a decision, in the order of
// their requests.
func (s *State) OpenInterrupts() []Interrupt {
	return pick(s.interrupts, func(i *Interrupt) bool { return i.Open },
		func(i Interrupt) int64 { return i.RequestedSequence })
}

// OpenInterrupt returns a run's open interrupt.
func (s *State) OpenInterrupt(runID string) (Interrupt, bool) {
	if r := s.runs[runID]; r != nil && r.interrupt != "" {
		return s.Interrupt(r.interrupt)
	}
	return Interrupt{}, false
}

// OpenMessages returns the ids of a run's messages that are being streamed, in the
// order in which they began.
func (s *State) OpenMessages(runID string) []string {
	var ids []string
	for _, m := range s.messages.order {
		if m.streaming && m.RunID == runID {
			ids = append(ids, m.MessageID)
		}
	}
	return ids
}

// OpenReasoning returns the ids of a run's stretches of reasoning that are being
// streamed, in the order in which they began.
func (s *State) OpenReasoning(runID string) []string {
	var ids []string
	for _, r := range s.reasoning.order {
		if !r.completed && r.RunID == runID {
			ids = append(ids, r.ReasoningID)
		}
	}
	return ids
}

// ActiveProgress returns a run's activities that are under way, in the order of
// first mention.
func (s *State) ActiveProgress(runID string) []Activity {
	var list []Activity
	if of := s.progress[runID]; of != nil {
		for _, id := range of.order {
			if a := of.byID[id]; a.Status == narad.ProgressActive {
				list = append(list, *a)
			}
		}
	}
	return list
}

// Activity returns one activity of a run that the state still knows.
func (s *State) Activity(runID, progressID string) (Activity, bool) {
	if of := s.progress[runID]; of != nil && of.byID[progressID] != nil {
		return *of.byID[progressID], true
	}
	return Activity{}, false
}

// Stopped reports whether a stop was requested of a run or of one above it.
func (s *State) Stopped(runID string) bool { return s.stopped(s.runs[runID]) }

// pick returns the values that are wanted, in the order of their places.
func pick[T any](m map[string]*T, want func(*T) bool, at func(T) int64) []T {
	var list []T
	for _, v := range m {
		if want(v) {
			list = append(list, *v)
		}
	}
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(at(a), at(b)) })
	return list
}
