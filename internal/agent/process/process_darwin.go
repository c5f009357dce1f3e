package process

import (
	"errors"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

func bootID() (string, error) {
	t, err := unix.SysctlTimeval("kern.boottime")
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(t.Sec, 10), nil
}

// startTime is in microseconds.
func startTime(pid int) (uint64, error) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, err
	}
	start := p.Proc.P_starttime
	return uint64(start.Sec)*1_000_000 + uint64(start.Usec), nil
}

func alive(group int) bool { return !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) }
