package conformance

import (
	"bytes"
	"fmt"
	"net/http"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// historyChecks are about the facts themselves and reading them by pages.
var historyChecks = []Check{
	{"facts.strict", "§5, §6, §13", "every fact of a session is sound and may follow those before it", agent, checkStrict},
	{"facts.order", "§4.2", "each ordering is contiguous from 1", agent, checkOrders},
	{"facts.identity", "§4.1", "no event id is used twice, and a fact keeps its bytes", agent, checkIdentity},
	{"facts.text", "§5", "what was said comes back letter for letter", agent, checkText},
	{"history.paging", "§10.2, R26", "pages join without a seam; the cursor is the last delivered, and null at the end", agent, checkPaging},
	{"history.limit", "R26", "limit is brought into what the host allows", agent, checkLimit},
	{"history.cursor", "R26", "a cursor above the head is cursor_ahead, and what is no number is refused", agent, checkCursor},
	{"history.run", "§10.2, R26", "a run tree is read alone, by its own sequence", agent, checkRunHistory},
	{"history.conflict", "§10.2", "cursors that stand at different facts are a conflict", agent, checkCursorConflict},
	{"history.headers", "R25", "history tells version, profiles, head and the active run in its header", agent, checkHistoryHeaders},
}

// checkStrict holds a session with tool calls, a nested run, an interrupt and a stop to
// everything that the specification demands of a host.
func checkStrict(p *probe) {
	id := p.session()
	p.say(id, promptWork)
	p.idle(id)
	p.say(id, promptAsk)
	open := p.awaitInterrupt(id, "interrupt.requested")
	p.command("resolve-interrupt", "accepted", resolve(open, "approve"))
	p.idle(id)
	stopped := p.say(id, promptWait).RunID
	p.awaitFact(id, "run.started")
	p.command("stop-active-root", "accepted", `{"sessionId":`+quoted(id)+`,"rootRunId":`+quoted(stopped)+`}`)
	p.admit(id, p.idle(id))
}

// admit demands that a strict reader takes every fact.
func (p *probe) admit(id string, facts []narad.Raw) *session.State {
	p.want(len(facts) > 0, "the session has no facts")
	state := session.New(session.Options{SessionID: id, Remember: session.RememberAll})
	for i, fact := range facts {
		record, err := narad.DecodeStrict(fact)
		if err != nil {
			p.failf("fact %d: %v: %s", i+1, err, fact)
		}
		if got := state.Admit(record); got.Kind != session.Applied {
			p.failf("fact %d is %v %s (%s): %s", i+1, got.Kind, got.Code, got.Detail, fact)
		}
	}
	return state
}

func checkOrders(p *probe) {
	_, facts := p.spoken(promptWork)
	trees := map[string]int64{}
	for i, fact := range facts {
		p.want(number(fact, "sessionSequence") == int64(i+1), "the fact at place %d has another sessionSequence: %s", i+1, fact)
		root := text(fact, "rootRunId")
		if root == "" {
			continue
		}
		trees[root]++
		p.want(number(fact, "sequence") == trees[root], "the fact at place %d of its run tree has another sequence: %s", trees[root], fact)
	}
	p.want(len(trees) == 1, "one message led to %d run trees", len(trees))
}

func checkIdentity(p *probe) {
	id, facts := p.spoken(promptWork)
	seen := map[string]bool{}
	for _, fact := range facts {
		name := text(fact, "eventId")
		p.want(name != "" && !seen[name], "the event id %q is there twice, or is none", name)
		seen[name] = true
	}
	again := p.history(id, 3)
	p.want(len(again) == len(facts), "read again, the session has %d facts, and had %d", len(again), len(facts))
	for i := range facts {
		p.want(bytes.Equal(again[i], facts[i]), "read again, fact %d has other bytes: %s and %s", i+1, facts[i], again[i])
	}
}

func checkText(p *probe) {
	const said = promptSpeak + " \u2028 \"quotes\" \\back\\ \U0001F30A e\u0301 \u00e9 \t\n end"
	_, facts := p.spoken(said)
	recorded := first(facts, "message.user.recorded")
	p.want(text(recorded, "content") == said, "the message was recorded as %s", recorded)
	var heard string
	for _, delta := range ofType(facts, "message.text.delta") {
		heard += text(delta, "delta")
	}
	p.want(heard == spokenText, "the agent's text came as %q, want %q", heard, spokenText)
}

func checkPaging(p *probe) {
	id, facts := p.spoken(promptWork)
	head := int64(len(facts))
	for _, size := range []int64{1, 2, 7, head - 1, head, head + 1} {
		var joined []narad.Raw
		for after := int64(0); ; {
			a := p.get(fmt.Sprintf("/sessions/%s/events?afterSessionSequence=%d&limit=%d", id, after, size)).is(http.StatusOK)
			var read page
			a.into(&read)
			p.want(a.body.Field("nextSessionSequence") != nil, "the page after %d has no nextSessionSequence, not even null", after)
			p.want(int64(len(read.Events)) <= size && len(read.Events) > 0, "the page of %d after %d has %d facts", size, after, len(read.Events))
			joined = append(joined, read.Events...)
			last := number(read.Events[len(read.Events)-1], "sessionSequence")
			if read.NextSessionSequence == nil {
				p.want(last == head, "the page after %d is the last and ends at %d, before the head %d", after, last, head)
				break
			}
			p.want(*read.NextSessionSequence == last, "the page after %d ends at %d and leads to %d", after, last, *read.NextSessionSequence)
			p.want(last < head, "the page after %d ends at the head and promises more", after)
			after = last
		}
		p.want(len(joined) == len(facts), "pages of %d have %d facts, want %d", size, len(joined), len(facts))
		for i := range joined {
			p.want(bytes.Equal(joined[i], facts[i]), "pages of %d differ at fact %d", size, i+1)
		}
	}
	at := p.page(id, fmt.Sprintf("afterSessionSequence=%d", head))
	p.want(len(at.Events) == 0 && at.NextSessionSequence == nil, "the page at the head is not empty")
}

func checkLimit(p *probe) {
	id, _ := p.spoken(promptSpeak)
	p.want(len(p.page(id, "limit=0").Events) == 1, "limit=0 is brought to 1")
	p.want(len(p.page(id, "limit=1").Events) == 1, "limit=1 gives one fact")
	p.want(len(p.page(id, "limit=1000000").Events) > 1, "a large limit is brought down, not refused")
	p.get("/sessions/" + id + "/events?limit=x").problem(http.StatusBadRequest)
}

func checkCursor(p *probe) {
	id, facts := p.spoken(promptSpeak)
	ahead := fmt.Sprintf("afterSessionSequence=%d", len(facts)+1)
	p.get("/sessions/"+id+"/events?"+ahead).problem(http.StatusConflict, "cursor_ahead")
	p.get("/sessions/"+id+"/stream?"+ahead).problem(http.StatusConflict, "cursor_ahead")
	for _, cursor := range []string{"-1", "x", "1.5", "1e9", "99999999999999999999", "1&afterSessionSequence=2"} {
		a := p.get("/sessions/" + id + "/events?afterSessionSequence=" + cursor)
		p.want(a.status == http.StatusBadRequest || a.status == http.StatusConflict, "%v, want a refusal", a)
	}
}

func checkRunHistory(p *probe) {
	id := p.session()
	p.say(id, promptSpeak)
	p.idle(id)
	root := p.say(id, promptWork).RunID
	var want []narad.Raw
	for _, fact := range p.idle(id) {
		if text(fact, "rootRunId") == root {
			want = append(want, fact)
		}
	}
	var got []narad.Raw
	for after := int64(0); ; {
		read := p.page(id, fmt.Sprintf("rootRunId=%s&afterSequence=%d&limit=3", root, after))
		got = append(got, read.Events...)
		if read.NextSequence == nil {
			break
		}
		p.want(*read.NextSequence > after, "the page after %d leads to %d", after, *read.NextSequence)
		after = *read.NextSequence
	}
	p.want(len(want) > 3 && len(got) == len(want), "the run tree has %d facts by itself, and %d in the session", len(got), len(want))
	for i := range got {
		p.want(bytes.Equal(got[i], want[i]), "the run tree differs at %d", i+1)
	}
}

func checkCursorConflict(p *probe) {
	id, facts := p.spoken(promptWork)
	root := text(first(facts, "run.started"), "rootRunId")
	place := number(first(facts, "tool.call.started"), "sequence")
	agree := number(first(facts, "tool.call.started"), "sessionSequence")
	query := "/sessions/" + id + "/events?rootRunId=" + root + "&afterSequence=%d&afterSessionSequence=%d"
	p.get(fmt.Sprintf(query, place, agree)).is(http.StatusOK)
	p.get(fmt.Sprintf(query, place, agree+2)).problem(http.StatusConflict, "cursor_conflict")
	p.get(fmt.Sprintf(query, place, agree-1)).problem(http.StatusConflict, "cursor_conflict")
}

func checkHistoryHeaders(p *probe) {
	id := p.session()
	run := p.say(id, promptWait).RunID
	p.awaitFact(id, "message.text.completed") // from then on nothing happens
	a := p.get("/sessions/" + id + "/events").is(http.StatusOK)
	p.wantHeaders(a.asked, a.header, p.summary(id), run)
	f := p.stream(id, "afterSessionSequence=0", nil)
	p.wantHeaders(f.asked, f.header, p.summary(id), run)
}

func (p *probe) wantHeaders(asked string, got http.Header, s summary, run string) {
	for name, want := range map[string]string{
		"Narad-Version": narad.Version, "Narad-Session-Sequence": fmt.Sprint(s.CurrentSessionSequence), "Narad-Active-Root": run,
	} {
		p.want(got.Get(name) == want, "%s: %s is %q, want %q", asked, name, got.Get(name), want)
	}
	p.want(got.Get("Narad-Profiles") != "" || len(s.RequiredProfiles) == 0, "%s: Narad-Profiles is not there", asked)
}
