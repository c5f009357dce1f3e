package process

import (
	"bytes"
	"errors"

	"golang.org/x/sys/unix"
)

func bootID() (string, error) { return unix.Sysctl("kern.bootsessionuuid") }

// startTime returns the start time of a process in microseconds.
func startTime(pid int) (uint64, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	// Without a process the kernel answers with nothing, which is an EIO here.
	if errors.Is(err, unix.EIO) || errors.Is(err, unix.ESRCH) {
		return 0, errUnknown
	}
	if err != nil {
		return 0, err
	}
	began := info.Proc.P_starttime
	return uint64(began.Sec)*1_000_000 + uint64(began.Usec), nil
}

// zombie is the state of a process that has ended (SZOMB of sys/proc.h).
const zombie = 5

// members returns the processes of a group that have not ended.
func members(group int) ([]int, error) {
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", group)
	if err != nil {
		return nil, err
	}
	var list []int
	for i := range infos {
		if infos[i].Proc.P_stat != zombie {
			list = append(list, int(infos[i].Proc.P_pid))
		}
	}
	return list, nil
}

// marked reports whether a process was started with [Mark] in its environment, which
// stands behind its arguments, and whether it shows these.
func marked(pid int) (carries, shown bool) {
	args, err := unix.SysctlRaw("kern.procargs2", pid)
	return err == nil && bytes.Contains(args, []byte("\x00"+Mark+"=")), err == nil
}
