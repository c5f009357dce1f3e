package field_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/narad"
)

// Case 45. Owed: a start or an input whose answer is lost has had its effect, and whoever
// tells it again is told of that one, also by the next host.
func TestCase45TheAnswerToAnInputIsLost(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
rules: [{contains: wait, play: wait}, {play: work}]
scenarios:
  work: [{tool: {name: work}}, {say: Done.}]
  wait: [{steered: {within: 1h, as: more, then: [{say: "Noted: {{more.answer}}"}]}}, {ask: {title: "Go on?", on: {approve: [{tool: {name: work}}]}}}, {delay: 1h}]
`)
	p := newProxy(b)
	b.session("s1")
	run := b.starts("s1", "wait")
	post := func(url, path string, body object) (answer, error) {
		return b.exchange(http.MethodPost, url+logPrefix+path, body)
	}
	lost := func(path string, body object) (first answer) {
		t.Helper()
		dropped := p.drops()
		p.set(dropping)
		if a, err := post(p.url, path, body); err == nil || p.drops() != dropped+1 {
			t.Fatalf("got %v through a proxy that drops answers", a)
		}
		p.set(passing)
		var all sync.WaitGroup
		answers := make([]answer, 8)
		for i := range answers {
			all.Go(func() { answers[i], _ = post(p.url, path, body) })
		}
		all.Wait()
		for _, a := range answers {
			if a.status != http.StatusOK || a.field("duplicate") != "true" || a.field("run_id") == "" || a.field("run_id") != answers[0].field("run_id") {
				t.Errorf("told again: got %v, want 200, a duplicate, and %v", a, answers[0])
			}
		}
		return answers[0]
	}
	inputs := "/runs/" + run + "/inputs"
	start := object{"input_id": "start", "text": "go"}
	told := []object{input(run, "m1", submits("more")), nil, input(run, "m3", cancels("enough"))}
	first := []answer{lost("/runs", start), lost(inputs, told[0])}
	id := b.awaitApproval(run, 1)
	told[1] = input(run, "m2", decides(id, "approve"))
	first = append(first, lost(inputs, told[1]), lost(inputs, told[2]))
	l, alone := b.whole("s1", run), b.whole(first[0].field("session_id"), first[0].field("run_id"))
	if n := len(l.of(harness.ApprovalResolved)); n != 1 {
		t.Errorf("decided %d times", n)
	}
	noted := 0
	for _, line := range l.lines {
		if strings.Contains(line, `"message.completed"`) && strings.Contains(line, `"more"`) {
			noted++
		}
	}
	if noted != 1 {
		t.Errorf("the message stands %d times in\n%s", noted, strings.Join(l.lines, "\n"))
	}
	b.restart()
	for i, body := range append([]object{start}, told...) {
		path := inputs
		if i == 0 {
			path = "/runs"
		}
		if a := b.headless(http.MethodPost, path, body); a.status != http.StatusOK || a.field("duplicate") != "true" || a.field("run_id") != first[i].field("run_id") {
			t.Errorf("after a restart: got %v, want %v", a, first[i])
		}
	}
	if again := b.logOf(run, ""); !slices.Equal(again.lines, l.lines) {
		t.Error("repetitions changed the log")
	}
	if again := b.logOf(first[0].field("run_id"), ""); !slices.Equal(again.lines, alone.lines) {
		t.Error("repetitions changed the log of the run that was started")
	}
	if page := b.get("/sessions"); strings.Count(string(page.body), `"sessionId"`) != 2 {
		t.Errorf("got %v, want the two sessions", page)
	}
}

// Case 93. Owed: beside a host that serves a log a second one does nothing, and the log goes on.
func TestCase93TheLogOfAHostThatIsNotAlone(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps: [{tool: {name: shell, run: \"echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done\"}}, {say: Done.}]\n")
	dir := b.session("s1")
	run := b.starts("s1", "work")
	b.pidIn(filepath.Join(dir, "pid"))
	before := b.logOf(run, "")
	if text, code := b.mahati("serve", "--home", b.home, "--listen", "127.0.0.1:0"); code != 1 || !strings.Contains(text, "host runs on") {
		t.Errorf("a second host: exit %d\n%s", code, text)
	}
	if after := b.logOf(run, ""); !slices.Equal(after.lines, before.lines) || after.ended {
		t.Errorf("the second host changed the log: %v", after.lines)
	}
	b.write(filepath.Join(dir, "go"), "")
	l := b.whole("s1", run)
	if call := payload[harness.Tool](t, l.of(harness.ToolCompleted)[0]); strings.Contains(string(l.of(harness.ToolCompleted)[0].Payload), "outcome_unknown") {
		t.Errorf("the second host repaired what is at work: %+v", call)
	}
}

// Case 98. Owed: cursors, checkpoints and what inputs say stand in no log and in no refusal;
// who may not observe sees no content.
func TestCase98NoSecretsOfTheContractInLogs(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
steps:
  - say: "mk-words {{prompt}}"
  - tool: {name: vault_read, args: {x: mk-toolargs}, permit: {title: "mk-question?"}, respond: {y: mk-response}}
  - tool: {name: look, args: {x: mk-other}, respond: {y: mk-seen}}
`, "MAHATI_LOG_LEVEL=debug")
	b.write(filepath.Join(b.home, "config.toml"), "[[harness.classify]]\ntool = \"vault_*\"\nclass = \"secret\"\n")
	b.stop()
	b.start()
	b.session("s1")
	run := b.starts("s1", "mk-prompt")
	id := b.awaitApproval(run, 1)
	live := b.follow(b.url, run, "credit=2")
	live.records(2)
	var refusals []answer
	refused := func(a answer) {
		if a.status < 400 {
			t.Errorf("not refused: %v", a)
		}
		refusals = append(refusals, a)
	}
	altered := live.position()[:60] + "A" + live.position()[61:]
	refused(b.headless(http.MethodGet, "/runs/"+run+"/events?cursor="+altered, nil))
	refused(b.headless(http.MethodGet, "/runs/"+run+"/stream?cursor=mk-query", nil))
	refused(b.headless(http.MethodPost, "/runs", object{"input_id": "mk bad", "text": "mk-prompt"}))
	refused(b.headless(http.MethodPost, "/runs", `{"input_id":"x","text":"mk-broken`))
	refused(b.tell(run, "x", submits("mk-message")))
	refused(b.tell(run, "x", decides("mk-approval", "approve")))
	refused(b.tell(run, "x", object{"type": "mk-type"}))
	b.tell(run, "c", grants(100))
	if a := b.tell(run, "a", decides(id, "approve")); a.status != http.StatusAccepted {
		t.Fatalf("approve: %v", a)
	}
	var l runLog // of which nobody here sees all
	b.eventually("the end", func() bool { l = b.logOf(run, ""); return l.ended })
	for role, hidden := range map[string][]string{
		"observe": {"mk-toolargs", "mk-response"}, "drive": {"mk-"}, "decide": {"mk-"},
	} {
		text := strings.Join(b.as(b.newToken(role, role)).logOf(run, "").lines, "\n")
		for _, marker := range hidden {
			if strings.Contains(text, marker) {
				t.Errorf("%s sees %s in\n%s", role, marker, text)
			}
		}
		if strings.Contains(text, "mk-other") != (role == "observe") {
			t.Errorf("%s sees what is private, or not what it may:\n%s", role, text)
		}
	}
	told := b.log()
	for _, a := range refusals {
		told += a.String() + "\n"
	}
	cursor, err := harness.ParseToken(l.next)
	b.must(err)
	for _, secret := range []string{"mk-", l.next, live.position(), altered, cursor.Checkpoint, strings.TrimPrefix(b.token, "mht_")} {
		if at := strings.Index(told, secret); at >= 0 {
			t.Errorf("%q is told: ...%s...", secret, told[max(0, at-100):min(len(told), at+100)])
		}
	}
	if !strings.Contains(told, run) {
		t.Error("the log does not name the run: nothing was shown")
	}
}

// Case 102. Owed: whatever time an input's id claims, it has one effect, in the order in which
// the inputs came.
func TestCase102InputsWithWrongClocks(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps: [{say: \"You said: {{prompt}}\"}]\n")
	b.session("s1")
	var runs []string
	for n, off := range []time.Duration{10 * time.Minute, -10 * time.Minute, 0, time.Hour, -time.Hour, 24 * time.Hour} {
		body := object{"input_id": idAt(time.Now().Add(off), n), "session_id": "s1", "text": fmt.Sprint("message ", n), "timestamp": time.Now().Add(off).UnixMilli()}
		first := b.headless(http.MethodPost, "/runs", body)
		if again := b.headless(http.MethodPost, "/runs", body); first.status != http.StatusCreated || again.field("run_id") != first.field("run_id") {
			t.Errorf("start %d: got %v, then %v", n, first, again)
		}
		runs = append(runs, first.field("run_id"))
	}
	for n, run := range runs {
		l := b.whole("s1", run)
		if prompt := payload[harness.Message](t, l.events[1]); prompt.Text != fmt.Sprint("message ", n) {
			t.Errorf("run %d was told %q", n, prompt.Text)
		}
	}
	var started []string
	for _, f := range only[*narad.RunStarted](decode(t, b.facts("s1"))) {
		started = append(started, f.RunID)
	}
	if !slices.Equal(started, runs) {
		t.Errorf("the runs started as %v, accepted as %v", started, runs)
	}
}

// Case 109. Owed: of many starts at once one runs and the others wait or are refused; each run
// that was promised has a log of its own, once, and one runs at a time.
func TestCase109HeadlessStartsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps: [{delay: 2ms}, {say: \"{{prompt}}\"}]\n")
	b.session("s1")
	const starts = 60
	answers := make([]answer, starts)
	var all sync.WaitGroup
	for i := range starts {
		all.Go(func() {
			body := object{"input_id": fmt.Sprint("in-", i/2), "session_id": "s1", "text": fmt.Sprint("at once ", i/2)} // each is told twice
			if i/2%3 == 0 {
				body["when_busy"] = "reject"
			}
			answers[i] = b.headless(http.MethodPost, "/runs", body)
		})
	}
	all.Wait()
	promised := map[string]int{}
	for i, a := range answers {
		switch {
		case a.status == http.StatusCreated || a.status == http.StatusOK && a.field("duplicate") == "true":
			promised[a.field("run_id")]++
		case a.status == http.StatusConflict && a.field("code") == "session_busy" && i/2%3 == 0:
		case a.status == http.StatusServiceUnavailable && a.field("code") == "overloaded":
		default:
			t.Errorf("start %d: got %v, want a definite answer", i, a)
		}
	}
	texts := map[string]bool{}
	for run := range promised {
		l := b.whole("s1", run)
		text := payload[harness.Message](t, l.events[1]).Text
		if texts[text] {
			t.Errorf("%q was said twice", text)
		}
		texts[text] = true
	}
	active := ""
	for _, e := range decode(t, b.facts("s1")) {
		run := e.Envelope().RunID
		switch {
		case e.Type() == narad.TypeRunStarted && active != "":
			t.Errorf("run %s began while %s was active", run, active)
		case e.Type() == narad.TypeRunStarted:
			active = run
		case terminal(e):
			active = ""
		}
	}
	if started := len(only[*narad.RunStarted](decode(t, b.facts("s1")))); started != len(promised) || started < 2 {
		t.Errorf("%d runs began, %d were promised", started, len(promised))
	}
}

// Case 111. Owed: what is said while a run works is not lost: a message to the run is in its
// log and reaches the agent, or is refused; a start waits and has its turn, once each, in order,
// also behind a cancel.
func TestCase111SaidWhileBusy(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
rules: [{contains: work, play: work}, {play: other}]
scenarios:
  other: [{say: "You said: {{prompt}}"}]
  work: [{steered: {within: 1h, as: s, then: [{say: "Noted: {{s.answer}}"}]}}, {tool: {name: shell, run: "sleep 300"}}]
`)
	b.session("s1")
	run := b.starts("s1", "work")
	b.eventually("the run works", func() bool { return len(b.logOf(run, "").lines) >= 2 })
	f1, f2 := b.starts("s1", "f1"), b.starts("s1", "f2")
	if a := b.tell(run, "s1", submits("s1")); a.status != http.StatusAccepted {
		t.Fatalf("steer: %v", a)
	}
	if a := b.tell(f1, "s1", submits("s1")); a.status != http.StatusConflict || a.field("code") != "run_not_started" {
		t.Errorf("steer of a run that waits: got %v, want that it has not started", a)
	}
	b.eventually("the agent took the message", func() bool {
		return strings.Contains(strings.Join(b.logOf(run, "").lines, ""), "Noted: s1")
	})
	if a := b.tell(run, "stop", cancels("enough")); a.status != http.StatusAccepted {
		t.Fatalf("cancel: %v", a)
	}
	l := b.whole("s1", run)
	said := slices.DeleteFunc(l.of(harness.MessageCompleted), func(e harness.Event) bool { return payload[harness.Message](t, e).Role != "user" })
	if len(said) != 2 || said[1].CausationID != "s1" || payload[harness.Message](t, said[1]).Text != "s1" {
		t.Errorf("what was said to the run: %+v", said)
	}
	if state := b.get("/sessions/s1").field("state"); state != "waiting" {
		t.Errorf("behind the cancel the session is %s, want waiting", state)
	}
	if l := b.logOf(f1, ""); len(l.lines) > 0 || l.ended {
		t.Errorf("a run that waits: %v", l.lines)
	}
	last := b.starts("s1", "f3") // moves the queue
	for i, id := range []string{f1, f2, last} {
		said := b.whole("s1", id)
		if text := payload[harness.Message](t, said.events[1]).Text; text != fmt.Sprint("f", i+1) {
			t.Errorf("turn %d was for %q", i+1, text)
		}
	}
	if a := b.tell(f1, "late", submits("late")); a.status != http.StatusConflict || a.field("code") != "run_ended" {
		t.Errorf("a message to a run that has ended: got %v", a)
	}
}

// Case 122. Owed: a stream sends what it was granted, and a reconnect begins with nothing but
// what it is granted itself. Without credit it waits and is not closed.
func TestCase122CreditOverAReconnect(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps: [{repeat: {times: 30, steps: [{tool: {name: tick}}]}}]\n", "MAHATI_STREAMS_HEARTBEAT=1s")
	b.session("s1")
	run := b.starts("s1", "go")
	l := b.whole("s1", run)
	grant := func(id string, credit int) {
		t.Helper()
		if a := b.tell(run, id, grants(credit)); a.status != http.StatusAccepted {
			t.Fatalf("grant: %v", a)
		}
	}
	first := b.follow(b.url, run, "subscriber=ci")
	grant("c-1", 10)
	first.records(4)
	first.close()
	b.eventually("the stream has ended", func() bool { return b.tell(run, "c-2", grants(1)).field("code") == "no_subscriber" })

	second := b.follow(b.url, run, "subscriber=ci&credit=3&cursor="+first.position())
	second.records(3)
	more := make(chan bool, 1)
	go func() { more <- second.records(1) }()
	select {
	case <-more:
		t.Errorf("more than was granted: %v", second.lines)
	case <-time.After(2500 * time.Millisecond): // two heartbeats: it is not closed
	}
	grant("c-3", 5)
	<-more
	second.records(4)
	if got := append(slices.Clone(first.lines), second.lines...); !slices.Equal(got, l.lines[:12]) {
		t.Errorf("got %d records:\n%s\nwant\n%s", len(got), strings.Join(got, "\n"), strings.Join(l.lines[:12], "\n"))
	}
	grant("c-4", 1000)
	for second.records(1) {
	}
	if got := append(slices.Clone(first.lines), second.lines...); !slices.Equal(got, l.lines) {
		t.Errorf("got %d records, want %d", len(got), len(l.lines))
	}
}
