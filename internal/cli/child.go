package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
)

// childHost is a host in a process of its own, which can be killed.
type childHost struct {
	ready  readyLine
	cmd    *exec.Cmd
	life   *os.File      // the child ends when it is closed
	exited chan struct{} // closed when the process is gone and reaped
	err    error         // of Wait, after exited
}

// childOptions say how a child host runs.
type childOptions struct {
	home   string
	listen string
	script string
	env    []string // besides that of this process without MAHATI_*
}

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 15 * time.Second
	childLog     = "host.log"
)

// startChild starts this program again as a host, and returns when it serves.
func startChild(o childOptions) (*childHost, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(o.home, childLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the host's log: %w", err)
	}
	defer log.Close()
	out, childOut, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer out.Close()
	defer childOut.Close()
	childIn, life, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer childIn.Close()
	cmd := exec.Command(program, "serve", "--home", o.home, "--listen", o.listen, "--script", o.script, "--json", "--with-parent")
	cmd.Args[0] = "mahati"
	cmd.Env = append(foreignEnv(), o.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = childIn, childOut, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the demo alone
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the host: %w", err), life.Close())
	}
	c := &childHost{cmd: cmd, life: life, exited: make(chan struct{})}
	go c.wait()
	childOut.Close()
	if c.ready, err = readReady(out); err != nil {
		return nil, errors.Join(fmt.Errorf("start the host: %w%s", err, logTail(log.Name())), c.kill())
	}
	return c, nil
}

func (c *childHost) wait() {
	defer close(c.exited)
	c.err = c.cmd.Wait()
}

// readReady reads the line that a host prints once it serves.
func readReady(out *os.File) (line readyLine, err error) {
	if err := out.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		return line, err
	}
	text, err := bufio.NewReader(io.LimitReader(out, maxTyped)).ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return line, errors.New("it ended before it served")
	}
	if err != nil {
		return line, err
	}
	return line, json.Unmarshal(text, &line)
}

// foreignEnv is the environment without what configures a host.
func foreignEnv() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MAHATI_") {
			env = append(env, v)
		}
	}
	return env
}

// logTail is the end of a host's log, for an error.
func logTail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return ""
	}
	return ": " + strings.TrimSpace(string(text[max(len(text)-2000, 0):]))
}

// address is where the host listens, to be given to the next one.
func (c *childHost) address() string {
	u, err := url.Parse(c.ready.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// kill ends the process as nothing else would: at once, between any two instructions.
func (c *childHost) kill() error {
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill the host: %w", err)
	}
	<-c.exited
	return c.life.Close()
}

// stop lets the host drain, and says whether it did.
func (c *childHost) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(fmt.Errorf("stop the host: %w", err), c.kill())
	}
	select {
	case <-c.exited:
	case <-time.After(stopTimeout):
		return errors.Join(errors.New("the host did not end in time"), c.kill())
	}
	if err := c.life.Close(); err != nil {
		return err
	}
	if c.err != nil {
		return fmt.Errorf("the host ended: %w", c.err)
	}
	return nil
}
