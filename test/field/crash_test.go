package field_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// manyThings has a call, a message and a nested run open at once.
const manyThings = `
script: 1
rules:
  - {contains: work, play: work}
  - {play: other}
scenarios:
  other:
    - say: "You said: {{prompt}}"
  work:
    - parallel:
        - - tool: {name: shell, as: shell, run: "echo run >> ran; echo $$ > shell.pid; exec sleep 300", on: {else: [{custom: {name: shell.ended, value: "{{shell.outcome}}"}}]}}
        - - say: {text: "a long message, told byte by byte", chunk: 1, pace: 200ms}
        - - agent:
              name: helper
              tool: task
              steps: [{say: {text: "the helper speaks as slowly", chunk: 1, pace: 200ms}}]
`

// Case 51. A crash leaves nothing for ever at work: before the next host serves a command,
// everything that was open goes on or was closed, the innermost first, with one terminal
// for each run; the queue moves, and a new message has its turn as ever.
func TestCase51CrashLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	t.Run("resumed", func(t *testing.T) {
		t.Parallel()
		b := newBed(t, manyThings)
		dir := b.session("s1")
		run := b.say("s1", "work")
		shell := b.pidIn(filepath.Join(dir, "shell.pid"))
		queued := b.say("s1", "queued")
		nested := ""
		b.await("s1", "text of the root and of the nested run", func() func(narad.Authority) bool {
			spoke := map[string]bool{}
			return func(e narad.Authority) bool {
				if d, ok := e.(*narad.MessageTextDelta); ok {
					if spoke[d.RunID] = true; d.RunID != run {
						nested = d.RunID
					}
				}
				return len(spoke) == 2
			}
		}())
		b.restart()

		// What the first command after the start meets: nothing of unknown outcome is open.
		var unknown []string
		for _, f := range only[*narad.ToolCallFinished](decode(t, b.facts("s1"))) {
			unknown = append(unknown, string(f.Outcome)+" "+f.Code)
		}
		if !slices.Equal(unknown, []string{"error outcome_unknown"}) {
			t.Errorf("calls that the restart closed: got %q, want the shell's alone, outcome_unknown", unknown)
		}
		if alive(shell) {
			t.Error("the command of the dead host lives")
		}
		b.awaitEnd("s1", run)
		b.awaitEnd("s1", queued)
		b.awaitEnd("s1", b.say("s1", "new"))

		events := decode(t, b.facts("s1"))
		state := reduce(t, b.facts("s1"))
		ends := map[string]int{}
		for _, e := range events {
			if terminal(e) {
				ends[e.Envelope().RunID]++
			}
		}
		for id, n := range ends {
			if n != 1 {
				t.Errorf("run %s ended %d times", id, n)
			}
		}
		if len(ends) != 4 || ends[nested] != 1 {
			t.Errorf("got %d runs that ended, want the root, the nested, the queued and the new", len(ends))
		}
		spoken := map[string]string{} // what was cut goes on as another message with exactly the rest
		for _, m := range state.Messages() {
			if m.Role == narad.RoleAssistant {
				spoken[m.RunID] += m.Content
			}
		}
		said := slices.Sorted(maps.Values(spoken))
		want := []string{"You said: new", "You said: queued", "a long message, told byte by byte", "the helper speaks as slowly"}
		if !slices.Equal(said, want) {
			t.Errorf("said: got %q, want %q", said, want)
		}
		if ran, _ := os.ReadFile(filepath.Join(dir, "ran")); string(ran) != "run\n" {
			t.Errorf("the command ran as %q, want once", ran)
		}
		if s, err := b.client().Session(b.context(), "s1"); err != nil || s.State != "idle" || s.ActiveRootRunID != "" {
			t.Errorf("got %s, %v, want idle", s.Raw, err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		b := newACPBed(t)
		dir := b.acpSession("s1")
		run := b.say("s1", "open")
		helper := b.pidIn(filepath.Join(dir, "agent.pid"))
		b.await("s1", "the nested run's text", func(e narad.Authority) bool {
			d, ok := e.(*narad.MessageTextDelta)
			return ok && d.RunID != run
		})
		queued := b.say("s1", "hello")
		b.restart()

		events := decode(t, b.facts("s1"))
		if alive(helper) {
			t.Error("the agent of the dead host lives")
		}
		var closing []string
		for _, e := range events {
			switch f := e.(type) {
			case *narad.ToolCallFinished:
				closing = append(closing, "tool "+f.Code)
			case *narad.MessageTextCompleted:
				closing = append(closing, "message")
			case *narad.RunError:
				which := "nested"
				if f.RunID == run {
					which = "root"
				}
				closing = append(closing, which+" "+f.Code)
			}
		}
		if !leavesFirst(closing) {
			t.Errorf("closed in the order %q, want the nested run, its call, the root", closing)
		}
		b.awaitEnd("s1", queued)
		if end := b.awaitEnd("s1", b.say("s1", "hello")); end.Type() != narad.TypeRunFinished {
			t.Errorf("a new message: got %s, want run.finished", end.Type())
		}
		b.state("s1")
	})
}

// leavesFirst: children before parents. That each fact was allowed where it stands, with
// nothing open below it, reduce says.
func leavesFirst(closing []string) bool {
	root := slices.Index(closing, "root host_restarted")
	nested := slices.Index(closing, "nested host_restarted")
	call := slices.Index(closing, "tool outcome_unknown")
	return nested >= 0 && nested < call && call < root
}

// countUp appends small facts without a pause.
const countUp = `
script: 1
rules:
  - {contains: count, play: count}
  - {play: other}
scenarios:
  other:
    - say: "You said: {{prompt}}"
  count:
    - repeat: {times: 1000, steps: [{repeat: {times: 20, steps: [{custom: {name: count.up, value: {round: "{{round}}"}}}]}}]}
`

// Case 52. A host that dies while it appends loses at most what it never acknowledged: what
// was seen is there, sequences have no hole, and what is appended next is not glued to
// the torn end.
func TestCase52KilledWhileAppending(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	b := newBed(t, countUp)
	for round := range sized(3, 200) {
		id := fmt.Sprint("s", round)
		b.session(id)
		b.say(id, "count")
		s := b.stream(id, "?afterSessionSequence=0", "")
		seen := s.factsTo(int64(5 + random.IntN(400)))
		b.kill()
		for f := s.next(); s.err == nil; f = s.next() { // what was still on its way was acknowledged, too
			if _, ok := f.record.(narad.Authority); ok {
				seen = append(seen, narad.Raw(f.data))
			}
		}
		s.close()
		b.start()
		got := b.facts(id)
		for i, fact := range seen {
			if i >= len(got) || !bytes.Equal(got[i], fact) {
				t.Fatalf("round %d: fact %d of %d that were seen is not there as it was", round, i+1, len(seen))
			}
		}
		b.post("/commands/stop-active-root", object{"sessionId": id})
		b.eventually("the session comes to rest", func() bool {
			s, err := b.client().Session(b.context(), id)
			return err == nil && s.State == "idle"
		})
		three := b.three(id)
		if again := b.facts(id); !bytes.Equal(again[len(again)-1], three[len(three)-1]) {
			t.Errorf("round %d: what was appended after the crash is not at the end", round)
		}
		b.state(id)
	}
	b.stop()
	if text, code := b.mahati("verify"); code != 0 {
		t.Errorf("verify: exit %d\n%s", code, text)
	}
}

// three appends at least three facts and returns them.
func (b *bed) three(sessionID string) []narad.Raw {
	b.t.Helper()
	before := len(b.facts(sessionID))
	b.awaitEnd(sessionID, b.say(sessionID, "three"))
	after := b.facts(sessionID)
	if len(after) < before+3 {
		b.t.Errorf("%d facts were appended, want at least 3", len(after)-before)
	}
	return after[before:]
}

// Case 52, the file itself. Wherever the last record of the store's log is cut, also inside
// a character, the host starts, has everything before it, and goes on. Damage before the
// end is reported and never passed over in silence.
func TestCase52TornTail(t *testing.T) {
	t.Parallel()
	b := newBed(t, countUp)
	b.session("s1")
	b.awaitEnd("s1", b.say("s1", "héllo 日本語 👩‍👩‍👧"))
	before := b.facts("s1")
	size := b.logSize()
	if a := b.post("/sessions", object{"sessionId": "last", "title": "日本語 👩‍👩‍👧"}); a.status != 201 {
		t.Fatalf("create: got %v", a)
	}
	end := b.logSize()
	b.kill()
	if end <= size {
		t.Fatalf("the log has %d bytes before the last record and %d after it", size, end)
	}
	step := max(1, (end-size)/sized[int64](6, end-size))
	for cut := size; cut < end; cut += step {
		torn := b.copyOf(t)
		torn.must(os.Truncate(torn.lastLog(), cut))
		torn.start()
		if got := torn.facts("s1"); !equalFacts(got, before) {
			t.Errorf("cut at byte %d of %d..%d: %d facts are there, want %d", cut, size, end, len(got), len(before))
		}
		torn.three("s1")
		torn.state("s1")
		if a := torn.post("/sessions", object{"sessionId": "last"}); a.status != 201 && a.status != 200 {
			t.Errorf("cut at byte %d: the session whose record was torn: got %v", cut, a)
		}
		torn.kill()
		torn.start()
		if got := torn.facts("s1"); len(got) < len(before)+3 {
			t.Errorf("cut at byte %d: after another start %d facts are there, want %d", cut, len(got), len(before)+3)
		}
		torn.stop()
	}
}

// Case 52, the middle. A byte that changed before the end of the log is found, and neither
// the facts behind it nor a whole session are passed over as if they had never been.
func TestCase52DamageInTheMiddleIsReported(t *testing.T) {
	t.Parallel()
	b := newBed(t, countUp)
	want := map[string][]narad.Raw{}
	for i := range 6 {
		id := fmt.Sprint("s", i)
		b.session(id)
		b.awaitEnd(id, b.say(id, strings.Repeat("words ", 2_000)))
		want[id] = b.facts(id)
	}
	near := b.logSize() - 100
	for _, id := range []string{"a", "b", "c"} { // a few more records, each of which was acknowledged
		b.session(id)
		want[id] = b.facts(id)
	}
	size := b.logSize()
	b.kill()
	for name, place := range map[string]int64{"far from the end": size / 4, "near the end": near} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := b.copyOf(t)
			broken.flip(broken.lastLog(), place)
			text, code := broken.mahati("verify")
			t.Logf("a byte changed at %d of %d: verify exits with %d: %s", place, size, code, text)
			if code == 0 && !broken.holds(want) {
				t.Error("facts are missing, and verify says that all is well")
			}
		})
	}
}

// flip changes one byte of a file.
func (b *bed) flip(path string, place int64) {
	b.t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	b.must(err)
	defer file.Close()
	one := []byte{0}
	_, err = file.ReadAt(one, place)
	b.must(err)
	one[0] ^= 0x5a
	_, err = file.WriteAt(one, place)
	b.must(err)
}

// holds reports whether a host on the home, if it starts, has all these facts.
func (b *bed) holds(want map[string][]narad.Raw) bool {
	b.t.Helper()
	b.start()
	defer b.stop()
	for id, facts := range want {
		var got []narad.Raw
		for raw, err := range b.client().Events(b.context(), id, client.HistoryQuery{}) {
			if err != nil {
				b.t.Logf("%s: %v", id, err)
				return false
			}
			got = append(got, bytes.Clone(raw))
		}
		if !equalFacts(got, facts) {
			return false
		}
	}
	return true
}

func equalFacts(a, b []narad.Raw) bool {
	return slices.EqualFunc(a, b, func(x, y narad.Raw) bool { return bytes.Equal(x, y) })
}

// lastLog is the newest write-ahead log of the store.
func (b *bed) lastLog() string {
	b.t.Helper()
	logs, err := filepath.Glob(filepath.Join(b.home, "store", "*.log"))
	if err != nil || len(logs) == 0 {
		b.t.Fatalf("no log in the store: %v", err)
	}
	slices.Sort(logs)
	return logs[len(logs)-1]
}

// logSize is how much of it is written: the store may give it room ahead.
func (b *bed) logSize() int64 {
	b.t.Helper()
	text, err := os.ReadFile(b.lastLog())
	b.must(err)
	return int64(len(bytes.TrimRight(text, "\x00")))
}
