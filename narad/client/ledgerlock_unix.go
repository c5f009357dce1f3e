//go:build unix

package client

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// lockPatience is how long lock waits for a lock that is held. Of an executor that was
// killed a tool may hold it a little longer, which had been begun and was not yet its own
// program.
const lockPatience = 2 * time.Second

// lock takes the file for this process until it is closed or the process ends.
func lock(file *os.File) error {
	const pause = 20 * time.Millisecond
	for patience := lockPatience; ; patience -= pause {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return err
		case patience <= 0:
			return errLedgerInUse
		}
		time.Sleep(pause)
	}
}
