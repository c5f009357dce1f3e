package field_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
)

// lines are those of a file that commands append to; none if there is no file.
func lines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// awaitLine waits until a file has a line.
func awaitLine(t *testing.T, path, line string) {
	t.Helper()
	for deadline := time.Now().Add(patience); !slices.Contains(lines(t, path), line); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s has %v, want a line %s", path, lines(t, path), line)
		}
	}
}

// Case 39. Owed: a crash in the middle of several calls repeats none of them. What ended
// stays ended; the one under way is told to have an unknown outcome, and what is left of
// it is gone; what had not begun may run. Who wants to try again makes a call of its own.
func TestCase39CrashDuringABatch(t *testing.T) {
	t.Parallel()
	const (
		one   = `{name: one, run: "echo one >> ran"}`
		two   = `{name: two, run: "echo $$ > pid; echo two >> ran; sleep 300; echo late >> ran", on: {unknown: [{tool: {name: two, run: "echo again >> ran"}}]}}`
		three = `{name: three, run: "echo three >> ran"}`
	)
	for name, steps := range map[string]string{
		"one after the other": "  - tool: " + one + "\n  - tool: " + two + "\n  - tool: " + three + "\n",
		// The third branch waits until the second is at work.
		"at the same time": "  - parallel:\n      - [{tool: " + one + "}]\n      - [{delay: 300ms}, {tool: " + two + "}]\n      - [{delay: 1h}]\n",
		"in nested runs":   "  - agent: {name: a, tool: task, steps: [{tool: " + one + "}, {tool: " + two + "}]}\n  - tool: " + three + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, "script: 1\nsteps:\n"+steps)
			dir := b.session("s1")
			run := b.say("s1", "go")
			b.await("s1", "the end of the first tool", func(e narad.Authority) bool { return e.Type() == narad.TypeToolCallFinished })
			ran := filepath.Join(dir, "ran")
			awaitLine(t, ran, "two")
			before := b.facts("s1")
			b.restart()
			if name == "at the same time" { // the third branch never comes to its call
				awaitLine(t, ran, "again")
				b.await("s1", "the end of the second attempt", func(e narad.Authority) bool {
					return e.Envelope().SessionSequence > int64(len(before))+1 && e.Type() == narad.TypeToolCallFinished
				})
			} else if end := b.awaitEnd("s1", run); end.Type() != narad.TypeRunFinished {
				t.Errorf("the run ended as %s, want finished", end.Type())
			}
			facts := b.facts("s1")
			wantFacts(t, "the facts before the crash", facts[:len(before)], before)
			want := []string{"one success ", "two error outcome_unknown", "two success ", "three success "}
			if name == "at the same time" {
				want = want[:3]
			}
			if got := calls(t, facts); !slices.Equal(got, want) {
				t.Errorf("the calls are %q, want %q", got, want)
			}
			if got, want := lines(t, ran), []string{"one", "two", "again", "three"}[:len(want)]; !slices.Equal(got, want) {
				t.Errorf("commands wrote %v, want %v", got, want)
			}
			wantGone(t, filepath.Join(dir, "pid"))
		})
	}
}

// calls are the tools of a session in the order of their starts, with how each ended.
// Calls that only hold a nested run are left out.
func calls(t *testing.T, facts []narad.Raw) []string {
	t.Helper()
	state := reduce(t, facts)
	var list []string
	for _, started := range only[*narad.ToolCallStarted](decode(t, facts)) {
		if call, _ := state.Tool(started.ToolCallID); call.ToolName != "task" {
			list = append(list, fmt.Sprintf("%s %s %s", call.ToolName, call.Outcome, call.Code))
		}
	}
	return list
}

// wantGone demands that the process group of a command, whose id is in a file, is no more.
func wantGone(t *testing.T, path string) {
	t.Helper()
	pid, err := strconv.Atoi(strings.Join(lines(t, path), ""))
	if err != nil || pid < 2 {
		t.Fatalf("the command's process: got %d, %v", pid, err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := syscall.Kill(-pid, 0)
		if errors.Is(err, syscall.ESRCH) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process group %d of a call that was given up is still there: %v", pid, err)
		}
	}
}

// Case 48. Owed: what a run did before a question is not done again when the question is
// answered, however many questions there are and wherever the host dies.
func TestCase48WorkBeforeAQuestion(t *testing.T) {
	t.Parallel()
	script := "script: 1\nsteps:\n"
	for _, step := range []string{"A", "ask", "B", "ask", "C"} {
		if step == "ask" {
			script += "  - ask: {title: \"Go on?\"}\n"
			continue
		}
		script += fmt.Sprintf("  - tool: {name: %s, run: echo %s >> ran}\n  - say: %s is done.\n", step, step, step)
	}
	// restarts are the moments: before and after the answers to either question.
	for name, restarts := range map[string][4]bool{
		"at the first question":   {true},
		"as it is answered":       {1: true},
		"at the second question":  {2: true},
		"as that is answered":     {3: true},
		"at every question again": {true, false, true, false},
		"never":                   {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, script)
			dir := b.session("s1")
			run := b.say("s1", "go")
			for i := range 2 {
				asked := b.awaitAsk("s1", i+1)
				if restarts[2*i] {
					b.restart()
				}
				if a := b.resolve(asked.InterruptID, "approve", ""); a.status != 202 {
					t.Fatalf("resolve: got %v, want 202", a)
				}
				if restarts[2*i+1] {
					b.restart()
				}
			}
			if end := b.awaitEnd("s1", run); end.Type() != narad.TypeRunFinished {
				t.Errorf("the run ended as %s, want finished", end.Type())
			}
			facts := b.facts("s1")
			var started []string
			for _, e := range only[*narad.ToolCallStarted](decode(t, facts)) {
				started = append(started, e.ToolName)
			}
			want := []string{"A", "B", "C"}
			if !slices.Equal(started, want) {
				t.Errorf("calls started: %v, want %v", started, want)
			}
			if n := len(only[*narad.InterruptRequested](decode(t, facts))); n != 2 {
				t.Errorf("asked %d times, want 2", n)
			}
			// A command that the crash has hit has an unknown outcome and is not run again;
			// every other one ran once.
			hit := 0
			for _, call := range calls(t, facts) {
				if strings.HasSuffix(call, "outcome_unknown") {
					hit++
				}
			}
			if got := lines(t, filepath.Join(dir, "ran")); len(got) < len(want)-hit || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
				t.Errorf("commands wrote %v, %d calls have an unknown outcome; want each at most once, in order", got, hit)
			}
			said := ""
			for _, m := range b.state("s1").Messages() {
				if m.Role == narad.RoleAssistant {
					said += m.Content
				}
			}
			if said != "A is done.B is done.C is done." {
				t.Errorf("the run said %q", said)
			}
		})
	}
}
