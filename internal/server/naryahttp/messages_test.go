package naryahttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// worker works on its first prompt until it is told to stop, and says what else it is told.
type worker struct {
	acts
	steered chan string
}

func newWorker(started chan<- string) *worker {
	w := &worker{steered: make(chan string, 100)}
	w.acts = func(ctx context.Context, h agent.Handle) agent.Ending {
		prompt := h.Info().Prompt.Content
		started <- prompt
		if !strings.HasPrefix(prompt, "work") {
			_ = h.Text(ctx, prompt)
			return done
		}
		if _, err := h.StartTool(ctx, agent.Tool{Name: "shell", Kind: "execute"}); err != nil {
			return ending(err)
		}
		<-ctx.Done()
		return agent.Ending{Outcome: agent.Cancelled}
	}
	return w
}

func (w *worker) Open(context.Context, agent.Session) (agent.Agent, error) { return w, nil }
func (w *worker) Steer(_ context.Context, m agent.Message) error           { w.steered <- m.Content; return nil }

// path is an operation of a session.
func path(session, operation string) string { return "/v1/sessions/" + uuid(session) + "/" + operation }

// tell submits a message and demands that it is taken.
func (b *bed) tell(session, content, more string) reply {
	b.t.Helper()
	return b.want(b.post(path(session, "messages"), `{"content":`+quote(content)+more+`}`), http.StatusAccepted)
}

// withKey is a request that can be told again.
func (b *bed) withKey(key, method, path, body string) reply {
	b.t.Helper()
	r := b.request(method, path, body)
	r.Header.Set("Idempotency-Key", key)
	return b.send(r)
}

// Field case 111: what is told a session at work is taken, shown, and consumed once, in
// order.
func TestMessagesWhileBusy(t *testing.T) {
	started := make(chan string, 10)
	w := newWorker(started)
	bubble(t, bedOptions{agent: w}, func(t *testing.T, b *bed) {
		b.create("s1", "")
		stream := b.stream("sessionId="+uuid("s1"), "")
		first := b.tell("s1", "work", "")
		if first.field("queued") != "false" {
			t.Errorf("got %s", first)
		}
		synctest.Wait()
		f1, f2 := b.tell("s1", "one", `,"kind":"follow-up"`), b.tell("s1", "two", "")
		steer := b.tell("s1", "also", `,"kind":"steer"`)
		if f1.field("queued") != "true" || f2.field("queued") != "true" || steer.field("queued") != "false" ||
			steer.field("turnId") != first.field("turnId") || f1.field("turnId") == f2.field("turnId") {
			t.Errorf("got %s, %s, %s", f1, f2, steer)
		}
		events := stream.now()
		for _, told := range []reply{first, f1, f2, steer} {
			if !slices.ContainsFunc(events, appended(told.field("entryId"))) {
				t.Errorf("no entry-appended for %s: %v", told, kinds(events))
			}
		}
		if got := <-w.steered; got != "also" {
			t.Errorf("the agent was told %q", got)
		}
		b.waiting("s1", f1, f2)
		stopped := b.want(b.post(path("s1", "interrupt"), `{}`), http.StatusAccepted)
		if stopped.field("turnId") != first.field("turnId") {
			t.Errorf("got %s, want the turn of %s", stopped, first)
		}
		events = stream.now()
		if last := events[len(events)-1]; last.Type() != narya.TypeSessionStatusChanged || last.Payload.(*narya.SessionStatusChanged).Status != narya.Waiting {
			t.Errorf("last came %s, want that messages wait", last.data)
		}
		b.waiting("s1", f1, f2)
		released := b.want(b.post(path("s1", "inputs/release"), ""), http.StatusAccepted)
		if released.field("turnId") != f1.field("turnId") {
			t.Errorf("got %s, want the turn of %s", released, f1)
		}
		events = stream.now()
		var turns []string
		for _, e := range events {
			if p, ok := e.Payload.(*narya.TurnStarted); ok {
				turns = append(turns, p.TurnID)
			}
			if appended(f1.field("entryId"))(e) || appended(f2.field("entryId"))(e) {
				t.Errorf("an entry came again: %s", e.data)
			}
		}
		if !slices.Equal(turns, []string{f1.field("turnId"), f2.field("turnId")}) {
			t.Errorf("turns: got %v", turns)
		}
		synctest.Wait()
		close(started)
		var prompts []string
		for p := range started {
			prompts = append(prompts, p)
		}
		if got := strings.Join(prompts, ","); got != "work,one,two" {
			t.Errorf("the agent ran %s", got)
		}
		if again := b.want(b.post(path("s1", "inputs/release"), ""), http.StatusAccepted); again.body != "{}" {
			t.Errorf("nothing waits, and got %s", again)
		}
	})
}

// appended says whether an event tells of an entry.
func appended(entry string) func(event) bool {
	return func(e event) bool {
		p, ok := e.Payload.(*narya.EntryAppended)
		return ok && p.EntryID == entry
	}
}

// waiting demands that these messages wait, in this order.
func (b *bed) waiting(session string, want ...reply) {
	b.t.Helper()
	items := b.want(b.get("/v1/sessions/"+uuid(session)), 200).items("pendingInputs")
	var got, entries []string
	for _, item := range items {
		entry, _ := narad.Raw(item).Field("entryId").IsString()
		got = append(got, entry)
	}
	for _, w := range want {
		entries = append(entries, w.field("entryId"))
	}
	if !slices.Equal(got, entries) {
		b.t.Errorf("%v wait, want %v", got, entries)
	}
}

// Field case 45: a message that is told again has one effect, and the first answer, before
// and after a restart.
func TestMessageToldAgain(t *testing.T) {
	started := make(chan string, 10)
	bubble(t, bedOptions{agent: newWorker(started)}, func(t *testing.T, b *bed) {
		b.create("s1", "")
		say := func(key, body string) reply { return b.withKey(key, "POST", path("s1", "messages"), body) }
		first := b.want(say("k1", `{"content":"hello"}`), http.StatusAccepted)
		named := b.tell("s1", "named", `,"messageId":"m1"`)
		for range 2 {
			synctest.Wait()
			if again := b.want(say("k1", `{"content":"hello"}`), http.StatusAccepted); again.body != first.body {
				t.Errorf("got %s, want %s", again, first)
			}
			if again := b.tell("s1", "named", `,"messageId":"m1"`); again.body != named.body {
				t.Errorf("got %s, want %s", again, named)
			}
			b.wantError(say("k1", `{"content":"another"}`), narya.CodeConflict)
			b.wantError(b.post(path("s1", "messages"), `{"content":"another","messageId":"m1"}`), narya.CodeConflict)
			b.close()
			b = begin(t, bedOptions{agent: newWorker(started), before: b})
		}
		synctest.Wait()
		if len(started) != 2 {
			t.Errorf("%d turns ran, want 2", len(started))
		}
	})
}

func TestMessagesRefused(t *testing.T) {
	started := make(chan string, 10)
	options := bedOptions{
		agent: deaf{Acts: newWorker(started).acts}, host: host.Options{QueueLimit: 2},
	}
	bubble(t, options, func(t *testing.T, b *bed) {
		b.create("s1", "")
		say := func(body string) reply { return b.post(path("s1", "messages"), body) }
		for _, body := range []string{"", "[]", "no", `{"content":"x"`, `{"content":"x","content":"y"}`} {
			b.wantError(say(body), narya.CodeMalformed)
		}
		b.wantError(say(`{"kind":"shout","messageId":"a b"}`), narya.CodeInvalid, "content", "kind", "messageId")
		b.wantError(say(`{"content":7}`), narya.CodeInvalid, "content")
		b.wantError(say(`{"content":`+quote(strings.Repeat("x", 500_000))+`}`), narya.CodeInvalid, "content")
		b.wantError(say(`{"content":"x","attachmentIds":["none"]}`), narya.CodeInvalid, "attachmentIds")
		b.wantError(say(`{"content":"x","attachmentIds":["ab","a/b"]}`), narya.CodeInvalid, "attachmentIds[1]")
		b.wantError(b.withKey("a b", "POST", path("s1", "messages"), `{"content":"x"}`), narya.CodeMalformed)
		b.wantError(b.post(path("none", "messages"), `{"content":"x"}`), narya.CodeSessionNotFound)
		b.wantError(b.post("/v1/sessions/s1/messages", `{"content":"x"}`), narya.CodeSessionNotFound)
		if len(started) != 0 {
			t.Error("a turn began")
		}
		b.tell("s1", "work", "")
		synctest.Wait()
		b.wantError(say(`{"content":"x","kind":"steer"}`), narya.CodeUnsupported)
		b.tell("s1", "one", "")
		b.tell("s1", "two", "")
		b.wantError(say(`{"content":"three"}`), narya.CodeQueueFull)
		b.want(b.post(path("s1", "interrupt"), ""), http.StatusAccepted)
		empty := b.request("POST", path("s1", "interrupt"), "")
		empty.Body, empty.ContentLength = io.NopCloser(strings.NewReader("")), -1 // no body, in chunks
		b.want(b.send(empty), http.StatusAccepted)
	})
}

// An archived session takes no message.
func TestMessageToAnArchivedSession(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		b.create("s1", "")
		b.want(b.post(path("s1", "archive"), ""), 200)
		b.wantError(b.post(path("s1", "messages"), `{"content":"x"}`), narya.CodeArchived)
	})
}

// Field cases 58, 59, 64: a stop by whoever comes ends the turn that it names, once.
func TestInterrupt(t *testing.T) {
	started := make(chan string, 10)
	bubble(t, bedOptions{agent: newWorker(started)}, func(t *testing.T, b *bed) {
		b.create("s1", "")
		lost := b.stream("sessionId="+uuid("s1"), "")
		turn := b.tell("s1", "work", "").field("turnId")
		synctest.Wait()
		lost.close() // whoever began it is gone, and that is no stop
		stream := b.stream("sessionId="+uuid("s1"), "")
		if events := stream.now(); len(events) != 0 {
			t.Errorf("the loss of a client caused %v", kinds(events))
		}
		stop := func(body string) reply { return b.post(path("s1", "interrupt"), body) }
		named := `{"turnId":` + quote(turn) + `}`
		b.want(stop(named), http.StatusAccepted)
		b.want(stop(named), http.StatusAccepted)
		events := stream.now()
		ends := 0
		for _, e := range events {
			switch p := e.Payload.(type) {
			case *narya.TurnFinished:
				if ends++; p.StopReason != narya.StopInterrupted || p.TurnID != turn {
					t.Errorf("got %s", e.data)
				}
			case *narya.ToolCallFinished:
				if p.Status != narya.ToolCancelled {
					t.Errorf("got %s", e.data)
				}
			}
		}
		if ends != 1 || count(events, narya.TypeToolCallFinished) != 1 {
			t.Errorf("got %v, want one end of the call and of the turn", kinds(events))
		}
		b.want(stop(named), http.StatusAccepted)
		if idle := b.want(stop(""), http.StatusAccepted); idle.body != "{}" {
			t.Errorf("no turn is under way, and got %s", idle)
		}
		next := b.tell("s1", "work again", "").field("turnId")
		synctest.Wait()
		b.want(stop(named), http.StatusAccepted) // never the next one (R14)
		if got := b.get("/v1/sessions/" + uuid("s1")); got.field("status") != "running" {
			t.Errorf("the stop of a turn hit the next one: %s", got)
		}
		b.want(stop(`{"turnId":`+quote(next)+`}`), http.StatusAccepted)
		ended := b.tell("s1", "hello", "").field("turnId")
		synctest.Wait()
		stream.now()
		b.wantError(stop(`{"turnId":`+quote(ended)+`}`), narya.CodeConflict)
		if events := stream.now(); len(events) != 0 {
			t.Errorf("a stop of what had ended caused %v", kinds(events))
		}
		b.wantError(stop(`{"turnId":"x"}`), narya.CodeInvalid, "turnId")
		b.wantError(stop(`{"turnId":"0198c2f0-7c1e-7b0a-9f0e-3a5b7c9d1e2f"}`), narya.CodeTurnNotFound)
		b.wantError(stop(`[]`), narya.CodeMalformed)
		b.create("s2", "")
		b.wantError(b.post(path("s2", "interrupt"), named), narya.CodeTurnNotFound)
	})
}

// A turn below another one is stopped with that one alone.
func TestInterruptOfANestedTurn(t *testing.T) {
	bubble(t, bedOptions{agent: acts(asksAll)}, func(t *testing.T, b *bed) {
		stream := b.stream("", "")
		b.create("s1", "go")
		var turns []string
		for _, e := range stream.now() {
			if p, ok := e.Payload.(*narya.TurnStarted); ok {
				turns = append(turns, p.TurnID)
			}
		}
		b.wantError(b.post(path("s1", "interrupt"), `{"turnId":`+quote(turns[1])+`}`), narya.CodeConflict)
		if len(b.pendingIDs("")) != 3 {
			t.Error("it was stopped")
		}
		b.want(b.post(path("s1", "interrupt"), `{"turnId":`+quote(turns[0])+`}`), http.StatusAccepted)
	})
}

// A workflow has its own stop: no interrupt of a turn ends it, whether it runs or asks.
func TestInterruptLeavesWorkflows(t *testing.T) {
	const definition = `
workflow: 1
start: one
nodes:
  one: {script: [{delay: 1m}], prompt: go, next: two}
  two: {approval: {title: Continue}, next: end}
  end: {end: completed}
`
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		stream, id := b.stream("", ""), b.made(in("/"))
		run := b.want(b.post("/v1/workflows", `{"sessionId":`+quote(id)+`,"definition":`+quote(definition)+`}`), 202).field("runId")
		synctest.Wait()
		turn := ""
		for _, e := range stream.now() {
			if p, ok := e.Payload.(*narya.TurnStarted); ok {
				turn = p.TurnID
			}
		}
		stop := func(body string) reply { return b.post("/v1/sessions/"+id+"/interrupt", body) }
		b.wantError(stop(`{"turnId":`+quote(turn)+`}`), narya.CodeConflict)
		for range 2 {
			if got := b.want(stop(""), http.StatusAccepted); got.body != "{}" {
				t.Errorf("no turn is under way on the main lane, and got %s", got)
			}
			pass(time.Minute) // it asks then
		}
		if got := b.want(b.get("/v1/workflows/"+run), 200); got.field("status") != "running" || len(b.pendingIDs("")) != 1 {
			t.Errorf("an interrupt has stopped the workflow: %s", got)
		}
		b.want(b.post("/v1/workflows/"+run+"/stop", ""), 202)
	})
}

// Field case 63: what has not begun is taken back by its interrupt, or as an input; then
// its turn never begins, and nothing stands in the way of the next.
func TestWithdraw(t *testing.T) {
	started := make(chan string, 10)
	bubble(t, bedOptions{agent: newWorker(started)}, func(t *testing.T, b *bed) {
		b.create("s1", "")
		b.create("s2", "")
		stream := b.stream("sessionId="+uuid("s1"), "")
		first := b.tell("s1", "work", "")
		synctest.Wait()
		one, two, three := b.tell("s1", "one", ""), b.tell("s1", "two", ""), b.tell("s1", "three", "")
		input := func(session string, of reply) string { return path(session, "inputs/"+of.field("entryId")) }
		b.wantError(b.delete(input("s2", one)), narya.CodeNotWaiting)
		b.wantError(b.delete(path("s1", "inputs/x")), narya.CodeNotWaiting)
		b.wantError(b.delete(input("s1", first)), narya.CodeNotWaiting)
		stream.now()
		got := b.want(b.delete(input("s1", one)), 200)
		if got.field("entryId") != one.field("entryId") || got.field("turnId") != one.field("turnId") {
			t.Errorf("got %s, want %s", got, one)
		}
		events := stream.now()
		if len(events) != 1 || events[0].Payload.(*narya.QueuedInputWithdrawn).EntryID != one.field("entryId") {
			t.Errorf("got %v, want that the message was withdrawn", kinds(events))
		}
		b.wantError(b.delete(input("s1", one)), narya.CodeNotWaiting)
		b.want(b.post(path("s1", "interrupt"), `{"turnId":`+quote(two.field("turnId"))+`}`), http.StatusAccepted)
		b.want(b.post(path("s1", "interrupt"), `{"turnId":`+quote(two.field("turnId"))+`}`), http.StatusAccepted)
		b.waiting("s1", three)
		if events = stream.now(); len(events) != 1 || events[0].Type() != narya.TypeQueuedInputWithdrawn {
			t.Errorf("got %v, want one withdrawal", kinds(events))
		}
		b.want(b.post(path("s1", "interrupt"), ""), http.StatusAccepted)
		synctest.Wait()
		b.want(b.post(path("s1", "inputs/release"), ""), http.StatusAccepted)
		synctest.Wait()
		b.wantError(b.delete(input("s1", three)), narya.CodeNotWaiting)
		for _, e := range stream.now() {
			if p, ok := e.Payload.(*narya.TurnStarted); ok && p.TurnID != three.field("turnId") {
				t.Errorf("a turn began that was taken back: %s", e.data)
			}
		}
		if got := fmt.Sprintf("%d %s %s", len(started), <-started, <-started); got != "2 work three" {
			t.Errorf("the agent ran %s", got)
		}
	})
}

// What was taken back can be told again: with its key it has the first answer, however long
// ago its message waited, and another entry under the key is refused.
func TestWithdrawToldAgain(t *testing.T) {
	bubble(t, bedOptions{agent: newWorker(make(chan string, 10))}, func(t *testing.T, b *bed) {
		b.create("s1", "")
		b.create("s2", "")
		b.tell("s1", "work", "")
		synctest.Wait()
		b.want(b.post(path("s2", "intercom"), `{"to":`+quote(b.nameOf(uuid("s1")))+`,"content":"from two"}`), http.StatusAccepted)
		synctest.Wait()
		b.tell("s1", "one", "")
		two := b.tell("s1", "two", "")
		inputs := b.want(b.get("/v1/sessions/"+uuid("s1")), 200).items("pendingInputs")
		if len(inputs) != 3 {
			t.Fatalf("%d messages wait, want 3", len(inputs))
		}
		for _, item := range inputs[:2] {
			entry := reply{body: item}.field("entryId")
			input, key := path("s1", "inputs/"+entry), "k:"+entry
			first := b.want(b.withKey(key, "DELETE", input, ""), 200)
			if again := b.want(b.withKey(key, "DELETE", input, ""), 200); again.body != first.body {
				t.Errorf("told again: got %s, want %s", again, first)
			}
			b.wantError(b.withKey(key, "DELETE", path("s1", "inputs/"+two.field("entryId")), ""), narya.CodeConflict)
			b.wantError(b.withKey("other:"+entry, "DELETE", input, ""), narya.CodeNotWaiting)
		}
		b.waiting("s1", two)
	})
}

// A word or an id that is empty is none: it is refused, and not taken for one that is absent,
// which would mean whatever is under way, or everything.
func TestEmptyIsNotAbsent(t *testing.T) {
	bubble(t, bedOptions{agent: acts(permits)}, func(t *testing.T, b *bed) {
		b.create("s1", "go")
		synctest.Wait()
		repository := `"repository":` + quote(t.TempDir())
		before := b.newest()
		for _, c := range []struct{ path, body, field string }{
			{path("s1", "interrupt"), `{"turnId":""}`, "turnId"},
			{path("s1", "branch"), `{"entryId":""}`, "entryId"},
			{path("s1", "branch"), `{"sessionId":""}`, "sessionId"},
			{path("s1", "branch"), `{"clientKind":""}`, "clientKind"},
			{path("s1", "messages"), `{"content":"x","messageId":""}`, "messageId"},
			{path("s1", "messages"), `{"content":"x","kind":""}`, "kind"},
			{path("s1", "intercom"), `{"to":"x","content":"x","kind":""}`, "kind"},
			{"/v1/sessions", `{` + repository + `,"sessionId":""}`, "sessionId"},
			{"/v1/sessions", `{` + repository + `,"clientKind":""}`, "clientKind"},
			{"/v1/sessions", `{` + repository + `,"posture":""}`, "posture"},
			{"/v1/permissions/" + b.only() + "/decision", `{"decision":"allow","remember":""}`, "remember"},
		} {
			b.wantError(b.post(c.path, c.body), narya.CodeInvalid, c.field)
		}
		b.wantError(b.put(path("s1", "posture"), `{"posture":""}`), narya.CodeInvalid, "posture")
		for _, query := range []string{"sessions?repository=", "sessions?status=", "models?agent=", "permissions?sessionId="} {
			b.wantError(b.get("/v1/"+query), narya.CodeMalformed)
		}
		if got := b.newest(); got != before {
			t.Errorf("%d events came of refusals", got-before)
		}
	})
}

// Who may only look gives no work, stops none and takes nothing back.
func TestWhoMaySpeak(t *testing.T) {
	bubble(t, bedOptions{agent: acts(waits), tcp: true}, func(t *testing.T, b *bed) {
		b.create("s1", "go")
		observer := b.as("observer", access.Grant{Roles: []access.Role{access.Observe}})
		stranger := b.as("stranger", access.Grant{Roles: []access.Role{access.Drive}, Workspaces: []string{"other"}})
		for operation, body := range map[string]string{"messages": `{"content":"x"}`, "interrupt": "", "inputs/release": ""} {
			b.wantError(observer.post(path("s1", operation), body), narya.CodeForbidden)
			b.wantError(stranger.post(path("s1", operation), body), narya.CodeSessionNotFound)
		}
		entry := path("s1", "inputs/0198c2f0-7c1e-7b0a-9f0e-3a5b7c9d1e2f")
		b.wantError(observer.delete(entry), narya.CodeForbidden)
		b.wantError(stranger.delete(entry), narya.CodeSessionNotFound)
	})
}
