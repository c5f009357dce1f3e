package field_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/mahati-host/mahati/narad"
)

// attempt is a request that may be sent again, and what may be seen of its effect.
type attempt struct {
	path string
	body object
	// again is the status that acknowledges a repetition.
	again int
	// ids are the fields of the answer that stay the same.
	ids []string
}

// Case 45. Owed: a request whose answer was lost has one effect, however often it is sent
// again, also to the next host; and each repetition is told the ids of that effect.
func TestCase45TheAnswerIsLost(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
rules:
  - {contains: wait, play: wait}
  - {play: work}
scenarios:
  work: [{tool: {name: work}}, {say: Done.}]
  wait: [{ask: {title: "Go on?", on: {approve: [{tool: {name: work}}]}}}]
`)
	p := newProxy(b)
	effect := func() (facts int) {
		for _, id := range []string{"s1", "s2", "asks", "stops", "queues", "new"} {
			if a := b.get("/sessions/" + id); a.status == http.StatusOK {
				facts += 1000 + int(b.head(id)) // a session more is an effect, too
			}
		}
		return facts
	}
	for _, id := range []string{"s1", "s2", "asks", "stops", "queues"} {
		b.session(id)
	}
	asking, stopping := b.say("asks", "wait"), b.say("stops", "wait")
	interrupt := b.awaitAsk("asks", 1).InterruptID
	b.awaitAsk("stops", 1)
	b.say("queues", "wait")
	b.awaitAsk("queues", 1)
	queued := b.say("queues", "later")

	run := []string{"runId", "sessionSequence"}
	attempts := []struct {
		name string
		attempt
		settle func(a answer) // until nothing of the effect is left to come
	}{
		{"create", attempt{"/sessions", object{"sessionId": "new", "title": "New"}, 200, []string{"sessionId", "createdAt", "title"}}, nil},
		{"message", attempt{"/commands/message", object{"sessionId": "s1", "content": "go", "commandId": "m1"}, 202, run},
			func(a answer) { b.awaitEnd("s1", a.field("runId")) }},
		{"message by its messageId", attempt{"/commands/message", object{"sessionId": "s2", "content": "go", "messageId": "m2"}, 202, run},
			func(a answer) { b.awaitEnd("s2", a.field("runId")) }},
		{"decision", attempt{"/commands/resolve-interrupt", object{"interruptId": interrupt, "decision": "approve", "commandId": "m3"}, 202,
			[]string{"decision", "requestId", "sessionSequence"}}, func(answer) { b.awaitEnd("asks", asking) }},
		{"stop", attempt{"/commands/stop-active-root", object{"sessionId": "stops", "rootRunId": stopping, "commandId": "m4"}, 202, run},
			func(answer) { b.awaitEnd("stops", stopping) }},
		{"message that waits", attempt{"/commands/message", object{"sessionId": "queues", "content": "go", "commandId": "m5"}, 202, run}, nil},
		{"withdrawal", attempt{"/commands/queue", object{"sessionId": "queues", "action": "withdraw", "runId": queued, "commandId": "m6"}, 202, run}, nil},
	}
	first := make([]answer, len(attempts))
	for i, at := range attempts {
		before, dropped := effect(), p.drops()
		p.set(dropping)
		if a, err := b.do(p.url, http.MethodPost, at.path, at.body); err == nil || p.drops() != dropped+1 {
			t.Fatalf("%s: got %v through a proxy that drops answers", at.name, a)
		}
		p.set(passing)
		// Impatient clients repeat all at once.
		const clients = 8
		answers := make([]answer, clients)
		var all sync.WaitGroup
		for n := range clients {
			all.Go(func() { answers[n], _ = b.do(p.url, http.MethodPost, at.path, at.body) })
		}
		all.Wait()
		first[i] = answers[0]
		if at.settle != nil {
			at.settle(first[i])
		}
		for _, a := range answers {
			wantAcknowledged(t, at.name, a, at.attempt, first[i])
		}
		if after := effect(); after == before {
			t.Errorf("%s: no effect", at.name)
		}
	}
	after := effect()
	b.restart()
	for i, at := range attempts {
		wantAcknowledged(t, at.name+" after a restart", b.post(at.path, at.body), at.attempt, first[i])
		wantAcknowledged(t, at.name+" once more", b.post(at.path, at.body), at.attempt, first[i])
	}
	if got := effect(); got != after {
		t.Errorf("repetitions after a restart had an effect: %d, then %d", after, got)
	}
	for id, want := range map[string][2]int{"s1": {1, 1}, "s2": {1, 1}, "asks": {1, 1}, "stops": {1, 0}, "queues": {1, 0}, "new": {0, 0}} {
		events := decode(t, b.facts(id))
		b.state(id)
		runs, tools := len(only[*narad.RunStarted](events)), len(only[*narad.ToolCallStarted](events))
		if got := [2]int{runs, tools}; got != want {
			t.Errorf("%s: got %d runs and %d calls, want %v", id, runs, tools, want)
		}
	}
	if users := len(only[*narad.MessageUserRecorded](decode(t, b.facts("s1")))); users != 1 {
		t.Errorf("the message is recorded %d times, want once", users)
	}
	// The same key for something else is no repetition.
	other := object{"sessionId": "s1", "content": "something else", "commandId": "m1"}
	if a := b.post("/commands/message", other); a.status != http.StatusConflict || a.field("runId") != first[1].field("runId") {
		t.Errorf("another message under the key of the first: got %v, want 409 naming run %s", a, first[1].field("runId"))
	}
}

// wantAcknowledged demands that a repetition is told what the first attempt would have
// been told.
func wantAcknowledged(t *testing.T, name string, got answer, at attempt, first answer) {
	t.Helper()
	if got.status != at.again {
		t.Errorf("%s: got %v, want %d", name, got, at.again)
	}
	for _, id := range at.ids {
		if got.field(id) == "" || got.field(id) != first.field(id) {
			t.Errorf("%s: got %s %q in %v, want %q", name, id, got.field(id), got, first.field(id))
		}
	}
}
