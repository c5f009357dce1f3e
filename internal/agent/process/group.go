package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"github.com/mahati-host/mahati/internal/agent"
)

// Group is a process that was started for a session, in a process group of its own, with
// everything that it starts. Its methods may be called from several goroutines.
type Group struct {
	// ID tells the process apart from all others.
	ID     agent.Process
	cmd    *exec.Cmd
	exited chan struct{}

	mu     sync.Mutex
	reaped bool // guarded by mu: its number may be another's
}

// Start starts a command in a process group of its own, with [Mark] in its environment.
// The process is reaped when it ends; End must be called then, or before.
func Start(cmd *exec.Cmd, sessionID string) (*Group, error) {
	cmd.Env = append(cmd.Env, Mark+"="+sessionID)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err // of package exec: it names the program
	}
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		signal(cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		return nil, fmt.Errorf("identify a process: %w", err)
	}
	g := &Group{ID: id, cmd: cmd, exited: make(chan struct{})}
	go g.reap()
	return g, nil
}

func (g *Group) reap() {
	_ = g.cmd.Wait() // its state says how it ended
	g.mu.Lock()
	g.reaped = true
	g.mu.Unlock()
	close(g.exited)
}

// Exited is closed when the process itself has ended. Others of its group may go on.
func (g *Group) Exited() <-chan struct{} { return g.exited }

// State says how the process ended, once it has.
func (g *Group) State() *os.ProcessState { return g.cmd.ProcessState }

// Kill ends the group at once, as long as its process has not ended. It waits for
// nothing.
func (g *Group) Kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.reaped {
		signal(g.ID.PID, syscall.SIGKILL)
	}
}

// End ends the group, first politely, and returns when nothing of it runs any more. What
// a process left behind that has ended by itself, which may carry nothing by which it is
// known, is killed: End must be called as soon as Exited is closed, before the number
// of the group can be another's.
func (g *Group) End(ctx context.Context) error {
	select {
	case <-g.exited:
		signal(g.ID.PID, syscall.SIGKILL)
		if !gone(ctx, g.ID.PID, patience) {
			return stillThere(g.ID)
		}
		return nil
	default:
	}
	if err := KillGroup(ctx, g.ID); err != nil {
		return err
	}
	<-g.exited
	return nil
}
