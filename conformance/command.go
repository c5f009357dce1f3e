package conformance

import (
	"fmt"

	"github.com/mahati-host/mahati/narad"
)

// commandChecks are about messages, stops and repeated commands.
var commandChecks = []Check{
	{"command.message", "§2.2, R9", "an accepted message becomes a fact of the run that it names", agent, checkMessage},
	{"command.once", "R21", "a command sent again under its id has one effect and the first answer", agent, checkOnce},
	{"command.other", "R21", "other content under a used id is a conflict and changes nothing", agent, checkOtherContent},
	{"command.unknown", "R23", "a command on what is not there is not_found", nothing, checkCommandUnknown},
	{"command.refused", "§2.2", "a refused command changes nothing, and its id may be used again", agent, checkRefusedCommand},
	{"command.busy", "§3.1, R16", "at most one top-level run is active; a rejected message names it", agent, checkBusy},
	{"command.queue", "§3.1, R16", "queued messages run one after another, in order, once each", agent, checkQueue},
	{"stop.root", "§6.3, R14", "a stopped run ends as cancelled, after its stop is recorded", agent, checkStop},
	{"stop.late", "R14", "a stop never hits another run than the one it names", agent, checkLateStop},
}

func checkMessage(p *probe) {
	id := p.session()
	a := p.say(id, promptSpeak)
	facts := p.idle(id)
	recorded := ofType(facts, "message.user.recorded")
	p.want(len(recorded) == 1, "one message was recorded %d times", len(recorded))
	p.want(text(recorded[0], "content") == promptSpeak, "the message was recorded as %s", recorded[0])
	p.want(a.RunID != "" && text(recorded[0], "runId") == a.RunID, "the message of the run %q was recorded as %s", a.RunID, recorded[0])
	p.want(a.SessionSequence >= 1 && a.SessionSequence <= number(recorded[0], "sessionSequence"), "the answer names the place %d, and the message is at %s", a.SessionSequence, recorded[0].Field("sessionSequence"))
	started := first(facts, "run.started")
	p.want(text(started, "runId") == a.RunID, "the run %q began as %s", a.RunID, started)
	ended := first(facts, "run.finished")
	p.want(text(ended, "runId") == a.RunID, "the run %q did not finish", a.RunID)
}

func checkOnce(p *probe) {
	id := p.session()
	body := `{"sessionId":` + quoted(id) + `,"content":` + quoted(promptSpeak) + `,"commandId":"` + id + `"}`
	first := p.command("message", "accepted", body)
	facts := p.idle(id)
	for range 2 {
		again := p.post("/commands/message", body)
		p.want(again.status == 202 || again.status == 200, "%v, want the first answer", again)
		var read commandAnswer
		again.into(&read)
		p.want(read.RunID == first.RunID && read.SessionSequence == first.SessionSequence, "%v, want run %s at %d as before", again, first.RunID, first.SessionSequence)
	}
	p.want(len(p.idle(id)) == len(facts), "a message sent three times under one id left more than one effect")
}

func checkOtherContent(p *probe) {
	id := p.session()
	body := `{"sessionId":` + quoted(id) + `,"content":%s,"commandId":"` + id + `"}`
	first := p.command("message", "accepted", fmt.Sprintf(body, quoted(promptSpeak)))
	facts := p.idle(id)
	other := p.command("message", "conflict", fmt.Sprintf(body, quoted(promptWork)))
	p.want(other.RunID == first.RunID, "the conflict names the run %q, want the first effect %q", other.RunID, first.RunID)
	p.want(len(p.idle(id)) == len(facts), "a command refused as a conflict left facts")
}

func checkCommandUnknown(p *probe) {
	nobody := quoted(p.id())
	p.command("message", "not_found", `{"sessionId":`+nobody+`,"content":"x"}`)
	p.command("stop-active-root", "not_found", `{"sessionId":`+nobody+`}`)
	p.command("resolve-interrupt", "not_found", `{"interruptId":`+nobody+`,"decision":"approve"}`)
}

func checkRefusedCommand(p *probe) {
	id := p.session()
	before := len(p.history(id, 100))
	for _, body := range []string{`{}`, `{"sessionId":` + quoted(id) + `}`, `{"sessionId":` + quoted(id) + `,"content":7}`, `{"sessionId":` + quoted(id) + `,"content":"x","whenBusy":"never"}`} {
		a := p.post("/commands/message", body)
		p.want(a.status == 400 || a.status == 422, "%v, want a refusal", a)
	}
	refused := `{"sessionId":` + quoted(id) + `,"content":"","commandId":"` + id + `"}`
	a := p.post("/commands/message", refused)
	p.want(a.status == 400 || a.status == 422, "%v, want a refusal", a)
	p.want(len(p.history(id, 100)) == before, "refused commands left facts")
	p.command("message", "accepted", `{"sessionId":`+quoted(id)+`,"content":`+quoted(promptSpeak)+`,"commandId":"`+id+`"}`)
	p.idle(id)
}

func checkBusy(p *probe) {
	id := p.session()
	run := p.say(id, promptWait).RunID
	p.awaitFact(id, "run.started")
	busy := p.command("message", "conflict", `{"sessionId":`+quoted(id)+`,"content":"x","whenBusy":"reject"}`)
	p.want(busy.RunID == run, "the conflict names the run %q, want the active one %q", busy.RunID, run)
	p.say(id, promptSpeak)
	facts := p.history(id, 100)
	p.want(len(ofType(facts, "run.started")) == 1, "a second top-level run began while one was active")
	p.command("stop-active-root", "accepted", `{"sessionId":`+quoted(id)+`,"rootRunId":`+quoted(run)+`}`)
}

func checkQueue(p *probe) {
	id := p.session()
	p.say(id, promptAsk)
	open := p.awaitInterrupt(id, "run.paused")
	var runs []string
	for range 3 {
		runs = append(runs, p.say(id, promptSpeak).RunID)
	}
	p.want(runs[0] != runs[1] && runs[1] != runs[2], "queued messages share a run: %q", runs)
	p.command("resolve-interrupt", "accepted", resolve(open, "approve"))
	p.until("the end of what was queued", func() bool { return len(ofType(p.history(id, 100), "run.finished")) >= 4 })
	started := ofType(p.history(id, 100), "run.started")
	p.want(len(started) == 4, "four messages began %d runs", len(started))
	for i, run := range runs {
		p.want(text(started[i+1], "runId") == run, "the queued run at place %d is %s, want %q", i+1, started[i+1], run)
	}
}

func checkStop(p *probe) {
	id := p.session()
	run := p.say(id, promptWait).RunID
	p.awaitFact(id, "message.text.completed")
	p.command("stop-active-root", "accepted", `{"sessionId":`+quoted(id)+`,"rootRunId":`+quoted(run)+`,"reason":"enough"}`)
	facts := p.idle(id)
	asked, ended := first(facts, "run.stop.requested"), first(facts, "run.cancelled")
	p.want(asked != nil && text(asked, "targetRunId") == run, "the stop of %s was recorded as %s", run, asked)
	p.want(ended != nil && text(ended, "runId") == run, "the stopped run ended as %s", facts[len(facts)-1])
	p.want(number(asked, "sessionSequence") < number(ended, "sessionSequence"), "the run ended before its stop was recorded")
	p.admit(id, facts)
	p.command("stop-active-root", "already_applied", `{"sessionId":`+quoted(id)+`,"rootRunId":`+quoted(run)+`}`)
	p.want(len(p.history(id, 100)) == len(facts), "a second stop left facts")
}

func checkLateStop(p *probe) {
	id := p.session()
	old := p.say(id, promptSpeak).RunID
	p.idle(id)
	now := p.say(id, promptWait).RunID
	p.awaitFact(id, "message.text.completed")
	p.command("stop-active-root", "conflict", `{"sessionId":`+quoted(id)+`,"rootRunId":`+quoted(old)+`}`)
	p.want(first(p.history(id, 100), "run.stop.requested") == nil, "a stop of a run that had ended hit the next one")
	p.want(p.summary(id).ActiveRootRunID == now, "the run %s is not active any more", now)
	p.command("stop-active-root", "accepted", `{"sessionId":`+quoted(id)+`,"rootRunId":`+quoted(now)+`}`)
	var none narad.Raw
	for _, f := range p.idle(id) {
		if f.Field("type").String() == `"run.cancelled"` {
			none = f
		}
	}
	p.want(text(none, "runId") == now, "the stop of %s ended %s", now, none)
}
