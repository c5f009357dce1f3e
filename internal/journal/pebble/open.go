package pebble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/mahati-host/mahati/internal/journal"
)

// Options are the options of the engine. The zero value is for production.
type Options struct {
	journal.Options
	// FS replaces the disk, for tests; it then has no modes and no lock of ours.
	FS vfs.FS
	// Cache is the size of the block cache in bytes, 64 MiB when 0.
	Cache int64
	// MemTable is the size of a memtable in bytes, 16 MiB when 0.
	MemTable uint64
}

// Journal is an open store.
type Journal struct {
	dir       string
	options   Options
	identity  journal.Identity
	gate      *journal.Gate
	terms     *journal.Terms
	committer *journal.Committer

	db   *lsm.DB
	log  *quietLogger
	lock io.Closer

	views   sync.WaitGroup
	current atomic.Pointer[view]
	final   atomic.Pointer[journal.Mark] // set when current has gone

	// tails and staged belong to the committer.
	tails  map[string]*tail
	staged group

	closing  sync.Once
	closeErr error
}

var _ journal.Journal = (*Journal)(nil)

// Open opens the store in a directory, or makes one. It refuses a directory
// that is in use (journal.ErrLocked), a store of a newer program
// (journal.ErrNewerFormat), and a disk on which it could not even finish what
// is open (journal.ErrStorageFull).
func Open(dir string, options Options) (*Journal, error) {
	options.Options = options.Options.WithDefaults()
	var lock io.Closer = io.NopCloser(nil)
	if options.FS == nil {
		var err error
		if lock, err = Lock(dir); err != nil {
			return nil, err
		}
		options.FS = privateFS{vfs.Default}
	}
	j, err := open(dir, options)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	j.lock = lock
	return j, nil
}

func open(dir string, options Options) (*Journal, error) {
	if err := makeDir(options.FS, dir); err != nil {
		return nil, err
	}
	if err := checkFormat(options.FS, dir); err != nil {
		return nil, err
	}
	if options.Free == nil {
		options.Free = func() (uint64, error) {
			usage, err := options.FS.GetDiskUsage(dir)
			return usage.AvailBytes, err
		}
	}
	gate, err := journal.NewGate(dir, options.Options)
	if err != nil {
		return nil, err
	}
	j := &Journal{
		dir: dir, options: options, gate: gate,
		terms: journal.NewTerms(options.Options),
		log:   &quietLogger{log: options.Logger},
		tails: map[string]*tail{},
	}
	if err := checkLogEnd(options.FS, dir); err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	if j.db, err = j.openDB(); err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	if err := j.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", dir, err), j.Close())
	}
	return j, nil
}

// fullPause is the pause between two attempts of what is given up already.
const fullPause = 100 * time.Millisecond

// openDB opens Pebble, which writes what stands in its newest log to a table first. Where the
// disk has no room for that Pebble would try for ever: this gives up, and what goes on
// without anybody who waits for it ends when there is room, or with the process. Until then
// Pebble's own lock is held.
func (j *Journal) openDB() (*lsm.DB, error) {
	type opened struct {
		db  *lsm.DB
		err error
	}
	full, done := make(chan error, 1), make(chan opened)
	given := make(chan struct{})
	j.log.full.Store(&full)
	go func() {
		db, err := lsm.Open(j.dir, j.tuning())
		select {
		case done <- opened{db, err}:
		case <-given:
			if err == nil {
				_ = db.Close() // nobody reads from it, and what it wrote is whole
			}
		}
	}()
	select {
	case o := <-done:
		j.log.full.Store(nil)
		return o.db, o.err
	case err := <-full:
		close(given)
		return nil, fmt.Errorf("the disk is full: make room and try again: %w", err)
	}
}

// tuning is how Pebble is set up. What costs is compaction: sessions take turns
// in every memtable, so each flush overlaps all that is there. Hence large first
// files, a large base level and late compactions; values lie apart and are not
// moved. With Pebble's own settings the journal reaches half the speed.
func (j *Journal) tuning() *lsm.Options {
	cache, memTable := j.options.Cache, j.options.MemTable
	if cache == 0 {
		cache = 64 << 20
	}
	if memTable == 0 {
		memTable = 16 << 20
	}
	options := &lsm.Options{
		FS:                          j.options.FS,
		FormatMajorVersion:          lsm.FormatValueSeparation,
		CacheSize:                   cache,
		MemTableSize:                memTable,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       8,
		L0StopWritesThreshold:       1_000,
		LBaseMaxBytes:               512 << 20,
		MaxOpenFiles:                256,
		CompactionConcurrencyRange:  func() (lower, upper int) { return 1, 2 },
		Logger:                      j.log,
		EventListener:               j.log.listener(),
	}
	options.Experimental.CompactionScheduler = newMergeScheduler(&j.log.rest)
	options.TargetFileSizes[0] = 16 << 20
	for i := range options.Levels {
		options.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	options.Experimental.ValueSeparationPolicy = func() lsm.ValueSeparationPolicy {
		return lsm.ValueSeparationPolicy{
			Enabled: true, MinimumSize: 512, MaxBlobReferenceDepth: 50,
			TargetGarbageRatio: 0.5, RewriteMinimumAge: 10 * time.Minute,
		}
	}
	return options
}

// start reads what the store knows of itself and lets writers in.
func (j *Journal) start() error {
	first := newView(j.db, journal.Mark{}, &j.views)
	mark, err := j.load(first)
	first.release()
	if err != nil {
		return err
	}
	j.current.Store(newView(j.db, mark, &j.views))
	j.staged.mark = mark
	j.committer = journal.NewCommitter(j, mark, j.options.Options)
	broke := j.committer.Fail
	j.log.broke.Store(&broke)
	if err := j.log.failure(); err != nil {
		return j.committer.Fail(err)
	}
	return j.finishDeletions()
}

// load reads the identity, making that of a new store, and the numbers given.
func (j *Journal) load(v *view) (journal.Mark, error) {
	stored, err := v.identity()
	if err != nil {
		return journal.Mark{}, err
	}
	if j.staged.nextSid, err = v.nextSid(); err != nil {
		return journal.Mark{}, err
	}
	last, unreadable := v.lastGroup()
	switch {
	case stored != nil:
		j.identity, err = decodeIdentity(stored)
	case last != nil || unreadable != nil:
		err = damaged("", 0, errors.New("the store has facts and no identity"))
	default:
		err = j.create()
	}
	if err == nil {
		err = j.keepIdentityTwice(v)
	}
	if err != nil {
		return journal.Mark{}, err
	}
	mark := journal.Mark{Event: j.identity.FirstEvent - 1}
	if last != nil {
		offset, event := last.end()
		mark = journal.Mark{Offset: offset - 1, Event: event - 1}
	}
	if unreadable != nil {
		mark = v.markOfSessions(mark)
		j.options.Logger.Error("stored data is damaged: the newest commit group cannot be read, numbers go on behind a gap",
			"offset", mark.Offset, "event", mark.Event, "error", unreadable)
	}
	return mark, nil
}

// identity reads the identity, from where it can be read; nil in a new store.
func (v *view) identity() ([]byte, error) {
	stored, err := v.get(keyOf(tagStore))
	if err == nil && stored != nil {
		return stored, nil
	}
	again, other := v.get(keyOf(tagStoreAgain))
	if other == nil && (again != nil || err == nil) {
		return again, nil
	}
	return nil, damaged("", 0, fmt.Errorf("identity of the store: %w", errors.Join(err, other)))
}

// keepIdentityTwice writes the identity to a second place, far from the first in the order of
// the keys, unless it is there: without it the store is lost, and no fact tells it.
func (j *Journal) keepIdentityTwice(v *view) error {
	stored, err := v.get(keyOf(tagStoreAgain))
	if err != nil || stored != nil {
		return nil
	}
	if err := j.db.Set(keyOf(tagStoreAgain), encodeIdentity(j.identity), lsm.Sync); err != nil {
		return fmt.Errorf("write the identity: %w", err)
	}
	return j.log.failure()
}

// markGap is how far numbers go on behind the highest that is known where it is not known
// which the highest is.
const markGap = 1 << 24

// markOfSessions is a mark behind all that sessions hold, as far as they can be read.
func (v *view) markOfSessions(known journal.Mark) journal.Mark {
	_ = v.each([]byte{tagSid}, func(key, value []byte, unreadable error) error {
		if b, err := v.lastBatch(stream{string(value), numberAt(key, 1)}); err == nil && b != nil {
			known.Offset = max(known.Offset, b.firstOffset+uint64(b.count)-1)
			known.Event = max(known.Event, b.firstEvent+b.events()-1)
		}
		return nil
	}, func(hole) {})
	return journal.Mark{Offset: known.Offset + markGap, Event: known.Event + markGap}
}

// create writes the identity of a new store.
func (j *Journal) create() error {
	identity, err := j.options.NewIdentity()
	if err != nil {
		return err
	}
	j.identity = identity
	if err := j.db.Set(keyOf(tagStore), encodeIdentity(identity), lsm.Sync); err != nil {
		return fmt.Errorf("write the identity: %w", err)
	}
	return j.log.failure()
}

// lastNumber is above any sequence, sid or offset, and below what separates the block with the
// last key of a tag from one that begins with the next tag: a seek that is limited by it does
// not fail with that.
const lastNumber = 1<<56 - 1

// lastGroup reads the newest commit group, nil in an empty store. Where that cannot be read
// it gives the newest that can, and the error.
func (v *view) lastGroup() (g *storedGroup, unreadable error) {
	err := v.scan(keyOf(tagGroup), keyOf(tagGroup, lastNumber), true, func(it *lsm.Iterator) (bool, error) {
		var err error
		g, err = readGroup(it)
		unreadable = cmp.Or(unreadable, err)
		return g == nil, nil
	}, func(h hole) (bool, error) {
		unreadable = cmp.Or(unreadable, damaged("", 0, h.err()))
		return true, nil
	})
	return g, cmp.Or(unreadable, err)
}

// nextSid is one above every sid ever given.
func (v *view) nextSid() (sid uint64, err error) {
	sid, lost := 1, false
	err = v.scan(keyOf(tagSid), keyOf(tagSid, lastNumber), true, func(it *lsm.Iterator) (bool, error) {
		sid = numberAt(it.Key(), 1) + 1
		return false, nil
	}, func(hole) (bool, error) {
		lost = true
		return true, nil
	})
	if err != nil || !lost {
		return sid, err
	}
	// Other keys tell the sids as well. What they may not tell is passed over.
	for given := range v.names() {
		sid = max(sid, given+1)
	}
	for _, tag := range tagsOfSid {
		_ = v.scan(keyOf(tag), keyOf(tag, lastNumber), true, func(it *lsm.Iterator) (bool, error) {
			sid = max(sid, numberAt(it.Key(), 1)+1)
			return false, nil
		}, func(hole) (bool, error) { return true, nil })
	}
	return sid + sidGap, nil
}

// sidGap is how many sids are passed over where it is not known which the last was.
const sidGap = 1 << 12

// use takes the published view into use; the caller releases it.
func (j *Journal) use(ctx context.Context) (*view, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for {
		v := j.current.Load()
		if v == nil {
			return nil, journal.ErrClosed
		}
		if v.retain() {
			return v, nil
		}
	}
}

// Identity implements journal.Keeper.
func (j *Journal) Identity() journal.Identity { return j.identity }

// Durable implements journal.Keeper.
func (j *Journal) Durable() journal.Mark {
	if v := j.current.Load(); v != nil {
		return v.mark
	}
	return *j.final.Load()
}

// OnDurable implements journal.Keeper.
func (j *Journal) OnDurable(watcher func(journal.Mark)) (cancel func()) {
	return j.committer.OnDurable(watcher)
}

// Space implements journal.Keeper.
func (j *Journal) Space() journal.Space { return j.gate.Space() }

// Broken implements journal.Keeper.
func (j *Journal) Broken() <-chan struct{} { return j.committer.Broken() }

// Err implements journal.Keeper.
func (j *Journal) Err() error { return j.committer.Err() }

// Stats implements journal.Keeper.
func (j *Journal) Stats() journal.Stats { return j.committer.Stats() }

// Close implements journal.Keeper. After a failure inside of Pebble it leaves
// Pebble open and the directory locked until the process ends.
func (j *Journal) Close() error {
	j.closing.Do(func() { j.closeErr = j.close() })
	return j.closeErr
}

func (j *Journal) close() error {
	if j.committer != nil {
		j.committer.Close()
	}
	if v := j.current.Load(); v != nil {
		j.final.Store(&v.mark)
		j.current.Store(nil)
		v.release()
	}
	j.views.Wait()
	if err := j.log.failure(); err != nil {
		return fmt.Errorf("close the journal: %w: %w", journal.ErrBroken, err)
	}
	j.staged.discard()
	// A flush here saves the next open from replaying the log. A broken journal
	// is left as it is.
	if j.committer != nil && j.committer.Err() == nil {
		if err := j.db.Flush(); err != nil {
			return fmt.Errorf("flush: %w", errors.Join(err, j.db.Close()))
		}
	}
	if err := j.db.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if j.lock != nil {
		return j.lock.Close()
	}
	return nil
}
