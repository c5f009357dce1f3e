package pebble

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/journaltest"
)

// scriptedFS notes what is done to the log files and asks before each sync.
type scriptedFS struct {
	vfs.FS
	mu     sync.Mutex
	notes  []string
	onSync func() error
}

func (s *scriptedFS) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

func (s *scriptedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := s.FS.Create(name, c)
	if err != nil || path.Ext(name) != ".log" {
		return file, err
	}
	return &scriptedFile{file, s}, nil
}

func (s *scriptedFS) set(onSync func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onSync, s.notes = onSync, nil
}

type scriptedFile struct {
	vfs.File
	s *scriptedFS
}

func (f *scriptedFile) Write(p []byte) (int, error) {
	f.s.note("write the log")
	return f.File.Write(p)
}

func (f *scriptedFile) Sync() error {
	f.s.mu.Lock()
	onSync := f.s.onSync
	f.s.mu.Unlock()
	if onSync != nil {
		if err := onSync(); err != nil {
			return err
		}
	}
	f.s.note("sync the log")
	return f.File.Sync()
}

func (f *scriptedFile) SyncData() error { return f.Sync() }

// TestTranscript reads back what a commit does to the disk, and when.
func TestTranscript(t *testing.T) {
	files := &scriptedFS{FS: vfs.NewMem()}
	j := openTest(t, files, journal.Options{Fault: func(stage journal.Stage, _ journal.Group) error {
		if stage != journal.StageWritten { // beside the log's own goroutine
			files.note("%s", stage)
		}
		return nil
	}})
	j.OnDurable(func(mark journal.Mark) { files.note("OnDurable(%d)", mark.Offset) })
	files.set(nil)
	s := journaltest.NewStory("s")
	if _, err := j.Append(context.Background(), s.Batch(s.Facts(2)...)); err != nil {
		t.Fatal(err)
	}
	files.note("returned")
	want := "built; write the log; sync the log; synced; published; OnDurable(2); notified; returned"
	if got := strings.Join(files.notes, "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestFailedSync holds the log's own sync, under Pebble, and then fails it.
func TestFailedSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files := &scriptedFS{FS: vfs.NewMem()}
		j := openTest(t, files, journal.Options{})
		s := journaltest.NewStory("s")
		if _, err := j.Append(context.Background(), s.Batch(s.Facts(1)...)); err != nil {
			t.Fatal(err)
		}
		held, release := make(chan struct{}), make(chan error)
		files.set(func() error { close(held); return <-release })
		var probes journaltest.Probes
		batch := s.Batch(s.Facts(2)...)
		batch.Changes = []journal.Change{journal.Put{Row: journal.SessionRow{Session: "s"}}}
		probes.Add(batch)
		before := journaltest.Everything(j, &probes)
		answer := make(chan error)
		go func() {
			_, err := j.Append(context.Background(), batch)
			answer <- err
		}()
		<-held
		synctest.Wait()
		if got := journaltest.Everything(j, &probes); got != before {
			t.Errorf("during the sync:\ngot  %s\nwant %s", got, before)
		}
		// The premise: the engine below does show it by now.
		if value, closer, err := j.db.Get(batchKey(1, 2)); err != nil || len(value) == 0 {
			t.Errorf("Pebble does not show the batch before its sync: %v", err)
		} else {
			_ = closer.Close()
		}
		files.set(nil)
		release <- errors.New("the disk is gone")
		if err := <-answer; !errors.Is(err, journal.ErrBroken) || !strings.Contains(err.Error(), "the disk is gone") {
			t.Errorf("append: got %v, want %v with its cause", err, journal.ErrBroken)
		}
		if got := journaltest.Everything(j, &probes); got != before {
			t.Errorf("after the failed sync:\ngot  %s\nwant %s", got, before)
		}
		if err := j.Close(); !errors.Is(err, journal.ErrBroken) {
			t.Errorf("close: got %v, want %v", err, journal.ErrBroken)
		}
		_ = j.db.Close() // what the engine leaves to the end of the process
	})
}

// TestPanicInside turns a panic of Pebble into a broken journal.
func TestPanicInside(t *testing.T) {
	files := vfs.NewMem()
	j := openTest(t, files, journal.Options{})
	if err := j.db.Close(); err != nil && !strings.Contains(err.Error(), "leaked snapshots") {
		t.Fatal(err)
	}
	s := journaltest.NewStory("s")
	batch := s.Batch(s.Facts(1)...)
	err := j.committer.Do(context.Background(), journal.Request{Stage: func() error {
		j.staged.begin(j.db)
		j.staged.order.entries = []groupEntry{{1, 1, 1, 0}}
		return nil
	}})
	if !errors.Is(err, journal.ErrBroken) {
		t.Errorf("append on a closed Pebble: got %v, want %v", err, journal.ErrBroken)
	}
	if _, err := j.Append(context.Background(), batch); !errors.Is(err, journal.ErrBroken) {
		t.Errorf("the next append: got %v, want %v", err, journal.ErrBroken)
	}
}
