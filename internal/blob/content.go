package blob

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"os"
)

// Stat says what is known of a content without reading it. The error is [ErrNotFound]
// where there is none.
func (s *Store) Stat(d Digest) (Info, error) {
	info, err := s.root.Lstat(d.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Info{}, fmt.Errorf("%s: %w", d, ErrNotFound)
	case err != nil:
		return Info{}, fmt.Errorf("look at %s: %w", d, err)
	case !info.Mode().IsRegular():
		return Info{}, fmt.Errorf("%s: %w: it is not a file", d, ErrDamaged)
	}
	return Info{d, info.Size()}, nil
}

// tailBytes is how much of a content is kept back until its digest is known: all of a
// small one, the end of a large one.
const tailBytes = 256 << 10

// Content is a content that is being read. It belongs to one goroutine.
type Content struct {
	info Info
	file *os.File
	hash hash.Hash
	left int64         // bytes of the file before its tail that were not read yet
	tail *bytes.Reader // the last bytes, once they are known to be the right ones
}

// Open opens a content. The errors are [ErrNotFound] and, already here for content of
// at most 256 KiB, [ErrDamaged]. The caller closes it.
func (s *Store) Open(d Digest) (*Content, error) {
	info, err := s.Stat(d)
	if err != nil {
		return nil, err
	}
	file, err := s.root.Open(d.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", d, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", d, err)
	}
	c := &Content{info: info, file: file, hash: sha256.New(), left: max(info.Size-tailBytes, 0)}
	if c.left > 0 {
		return c, nil
	}
	if err := c.readTail(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return c, nil
}

// Info returns the content's digest and size.
func (c *Content) Info() Info { return c.info }

// Close closes the content.
func (c *Content) Close() error { return c.file.Close() }

// Read reads on. Of damaged content it answers [ErrDamaged] before the last 256 KiB.
func (c *Content) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if c.left == 0 && c.tail == nil {
		if err := c.readTail(); err != nil {
			return 0, err
		}
	}
	if c.tail != nil {
		return c.tail.Read(p)
	}
	n, err := c.file.Read(p[:min(int64(len(p)), c.left)])
	c.hash.Write(p[:n])
	c.left -= int64(n)
	if err != nil {
		return n, c.failed(err)
	}
	return n, nil
}

// readTail reads the last bytes and compares the digest of the whole.
func (c *Content) readTail() error {
	tail := make([]byte, min(c.info.Size, tailBytes))
	if _, err := io.ReadFull(c.file, tail); err != nil {
		return c.failed(err)
	}
	c.hash.Write(tail)
	if Digest(c.hash.Sum(nil)) != c.info.Digest {
		return fmt.Errorf("%s: %w", c.info.Digest, ErrDamaged)
	}
	c.tail = bytes.NewReader(tail)
	return nil
}

// failed returns the error for content that could not be read to its end.
func (c *Content) failed(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: %w: bytes are missing", c.info.Digest, ErrDamaged)
	}
	return fmt.Errorf("read %s: %w", c.info.Digest, err)
}

// Section opens a part of a content, from an offset on. All of the content is checked
// first, so nothing of damaged content is ever read. The errors are [ErrNotFound],
// [ErrDamaged] and those of reading. The caller closes it.
func (s *Store) Section(d Digest, offset, length int64) (io.ReadCloser, error) {
	c, err := s.Open(d)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return section{io.NewSectionReader(c.file, offset, length), c.file}, nil
}

type section struct {
	io.Reader
	io.Closer
}

// Verify reads a content and says whether it is whole. The errors are those of [Open]
// and of reading.
func (s *Store) Verify(d Digest) error {
	c, err := s.Open(d)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, c)
	return errors.Join(err, c.Close())
}

// All returns every content that is kept, in the order of their digests. What comes or
// goes meanwhile may or may not be among them. A file that no Put wrote is passed
// over. The error of what cannot be looked at stands beside an empty Info.
func (s *Store) All() iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for i := range 256 {
			for info, err := range s.allIn(Digest{byte(i)}.shard()) {
				if !yield(info, err) {
					return
				}
			}
		}
	}
}

func (s *Store) allIn(shard string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		names, err := s.list(shard)
		if errors.Is(err, fs.ErrNotExist) {
			return // nothing was put there
		}
		if err != nil {
			yield(Info{}, fmt.Errorf("list contents: %w", err))
			return
		}
		for _, d := range digestsOf(names, shard) {
			info, err := s.Stat(d)
			if errors.Is(err, ErrNotFound) {
				continue // it went meanwhile
			}
			if !yield(info, err) {
				return
			}
		}
	}
}
