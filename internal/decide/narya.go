package decide

import (
	"slices"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// What the events of Narya tell and Narad's own fields do not stands in the fact that
// causes them (R1).

// markResolved records on the end of an interrupt what it asked for, and which members no
// decision before it has decided.
func (d *draft) markResolved(f *narad.InterruptResolved) {
	asked := d.asked(f.InterruptID)
	facts.SetAsks(&f.Event, facts.AsksFor(asked.Kind, asked.Actions))
	if len(f.Members) == 0 {
		return
	}
	var open []string
	for _, m := range f.Members {
		if !d.memberDecided(f.InterruptID, m.RequestID) {
			open = append(open, m.RequestID)
		}
	}
	facts.SetSettles(&f.Event, open)
}

// memberDecided reports whether a member of a pack was decided by a fact of its own, one of
// this draft included.
func (d *draft) memberDecided(interruptID, requestID string) bool {
	if d.desk.Votes[interruptID][requestID] != "" {
		return true
	}
	return slices.ContainsFunc(d.facts, func(f narad.Authority) bool {
		decided, ok := facts.Read[facts.Decided](f, facts.Decision)
		return ok && decided.InterruptID == interruptID && slices.ContainsFunc(decided.Members, func(m facts.MemberDecided) bool {
			return m.RequestID == requestID && !m.Vote
		})
	})
}

// markTook adds to what the end of a run tells of what it took how long that was: by a steady
// clock, or, for a run that began before the host did, by the times of its facts.
func (d *draft) markTook(run session.Run, e *narad.Event) {
	ms, known := int64(0), false
	if d.env.Elapsed != nil {
		ms, known = d.env.Elapsed(run.RunID)
	}
	if began, err := time.Parse(time.RFC3339Nano, run.StartedAt); !known && err == nil && !d.env.Now.Before(began) {
		ms, known = d.env.Now.Sub(began).Milliseconds(), true
	}
	if known {
		took := facts.TurnOf(e)
		took.ElapsedMs = &ms
		facts.SetTurn(e, took)
	}
}
