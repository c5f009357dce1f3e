package process

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
)

// Mark is a variable that every process started for a session has in its environment.
// By it a group is known whose leader is gone.
const Mark = "MAHATI_SESSION_ID"

const (
	// politeness is how long a group may take to end by itself.
	politeness = 2 * time.Second
	// patience is how long the kernel may take to end it.
	patience = 5 * time.Second
	// glance is how often a group is looked at while it ends. Nobody reports the end
	// of processes that are not one's own children.
	glance = 10 * time.Millisecond
)

// errUnknown says that there is no process of a number.
var errUnknown = errors.New("there is no such process")

// Identify returns what tells a process apart from all others, across restarts.
func Identify(pid int) (agent.Process, error) {
	start, err := startTime(pid)
	if err != nil {
		return agent.Process{}, fmt.Errorf("read the start time of a process: %w", err)
	}
	boot, err := bootID()
	if err != nil {
		return agent.Process{}, fmt.Errorf("read the id of the boot: %w", err)
	}
	return agent.Process{PID: pid, StartTime: start, BootID: boot}, nil
}

// Same reports whether a process is there, ended or not, and is the one that was
// identified.
func Same(p agent.Process) bool {
	now, err := Identify(p.PID)
	return err == nil && now == p
}

// KillGroup ends the group that a process leads, first politely. It returns nil when
// the group is gone, was gone, or is not the one that was recorded. When ctx is done
// it is impolite at once, and waits no longer.
func KillGroup(ctx context.Context, p agent.Process) error {
	ours, err := owned(p)
	if err != nil {
		return fmt.Errorf("look for the process group %d: %w", p.PID, err)
	}
	if !ours {
		return nil
	}
	signal(p.PID, syscall.SIGTERM)
	if gone(ctx, p.PID, politeness) {
		return nil
	}
	signal(p.PID, syscall.SIGKILL)
	if gone(ctx, p.PID, patience) {
		return nil
	}
	return stillThere(p)
}

func stillThere(p agent.Process) error {
	return fmt.Errorf("end the process group %d: it is still there", p.PID)
}

// owned reports whether a group runs and is the one that p leads or led.
func owned(p agent.Process) (bool, error) {
	// Signals to these go to everybody, or to the host itself.
	if p.PID <= 1 || p.PID == syscall.Getpgrp() {
		return false, nil
	}
	boot, err := bootID()
	if err != nil {
		return false, err
	}
	if boot != p.BootID || !there(p.PID) {
		return false, nil
	}
	start, err := startTime(p.PID)
	switch {
	case err == nil:
		return start == p.StartTime, nil
	case !errors.Is(err, errUnknown):
		return false, err
	}
	return anyMarked(p.PID)
}

// anyMarked reports whether a member of a group carries [Mark]. One that is just about to
// become another program shows no environment at all: it is looked at again, for a
// moment.
func anyMarked(group int) (bool, error) {
	const looks = 20
	for n := 0; ; n++ {
		list, err := members(group)
		if err != nil {
			return false, err
		}
		doubt := false
		for _, pid := range list {
			switch carries, shown := marked(pid); {
			case carries:
				return true, nil
			case !shown:
				doubt = true
			}
		}
		if !doubt || n == looks {
			return false, nil
		}
		<-time.After(glance)
	}
}

// signal sends a signal to a group. That it is gone by now is no fault, and whatever
// else is shows in that it does not go.
func signal(group int, s syscall.Signal) { _ = syscall.Kill(-group, s) }

// there reports whether a group has any process, ended ones included.
func there(group int) bool { return !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) }

// gone waits until nothing of a group runs, at most so long, and reports whether it
// does.
func gone(ctx context.Context, group int, within time.Duration) bool {
	end := time.NewTimer(within)
	defer end.Stop()
	look := time.NewTicker(glance)
	defer look.Stop()
	for {
		if !running(group) {
			return true
		}
		select {
		case <-look.C:
		case <-end.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// running reports whether a group has a process that has not ended. In doubt it has.
func running(group int) bool {
	if !there(group) {
		return false
	}
	list, err := members(group)
	return err != nil || len(list) > 0
}
