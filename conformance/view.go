package conformance

import (
	"bytes"
	"strings"

	"github.com/mahati-host/mahati/narad"
)

// viewChecks are about what is derived from the facts.
var viewChecks = []Check{
	{"messages.snapshot", "§9.3, R29", "the transcript is the facts' messages, up to its cursor", agent, checkTranscript},
	{"messages.redact", "§9.4, R24", "a redaction changes what is shown and no fact", agent, checkRedact},
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
