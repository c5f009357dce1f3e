package cli_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/agent/acp/acptest"
	"github.com/mahati-host/mahati/internal/mcptool/mcptest"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs testdata/*.txtar: the shell's view of every command. Besides what
// testscript has, they may say:
//
//	exits CODE COMMAND ARGS...   runs a command that must end with exactly this code
//	host start [ARGS...]         starts "mahati serve" and waits until it is ready
//	host stop|kill               ends it; stop demands exit code 0
//	host breaks CODE             waits until it ends by itself, with this exit code
//	agent NAME COMMAND ARGS...   configures an agent of the kind acp; the test agent is $AGENT,
//	                             the test server of tools $MCP
//	beat make|first|gone FILE    a named pipe: made, written to, and with no writer any more
//	await PATTERN COMMAND...     repeats a command until its standard output matches
//	keep NAME PATTERN            sets a variable to what the pattern's group matches in stdout
//	same FILE FILE               compares bytes
//	jsonlines [N]                demands that stdout is N JSON objects, or some, a line each
//	corrupt DIR                  changes a byte of every file below a directory
//	put FILE N TEXT              writes a text N times, and the end of a line
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", os.Getenv("GORACE"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("MAHATI_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("MAHATI_WORKSPACES_ROOTS", e.WorkDir)
			e.Setenv("MAHATI_LISTEN", "127.0.0.1:0")
			e.Setenv("MAHATI_STORAGE_RESERVE", "64MiB")
			examples, err := filepath.Abs("../../docs/examples")
			if err != nil {
				return err
			}
			e.Setenv("EXAMPLES", examples)
			e.Setenv("AGENT", strings.Join(acptest.Command(), " "))
			e.Setenv("MCP", strings.Join(mcptest.Command(filepath.Join(e.WorkDir, "mcp-ran")), " "))
			e.Values[runningHost{}] = &scriptHost{}
			e.Values[beats{}] = map[string]*os.File{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "host": hostCommand, "await": await, "keep": keep, "same": same, "put": put,
			"agent": agentCommand, "beat": beat, "jsonlines": jsonLines, "corrupt": corrupt,
		},
	})
}

const patience = 30 * time.Second

func corrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: corrupt DIR")
	}
	n := 0
	ts.Check(filepath.WalkDir(args[0], func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil || len(data) == 0 {
			return err
		}
		n++
		data[len(data)/2] ^= 1
		return os.WriteFile(name, data, 0o600)
	}))
	if n == 0 {
		ts.Fatalf("corrupt %s: there is no file", args[0])
	}
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("got exit code %d, want %d", got, want)
	}
}

func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: await PATTERN COMMAND ARGS...")
	}
	pattern := regexp.MustCompile("(?m)" + args[0])
	deadline := time.Now().Add(patience)
	for {
		_ = ts.Exec(args[1], args[2:]...)
		out := ts.ReadFile("stdout")
		if pattern.MatchString(out) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("after %s %q still prints\n%s", patience, args[1:], out)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func keep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: keep NAME PATTERN")
	}
	out := ts.ReadFile("stdout")
	match := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(out)
	if len(match) != 2 {
		ts.Fatalf("%s does not match\n%s", args[1], out)
	}
	ts.Setenv(args[0], match[1])
}

func same(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: same FILE FILE")
	}
	if equal := ts.ReadFile(args[0]) == ts.ReadFile(args[1]); equal == neg {
		ts.Fatalf("%s and %s: equal is %v", args[0], args[1], equal)
	}
}

func put(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: put FILE N TEXT")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Repeat(args[2], n)+"\n"), 0o600))
}

func jsonLines(ts *testscript.TestScript, neg bool, args []string) {
	out := ts.ReadFile("stdout")
	lines := strings.SplitAfter(out, "\n")
	lines = lines[:len(lines)-1]
	if neg || len(lines) == 0 || !strings.HasSuffix(out, "\n") || len(args) > 0 && args[0] != strconv.Itoa(len(lines)) {
		ts.Fatalf("got %d lines, want %q, each ended: %s", len(lines), args, out)
	}
	for _, line := range lines {
		if err := json.Unmarshal([]byte(line), &map[string]any{}); err != nil {
			ts.Fatalf("%v: %s", err, line)
		}
	}
}

// TestSecretsStayHidden runs a host with everything logged, uses it, and looks for the
// token in everything that was printed or written but the two places where it belongs.
func TestSecretsStayHidden(t *testing.T) {
	dir := t.TempDir()
	env := append(os.Environ(), "HOME="+dir, "MAHATI_HOME="+filepath.Join(dir, "home"), "MAHATI_LISTEN=127.0.0.1:0",
		"MAHATI_WORKSPACES_ROOTS="+dir, "MAHATI_LOG_LEVEL=debug", "MAHATI_STORAGE_RESERVE=64MiB")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mahati := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Args[0], cmd.Env, cmd.Dir = "mahati", env, dir
		return cmd
	}
	var log strings.Builder
	host := mahati("serve")
	host.Stderr = &log
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	ready, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !regexp.MustCompile(`^mahati serves http://127\.0\.0\.1:\d+, home /.+/home\n$`).MatchString(ready) {
		t.Fatalf("the host did not start: it printed %q, %v\n%s", ready, err, log.String())
	}
	made, err := mahati("token", "create", "--name", "phone", "--role", "drive,observe").Output()
	if err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(filepath.Join(dir, "home", "token"))
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	for _, args := range [][]string{
		{"run", "hello"}, {"ls", "--json"}, {"ls", "--token-file", filepath.Join("home", "token")}, {"ls", "--url", "http://127.0.0.1:1"}, {"token", "list", "--json"}, {"inbox"},
		{"stop", "nowhere"}, {"config", "check"}, {"token", "revoke", "phone"},
	} {
		text, _ := mahati(args...).CombinedOutput()
		fmt.Fprintf(&told, "$ mahati %v\n%s\n", args, text)
	}
	if err := host.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := host.Wait(); err != nil {
		t.Fatalf("the host ended with %v\n%s", err, log.String())
	}
	for name, secret := range map[string]string{"the first token": string(first), "a made token": string(made)} {
		secret = strings.TrimSpace(secret)
		if len(secret) < 32 {
			t.Fatalf("%s is %d bytes long", name, len(secret))
		}
		for where, text := range map[string]string{"the log": log.String(), "what commands print": told.String()} {
			if strings.Contains(text, secret) {
				t.Errorf("%s stands in %s", name, where)
			}
		}
		err := filepath.WalkDir(filepath.Join(dir, "home"), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Name() == "token" {
				return err
			}
			text, err := os.ReadFile(path)
			if strings.Contains(string(text), secret) {
				t.Errorf("%s stands in %s", name, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(told.String(), "You said: hello") {
		t.Errorf("the commands did nothing:\n%s", told.String())
	}
}
