package script_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
	"github.com/mahati-host/mahati/internal/agent/script"
	"github.com/mahati-host/mahati/narad"
)

// These tests run real commands, so they are not on a bubble's time.

func scriptOf(t *testing.T, opt script.Options, steps ...string) agent.Kind {
	t.Helper()
	kind, err := script.New([]byte("script: 1\nsteps:\n  - "+strings.Join(steps, "\n  - ")+"\n"), opt)
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

func finishes(host *agenttest.Session) []string {
	var list []string
	for _, rec := range host.Facts() {
		if r, ok := rec.(*narad.ToolCallFinished); ok {
			list = append(list, fmt.Sprintf("%s %s %s", r.Outcome, r.Code, r.Response))
		}
	}
	return list
}

func output(host *agenttest.Session) string {
	var out strings.Builder
	for _, rec := range host.Facts() {
		if o, ok := facts.Read[facts.Output](rec, facts.ToolOutput); ok {
			out.WriteString(o.Text)
		}
	}
	return out.String()
}

func TestCommand(t *testing.T) {
	for name, test := range map[string]struct{ step, finish, output string }{
		"success":    {`tool: {name: sh, run: "pwd -P; echo $MAHATI_RUN_ID; echo err >&2"}`, `success  {"exitCode":0}`, "DIR\nrun-1\nerr\n"},
		"exit code":  {`tool: {name: sh, run: "exit 3"}`, `error exit_3 {"exitCode":3}`, ""},
		"signal":     {`tool: {name: sh, run: "kill -9 $$"}`, `error signal {"exitCode":-1}`, ""},
		"timeout":    {`tool: {name: sh, run: "echo x; sleep 600", timeout: 50ms}`, `error timeout null`, ""},
		"response":   {`tool: {name: sh, run: "true", respond: yes-sir}`, `success  "yes-sir"`, ""},
		"no input":   {`tool: {name: sh, run: "cat; echo end"}`, `success  {"exitCode":0}`, "end\n"},
		"bytes":      {`tool: {name: sh, run: "printf '\\360\\237'; sleep 0.05; printf '\\230\\200 \\377 \\360\\237'"}`, `success  {"exitCode":0}`, "😀 \uFFFD \uFFFD"},
		"background": {`tool: {name: sh, run: "sleep 600 & echo started"}`, `success  {"exitCode":0}`, "started\n"},
		"no secrets": {`tool: {name: sh, run: "echo $MAHATI_TEST_SECRET"}`, `success  {"exitCode":0}`, "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("MAHATI_TEST_SECRET", "secret")
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			host := agenttest.New(t, agenttest.Options{Cwd: dir})
			a := host.Open(scriptOf(t, script.Options{}, test.step))
			host.Do(a, "go")
			closeTwice(t, a)
			if got := finishes(host); len(got) != 1 || got[0] != test.finish {
				t.Errorf("got finishes %q, want %q", got, test.finish)
			}
			want := strings.ReplaceAll(test.output, "DIR", dir)
			if got := output(host); test.output != "" && got != want {
				t.Errorf("got output %q, want %q", got, want)
			}
			if owned := host.Owned(); len(owned) != 0 {
				t.Errorf("got processes still owned: %v", owned)
			}
			closed(t, host)
		})
	}
}

func TestCommandCannotStart(t *testing.T) {
	host := agenttest.New(t, agenttest.Options{Cwd: filepath.Join(t.TempDir(), "missing")})
	a := host.Open(scriptOf(t, script.Options{}, `tool: {name: sh, run: "true"}`, `say: goes on`))
	if ending := host.Do(a, "go"); ending.Outcome != agent.Finished {
		t.Errorf("got ending %+v, want finished", ending)
	}
	if got := finishes(host); len(got) != 1 || got[0] != "error not_started null" {
		t.Errorf("got finishes %q, want one not_started", got)
	}
}

// TestStopEndsWholeGroup: a stop ends a command with what it started (field case 58).
func TestStopEndsWholeGroup(t *testing.T) {
	dir := t.TempDir()
	host := agenttest.New(t, agenttest.Options{Cwd: dir})
	a := host.Open(scriptOf(t, script.Options{},
		`tool: {name: sh, run: "(while :; do echo x >> ticks; sleep 0.02; done) & echo $! $$; wait"}`, `tool: {name: after}`))
	run := host.Start(a, "go")
	pids := awaitPids(t, host)
	if owned := host.Owned(); len(owned) != 1 || owned[0].PID != pids[1] || owned[0].BootID == "" || owned[0].StartTime == 0 {
		t.Errorf("got owned processes %+v, want the shell %d", owned, pids[1])
	}
	run.Stop()
	ended := make(chan struct{})
	go func() { defer close(ended); run.Wait() }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the stopped run does not end")
	}
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive after the stop", pid)
		}
	}
	if owned := host.Owned(); len(owned) != 0 {
		t.Errorf("got processes still owned: %v", owned)
	}
	if got := finishes(host); len(got) != 1 || !strings.HasPrefix(got[0], "cancelled") {
		t.Errorf("got finishes %q, want one cancelled", got)
	}
	closeTwice(t, a)
	closed(t, host)
}

// awaitPids waits for a line of two process ids in the tool's output.
func awaitPids(t *testing.T, host *agenttest.Session) [2]int {
	t.Helper()
	deadline := make(chan struct{})
	timer := time.AfterFunc(30*time.Second, func() { close(deadline) })
	defer timer.Stop()
	for n := 1; host.Reach(n, deadline); n++ {
		var pids [2]int
		if _, err := fmt.Sscan(output(host), &pids[0], &pids[1]); err == nil {
			return pids
		}
	}
	t.Fatalf("the command tells no process ids; facts:\n%s", host.Story())
	return [2]int{}
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	_, after, _ := bytes.Cut(stat, []byte(") "))
	return len(after) > 0 && after[0] != 'Z'
}

// TestCloseEndsCommand: an agent that is closed leaves no process behind.
func TestCloseEndsCommand(t *testing.T) {
	host := agenttest.New(t, agenttest.Options{Cwd: t.TempDir()})
	a := host.Open(scriptOf(t, script.Options{}, `tool: {name: sh, run: "sleep 600 & echo $! $$; wait"}`))
	run := host.Start(a, "go")
	pids := awaitPids(t, host)
	closeTwice(t, a)
	run.Wait()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive after Close", pid)
		}
	}
	closed(t, host)
}

// TestUnrecordedCommandDoesNothing: a command whose process could not be recorded has
// no effect, for nobody would end it after a crash.
func TestUnrecordedCommandDoesNothing(t *testing.T) {
	dir := t.TempDir()
	kind := scriptOf(t, script.Options{}, `tool: {name: sh, run: "echo x > effect"}`)
	refuse := func(context.Context, agent.Process) error { return agent.ErrInvalid }
	a, err := kind.Open(context.Background(), agent.Session{ID: "session-1", Cwd: dir, Own: refuse})
	if err != nil {
		t.Fatal(err)
	}
	host := agenttest.New(t, agenttest.Options{Cwd: dir})
	if ending := host.Do(a, "go"); ending.Outcome != agent.Failed {
		t.Errorf("got ending %+v, want failed", ending)
	}
	if _, err := os.Stat(filepath.Join(dir, "effect")); err == nil {
		t.Error("the command had its effect")
	}
	closed(t, host)
}

// TestCommandsOnceOverCuts counts lines in a file: three commands, the host killed at
// every place, and no line twice (field case 39).
func TestCommandsOnceOverCuts(t *testing.T) {
	kind := scriptOf(t, script.Options{},
		`tool: {name: one, run: "echo one >> lines"}`,
		`tool: {name: two, run: "echo two >> lines"}`,
		`parallel: [[{tool: {name: three, run: "echo three >> lines"}}], [{tool: {name: four, run: "echo four >> lines"}}]]`,
		`say: done`)
	play := func(cut agenttest.Cut) (*agenttest.Session, string) {
		dir := t.TempDir()
		host := agenttest.New(t, agenttest.Options{Cwd: dir, Cut: cut})
		a := host.Open(kind)
		host.Do(a, "go")
		closeTwice(t, a)
		if host.Dead() {
			a := host.Open(kind)
			if run := host.Resume(a, agenttest.Cut{}); run != nil {
				run.Wait()
			}
			closeTwice(t, a)
		}
		data, _ := os.ReadFile(filepath.Join(dir, "lines"))
		return host, string(data)
	}
	whole, lines := play(agenttest.Cut{})
	if strings.Count(lines, "\n") != 4 {
		t.Fatalf("got lines %q, want four", lines)
	}
	for n := 2; n <= whole.Batches(); n++ {
		for _, cut := range []agenttest.Cut{{After: n}, {Before: n}} {
			host, lines := play(cut)
			unknown := strings.Count(strings.Join(finishes(host), "\n"), "outcome_unknown")
			for _, word := range []string{"one", "two", "three", "four"} {
				if got := strings.Count(lines, word+"\n"); got > 1 {
					t.Errorf("cut %+v: got %d lines %q, want at most one; facts:\n%s", cut, got, word, host.Story())
				}
			}
			if got := strings.Count(lines, "\n"); got+unknown < 4 {
				t.Errorf("cut %+v: got %d lines and %d unknown calls, want four together; facts:\n%s", cut, got, unknown, host.Story())
			}
			closed(t, host)
		}
	}
}
