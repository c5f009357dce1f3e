package script

import (
	"fmt"

	"github.com/mahati-host/mahati/internal/agent"
	"golang.org/x/sys/unix"
)

// identify returns what tells a process apart from all others, across restarts. The
// start time is in microseconds here.
func identify(pid int) (agent.Process, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return agent.Process{}, fmt.Errorf("read the start time of a process: %w", err)
	}
	boot, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return agent.Process{}, fmt.Errorf("read the id of the boot: %w", err)
	}
	began := info.Proc.P_starttime
	return agent.Process{PID: pid, StartTime: uint64(began.Sec)*1_000_000 + uint64(began.Usec), BootID: boot}, nil
}
