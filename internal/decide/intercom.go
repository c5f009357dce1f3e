package decide

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/desk"
)

// Bounds of what a session has to do with others at once (R44).
const (
	maxOutbox = 64
	maxAsks   = 32 // of its own, and of others
)

// Tell says something to another session: it is recorded here and delivered from here. The
// session of the name was found by whoever hands the command over.
type Tell struct {
	To      string
	Content string
	// Ask wants an answer. It ends with the turn in which it was put.
	Ask bool
	// ToSessionID is "" where no session is called so. ToArchived says that it was put away.
	ToSessionID string
	ToArchived  bool
	// RunID is the run that speaks, "" for a client; AgentID is its own name of the record.
	RunID   string
	AgentID string
}

func (t Tell) propose(d *draft) Answer {
	switch {
	case !d.desk.Exists():
		return refuse(NotFound, "no such session")
	case d.desk.Archived:
		return refuseArchived()
	case t.Content == "":
		return refuse(Rejected, "content is empty")
	case !(Message{Content: t.Content}).Fits():
		return refuse(Rejected, "content is too large")
	case t.ToSessionID == "":
		return Answer{Status: NotFound, Detail: "no session has that name", Err: RefusedNobody}
	case t.ToSessionID == d.state.SessionID():
		return Answer{Status: Rejected, Detail: "a session does not speak to itself", Err: RefusedSelf}
	case t.ToArchived:
		return Answer{Status: Conflict, Detail: "the session " + t.To + " is archived", Err: RefusedArchivedOther}
	case t.Ask && len(d.desk.Asking) >= maxAsks:
		return Answer{Status: Conflict, Detail: "too many asks of the session are open", Err: RefusedOutbox}
	}
	s := facts.Sent{To: t.To, ToSessionID: t.ToSessionID, Content: t.Content, Kind: facts.Said, RunID: t.RunID}
	if t.Ask {
		s.Kind, s.AskID = facts.Ask, d.env.NewID()
		s.RunID = orElse(s.RunID, d.state.ActiveRootRunID())
	}
	return d.send(s, t.RunID, t.AgentID)
}

// send records what is to be delivered.
func (d *draft) send(s facts.Sent, runID, agentID string) Answer {
	if len(d.desk.Outbox) >= maxOutbox && s.Kind != facts.Answered { // there are no more answers than asks
		return Answer{Status: Conflict, Detail: "too much of the session waits to be delivered", Err: RefusedOutbox}
	}
	s.MessageID, s.From = d.env.NewID(), orElse(d.desk.Created.IntercomName, d.state.SessionID())
	answer := Answer{Status: Accepted, RequestID: s.AskID, ID: orElse(s.AskID, s.MessageID)}
	if runID == "" {
		d.add(facts.Session(facts.IntercomSent, s))
		return answer
	}
	run, refusal, ok := d.open(runID)
	if !ok {
		return refusal
	}
	fact := facts.Run(run.RootRunID, run.RunID, facts.IntercomSent, s)
	facts.SetAgentID(&fact.Event, agentID)
	d.in(run, fact)
	return answer
}

// AnswerAsk answers an ask that another session put to this one: once, while that waits.
type AnswerAsk struct {
	AskID   string
	Content string
	RunID   string
	AgentID string
}

func (a AnswerAsk) propose(d *draft) Answer {
	ask, open := d.desk.OpenAsk(a.AskID)
	switch {
	case !d.desk.Exists():
		return refuse(NotFound, "no such session")
	case d.desk.Archived:
		return refuseArchived()
	case !open:
		return Answer{Status: Conflict, Detail: "the ask was answered, or nobody waits for it any more", Err: RefusedAskClosed}
	case a.Content == "":
		return refuse(Rejected, "content is empty")
	case !(Message{Content: a.Content}).Fits():
		return refuse(Rejected, "content is too large")
	}
	d.closing = true // who asked waits for it, also while a disk is as good as full
	return d.send(facts.Sent{
		To: ask.From, ToSessionID: ask.FromSessionID, Content: a.Content, Kind: facts.Answered, AskID: a.AskID,
	}, a.RunID, a.AgentID)
}

// Receive brings what another session said. A message or an ask starts a turn, or waits for
// one as every message does; an answer starts none: who asked waits for it. A refusal is for
// now, see [Undeliverable].
type Receive struct{ Told facts.Told }

// Undeliverable reports whether what another session refused can be delivered at no later time:
// the session is gone, or an ask would wait in one that was put away.
func (r Receive) Undeliverable(a Answer) bool {
	return a.Status == NotFound || a.Err == RefusedArchived && r.Told.Kind == facts.Ask
}

func (r Receive) propose(d *draft) Answer {
	switch {
	case !d.desk.Exists():
		return refuse(NotFound, "no such session")
	case d.desk.Archived:
		return refuseArchived()
	case r.Told.Kind == facts.Ask && len(d.desk.Asked) >= maxAsks:
		return Answer{Status: Conflict, Detail: "too many asks wait for the session", Err: RefusedFull}
	}
	if r.Told.Kind == facts.Answered {
		d.closing = true
		d.hear(r.Told)
		return Answer{Status: Accepted}
	}
	q := facts.Queued{
		MessageID: r.Told.MessageID, RunID: d.env.NewID(), Kind: facts.Start, Content: r.Told.Content,
		Intercom: &facts.Speaker{Name: r.Told.From, Kind: r.Told.Kind, AskID: r.Told.AskID},
	}
	if len(d.desk.Queue) >= d.env.QueueLimit {
		return refuseFull()
	}
	r.Told.RunID = q.RunID
	d.add(facts.Session(facts.Intercom, r.Told))
	if !d.busy() && d.env.MayStart {
		d.start(q, true, false)
		return Answer{Status: Accepted, RunID: q.RunID}
	}
	if d.busy() {
		q.Kind = facts.FollowUp
	}
	answer := d.enqueue(q)
	if answer.Status.Accepted() && len(d.desk.Queue) > 0 && !d.executing() && d.env.MayStart {
		d.startNext(false) // a new message moves a parked queue (R16)
	}
	return answer
}

// hear records an answer, in the run that asked while that is open.
func (d *draft) hear(told facts.Told) {
	ask, _ := d.desk.Asks(told.AskID)
	if run, open := d.run(ask.RunID); open {
		d.in(run, facts.Run(run.RootRunID, run.RunID, facts.Intercom, told))
		return
	}
	d.add(facts.Session(facts.Intercom, told))
}

// ReceiveEnd tells that an ask has ended without an answer, in the other session that has to
// do with it.
type ReceiveEnd struct{ AskID, Reason string }

func (r ReceiveEnd) propose(d *draft) Answer {
	_, asked := d.desk.OpenAsk(r.AskID)
	_, asks := d.desk.Asks(r.AskID)
	if !asked && !asks {
		return Answer{Status: AlreadyApplied}
	}
	d.closing = true
	d.add(facts.Session(facts.IntercomClosed, facts.AskClosed{AskID: r.AskID, Reason: r.Reason}))
	return Answer{Status: Accepted}
}

// NextOutgoing asks what is to be delivered first to other sessions than those that take
// nothing now: the answer names the sequence of its fact, 0 for nothing. It changes nothing.
type NextOutgoing struct{ Except []string }

func (n NextOutgoing) propose(d *draft) Answer {
	next, _ := d.desk.Next(n.Except)
	return Answer{Status: AlreadyApplied, SessionSequence: next.Sequence}
}

// Deliver records that something was delivered, or with a code that it never will be.
type Deliver struct{ MessageID, Code string }

func (c Deliver) propose(d *draft) Answer {
	if !d.desk.First(c.MessageID) {
		return Answer{Status: AlreadyApplied}
	}
	d.closing = true
	d.add(facts.Session(facts.IntercomDelivered, facts.Delivered(c)))
	return Answer{Status: Accepted}
}

// CloseAsks ends every ask that the session, which must be at rest, is part of: it is about to
// be deleted.
type CloseAsks struct{ Reason string }

func (c CloseAsks) propose(d *draft) Answer {
	if d.state.HasOpenWork() || len(d.desk.Queue) > 0 {
		return RefuseBusy()
	}
	d.closing = true
	if d.closeAsks(c.Reason); len(d.facts) == 0 {
		return Answer{Status: AlreadyApplied}
	}
	return Answer{Status: Accepted}
}

// closeAsks ends every ask that the session is part of, as one that it asked and as one that
// was asked: the others are told.
func (d *draft) closeAsks(reason string) {
	for _, ask := range d.desk.Asking {
		d.add(facts.Session(facts.IntercomClosed, facts.AskClosed{AskID: ask.AskID, Reason: reason, ToSessionID: ask.ToSessionID}))
	}
	for _, ask := range d.desk.Asked {
		d.refuseAsk(ask, reason)
	}
}

// refuseAsk ends an ask that another session put to this one.
func (d *draft) refuseAsk(ask desk.Asked, reason string) {
	d.add(facts.Session(facts.IntercomClosed, facts.AskClosed{AskID: ask.AskID, Reason: reason, FromSessionID: ask.FromSessionID}))
}

// endAsks ends the asks of a run that ends: nobody waits for their answers any more (R44).
func (d *draft) endAsks(runID string) {
	for _, ask := range d.desk.Asking {
		if ask.RunID == runID {
			d.add(facts.Session(facts.IntercomClosed, facts.AskClosed{AskID: ask.AskID, Reason: "ended", ToSessionID: ask.ToSessionID}))
		}
	}
}

func (Tell) word() string { return "intercom" }

func (t Tell) tell(to *content) {
	to.text("to", t.To)
	to.text("content", t.Content)
	if t.Ask {
		to.must("kind", facts.Ask)
	}
}

func (AnswerAsk) word() string { return "answer-ask" }

func (a AnswerAsk) tell(to *content) {
	to.text("askId", a.AskID)
	to.text("content", a.Content)
}
