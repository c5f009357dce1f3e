package acp

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/process"
)

const (
	// lastWords is how long what left the group may hold the agent's output open, and
	// how long an agent may take to exit once its input or its output is closed.
	lastWords = time.Second
	// killTime bounds the end of a process group.
	killTime = 10 * time.Second
)

// child is a running agent with everything it starts.
type child struct {
	cmd    *exec.Cmd
	id     agent.Process
	in     *os.File // to it
	out    *os.File // from it
	stderr *os.File // its own log
	logged chan struct{}
	exited chan struct{} // closed when the agent itself has ended
	once   sync.Once
	err    error // of the end
}

// startChild starts an agent in a process group of its own.
func startChild(opt *Options, about agent.Session) (*child, error) {
	dir, err := opt.directory(about)
	if err != nil {
		return nil, err
	}
	c := &child{logged: make(chan struct{}), exited: make(chan struct{})}
	var ends pipes
	defer ends.closeTheirs()
	theirIn := ends.to(&c.in)
	theirOut := ends.from(&c.out)
	theirErr := ends.from(&c.stderr)
	if ends.err != nil {
		return nil, unavailable("The agent cannot be started.", ends.err)
	}
	c.cmd = exec.Command(opt.Command[0], opt.Command[1:]...)
	c.cmd.Dir, c.cmd.Env = dir, opt.environment(about.ID)
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirIn, theirOut, theirErr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.cmd.Start(); err != nil {
		ends.closeOurs()
		return nil, notStarted(err)
	}
	if c.id, err = process.Identify(c.cmd.Process.Pid); err != nil {
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		_ = c.cmd.Wait()
		ends.closeOurs()
		return nil, unavailable("The agent cannot be started.", err)
	}
	go c.wait()
	go c.follow(newStderr(opt))
	return c, nil
}

// directory returns where an agent works.
func (o *Options) directory(about agent.Session) (string, error) {
	dir := o.Dir
	if dir == "" {
		dir = about.Cwd
	}
	if !filepath.IsAbs(dir) {
		return "", unavailable("The session has no directory for the agent to work in.", nil)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", unavailable("The session's directory does not exist.", err)
	}
	return dir, nil
}

// pipes are the ends of pipes to a child that is being started.
type pipes struct {
	ours, theirs []*os.File
	err          error
}

func (p *pipes) open() (r, w *os.File) {
	if p.err == nil {
		r, w, p.err = os.Pipe()
	}
	return r, w
}

// to makes a pipe that the child reads; from one that it writes.
func (p *pipes) to(ours **os.File) *os.File {
	r, w := p.open()
	*ours = w
	return p.keep(w, r)
}

func (p *pipes) from(ours **os.File) *os.File {
	r, w := p.open()
	*ours = r
	return p.keep(r, w)
}

func (p *pipes) keep(ours, theirs *os.File) *os.File {
	p.ours, p.theirs = append(p.ours, ours), append(p.theirs, theirs)
	return theirs
}

func (p *pipes) closeTheirs() {
	for _, f := range p.theirs {
		f.Close() // nil is refused, and that is all
	}
	if p.err != nil {
		p.closeOurs()
	}
}

func (p *pipes) closeOurs() {
	for _, f := range p.ours {
		f.Close()
	}
}

// wait reaps the agent.
func (c *child) wait() {
	_ = c.cmd.Wait() // its state says it
	close(c.exited)
	_ = c.stderr.SetReadDeadline(time.Now().Add(lastWords))
}

// follow reads the agent's own log.
func (c *child) follow(log *stderr) {
	defer close(c.logged)
	defer c.stderr.Close()
	log.read(c.stderr)
}

// await waits for the agent to end by itself, at most for a moment.
func (c *child) await() {
	t := time.NewTimer(lastWords)
	defer t.Stop()
	select {
	case <-c.exited:
	case <-t.C:
	}
}

// end ends the agent and everything in its group, and returns when they are gone. Its
// output can be read to its end then.
func (c *child) end() error {
	c.once.Do(func() {
		c.in.Close()
		c.await() // many agents save their session at the end of their input
		select {
		case <-c.exited:
			// Its number is not another's yet, and the group was ours a moment ago.
			_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), killTime)
		defer cancel()
		if c.err = process.KillGroup(ctx, c.id); c.err == nil {
			<-c.exited
		}
		_ = c.out.SetReadDeadline(time.Now().Add(lastWords))
	})
	return c.err
}

// status says how the agent ended by itself, before end was called.
func (c *child) status() string {
	select {
	case <-c.exited:
	default:
		return "it closed its output"
	}
	state, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && state.Signaled() {
		return "signal " + state.Signal().String()
	}
	return fmt.Sprintf("exit status %d", c.cmd.ProcessState.ExitCode())
}
