package blob

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func openStore(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// content returns bytes that differ by their seed.
func content(seed int64, size int) []byte {
	data := make([]byte, size)
	rand.New(rand.NewSource(seed)).Read(data)
	return data
}

func put(t *testing.T, s *Store, data []byte) Digest {
	t.Helper()
	info, err := s.Put(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatalf("put %d bytes: %v", len(data), err)
	}
	return info.Digest
}

func read(s *Store, d Digest) ([]byte, error) {
	c, err := s.Open(d)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(c)
	return data, errors.Join(err, c.Close())
}

// all returns what a store lists, by digest.
func all(t *testing.T, s *Store) map[Digest]int64 {
	t.Helper()
	list := map[Digest]int64{}
	for info, err := range s.All() {
		if err != nil {
			t.Fatal(err)
		}
		list[info.Digest] = info.Size
	}
	return list
}

// leftOver returns the names of contents that are not whole.
func leftOver(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "tmp"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// sizes stand around every size that the code treats in its own way.
var sizes = []int{0, 1, 100, copyBytes - 1, copyBytes, copyBytes + 1, tailBytes - 1, tailBytes, tailBytes + 1, tailBytes + copyBytes, 3*tailBytes + 7}

func TestPutAndOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	s := openStore(t, dir)
	want := map[Digest]int64{}
	for _, size := range sizes {
		data := content(int64(size), size)
		for _, reader := range []io.Reader{bytes.NewReader(data), iotest.DataErrReader(bytes.NewReader(data)), iotest.HalfReader(bytes.NewReader(data))} {
			info, err := s.Put(reader, int64(size))
			if wanted := (Info{sha256.Sum256(data), int64(size)}); err != nil || info != wanted {
				t.Fatalf("put %d bytes: got %v, %v, want %v", size, info, err, wanted)
			}
		}
		d := Digest(sha256.Sum256(data))
		want[d] = int64(size)
		if info, err := s.Stat(d); err != nil || info.Size != int64(size) || info.Digest != d {
			t.Errorf("stat of %d bytes: got %v, %v", size, info, err)
		}
		if got, err := read(s, d); err != nil || !bytes.Equal(got, data) {
			t.Errorf("read %d bytes: got %d, %v", size, len(got), err)
		}
		c, err := s.Open(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(iotest.TestReader(c, data), c.Close()); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		if err := s.Verify(d); err != nil {
			t.Errorf("verify %d bytes: %v", size, err)
		}
	}
	if d := cmp.Diff(want, all(t, s)); d != "" {
		t.Errorf("what is listed (-want +got):\n%s", d)
	}
	if names := leftOver(t, dir); len(names) > 0 {
		t.Errorf("left over: %v", names)
	}
	again := openStore(t, dir)
	if d := cmp.Diff(want, all(t, again)); d != "" {
		t.Errorf("what is listed after opening again (-want +got):\n%s", d)
	}
}

// Contents are listed in the order of their digests, and the list may be left.
func TestAllIsInOrder(t *testing.T) {
	s := openStore(t, t.TempDir())
	for i := range 60 {
		put(t, s, content(int64(i), 3))
	}
	var digests []string
	for info, err := range s.All() {
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, info.Digest.String())
		if len(digests) == 59 {
			break
		}
	}
	if !slices.IsSorted(digests) || len(digests) != 59 {
		t.Errorf("%d digests, sorted: %v", len(digests), slices.IsSorted(digests))
	}
}

// A limit is the largest size that is taken, and what is refused leaves nothing.
func TestPutLimit(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	for _, size := range sizes {
		data := content(1, size)
		info, err := s.Put(bytes.NewReader(data), int64(size)-1)
		if !errors.Is(err, ErrTooLarge) || info != (Info{}) {
			t.Errorf("%d bytes of at most %d: got %v, %v, want ErrTooLarge", size, size-1, info, err)
		}
	}
	endless := iotest.TimeoutReader(zeros{}) // it would go on for ever but for a failure
	if _, err := s.Put(io.MultiReader(zeros{}, endless), 1<<20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("content without end: got %v, want ErrTooLarge", err)
	}
	if list := all(t, s); len(list) > 0 || len(leftOver(t, dir)) > 0 {
		t.Errorf("kept %v, left over %v, want nothing", list, leftOver(t, dir))
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Content whose reader fails is not kept, at whatever byte that is.
func TestPutReaderFails(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	broken := errors.New("the client went away")
	for _, size := range sizes {
		reader := io.MultiReader(bytes.NewReader(content(1, size)), iotest.ErrReader(broken))
		if info, err := s.Put(reader, 1<<30); !errors.Is(err, broken) || info != (Info{}) {
			t.Errorf("after %d bytes: got %v, %v, want the reader's error", size, info, err)
		}
	}
	if list := all(t, s); len(list) > 0 || len(leftOver(t, dir)) > 0 {
		t.Errorf("kept %v, left over %v, want nothing", list, leftOver(t, dir))
	}
	put(t, s, content(1, 100)) // the store goes on
}

func TestNotFound(t *testing.T) {
	s := openStore(t, t.TempDir())
	d := put(t, s, content(1, 10))
	if err := s.Remove(d); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(d); err != nil {
		t.Errorf("remove again: %v", err)
	}
	_, opened := s.Open(d)
	_, looked := s.Stat(d)
	for call, err := range map[string]error{"Open": opened, "Stat": looked, "Verify": s.Verify(d)} {
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), d.String()) {
			t.Errorf("%s: got %v, want ErrNotFound with the digest", call, err)
		}
	}
}

// Content that is removed while it is read is read to its end.
func TestRemoveWhileReading(t *testing.T) {
	s := openStore(t, t.TempDir())
	data := content(1, 3*tailBytes)
	d := put(t, s, data)
	c, err := s.Open(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(d); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(c)
	if err = errors.Join(err, c.Close()); err != nil || !bytes.Equal(got, data) {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// place returns where a content lies.
func place(dir string, d Digest) string { return filepath.Join(dir, filepath.FromSlash(d.path())) }

// Damaged content is never served as whole, whatever has happened to it, and to put it
// again mends it.
func TestDamage(t *testing.T) {
	flip := func(at func(size int) int) func(*testing.T, string) {
		return func(t *testing.T, name string) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			data[at(len(data))] ^= 1
			overwrite(t, name, data)
		}
	}
	damages := map[string]func(t *testing.T, name string){
		"first byte":  flip(func(int) int { return 0 }),
		"middle byte": flip(func(size int) int { return size / 2 }),
		"last byte":   flip(func(size int) int { return size - 1 }),
		"cut": func(t *testing.T, name string) {
			info, err := os.Stat(name)
			if err == nil {
				err = os.Truncate(name, info.Size()-1)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"empty":  func(t *testing.T, name string) { overwrite(t, name, nil) },
		"longer": func(t *testing.T, name string) { overwrite(t, name, append(mustRead(t, name), 0)) },
		"a link to other content": func(t *testing.T, name string) {
			other := filepath.Join(t.TempDir(), "other")
			overwrite(t, other, mustRead(t, name))
			if err := errors.Join(os.Remove(name), os.Symlink(other, name)); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, damage := range damages {
		for _, size := range []int{1, 100, tailBytes, tailBytes + 1, 3 * tailBytes} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				dir := t.TempDir()
				s := openStore(t, dir)
				data := content(int64(size), size)
				d := put(t, s, data)
				damage(t, place(dir, d))
				got, err := read(s, d)
				if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), d.String()) {
					t.Errorf("read: got %v, want ErrDamaged with the digest", err)
				}
				if len(got) >= size || len(got) > 0 && size < tailBytes {
					t.Errorf("%d of %d bytes were served", len(got), size)
				}
				if err := s.Verify(d); !errors.Is(err, ErrDamaged) {
					t.Errorf("verify: got %v, want ErrDamaged", err)
				}
				put(t, s, data)
				if got, err := read(s, d); err != nil || !bytes.Equal(got, data) {
					t.Errorf("after putting it again: got %d bytes, %v", len(got), err)
				}
			})
		}
	}
}

func mustRead(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func overwrite(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// An error of content stays: a reader cannot go on behind it.
func TestDamageStays(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	d := put(t, s, content(1, 3*tailBytes))
	overwrite(t, place(dir, d), content(2, 3*tailBytes))
	c, err := s.Open(d)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	served, err := io.Copy(io.Discard, c)
	if !errors.Is(err, ErrDamaged) || served != 2*tailBytes {
		t.Errorf("got %d bytes, %v, want ErrDamaged after %d", served, err, 2*tailBytes)
	}
	for range 3 {
		if n, err := c.Read(make([]byte, 10)); n != 0 || !errors.Is(err, ErrDamaged) {
			t.Errorf("read on: got %d bytes, %v, want ErrDamaged", n, err)
		}
	}
}

// A disk that cannot be read says nothing about the content.
func TestReadFails(t *testing.T) {
	s := openStore(t, t.TempDir())
	d := put(t, s, content(1, 3*tailBytes))
	for _, before := range []int64{0, 10, 2 * tailBytes} {
		c, err := s.Open(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, c, before); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			n, err := c.Read(make([]byte, 10))
			if n != 0 || !errors.Is(err, fs.ErrClosed) || errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), d.String()) {
				t.Errorf("after %d bytes: got %d bytes, %v, want the error of the file with the digest", before, n, err)
			}
		}
	}
}

// What is no file under a digest is damage, and not read.
func TestPlaceIsNoFile(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	d := put(t, s, content(1, 10))
	if err := errors.Join(os.Remove(place(dir, d)), os.Mkdir(place(dir, d), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(d); !errors.Is(err, ErrDamaged) {
		t.Errorf("a directory: got %v, want ErrDamaged", err)
	}
	var got error
	for _, err := range s.All() {
		got = errors.Join(got, err)
	}
	if !errors.Is(got, ErrDamaged) {
		t.Errorf("list: got %v, want ErrDamaged", got)
	}
}

// Nothing outside the directory is touched through a symbolic link.
func TestSymbolicLinks(t *testing.T) {
	data := content(1, 10)
	d := Digest(sha256.Sum256(data))
	link := func(t *testing.T, dir, name string) (outside string) {
		t.Helper()
		outside = t.TempDir()
		overwrite(t, filepath.Join(outside, "precious"), []byte("mine"))
		overwrite(t, filepath.Join(outside, filepath.Base(d.path())), data)
		if err := errors.Join(os.RemoveAll(filepath.Join(dir, name)), os.Symlink(outside, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
		return outside
	}
	untouched := func(t *testing.T, outside string) {
		t.Helper()
		if entries, err := os.ReadDir(outside); err != nil || len(entries) != 2 {
			t.Errorf("outside are %v, %v, want the two files from before", entries, err)
		}
	}
	t.Run("temporary directory", func(t *testing.T) {
		dir := t.TempDir()
		outside := link(t, dir, "tmp")
		if s, err := Open(dir); err == nil {
			t.Errorf("the store was opened: %v", s.Close())
		}
		untouched(t, outside)
	})
	t.Run("temporary directory that is a link to contents", func(t *testing.T) {
		dir := t.TempDir()
		s := openStore(t, dir)
		put(t, s, data)
		if err := errors.Join(os.Remove(filepath.Join(dir, "tmp")), os.Symlink(d.shard(), filepath.Join(dir, "tmp"))); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(dir); err == nil {
			t.Errorf("the store was opened: %v", s.Close())
		}
		if err := s.Verify(d); err != nil {
			t.Errorf("the content was swept away: %v", err)
		}
	})
	t.Run("temporary directory while open", func(t *testing.T) {
		dir := t.TempDir()
		s := openStore(t, dir)
		outside := link(t, dir, "tmp")
		if info, err := s.Put(bytes.NewReader(data), 10); err == nil {
			t.Errorf("put: got %v, want an error", info)
		}
		untouched(t, outside)
	})
	for _, used := range []bool{false, true} {
		t.Run(fmt.Sprintf("directory of contents, used before: %v", used), func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir)
			if used {
				put(t, s, data)
			}
			outside := link(t, dir, d.shard())
			if info, err := s.Put(bytes.NewReader(data), 10); err == nil {
				t.Errorf("put: got %v, want an error", info)
			}
			if got, err := read(s, d); err == nil {
				t.Errorf("read: got %q, want an error", got)
			}
			if err := s.Remove(d); err == nil {
				t.Error("remove: want an error")
			}
			untouched(t, outside)
		})
	}
}

// Modes are what they must be under any umask.
func TestModes(t *testing.T) {
	for _, mask := range []int{0, 0o022, 0o777} {
		t.Run(fmt.Sprintf("%03o", mask), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "blobs")
			old := syscall.Umask(mask)
			defer syscall.Umask(old)
			s := openStore(t, dir)
			put(t, s, content(1, 10))
			var during fs.FileMode
			if _, err := s.Put(readerFunc(func([]byte) (int, error) {
				names := leftOver(t, dir)
				info, err := os.Stat(filepath.Join(dir, "tmp", names[0]))
				if err != nil {
					t.Fatal(err)
				}
				during = info.Mode()
				return 0, io.EOF
			}), 10); err != nil {
				t.Fatal(err)
			}
			if during != 0o600 {
				t.Errorf("content that is being written has mode %v", during)
			}
			err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := e.Info()
				want := fs.FileMode(0o600)
				if e.IsDir() {
					want = fs.ModeDir | 0o700
				}
				if err == nil && info.Mode() != want {
					t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// What an earlier process left half written goes at the next opening.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	kept := put(t, s, content(1, 10))
	overwrite(t, filepath.Join(dir, "tmp", "half"), []byte("half"))
	if err := os.Mkdir(filepath.Join(dir, "tmp", "strange"), 0o700); err != nil {
		t.Fatal(err)
	}
	again := openStore(t, dir)
	if names := leftOver(t, dir); len(names) > 0 {
		t.Errorf("left over: %v", names)
	}
	if _, err := read(again, kept); err != nil {
		t.Error(err)
	}
}

// A file that no Put wrote is nobody's content.
func TestStrangers(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	d := put(t, s, content(1, 10))
	for _, shard := range []string{"00", "aa"} {
		if err := os.MkdirAll(filepath.Join(dir, shard), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"00/readme", "00/" + strings.Repeat("1", 64), "00/" + strings.Repeat("0", 63), "aa/" + strings.Repeat("AA", 32)} {
		overwrite(t, filepath.Join(dir, name), []byte("x"))
	}
	if d := cmp.Diff(map[Digest]int64{d: 10}, all(t, s)); d != "" {
		t.Errorf("what is listed (-want +got):\n%s", d)
	}
}

func TestDigest(t *testing.T) {
	d := Digest(sha256.Sum256([]byte("abc")))
	const text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if d.String() != text {
		t.Errorf("got %s, want %s", d, text)
	}
	if got, err := ParseDigest(text); err != nil || got != d {
		t.Errorf("ParseDigest(%q) = %v, %v", text, got, err)
	}
	for _, bad := range []string{
		"", "sha256:", text[:len(text)-1], text + "0", strings.ToUpper(text), "SHA256:" + text[7:], text[7:], " " + text,
		strings.Replace(text, "b", "B", 1), strings.Replace(text, "f", "g", 1), "sha256:../../../../etc/passwd", "sha512:" + text[7:],
	} {
		if got, err := ParseDigest(bad); !errors.Is(err, ErrNotADigest) {
			t.Errorf("ParseDigest(%q) = %v, %v, want a refusal", bad, got, err)
		}
	}
}

// Many put, read and remove few contents at a time: whoever reads gets the whole
// content or is told that there is none.
func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	contents := [][]byte{content(1, 10), content(2, tailBytes+5), content(3, 0)}
	stays := put(t, s, contents[1])
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 25 {
				data := contents[(worker+i)%len(contents)]
				info, err := s.Put(bytes.NewReader(data), 1<<20)
				if err != nil || info.Digest != sha256.Sum256(data) {
					t.Errorf("put: %v, %v", info, err)
				}
				if got, err := read(s, info.Digest); !errors.Is(err, ErrNotFound) && (err != nil || !bytes.Equal(got, data)) {
					t.Errorf("read: %d bytes, %v", len(got), err)
				}
				if info.Digest != stays && i%5 == 0 {
					if err := s.Remove(info.Digest); err != nil {
						t.Errorf("remove: %v", err)
					}
				}
			}
		})
	}
	wg.Wait()
	if _, err := read(s, stays); err != nil {
		t.Error(err)
	}
	if names := leftOver(t, dir); len(names) > 0 {
		t.Errorf("left over: %v", names)
	}
}
