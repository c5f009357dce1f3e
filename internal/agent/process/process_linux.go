package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// startTime is field 22 of the process's stat, in clock ticks since the boot.
func startTime(pid int) (uint64, error) {
	fields, err := stat(strconv.Itoa(pid))
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(fields[statStart], 10, 64)
}

// The places in what follows the name in a process's stat.
const (
	statState = 0
	statGroup = 2
	statStart = 19
)

// stat returns the fields after the name, which may hold anything.
func stat(pid string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return nil, err
	}
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return nil, fmt.Errorf("stat of process %s: no name", pid)
	}
	fields := strings.Fields(string(data[end+1:]))
	if len(fields) <= statStart {
		return nil, fmt.Errorf("stat of process %s: %d fields", pid, len(fields))
	}
	return fields, nil
}

// alive reports whether a group has a process that is not a zombie: those that wait
// for a parent that never asks do nothing any more.
func alive(group int) bool {
	if errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		return false
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return true
	}
	for _, p := range processes {
		fields, err := stat(filepath.Base(p))
		if err == nil && fields[statGroup] == strconv.Itoa(group) && fields[statState] != "Z" {
			return true
		}
	}
	return false
}
