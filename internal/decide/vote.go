package decide

import (
	"slices"
	"strconv"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// ballot is what a vote is about: the members of a pack, or an interrupt that needs more
// than one decider, which counts as its own only member (R12).
type ballot struct {
	interrupt session.Interrupt
	members   []member
	pack      bool
}

// ballotOf returns the ballot of an interrupt; false if the first decision decides it.
func ballotOf(i session.Interrupt) (ballot, bool) {
	if members := membersOf(i); len(members) > 0 {
		return ballot{i, members, true}, true
	}
	if n := quorumOf(i.Input); n > 1 {
		return ballot{i, []member{{RequestID: i.InterruptID, Quorum: n}}, false}, true
	}
	return ballot{}, false
}

// quorumOf reads how many deciders an approval needs.
func quorumOf(input narad.Raw) int { return facts.Quorum(input.Field("quorum")) }

func (b ballot) member(id string) (member, bool) {
	i := slices.IndexFunc(b.members, func(m member) bool { return m.RequestID == id })
	if i < 0 {
		return member{}, false
	}
	return b.members[i], true
}

// vote records the decisions of members. An approval counts as a vote until as many
// deciders gave it as the member needs; who refuses decides at once. The last member's
// decision settles the ballot.
func (r Resolve) vote(d *draft, b ballot) Answer {
	if len(r.Members) > 0 && !b.pack {
		return refuse(Rejected, "the interrupt has no members")
	}
	decided := facts.Decided{InterruptID: b.interrupt.InterruptID, Actor: d.env.Actor, Reason: r.Reason}
	pending := ""
	for _, id := range r.named(d, b) {
		m, known := b.member(id)
		if !known {
			return refuse(Rejected, "no such member")
		}
		if decided.Names(id) {
			continue
		}
		one, refusal, ok := r.voteOn(d, b, m)
		if !ok {
			return refusal
		}
		if one.Vote {
			pending = strconv.Itoa(d.approvals(b, id)+1) + " of " + strconv.Itoa(m.Quorum) + " approvals"
		}
		if one.RequestID == "" { // it is decided so, or the vote was given before
			if d.desk.Votes[b.interrupt.InterruptID][id] == "" {
				pending = strconv.Itoa(d.approvals(b, id)) + " of " + strconv.Itoa(m.Quorum) + " approvals"
			}
			continue
		}
		decided.Members = append(decided.Members, one)
	}
	answer := Answer{Status: AlreadyApplied, Decision: r.Decision, RequestID: b.interrupt.InterruptID, Detail: pending}
	if len(decided.Members) > 0 {
		d.voted(b, decided, r)
		answer.Status, answer.RunID = Accepted, b.interrupt.RunID
	}
	if pending != "" {
		answer.Decision = "" // nothing is decided by it
	}
	return answer
}

// named returns the members that the command is for: those that it names, or all that are
// not decided.
func (r Resolve) named(d *draft, b ballot) []string {
	if len(r.Members) > 0 {
		return r.Members
	}
	var open []string
	for _, m := range b.members {
		if d.desk.Votes[b.interrupt.InterruptID][m.RequestID] == "" {
			open = append(open, m.RequestID)
		}
	}
	return open
}

// voteOn judges one vote: nothing new, a vote, or the decision. A principal votes once.
func (r Resolve) voteOn(d *draft, b ballot, m member) (one facts.MemberDecided, refusal Answer, ok bool) {
	is := d.desk.Votes[b.interrupt.InterruptID][m.RequestID]
	was := d.desk.Ballots[b.interrupt.InterruptID][m.RequestID][d.env.Actor.ID]
	conflict := Answer{Status: Conflict, Decision: is, RequestID: b.interrupt.InterruptID}
	switch {
	case is == r.Decision, is == "" && was == r.Decision:
		return one, Answer{}, true
	case is != "":
		conflict.Detail = "the member was decided before"
		return one, conflict, false
	case was != "":
		conflict.Detail = "a decider votes once; the vote was " + was
		return one, conflict, false
	}
	short := approves(r.Decision) && d.approvals(b, m.RequestID)+1 < m.Quorum
	return facts.MemberDecided{RequestID: m.RequestID, Decision: r.Decision, Vote: short}, Answer{}, true
}

func approves(decision string) bool { return decision == actionApprove || decision == "approve_always" }

// approvals counts who has approved a member. Only approvals wait for others.
func (d *draft) approvals(b ballot, requestID string) int {
	return len(d.desk.Ballots[b.interrupt.InterruptID][requestID])
}

// voted records votes, and settles the ballot when every member is decided.
func (d *draft) voted(b ballot, decided facts.Decided, r Resolve) {
	all := map[string]string{}
	for id, decision := range d.desk.Votes[b.interrupt.InterruptID] {
		all[id] = decision
	}
	for _, m := range decided.Members {
		if !m.Vote {
			all[m.RequestID] = m.Decision
		}
	}
	last := len(all) == len(b.members)
	if b.pack || !last { // the decision of an interrupt without members says it all
		d.votes(b.interrupt, decided)
	}
	if !last {
		return
	}
	d.subject()
	if !b.pack {
		d.resolve(b.interrupt, resolution{decision: r.Decision, reason: r.Reason})
		return
	}
	settled := make([]narad.MemberDecision, len(b.members))
	for n, m := range b.members {
		settled[n] = m.decided(all[m.RequestID])
	}
	d.resolve(b.interrupt, resolution{decision: session.Fold(settled), reason: r.Reason, members: settled})
}

// votes records votes where the interrupt stands: in its run, or, where it is a workflow's,
// in the session.
func (d *draft) votes(i session.Interrupt, decided facts.Decided) {
	if i.Scope == narad.ScopeWorkflow {
		d.add(facts.Session(facts.Decision, decided))
		return
	}
	run, _ := d.run(i.RunID)
	d.in(run, facts.Run(run.RootRunID, run.RunID, facts.Decision, decided))
}
