package process_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/agent/process"
)

// shell starts a script in a group. Its output, which everything in the group holds
// open, is returned when it has said that it is ready.
func shell(t *testing.T, script string) (*process.Group, *os.File) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	var pipes process.Pipes
	out, theirs := pipes.From()
	in, theirIn := pipes.To()
	if err := pipes.Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pipes.Close)
	cmd.Stdin, cmd.Stdout = theirIn, theirs
	g, err := process.Start(cmd, "s1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.End(t.Context()); err != nil {
			t.Errorf("end the group once more: %v", err)
		}
	})
	pipes.Started()
	if _, err := in.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); strings.TrimSpace(line) != "ready s1" {
		t.Fatalf("the script %q said %q, %v; want ready s1", script, line, err)
	}
	return g, out
}

const hello = `read line; echo ready $MAHATI_SESSION_ID; `

func TestEndOfAGroup(t *testing.T) {
	for _, c := range []struct {
		name, script string
		exits        bool // by itself
		code         int
	}{
		{"politely", `trap "exit 3" TERM; ` + hello + `while :; do sleep 0.01; done`, false, 3},
		{"with a grandchild", hello + `sleep 1000 & wait`, false, -1},
		{"that has ended", hello + `exit 7`, true, 7},
		{"that left somebody behind who carries nothing", hello + `env -i /bin/sleep 1000 & exit 7`, true, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g, out := shell(t, c.script)
			if c.exits {
				<-g.Exited()
			}
			if err := g.End(t.Context()); err != nil {
				t.Fatalf("%q: got %v, want nil", c.script, err)
			}
			(&group{pipe: out}).ended(t)
			if got := g.State().ExitCode(); got != c.code {
				t.Errorf("%q: got exit code %d, want %d", c.script, got, c.code)
			}
			g.Kill() // of what has ended: nothing happens
		})
	}
}

func TestKillOfAGroup(t *testing.T) {
	g, out := shell(t, `trap "" TERM; `+hello+`sleep 1000 & while :; do wait; done`)
	g.Kill()
	select {
	case <-g.Exited():
	case <-time.After(30 * time.Second):
		t.Fatal("the process lives")
	}
	(&group{pipe: out}).ended(t)
}

func TestStartOfNothing(t *testing.T) {
	if _, err := process.Start(exec.Command("/no/such/program"), "s1"); err == nil {
		t.Error("got a group, want an error")
	}
}
