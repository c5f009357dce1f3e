package conformance

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/mahati-host/mahati/narad"
)

// interruptChecks are about asking and deciding.
var interruptChecks = []Check{
	{"interrupt.pause", "§7.6", "a request is followed at once by its pause, with the same wait and interrupt", agent, checkPause},
	{"interrupt.inbox", "DESIGN §6", "what waits for a decision is in the inbox, and only as long as it waits", agent, checkInbox},
	{"interrupt.decide", "§2.2, §7.7", "an accepted decision is a fact, and then the run goes on", agent, checkDecide},
	{"interrupt.once", "R22", "an interrupt is decided once: the same again is already_applied, another is a conflict", agent, checkDecideOnce},
	{"interrupt.race", "R22", "of many who decide at once exactly one is accepted", agent, checkRace},
	{"interrupt.offered", "§2.2, §7.7", "a decision that was not offered is refused, and the interrupt stays open", agent, checkOffered},
	{"interrupt.revision", "R22", "expectedRevision older than the request, or above the head, is a conflict", agent, checkRevision},
	{"interrupt.expiry", "§7.7, R22", "an interrupt whose time is over resolves as expired, and can be decided no more", agent, checkExpiry},
	{"interrupt.stop", "§6.2, R14", "a stop closes an open interrupt before it ends the run", agent, checkStopAsked},
}

// asked is an interrupt that waits.
type asked struct {
	id, wait string
	at       int64 // its session sequence
}

// ask makes a session with an open interrupt.
func (p *probe) ask() (session string, open asked) {
	session = p.session()
	p.say(session, promptAsk)
	return session, p.awaitInterrupt(session, "run.paused")
}

// awaitInterrupt waits for a request, and for another fact that comes with it.
func (p *probe) awaitInterrupt(session, also string) asked {
	p.awaitFact(session, also)
	fact := p.awaitFact(session, "interrupt.requested")
	return asked{text(fact, "interruptId"), text(fact, "waitId"), number(fact, "sessionSequence")}
}

func resolve(open asked, decision string) string {
	return `{"interruptId":` + quoted(open.id) + `,"decision":` + quoted(decision) + `}`
}

func checkPause(p *probe) {
	session, open := p.ask()
	facts := p.history(session, 100)
	request, pause := facts[open.at-1], facts[open.at]
	p.want(text(pause, "type") == "run.paused", "the request is followed by %s, want its pause", pause)
	for _, name := range []string{"waitId", "interruptId", "runId"} {
		p.want(text(pause, name) == text(request, name), "the pause has another %s than the request: %s", name, pause)
	}
	p.want(number(pause, "sequence") == number(request, "sequence")+1, "the pause is not the next of the run tree: %s", pause)
	actions, _ := request.Field("actions").Elements()
	p.want(slices.ContainsFunc(actions, func(a narad.Raw) bool { return string(a) == `"approve"` }), "the request does not offer what the agent asks for: %s", request)
	p.command("resolve-interrupt", "accepted", resolve(open, "deny"))
	p.admit(session, p.idle(session))
}

func checkInbox(p *probe) {
	session, open := p.ask()
	p.want(p.inInbox(open.id, session), "the open interrupt %s is not in the inbox", open.id)
	p.command("resolve-interrupt", "accepted", resolve(open, "approve"))
	p.want(!p.inInbox(open.id, session), "the interrupt %s was decided and is still in the inbox", open.id)
	p.get("/interrupts?state=closed").problem(400)
}

// inInbox reports whether an interrupt is in the inbox of all sessions, as that session's.
func (p *probe) inInbox(id, session string) bool {
	for path := "/interrupts?state=open&limit=2"; ; {
		var read struct {
			Items []struct {
				InterruptID string   `json:"interruptId"`
				SessionID   string   `json:"sessionId"`
				Actions     []string `json:"actions"`
			} `json:"items"`
			NextCursor string `json:"nextCursor"`
		}
		p.ok(path, &read)
		for _, item := range read.Items {
			if item.InterruptID == id {
				p.want(item.SessionID == session, "the inbox gives the interrupt to %q, want %q", item.SessionID, session)
				p.want(slices.Equal(item.Actions, []string{"approve", "deny"}), "the inbox offers %q", item.Actions)
				return true
			}
		}
		if read.NextCursor == "" {
			return false
		}
		path = "/interrupts?state=open&limit=2&cursor=" + read.NextCursor
	}
}

func checkDecide(p *probe) {
	session, open := p.ask()
	a := p.command("resolve-interrupt", "accepted", `{"interruptId":`+quoted(open.id)+`,"decision":"approve","reason":"read it"}`)
	p.want(a.Decision == "approve", "the answer says the decision %q, want approve", a.Decision)
	facts := p.idle(session)
	resolved, resumed := first(facts, "interrupt.resolved"), first(facts, "run.resumed")
	p.want(text(resolved, "interruptId") == open.id && text(resolved, "waitId") == open.wait, "the decision was recorded as %s", resolved)
	p.want(text(resolved, "decision") == "approve" && text(resolved, "reason") == "read it", "the decision was recorded as %s", resolved)
	p.want(number(resolved, "sessionSequence") == a.SessionSequence, "the answer names the place %d, and the decision is %s", a.SessionSequence, resolved)
	p.want(text(resumed, "waitId") == open.wait && number(resumed, "sessionSequence") > a.SessionSequence, "the run was resumed by %s", resumed)
	p.want(first(facts, "run.finished") != nil, "the run did not go on after the decision")
}

func checkDecideOnce(p *probe) {
	session, open := p.ask()
	won := p.command("resolve-interrupt", "accepted", resolve(open, "deny"))
	facts := p.idle(session)
	same := p.command("resolve-interrupt", "already_applied", resolve(open, "deny"))
	other := p.command("resolve-interrupt", "conflict", resolve(open, "approve"))
	for _, a := range []commandAnswer{same, other} {
		p.want(a.Decision == "deny" && a.SessionSequence == won.SessionSequence, "a late decider is told %q at %d, want deny at %d", a.Decision, a.SessionSequence, won.SessionSequence)
	}
	p.want(len(p.history(session, 100)) == len(facts), "late decisions left facts")
	p.want(len(ofType(facts, "interrupt.resolved")) == 1, "one interrupt was resolved %d times", len(ofType(facts, "interrupt.resolved")))
}

func checkRace(p *probe) {
	session, open := p.ask()
	const deciders = 8
	words := make([]string, deciders)
	var all sync.WaitGroup
	for i := range deciders {
		all.Go(func() {
			defer func() { _ = recover() }() // a decider that got no answer has no word
			a := p.post("/commands/resolve-interrupt", resolve(open, []string{"approve", "deny"}[i%2]))
			var read commandAnswer
			a.into(&read)
			words[i] = read.Status
		})
	}
	all.Wait()
	count := map[string]int{}
	for _, w := range words {
		count[w]++
	}
	p.want(count["accepted"] == 1 && count["already_applied"] == deciders/2-1 && count["conflict"] == deciders/2,
		"of %d deciders, half for each side, the answers were %v: want one accepted, its side already_applied, the other conflict", deciders, count)
	p.want(len(ofType(p.idle(session), "interrupt.resolved")) == 1, "the race left more than one decision")
}

func checkOffered(p *probe) {
	session, open := p.ask()
	before := len(p.history(session, 100))
	for _, decision := range []string{"maybe", "APPROVE", "approve_always"} {
		p.command("resolve-interrupt", "rejected", resolve(open, decision))
	}
	a := p.post("/commands/resolve-interrupt", resolve(open, "expired"))
	p.want(a.status >= 400 && a.status < 500, "%v: only a host lets an interrupt expire", a)
	p.want(len(p.history(session, 100)) == before && p.inInbox(open.id, session), "refused decisions changed the session")
	p.command("resolve-interrupt", "accepted", resolve(open, "approve"))
}

func checkRevision(p *probe) {
	session, open := p.ask()
	head := p.summary(session).CurrentSessionSequence
	for _, revision := range []int64{open.at - 1, head + 1} {
		p.command("resolve-interrupt", "conflict", strings.TrimSuffix(resolve(open, "approve"), "}")+fmt.Sprintf(`,"expectedRevision":%d}`, revision))
	}
	p.want(p.summary(session).CurrentSessionSequence == head, "a conflict left facts")
	p.command("resolve-interrupt", "accepted", strings.TrimSuffix(resolve(open, "approve"), "}")+fmt.Sprintf(`,"expectedRevision":%d}`, open.at))
}

func checkExpiry(p *probe) {
	session := p.session()
	p.say(session, promptExpire)
	open := p.awaitInterrupt(session, "run.paused")
	facts := p.idle(session)
	resolved := first(facts, "interrupt.resolved")
	p.want(text(resolved, "decision") == "expired", "an interrupt whose time was over was resolved as %s", resolved)
	p.admit(session, facts)
	p.command("resolve-interrupt", "expired", resolve(open, "approve"))
	p.want(len(p.history(session, 100)) == len(facts), "a decision that came too late left facts")
}

func checkStopAsked(p *probe) {
	session, open := p.ask()
	p.command("stop-active-root", "accepted", `{"sessionId":`+quoted(session)+`}`)
	facts := p.idle(session)
	p.admit(session, facts)
	resolved := first(facts, "interrupt.resolved")
	p.want(text(resolved, "interruptId") == open.id && text(resolved, "decision") == "expired", "the open interrupt of a stopped run was closed by %s", resolved)
	p.want(first(facts, "run.cancelled") != nil, "the stopped run ended as %s", facts[len(facts)-1])
	p.want(!p.inInbox(open.id, session), "the interrupt of a stopped run is still in the inbox")
}
