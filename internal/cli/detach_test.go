package cli

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// TestCtrlC: whoever follows a run leaves it with Ctrl-C, is told how to come back, and
// the run goes on.
func TestCtrlC(t *testing.T) {
	s := &stage{home: t.TempDir()}
	if err := s.set(demoPace{text: killedPace.text, work: 5 * killedPace.work}.script()); err != nil {
		t.Fatal(err)
	}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := exec.Command(program, "run", "--home", s.home, "go")
	run.Args[0], run.Dir = "mahati", s.work()
	var said bytes.Buffer
	run.Stderr = &said
	out, err := run.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "› go") {
	}
	if err := run.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	_ = run.Wait() // its code is looked at below
	if got := run.ProcessState.ExitCode(); got != exitDetached {
		t.Errorf("exit code %d, want %d; it said %s", got, exitDetached, said.String())
	}
	session := positionsOf(s.home).last()
	if want := "left; the session goes on. Come back with: mahati attach " + session + "\n"; session == "" || said.String() != want {
		t.Errorf("it said %q, want %q", said.String(), want)
	}
	c, err := s.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	v := &viewer{client: c, follower: c.Follow(session, client.FollowOptions{After: positionsOf(s.home).find(session).Sequence})}
	turns, stop := v.turns(context.Background())
	defer stop()
	for turn := range turns {
		switch f := turn.update.Record.(type) {
		case *narad.RunStopRequested, *narad.RunCancelled:
			t.Fatalf("leaving caused %s", f.Type())
		case *narad.InterruptRequested:
			_, err := c.ResolveInterrupt(t.Context(), client.ResolveInterrupt{InterruptID: f.InterruptID, Decision: "approve"})
			if err != nil {
				t.Fatal(err)
			}
		case *narad.RunFinished:
			if !f.Nested() {
				return
			}
		}
		turn.seen()
	}
	t.Error("the run did not come to its end")
}
