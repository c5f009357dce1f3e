package process

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
)

// Identify names a running process.
func Identify(pid int) (agent.Process, error) {
	boot, err := bootID()
	if err != nil {
		return agent.Process{}, fmt.Errorf("read the boot of the machine: %w", err)
	}
	start, err := startTime(pid)
	if err != nil {
		return agent.Process{}, fmt.Errorf("read the start of process %d: %w", pid, err)
	}
	return agent.Process{PID: pid, StartTime: start, BootID: boot}, nil
}

// Same reports whether the process still runs and is the one that was named.
func Same(p agent.Process) bool {
	now, err := Identify(p.PID)
	return err == nil && now == p
}

// The times that a group has to end: politely, and then by force.
const (
	politeTime = 2 * time.Second
	look       = 20 * time.Millisecond
)

// KillGroup ends the group that p leads, politely and then by force, and returns when
// it is gone or ctx is over. If the leader is gone, or another process by now, nothing
// is done: its number may have become somebody else's.
func KillGroup(ctx context.Context, p agent.Process) error {
	if p.PID <= 1 || !Same(p) {
		return nil
	}
	if err := signal(p.PID, syscall.SIGTERM); err != nil {
		return err
	}
	polite, cancel := context.WithTimeout(ctx, politeTime)
	defer cancel()
	if gone(polite, p.PID) {
		return nil
	}
	if err := signal(p.PID, syscall.SIGKILL); err != nil {
		return err
	}
	if !gone(ctx, p.PID) {
		return fmt.Errorf("wait for the group of process %d: %w", p.PID, ctx.Err())
	}
	return nil
}

// signal sends a signal to a group; one that is gone is no error.
func signal(group int, s syscall.Signal) error {
	if err := syscall.Kill(-group, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal the group of process %d: %w", group, err)
	}
	return nil
}

// gone waits until a group has no process that runs.
func gone(ctx context.Context, group int) bool {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		if !alive(group) {
			return true
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
}
