package pebble

import (
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
	if j.db, err = lsm.Open(dir, j.tuning()); err != nil {
		return nil, fmt.Errorf("open %s: %w", dir, err)
	}
	if err := j.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", dir, err), j.Close())
	}
	return j, nil
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
	stored, err := v.get(keyOf(tagStore))
	if err != nil {
		return journal.Mark{}, damaged("", 0, err)
	}
	last, err := v.lastGroup()
	if err != nil {
		return journal.Mark{}, err
	}
	switch {
	case stored != nil:
		j.identity, err = decodeIdentity(stored)
	case last != nil:
		err = damaged("", 0, errors.New("the store has facts and no identity"))
	default:
		err = j.create()
	}
	if err != nil {
		return journal.Mark{}, err
	}
	if j.staged.nextSid, err = v.nextSid(); err != nil {
		return journal.Mark{}, err
	}
	mark := journal.Mark{Event: j.identity.FirstEvent - 1}
	if last != nil {
		offset, event := last.end()
		mark = journal.Mark{Offset: offset - 1, Event: event - 1}
	}
	return mark, nil
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

// lastGroup reads the newest commit group, nil in an empty store.
func (v *view) lastGroup() (g *storedGroup, err error) {
	prefix := keyOf(tagGroup)
	it, err := v.iterate(prefix, after(prefix))
	if err != nil {
		return nil, damaged("", 0, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.Last() {
		return nil, it.Error()
	}
	return readGroup(it)
}

// nextSid is one above every sid ever given.
func (v *view) nextSid() (sid uint64, err error) {
	prefix := keyOf(tagSid)
	it, err := v.iterate(prefix, after(prefix))
	if err != nil {
		return 0, damaged("", 0, err)
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.Last() {
		return 1, it.Error()
	}
	return numberAt(it.Key(), 1) + 1, nil
}

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
