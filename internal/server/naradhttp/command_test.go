package naradhttp_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// Field case 45: a message whose answer was lost has one effect, also after a restart.
func TestAMessageIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, rigOptions{})
		r.create("s1")
		body := `{"sessionId":"s1","content":"hi","commandId":"c1","messageId":"m1"}`
		first := r.post("/commands/message", body)
		r.wantWord(first, 202, "accepted")
		synctest.Wait()
		for range 3 {
			if again := r.post("/commands/message", body); again.status != 202 || again.body != first.body {
				t.Errorf("again: got %s, want %s", again, first)
			}
		}
		other := r.post("/commands/message", `{"sessionId":"s1","content":"other","commandId":"c1"}`)
		r.wantWord(other, 409, "conflict")
		if other.field("runId") != first.field("runId") || other.field("sessionSequence") != first.field("sessionSequence") {
			t.Errorf("other content: got %s, want it to name the first effect %s", other, first)
		}
		r.close()

		again := start(t, rigOptions{before: r})
		if got := again.post("/commands/message", body); got.status != 202 || got.body != first.body {
			t.Errorf("after a restart: got %s, want %s", got, first)
		}
		again.token = again.newToken("second", everything())
		got := again.post("/commands/message", `{"sessionId":"s1","content":"hi","messageId":"m1"}`)
		again.wantWord(got, 202, "accepted") // the id of the message is a key as well, whoever sends it
		if got.field("runId") != first.field("runId") {
			t.Errorf("by its message id: got %s, want %s", got, first)
		}
		if n := again.count("s1", narad.TypeRunStarted); n != 1 {
			t.Errorf("got %d runs, want one", n)
		}
	})
}

func TestMessageToABusySession(t *testing.T) {
	bubble(t, rigOptions{agent: waits}, func(t *testing.T, r *rig) {
		r.create("s1")
		run := r.say("s1", "work")
		got := r.post("/commands/message", `{"sessionId":"s1","content":"x","whenBusy":"reject"}`)
		r.wantWord(got, 409, "conflict")
		if got.field("runId") != run {
			t.Errorf("got %s, want the active run %s", got, run)
		}
		r.wantWord(r.post("/commands/message", `{"sessionId":"s1","content":"x","whenBusy":"steer"}`), 501, "unsupported")
		r.wantWord(r.post("/commands/message", `{"sessionId":"s1","content":"x","whenBusy":"queue"}`), 202, "accepted")
		r.wantWord(r.post("/commands/message", `{"sessionId":"s1","content":"x","attachmentIds":["a1"]}`), 422, "rejected")
		r.wantWord(r.post("/commands/message", `{"sessionId":"s1","content":""}`), 422, "rejected")
		r.wantWord(r.post("/commands/start-workflow", `{"sessionId":"s1","definition":{}}`), 422, "rejected")
	})
}

// Field case 59: a second stop is a success without a second effect, and a run that had
// ended by itself says so.
func TestStopTwice(t *testing.T) {
	bubble(t, rigOptions{agent: waits}, func(t *testing.T, r *rig) {
		r.create("s1")
		run := r.say("s1", "work")
		stop := func(key string) reply {
			return r.post("/commands/stop-active-root", `{"sessionId":"s1","rootRunId":"`+run+`","commandId":"`+key+`","reason":"enough"}`)
		}
		first := stop("k1")
		r.wantWord(first, 202, "accepted")
		r.wantWord(stop("k2"), 200, "already_applied")
		synctest.Wait()
		r.wantWord(stop("k3"), 200, "already_applied")
		if again := stop("k1"); again.body != first.body {
			t.Errorf("the first stop again: got %s, want %s", again, first)
		}
		r.wantWord(r.post("/commands/stop-active-root", `{"sessionId":"s1"}`), 200, "already_applied")
		if n := r.count("s1", narad.TypeRunStopRequested); n != 1 {
			t.Errorf("got %d stop facts, want one", n)
		}
	})
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		run := r.say("s1", "hi")
		synctest.Wait()
		before := r.heads()
		got := r.post("/commands/stop-active-root", `{"sessionId":"s1","rootRunId":"`+run+`"}`)
		r.wantWord(got, 409, "conflict")
		if r.heads() != before {
			t.Error("the stop of a run that had ended appended something")
		}
	})
}

// Field case 63: what waits can be cancelled, never starts, and blocks nothing.
func TestCancelWhatIsQueued(t *testing.T) {
	release := make(chan struct{}, 8)
	steps := func(ctx context.Context, h agent.Handle) agent.Ending {
		select {
		case <-release:
			return agent.Ending{StopReason: "completed"}
		case <-ctx.Done():
			return agent.Ending{Outcome: agent.Cancelled}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		release = make(chan struct{}, 8) // of this bubble
		r := start(t, rigOptions{agent: steps})
		r.create("s1")
		r.say("s1", "one")
		two, three, four := r.say("s1", "two"), r.say("s1", "three"), r.say("s1", "four")
		withdraw := `{"sessionId":"s1","action":"withdraw","runId":"` + two + `"}`
		r.wantWord(r.post("/commands/queue", withdraw), 202, "accepted")
		r.wantWord(r.post("/commands/queue", withdraw), 200, "already_applied")
		r.wantWord(r.post("/commands/stop-active-root", `{"sessionId":"s1","rootRunId":"`+three+`"}`), 202, "accepted")
		r.wantWord(r.post("/commands/queue", `{"sessionId":"s1","action":"withdraw","runId":"nothing"}`), 404, "not_found")
		release <- struct{}{}
		synctest.Wait()
		r.wantWord(r.post("/commands/queue", `{"sessionId":"s1","action":"withdraw","runId":"`+four+`"}`), 409, "conflict")
		release <- struct{}{}
		synctest.Wait()
		var started []string
		for _, f := range r.facts("s1") {
			if s, ok := f.(*narad.RunStarted); ok {
				started = append(started, s.RunID)
			}
		}
		if len(started) != 2 || started[1] != four {
			t.Errorf("started %v, want the first and %s", started, four)
		}
	})
}

// K1 and R22: the exact body of the public client, and what a closed interrupt says.
func TestResolve(t *testing.T) {
	bubble(t, rigOptions{agent: asks}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.say("s1", "write")
		synctest.Wait()
		id := r.opened()[0]
		accepted := r.resolve(id, "approve")
		r.wantWord(accepted, 202, "accepted")
		if accepted.field("decision") != "approve" || accepted.field("requestId") != id || accepted.field("sessionSequence") == "" {
			t.Errorf("got %s, want decision, interrupt and place", accepted)
		}
		synctest.Wait()
		before := r.heads()
		for decision, want := range map[string]struct {
			status int
			word   string
		}{"approve": {200, "already_applied"}, "deny": {409, "conflict"}} {
			got := r.resolve(id, decision)
			r.wantWord(got, want.status, want.word)
			if got.field("decision") != "approve" || got.field("sessionSequence") != accepted.field("sessionSequence") {
				t.Errorf("%s: got %s, want the decision and place of %s", decision, got, accepted)
			}
		}
		if r.heads() != before || len(r.opened()) != 0 {
			t.Error("a closed interrupt was changed")
		}
	})
}

// Field cases 22 and 27: what cannot be decided is refused, appends nothing, and spoils
// nothing for the decision that can.
func TestDecisionsThatCannotBe(t *testing.T) {
	bubble(t, rigOptions{agent: asks}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.say("s1", "write")
		synctest.Wait()
		id := r.opened()[0]
		head := r.head("s1")
		before := r.heads()
		tests := []struct {
			body   string
			status int
			word   string // of a command's answer, or the code of a problem
		}{
			{`{"interruptId":"nothing","decision":"approve"}`, 404, "not_found"},
			{`{"interruptId":"ID","decision":"approve_always"}`, 422, "rejected"},
			{`{"interruptId":"ID","decision":"APPROVE"}`, 422, "rejected"},
			{`{"interruptId":"ID","decision":"expired"}`, 422, "rejected"},
			{`{"interruptId":"ID","decision":"approve","members":["m1"]}`, 422, "rejected"},
			{`{"interruptId":"ID","decision":"approve","answers":[{"options":["0"]}]}`, 422, "rejected"},
			{`{"interruptId":"ID","decision":"approve","expectedRevision":0}`, 409, "conflict"},
			{`{"interruptId":"ID","decision":"approve","expectedRevision":1}`, 409, "conflict"},
			{fmt.Sprintf(`{"interruptId":"ID","decision":"approve","expectedRevision":%d}`, head+1), 409, "conflict"},
			{`{"interruptId":"ID","decision":""}`, 400, "invalid_field"},
			{`{"interruptId":"ID","decision":null}`, 400, "invalid_field"},
			{`{"interruptId":"ID"}`, 400, "invalid_field"},
			{`{"decision":"approve"}`, 400, "invalid_field"},
			{`{"interruptId":"ID","decision":"approve","expectedRevision":-1}`, 400, "invalid_field"},
			{`{"interruptId":"ID","decision":"approve","expectedRevision":"1"}`, 400, "invalid_field"},
			{`{"interruptId":"ID","decision":"approve","members":[{"decision":"approve"}]}`, 400, "invalid_field"},
			{`{"interruptId":"ID","decision":"approve","members":[{"requestId":"m1","decision":"deny"}]}`, 400, "invalid_field"},
			{`{"interruptId":"ID","decision":"approve","answers":[{"options":["x"]}]}`, 400, "invalid_field"},
		}
		for _, test := range tests {
			got := r.post("/commands/resolve-interrupt", strings.ReplaceAll(test.body, "ID", id))
			if said := got.field("status") + got.field("code"); got.status != test.status || said != test.word {
				t.Errorf("%s: got %s, want %d %s", test.body, got, test.status, test.word)
			}
		}
		if r.heads() != before || !slices.Equal(r.opened(), []string{id}) {
			t.Errorf("refusals moved the store from %v to %v, or the inbox to %v", before, r.heads(), r.opened())
		}
		body := fmt.Sprintf(`{"interruptId":%q,"decision":"approve","expectedRevision":%d,"reason":null}`, id, head)
		r.wantWord(r.post("/commands/resolve-interrupt", body), 202, "accepted")
	})
}

// Field case 24: of three that wait, the one that is named is decided.
func TestOneAnswerDecidesOne(t *testing.T) {
	three := func(ctx context.Context, h agent.Handle) agent.Ending {
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				<-time.After(time.Duration(i+1) * time.Second)
				n, err := h.StartRun(ctx, agent.Nested{Name: fmt.Sprint("helper ", i)})
				if err == nil {
					asks(ctx, n)
					_ = n.End(ctx, agent.Ending{})
				}
			})
		}
		all.Wait()
		return agent.Ending{}
	}
	bubble(t, rigOptions{agent: three}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.say("s1", "write")
		pass(10 * time.Second)
		open := r.opened()
		if len(open) != 3 {
			t.Fatalf("got %v, want three", open)
		}
		r.wantWord(r.resolve(open[1], "deny"), 202, "accepted")
		synctest.Wait()
		if got, want := r.opened(), []string{open[0], open[2]}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if n := r.count("s1", narad.TypeInterruptResolved); n != 1 {
			t.Errorf("got %d decisions, want one", n)
		}
		r.wantWord(r.resolve(open[2], "approve"), 202, "accepted")
		r.wantWord(r.resolve(open[0], "approve"), 202, "accepted")
		synctest.Wait()
		if n := r.count("s1", narad.TypeRunFinished); n != 7 { // three gates, three helpers, the root
			t.Errorf("got %d runs finished, want seven", n)
		}
	})
}

// Field case 21: of 50 who decide at once one wins, every other learns what was decided,
// and the winner that asks again gets its first answer, also after a restart.
func TestFiftyDecideAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, rigOptions{agent: asks})
		r.create("s1")
		r.say("s1", "write")
		synctest.Wait()
		id := r.opened()[0]
		send := func(r *rig, i int) reply {
			word := []string{"approve", "deny"}[i%2]
			return r.post("/commands/resolve-interrupt", fmt.Sprintf(`{"interruptId":%q,"decision":%q,"commandId":"c%d"}`, id, word, i))
		}
		got := make([]reply, 50)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() { got[i] = send(r, i) })
		}
		all.Wait()
		winner := slices.IndexFunc(got, func(a reply) bool { return a.status == 202 })
		if winner < 0 {
			t.Fatalf("nobody won: %v", got)
		}
		decision := got[winner].field("decision")
		for i, a := range got {
			want := 409
			if i%2 == winner%2 {
				want = 200
			}
			if i != winner && a.status != want || a.field("decision") != decision {
				t.Errorf("decider %d: got %s, want %d and %s", i, a, want, decision)
			}
		}
		synctest.Wait()
		if n := r.count("s1", narad.TypeInterruptResolved); n != 1 {
			t.Errorf("got %d decisions, want one", n)
		}
		if again := send(r, winner); again.status != 202 || again.body != got[winner].body {
			t.Errorf("the winner again: got %s, want %s", again, got[winner])
		}
		r.close()
		later := start(t, rigOptions{agent: asks, before: r})
		if again := send(later, winner); again.status != 202 || again.body != got[winner].body {
			t.Errorf("the winner after a restart: got %s, want %s", again, got[winner])
		}
		later.wantWord(send(later, winner+1), 409, "conflict")
	})
}

// Field case 30: a client that has never been here finds what is asked, and decides it.
func TestAQuestionIsFoundByWhoComesLater(t *testing.T) {
	bubble(t, rigOptions{agent: asks}, func(t *testing.T, r *rig) {
		r.want(r.post("/sessions", `{"sessionId":"s1","title":"A title"}`), 201)
		r.say("s1", "write")
		synctest.Wait()
		var want *narad.InterruptRequested
		for _, f := range r.facts("s1") {
			if asked, ok := f.(*narad.InterruptRequested); ok {
				want = asked
			}
		}
		r.token = r.newToken("later", access.Grant{Roles: []access.Role{access.Decide}})
		for got, err := range r.client().Interrupts(t.Context(), client.InboxQuery{}) {
			if err != nil {
				t.Fatal(err)
			}
			if got.InterruptID != want.InterruptID || got.WaitID != want.WaitID || !slices.Equal(got.Actions, want.Actions) ||
				got.SessionSequence != want.SessionSequence || got.SessionID != "s1" || got.SessionTitle != "A title" ||
				got.RunID != want.RunID || got.Kind != want.Kind || string(got.Input) != string(want.Input) || got.Scope != narad.ScopeRun {
				t.Errorf("got  %s\nwant %+v", got.Raw, want)
			}
		}
		r.wantWord(r.resolve(want.InterruptID, "approve"), 202, "accepted")
		if n := r.count("s1", narad.TypeInterruptRequested); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// R24: redaction is an administrator's, and is what every display shows from then on.
func TestRedact(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.want(r.post("/commands/message", `{"sessionId":"s1","content":"a secret","messageId":"m1"}`), 202)
		synctest.Wait()
		body := `{"sessionId":"s1","messageId":"m1","reason":"a leak","displayReplacement":"[gone]"}`
		admin := r.token
		r.token = r.newToken("driver", access.Grant{Roles: []access.Role{access.Drive, access.Observe, access.Decide}})
		r.wantWord(r.post("/commands/redact", body), 403, "forbidden")
		r.token = admin
		r.wantWord(r.post("/commands/redact", `{"sessionId":"s1","messageId":"other","reason":"a leak"}`), 404, "not_found")
		r.wantWord(r.post("/commands/redact", `{"sessionId":"s1","messageId":"m1"}`), 422, "rejected")
		r.wantWord(r.post("/commands/redact", body), 202, "accepted")
		got := r.want(r.get("/sessions/s1/messages"), 200)
		if strings.Contains(got.body, "a secret") || !strings.Contains(got.body, `"content":"[gone]"`) || !strings.Contains(got.body, `"redacted":true`) {
			t.Errorf("got %s", got)
		}
		r.wantWord(r.post("/commands/redact", `{"sessionId":"s1","messageId":"m1","reason":"again"}`), 202, "accepted")
		got = r.want(r.get("/sessions/s1/messages"), 200)
		if strings.Contains(got.body, "gone") || strings.Contains(got.body, "a secret") {
			t.Errorf("without a replacement: got %s", got)
		}
	})
}
