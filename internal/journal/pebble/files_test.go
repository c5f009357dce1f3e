package pebble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/journaltest"
)

// umaskVariable makes the test binary write a store under a hostile umask, in
// a process of its own because a umask belongs to the process.
const umaskVariable = "MAHATI_TEST_UMASK_DIR"

func TestModes(t *testing.T) {
	if dir := os.Getenv(umaskVariable); dir != "" {
		writeUnderUmask(t, dir)
		return
	}
	for _, umask := range []string{"0", "0277", "0777"} {
		home := filepath.Join(t.TempDir(), "made", "by us")
		command := exec.Command(os.Args[0], "-test.run=^TestModes$")
		command.Env = append(os.Environ(), umaskVariable+"="+umask+":"+home)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("umask %s: %v\n%s", umask, err, output)
		}
		files := 0
		err := filepath.WalkDir(filepath.Dir(home), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			want := fs.FileMode(fileMode)
			if d.IsDir() {
				want = dirMode
			} else {
				files++
			}
			if err == nil && info.Mode().Perm() != want {
				t.Errorf("umask %s: %s has mode %o, want %o", umask, path, info.Mode().Perm(), want)
			}
			return err
		})
		if err != nil || files < 5 {
			t.Errorf("umask %s: %d files, %v", umask, files, err)
		}
	}
}

func writeUnderUmask(t *testing.T, text string) {
	umask, dir, _ := strings.Cut(text, ":")
	syscall.Umask(map[string]int{"0": 0, "0277": 0o277, "0777": 0o777}[umask])
	j, err := Open(dir, Options{MemTable: 64 << 10, Options: journal.Options{Reserve: 1 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	s := journaltest.NewStory("s")
	for range 50 { // enough for new logs, tables and blobs
		if _, err := j.Append(context.Background(), s.Batch(s.Fact(journaltest.Place{Size: 5_000}))); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// roomy needs no gigabyte on the disk of the tests.
var roomy = Options{Options: journal.Options{Reserve: 1 << 20}}

func TestLock(t *testing.T) {
	home := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(home, link); err != nil {
		t.Fatal(err)
	}
	j, err := Open(home, roomy)
	if err != nil {
		t.Fatal(err)
	}
	before := namesAndTimes(t, home)
	for _, dir := range []string{home, link} {
		if _, err := Open(dir, roomy); !errors.Is(err, journal.ErrLocked) {
			t.Errorf("open %s while it is open: got %v, want %v", dir, err, journal.ErrLocked)
		}
		if _, err := Lock(dir); !errors.Is(err, journal.ErrLocked) {
			t.Errorf("lock %s while it is open: got %v, want %v", dir, err, journal.ErrLocked)
		}
	}
	if after := namesAndTimes(t, home); after != before {
		t.Errorf("a second host has touched the files:\nbefore %s\nafter  %s", before, after)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err = Open(link, roomy); err != nil {
		t.Fatalf("open after the first has closed: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// A lock that is given up soon is waited for: of a host that was killed a child may hold
// it until it is a program of its own.
func TestLockIsWaitedFor(t *testing.T) {
	dir := t.TempDir()
	first, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { _ = first.Close() })
	second, err := Lock(dir)
	if err != nil {
		t.Fatalf("got %v, want the lock of who has just left", err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
}

// namesAndTimes writes down the names and times of a directory's files.
func namesAndTimes(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(e.Name() + " " + info.ModTime().String() + "; ")
	}
	return text.String()
}

func TestNewerFormatIsRefused(t *testing.T) {
	files := vfs.NewMem()
	fill(t, files)
	name := files.PathJoin(testDir, formatName)
	if text, err := readFile(files, name); err != nil || text != "mahati journal format 1\n" {
		t.Fatalf("format file: %q, %v", text, err)
	}
	write := func(text string) error {
		t.Helper()
		if err := writeFile(files, name, text); err != nil {
			t.Fatal(err)
		}
		j, err := Open(testDir, Options{FS: files})
		if err == nil {
			t.Errorf("opened with format file %q", text)
			_ = j.Close()
		}
		return err
	}
	err := write("mahati journal format 2\n")
	if !errors.Is(err, journal.ErrNewerFormat) || !strings.Contains(err.Error(), "has 2") || !strings.Contains(err.Error(), testDir) {
		t.Errorf("newer format: got %v, want directory and number named", err)
	}
	for _, text := range []string{"", "something else", "mahati journal format x"} {
		if err := write(text); !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("format file %q: got %v, want %v", text, err, journal.ErrDamaged)
		}
	}
}

// TestDeletionSurvivesCrash cuts the power at every stage of every write of a
// deletion: afterwards the session is whole or gone without a trace.
func TestDeletionSurvivesCrash(t *testing.T) {
	for cutAt := 1; ; cutAt++ {
		disk, armed, stages := vfs.NewCrashableMem(), false, 0
		var kept *vfs.MemFS
		j := openTest(t, disk, journal.Options{Fault: func(journal.Stage, journal.Group) error {
			if stages++; armed && stages == cutAt {
				kept = disk.CrashClone(vfs.CrashCloneCfg{})
			}
			return nil
		}})
		s := journaltest.NewStory("gone")
		batch := s.Batch(s.Facts(3)...)
		batch.Changes = []journal.Change{
			journal.Put{Row: journal.InterruptRow{ID: "i", Session: "gone", Sequence: 1, Open: true}},
			journal.Put{Row: journal.TimerRow{ID: "t", Session: "gone", Due: journaltest.Start}},
			journal.Put{Row: journal.AliasRow{Space: "x", Alias: "y", Session: "gone"}},
		}
		if _, err := j.Append(context.Background(), batch); err != nil {
			t.Fatal(err)
		}
		armed, stages = true, 0
		if err := j.Delete(context.Background(), journal.Deletion{Session: "gone", ExpectHead: 3}); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if kept == nil {
			if cutAt < 10 {
				t.Errorf("a deletion has %d stages, want those of two writes", cutAt-1)
			}
			return
		}
		checkDeletion(t, openTest(t, kept, journal.Options{}))
	}
}

// TestInterruptedSweepIsFinished cuts the power between the portions of a deletion, of
// which one ends behind the row of an open interrupt: no list leads to nothing then, and
// the next open removes what is left.
func TestInterruptedSweepIsFinished(t *testing.T) {
	ctx := context.Background()
	disk, armed := vfs.NewCrashableMem(), false
	var cuts []*vfs.MemFS
	j := openTest(t, disk, journal.Options{Fault: func(stage journal.Stage, _ journal.Group) error {
		if armed && stage == journal.StageNotified {
			cuts = append(cuts, disk.CrashClone(vfs.CrashCloneCfg{}))
		}
		return nil
	}})
	s := journaltest.NewStory("gone")
	batch := s.Batch(s.Facts(3)...)
	for i := range sweepPortion {
		batch.Changes = append(batch.Changes, journal.Put{Row: journal.InterruptRow{
			ID: fmt.Sprintf("i%04d", i), Session: "gone", Sequence: 1, Open: i == sweepPortion-1,
		}})
	}
	if _, err := j.Append(ctx, batch); err != nil {
		t.Fatal(err)
	}
	armed = true
	if err := j.Delete(ctx, journal.Deletion{Session: "gone", ExpectHead: 3}); err != nil {
		t.Fatal(err)
	}
	armed = false
	if len(cuts) < 4 {
		t.Fatalf("a deletion of %d rows is %d writes, want the tombstone, two portions and the end", sweepPortion, len(cuts))
	}
	for n, cut := range cuts {
		j := openTest(t, cut, journal.Options{})
		if rows, err := j.Rows(ctx, journal.OpenInterrupts{}, journal.RowPage{}); err != nil || len(rows.Rows) > 0 {
			t.Errorf("power cut after write %d: open interrupts are %+v, %v; want none", n+1, rows, err)
		}
		checkDeletion(t, j)
	}
}

func checkDeletion(t *testing.T, j *Journal) {
	t.Helper()
	ctx := context.Background()
	report, err := j.Verify(ctx, journal.VerifyOptions{})
	if err != nil || !report.OK() {
		t.Errorf("verify: %v, %+v", err, report)
	}
	_, err = j.Head(ctx, "gone")
	switch {
	case err == nil && report.Rows == 3 && report.Facts == 3:
	case errors.Is(err, journal.ErrDeleted) && report.Rows == 0 && report.Facts == 0 && report.Deleted == 1:
	default:
		t.Errorf("head gives %v, %d rows and %d facts are left; want all or none", err, report.Rows, report.Facts)
	}
}
