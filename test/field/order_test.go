package field_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// idAt is an id of the kind that clients make from their clocks (UUIDv7).
func idAt(at time.Time, n int) string {
	ms := at.UnixMilli()
	return fmt.Sprintf("%08x-%04x-7%03x-8000-%012x", ms>>16, ms&0xffff, n, n)
}

// Case 102. Clients' clocks decide nothing: whatever time their ids and fields claim, each
// message has exactly one turn, in the order in which they were accepted. (That the
// host's own clock may jump is shown by internal/host.TestClockJumps.)
func TestCase102ClientsWithWrongClocks(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps: [{say: \"You said: {{prompt}}\"}]\n")
	b.session("s1")
	var want []string
	var last string
	for n, off := range []time.Duration{10 * time.Minute, -10 * time.Minute, 0, time.Hour, -time.Hour, 24 * time.Hour, -10 * time.Minute, 10 * time.Minute} {
		at := time.Now().Add(off)
		text := fmt.Sprint("message ", n)
		want = append(want, text)
		body := object{
			"sessionId": "s1", "content": text, "messageId": idAt(at, n), "commandId": idAt(at, 100+n),
			"timestamp": at.UTC().Format(time.RFC3339Nano), "createdAt": at.UnixMilli(),
		}
		first := b.post("/commands/message", body)
		if first.status != http.StatusAccepted {
			t.Fatalf("message %d: got %v", n, first)
		}
		last = first.field("runId")
		if again := b.post("/commands/message", body); again.String() != first.String() {
			t.Errorf("message %d again: got %v, want %v", n, again, first)
		}
		body["commandId"] = idAt(at.Add(-time.Hour), 200+n) // another key, the same message
		if again := b.post("/commands/message", body); again.field("runId") != last {
			t.Errorf("message %d under another key: got %v, want run %s", n, again, last)
		}
	}
	b.awaitEnd("s1", last)
	var said []string
	turns := map[string]int{}
	for _, e := range decode(t, b.facts("s1")) {
		switch f := e.(type) {
		case *narad.MessageUserRecorded:
			said = append(said, f.Content)
		case *narad.RunStarted:
			turns[f.RunID]++
		}
	}
	if !slices.Equal(said, want) || len(turns) != len(want) {
		t.Errorf("got %q in %d turns, want %q", said, len(turns), want)
	}
	b.state("s1") // sequences without a hole
}

// Case 104. Pages are cut by sequence: whatever the size of the pages, the same facts come
// in the same order, though many have one timestamp. So do sessions and open questions,
// of which many were made at once.
func TestCase104PagesKeepTies(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
rules:
  - {contains: ask, play: ask}
  - {play: many}
scenarios:
  ask: [{ask: {title: "Sure?"}}]
  many:
    - repeat:
        times: 50
        steps:
          - parallel:
              - - repeat: {times: 5, steps: [{custom: {name: many.a, value: 1}}]}
              - - repeat: {times: 5, steps: [{custom: {name: many.b, value: 2}}]}
              - - repeat: {times: 10, steps: [{custom: {name: many.c, value: 3}}]}
`, "MAHATI_AGENTS_MAX_RUNNING=30")
	b.session("s1")
	b.awaitEnd("s1", b.say("s1", "go"))
	want := b.facts("s1")
	if len(want) < 1_000 {
		t.Fatalf("only %d facts", len(want))
	}
	times := map[string]int{}
	for _, e := range decode(t, want) {
		times[e.Envelope().Timestamp]++
	}
	if len(times) > len(want)*9/10 {
		t.Logf("%d facts have %d timestamps: few ties (frozen time: internal/server/naradhttp.TestEveryPagingGivesTheSame)", len(want), len(times))
	}
	for _, limit := range []int{1, 7, 100, 1_000} {
		var got []narad.Raw
		for raw, err := range b.client().Events(t.Context(), "s1", client.HistoryQuery{Limit: limit}) {
			b.must(err)
			got = append(got, slices.Clone(raw))
		}
		if !equalFacts(got, want) {
			t.Errorf("pages of %d: got %d facts, want the same %d", limit, len(got), len(want))
		}
	}

	var ids []string
	for n := range 25 {
		id := fmt.Sprint("list", n)
		b.session(id)
		b.say(id, "ask")
		ids = append(ids, id)
	}
	b.eventually("all questions are open", func() bool {
		page, err := b.client().Inbox(b.context(), client.InboxQuery{Limit: 100})
		return err == nil && len(page.Items) == len(ids)
	})
	var sessions, questions []string
	for _, limit := range []int{100, 1, 7} {
		var gotSessions, gotQuestions []string
		for s, err := range b.client().Sessions(b.context(), client.SessionQuery{Limit: limit}) {
			b.must(err)
			gotSessions = append(gotSessions, s.SessionID)
		}
		for i, err := range b.client().Interrupts(b.context(), client.InboxQuery{Limit: limit}) {
			b.must(err)
			gotQuestions = append(gotQuestions, i.SessionID)
		}
		if sessions == nil {
			sessions, questions = gotSessions, gotQuestions
		}
		if !slices.Equal(gotSessions, sessions) || len(sessions) != len(ids)+1 {
			t.Errorf("sessions in pages of %d: got %v, want %v", limit, gotSessions, sessions)
		}
		if !slices.Equal(gotQuestions, questions) || len(questions) != len(ids) {
			t.Errorf("questions in pages of %d: got %v, want %v", limit, gotQuestions, questions)
		}
	}
}

// Case 107. What an agent does one after the other stands so in every view, though its text
// comes a byte at a time and is gathered: all of a text before the call that follows it,
// nothing of a message after its end, the last piece before the end of the message and
// the run.
func TestCase107OneOrder(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
defaults: {chunk: 1, pace: 1ms}
steps:
  - think: thought one
  - say: text one
  - tool: {name: tool1, output: {text: "output one", chunk: 1}, respond: 1}
  - say: text two
  - tool: {name: tool2, output: {text: "output two", chunk: 1}, respond: 2}
  - say: {text: text three, pace: 0s}
`)
	b.session("s1")
	run := b.say("s1", "go")
	live := b.stream("s1", "?afterSessionSequence=0", "")
	var seen []narad.Raw
	for ended := false; !ended; {
		f, e := live.fact()
		seen = append(seen, narad.Raw(f.data))
		ended = terminal(e) && e.Envelope().RunID == run
	}
	const want = "thought one. text one. tool1( output one ) text two. tool2( output two ) text three. end"
	for view, facts := range map[string][]narad.Raw{"live": seen, "history": b.facts("s1")} {
		reduce(t, facts)
		var story strings.Builder
		completed := map[string]bool{}
		for _, e := range decode(t, facts) {
			switch f := e.(type) {
			case *narad.ReasoningDelta:
				story.WriteString(f.Delta)
			case *narad.ReasoningCompleted:
				story.WriteString(". ")
			case *narad.MessageTextDelta:
				if completed[f.MessageID] {
					t.Errorf("%s: a piece of message %s after its end", view, f.MessageID)
				}
				story.WriteString(f.Delta)
			case *narad.MessageTextCompleted:
				completed[f.MessageID] = true
				story.WriteString(". ")
			case *narad.ToolCallStarted:
				story.WriteString(f.ToolName + "( ")
			case *narad.Custom:
				if text, ok := narad.Raw(f.Value).Field("text").IsString(); ok {
					story.WriteString(text)
				}
			case *narad.ToolCallFinished:
				story.WriteString(" ) ")
			case *narad.RunFinished:
				story.WriteString("end")
			}
		}
		if got := story.String(); got != want {
			t.Errorf("%s: got %q, want %q", view, got, want)
		}
	}
}
