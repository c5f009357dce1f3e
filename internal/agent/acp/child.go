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
	group  *process.Group
	dir    string
	in     *os.File // to it
	out    *os.File // from it
	stderr *os.File // its own log
	logged chan struct{}
	once   sync.Once
	err    error // of the end
}

// startChild starts an agent in a process group of its own.
func startChild(opt *Options, about agent.Session) (*child, error) {
	dir, err := opt.directory(about)
	if err != nil {
		return nil, err
	}
	c := &child{dir: dir, logged: make(chan struct{})}
	cmd := exec.Command(opt.Command[0], opt.Command[1:]...)
	cmd.Dir, cmd.Env = dir, opt.environment()
	var pipes process.Pipes
	var theirIn, theirOut, theirErr *os.File
	c.in, theirIn = pipes.To()
	c.out, theirOut = pipes.From()
	c.stderr, theirErr = pipes.From()
	if err := pipes.Err(); err != nil {
		pipes.Close()
		return nil, unavailable("The agent cannot be started.", err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirIn, theirOut, theirErr
	if c.group, err = process.Start(cmd, about.ID); err != nil {
		pipes.Close()
		return nil, notStarted(err)
	}
	pipes.Started()
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

// wait bounds how long the agent's log is read once it has ended.
func (c *child) wait() {
	<-c.group.Exited()
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
	case <-c.group.Exited():
	case <-t.C:
	}
}

// end ends the agent and everything in its group, and returns when they are gone. Its
// output can be read to its end then.
func (c *child) end() error {
	c.once.Do(func() {
		c.in.Close()
		c.await() // many agents save their session at the end of their input
		ctx, cancel := context.WithTimeout(context.Background(), killTime)
		defer cancel()
		c.err = c.group.End(ctx)
		_ = c.out.SetReadDeadline(time.Now().Add(lastWords))
	})
	return c.err
}

// status says how the agent ended by itself, before end was called.
func (c *child) status() string {
	select {
	case <-c.group.Exited():
	default:
		return "it closed its output"
	}
	state := c.group.State()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return "signal " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", state.ExitCode())
}
