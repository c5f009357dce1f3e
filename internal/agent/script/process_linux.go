package script

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/mahati-host/mahati/internal/agent"
)

// identify returns what tells a process apart from all others, across restarts.
func identify(pid int) (agent.Process, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return agent.Process{}, fmt.Errorf("read the start time of a process: %w", err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return agent.Process{}, fmt.Errorf("read the id of the boot: %w", err)
	}
	// The command's name stands in parentheses and may hold anything; the start time
	// is the 20th field after it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return agent.Process{}, fmt.Errorf("read the start time of a process: %d fields", len(fields))
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	if err != nil {
		return agent.Process{}, fmt.Errorf("read the start time of a process: %w", err)
	}
	return agent.Process{PID: pid, StartTime: start, BootID: strings.TrimSpace(string(boot))}, nil
}
