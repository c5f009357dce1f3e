package acp

import (
	"fmt"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// maxSteps bounds a plan; what is above it is not shown.
const maxSteps = 256

// plan is the agent's plan as it was last shown. Steps have no ids of their own: one is
// the same as before if its text is.
type plan struct {
	steps []step
	last  int // number of the last id
}

type step struct {
	id            string
	label, status string
}

// showPlan records what has changed of a plan, which comes as a whole.
func (t *turn) showPlan(entries []entry) {
	before := t.plan.steps
	var changed []step
	t.plan.steps = nil
	for _, e := range entries[:min(len(entries), maxSteps)] {
		s := step{label: label(e.Content.plain(), maxTitle), status: e.Status}
		if s.label == "" {
			continue
		}
		was, found := takeStep(&before, s.label)
		if s.id = was.id; !found {
			t.plan.last++
			s.id = fmt.Sprintf("plan-%d", t.plan.last)
		}
		t.plan.steps = append(t.plan.steps, s)
		if s != was {
			changed = append(changed, s)
		}
	}
	for _, dropped := range before {
		if dropped.status != "completed" {
			dropped.status = "cancelled"
			changed = append(changed, dropped)
		}
	}
	whole := make([]facts.Planned, len(t.plan.steps))
	for i, s := range t.plan.steps {
		whole[i] = facts.Planned{ID: s.id, Text: s.label, Status: s.status}
	}
	if len(changed) == 0 { // it was emptied of what is done, or says the same again
		t.took(t.root, t.root.h.Tasks(t.record, "", whole))
	}
	for i, s := range changed {
		if i < len(changed)-1 {
			t.showStep(s, &agent.Plan{Later: true})
		} else {
			t.showStep(s, &agent.Plan{Steps: whole})
		}
	}
}

// takeStep removes the first step with a label.
func takeStep(steps *[]step, label string) (step, bool) {
	for i, s := range *steps {
		if s.label == label {
			*steps = append((*steps)[:i:i], (*steps)[i+1:]...)
			return s, true
		}
	}
	return step{}, false
}

func (t *turn) showStep(s step, in *agent.Plan) {
	p := agent.Progress{
		ID: s.id, Category: "plan", Label: s.label, Status: narad.ProgressActive, Privacy: narad.PrivacyInternal, Plan: in,
	}
	switch s.status {
	case "completed":
		p.Status = narad.ProgressCompleted
	case "cancelled":
		p.Status = narad.ProgressCancelled
	case "in_progress":
		p.Detail = "in progress"
	default:
		p.Detail = "pending"
	}
	t.took(t.root, t.root.h.Progress(t.record, p))
}
