package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

func bootID() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(boot)), err
}

// startTime returns the start time of a process in clock ticks since the boot.
func startTime(pid int) (uint64, error) {
	s, err := readStat(pid)
	return s.start, err
}

// stat is what is read of a process.
type stat struct {
	state byte
	group int
	start uint64
}

// readStat reads /proc/PID/stat. The command's name stands in parentheses there and may
// hold anything; what follows it are numbers but for the state.
func readStat(pid int) (stat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return stat{}, errUnknown
	}
	if err != nil {
		return stat{}, err
	}
	const state, group, start = 0, 2, 19
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) <= start {
		return stat{}, fmt.Errorf("%d fields behind the name of a process", len(fields))
	}
	s := stat{state: fields[state][0]}
	if s.group, err = strconv.Atoi(string(fields[group])); err != nil {
		return stat{}, err
	}
	s.start, err = strconv.ParseUint(string(fields[start]), 10, 64)
	return s, err
}

// members returns the processes of a group that have not ended.
func members(group int) ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var list []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		s, err := readStat(pid)
		if err == nil && s.group == group && s.state != 'Z' && s.state != 'X' {
			list = append(list, pid)
		}
	}
	return list, nil
}

// marked reports whether a process was started with [Mark] in its environment, and
// whether it shows one.
func marked(pid int) (carries, shown bool) {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+Mark+"=")), err == nil && len(env) > 0
}
