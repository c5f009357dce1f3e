package decide

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
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
		if _, active := d.run(w.RunID); active {
			return Answer{Status: Conflict, RunID: w.RunID, Detail: "the run has started"}
		}
		return refuse(NotFound, "no message of that run is waiting")
	}
	d.add(facts.Session(facts.InputWithdrawn, facts.Withdrawn{MessageID: q.MessageID, RunID: q.RunID}))
	return Answer{Status: Accepted, RunID: w.RunID}
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
	case d.env.Message == nil || !d.env.Message(r.MessageID):
		return refuse(NotFound, "no such message in this session")
	}
	d.add(&narad.MessageRedacted{MessageID: r.MessageID, Reason: r.Reason, DisplayReplacement: r.DisplayReplacement})
	return Answer{Status: Accepted}
}
