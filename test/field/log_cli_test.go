package field_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/harness"
)

// program that runs, with what it prints as it comes.
type process struct {
	*exec.Cmd
	out    *bufio.Reader
	stderr bytes.Buffer
}

// begin starts the program on the home, with its standard output in a pipe.
func (b *bed) begin(args ...string) *process {
	b.t.Helper()
	p := &process{Cmd: exec.CommandContext(b.context(), program, args...)}
	p.Env = append(environment(), "MAHATI_HOME="+b.home)
	p.Cmd.Stderr = &p.stderr
	out, err := p.StdoutPipe()
	b.must(err)
	p.out = bufio.NewReader(out)
	b.must(p.Start())
	return p
}

// end waits for the end of the process and returns its exit code.
func (p *process) end(t *testing.T) int {
	t.Helper()
	var exit *exec.ExitError
	if err := p.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, p.stderr.String())
	}
	return p.ProcessState.ExitCode()
}

// Case 119. Owed: in a pipe the records come one a line, each as it happens, and nothing else;
// all else is on standard error. The exit code tells the outcome.
func TestCase119MachineOutputIsClean(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
rules: [{contains: fail, play: fails}, {play: works}]
scenarios:
  works:
    - say: {text: "slow words", chunk: 2, pace: 500ms}
    - tool: {name: shell, run: "echo noise; echo noise >&2", permit: {title: "Run it?"}}
    - say: Done.
  fails: [{say: Oh.}, {fail: {code: broke, message: It broke.}}]
`, "MAHATI_LOG_LEVEL=debug")
	p := b.begin("harness", "run", "--json", "--on-approval", "approve", "go")
	var l runLog
	for {
		line, err := p.out.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			break
		}
		b.must(err)
		l.take(t, bytes.TrimSuffix(line, []byte("\n")))
		// The words take seconds: nothing waits for a buffer to fill, or for the end.
		if deltas := len(l.of(harness.MessageDelta)); deltas == 1 && b.logOf(l.events[0].RunID, "").ended {
			t.Errorf("line %d came after the end of the run", len(l.lines))
		}
	}
	if code := p.end(t); code != 0 {
		t.Errorf("exit %d\n%s", code, p.stderr.String())
	}
	run := l.events[0].RunID
	if whole := b.logOf(run, ""); !slices.Equal(whole.lines, l.lines) || !whole.ended {
		t.Errorf("printed\n%s\nthe log is\n%s", strings.Join(l.lines, "\n"), strings.Join(whole.lines, "\n"))
	}
	if !strings.Contains(p.stderr.String(), run) {
		t.Errorf("standard error does not name the run:\n%s", p.stderr.String())
	}

	p = b.begin("harness", "run", "fail")
	text, err := io.ReadAll(p.out)
	b.must(err)
	if code := p.end(t); code != 1 || string(text) != "Oh.\n" || !strings.Contains(p.stderr.String(), "broke") {
		t.Errorf("exit %d, standard output %q, standard error\n%s", code, text, p.stderr.String())
	}
	if _, code := b.mahati("harness", "run"); code != 2 {
		t.Errorf("without a prompt: exit %d, want 2", code)
	}
}

// Case 119, how it ends. Owed: an interrupt cancels the run and the end is still printed; a
// reader that goes away ends the program alone, and the run goes on (case 64).
func TestCase119HowHeadlessRunsAreLeft(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
rules: [{contains: wait, play: waits}, {play: ticks}]
scenarios:
  waits: [{say: Working.}, {delay: 1h}]
  ticks: [{repeat: {times: 100, steps: [{tool: {name: tick, delay: 30ms}}]}}, {say: Done.}]
`)
	p := b.begin("harness", "run", "--json", "wait")
	line, err := p.out.ReadBytes('\n')
	b.must(err)
	b.must(p.Process.Signal(os.Interrupt))
	rest, err := io.ReadAll(p.out)
	b.must(err)
	var l runLog
	for line := range bytes.Lines(append(line, rest...)) {
		l.take(t, bytes.TrimSuffix(line, []byte("\n")))
	}
	if code := p.end(t); code != 1 {
		t.Errorf("exit %d\n%s", code, p.stderr.String())
	}
	if kinds := l.kinds(); !slices.Equal(kinds[len(kinds)-2:], []harness.Type{harness.RunCanceled, harness.Checkpointed}) {
		t.Errorf("got %v, want the end of a run that was canceled", kinds)
	}

	cmd := exec.CommandContext(b.context(), program, "harness", "run", "--json", "tick")
	cmd.Env = append(environment(), "MAHATI_HOME="+b.home)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, in, err := os.Pipe()
	b.must(err)
	cmd.Stdout = in
	b.must(cmd.Start())
	in.Close()
	reader := bufio.NewReader(out)
	first, err := reader.ReadBytes('\n')
	b.must(err)
	out.Close()
	err = cmd.Wait()
	if cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("a closed pipe: %v\n%s", err, stderr.String())
	}
	e, err := harness.Decode(bytes.TrimSuffix(first, []byte("\n")))
	b.must(err)
	var whole runLog
	b.eventually("the end of the run", func() bool { whole = b.logOf(e.RunID, ""); return whole.ended })
	if end := payload[harness.Lifecycle](t, whole.of(harness.RunCompleted)[0]); end.Status != "completed" {
		t.Errorf("the run ended %+v", end)
	}

	// Whoever comes back sees the rest, and what was seen is not shown again.
	half := b.logOf(e.RunID, "")
	a := b.headless("GET", "/runs/"+e.RunID+"/events?credit=10", nil)
	tail := b.run("harness", "tail", "--cursor", a.field("next_cursor"), e.RunID)
	if got := strings.Split(tail, "\n"); !slices.Equal(got, half.lines[10:]) {
		t.Errorf("tail: got %d lines, want %d", len(got), len(half.lines)-10)
	}
	if got := b.run("harness", "tail", "--no-follow", e.RunID); got != strings.Join(half.lines, "\n") {
		t.Errorf("tail without following: got\n%s", got)
	}
}

// Case 119 and 64. Owed: over a restart of the host the program goes on where it was, and
// prints nothing twice.
func TestCase119OverARestart(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps: [{repeat: {times: 60, steps: [{tool: {name: tick, delay: 30ms}}]}}]\n")
	b.listen = freeAddress(t)
	b.stop()
	b.start()
	p := b.begin("harness", "run", "--json", "go")
	var l runLog
	for n := 0; ; n++ {
		line, err := p.out.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		b.must(err)
		l.take(t, bytes.TrimSuffix(line, []byte("\n")))
		if n == 20 || n == 60 {
			b.restart()
		}
	}
	if code := p.end(t); code != 0 {
		t.Errorf("exit %d\n%s", code, p.stderr.String())
	}
	if whole := b.logOf(l.events[0].RunID, ""); !slices.Equal(whole.lines, l.lines) {
		t.Errorf("printed %d lines, the log has %d", len(l.lines), len(whole.lines))
	}
}

// Case 121. Owed: a record of a type that nobody knows is stepped over, whatever it is called:
// it grants nothing and is not shown. A known type with a broken body, and another version, are
// refused.
func TestCase121UnknownRecords(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps: [{ask: {title: Sure, as: a}}, {say: \"{{a.decision}}\"}]\n")
	b.session("s1")
	run := b.starts("s1", "go")
	id := b.awaitApproval(run, 1)
	b.tell(run, "a", decides(id, "approve"))
	l := b.whole("s1", run)
	file := filepath.Join(t.TempDir(), "log.jsonl")
	project := func(lines []string) (string, int) {
		b.write(file, strings.Join(lines, "\n")+"\n")
		return b.mahati("harness", "protocol", "project", "--input", file, "--view", "cli", "--show-private")
	}
	want, code := project(l.lines)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, want)
	}
	// The same log with records of other types put in, everything behind them numbered on.
	put := func(at int, line string) (lines []string) {
		for i, e := range l.events {
			if i == at {
				lines = append(lines, fmt.Sprintf(line, run, e.Sequence))
			}
			if i >= at {
				e.Sequence++
			}
			encoded, err := harness.Encode(e)
			b.must(err)
			lines = append(lines, string(encoded))
		}
		return lines
	}
	const head = `{"version":"fak.harness.run/v1","run_id":%q,"sequence":%d,"event_id":"new","type":`
	for _, tail := range []string{
		`"approval.granted","sensitivity":"public","payload":{"approval_id":"` + id + `","decision":"approve"}}`,
		`"run.paused","payload":[1,2,{"text":"prose"}]}`, `"Run.Completed","payload":{"status":"failed"}}`, `"x","extra":{"a":1}}`,
	} {
		if got, code := project(put(3, head+tail)); code != 0 || got != want {
			t.Errorf("%s: exit %d\n%s\nwant\n%s", tail, code, got, want)
		}
	}
	for name, line := range map[string]string{
		"a known type with a broken body": head + `"message.delta","sensitivity":"public","payload":{"message_id":5}}`,
		"another version":                 strings.Replace(head, "v1", "v2", 1) + `"run.paused"}`,
		"no id":                           strings.Replace(head, `"new"`, `""`, 1) + `"run.paused"}`,
	} {
		if got, code := project(put(3, line)); code != 1 || strings.Contains(got, "run "+run) {
			t.Errorf("%s: exit %d\n%s", name, code, got)
		}
	}
	// A host takes no input of an unknown type: the rule is for records alone.
	if a := b.tell(run, "x", object{"type": "approval.granted", "approval": object{"approval_id": id, "decision": "approve"}}); a.status != 400 {
		t.Errorf("an unknown input: got %v", a)
	}
}
