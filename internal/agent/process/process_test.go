package process_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/process"
)

// group is a shell and what it started, all of which hold one pipe open.
type group struct {
	cmd  *exec.Cmd
	id   agent.Process
	pipe *os.File
}

// start runs a shell script, which must say that it is ready by a line on descriptor 3.
func start(t *testing.T, script string, env ...string) *group {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	g := &group{cmd: cmd, pipe: r}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		r.Close()
	})
	if g.id, err = process.Identify(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(r).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the script %q said %q, %v; want ready", script, line, err)
	}
	return g
}

// ended fails unless nobody holds the pipe any more.
func (g *group) ended(t *testing.T) {
	t.Helper()
	if err := g.pipe.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, g.pipe); err != nil {
		t.Errorf("got %v, want the end of everything that the group holds", err)
	}
}

func (g *group) lives() bool { return syscall.Kill(-g.id.PID, 0) == nil }

func TestKillGroupEndsEverything(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"grandchild", `sleep 1000 & echo ready >&3; wait`},
		{"ignores the polite signal", `trap "" TERM; sleep 1000 & echo ready >&3; while :; do wait; done`},
		{"has ended but is not reaped", `echo ready >&3; exit 3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := start(t, c.script)
			if err := process.KillGroup(t.Context(), g.id); err != nil {
				t.Fatalf("%q: got %v, want nil", c.script, err)
			}
			g.ended(t)
		})
	}
}

func TestKillGroupAgain(t *testing.T) {
	g := start(t, `echo ready >&3; exec sleep 1000`)
	for range 2 {
		if err := process.KillGroup(t.Context(), g.id); err != nil {
			t.Fatalf("got %v, want nil", err)
		}
		_ = g.cmd.Wait()
	}
}

func TestKillGroupWithDoneContext(t *testing.T) {
	g := start(t, `trap "" TERM; echo ready >&3; while :; do sleep 1000; done`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	_ = process.KillGroup(ctx, g.id)
	g.ended(t)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v, want no polite wait", took)
	}
}

func TestKillGroupWhoseLeaderIsGone(t *testing.T) {
	const script = `sleep 1000 & echo ready >&3`
	t.Run("marked", func(t *testing.T) {
		g := start(t, script, process.Mark+"=session-1")
		_ = g.cmd.Wait()
		if err := process.KillGroup(t.Context(), g.id); err != nil {
			t.Fatalf("got %v, want nil", err)
		}
		g.ended(t)
	})
	t.Run("not marked", func(t *testing.T) {
		g := start(t, script)
		_ = g.cmd.Wait()
		if err := process.KillGroup(t.Context(), g.id); err != nil {
			t.Fatalf("got %v, want nil", err)
		}
		if !g.lives() {
			t.Error("a group that may be another's was ended")
		}
	})
}

func TestKillGroupLeavesOthersAlone(t *testing.T) {
	g := start(t, `echo ready >&3; exec sleep 1000`, process.Mark+"=session-1")
	for name, other := range map[string]agent.Process{
		"reused number": {PID: g.id.PID, StartTime: g.id.StartTime - 1, BootID: g.id.BootID},
		"other boot":    {PID: g.id.PID, StartTime: g.id.StartTime, BootID: "another"},
		"zero":          {},
	} {
		if err := process.KillGroup(t.Context(), other); err != nil {
			t.Errorf("%s: got %v, want nil", name, err)
		}
		if process.Same(other) {
			t.Errorf("%s: %+v is taken for %+v", name, other, g.id)
		}
		if !g.lives() {
			t.Fatalf("%s: the group was ended", name)
		}
	}
	if !process.Same(g.id) {
		t.Errorf("%+v is not taken for itself", g.id)
	}
}

// TestKillGroupNeverEndsTheHost would not return.
func TestKillGroupNeverEndsTheHost(t *testing.T) {
	own, err := process.Identify(syscall.Getpgrp())
	if err != nil {
		t.Skipf("the test's own group has no leader: %v", err)
	}
	for _, p := range []agent.Process{own, {PID: 0, BootID: own.BootID}, {PID: 1, BootID: own.BootID}, {PID: -1, BootID: own.BootID}} {
		if err := process.KillGroup(t.Context(), p); err != nil {
			t.Errorf("%+v: got %v, want nil", p, err)
		}
	}
}

func TestIdentify(t *testing.T) {
	first, err := process.Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	second, err := process.Identify(os.Getpid())
	if err != nil || first != second || first.StartTime == 0 || first.BootID == "" {
		t.Errorf("got %+v and %+v, %v; want the same with all its parts", first, second, err)
	}
	cmd := exec.Command("/bin/sh", "-c", "exit 0")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if p, err := process.Identify(cmd.Process.Pid); err == nil {
		t.Errorf("got %+v for a process that is gone, want an error", p)
	}
}
