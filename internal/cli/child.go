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
	c, out, err := launchChild(o)
	if err != nil {
		return nil, fmt.Errorf("start the host: %w", err)
	}
	defer out.Close()
	if c.ready, err = readReady(out); err != nil {
		return nil, errors.Join(fmt.Errorf("start the host: %w%s", err, logTail(filepath.Join(o.home, childLog))), c.kill())
	}
	return c, nil
}

// launchChild starts the process; what it prints comes out of the file.
func launchChild(o childOptions) (*childHost, *os.File, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(o.home, childLog), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open the host's log: %w", err)
	}
	defer log.Close()
	pipes, err := newPipes()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(program, "serve", "--home", o.home, "--listen", o.listen, "--script", o.script, "--json", "--with-parent")
	cmd.Args[0] = "mahati"
	cmd.Env = append(foreignEnv(), o.env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pipes.childIn, pipes.childOut, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the demo alone
	err = cmd.Start()
	pipes.childIn.Close()
	pipes.childOut.Close()
	if err != nil {
		return nil, nil, errors.Join(err, pipes.life.Close(), pipes.out.Close())
	}
	c := &childHost{cmd: cmd, life: pipes.life, exited: make(chan struct{})}
	go c.wait()
	return c, pipes.out, nil
}

// pipes join a child's standard input and output with this process.
type pipes struct{ childIn, life, out, childOut *os.File }

func newPipes() (p pipes, err error) {
	if p.childIn, p.life, err = os.Pipe(); err != nil {
		return p, fmt.Errorf("make a pipe: %w", err)
	}
	if p.out, p.childOut, err = os.Pipe(); err != nil {
		return p, errors.Join(fmt.Errorf("make a pipe: %w", err), p.childIn.Close(), p.life.Close())
	}
	return p, nil
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
