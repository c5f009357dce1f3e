package conformance

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/mahati-host/mahati/narad"
)

// executorChecks are about running tools on a client.
var executorChecks = []Check{
	{"executor.attach", "§11.1", "attach gives a lease with its interval and end, and no authority fields", executor, checkExecutorAttach},
	{"executor.heartbeat", "§11.2, R31", "a heartbeat renews the lease, under the same id", executor, checkRenewal},
	{"executor.supersede", "§11.1", "a new attach supersedes the lease before it, for good", executor, checkSupersede},
	{"executor.lease", "§12, R31", "a lease that was guessed, or stands in a URL, opens nothing", executor, checkForeignLease},
	{"executor.execute", "§11.3", "a client tool is sent once, with the name and arguments of its fact", agent | executor, checkExecute},
	{"executor.finish", "§11.3, R33", "a finish is recorded as it was sent, once; another is a conflict", agent | executor, checkFinish},
	{"executor.token", "§11.3", "a token that was guessed, or is another call's, finishes nothing", agent | executor, checkGuessedToken},
	{"executor.handover", "§11.3, R32", "a call is finished under its own lease, also when superseded, and under no other", agent | executor, checkHandover},
	{"executor.again", "R32", "who reconnects under the same lease gets the call again, byte for byte", agent | executor, checkExecuteAgain},
	{"executor.secrets", "§11, §12", "leases, tokens and execute controls are in no history and on no stream", agent | executor, checkExecutorSecrets},
	{"executor.controls", "§11", "what is no control of an executor is refused", executor, checkControls},
}

// lease is what attach gave.
type lease struct {
	id       string
	interval time.Duration
	until    time.Time
}

func (p *probe) executorPath(tail string) string { return "/executors/" + p.target.Executor + tail }

// leaseOf reads a client.attached.
func (p *probe) leaseOf(data narad.Raw) lease {
	record, err := narad.DecodeStrict(bytes.TrimSpace(data))
	if err != nil {
		p.failf("the answer is no client.attached: %v", err)
	}
	a, ok := record.(*narad.ClientAttached)
	p.want(ok, "the answer is a %s, want client.attached", record.Type())
	p.secret = append(p.secret, a.LeaseID)
	p.want(a.ClientExecutorID == p.target.Executor, "the lease is of the executor %q", a.ClientExecutorID)
	until, err := time.Parse(time.RFC3339Nano, a.LeaseExpiresAt)
	p.want(err == nil, "leaseExpiresAt is %q", a.LeaseExpiresAt)
	return lease{a.LeaseID, time.Duration(a.HeartbeatIntervalMs) * time.Millisecond, until}
}

func (p *probe) attachExecutor() lease {
	return p.leaseOf(p.post(p.executorPath("/attach"), "").is(http.StatusOK).body)
}

// connect opens the channel of an executor.
func (p *probe) connect(l lease) *follower {
	return p.follow(p.executorPath("/stream"), map[string]string{"Narad-Lease": l.id})
}

func (p *probe) heartbeat(l lease) answer {
	return p.post(p.executorPath("/controls"), `{"type":"client.heartbeat","protocolVersion":"narad/v1","clientExecutorId":`+
		quoted(p.target.Executor)+`,"leaseId":`+quoted(l.id)+`}`)
}

// call is one tool call that was handed over.
type call struct {
	raw   narad.Raw
	lease string
	token string
	tool  string
}

// execute waits for the next client.tool.execute.
func (f *follower) execute() call {
	for {
		read := f.fact()
		f.p.want(!read.hasID, "a frame of an executor's stream has the id %q", read.id)
		if read.kind != "client.tool.execute" {
			f.p.want(read.kind == "client.attached", "an executor's stream carries a %q", read.kind)
			continue
		}
		f.p.secret = append(f.p.secret, text(read.data, "executionToken"))
		return call{read.data, text(read.data, "leaseId"), text(read.data, "executionToken"), text(read.data, "toolCallId")}
	}
}

// called makes a session whose agent calls a tool of the executor, and takes the call.
func (p *probe) called(f *follower) (session string, c call) {
	session = p.sessionWith(`,"clientExecutorId":` + quoted(p.target.Executor))
	p.say(session, promptCall)
	return session, f.execute()
}

const response = `{"text":"⚓","number":1.10,"none":null}`

func (p *probe) finish(l string, c call, outcome, response string) answer {
	return p.post(p.executorPath("/controls"), `{"type":"client.tool.finish","protocolVersion":"narad/v1","clientExecutorId":`+quoted(p.target.Executor)+
		`,"leaseId":`+quoted(l)+`,"executionToken":`+quoted(c.token)+`,"toolCallId":`+quoted(c.tool)+`,"outcome":`+quoted(outcome)+`,"response":`+response+`}`)
}

// word demands the word of an answer to a finish, with its code.
func (a answer) word(words ...string) answer {
	var read commandAnswer
	a.into(&read)
	for _, word := range words {
		if read.Status == word && a.status == statusOf[word] {
			return a
		}
	}
	a.p.failf("%v, want the status %q with its code", a, words)
	return a
}

func checkExecutorAttach(p *probe) {
	l := p.attachExecutor()
	p.want(l.interval >= time.Millisecond, "the heartbeat interval is %v", l.interval)
	p.want(time.Until(l.until) > l.interval, "the lease ends in %v, before its first heartbeat is due", time.Until(l.until))
	p.want(p.attachExecutor().id != l.id, "a second attach gives the same lease")
}

func checkRenewal(p *probe) {
	l := p.attachExecutor()
	f := p.connect(l)
	renewed := p.leaseOf(p.heartbeat(l).is(http.StatusOK).body)
	p.want(renewed.id == l.id, "a heartbeat is answered with another lease")
	p.want(!renewed.until.Before(l.until), "a heartbeat shortens the lease from %v to %v", l.until, renewed.until)
	for {
		read := f.fact()
		p.want(!read.hasID, "a frame of an executor's stream has the id %q", read.id)
		if told := p.leaseOf(read.data); told.id == l.id && !told.until.Before(renewed.until) {
			return
		}
	}
}

func checkSupersede(p *probe) {
	old := p.attachExecutor()
	f := p.connect(old)
	now := p.attachExecutor()
	for begun := time.Now(); ; {
		if _, err := f.read(Patience); err != nil {
			p.want(!errors.Is(err, errSilent), "the stream of a superseded lease goes on")
			break
		}
		p.want(time.Since(begun) < Patience, "the stream of a superseded lease goes on")
	}
	p.heartbeat(old).problem(http.StatusForbidden)
	p.request(http.MethodGet, p.executorPath("/stream"), map[string]string{"Narad-Lease": old.id}, nil).problem(http.StatusForbidden)
	p.connect(now)
	p.heartbeat(now).is(http.StatusOK)
}

func checkForeignLease(p *probe) {
	l := p.attachExecutor()
	guessed := lease{id: strings.Repeat("x", len(l.id))}
	a := p.heartbeat(guessed)
	p.want(a.status == http.StatusForbidden || a.status == http.StatusGone, "%v: a guessed lease renews nothing", a)
	for _, query := range []string{"", "?leaseId=" + l.id, "?lease=" + l.id, "?narad-lease=" + l.id} {
		a := p.request(http.MethodGet, p.executorPath("/stream")+query, nil, nil)
		p.want(a.status >= 400 && a.status < 500, "a stream without Narad-Lease is answered %d", a.status)
	}
	p.heartbeat(l).is(http.StatusOK)
}

func checkExecute(p *probe) {
	f := p.connect(p.attachExecutor())
	session, c := p.called(f)
	started := p.awaitFact(session, "tool.call.started")
	if _, err := narad.DecodeStrict(c.raw); err != nil {
		p.failf("the control is no record: %v", err)
	}
	p.want(text(started, "executor") == "client", "the call was recorded as %s", started)
	for _, name := range []string{"toolCallId", "toolName", "args"} {
		p.want(bytes.Equal(c.raw.Field(name), started.Field(name)), "%s is %s in the control and %s in the fact", name, c.raw.Field(name), started.Field(name))
	}
	p.want(text(started, "toolName") == calledTool, "the tool is %q, want %q", text(started, "toolName"), calledTool)
	p.want(text(first(p.history(session, 100), "run.started"), "clientExecutorId") == p.target.Executor, "the run does not name its executor")
	p.finish(c.lease, c, "success", response).word("accepted")
	p.idle(session)
	// Nothing else comes: a call is handed over once.
	for range 2 {
		read := f.next()
		p.want(read.kind == "server.heartbeat" || read.kind == "client.attached", "after the call was finished its stream carries a %q", read.kind)
	}
}

func checkFinish(p *probe) {
	f := p.connect(p.attachExecutor())
	session, c := p.called(f)
	p.finish(c.lease, c, "success", response).word("accepted")
	facts := p.idle(session)
	ended := first(facts, "tool.call.finished")
	p.want(text(ended, "outcome") == "success" && string(ended.Field("response")) == response, "the finish was recorded as %s", ended)
	p.finish(c.lease, c, "success", response).word("already_applied")
	p.finish(c.lease, c, "success", `"other"`).word("conflict")
	p.finish(c.lease, c, "error", response).word("conflict")
	p.want(len(p.history(session, 100)) == len(facts), "a finish sent again left facts")
	p.want(len(ofType(facts, "tool.call.finished")) == 1, "one call has %d finishes", len(ofType(facts, "tool.call.finished")))
	p.admit(session, facts)
}

func checkGuessedToken(p *probe) {
	f := p.connect(p.attachExecutor())
	session, c := p.called(f)
	other, d := p.called(f)
	for _, guess := range []call{
		{token: strings.Repeat("x", len(c.token)), tool: c.tool}, {token: c.token, tool: d.tool}, {token: c.token, tool: "never"},
	} {
		p.finish(c.lease, guess, "success", "1").word("forbidden", "not_found")
	}
	for _, id := range []string{session, other} {
		p.want(first(p.history(id, 100), "tool.call.finished") == nil, "a foreign token finished a call")
	}
	p.finish(c.lease, c, "success", response).word("accepted")
	p.finish(d.lease, d, "error", response).word("accepted")
	p.idle(session)
	p.idle(other)
}

func checkHandover(p *probe) {
	f := p.connect(p.attachExecutor())
	session, c := p.called(f)
	now := p.attachExecutor()
	g := p.connect(now)
	p.finish(now.id, c, "success", response).word("forbidden")
	p.want(first(p.history(session, 100), "tool.call.finished") == nil, "a new lease finished the call of the one before")
	p.finish(c.lease, c, "success", response).word("accepted")
	p.idle(session)
	_, next := p.called(g)
	p.want(next.tool != c.tool, "a new lease gets the call that the one before had accepted")
	p.finish(next.lease, next, "success", response).word("accepted")
}

func checkExecuteAgain(p *probe) {
	l := p.attachExecutor()
	f := p.connect(l)
	session, c := p.called(f)
	f.close()
	again := p.connect(l).execute()
	p.want(bytes.Equal(again.raw, c.raw), "the call comes again with other bytes")
	p.finish(l.id, c, "success", response).word("accepted")
	p.idle(session)
}

func checkExecutorSecrets(p *probe) {
	l := p.attachExecutor()
	f := p.connect(l)
	session, c := p.called(f)
	p.finish(c.lease, c, "success", response).word("accepted")
	facts := p.idle(session)
	read := p.stream(session, "afterSessionSequence=0", nil).facts(int64(len(facts)))
	p.same("the session's stream", read, facts)
	for _, fact := range facts {
		p.want(!strings.HasPrefix(text(fact, "type"), "client."), "history has a control: %s", fact)
		for _, secret := range []string{l.id, c.token} {
			p.want(!bytes.Contains(fact, []byte(secret)), "a fact holds a secret: %s", fact)
		}
	}
	for _, path := range []string{"/sessions/" + session, "/sessions/" + session + "/attach", "/sessions/" + session + "/messages", "/capabilities"} {
		a := p.get(path)
		for _, secret := range []string{l.id, c.token} {
			p.want(!bytes.Contains(a.body, []byte(secret)), "%s answers with a secret", path)
		}
	}
}

func checkControls(p *probe) {
	l := p.attachExecutor()
	for _, body := range []string{
		``, `{}`, `{"type":"server.heartbeat","protocolVersion":"narad/v1"}`,
		`{"type":"client.heartbeat","protocolVersion":"narad/v2","clientExecutorId":"` + p.target.Executor + `","leaseId":"` + l.id + `"}`,
		`{"type":"client.heartbeat","protocolVersion":"narad/v1","clientExecutorId":"` + p.target.Executor + `","leaseId":"` + l.id + `","eventId":"x"}`,
		`{"type":"client.heartbeat","protocolVersion":"narad/v1","clientExecutorId":"` + p.target.Executor + `x","leaseId":"` + l.id + `"}`,
	} {
		p.post(p.executorPath("/controls"), body).problem(http.StatusBadRequest)
	}
	p.heartbeat(l).is(http.StatusOK)
}
