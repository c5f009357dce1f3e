package conformance

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/graph"
)

// viewChecks are about what is derived from the facts.
var viewChecks = []Check{
	{"messages.snapshot", "§9.3, R29", "the transcript is the facts' messages, up to its cursor", agent, checkTranscript},
	{"messages.redact", "§9.4, R24", "a redaction changes what is shown and no fact", agent, checkRedact},
	{"messages.stream", "§9.3, R29", "a stream with hydrate=messages begins with the transcript and still has every fact", agent, checkMessagesStream},
	{"graph.stream", "§9.7, R29", "a stream with hydrate=graph carries a graph that can be followed, and no fact less", agent, checkGraphStream},
	{"watch.session", "§8, R28", "watch events rise, cover no more than was delivered, and resume", agent, checkSessionWatch},
	{"watch.workspace", "§8, R28", "a workspace's stream tells of a session that is made in it", nothing, checkWorkspaceWatch},
}

func (p *probe) transcript(session string) (*narad.MessagesSnapshot, answer) {
	a := p.get("/sessions/" + session + "/messages").is(200)
	record, err := narad.DecodeStrict(bytes.TrimSpace(a.body))
	if err != nil {
		p.failf("the transcript is no record: %v", err)
	}
	snapshot, ok := record.(*narad.MessagesSnapshot)
	p.want(ok, "the transcript is a %s", record.Type())
	return snapshot, a
}

func checkTranscript(p *probe) {
	session, facts := p.spoken(promptSpeak)
	snapshot, a := p.transcript(session)
	p.want(snapshot.SessionID == session, "the transcript is of the session %q", snapshot.SessionID)
	p.want(snapshot.CoversThroughSessionSequence == int64(len(facts)), "the transcript covers %d of %d facts", snapshot.CoversThroughSessionSequence, len(facts))
	items := snapshot.Items()
	p.want(len(items) == 2, "the transcript has %d messages, want the prompt and the answer", len(items))
	p.want(items[0].Role == narad.RoleUser && items[0].Content == promptSpeak, "the first message is %q by %s", items[0].Content, items[0].Role)
	p.want(items[1].Role == narad.RoleAssistant && items[1].Content == spokenText && items[1].Completed, "the second message is %q by %s", items[1].Content, items[1].Role)
	_, again := p.transcript(session)
	p.want(bytes.Equal(a.body, again.body), "the same transcript has other bytes the second time")
}

func checkRedact(p *probe) {
	session, facts := p.spoken(promptSpeak)
	message := text(first(facts, "message.user.recorded"), "messageId")
	p.command("redact", "accepted", `{"sessionId":`+quoted(session)+`,"messageId":`+quoted(message)+`,"reason":"private","displayReplacement":"[gone]"}`)
	after := p.history(session, 100)
	p.want(len(after) == len(facts)+1, "a redaction left %d facts", len(after)-len(facts))
	for i := range facts {
		p.want(bytes.Equal(after[i], facts[i]), "a redaction changed fact %d", i+1)
	}
	fact := after[len(after)-1]
	p.want(text(fact, "type") == "message.redacted" && text(fact, "messageId") == message, "the redaction was recorded as %s", fact)
	p.admit(session, after)
	snapshot, a := p.transcript(session)
	p.want(!strings.Contains(string(a.body), promptSpeak), "the transcript shows the redacted message")
	p.want(snapshot.Items()[0].Content == "[gone]", "the transcript shows %q, want the replacement", snapshot.Items()[0].Content)
	p.command("redact", "not_found", `{"sessionId":`+quoted(session)+`,"messageId":"never","reason":"private"}`)
}

// extra reads a frame that is no fact: of a class, with an id where the class has one.
func (p *probe) extra(f frame, class narad.Class) narad.Record {
	record, err := narad.DecodeStrict(f.data)
	if err != nil {
		p.failf("a frame is no record: %v: %s", err, f.data)
	}
	p.want(record.Type().Class() == class, "the stream carries a %s", record.Type())
	if class == narad.ClassHydrate {
		p.want(!f.hasID, "a hydrate record has the id %q", f.id)
	} else {
		p.want(f.id == text(f.data, "eventId"), "a frame has the id %q and the event %s", f.id, f.data)
	}
	return record
}

func isFact(f frame) bool { return f.data.Field("sessionSequence") != nil }

func checkMessagesStream(p *probe) {
	session, facts := p.spoken(promptSpeak)
	f := p.stream(session, "afterSessionSequence=0&hydrate=messages", nil)
	snapshot, ok := p.extra(f.fact(), narad.ClassHydrate).(*narad.MessagesSnapshot)
	p.want(ok, "the stream does not begin with a messages.snapshot")
	p.want(snapshot.SessionID == session, "the transcript is of the session %q", snapshot.SessionID)
	p.want(len(snapshot.Items()) == 2 && snapshot.Items()[1].Content == spokenText, "the transcript has %d messages, want the prompt and the answer", len(snapshot.Items()))
	p.same("the stream behind its transcript", f.facts(int64(len(facts))), facts)
}

func checkGraphStream(p *probe) {
	session := p.session()
	f := p.stream(session, "afterSessionSequence=0&hydrate=graph", nil) // first, so that what is not offered is skipped
	root := p.say(session, promptWork).RunID
	facts := p.idle(session)
	answer := p.get("/sessions/" + session + "/graph?rootRunId=" + root).is(http.StatusOK)
	whole := graph.NewView(session, graph.ViewOptions{})
	view := graph.NewView(session, graph.ViewOptions{Strict: true})
	var read []frame
	for last := number(answer.body, "revision"); ; {
		next := f.fact()
		if isFact(next) {
			read = append(read, next)
			record, err := narad.Decode(next.data)
			p.want(err == nil, "a frame is no record: %v", err)
			view.Apply(record)
			whole.Apply(record)
			continue
		}
		record := p.extra(next, narad.ClassHydrate)
		got := view.Apply(record)
		p.want(got.Kind == graph.Applied, "a %s is %v %s (%s): %s", record.Type(), got.Kind, got.Code, got.Detail, next.data)
		if number(next.data, "revision") >= last {
			break
		}
	}
	p.same("the stream between its graphs", read, facts[:len(read)])
	snapshot, err := narad.DecodeStrict(bytes.TrimSpace(answer.body))
	p.want(err == nil, "%v: no record: %v", answer, err)
	got := whole.Apply(snapshot)
	p.want(got.Kind == graph.Applied, "the graph is %v %s (%s)", got.Kind, got.Code, got.Detail)
	followed, asked := view.Canonical(graph.RunTree(root)), whole.Canonical(graph.RunTree(root))
	p.want(bytes.Equal(followed, asked), "the graph that was followed is %s, and the one that was asked for %s", followed, asked)
}

func checkSessionWatch(p *probe) {
	session := p.session()
	f := p.stream(session, "afterSessionSequence=0&watch=1", nil)
	p.say(session, promptWork)
	facts := p.idle(session)
	head, delivered := int64(len(facts)), int64(0)
	revisions, ids := map[string]int64{}, map[int64]string{}
	var read []frame
	for covered := int64(0); covered < head; {
		next := f.fact()
		if isFact(next) {
			read, delivered = append(read, next), number(next.data, "sessionSequence")
			continue
		}
		event := p.extra(next, narad.ClassWatch).(*narad.Revision)
		key := strings.Join([]string{string(event.Kind), event.RunID, event.WorkflowID, event.NodeID}, " ")
		p.want(event.SessionID == session, "a watch event is of the session %q", event.SessionID)
		p.want(event.Revision > revisions[key], "the revision of %s does not rise: %d after %d", key, event.Revision, revisions[key])
		p.want(event.Revision <= delivered, "a watch event covers %d, and %d was delivered", event.Revision, delivered)
		revisions[key] = event.Revision
		if event.Kind == narad.TypeSessionRevision {
			covered, ids[event.Revision] = event.Revision, event.EventID
		}
	}
	p.same("the stream between its watch events", read, facts)
	for at, id := range ids {
		if at < head {
			resumed := p.stream(session, "watch=1", map[string]string{"Last-Event-ID": id})
			for next := resumed.fact(); ; next = resumed.fact() {
				if isFact(next) {
					p.want(number(next.data, "sessionSequence") == at+1, "resumed after the watch event of %d, the stream goes on with %s", at, next.data)
					break
				}
			}
			break
		}
	}
}

func checkWorkspaceWatch(p *probe) {
	workspace := p.id()
	path := "/workspaces/" + workspace + "/stream"
	response, cancel := p.open(http.MethodGet, path, nil, nil)
	response.Body.Close()
	cancel()
	if response.StatusCode == http.StatusNotFound {
		p.skipf("the host does not offer this: GET %s", path)
	}
	f := p.follow(path, nil)
	session := p.sessionWith(`,"workspaceId":` + quoted(workspace))
	for last := int64(0); ; {
		event := p.extra(f.fact(), narad.ClassWatch).(*narad.Revision)
		p.want(event.WorkspaceID == workspace, "a watch event is of the workspace %q", event.WorkspaceID)
		p.want(event.Revision > last, "the revision of the workspace does not rise: %d after %d", event.Revision, last)
		last = event.Revision
		if event.Kind == narad.TypeSessionCreated {
			p.want(event.SessionID == session, "the session %q was made, and %q told of", session, event.SessionID)
			return
		}
	}
}
