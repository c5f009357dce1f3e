package decide

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Release lets a parked queue move again (R16).
type Release struct{}

func (Release) propose(d *draft) Answer {
	switch {
	case !d.desk.Exists():
		return refuse(NotFound, "no such session")
	case !d.desk.Parked:
		return refuse(AlreadyApplied, "the queue is not parked")
	}
	next := d.desk.Queue[0].RunID
	d.add(facts.Session(facts.QueueReleased, facts.Released{}))
	if d.env.MayStart {
		d.startNext(false)
	}
	return Answer{Status: Accepted, RunID: next}
}

// Withdraw takes a waiting message out of the queue.
type Withdraw struct{ RunID string }

func (w Withdraw) propose(d *draft) Answer {
	if !d.desk.Exists() {
		return refuse(NotFound, "no such session")
	}
	q, waiting := d.desk.Queued(w.RunID)
	if !waiting {
		return w.late(d)
	}
	return d.withdraw(q)
}

// late answers for a run that does not wait.
func (w Withdraw) late(d *draft) Answer {
	if _, open := d.run(w.RunID); open {
		return Answer{Status: Conflict, RunID: w.RunID, Detail: "the run has started"}
	}
	switch state, known := d.endedRun(w.RunID); {
	case !known:
		return refuse(NotFound, "no message of that run is waiting")
	case state == Withdrawn:
		return Answer{Status: AlreadyApplied, RunID: w.RunID}
	default:
		return Answer{Status: Conflict, RunID: w.RunID, Detail: "the run " + terminalWord(state)}
	}
}

// endedRun tells the state of a run that is no longer open, or never started.
func (d *draft) endedRun(id string) (session.RunState, bool) {
	if d.env.Run == nil {
		return "", false
	}
	return d.env.Run(id)
}

// Redact replaces what is shown of a message (R24).
type Redact struct {
	MessageID          string
	Reason             string
	DisplayReplacement *string
}

func (r Redact) propose(d *draft) Answer {
	switch {
	case !d.desk.Exists():
		return refuse(NotFound, "no such session")
	case r.Reason == "":
		return refuse(Rejected, "reason is empty")
	case d.env.Answer != nil && d.env.Answer(r.MessageID):
		d.add(facts.Session(facts.IntercomRedacted, facts.Redacted(r)))
		return Answer{Status: Accepted}
	case d.env.Message == nil || !d.env.Message(r.MessageID):
		return refuse(NotFound, "no such message in this session")
	}
	d.add(&narad.MessageRedacted{MessageID: r.MessageID, Reason: r.Reason, DisplayReplacement: r.DisplayReplacement})
	return Answer{Status: Accepted}
}
