package blob

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A content is durable before it is seen and before Put answers: the acts on the disk
// are these, in this order.
func TestActsOnTheDisk(t *testing.T) {
	data := content(1, copyBytes+1)
	d := Digest(sha256.Sum256(data))
	var acts []string
	s, err := open(t.TempDir(), func(act, name string) error {
		if dir, _, found := strings.Cut(name, "/"); found && dir == "tmp" {
			name = "tmp/*"
		}
		acts = append(acts, act+" "+name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put(t, s, data)
	put(t, s, data) // its directory is known by now
	if err := s.Remove(d); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"make directory tmp",
		"create tmp/*", "write tmp/*", "write tmp/*", "sync file tmp/*",
		"make directory " + d.shard(), "sync directory .", "rename " + d.path(), "sync directory " + d.shard(),
		"create tmp/*", "write tmp/*", "write tmp/*", "sync file tmp/*", "rename " + d.path(), "sync directory " + d.shard(),
		"sync directory " + d.shard(),
	}
	if d := cmp.Diff(want, acts); d != "" {
		t.Errorf("acts (-want +got):\n%s", d)
	}
}

// Where an act fails, the error says so, no other content is touched, nothing is left
// over and nothing half written is ever seen.
func TestActsFail(t *testing.T) {
	old, fresh := content(1, 100), content(2, copyBytes+1)
	for _, tt := range []struct {
		act    string
		broken bool // nobody knows what the disk has
	}{{"create", false}, {"write", false}, {"sync file", false}, {"make directory", false}, {"rename", false}, {"sync directory", true}} {
		for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO} {
			t.Run(fmt.Sprintf("%s/%v", tt.act, cause), func(t *testing.T) {
				dir := t.TempDir()
				failing := false
				s, err := open(dir, func(act, _ string) error {
					if failing && act == tt.act {
						return &os.PathError{Op: act, Path: "x", Err: cause}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				kept := put(t, s, old)
				failing = true
				info, err := s.Put(bytes.NewReader(fresh), 1<<20)
				if !errors.Is(err, cause) || info != (Info{}) {
					t.Errorf("got %v, %v, want %v", info, err, cause)
				}
				if full := cause != syscall.EIO; errors.Is(err, ErrFull) != full {
					t.Errorf("got %v, want ErrFull: %v", err, full)
				}
				failing = false
				if names := leftOver(t, dir); len(names) > 0 {
					t.Errorf("left over: %v", names)
				}
				if got, err := read(s, kept); err != nil || !bytes.Equal(got, old) {
					t.Errorf("the older content: got %d bytes, %v", len(got), err)
				}
				_, err = s.Put(bytes.NewReader(fresh), 1<<20)
				if errors.Is(err, ErrBroken) != tt.broken || !tt.broken && err != nil {
					t.Errorf("the next Put: got %v, want ErrBroken: %v", err, tt.broken)
				}
				again := openStore(t, dir)
				if d := put(t, again, fresh); again.Verify(d) != nil {
					t.Errorf("after opening again: %v", again.Verify(d))
				}
			})
		}
	}
}

// A store cannot be opened on a disk that does not sync.
func TestOpenFails(t *testing.T) {
	if s, err := open(t.TempDir(), func(string, string) error { return syscall.EIO }); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v, %v, want the error of the sync", s, err)
	}
	if s, err := Open(t.TempDir() + "/missing/blobs"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, %v, want that the parent is missing", s, err)
	}
}

// The variables that make the test binary a process that dies while it puts contents.
const (
	childDir   = "MAHATI_BLOB_CHILD_DIR"
	childDies  = "MAHATI_BLOB_CHILD_DIES"
	childCount = 4
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
	}
	os.Exit(m.Run())
}

// childContent is the n-th content of a child.
func childContent(n int) []byte { return content(int64(n), n*copyBytes/2+n) }

// child puts contents, tells of each that was put, and dies by the signal that nobody
// can handle when it comes to an act for the given time.
func child(dir string) {
	dies, err := strconv.Atoi(os.Getenv(childDies))
	if err != nil {
		panic(err)
	}
	acts := 0
	s, err := open(dir, func(string, string) error {
		if acts++; acts == dies {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	for n := range childCount {
		info, err := s.Put(bytes.NewReader(childContent(n)), 1<<30)
		if err != nil {
			panic(err)
		}
		fmt.Println(info.Digest)
	}
	os.Exit(0)
}

// A process that dies at any act leaves, for the next one, every content that was
// answered and nothing that is not whole.
func TestProcessDeath(t *testing.T) {
	for dies := 1; ; dies++ {
		dir := t.TempDir()
		answered, died := runChild(t, dir, dies)
		s := openStore(t, dir)
		if names := leftOver(t, dir); len(names) > 0 {
			t.Fatalf("death at act %d: left over %v", dies, names)
		}
		for _, d := range answered {
			if err := s.Verify(d); err != nil {
				t.Fatalf("death at act %d: %s was answered: %v", dies, d, err)
			}
		}
		for d := range all(t, s) {
			if err := s.Verify(d); err != nil {
				t.Fatalf("death at act %d: %v", dies, err)
			}
		}
		if n := len(all(t, s)); n < len(answered) || n > len(answered)+1 {
			t.Fatalf("death at act %d: %d contents of %d answered", dies, n, len(answered))
		}
		if !died {
			if len(answered) != childCount || dies < 6*childCount {
				t.Fatalf("the child did not die at act %d and answered %d", dies, len(answered))
			}
			return
		}
	}
}

// runChild returns what a child answered, and whether it died at the act.
func runChild(t *testing.T, dir string, dies int) (answered []Digest, died bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childDies+"="+strconv.Itoa(dies))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); err != nil && !status.Signaled() {
		t.Fatalf("child: %v\n%s", err, errs.String())
	}
	for lines := bufio.NewScanner(&out); lines.Scan(); {
		d, err := ParseDigest(lines.Text())
		if err != nil {
			t.Fatalf("child said %q: %v", lines.Text(), err)
		}
		answered = append(answered, d)
	}
	return answered, err != nil
}
