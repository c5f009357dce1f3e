package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mahati-host/mahati/internal/journal"
)

const (
	fileMode = 0o600
	dirMode  = 0o700
)

// privateFS gives every file 0600 and every directory 0700, whatever the umask
// of the process is: the umask is left alone because agents inherit it.
type privateFS struct{ vfs.FS }

// Create makes the file with its final mode before anybody can open it.
func (p privateFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	for {
		err := createPrivate(name)
		if err == nil {
			return p.FS.OpenReadWrite(name, category)
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// OpenReadWrite makes the file if need be.
func (p privateFS) OpenReadWrite(
	name string, category vfs.DiskWriteCategory, options ...vfs.OpenOption,
) (vfs.File, error) {
	if err := createPrivate(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return p.FS.OpenReadWrite(name, category, options...)
}

// ReuseForWrite reuses a file that already has the right mode.
func (p privateFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := p.Rename(oldname, newname); err != nil {
		return nil, err
	}
	return p.FS.OpenReadWrite(newname, category)
}

// Lock makes the lock file private before it is locked.
func (p privateFS) Lock(name string) (io.Closer, error) {
	if err := createPrivate(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return p.FS.Lock(name)
}

// MkdirAll makes the missing directories; those that are there keep their mode.
func (p privateFS) MkdirAll(dir string, _ os.FileMode) error { return mkdirPrivate(dir) }

func createPrivate(name string) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR|syscall.O_CLOEXEC, fileMode)
	if err != nil {
		return err
	}
	// The umask may have taken away what the owner needs.
	return errors.Join(file.Chmod(fileMode), file.Close())
}

func mkdirPrivate(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", dir)
		}
		return nil
	}
	if parent := filepath.Dir(dir); parent != dir {
		if err := mkdirPrivate(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Chmod(dir, dirMode)
}

// lockName is the file in a directory that Lock locks.
const lockName = "mahati.lock"

// lockPatience is how long Lock waits for a lock that is held. Of a host that was killed a
// child may hold it a little longer, which had been begun and was not yet its own program.
const lockPatience = 2 * time.Second

// Lock makes the directory if it is missing and takes an exclusive lock on it,
// or answers journal.ErrLocked. The lock belongs to the directory itself, so
// that a path through a symlink meets it too, and ends with the process.
func Lock(dir string) (io.Closer, error) {
	if err := makeDir(privateFS{vfs.Default}, dir); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, lockName)
	if err := createPrivate(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make lock file: %w", err)
	}
	file, err := os.OpenFile(name, os.O_RDWR|syscall.O_CLOEXEC, fileMode)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := flock(file, lockPatience); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return file, nil
}

// flock locks a file, and waits so long if somebody else has locked it.
func flock(file *os.File, patience time.Duration) error {
	const pause = 20 * time.Millisecond
	for ; ; patience -= pause {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return err
		case patience <= 0:
			return journal.ErrLocked
		}
		time.Sleep(pause)
	}
}
