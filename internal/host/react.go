package host

import (
	"context"
	"slices"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// react does what durable facts ask for.
func (o *owner) react(list []narad.Authority) {
	for i, fact := range list {
		o.opens(fact)
		switch f := fact.(type) {
		case *narad.RunStarted:
			o.began[f.RunID] = time.Now()
			if f.RunID == f.RootRunID {
				o.begin(f.RunID, o.promptOf(list[i:]), nil)
			}
		case *narad.MessageUserRecorded:
			if f.RunID == f.RootRunID && !isPrompt(list, i) {
				o.steer(o.message(f))
			}
		case *narad.RunStopRequested:
			if f.TargetRunID == f.RootRunID {
				o.cancel(f.RootRunID)
			}
		case *narad.Attachment:
			if f.Kind == narad.TypeAttachmentRemoved {
				o.host.sweepSoon()
			}
		case *narad.Custom:
			o.host.answers.noteEnd(f)
		case *narad.InterruptResolved:
			o.deliver(f)
		case *narad.ToolCallFinished:
			o.returned(f)
		case *narad.RunResumed:
			o.resumed(f.RunID)
		case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
			delete(o.began, fact.Envelope().RunID)
			o.resumed(fact.Envelope().RunID) // what waits for it is told that it has ended
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
func (o *owner) promptOf(list []narad.Authority) agent.Message {
	if len(list) > 1 && isPrompt(list, 1) {
		if m, ok := list[1].(*narad.MessageUserRecorded); ok {
			return o.message(m)
		}
	}
	return agent.Message{}
}

// message is a recorded message as its agent gets it.
func (o *owner) message(m *narad.MessageUserRecorded) agent.Message {
	return agent.Message{
		MessageID: m.MessageID, Content: m.Content, Attachments: o.attachments(m.AttachmentIDs), From: facts.SpeakerOf(&m.Event),
	}
}

// waiter is who waits for a decision.
type waiter struct {
	answer chan *narad.InterruptResolved // has room for the one answer
	gone   <-chan struct{}               // closed when nobody waits any more
}

func newWaiter(ctx context.Context) waiter {
	return waiter{make(chan *narad.InterruptResolved, 1), ctx.Done()}
}

// expect lets somebody wait for a decision. Whoever has gone is forgotten.
func (o *owner) expect(interruptID string, w waiter) {
	waiting := slices.DeleteFunc(o.asked[interruptID], func(w waiter) bool { return isDone(w.gone) })
	o.asked[interruptID] = append(waiting, w)
}

// deliver gives a decision to whoever waits for it.
func (o *owner) deliver(f *narad.InterruptResolved) {
	for _, w := range o.asked[f.InterruptID] {
		w.answer <- f
	}
	delete(o.asked, f.InterruptID)
}

// returned gives the end of a client tool call to whoever waits for it.
func (o *owner) returned(f *narad.ToolCallFinished) {
	for _, c := range o.called[f.ToolCallID] {
		c <- f // each has room for its one end
	}
	delete(o.called, f.ToolCallID)
}

// resumed lets those try again whom the pause of a run has refused.
func (o *owner) resumed(runID string) {
	for _, c := range o.paused[runID] {
		close(c)
	}
	delete(o.paused, runID)
}
