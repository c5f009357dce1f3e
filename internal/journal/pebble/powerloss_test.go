package pebble_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/journaltest"
	"github.com/mahati-host/mahati/internal/journal/pebble"
)

// The environment sets the number of rounds of both crash suites, and the seed
// of the first; the default is small enough for every run of the tests.
const (
	roundsVariable = "MAHATI_CRASH_ROUNDS"
	killsVariable  = "MAHATI_CRASH_KILLS"
	seedVariable   = "MAHATI_CRASH_SEED"
)

func fromEnvironment(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: %v", name, text, err)
	}
	return n
}

// TestPowerLoss cuts the power at and inside of commits, many times: what a
// disk could have kept at that moment is opened and compared with what the
// writers know.
func TestPowerLoss(t *testing.T) {
	rounds := fromEnvironment(t, roundsVariable, defaultRounds)
	seed := fromEnvironment(t, seedVariable, uint64(time.Now().UnixNano()))
	t.Logf("%d rounds from seed %d", rounds, seed)
	clones := 0
	for round := range rounds {
		n, err := powerLossRound(seed+round, nil)
		if err != nil {
			t.Fatalf("%s=%d: %v", seedVariable, seed+round, err)
		}
		clones += n
	}
	t.Logf("%d cuts", clones)
	if clones == 0 {
		t.Error("the power was never cut")
	}
}

// TestPowerLossSeesMissingSync proves that the suite can fail: without the
// syncs, which killing a process could never show, it must.
func TestPowerLossSeesMissingSync(t *testing.T) {
	for seed := range uint64(20) {
		_, err := powerLossRound(seed, &atomic.Bool{})
		if errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrDamaged) {
			t.Logf("seed %d: %v", seed, err)
			return
		}
		if err != nil {
			t.Fatalf("seed %d: got %v, want an acknowledged batch to be missed, or the log found damaged", seed, err)
		}
	}
	t.Error("20 rounds on files that are never synced have passed")
}

// forgetfulFS has files whose syncs do nothing while forget is set.
type forgetfulFS struct {
	vfs.FS
	forget *atomic.Bool
}

func (f forgetfulFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return forgetfulFile{file, f.forget}, err
}

func (f forgetfulFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(oldname, newname, c)
	return forgetfulFile{file, f.forget}, err
}

type forgetfulFile struct {
	vfs.File
	forget *atomic.Bool
}

func (f forgetfulFile) Sync() error {
	if f.forget.Load() {
		return nil
	}
	return f.File.Sync()
}

func (f forgetfulFile) SyncData() error { return f.Sync() }

// powerLossRound runs writers on one store, cuts the power a few times, and
// checks what would have been left each time. It gives the number of cuts. When
// forget is given, it is set once the store is open and takes out every sync.
func powerLossRound(seed uint64, forget *atomic.Bool) (cuts int, err error) {
	disk := vfs.NewCrashableMem()
	blackout := &blackout{disk: disk, random: rand.New(rand.NewPCG(seed, 0x706f776572))}
	writers := make([]*writer, 1+seed%3)
	for i := range writers {
		writers[i] = &writer{generator: journaltest.NewGenerator(seed+uint64(i), fmt.Sprintf("w%d", i))}
	}
	blackout.histories = func() []journaltest.History {
		all := make([]journaltest.History, len(writers))
		for i, w := range writers {
			all[i] = w.history()
		}
		return all
	}
	var files vfs.FS = watchedFS{disk, blackout.maybe}
	if forget != nil {
		files = forgetfulFS{files, forget}
	}
	j, err := openOn(files, journal.Options{
		Fault: func(journal.Stage, journal.Group) error { blackout.maybe(); return nil },
	})
	if err != nil {
		return 0, fmt.Errorf("open: %w", err)
	}
	identity := j.Identity()
	blackout.on()
	if forget != nil {
		forget.Store(true)
	}
	var running sync.WaitGroup
	for _, w := range writers {
		running.Go(func() { w.run(j, 36/len(writers)) })
	}
	running.Wait()
	if seed%4 == 0 {
		blackout.cut(0)
	}
	if err := errors.Join(writers[0].err, j.Close()); err != nil {
		return 0, err
	}
	if seed%4 == 1 {
		blackout.cut(0)
	}
	for i, cut := range blackout.cuts {
		if err := checkCut(cut, identity); err != nil {
			return 0, fmt.Errorf("cut %d of %d, %d%% of unsynced data kept: %w", i+1, len(blackout.cuts), cut.kept, err)
		}
	}
	return len(blackout.cuts), nil
}

func openOn(fs vfs.FS, options journal.Options) (*pebble.Journal, error) {
	options.Free = func() (uint64, error) { return 1 << 40, nil }
	return pebble.Open("/home/journal", pebble.Options{Options: options, FS: fs, MemTable: 64 << 10, Cache: 1 << 20})
}

// checkCut opens what a disk kept, twice, and appends to it.
func checkCut(c cut, identity journal.Identity) error {
	for again := range 2 {
		j, err := openOn(c.disk, journal.Options{})
		if err != nil {
			return fmt.Errorf("open %d: %w", again, err)
		}
		switch {
		case j.Identity() != identity:
			err = fmt.Errorf("identity is %+v, was %+v", j.Identity(), identity)
		case again == 0:
			_, err = journaltest.CheckSurvivors(j, c.histories)
		}
		s := journaltest.NewStory(fmt.Sprintf("afterwards%d", again))
		if err == nil {
			_, err = j.Append(context.Background(), s.Batch(s.Facts(2)...))
		}
		if err := errors.Join(err, j.Close()); err != nil {
			return fmt.Errorf("open %d: %w", again, err)
		}
	}
	return nil
}

// writer appends what a generator makes and notes what it hears.
type writer struct {
	generator *journaltest.Generator

	mu  sync.Mutex
	own journaltest.History
	err error
}

func (w *writer) history() journaltest.History {
	w.mu.Lock()
	defer w.mu.Unlock()
	return journaltest.History{
		Acknowledged: slices.Clone(w.own.Acknowledged), InFlight: slices.Clone(w.own.InFlight),
	}
}

func (w *writer) run(j *pebble.Journal, n int) {
	for range n {
		batch := w.generator.FactBatch()
		w.mu.Lock()
		w.own.InFlight = []journal.Batch{batch}
		w.mu.Unlock()
		_, err := j.Append(context.Background(), batch)
		w.mu.Lock()
		w.own.InFlight = nil
		if err == nil {
			w.own.Acknowledged = append(w.own.Acknowledged, batch)
		} else if !errors.Is(err, journal.ErrCondition) && !errors.Is(err, journal.ErrInvalid) {
			w.err = err
		}
		w.mu.Unlock()
		w.generator.Done(batch, err == nil)
		if w.err != nil {
			return
		}
	}
}

// blackout takes clones of a disk at random moments. Until on is called, which
// is when the store is open, it takes none.
type blackout struct {
	disk      *vfs.MemFS
	histories func() []journaltest.History

	mu     sync.Mutex
	armed  bool
	random *rand.Rand
	cuts   []cut
}

type cut struct {
	disk      *vfs.MemFS
	kept      int
	histories []journaltest.History
}

func (b *blackout) on() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = true
}

// maybe cuts the power once in a while.
func (b *blackout) maybe() {
	b.mu.Lock()
	take := b.armed && b.random.IntN(100) == 0 && len(b.cuts) < 2
	kept := []int{0, 0, 50, 100}[b.random.IntN(4)]
	b.mu.Unlock()
	if take {
		b.cut(kept)
	}
}

// cut asks the writers before it looks at the disk, for what is acknowledged by
// then has to be on it, and again afterwards, for what else may be.
func (b *blackout) cut(kept int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.histories()
	disk := b.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: b.random})
	for i, h := range b.histories() {
		later := h.Acknowledged[len(before[i].Acknowledged):]
		before[i].InFlight = append(later, h.InFlight...)
	}
	b.cuts = append(b.cuts, cut{disk, kept, before})
}

// watchedFS calls a function before and after everything that changes a disk.
type watchedFS struct {
	vfs.FS
	touch func()
}

func (w watchedFS) wrap(file vfs.File, err error) (vfs.File, error) {
	w.touch()
	if err != nil {
		return nil, err
	}
	return watchedFile{file, w.touch}, nil
}

func (w watchedFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	w.touch()
	return w.wrap(w.FS.Create(name, c))
}

func (w watchedFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, o ...vfs.OpenOption) (vfs.File, error) {
	w.touch()
	return w.wrap(w.FS.OpenReadWrite(name, c, o...))
}

func (w watchedFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	w.touch()
	return w.wrap(w.FS.ReuseForWrite(oldname, newname, c))
}

func (w watchedFS) OpenDir(name string) (vfs.File, error) { return w.wrap(w.FS.OpenDir(name)) }

func (w watchedFS) Remove(name string) error {
	w.touch()
	defer w.touch()
	return w.FS.Remove(name)
}

func (w watchedFS) Rename(oldname, newname string) error {
	w.touch()
	defer w.touch()
	return w.FS.Rename(oldname, newname)
}

func (w watchedFS) Link(oldname, newname string) error {
	w.touch()
	defer w.touch()
	return w.FS.Link(oldname, newname)
}

func (w watchedFS) Lock(name string) (io.Closer, error) { return w.FS.Lock(name) }

type watchedFile struct {
	vfs.File
	touch func()
}

func (w watchedFile) Write(p []byte) (int, error) {
	w.touch()
	defer w.touch()
	return w.File.Write(p)
}

func (w watchedFile) Sync() error {
	w.touch()
	defer w.touch()
	return w.File.Sync()
}

func (w watchedFile) SyncData() error {
	w.touch()
	defer w.touch()
	return w.File.SyncData()
}
