package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mahati-host/mahati/narad"
)

// streamChecks are about following a session.
var streamChecks = []Check{
	{"stream.frames", "§10.1", "one record a frame; facts alone have an id, which is their eventId", agent, checkFrames},
	{"stream.replay", "§4.1, §10.1", "a stream carries the bytes that history has, in its order", agent, checkReplay},
	{"stream.live", "§10.3", "what was and what comes join without a gap or a repetition", agent, checkLive},
	{"stream.once", "§10.3", "two readers see the same", agent, checkTwoReaders},
	{"stream.resume", "§10.1, R27", "Last-Event-ID goes on right behind its fact, and beats the query", agent, checkResume},
	{"stream.unknown", "R3, R27", "a Last-Event-ID that is no fact's is not believed", agent, checkUnknownID},
	{"stream.heartbeat", "§11.2", "a silence is filled by server.heartbeat, without an id", nothing, checkHeartbeat},
	{"stream.silent", "§10.3", "the header comes at once, also where nothing happens", nothing, checkSilentStream},
	{"stream.leave", "§10.1", "leaving a stream ends nothing", agent, checkLeaving},
}

func checkFrames(p *probe) {
	id, facts := p.spoken(promptWork)
	f := p.stream(id, "afterSessionSequence=0", nil)
	for _, read := range f.facts(int64(len(facts))) {
		record, err := narad.DecodeStrict(read.data)
		if err != nil {
			p.failf("a frame is no record: %v: %s", err, read.data)
		}
		p.want(record.Type().Class() == narad.ClassAuthority, "a stream without hydrate and watch carries a %s", record.Type())
		p.want(read.id == text(read.data, "eventId"), "a frame has the id %q and the fact %s", read.id, read.data)
	}
}

func checkReplay(p *probe) {
	id, facts := p.spoken(promptWork)
	half := int64(len(facts) / 2)
	for _, after := range []int64{0, half, int64(len(facts)) - 1} {
		read := p.stream(id, fmt.Sprintf("afterSessionSequence=%d", after), nil).facts(int64(len(facts)))
		p.same(fmt.Sprintf("the stream after %d", after), read, facts[after:])
	}
	read := p.stream(id, "", nil).facts(int64(len(facts)))
	p.same("the stream without a cursor", read, facts)
}

// same demands the same bytes in the same order.
func (p *probe) same(what string, got []frame, want []narad.Raw) {
	for i := range min(len(got), len(want)) {
		p.want(bytes.Equal(got[i].data, want[i]), "%s differs from history at %d: %s, want %s", what, i+1, got[i].data, want[i])
	}
	p.want(len(got) == len(want), "%s has %d facts, want %d", what, len(got), len(want))
}

func checkLive(p *probe) {
	id, before := p.spoken(promptSpeak)
	f := p.stream(id, "afterSessionSequence=0", nil)
	read := []frame{f.fact()} // the stream is open when the next run begins
	run := p.say(id, promptWork).RunID
	for {
		next := f.fact()
		read = append(read, next)
		if text(next.data, "runId") == run && next.kind == "run.finished" {
			break
		}
	}
	facts := p.idle(id)
	p.want(len(facts) > len(before), "the second run left no facts")
	p.same("the live stream", read, facts[:len(read)])
}

func checkTwoReaders(p *probe) {
	id := p.session()
	one, other := p.stream(id, "afterSessionSequence=0", nil), p.stream(id, "afterSessionSequence=0", nil)
	p.say(id, promptWork)
	facts := p.idle(id)
	p.same("the first reader's stream", one.facts(int64(len(facts))), facts)
	p.same("the second reader's stream", other.facts(int64(len(facts))), facts)
}

func checkResume(p *probe) {
	id, facts := p.spoken(promptWork)
	for _, at := range []int{1, len(facts) / 2, len(facts) - 1} {
		header := map[string]string{"Last-Event-ID": text(facts[at-1], "eventId")}
		for _, query := range []string{"", "afterSessionSequence=0", fmt.Sprintf("afterSessionSequence=%d", len(facts))} {
			read := p.stream(id, query, header).facts(int64(len(facts)))
			p.same(fmt.Sprintf("the stream resumed after %d with %q", at, query), read, facts[at:])
		}
	}
}

func checkUnknownID(p *probe) {
	id, facts := p.spoken(promptSpeak)
	for _, name := range []string{"nonsense", text(facts[0], "eventId") + "x", "2.AAAAAAAA"} {
		header := map[string]string{"Last-Event-ID": name}
		p.request(http.MethodGet, "/sessions/"+id+"/stream", header, nil).problem(http.StatusConflict, "cursor_unknown")
		read := p.stream(id, "afterSessionSequence=2", header).facts(int64(len(facts)))
		p.same("the stream by the query's cursor", read, facts[2:])
	}
}

func checkHeartbeat(p *probe) {
	id := p.session()
	interval := time.Duration(p.capabilities().Limits.HeartbeatIntervalMs) * time.Millisecond
	f := p.stream(id, fmt.Sprintf("afterSessionSequence=%d", p.summary(id).CurrentSessionSequence), nil)
	for range 2 {
		read, err := f.read(2*interval + 5*time.Second)
		if errors.Is(err, errSilent) {
			p.failf("no heartbeat comes within twice the interval of %v", interval)
		}
		if err != nil {
			p.failf("the stream ends: %v", err)
		}
		record, err := narad.DecodeStrict(read.data)
		if err != nil {
			p.failf("a heartbeat is no record: %v: %s", err, read.data)
		}
		p.want(record.Type() == narad.TypeServerHeartbeat, "an idle session's stream carries a %s", record.Type())
		p.want(!read.hasID, "a heartbeat has the id %q", read.id)
	}
}

func checkSilentStream(p *probe) {
	id := p.session()
	begun := time.Now()
	p.stream(id, fmt.Sprintf("afterSessionSequence=%d", p.summary(id).CurrentSessionSequence), nil)
	interval := time.Duration(p.capabilities().Limits.HeartbeatIntervalMs) * time.Millisecond
	// A header that waits for the first frame comes with the first heartbeat.
	p.want(time.Since(begun) < max(interval*9/10, 500*time.Millisecond), "the header of a silent stream came after %v", time.Since(begun))
}

func checkLeaving(p *probe) {
	id := p.session()
	f := p.stream(id, "afterSessionSequence=0", nil)
	p.say(id, promptAsk)
	f.fact()
	f.close()
	open := p.awaitInterrupt(id, "run.paused")
	p.command("resolve-interrupt", "accepted", resolve(open, "approve"))
	p.want(first(p.idle(id), "run.finished") != nil, "the run did not finish after its reader left")
}
