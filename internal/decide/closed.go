package decide

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// late is what a decision for the whole finds that comes after its end: it would have been
// for what was still open then, and that has expired.
func (c Closed) late() string {
	for _, decision := range c.Members {
		if decision == narad.DecisionExpired {
			return decision
		}
	}
	return c.Decision
}

// lapsed says why nobody can decide any more what nobody has decided: who begins the
// sentence.
func (c Closed) lapsed(who string) string {
	_, resolved := c.Facts()
	if resolved == nil {
		return who + " in time"
	}
	switch resolved.Reason {
	case reasonExpired:
		return who + " in time"
	case ReasonStopped:
		return who + " before its run was stopped"
	case hostRestarted:
		return who + " before the host was restarted"
	case reasonEnded:
		return who + " before its run ended"
	case facts.Detached:
		return who + ", since nobody is there"
	}
	return who + " before it was withdrawn" // the agent asks it no more
}

// asked returns the interrupt as it was while it was open, and what was answered.
func (c Closed) asked() (i session.Interrupt, answers []QuestionAnswer, known bool) {
	asked, resolved := c.Facts()
	if asked == nil || resolved == nil {
		return i, nil, false
	}
	i = session.Interrupt{InterruptID: asked.InterruptID, Kind: asked.Kind, Actions: asked.Actions, Input: asked.Input}
	given := facts.Answers(&resolved.Event)
	return i, answers, given == nil || json.Unmarshal(given, &answers) == nil
}

// alike reports whether two lists of answers say the same: options are chosen in no order.
func alike(one, other []QuestionAnswer) bool {
	return slices.EqualFunc(one, other, func(a, b QuestionAnswer) bool {
		return a.Text == b.Text && slices.Equal(slices.Sorted(slices.Values(a.Options)), slices.Sorted(slices.Values(b.Options)))
	})
}
