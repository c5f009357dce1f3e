package blob

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Put reads content of at most limit bytes to its end and keeps it. It answers when
// the content is durable. Content that is kept already is written anew, which also
// mends it. On an error, also one of the reader, nothing is kept.
func (s *Store) Put(content io.Reader, limit int64) (Info, error) {
	staged, err := s.Stage(content, limit)
	if err != nil {
		return Info{}, err
	}
	if err := staged.Keep(); err != nil {
		return Info{}, err
	}
	return staged.Info(), nil
}

// Staged is content that is whole and durable, and not kept yet: what it is, is known
// before it has a place. It belongs to one goroutine, which ends it by Keep or Discard.
type Staged struct {
	store *Store
	name  string
	info  Info
}

// Stage is the first half of [Store.Put], with its errors.
func (s *Store) Stage(content io.Reader, limit int64) (*Staged, error) {
	if s.broken.Load() {
		return nil, fmt.Errorf("put content: %w", ErrBroken)
	}
	name := temporary + "/" + rand.Text()
	info, err := s.write(name, content, limit)
	if err != nil {
		return nil, putError(err)
	}
	return &Staged{s, name, info}, nil
}

// Info returns the content's digest and size.
func (c *Staged) Info() Info { return c.info }

// Keep gives the content its place, and answers when that is durable. On an error
// nothing is kept.
func (c *Staged) Keep() error { return putError(c.store.publish(c.name, c.info.Digest)) }

// Discard gives the content up. Should that fail, the next [Open] does it.
func (c *Staged) Discard() { _ = c.store.root.Remove(c.name) }

func putError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	return fmt.Errorf("put content: %w", err)
}

// write writes content into a new file and makes that durable. On an error the file is
// removed; should that fail, the next Open does it.
func (s *Store) write(name string, content io.Reader, limit int64) (info Info, err error) {
	file, err := s.create(name)
	if err != nil {
		return Info{}, err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			_ = s.root.Remove(name)
		}
	}()
	if info, err = s.copy(file, name, content, limit); err != nil {
		return Info{}, err
	}
	if err = s.step("sync file", name); err == nil {
		err = file.Sync()
	}
	if err != nil {
		return Info{}, fmt.Errorf("sync: %w", err)
	}
	return info, nil
}

// create makes a file that nobody else can open, whatever the umask is.
func (s *Store) create(name string) (*os.File, error) {
	if err := s.step("create", name); err != nil {
		return nil, err
	}
	file, err := s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return nil, err
	}
	if err := file.Chmod(fileMode); err != nil {
		return nil, errors.Join(err, file.Close(), s.root.Remove(name))
	}
	return file, nil
}

// copyBytes is how much is read at a time.
const copyBytes = 64 << 10

// copy writes content to a file and says what it was.
func (s *Store) copy(file io.Writer, name string, content io.Reader, limit int64) (Info, error) {
	hash := sha256.New()
	info := Info{}
	for buffer := make([]byte, copyBytes); ; {
		n, end := content.Read(buffer)
		if info.Size += int64(n); info.Size > limit {
			return Info{}, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
		}
		if n > 0 {
			if err := s.step("write", name); err != nil {
				return Info{}, err
			}
			hash.Write(buffer[:n])
			if _, err := file.Write(buffer[:n]); err != nil {
				return Info{}, err
			}
		}
		if end == io.EOF {
			hash.Sum(info.Digest[:0])
			return info, nil
		}
		if end != nil {
			return Info{}, fmt.Errorf("read content: %w", end)
		}
	}
}

// publish gives a file that is whole its name.
func (s *Store) publish(name string, d Digest) error {
	err := s.makeShard(d)
	if err == nil {
		err = s.step("rename", d.path())
	}
	if err == nil {
		err = s.root.Rename(name, d.path())
	}
	if err != nil {
		_ = s.root.Remove(name)
		return err
	}
	return s.syncDir(d.shard())
}

// Remove takes a content away. That nothing has the digest is no error.
func (s *Store) Remove(d Digest) error {
	err := s.root.Remove(d.path())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.syncDir(d.shard())
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", d, err)
	}
	return nil
}
