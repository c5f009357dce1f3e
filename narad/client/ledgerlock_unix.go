//go:build unix

package client

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the file for this process until it is closed or the process ends.
func lock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLedgerInUse
	}
	return err
}
