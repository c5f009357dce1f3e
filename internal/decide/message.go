package decide

import (
	"slices"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/desk"
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

// MaxContent bounds what a message says, in bytes of the JSON string that it is in a fact, so
// that a message that could be queued can also be recorded.
const MaxContent = 480_000

// Message is what a person says: it starts a run, waits for one, or steers one.
type Message struct {
	// MessageID is the client's choice, or empty.
	MessageID string
	Content   string
	WhenBusy  WhenBusy
	// AttachmentIDs name attachments of the session that are ready.
	AttachmentIDs []string
}

// Fits reports whether a fact can hold the message's content: how much that is depends on
// what in it must be escaped.
func (m Message) Fits() bool { return len(narad.Quote(m.Content)) <= MaxContent }

// maxAttachments bounds those of one message.
const maxAttachments = 32

func (m Message) propose(d *draft) Answer {
	if answer, ok := m.check(d); !ok {
		return answer
	}
	if m.MessageID == "" {
		m.MessageID = d.env.NewID()
	}
	if d.busy() {
		return m.whileBusy(d)
	}
	q := facts.Queued{MessageID: m.MessageID, RunID: d.env.NewID(), Kind: facts.Start, Content: m.Content, AttachmentIDs: m.AttachmentIDs}
	if !d.env.MayStart {
		return d.enqueue(q)
	}
	d.start(q, false, false)
	return Answer{Status: Accepted, RunID: q.RunID, MessageID: q.MessageID}
}

// check refuses what no state of a session would take.
func (m Message) check(d *draft) (Answer, bool) {
	switch {
	case !d.desk.Exists():
		return refuse(NotFound, "no such session"), false
	case d.desk.Archived:
		return refuseArchived(), false
	case m.Content == "":
		return refuse(Rejected, "content is empty"), false
	case !m.Fits():
		return refuse(Rejected, "content is too large"), false
	case m.MessageID != "" && d.env.Message != nil && d.env.Message(m.MessageID):
		return refuse(Conflict, "the id is that of another message"), false
	}
	return m.checkAttachments(d)
}

// checkAttachments demands attachments that an agent can read.
func (m Message) checkAttachments(d *draft) (Answer, bool) {
	if len(m.AttachmentIDs) > maxAttachments {
		return refuse(Rejected, "too many attachments"), false
	}
	for i, id := range m.AttachmentIDs {
		if slices.Contains(m.AttachmentIDs[:i], id) {
			return refuse(Rejected, "an attachment stands twice"), false
		}
		if _, ready := d.attachment(id); !ready {
			return refuse(Rejected, "no such attachment"), false
		}
	}
	return Answer{}, true
}

func (m Message) whileBusy(d *draft) Answer {
	active := d.state.ActiveRootRunID()
	switch {
	case m.WhenBusy == WhenBusyReject && d.state.ActiveWorkflowID() != "":
		return Answer{Status: Conflict, Detail: "a workflow is active", RunID: active, WorkflowID: d.state.ActiveWorkflowID()}
	case m.WhenBusy == WhenBusyReject && active == "":
		return refuse(Conflict, "other messages are waiting")
	case m.WhenBusy == WhenBusyReject:
		return Answer{Status: Conflict, Detail: "a run is active", RunID: active}
	case m.WhenBusy == WhenBusySteer:
		return m.steer(d, active)
	}
	answer := d.enqueue(facts.Queued{
		MessageID: m.MessageID, RunID: d.env.NewID(), Kind: facts.FollowUp, Content: m.Content,
		AttachmentIDs: m.AttachmentIDs,
	})
	if answer.Status.Accepted() && !d.executing() && d.env.MayStart {
		d.startNext(false) // a new message moves a parked queue (R16)
	}
	return answer
}

func (m Message) steer(d *draft, active string) Answer {
	run, ok := d.run(active)
	switch {
	case !ok || run.StopRequested:
		return Answer{Status: Conflict, Detail: "no run can be steered", RunID: active}
	case !d.env.CanSteer:
		return Answer{Status: Unsupported, Detail: "this agent takes no message during a run", RunID: active, Err: RefusedUnsteerable}
	}
	d.in(run, &narad.MessageUserRecorded{
		MessageID: m.MessageID, MessageScope: narad.ScopeSession, Content: m.Content,
		AttachmentIDs: m.AttachmentIDs,
	})
	return Answer{Status: Accepted, RunID: active, ID: m.MessageID, MessageID: m.MessageID}
}

// enqueue lets a message wait.
func (d *draft) enqueue(q facts.Queued) Answer {
	if len(d.desk.Queue) >= d.env.QueueLimit {
		return refuseFull()
	}
	fact := facts.Session(facts.InputQueued, q)
	d.markQueued(fact)
	if !d.busy() {
		facts.SetStatus(&fact.Event, facts.Idle, facts.Waiting)
	}
	d.add(fact)
	return Answer{Status: Accepted, RunID: q.RunID, MessageID: q.MessageID, Queued: true}
}

// withdraw takes a message out of the queue. An ask that came with it ends.
func (d *draft) withdraw(q desk.Waiting) Answer {
	fact := facts.Session(facts.InputWithdrawn, facts.Withdrawn{MessageID: q.MessageID, RunID: q.RunID})
	d.markQueued(fact)
	if !d.executing() && len(d.desk.Queue) == 1 {
		facts.SetStatus(&fact.Event, facts.Waiting, facts.Idle)
	}
	d.add(fact)
	if q.Intercom != nil {
		if ask, open := d.desk.OpenAsk(q.Intercom.AskID); open {
			d.refuseAsk(ask, "withdrawn")
		}
	}
	return Answer{Status: Accepted, RunID: q.RunID}
}

// start begins the run of a message: the prompt stands right after the start (R9).
// waited says that the message stood in the queue, carried that the session was running
// until the fact before.
func (d *draft) start(q facts.Queued, waited, carried bool) {
	d.settleModel()
	run := &narad.RunStarted{ClientExecutorID: orElse(d.desk.Created.ClientExecutorID, d.env.Executor)}
	run.RootRunID, run.RunID = q.RunID, q.RunID
	d.markStart(run)
	if !carried {
		facts.SetStatus(&run.Event, d.restStatus(), facts.Running)
	}
	prompt := &narad.MessageUserRecorded{
		MessageID: q.MessageID, MessageScope: narad.ScopeSession, Content: q.Content,
		AttachmentIDs: q.AttachmentIDs,
	}
	prompt.RootRunID, prompt.RunID = q.RunID, q.RunID
	facts.SetSpeaker(&prompt.Event, q.Intercom)
	if waited {
		facts.SetQueued(&prompt.Event)
	}
	d.add(run, prompt)
}

// startNext begins the run of the first waiting message. A message is added to an empty
// queue only where nothing can start, so the first is always one of the desk's.
func (d *draft) startNext(carried bool) {
	if len(d.desk.Queue) == 0 {
		return
	}
	first, moving := d.desk.Queue[0], d.cause
	d.cause = cause{first.CommandID, first.InputID}
	d.start(first.Queued, true, carried)
	d.cause = moving
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
	if d.executing() || len(d.desk.Queue) == 0 || d.desk.Parked || !d.env.MayStart {
		return Answer{Status: AlreadyApplied}
	}
	d.startNext(false)
	return Answer{Status: Accepted, RunID: d.desk.Queue[0].RunID}
}
