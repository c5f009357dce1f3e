package naryahttp_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narya"
)

// nameOf returns the name by which others call a session.
func (b *bed) nameOf(session string) string {
	b.t.Helper()
	for _, item := range b.want(b.get("/v1/intercom"), 200).items("items") {
		if one := (reply{body: item}); one.field("sessionId") == session {
			return one.field("name")
		}
	}
	b.t.Fatalf("%s is not listed", session)
	return ""
}

// heard lists what other sessions said, as the stream tells it.
func heard(events []event) (list []string) {
	for _, e := range events {
		if m, ok := e.Payload.(*narya.IntercomMessage); ok {
			list = append(list, string(m.Kind)+" from "+m.From+": "+m.Content)
		}
	}
	return list
}

// R44: what one session says to another is right behind its entry there, and begins a turn,
// whose prompt is no second entry.
func TestIntercomMessage(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		one, two := b.begun("s1"), b.begun("s2")
		if name := b.nameOf(one); !strings.HasPrefix(name, "session-s1-") || len(name) != len("session-s1-")+6 || !strings.HasSuffix(one, name[len(name)-6:]) {
			t.Errorf("the name is %s, the session %s", name, one)
		}
		stream := b.stream("sessionId="+two, "")
		request := b.request("POST", "/v1/sessions/"+one+"/intercom", `{"to":`+quote(b.nameOf(two))+`,"content":"hello"}`)
		request.Header.Set("Idempotency-Key", "k1")
		sent := b.want(b.send(request), 202)
		if sent.field("messageId") == "" || sent.field("askId") != "" {
			t.Errorf("got %s", sent)
		}
		events := stream.now()
		want := "entry-appended intercom-message session-status-changed turn-started"
		if got := join(kinds(events)[:4]); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
		if entry := events[0].Payload.(*narya.EntryAppended); entry.Kind != narya.EntryIntercom {
			t.Errorf("the entry is %s", events[0].data)
		}
		if got := heard(events); len(got) != 1 || got[0] != "message from "+b.nameOf(one)+": hello" {
			t.Errorf("heard %q", got)
		}
		if strings.Contains(join(kinds(events)[4:]), "intercom-message") || strings.Count(join(kinds(events)), "entry-appended") != 2 {
			t.Errorf("got %v, want the entries of the message and of the answer", kinds(events))
		}
		again := b.request("POST", "/v1/sessions/"+one+"/intercom", `{"to":`+quote(b.nameOf(two))+`,"content":"hello"}`)
		again.Header.Set("Idempotency-Key", "k1")
		if got := b.want(b.send(again), 202); got.body != sent.body {
			t.Errorf("told again: %s, want %s", got, sent)
		}
		if got := heard(stream.now()); len(got) != 0 {
			t.Errorf("told again it is heard again: %q", got)
		}
	})
}

func join(list []narya.Type) string {
	words := make([]string, len(list))
	for i, k := range list {
		words[i] = string(k)
	}
	return strings.Join(words, " ")
}

const asker = `script: 1
steps:
  - tell: {to: "{{prompt}}", text: "How does it round?", ask: true, as: reply, on: {unanswered: [{say: Nobody said.}]}}
  - say: "They say: {{reply.answer}}"
`

// An agent asks another session and waits; whoever answers there answers once, and the answer
// begins no turn.
func TestIntercomAsk(t *testing.T) {
	o := bedOptions{agents: map[string]agent.Kind{"asker": scripted(t, asker)}, host: host.Options{MaxRunning: 1}}
	bubble(t, o, func(t *testing.T, b *bed) {
		two := b.begun("s2")
		one := b.want(b.post("/v1/sessions", `{"repository":`+quote(t.TempDir())+`,"agent":"asker"}`), 201).field("id")
		stream := b.stream("", "")
		synctest.Wait()
		b.tellAgent(one, b.nameOf(two))
		asked := stream.now()
		if got := heard(asked); len(got) != 1 || !strings.HasSuffix(got[0], "How does it round?") {
			t.Fatalf("heard %q of %v", got, kinds(asked))
		}
		asks := b.want(b.get("/v1/sessions/"+two+"/intercom/asks"), 200).items("items")
		if len(asks) != 1 || (reply{body: asks[0]}).field("content") != "How does it round?" {
			t.Fatalf("asks: %q", asks)
		}
		path := "/v1/intercom/asks/" + (reply{body: asks[0]}).field("askId") + "/answer"
		b.wantError(b.post(path, `{"content":""}`), narya.CodeInvalid, "content")
		b.want(b.post(path, `{"content":"half-even"}`), 202)
		b.wantError(b.post(path, `{"content":"half-up"}`), narya.CodeAskClosed)
		answered := stream.now()
		if got := heard(answered); len(got) != 1 || got[0] != "answer from "+b.nameOf(two)+": half-even" {
			t.Errorf("heard %q", got)
		}
		said := ""
		for _, e := range answered {
			if d, ok := e.Payload.(*narya.MessageDelta); ok {
				said += d.Delta
			}
			if e.Type() == narya.TypeTurnStarted {
				t.Errorf("an answer begins a turn: %s", e.data)
			}
		}
		if said != "They say: half-even" {
			t.Errorf("the asker said %q", said)
		}
		if asks := b.get("/v1/sessions/" + two + "/intercom/asks").items("items"); len(asks) != 0 {
			t.Errorf("answered, and open: %q", asks)
		}
	})
}

// tellAgent sends a session a message.
func (b *bed) tellAgent(uuid, content string) {
	b.t.Helper()
	id, err := b.sessionOf(uuid)
	if err == nil {
		_, err = b.host.Do(b.t.Context(), access.Owner(), host.Request{Action: access.SendMessage, Session: id, Command: decide.Message{Content: content}})
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) sessionOf(uuid string) (string, error) {
	_, id, err := b.host.Alias(b.t.Context(), access.Owner(), narya.KindSession, uuid)
	return id, err
}

// An ask that nobody answers ends with the turn that asked: then nobody can answer it.
func TestIntercomAskEndsWithItsTurn(t *testing.T) {
	o := bedOptions{agents: map[string]agent.Kind{"asker": scripted(t, asker)}}
	bubble(t, o, func(t *testing.T, b *bed) {
		two := b.begun("s2")
		one := b.want(b.post("/v1/sessions", `{"repository":`+quote(t.TempDir())+`,"agent":"asker"}`), 201).field("id")
		b.tellAgent(one, b.nameOf(two))
		synctest.Wait()
		asks := b.want(b.get("/v1/sessions/"+two+"/intercom/asks"), 200).items("items")
		if len(asks) != 1 {
			t.Fatalf("asks: %q", asks)
		}
		id, err := b.sessionOf(one)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.host.Do(t.Context(), access.Owner(), host.Request{Action: access.StopRun, Session: id, Command: decide.Stop{}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		b.wantError(b.post("/v1/intercom/asks/"+(reply{body: asks[0]}).field("askId")+"/answer", `{"content":"late"}`), narya.CodeAskClosed)
		if asks := b.get("/v1/sessions/" + two + "/intercom/asks").items("items"); len(asks) != 0 {
			t.Errorf("ended, and open: %q", asks)
		}
	})
}

// Ids fall where the clock went back. A page of a list is no shorter for it.
func TestPagesOverFallingIDs(t *testing.T) {
	left := int64(1_000_000)
	falling := func() string { return fmt.Sprintf("01900000-0000-7000-8000-%012d", atomic.AddInt64(&left, -1)) }
	bubble(t, bedOptions{agent: acts(permits), host: host.Options{NewID: falling}}, func(t *testing.T, b *bed) {
		b.create("s1", "ls\npwd\nwho")
		for range 3 {
			synctest.Wait()
			b.want(b.decide(b.pendingIDs("")[0], "allow", "session"), 200)
		}
		two := b.begun("s2")
		for range 3 {
			b.want(b.post("/v1/sessions/"+two+"/intercom", `{"to":`+quote(b.nameOf(uuid("s1")))+`,"content":"?","kind":"ask"}`), 202)
			synctest.Wait()
		}
		for _, list := range []string{"/rules", "/intercom/asks"} {
			if got := b.pages(b.session("s1") + list + "?limit=1"); len(got) != 3 {
				t.Errorf("%s has %d items on pages of one, want 3: %s", list, len(got), got)
			}
		}
	})
}

// Sessions that ask and answer each other go on over restarts of the host: nothing is asked
// or answered again.
func TestIntercomAskOverRestarts(t *testing.T) {
	const asks = `script: 1
steps:
  - tell: {to: "{{prompt}}", text: "How does it round?", ask: true, as: reply}
  - question: {text: Enough}
  - say: "They say: {{reply.answer}}"
`
	const answers = `script: 1
steps:
  - question: {text: Sure}
  - answer: half-even
  - question: {text: Enough}
  - say: Bye
`
	o := bedOptions{agents: map[string]agent.Kind{"asks": scripted(t, asks), "answers": scripted(t, answers)}}
	bubble(t, o, func(t *testing.T, b *bed) {
		began := func(kind string) string {
			return b.want(b.post("/v1/sessions", `{"repository":`+quote(t.TempDir())+`,"agent":"`+kind+`"}`), 201).field("id")
		}
		start := narya.FormatID(int64(b.host.Events().Newest))
		one, two := began("asks"), began("answers")
		b.tellAgent(one, b.nameOf(two))
		answerAll := func(want int) {
			b.t.Helper()
			synctest.Wait()
			o.before = b
			b.close()
			b = begin(t, o)
			synctest.Wait()
			open := b.want(b.get("/v1/questions"), 200).items("items")
			if len(open) != want {
				t.Fatalf("%d questions are open, want %d: %s", len(open), want, open)
			}
			for _, q := range open {
				b.want(b.reply((reply{body: q}).field("questionId"), `{"answers":[{"text":"yes"}]}`), 200)
			}
		}
		answerAll(1)
		answerAll(2)
		synctest.Wait()
		events := b.stream("", start).now()
		said := []string{}
		for _, e := range events {
			if d, ok := e.Payload.(*narya.MessageDelta); ok {
				said = append(said, d.Delta)
			}
		}
		slices.Sort(said)
		if got := append(heard(events), said...); !slices.Equal(got, []string{
			"ask from " + b.nameOf(one) + ": How does it round?", "answer from " + b.nameOf(two) + ": half-even", "Bye", "They say: half-even",
		}) {
			t.Errorf("got %q of %v", got, kinds(events))
		}
		if n := count(events, narya.TypeTurnFinished); n != 2 {
			t.Errorf("%d turns have ended, want 2", n)
		}
	})
}

func TestIntercomRefused(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		one, two := b.begun("s1"), b.begun("s2")
		path, to := "/v1/sessions/"+one+"/intercom", quote(b.nameOf(two))
		b.wantError(b.post(path, `{}`), narya.CodeInvalid, "to", "content")
		b.wantError(b.post(path, `{"to":`+to+`,"content":"x","kind":"answer"}`), narya.CodeInvalid, "kind")
		b.wantError(b.post(path, `{"to":"nobody-1","content":"x"}`), narya.CodeNobodyCalled)
		b.wantError(b.post(path, `{"to":"a\u0000b","content":"x"}`), narya.CodeNobodyCalled)
		b.wantError(b.post(path, `{"to":`+quote(b.nameOf(one))+`,"content":"x"}`), narya.CodeInvalid, "to")
		b.wantError(b.post(path, `{"to":`+to+`,"content":`+quote(strings.Repeat("x", 480_000-1))+`}`), narya.CodeInvalid, "content")
		b.wantError(b.post("/v1/intercom/asks/x/answer", `{"content":"x"}`), narya.CodeQuestionNotFound)
		b.wantError(b.get("/v1/sessions/x/intercom/asks"), narya.CodeSessionNotFound)
		if mark := b.journal.Durable(); mark.Offset != 2 {
			t.Errorf("what was refused has left facts: %d, want 2", mark.Offset)
		}
	})
}

// One rule bounds what is said, whoever says it: the JSON string as it is written.
func TestContentBound(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		one, two := b.begun("s1"), b.begun("s2")
		for path, before := range map[string]string{
			"/v1/sessions/" + one + "/messages": `{"content":`,
			"/v1/sessions/" + one + "/intercom": `{"to":` + quote(b.nameOf(two)) + `,"content":`,
		} {
			b.want(b.post(path, before+`"`+strings.Repeat(`\"`, 239_999)+`"}`), 202)
			refused := b.wantError(b.post(path, before+`"`+strings.Repeat(`\"`, 239_999)+`x"}`), narya.CodeInvalid, "content")
			if !strings.Contains(refused.body, "480000 bytes") {
				t.Errorf("%s does not name the bound: %s", path, refused.body)
			}
		}
	})
}

// Nobody can answer a session that is not there any more, nor speak to one that was put away.
func TestIntercomWithSessionsThatLeft(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		one, two := b.begun("s1"), b.begun("s2")
		name := b.nameOf(two)
		tell := func() reply {
			return b.post("/v1/sessions/"+one+"/intercom", `{"to":`+quote(name)+`,"content":"?","kind":"ask"}`)
		}
		ask := b.want(tell(), 202).field("askId")
		synctest.Wait()
		b.want(b.post("/v1/sessions/"+two+"/archive", ""), 200)
		if refused := b.wantError(tell(), narya.CodeArchived); !strings.Contains(refused.body, name) {
			t.Errorf("the refusal does not name %s: %s", name, refused.body)
		}
		if _, err := b.host.Delete(t.Context(), access.Owner(), "s2"); err != nil {
			t.Fatal(err)
		}
		b.wantError(b.post("/v1/intercom/asks/"+ask+"/answer", `{"content":"!"}`), narya.CodeAskClosed)
		b.wantError(tell(), narya.CodeNobodyCalled)
	})
}

// What another session said is redacted wherever it is shown, an answer too.
func TestIntercomRedacted(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		one, two := b.begun("s1"), b.begun("s2")
		redact := func(session, message string) {
			shown := "[gone]"
			a, err := b.host.Do(t.Context(), access.Owner(), host.Request{
				Action: access.RedactMessage, Session: session, Command: decide.Redact{MessageID: message, Reason: "private", DisplayReplacement: &shown},
			})
			if err != nil || a.Status != decide.Accepted {
				t.Errorf("redact in %s: %+v, %v", session, a, err)
			}
		}
		asked := b.want(b.post("/v1/sessions/"+one+"/intercom", `{"to":`+quote(b.nameOf(two))+`,"content":"my secret?","kind":"ask"}`), 202)
		synctest.Wait()
		redact("s2", asked.field("messageId"))
		if got := b.get("/v1/sessions/" + two + "/intercom/asks").body; strings.Contains(got, "secret") || !strings.Contains(got, `"redacted":true`) {
			t.Errorf("asks: %s", got)
		}
		answered := b.want(b.post("/v1/intercom/asks/"+asked.field("askId")+"/answer", `{"content":"your secret"}`), 202)
		synctest.Wait()
		redact("s1", answered.field("messageId"))
		for _, session := range []string{one, two} {
			if got := b.get("/v1/sessions/" + session + "/transcript").body; strings.Contains(got, "secret") || !strings.Contains(got, "[gone]") {
				t.Errorf("transcript of %s: %s", session, got)
			}
		}
	})
}

// An entry names the turn that it begins, waits for, or belongs to, and is set aside when its
// message was taken back.
func TestTurnsOfIntercom(t *testing.T) {
	o := bedOptions{agents: map[string]agent.Kind{"asker": scripted(t, asker), "slow": scripted(t, "script: 1\nsteps:\n  - question: {text: Go on}\n")}}
	bubble(t, o, func(t *testing.T, b *bed) {
		make := func(kind string) string {
			return b.want(b.post("/v1/sessions", `{"repository":`+quote(t.TempDir())+`,"agent":"`+kind+`"}`), 201).field("id")
		}
		one, two := make("asker"), make("slow")
		definition := "workflow: 1\nnodes:\n  a: {agent: asker, prompt: " + b.nameOf(two) + ", next: e}\n  e: {end: completed}\n"
		b.want(b.post("/v1/workflows", `{"sessionId":"`+one+`","definition":`+quote(definition)+`}`), 202)
		synctest.Wait()
		ask := reply{body: b.get("/v1/sessions/" + two + "/intercom/asks").items("items")[0]}
		b.want(b.post("/v1/intercom/asks/"+ask.field("askId")+"/answer", `{"content":"half-even"}`), 202)
		synctest.Wait()
		entries := b.get("/v1/sessions/" + one + "/transcript").items("items")
		heard := -1
		for i, e := range entries {
			if (reply{body: e}).field("kind") == "intercom" {
				heard = i
			}
		}
		if heard < 0 {
			t.Fatalf("no answer: %s", entries)
		}
		got, said := reply{body: entries[heard]}, reply{body: entries[len(entries)-1]}
		if got.field("turnId") == "" || got.field("turnId") != said.field("turnId") || got.field("laneId") != said.field("laneId") {
			t.Errorf("the answer is %s, what was said of it %s", got, said)
		}
		waiting := b.begun("s3")
		b.want(b.post("/v1/sessions/"+waiting+"/intercom", `{"to":`+quote(b.nameOf(two))+`,"content":"wait"}`), 202)
		synctest.Wait()
		entries = b.get("/v1/sessions/" + two + "/transcript").items("items")
		last := reply{body: entries[len(entries)-1]}
		back := b.want(b.delete("/v1/sessions/"+two+"/inputs/"+last.field("entryId")), 200)
		if last.field("turnId") != back.field("turnId") {
			t.Errorf("the entry is %s, it waited for %s", last, back)
		}
		if got := b.get("/v1/sessions/" + two + "/transcript/" + last.field("entryId")); got.field("setAside") != "withdrawn" {
			t.Errorf("taken back, and shown as %s", got)
		}
	})
}
