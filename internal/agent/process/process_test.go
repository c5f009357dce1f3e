package process_test

import (
	"bufio"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mahati-host/mahati/internal/agent/process"
)

// start runs a shell as the leader of its own group and returns when it has said the
// pid of its child.
func start(t *testing.T, script string) (cmd *exec.Cmd, child int) {
	t.Helper()
	cmd = exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err = strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return cmd, child
}

// stubborn ignores the polite signal, and so does its child.
const stubborn = `trap '' TERM; sh -c 'trap "" TERM; while :; do sleep 1; done' & echo $!; wait`

func TestKillGroupEndsTheWholeGroup(t *testing.T) {
	cmd, child := start(t, stubborn)
	p, err := process.Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if !process.Same(p) {
		t.Fatalf("process %+v is not the same as itself", p)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = cmd.Wait() }() // a zombie leader has no group to signal
	if err := process.KillGroup(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	<-done
	if err := syscall.Kill(child, 0); err == nil {
		if again, err := process.Identify(child); err == nil && process.Same(again) && running(child) {
			t.Errorf("child %d of the group still runs", child)
		}
	}
}

// running reports whether a process runs and is not only waiting to be reaped.
func running(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z") && len(strings.TrimSpace(string(out))) > 0
}

func TestKillGroupLeavesAnotherProcessAlone(t *testing.T) {
	cmd, _ := start(t, "echo $$; sleep 60")
	p, err := process.Identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	reused, rebooted := p, p
	reused.StartTime++
	rebooted.BootID = "another"
	for _, other := range []struct {
		name string
		p    func() error
	}{
		{"start time", func() error { return process.KillGroup(t.Context(), reused) }},
		{"boot", func() error { return process.KillGroup(t.Context(), rebooted) }},
	} {
		if err := other.p(); err != nil {
			t.Errorf("%s: %v", other.name, err)
		}
		if !process.Same(p) {
			t.Fatalf("%s: the process was killed for another", other.name)
		}
	}
}

func TestIdentifyOfNothing(t *testing.T) {
	cmd, _ := start(t, "echo $$; sleep 60")
	pid := cmd.Process.Pid
	if err := syscall.Kill(-pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if p, err := process.Identify(pid); err == nil {
		t.Errorf("Identify of a process that is gone: %+v, want an error", p)
	}
}
