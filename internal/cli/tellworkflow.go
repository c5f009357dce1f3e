package cli

import (
	"strconv"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// workflow tells what a workflow does: its steps, the paths it takes, its end.
func (t *teller) workflow(fact narad.Authority) {
	if words, ends := workflowWords(fact); words != "" {
		color := t.screen.cyan
		switch {
		case ends == good:
			color = t.screen.green
		case ends == bad:
			color = t.screen.red
		case ends == stopped:
			color = t.screen.yellow
		}
		t.screen.line("", color(oneLine(words)))
	}
	if f, ok := fact.(*narad.WorkflowEnded); ok {
		if output := facts.WorkflowOutput(&f.Event); output != nil {
			t.screen.line("", escape(string(output)))
		}
	}
}

// mood is how a line about a workflow is to be taken.
type mood uint8

const (
	neutral mood = iota
	good
	bad
	stopped
)

// workflowWords says a fact of a workflow in a line, "" for one that is not worth it.
func workflowWords(fact narad.Authority) (string, mood) {
	switch f := fact.(type) {
	case *narad.WorkflowStarted:
		return "◆ workflow started", neutral
	case *narad.WorkflowStopRequested:
		return "■ stop of the workflow requested", stopped
	case *narad.WorkflowStep:
		return stepWords(f)
	case *narad.WorkflowEdgeTaken:
		why := f.Op
		if f.Pointer != nil {
			why = joined(" ", *f.Pointer, f.Op)
		}
		return "→ " + f.From + " to " + f.To + " (" + why + ")", neutral
	case *narad.WorkflowEnded:
		return endWords(f)
	}
	return "", neutral
}

func stepWords(f *narad.WorkflowStep) (string, mood) {
	name := f.NodeID
	if f.StepAttempt > 1 {
		name += ", attempt " + strconv.FormatInt(f.StepAttempt, 10)
	}
	switch f.Kind {
	case narad.TypeWorkflowStepStarted:
		return "▸ step " + name, neutral
	case narad.TypeWorkflowStepFinished:
		return "✓ step " + name, good
	}
	code, message := facts.StepFailure(&f.Event)
	words := "✗ step " + name + " failed: " + joined(": ", code, message)
	if at := facts.RetryAt(&f.Event); at != "" {
		words += "; again at " + clock(at)
	}
	return words, bad
}

func endWords(f *narad.WorkflowEnded) (string, mood) {
	why := joined(": ", f.Code, f.Message)
	switch f.Kind {
	case narad.TypeWorkflowFinished:
		return joined(": ", "workflow finished", why), good
	case narad.TypeWorkflowCancelled:
		return joined(": ", "workflow cancelled", why), stopped
	}
	return joined(": ", "workflow failed", why), bad
}
