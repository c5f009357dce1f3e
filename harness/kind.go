package harness

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// The records that facts become, in their order.
var (
	runStarted         = []Type{RunStarted}
	runCanceled        = []Type{RunCanceled, Checkpointed}
	subrunStarted      = []Type{SubrunStarted}
	messageStarted     = []Type{MessageStarted}
	messageDelta       = []Type{MessageDelta}
	messageCompleted   = []Type{MessageCompleted}
	reasoningStarted   = []Type{ReasoningStarted}
	reasoningDelta     = []Type{ReasoningDelta}
	reasoningCompleted = []Type{ReasoningCompleted}
	toolStarted        = []Type{ToolStarted}
	toolCompleted      = []Type{ToolCompleted}
	approvalRequested  = []Type{ApprovalRequested}
	questionAsked      = []Type{UIBlock, ApprovalRequested}
	approvalResolved   = []Type{ApprovalResolved}
	planUpdated        = []Type{PlanUpdated}
	uiBlock            = []Type{UIBlock}
	artifactPublished  = []Type{ArtifactPublished}
)

// kindsOf returns the types of the records that a fact of a run becomes under mapping 1.
// It looks at the fact alone, and makes nothing where it can.
func kindsOf(fact narad.Authority) []Type {
	switch f := fact.(type) {
	case *narad.RunStarted:
		return startKinds(f)
	case *narad.RunFinished:
		return endKinds(&f.Event, f.Usage, RunCompleted, false)
	case *narad.RunError:
		return endKinds(&f.Event, f.Usage, RunCompleted, true)
	case *narad.RunCancelled:
		return endKinds(&f.Event, f.Usage, RunCanceled, false)
	case *narad.MessageUserRecorded:
		return messageCompleted
	case *narad.MessageTextStarted:
		return messageStarted
	case *narad.MessageTextDelta:
		return messageDelta
	case *narad.MessageTextCompleted:
		return messageCompleted
	case *narad.ReasoningStarted:
		return reasoningStarted
	case *narad.ReasoningDelta:
		return reasoningDelta
	case *narad.ReasoningCompleted:
		return reasoningCompleted
	case *narad.ToolCallStarted:
		return toolStarted
	case *narad.ToolCallFinished:
		return toolCompleted
	case *narad.InterruptRequested:
		if isQuestion(f) {
			return questionAsked
		}
		return approvalRequested
	case *narad.InterruptResolved:
		return approvalResolved
	case *narad.ProgressRecorded:
		return progressKinds(f)
	case *narad.StateSnapshot:
		return uiKinds(f.Kind == narad.TypeUIStateSnapshot)
	case *narad.StateDelta:
		return uiKinds(f.Kind == narad.TypeUIStateDelta)
	case *narad.ViewOpened, *narad.ViewUpdated, *narad.ViewClosed:
		return uiBlock
	case *narad.Artifact:
		if f.Kind == narad.TypeArtifactReady {
			return artifactPublished
		}
	case *narad.Custom:
		if f.Name == facts.InputWithdrawn {
			return runCanceled
		}
	}
	return nil
}

func startKinds(f *narad.RunStarted) []Type {
	switch {
	case f.RunID == f.RootRunID:
		return runStarted
	case facts.Gate(&f.Event):
		return nil
	}
	return subrunStarted
}

// endKinds returns the records of a terminal. After a stop there are but two (R36), and a
// gate run is none (R10).
func endKinds(e *narad.Event, used *narad.Usage, last Type, failed bool) []Type {
	if facts.Gate(e) {
		return nil
	}
	if _, stopped := facts.StoppedBy(e); stopped && e.RunID == e.RootRunID {
		return runCanceled
	}
	kinds := make([]Type, 0, 4)
	if failed {
		kinds = append(kinds, ErrorReported)
	}
	if tells(used) {
		kinds = append(kinds, UsageReported)
	}
	if e.RunID != e.RootRunID {
		return append(kinds, SubrunCompleted)
	}
	return append(kinds, last, Checkpointed)
}

// tells reports whether any of the figures of a usage record is known.
func tells(u *narad.Usage) bool {
	return u != nil && (u.PromptTokens != nil || u.CompletionTokens != nil)
}

func isQuestion(f *narad.InterruptRequested) bool { return f.Kind == "question" }

// progressKinds returns the records of an activity. The steps of a plan are told together,
// with the last of them that has changed.
func progressKinds(f *narad.ProgressRecorded) []Type {
	switch {
	case facts.Plan(&f.Event) != nil:
		return planUpdated
	case facts.OfPlan(&f.Event):
		return nil
	}
	return uiBlock
}

func uiKinds(ui bool) []Type {
	if ui {
		return uiBlock
	}
	return nil
}
