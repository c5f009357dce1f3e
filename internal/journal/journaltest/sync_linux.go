package journaltest

import (
	"os"
	"syscall"
)

// syncData makes what was written to a file durable, without its times.
func syncData(file *os.File) error { return syscall.Fdatasync(int(file.Fd())) }
