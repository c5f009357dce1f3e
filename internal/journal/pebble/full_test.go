package pebble

import (
	"context"
	"errors"
	"math"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/journaltest"
)

// fullFS is a disk without room for a table.
type fullFS struct {
	vfs.FS
	room atomic.Bool
}

func (f *fullFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if ext := path.Ext(name); !f.room.Load() && (ext == ".sst" || ext == ".blob") {
		return nil, &os.PathError{Op: "create", Path: name, Err: syscall.ENOSPC}
	}
	return f.FS.Create(name, c)
}

// A store on a full disk is not opened, and says so; once there is room it is, with all that
// was acknowledged.
func TestOpenOnAFullDisk(t *testing.T) {
	before := vfs.NewCrashableMem()
	s := journaltest.NewStory("s")
	j := openTest(t, before, journal.Options{})
	if _, err := j.Append(t.Context(), s.Batch(s.Facts(3)...)); err != nil {
		t.Fatal(err)
	}
	disk := &fullFS{FS: before.CrashClone(vfs.CrashCloneCfg{})}
	options := Options{FS: disk, Options: journal.Options{Free: func() (uint64, error) { return math.MaxUint64, nil }}}
	_, err := Open(testDir, options)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "make room and try again") {
		t.Fatalf("opened on a full disk: got %v, want that it is full", err)
	}
	disk.room.Store(true)
	again, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	for j, err = Open(testDir, options); err != nil; j, err = Open(testDir, options) { // what was given up has the lock
		select {
		case <-time.After(fullPause):
		case <-again.Done():
			t.Fatal(err)
		}
	}
	if head, err := j.Head(t.Context(), "s"); err != nil || head.Sequence != 3 {
		t.Errorf("got %+v, %v, want 3 facts", head, err)
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}
