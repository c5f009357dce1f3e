package cli_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

type runningHost struct{}

// scriptHost is the host that a script has started.
type scriptHost struct{ cmd *exec.Cmd }

func hostCommand(ts *testscript.TestScript, neg bool, args []string) {
	host := ts.Value(runningHost{}).(*scriptHost)
	if neg || len(args) == 0 {
		ts.Fatalf("usage: host start|stop|kill|breaks")
	}
	switch args[0] {
	case "start":
		host.start(ts, args[1:])
		ts.Defer(func() { host.end(ts, os.Kill) })
	case "stop":
		if err := host.end(ts, syscall.SIGTERM); err != nil {
			ts.Fatalf("host stop: %v", err)
		}
	case "kill":
		_ = host.end(ts, os.Kill)
	case "breaks":
		host.breaks(ts, args[1:])
	default:
		ts.Fatalf("host %s: start, stop, kill or breaks", args[0])
	}
}

func (h *scriptHost) start(ts *testscript.TestScript, args []string) {
	if h.cmd != nil {
		ts.Fatalf("host start: it runs")
	}
	program, err := os.Executable()
	ts.Check(err)
	log, err := os.OpenFile(ts.MkAbs("host.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	ts.Check(err)
	defer log.Close()
	cmd := exec.Command(program, append([]string{"serve", "--json"}, args...)...)
	cmd.Args[0] = "mahati"
	cmd.Dir, cmd.Stderr = ts.MkAbs("."), log
	for _, name := range []string{"HOME", "PATH", "MAHATI_HOME", "MAHATI_WORKSPACES_ROOTS", "MAHATI_LISTEN", "MAHATI_STORAGE_RESERVE", "MAHATI_LOG_LEVEL", "GORACE", "FILES_TOKEN", fileLimit} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	h.cmd = cmd
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		ts.Fatalf("host start: it ended before it was ready: %v\n%s", h.end(ts, os.Kill), text)
	}
	var ready struct {
		URL, Home, Epoch string
		PID              int
	}
	ts.Check(json.Unmarshal(line, &ready))
	if ready.URL == "" || ready.Home == "" || ready.Epoch == "" || ready.PID != cmd.Process.Pid {
		ts.Fatalf("host start: the ready line is %s", line)
	}
	ts.Setenv("URL", ready.URL)
	ts.Setenv("ADDRESS", strings.TrimPrefix(ready.URL, "http://"))
}

func (h *scriptHost) end(ts *testscript.TestScript, signal os.Signal) error {
	if h.cmd == nil {
		return nil
	}
	cmd := h.cmd
	h.cmd = nil
	if err := cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return cmd.Wait()
}

// breaks waits for a host that ends by itself, with this exit code.
func (h *scriptHost) breaks(ts *testscript.TestScript, args []string) {
	if len(args) != 1 || h.cmd == nil {
		ts.Fatalf("usage: host breaks CODE, of a host that runs")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	cmd := h.cmd
	h.cmd = nil
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Wait() // the code says it
	if got := cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("the host ended with %v, want exit code %d", cmd.ProcessState, want)
	}
}

// agentCommand puts an agent into the configuration of the home.
func agentCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: agent NAME COMMAND ARGS...")
	}
	home := ts.Getenv("MAHATI_HOME")
	ts.Check(os.MkdirAll(home, 0o700))
	file, err := os.OpenFile(home+"/config.toml", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	ts.Check(err)
	_, err = io.WriteString(file, "[agents."+args[0]+"]\nkind = \"acp\"\ncommand = "+strconv.Quote(strings.Join(args[1:], " "))+"\n")
	ts.Check(errors.Join(err, file.Close()))
}

// beats are the named pipes of a script, each held open by whoever lives.
type beats struct{}

func beat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: beat make|first|gone FILE")
	}
	pipes := ts.Value(beats{}).(map[string]*os.File)
	path := ts.MkAbs(args[1])
	if args[0] == "make" {
		ts.Check(syscall.Mkfifo(path, 0o600))
		// For reading and writing, so that it can be opened while nobody writes.
		keeper, err := os.OpenFile(path, os.O_RDWR, 0)
		ts.Check(err)
		reader, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		ts.Check(err)
		pipes[path], pipes[path+" keeper"] = reader, keeper
		ts.Defer(func() { keeper.Close(); reader.Close() })
		return
	}
	reader := pipes[path]
	if reader == nil {
		ts.Fatalf("beat %s: there is no %s", args[0], args[1])
	}
	ts.Check(reader.SetReadDeadline(time.Now().Add(patience)))
	switch args[0] {
	case "first":
		if _, err := reader.Read(make([]byte, 1)); err != nil {
			ts.Fatalf("wait for the first beat: %v", err)
		}
		ts.Check(pipes[path+" keeper"].Close())
	case "gone":
		if _, err := io.Copy(io.Discard, reader); err != nil {
			ts.Fatalf("who writes to %s is still there: %v", args[1], err)
		}
	default:
		ts.Fatalf("beat %s: make, first or gone", args[0])
	}
}
