package access

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	ownerOnly   = 0o600
	maxFileSize = 16 << 20
)

// readOwnerOnly reads a small file that nobody but its owner may open. What it
// looked like is taken from the open file, so that the two belong together.
func readOwnerOnly(path string) ([]byte, os.FileInfo, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%w: %s is not a regular file", ErrDamaged, path)
	}
	if open := info.Mode().Perm() &^ ownerOnly; open != 0 {
		return nil, nil, fmt.Errorf("%w: %s has mode %04o, must be 0600", ErrDamaged, path, info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFileSize+1))
	if err != nil {
		return nil, nil, err
	}
	if len(data) > maxFileSize {
		return nil, nil, fmt.Errorf("%w: %s has more than %d bytes", ErrDamaged, path, maxFileSize)
	}
	return data, info, nil
}

// replaceFile puts data in place of a file of dir, owner-only. After a crash the
// file is the old one or the new one, whole; once it returns nil, the new one.
// The caller holds the lock, so the name of the draft is free.
func replaceFile(dir, name string, data []byte) error {
	path, draft := filepath.Join(dir, name), filepath.Join(dir, name+".new")
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := writeSynced(draft, data); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	if err := os.Rename(draft, path); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return syncDir(dir)
}

func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownerOnly)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func syncDir(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// lockFile waits for the lock and returns how to give it back. The lock belongs
// to the open file, so it holds between goroutines as well, and is free again
// when its process dies.
func lockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, ownerOnly)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the tokens: %w", err)
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the tokens: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}
