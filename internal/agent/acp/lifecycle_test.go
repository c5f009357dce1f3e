package acp_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	wire "github.com/coder/acp-go-sdk"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/acp"
	"github.com/mahati-host/mahati/internal/agent/acp/acptest"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
	"github.com/mahati-host/mahati/internal/agent/process"
	"github.com/mahati-host/mahati/narad"
)

func TestAgentThatCannotBeStarted(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	notRunnable := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(notRunnable, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		cwd     string
		how     acp.Options
		code    string
		message string
	}{
		{"no program", "", acp.Options{Command: []string{missing}}, "agent_unavailable", "The agent cannot be started: its program was not found."},
		{"no program in the path", "", acp.Options{Command: []string{"no-such-program-mahati"}}, "agent_unavailable", "The agent cannot be started: its program was not found."},
		{"no program at all", "", acp.Options{Command: []string{notRunnable}}, "agent_unavailable", "The agent cannot be started: its program may not be run."},
		{"no directory", missing, acp.Options{Command: acptest.Command()}, "agent_unavailable", "The session's directory does not exist."},
		{"a relative directory", "here", acp.Options{Command: acptest.Command()}, "agent_unavailable", "The session has no directory for the agent to work in."},
		{"exits", "", acp.Options{Command: acptest.Command("initialize=exit", "stderr=MARKER")}, "agent_unavailable", "The agent ended before it was ready (exit status 7)."},
		{"hangs", "", acp.Options{Command: acptest.Command("initialize=hang"), StartTimeout: 100 * time.Millisecond}, "agent_unavailable", "The agent did not get ready in time."},
		{"another version", "", acp.Options{Command: acptest.Command("version=2")}, "agent_unavailable", "The agent speaks version 2 of the protocol, not 1."},
		{"no protocol", "", acp.Options{Command: []string{"/bin/sh", "-c", "yes"}}, "agent_protocol_error", "What the agent writes is not the Agent Client Protocol."},
		{"an endless line", "", acp.Options{Command: []string{"/bin/sh", "-c", "cat /dev/zero"}}, "agent_protocol_error", "What the agent writes is not the Agent Client Protocol."},
		{"wants a login", "", acp.Options{Command: acptest.Command("auth")}, "agent_auth_required", "The agent wants you to sign in first: start it in a terminal and sign in there."},
		{"refuses the login", "", acp.Options{Command: acptest.Command("auth"), AuthMethod: "other"}, "agent_auth_required", "The agent wants you to sign in first: start it in a terminal and sign in there."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := setWith(t, agenttest.Options{Cwd: c.cwd}, c.how)
			e := s.bounded(s.Start(s.agent, "say hi"))
			if e.Outcome != agent.Failed || e.Code != c.code || e.Message != c.message {
				t.Errorf("got %+v, want %s: %s", e, c.code, c.message)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, opt := range map[string]acp.Options{
		"no name":            {Command: []string{"x"}},
		"no command":         {Name: "x"},
		"an empty program":   {Name: "x", Command: []string{""}},
		"relative directory": {Name: "x", Command: []string{"x"}, Dir: "here"},
		"no transport":       {Name: "x", Command: []string{"x"}, MCPServers: []wire.McpServer{{}}},
		"no variable":        {Name: "x", Command: []string{"x"}, Env: []string{"SECRET"}},
	} {
		if _, err := acp.New(opt); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: got %v, want an error", name, err)
		}
	}
}

func TestSignIn(t *testing.T) {
	s := setWith(t, agenttest.Options{}, acp.Options{Command: acptest.Command("auth"), AuthMethod: "key"})
	if e := s.Do(s.agent, "say in"); e.StopReason != "completed" || s.says() != "in" {
		t.Errorf("got %+v and %q, want a run", e, s.says())
	}
}

func TestGreetingThatIsNoMessage(t *testing.T) {
	s := set(t, agenttest.Options{}, "garbage=99")
	e := s.Do(s.agent, lines("say hi", "garbage 99", "say !", `raw [1]`, `raw {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"SESSION","update":{"sessionUpdate":"agent_message_chunk","content":7}}}`,
		`raw {"jsonrpc":"2.0","id":77,"result":{}}`, `raw {"jsonrpc":"2.0"}`, `raw 7`, `raw null`, `raw {"method":7}`, `raw {"jsonrpc":"2.0","id":{},"result":1}`))
	if e.StopReason != "completed" || s.says() != "hi!" {
		t.Errorf("got %+v and %q, want a run that is completed", e, s.says())
	}
	log := s.log.String()
	for _, class := range []string{"not_json", "wrong_shape", "wrong_content", "unknown_answer"} {
		if !strings.Contains(log, "class="+class) {
			t.Errorf("the class %s is not told", class)
		}
	}
	if n := strings.Count(log, "class=not_json"); n > 10 || strings.Contains(log, "MARKER-STDOUT") {
		t.Errorf("got %d lines about garbage, want few, and nothing of it:\n%s", n, short(log))
	}
}

func TestSessionIsLoaded(t *testing.T) {
	for _, c := range []struct{ name, word, lost string }{
		{"loads", "load", ""},
		{"tells the history late", "load=late", ""},
		{"cannot load", "", `acp.session.fresh {"reason":"unsupported"}`},
		{"refuses", "load=refuse", `acp.session.fresh {"reason":"refused"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := set(t, agenttest.Options{}, c.word)
			s.tells("say first", `say "first"`)
			ref := s.Remembered()
			if !strings.HasPrefix(ref, "session-") {
				t.Fatalf("got reference %q, want that of the agent", ref)
			}
			s.tells("say second", `say "second"`)
			if err := s.agent.Close(); err != nil {
				t.Fatal(err)
			}
			// Another agent object, as after a restart of the host or a long rest.
			s.agent = s.Open(s.kind)
			s.tells("say third", c.lost+"\n"+`say "third"`)
			if got := s.Remembered(); (got == ref) != (c.lost == "") {
				t.Errorf("got reference %q after %q", got, ref)
			}
		})
	}
}

// TestStop is case 58 in all kinds of agents.
func TestStop(t *testing.T) {
	for _, c := range []struct {
		name, script string
		closes       bool // the agent ends only with its process
	}{
		{"obeys", lines("say a", "cancelled"), false},
		{"ignores it", lines("say a", "hang"), true},
		{"exits", lines("say a", "cancelled", "exit 4"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := set(t, agenttest.Options{})
			alive := s.grandchild(t)
			r := s.Start(s.agent, lines("spawn "+alive.path,
				`send {"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"in_progress"}`, c.script))
			alive.wait(t)
			s.until(r, func() bool { return s.says() == "a" })
			r.Stop()
			if c.closes {
				if err := s.agent.Close(); err != nil {
					t.Error(err)
				}
			}
			if e := s.bounded(r); e.Outcome != agent.Cancelled {
				t.Errorf("got %+v, want a run that is cancelled", e)
			}
			if got := sorted(s.finishes()); len(got) != 1 || !strings.HasPrefix(got[0], "t=cancelled") {
				t.Errorf("got %q, want the call to be cancelled", got)
			}
			if err := s.agent.Close(); err != nil {
				t.Error(err)
			}
			alive.ended(t)
		})
	}
}

func TestCrashEndsEverything(t *testing.T) {
	s := set(t, agenttest.Options{})
	alive := s.grandchild(t)
	r := s.Start(s.agent, lines("spawn "+alive.path, "say a",
		`send {"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"in_progress"}`,
		"cancelled"))
	alive.wait(t)
	s.until(r, func() bool { return len(s.Facts()) >= 5 && s.says() == "a" })
	_ = syscall.Kill(s.Owned()[0].PID, syscall.SIGKILL) // the agent alone
	e := s.bounded(r)
	if e.Code != "agent_exited" || e.Message != "The agent ended (signal killed)." {
		t.Errorf("got %+v, want that it was killed", e)
	}
	if got := sorted(s.finishes()); len(got) != 1 || got[0] != "t=error agent_exited" {
		t.Errorf("got %q, want the call to have failed", got)
	}
	alive.ended(t)
}

// TestHostIsKilled ends what a dead host left by the record alone.
func TestHostIsKilled(t *testing.T) {
	s := set(t, agenttest.Options{})
	alive := s.grandchild(t)
	r := s.Start(s.agent, lines("spawn "+alive.path, "hang"))
	alive.wait(t)
	owned := s.Owned()
	if len(owned) != 1 || !process.Same(owned[0]) {
		t.Fatalf("got %v, want the process to be recorded before the prompt", owned)
	}
	if err := process.KillGroup(t.Context(), owned[0]); err != nil {
		t.Error(err)
	}
	alive.ended(t)
	s.bounded(r)
}

func TestCloseDuringStart(t *testing.T) {
	s := set(t, agenttest.Options{}, "initialize=hang")
	r := s.Start(s.agent, "say hi")
	for len(s.Owned()) == 0 { // no batch tells of it
		select {
		case <-r.Done():
			t.Fatal("the run is over")
		case <-time.After(time.Millisecond):
		}
	}
	if err := s.agent.Close(); err != nil {
		t.Error(err)
	}
	if e := s.bounded(r); e.Outcome != agent.Failed {
		t.Errorf("got %+v, want a run that failed", e)
	}
	if e := s.Do(s.agent, "say hi"); e.Code != "agent_unavailable" {
		t.Errorf("got %+v, want no run after Close", e)
	}
}

func TestStopDuringStart(t *testing.T) {
	s := set(t, agenttest.Options{}, "initialize=hang")
	r := s.Start(s.agent, "say hi")
	r.Stop()
	if e := s.bounded(r); e.Outcome != agent.Cancelled {
		t.Errorf("got %+v, want a run that is cancelled", e)
	}
}

func TestAgentThatDoesNotRead(t *testing.T) {
	s := setWith(t, agenttest.Options{}, acp.Options{Command: acptest.Command("deaf"), WriteTimeout: 100 * time.Millisecond})
	e := s.bounded(s.Start(s.agent, strings.Repeat("say a lot\n", 20_000)))
	if e.Code != "agent_unresponsive" || e.Message != "The agent does not read what it is told." {
		t.Errorf("got %+v, want that the agent does not read", e)
	}
}

func TestOwnershipMustBeRecorded(t *testing.T) {
	kind, err := acp.New(acp.Options{Name: "test", Command: acptest.Command()})
	if err != nil {
		t.Fatal(err)
	}
	cwd := t.TempDir()
	a, err := kind.Open(t.Context(), agent.Session{
		ID: "session-1", Cwd: cwd,
		Own: func(context.Context, agent.Process) error { return errors.New("the disk is full") },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s := agenttest.New(t, agenttest.Options{Cwd: cwd})
	if e := s.Do(a, "say hi"); e.Code != "agent_unavailable" {
		t.Errorf("got %+v, want no prompt without a record of the process", e)
	}
	for _, rec := range s.Facts() {
		if _, ok := rec.(*narad.MessageTextStarted); ok {
			t.Error("the agent was prompted")
		}
	}
}

// TestJournalIsGone: an agent that cannot be recorded does not work on.
func TestJournalIsGone(t *testing.T) {
	s := set(t, agenttest.Options{})
	alive := s.grandchild(t)
	r := s.Start(s.agent, lines("spawn "+alive.path, "cancelled", "say a",
		`send {"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"in_progress"}`, "hang"))
	alive.wait(t)
	s.Cut()
	s.bounded(r)
	alive.ended(t)
}

// TestAgentsLog is case 98: what an agent writes of its own is bounded and shows no
// secret of the environment or the command line, and nothing of it is a fact.
func TestAgentsLog(t *testing.T) {
	t.Setenv("PROVIDER_KEY", "marker-one passed on")
	t.Setenv("HOST_SECRET", "marker-two stays here")
	s := setWith(t, agenttest.Options{}, acp.Options{
		Command: acptest.Command("environment", "stderr=the marker-three argument"),
		PassEnv: []string{"PROVIDER_KEY"}, Env: []string{"OTHER=marker-four of the configuration"},
	})
	script := []string{"stderr hello", "stderr key sk-abcdefghijklmnopqrstuvwxyz0123456789", "stderr Authorization: Bearer marker-five"}
	for range 1500 {
		script = append(script, "stderr noise")
	}
	s.Do(s.agent, lines(script...))
	if err := s.agent.Close(); err != nil {
		t.Fatal(err)
	}
	log := s.log.String()
	if !strings.Contains(log, "line=hello") {
		t.Errorf("the log does not show what the agent writes:\n%s", short(log))
	}
	for _, marker := range []string{"marker-one", "marker-two", "marker-three", "marker-four", "marker-five", "sk-abc"} {
		if strings.Contains(log, marker) {
			t.Errorf("the log shows %s", marker)
		}
		if marker != "marker-five" && marker != "sk-abc" && strings.Contains(s.Story(), marker) {
			t.Errorf("a fact shows %s", marker)
		}
	}
	if n := strings.Count(log, "agent's log"); n > 1001 || n < 900 {
		t.Errorf("got %d lines, want them to be bounded", n)
	}
}

// An agent is told of the servers that are configured, and what is secret of them is in
// no log. One that cannot reach them is not used without them.
func TestMCPServers(t *testing.T) {
	servers := []wire.McpServer{
		{Stdio: &wire.McpServerStdio{
			Name: "files", Command: "serve-files", Args: []string{"--key=marker-argument"},
			Env: []wire.EnvVariable{{Name: "KEY", Value: "marker-variable"}},
		}},
		{Http: &wire.McpServerHttpInline{
			Name: "web", Type: "http", Url: "https://mcp.test/", Headers: []wire.HttpHeader{{Name: "Authorization", Value: "marker-header"}},
		}},
	}
	s := setWith(t, agenttest.Options{}, acp.Options{Command: acptest.Command("mcp=http"), MCPServers: servers})
	if e := s.Do(s.agent, "servers"); e.Outcome != agent.Finished {
		t.Errorf("got %+v, want a run that finishes", e)
	}
	if err := s.agent.Close(); err != nil {
		t.Fatal(err)
	}
	log := s.log.String()
	for _, want := range []string{"serve-files", "files", "mcp.test"} {
		if !strings.Contains(log, want) {
			t.Errorf("the agent was not told of %s:\n%s", want, short(log))
		}
	}
	if strings.Contains(log, "marker-") {
		t.Errorf("the log shows a secret of a server:\n%s", short(log))
	}
	deaf := setWith(t, agenttest.Options{}, acp.Options{Command: acptest.Command(), MCPServers: servers})
	if e := deaf.Do(deaf.agent, "say hi"); e.Outcome != agent.Failed || e.Code != "agent_unavailable" {
		t.Errorf("an agent that reaches no server over HTTP: got %+v", e)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("PASSED", "passed-value")
	t.Setenv("XDG_TEST", "xdg-value")
	t.Setenv("NOT_PASSED", "secret-value")
	s := setWith(t, agenttest.Options{}, acp.Options{
		Command: []string{"/bin/sh", "-c", `env > env.txt`}, PassEnv: []string{"PASSED"}, Env: []string{"FIXED=fixed-value"},
	})
	s.bounded(s.Start(s.agent, "hi"))
	data, err := os.ReadFile(filepath.Join(s.cwd, "env.txt"))
	if err != nil {
		t.Fatal(err)
	}
	env := "\n" + string(data)
	for _, want := range []string{"\nPASSED=passed-value\n", "\nXDG_TEST=xdg-value\n", "\nFIXED=fixed-value\n", "\nPATH=", "\n" + process.Mark + "=session-1\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("the environment has no %q:\n%s", want, env)
		}
	}
	if strings.Contains(env, "secret-value") {
		t.Errorf("the environment has more than is passed:\n%s", env)
	}
}

// beat is a pipe with a name that a grandchild writes to as long as it lives.
type beat struct {
	path   string
	file   *os.File
	keeper *os.File // holds it open until the grandchild does
}

func (s *stage) grandchild(t *testing.T) *beat {
	t.Helper()
	b := &beat{path: filepath.Join(t.TempDir(), "beat")}
	if err := syscall.Mkfifo(b.path, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.file, err = os.OpenFile(b.path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.file.Close() })
	if b.keeper, err = os.OpenFile(b.path, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.keeper.Close() })
	return b
}

// wait waits for the first beat.
func (b *beat) wait(t *testing.T) {
	t.Helper()
	_ = b.file.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := b.file.Read(make([]byte, 1)); err != nil {
		t.Fatalf("wait for the grandchild: %v", err)
	}
	b.keeper.Close()
}

// ended fails unless nobody can write any more.
func (b *beat) ended(t *testing.T) {
	t.Helper()
	_ = b.file.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := io.Copy(io.Discard, b.file); err != nil {
		t.Errorf("got %v, want the grandchild to be gone", err)
	}
}
