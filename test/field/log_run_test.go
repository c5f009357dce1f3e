package field_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/narad"
)

// Case 3. Owed: a run that nobody follows has the same log, whole, to who comes later.
func TestCase3TheLogOfARunThatNobodyFollowed(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
steps:
  - delay: 200ms
  - think: First.
  - say: {text: "The text of the run.", chunk: 5, pace: 20ms}
  - tool: {name: t1, output: out, respond: {n: 1.10}}
  - agent: {name: writer, tool: task, steps: [{say: "From below."}]}
  - say: The end.
`)
	b.session("followed")
	b.session("alone")
	followed, alone := b.starts("followed", "go"), b.starts("alone", "go")
	live := b.follow(b.url, followed, "credit=1000")
	for live.records(1) {
	}
	l := b.whole("followed", followed)
	if !slices.Equal(live.lines, l.lines) {
		t.Errorf("followed:\n%s\nread:\n%s", strings.Join(live.lines, "\n"), strings.Join(l.lines, "\n"))
	}
	quiet := b.whole("alone", alone)
	outline := func(l runLog) (kinds []harness.Type) { return slices.Compact(l.kinds()) }
	if !slices.Equal(outline(quiet), outline(l)) {
		t.Errorf("nobody followed: %v, want %v", outline(quiet), outline(l))
	}
	b.restart()
	if again := b.logOf(alone, ""); !slices.Equal(again.lines, quiet.lines) {
		t.Error("after a restart the log is another")
	}
}

// Case 39. Owed: what a crash has cut off is told to have an unknown outcome and is not done
// again under the same call; what was told before stands as it was.
func TestCase39TheLogOverACrashInABatch(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
steps:
  - tool: {name: one, run: "echo one >> ran"}
  - tool: {name: two, run: "echo two >> ran; sleep 300; echo late >> ran", on: {unknown: [{tool: {name: two, run: "echo again >> ran"}}]}}
  - tool: {name: three, run: "echo three >> ran"}
`)
	dir := b.session("s1")
	run := b.starts("s1", "go")
	ran := filepath.Join(dir, "ran")
	awaitLine(t, ran, "two")
	before := b.logOf(run, "")
	b.restart()
	l := b.whole("s1", run)
	if !slices.Equal(l.lines[:len(before.lines)], before.lines) {
		t.Error("what was told before the crash is told otherwise")
	}
	var names []string
	status := map[string]string{}
	for _, e := range l.of(harness.ToolStarted) {
		names = append(names, payload[harness.Tool](t, e).Name)
	}
	for _, e := range l.of(harness.ToolCompleted) {
		call := payload[harness.Tool](t, e)
		if status[call.CallID] != "" {
			t.Errorf("call %s ended twice", call.CallID)
		}
		status[call.CallID] = call.Status
		if unknown := strings.Contains(string(e.Payload), "outcome_unknown"); unknown != (call.Name == "two" && len(status) == 2) {
			t.Errorf("call %s ended as %s", call.Name, e.Payload)
		}
	}
	if want := []string{"one", "two", "two", "three"}; !slices.Equal(names, want) || len(status) != 4 {
		t.Errorf("the calls are %v with the ends %v, want %v", names, status, want)
	}
	if got, want := lines(t, ran), []string{"one", "two", "again", "three"}; !slices.Equal(got, want) {
		t.Errorf("commands wrote %v, want %v", got, want)
	}
}

// Case 50. Owed: ends of calls that run at once name their calls, and one that fails takes no
// other with it.
func TestCase50TheLogPairsCallsByID(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
steps:
  - parallel:
      - - tool: {name: look, args: {n: 1}, delay: 300ms, outcome: error, code: broke, message: It broke., respond: {n: 1}}
      - - tool: {name: look, args: {n: 2}, delay: 500ms, respond: {n: 2}}
      - - tool: {name: look, args: {n: 3}, delay: 100ms, respond: {n: 3}}
`)
	b.session("s1")
	run := b.starts("s1", "go")
	l := b.whole("s1", run)
	n := func(e harness.Event) string {
		at := strings.Index(string(e.Payload), `"n":`)
		if at < 0 {
			return "?"
		}
		return string(e.Payload[at+4])
	}
	asked := map[string]string{}
	for _, e := range l.of(harness.ToolStarted) {
		asked[e.CorrelationID] = n(e)
	}
	var order []string
	for _, e := range l.of(harness.ToolCompleted) {
		call := payload[harness.Tool](t, e)
		if call.CallID != e.CorrelationID || asked[call.CallID] != n(e) {
			t.Errorf("the call of %s ended as that of %s: %s", asked[call.CallID], n(e), e.Payload)
		}
		order = append(order, n(e)+" "+call.Status)
	}
	if len(order) != 3 || order[0][0] != '3' || order[1][0] != '1' || order[2][0] != '2' || order[0][2:] != order[2][2:] || order[0][2:] == order[1][2:] {
		t.Errorf("the ends are %q, want 3, 1 and 2, and 1 alone failed", order)
	}
	if end := payload[harness.Lifecycle](t, l.of(harness.RunCompleted)[0]); end.Status != "completed" {
		t.Errorf("the run ended %+v", end)
	}
}

// Case 51. Owed: no log stays without an end after a crash: what can go on does, and what
// waited has its turn.
func TestCase51TheLogsOverACrash(t *testing.T) {
	t.Parallel()
	b := newBed(t, manyThings)
	dir := b.session("s1")
	run := b.starts("s1", "work")
	b.pidIn(filepath.Join(dir, "shell.pid"))
	queued := b.starts("s1", "queued")
	b.eventually("text of the root and of the nested run", func() bool {
		spoke := map[bool]bool{}
		for _, e := range b.logOf(run, "").of(harness.MessageDelta) {
			spoke[payload[harness.In](t, e).SubrunID == ""] = true
		}
		return len(spoke) == 2
	})
	if l := b.logOf(queued, ""); len(l.lines) > 0 || l.ended {
		t.Errorf("a run that waits: %v", l.lines)
	}
	waiting := b.follow(b.url, queued, "credit=100")
	b.restart()
	waiting.close()
	for _, id := range []string{run, queued, b.starts("s1", "new")} {
		l := b.whole("s1", id)
		if end := l.of(harness.RunCompleted); len(end) != 1 || payload[harness.Lifecycle](t, end[0]).Status != "completed" {
			t.Errorf("%s ended as %v", id, end)
		}
	}
}

// Case 51, where the agent cannot go on: the run is told to have failed, and everything of it
// is closed first.
func TestCase51TheLogOfARunThatACrashEnded(t *testing.T) {
	t.Parallel()
	b := newACPBed(t)
	dir := b.acpSession("s1")
	run := b.starts("s1", "open")
	b.pidIn(filepath.Join(dir, "agent.pid"))
	b.eventually("text", func() bool { return len(b.logOf(run, "").of(harness.MessageDelta)) > 0 })
	before := b.logOf(run, "")
	b.restart()
	l := b.whole("s1", run)
	if !slices.Equal(l.lines[:len(before.lines)], before.lines) {
		t.Error("what was told before the crash is told otherwise")
	}
	failure := l.of(harness.ErrorReported)
	if len(failure) == 0 || payload[harness.Failure](t, failure[len(failure)-1]).Code != "host_restarted" {
		t.Errorf("got %v, want host_restarted", failure)
	}
	if end := payload[harness.Lifecycle](t, l.of(harness.RunCompleted)[0]); end.Status != "failed" {
		t.Errorf("the run ended %+v", end)
	}
}

// Case 52. Owed: a host that dies while it appends has told nobody of a record that is not
// there afterwards, and the log goes on without a hole.
func TestCase52TheLogOfARunThatWasAppended(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
steps:
  - repeat: {times: 400, steps: [{tool: {name: tick, respond: {round: "{{round}}"}}}]}
`)
	random := rand.New(rand.NewPCG(52, 0))
	b.session("s1")
	run := b.starts("s1", "go")
	var seen runLog
	for range sized(3, 100) {
		live := b.follow(b.url, run, "credit=100000&cursor="+seen.next)
		for range 20 + random.IntN(60) {
			if !live.records(1) {
				break
			}
		}
		b.kill()
		for live.records(1) { // what was on its way was there, too
		}
		seen.lines = append(seen.lines, live.lines...)
		seen.next = live.position()
		b.start()
	}
	l := b.whole("s1", run)
	if len(seen.lines) > len(l.lines) || !slices.Equal(l.lines[:len(seen.lines)], seen.lines) {
		t.Errorf("%d records were seen, of %d: not the same", len(seen.lines), len(l.lines))
	}
}

// Case 58. Owed: a cancel that was accepted ends the work: nothing starts behind it, and no
// process of the run works on.
func TestCase58CancelReachesTheTool(t *testing.T) {
	t.Parallel()
	b := newBed(t, deaf, "MAHATI_AGENTS_CANCEL_GRACE=2s")
	dir := b.session("s1")
	run := b.starts("s1", "work")
	shell, grandchild := b.pidIn(filepath.Join(dir, "shell.pid")), b.pidIn(filepath.Join(dir, "grandchild.pid"))
	grows := filepath.Join(dir, "grows")
	b.eventually("the grandchild writes", func() bool { return sizeOf(grows) > 10 })
	if a := b.tell(run, "stop", cancels("enough")); a.status != http.StatusAccepted {
		t.Fatalf("cancel: %v", a)
	}
	before := len(b.logOf(run, "").lines) // nothing but the end comes behind the answer
	l := b.whole("s1", run)
	if l.ended && before < len(l.lines) {
		l.endsCanceled(t, len(l.lines)-2)
		if before < len(l.lines)-2 {
			t.Errorf("%d records came after the cancel was accepted", len(l.lines)-2-before)
		}
	}
	b.eventually("the group of the tool is gone", func() bool { return !alive(shell) && !alive(grandchild) })
	size := sizeOf(grows)
	time.Sleep(300 * time.Millisecond)
	if now := sizeOf(grows); now != size {
		t.Errorf("the file grew from %d to %d bytes", size, now)
	}
}

// Case 59. Owed: a second cancel is no error and no second end; of a run that ended by itself
// it is said that it had ended.
func TestCase59CancelTwice(t *testing.T) {
	t.Parallel()
	b := newBed(t, deaf)
	dir := b.session("s1")
	run := b.starts("s1", "work")
	b.pidIn(filepath.Join(dir, "grandchild.pid"))
	first := b.tell(run, "stop", cancels("enough"))
	if first.status != http.StatusAccepted {
		t.Fatalf("cancel: %v", first)
	}
	again := func(when string) {
		t.Helper()
		if a := b.tell(run, "stop", cancels("enough")); a.status != http.StatusOK || a.field("duplicate") != "true" {
			t.Errorf("%s, the same cancel: got %v", when, a)
		}
		if a := b.tell(run, "stop-"+when, cancels("enough")); a.status != http.StatusOK || a.field("status") != "already_applied" {
			t.Errorf("%s, another cancel: got %v", when, a)
		}
		if a := b.tell(run, "stop", cancels("another reason")); a.status != http.StatusConflict || a.field("code") != "input_conflict" {
			t.Errorf("%s, another cancel under the same id: got %v", when, a)
		}
	}
	again("stopping")
	l := b.whole("s1", run)
	l.endsCanceled(t, len(l.lines)-2)
	again("stopped")
	b.restart()
	again("restarted")
	if after := b.logOf(run, ""); !slices.Equal(after.lines, l.lines) {
		t.Error("the cancels changed the log")
	}
	other := b.starts("s1", "hello")
	b.whole("s1", other)
	head := b.head("s1")
	if a := b.tell(other, "stop", cancels("late")); a.status != http.StatusConflict || a.field("code") != "run_ended" {
		t.Errorf("of a run that had ended: got %v", a)
	}
	if now := b.head("s1"); now != head {
		t.Errorf("the late cancel moved the session from %d to %d", head, now)
	}
}

// Case 64. Owed: a connection that breaks is no cancel; somebody else sees the run go on and
// may cancel it.
func TestCase64ALostFollowerIsNoCancel(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
steps:
  - repeat: {times: 600, steps: [{tool: {name: tick, output: "{{round}}", delay: 30ms}}]}
`)
	p := newProxy(b)
	b.session("s1")
	run := b.starts("s1", "work")
	lost := b.follow(p.url, run, "credit=100000&subscriber=a")
	lost.records(6)
	p.cut()
	for lost.records(1) {
	}
	at := lost.position()
	other := b.as(b.newToken("b", "drive,observe"))
	live := other.follow(b.url, run, "credit=100&cursor="+at)
	live.records(10)
	for _, e := range live.events {
		if e.Type != harness.ToolStarted && e.Type != harness.ToolCompleted {
			t.Errorf("the loss caused %+v", e)
		}
	}
	if a := other.tell(run, "stop", cancels("enough")); a.status != http.StatusAccepted {
		t.Fatalf("cancel by another: %v", a)
	}
	l := b.whole("s1", run)
	l.endsCanceled(t, len(l.lines)-2)
	if !slices.Equal(append(slices.Clone(lost.lines), live.lines...), l.lines[:len(lost.lines)+len(live.lines)]) {
		t.Error("the two followers saw another log")
	}
}

// Case 68. Owed: each piece of text names its nested run and message; joined by them it is
// clean, and what names none is the run's own.
func TestCase68NestedRunsSpeakForThemselvesInTheLog(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
defaults: {chunk: 3, pace: 50ms}
steps:
  - parallel:
      - - delay: 60ms
        - say: "root root root root root"
      - - agent: {name: left, tool: task, steps: [{say: "LEFT LEFT LEFT LEFT LEFT"}]}
      - - agent: {name: right, tool: task, steps: [{say: "right? right? right?"}]}
`)
	b.session("s1")
	run := b.starts("s1", "go")
	l := b.whole("s1", run)
	byRun, byMessage := map[string]string{}, map[string]string{}
	for _, e := range l.of(harness.MessageDelta) {
		piece := payload[struct {
			harness.In
			harness.Message
		}](t, e)
		byRun[piece.SubrunID] += piece.Text
		byMessage[piece.MessageID] += piece.Text
	}
	want := []string{"LEFT LEFT LEFT LEFT LEFT", "right? right? right?", "root root root root root"}
	for how, texts := range map[string]map[string]string{"run": byRun, "message": byMessage} {
		var got []string
		for _, text := range texts {
			got = append(got, text)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("joined by %s: %q, want %q", how, got, want)
		}
	}
	if byRun[""] != want[2] {
		t.Errorf("the run itself said %q", byRun[""])
	}
}

// Case 69. Owed: a log has one end, and it is the one that the session has.
func TestCase69OneEndOfTheLog(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
rules: [{contains: fail, play: fails}, {play: ends}]
scenarios:
  fails: [{say: {text: "words to the end", chunk: 2, pace: 1ms}}, {fail: {code: thrown, message: It was thrown.}}]
  ends: [{say: {text: "words to the end", chunk: 2, pace: 1ms}}]
`)
	random := rand.New(rand.NewPCG(69, 0))
	b.session("s1")
	canceled := 0
	for i := range sized(25, 500) {
		run := b.starts("s1", []string{"end", "fail"}[i%2])
		time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
		accepted := b.tell(run, "stop", cancels("race")).status == http.StatusAccepted
		var l runLog
		b.eventually("the end of "+run, func() bool { l = b.logOf(run, ""); return l.ended })
		ends := len(l.of(harness.RunCompleted)) + len(l.of(harness.RunCanceled))
		if ends != 1 || accepted != (len(l.of(harness.RunCanceled)) == 1) {
			t.Errorf("the cancel was accepted: %v; the log ends %v", accepted, l.kinds())
		}
		if accepted {
			canceled++
			l.endsCanceled(t, len(l.lines)-2)
		}
	}
	t.Logf("%d were canceled before their end", canceled)
	for id, n := range endings(decode(t, b.facts("s1"))) {
		if n != 1 {
			t.Errorf("run %s ended %d times", id, n)
		}
	}
}

// Case 77. Owed: no record holds half a character, and the pieces join to the source.
func TestCase77CharactersInTheLog(t *testing.T) {
	t.Parallel()
	const text = "e\u0301 日本語 👩‍👩‍👧 ß 🎵"
	b := newBed(t, `
script: 1
defaults: {chunk: 1, pace: 15ms}
steps:
  - think: "`+text+`"
  - say: "`+text+`"
  - tool: {name: halves, run: "printf 'a\\360\\237'; sleep 0.2; printf '\\216\\265b\\377\\376c\\360\\237\\216'"}
`)
	b.session("s1")
	run := b.starts("s1", text)
	live := b.follow(b.url, run, "credit=100000")
	for live.records(1) {
	}
	said, thought := "", ""
	for i, e := range live.events {
		if !utf8.ValidString(live.lines[i]) {
			t.Errorf("a record that is no UTF-8: %q", live.lines[i])
		}
		switch e.Type {
		case harness.MessageDelta:
			said += payload[harness.Message](t, e).Text
		case harness.ReasoningDelta:
			piece, _ := e.Payload.Field("text").IsString()
			thought += piece
		}
	}
	if said != text || thought != text {
		t.Errorf("said %q, thought %q, want %q", said, thought, text)
	}
	if prompt := payload[harness.Message](t, live.events[1]); prompt.Text != text {
		t.Errorf("the prompt is %q", prompt.Text)
	}
	b.whole("s1", run)
}

// Case 86. Owed: logs of sessions that work at the same time are each whole, and no reader or
// writer sees an error of a store.
func TestCase86LogsOfParallelSessions(t *testing.T) {
	t.Parallel()
	sessions, ticks := sized(10, 100), sized(15, 500)
	b := newBed(t, fmt.Sprintf(`
script: 1
steps:
  - repeat: {times: %d, steps: [{tool: {name: tick, delay: 30ms, respond: {round: "{{round}}"}}}]}
`, ticks), fmt.Sprint("MAHATI_AGENTS_MAX_RUNNING=", sessions))
	var all sync.WaitGroup
	for n := range sessions {
		id := fmt.Sprint("s", n)
		b.session(id)
		all.Go(func() {
			a := b.headless(http.MethodPost, "/runs", object{"input_id": "go", "session_id": id, "text": "go"})
			run := a.field("run_id")
			seen, next := 0, ""
			for late := time.Now().Add(patience); ; {
				a := b.headless(http.MethodGet, "/runs/"+run+"/events?credit=7&wait=5&cursor="+next, nil)
				items, _ := narad.Raw(a.body).Field("events").Elements()
				for _, item := range items {
					seen++
					if got := string(item.Field("sequence")); got != fmt.Sprint(seen) {
						t.Errorf("%s: record %s after %d", id, got, seen-1)
						return
					}
				}
				if a.status != http.StatusOK || time.Now().After(late) {
					t.Errorf("%s: after %d records: %v", id, seen, a)
					return
				}
				if len(items) > 0 {
					late = time.Now().Add(patience)
				}
				if next = a.field("next_cursor"); a.field("ended") == "true" {
					break
				}
			}
			if want := 2*ticks + 4; seen != want {
				t.Errorf("%s: %d records, want %d", id, seen, want)
			}
		})
	}
	all.Wait()
}

// Case 107. Owed: the log has the order in which the agent did things.
func TestCase107OneOrderInTheLog(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
defaults: {chunk: 1, pace: 1ms}
steps:
  - say: text one
  - tool: {name: tool1, respond: 1}
  - say: text two
  - tool: {name: tool2, respond: 2}
  - say: {text: text three, pace: 0s}
`)
	b.session("s1")
	run := b.starts("s1", "go")
	l := b.whole("s1", run)
	var story strings.Builder
	for _, e := range l.events[2:] {
		switch e.Type {
		case harness.MessageDelta:
			story.WriteString(payload[harness.Message](t, e).Text)
		case harness.MessageCompleted:
			story.WriteString(". ")
		case harness.ToolStarted:
			story.WriteString(payload[harness.Tool](t, e).Name + "(")
		case harness.ToolCompleted:
			story.WriteString(") ")
		case harness.RunCompleted:
			story.WriteString("end")
		}
	}
	if want := "text one. tool1() text two. tool2() text three. end"; story.String() != want {
		t.Errorf("got %q, want %q", story.String(), want)
	}
}
