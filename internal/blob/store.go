package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
)

// Store is a directory of contents. It must be made by [Open].
type Store struct {
	root *os.Root
	// step is told of each act on the disk before it is done, and may fail it. It is
	// there for tests.
	step   func(act, name string) error
	broken atomic.Bool
	// made says which directories of contents this store knows to be durable.
	made [256]atomic.Bool
}

// The errors of this package, to be found with errors.Is.
var (
	// ErrNotFound: nothing with this digest is kept.
	ErrNotFound = errors.New("no content has this digest")
	// ErrDamaged: what is kept under a digest does not have it.
	ErrDamaged = errors.New("content is damaged")
	// ErrTooLarge: content has more bytes than its limit.
	ErrTooLarge = errors.New("content is too large")
	// ErrFull: the disk has no room for the content. Nothing of it is kept.
	ErrFull = errors.New("no space is left for content")
	// ErrBroken: an earlier sync failed, and the store must be opened anew.
	ErrBroken = errors.New("an earlier sync of a directory failed")
)

// Info is what is known of a content without reading it.
type Info struct {
	Digest Digest
	// Size is in bytes.
	Size int64
}

const (
	fileMode = 0o600
	dirMode  = 0o700
	// temporary is the directory of contents that are not whole yet.
	temporary = "tmp"
)

// Open opens the store in a directory, which is made if it is missing; its parent must
// be there. What an earlier process left half written is removed.
func Open(dir string) (*Store, error) {
	return open(dir, func(string, string) error { return nil })
}

func open(dir string, step func(act, name string) error) (*Store, error) {
	if err := makeRoot(dir); err != nil {
		return nil, fmt.Errorf("open the contents in %s: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the contents in %s: %w", dir, err)
	}
	s := &Store{root: root, step: step}
	if err := s.sweep(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the contents in %s: %w", dir, err), root.Close())
	}
	return s, nil
}

// Close closes the directory. Contents that are open can be read on.
func (s *Store) Close() error { return s.root.Close() }

// makeRoot makes the store's own directory, durably.
func makeRoot(dir string) error {
	err := os.Mkdir(dir, dirMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = os.Chmod(dir, dirMode)
	}
	if err != nil {
		return err
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	return errors.Join(parent.Sync(), parent.Close())
}

// makeShard makes the directory of a content, durably. That it is there does not say
// that it is durable: another Put, or an earlier process, may not have got so far.
func (s *Store) makeShard(d Digest) error {
	if s.made[d[0]].Load() {
		return nil
	}
	if err := s.makeDir(d.shard()); err != nil {
		return err
	}
	if err := s.syncDir("."); err != nil {
		return err
	}
	s.made[d[0]].Store(true)
	return nil
}

// makeDir makes a directory if it is missing, and gives it its mode.
func (s *Store) makeDir(name string) error {
	err := s.step("make directory", name)
	if err == nil {
		err = s.root.Mkdir(name, dirMode)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := s.root.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() { // a symbolic link is none
		return fmt.Errorf("%s is not a directory", name)
	}
	return s.root.Chmod(name, dirMode)
}

// sweep removes what was not whole when an earlier process ended.
func (s *Store) sweep() error {
	if err := s.makeDir(temporary); err != nil {
		return err // it may be a link to the contents themselves
	}
	names, err := s.list(temporary)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := s.root.RemoveAll(temporary + "/" + name); err != nil {
			return err
		}
	}
	return nil
}

// list returns the names in a directory.
func (s *Store) list(dir string) ([]string, error) {
	d, err := s.root.Open(dir)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	return names, errors.Join(err, d.Close())
}

// syncDir makes what a directory lists durable. After a failure nobody can know
// whether it is: the next sync may succeed and have lost what this one did not write.
// (A file that cannot be synced is given up, and its content may be put again.)
func (s *Store) syncDir(name string) error {
	err := s.step("sync directory", name)
	if err == nil {
		err = s.sync(name)
	}
	if err != nil {
		s.broken.Store(true)
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

func (s *Store) sync(name string) error {
	d, err := s.root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
