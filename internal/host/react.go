package host

import (
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// react does what durable facts ask for.
func (o *owner) react(list []narad.Authority) {
	for i, fact := range list {
		switch f := fact.(type) {
		case *narad.RunStarted:
			if f.RunID == f.RootRunID {
				o.begin(f.RunID, promptOf(list[i:]), nil)
			}
		case *narad.MessageUserRecorded:
			if f.RunID == f.RootRunID && !isPrompt(list, i) {
				o.steer(agent.Message{MessageID: f.MessageID, Content: f.Content})
			}
		case *narad.RunStopRequested:
			if f.TargetRunID == f.RootRunID {
				o.cancel(f.RootRunID)
			}
		case *narad.InterruptResolved:
			o.deliver(f)
		case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
			if o.active != nil && fact.Envelope().RunID == o.active.id {
				o.active = nil
			}
		}
	}
}

// isPrompt reports whether a user's message is the prompt of a run: then it stands right
// after its start, in the same batch (R9). Any other in a root run steers it.
func isPrompt(list []narad.Authority, i int) bool {
	if i == 0 {
		return false
	}
	start, ok := list[i-1].(*narad.RunStarted)
	return ok && start.RunID == list[i].Envelope().RunID
}

// promptOf returns the prompt of the run that a list of facts starts with.
func promptOf(list []narad.Authority) agent.Message {
	if len(list) > 1 && isPrompt(list, 1) {
		if m, ok := list[1].(*narad.MessageUserRecorded); ok {
			return agent.Message{MessageID: m.MessageID, Content: m.Content}
		}
	}
	return agent.Message{}
}

// answered is the decision of an interrupt, for who asked.
type answered struct{ fact *narad.InterruptResolved }

// deliver gives a decision to whoever waits for it.
func (o *owner) deliver(f *narad.InterruptResolved) {
	for _, c := range o.asked[f.InterruptID] {
		c <- answered{f} // each has room for its one answer
	}
	delete(o.asked, f.InterruptID)
}
