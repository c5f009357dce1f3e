package decide

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// WhenBusy says what a message does while a run is active (R16).
type WhenBusy string

// The choices. The empty one is Queue.
const (
	WhenBusyQueue  WhenBusy = "queue"
	WhenBusyReject WhenBusy = "reject"
	WhenBusySteer  WhenBusy = "steer"
)

// Message is what a person says: it starts a run, waits for one, or steers one.
type Message struct {
	// MessageID is the client's choice, or empty.
	MessageID string
	Content   string
	WhenBusy  WhenBusy
	// Attachments counts the attachments named, of which there are none yet.
	Attachments int
}

func (m Message) propose(d *draft) Answer {
	switch {
	case !d.desk.Exists():
		return refuse(NotFound, "no such session")
	case d.desk.Archived:
		return refuse(Conflict, "the session is archived")
	case m.Attachments > 0:
		return refuse(Rejected, "no such attachment")
	case m.Content == "":
		return refuse(Rejected, "content is empty")
	}
	if m.MessageID == "" {
		m.MessageID = d.env.NewID()
	}
	if d.busy() {
		return m.whileBusy(d)
	}
	q := facts.Queued{MessageID: m.MessageID, RunID: d.env.NewID(), Kind: facts.Start, Content: m.Content}
	if !d.env.MayStart {
		return d.enqueue(q)
	}
	d.start(q, false)
	return Answer{Status: Accepted, RunID: q.RunID}
}

func (m Message) whileBusy(d *draft) Answer {
	active := d.state.ActiveRootRunID()
	switch m.WhenBusy {
	case WhenBusyReject:
		return Answer{Status: Conflict, Detail: "a run is active", RunID: active}
	case WhenBusySteer:
		return m.steer(d, active)
	}
	answer := d.enqueue(facts.Queued{
		MessageID: m.MessageID, RunID: d.env.NewID(), Kind: facts.FollowUp, Content: m.Content,
	})
	if answer.Status.Accepted() && active == "" && d.env.MayStart {
		d.startNext(false) // a new message moves a parked queue (R16)
	}
	return answer
}

func (m Message) steer(d *draft, active string) Answer {
	run, ok := d.run(active)
	switch {
	case !ok || d.desk.Stopping == active:
		return Answer{Status: Conflict, Detail: "no run can be steered", RunID: active}
	case !d.env.CanSteer:
		return Answer{Status: Unsupported, Detail: "this agent takes no message during a run", RunID: active}
	}
	d.in(run, &narad.MessageUserRecorded{
		MessageID: m.MessageID, MessageScope: narad.ScopeSession, Content: m.Content,
	})
	return Answer{Status: Accepted, RunID: active, ID: m.MessageID}
}

// enqueue lets a message wait.
func (d *draft) enqueue(q facts.Queued) Answer {
	if len(d.desk.Queue) >= d.env.QueueLimit {
		return refuse(Conflict, "the queue of the session is full")
	}
	d.add(facts.Session(facts.InputQueued, q))
	return Answer{Status: Accepted, RunID: q.RunID}
}

// start begins the run of a message: the prompt stands right after the start (R9).
// carried says that the session was running until the fact before.
func (d *draft) start(q facts.Queued, carried bool) {
	run := &narad.RunStarted{ClientExecutorID: d.desk.Created.ClientExecutorID}
	run.RootRunID, run.RunID = q.RunID, q.RunID
	facts.SetHarness(&run.Event, 0)
	if !carried {
		facts.SetStatus(&run.Event, d.restStatus(), facts.Running)
	}
	prompt := &narad.MessageUserRecorded{
		MessageID: q.MessageID, MessageScope: narad.ScopeSession, Content: q.Content,
	}
	prompt.RootRunID, prompt.RunID = q.RunID, q.RunID
	if _, queued := d.desk.Queued(q.RunID); queued {
		facts.SetQueued(&prompt.Event)
	}
	d.add(run, prompt)
}

// startNext begins the run of the first waiting message, which may be one that this
// draft has just added.
func (d *draft) startNext(carried bool) {
	if len(d.desk.Queue) > 0 {
		d.start(d.desk.Queue[0], carried)
		return
	}
	for _, f := range d.facts {
		if q, ok := facts.Read[facts.Queued](f, facts.InputQueued); ok {
			d.start(q, carried)
			return
		}
	}
}

// restStatus is the status of the session while no run is active.
func (d *draft) restStatus() string {
	if len(d.desk.Queue) > 0 {
		return facts.Waiting
	}
	return facts.Idle
}

// StartNext begins the run of the first waiting message when a place is free. It does
// nothing where there is none, or a person must move the queue first.
type StartNext struct{}

func (StartNext) propose(d *draft) Answer {
	if d.state.ActiveRootRunID() != "" || len(d.desk.Queue) == 0 || d.desk.Parked || !d.env.MayStart {
		return Answer{Status: AlreadyApplied}
	}
	d.startNext(false)
	return Answer{Status: Accepted, RunID: d.desk.Queue[0].RunID}
}
