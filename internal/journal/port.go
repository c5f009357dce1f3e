package journal

import (
	"context"
	"iter"
	"time"
)

// Appender writes. See the package documentation for what is promised.
type Appender interface {
	// Admit tells whether space allows an ordinary batch, or one that only
	// closes: nil or ErrStorageFull (ErrBroken, ErrClosed). An owner asks before
	// it applies anything to its own state.
	Admit(closing bool) error
	// Append writes one batch. The context counts while the batch waits to be
	// written; once the batch is part of a commit group it is ignored, so the
	// answer is always definite: a refusal changed nothing, ErrBroken may have.
	Append(ctx context.Context, batch Batch) (Receipt, error)
	// AcquireTerm makes the caller the owner of a session, which need not exist
	// yet: batches of every earlier term are refused from here on, and those
	// accepted before are visible. Terms are not kept over Close: no owner
	// outlives it.
	AcquireTerm(ctx context.Context, session string) (Term, error)
	// ReleaseTerm gives a term back, so that the store can forget it. A term
	// that is not the newest is left alone.
	ReleaseTerm(session string, term Term)
	// Delete removes a session with its facts and rows and leaves a tombstone.
	// It returns when all is gone.
	Delete(ctx context.Context, deletion Deletion) error
}

// Reader reads records.
type Reader interface {
	// Head gives the end of a session.
	Head(ctx context.Context, session string) (Head, error)
	// Read gives one page in the order asked for.
	Read(ctx context.Context, order Order, page Page) (Chunk, error)
	// Scan is Read for a caller that keeps nothing: it visits the records of the page,
	// and reports whether the order has further records now. A record and its bytes are
	// good until visit returns, which must not call the journal. After an error what was
	// visited is to be thrown away.
	Scan(ctx context.Context, order Order, page Page, visit func(*Record)) (more bool, err error)
	// Find gives the record of a session with exactly this event id.
	Find(ctx context.Context, session, eventID string) (Record, error)
}

// Head is the end of a session.
type Head struct {
	// Sequence is the last sequence, 0 for a session that has only rows.
	Sequence uint64
	// Offset is the host offset of the last fact.
	Offset uint64
	// Time is the time of the last batch with facts.
	Time time.Time
}

// Index reads the rows that batches wrote. [Get], [Each] and [OnePage] are the typed
// ways to use it.
type Index interface {
	// Row gives the row with the key, or ErrNotFound.
	Row(ctx context.Context, key Key) (Row, error)
	// Rows gives one page of a list. A row that is damaged keeps no other from being
	// given: see [Damage].
	Rows(ctx context.Context, list List, page RowPage) (Rows, error)
}

// Snapshots keeps control snapshots of sessions: a cache that may be dropped
// at any time. A snapshot survives its session's appends, not its deletion.
type Snapshots interface {
	// Snapshot gives the newest snapshot at or before a sequence, or ErrNotFound.
	Snapshot(ctx context.Context, session string, atOrBefore uint64) (Snapshot, error)
	// PutSnapshot stores a snapshot of a sequence that is durable. It needs not
	// be durable itself when the call returns.
	PutSnapshot(ctx context.Context, session string, snapshot Snapshot) error
	// DropSnapshots drops the snapshots of a session below a sequence.
	DropSnapshots(ctx context.Context, session string, below uint64) error
}

// Snapshot is opaque state of a session at a sequence.
type Snapshot struct {
	Sequence uint64
	Bytes    []byte
}

// Keeper is the store as a whole.
type Keeper interface {
	// Identity is what the store was made with.
	Identity() Identity
	// Durable is the mark up to which everything is durable and visible.
	Durable() Mark
	// OnDurable registers a function that is called with the mark each time it
	// has moved, on the committer and before Append returns. It may read, must
	// not block and must not write. The function returned undoes it.
	OnDurable(func(Mark)) (cancel func())
	// Space tells how much room is left.
	Space() Space
	// Broken is closed when a write failed and the store is lost to writers;
	// Err then says why.
	Broken() <-chan struct{}
	// Err is nil, or an ErrBroken with its cause.
	Err() error
	// Stats are counters since the store was opened.
	Stats() Stats
	// Verify walks everything and reports what does not fit.
	Verify(ctx context.Context, options VerifyOptions) (Report, error)
	// Close refuses what is not yet in a commit group, waits for the group and
	// for the reads under way, and joins every goroutine. It may be called twice.
	Close() error
}

// Journal is all four ports (and the cache under them). An engine is one;
// callers take the part they use.
type Journal interface {
	Appender
	Reader
	Index
	Snapshots
	Keeper
}

// Identity is what a store was made with. It never changes, except that a
// restored store draws a new epoch.
type Identity struct {
	// Format is the number of the stored format.
	Format uint32
	// Epoch is a random text that stands in every signed cursor.
	Epoch string
	// Key is the store's HMAC key (R1, R35), which never leaves the host.
	Key SecretKey
	// Created is when the store was made.
	Created time.Time
	// FirstEvent is the seed of the event numbers.
	FirstEvent uint64
}

// SecretKey is a key that does not show itself when it is printed or logged.
type SecretKey [32]byte

func (SecretKey) String() string { return "(secret)" }

// GoString keeps it out of %#v.
func (SecretKey) GoString() string { return "(secret)" }

// Space is the room left, as last looked at.
type Space struct {
	// Level says what is accepted.
	Level SpaceLevel
	// Free is the number of free bytes, Reserve the configured reserve.
	Free, Reserve uint64
}

// SpaceLevel says which batches are accepted.
type SpaceLevel int

// The levels, from plenty to none.
const (
	// SpaceOpen accepts every batch.
	SpaceOpen SpaceLevel = iota
	// SpaceClosing accepts batches that only close.
	SpaceClosing
	// SpaceNone accepts nothing.
	SpaceNone
)

func (l SpaceLevel) String() string {
	switch l {
	case SpaceOpen:
		return "open"
	case SpaceClosing:
		return "closing only"
	default:
		return "full"
	}
}

// Stats are counters since the store was opened.
type Stats struct {
	// Batches, Facts and Bytes count what was committed, Groups in how many
	// commits.
	Batches, Facts, Bytes, Groups uint64
	// Refused counts batches refused before writing.
	Refused uint64
	// Waiting is how many batches wait for a commit now.
	Waiting int
	// CommitTime is the time spent in writing and syncing, in total.
	CommitTime time.Duration
}

// Get reads one row of a known kind.
func Get[R Row](ctx context.Context, index Index, key Key) (R, error) {
	var none R
	row, err := index.Row(ctx, key)
	if err != nil {
		return none, err
	}
	typed, ok := row.(R)
	if !ok {
		return none, invalid("row %s is a %T, not a %T", key, row, none)
	}
	return typed, nil
}

// OnePage reads one page of a list whose rows are of a known kind. Whoever reads a list
// says what becomes of the rows in it that cannot be given: damaged is called with each,
// before OnePage returns. The page has fewer rows by them.
func OnePage[R Row](
	ctx context.Context, index Index, list List, page RowPage, damaged func(Damage),
) (rows []R, next string, err error) {
	found, err := index.Rows(ctx, list, page)
	if err != nil {
		return nil, "", err
	}
	for _, row := range found.Rows {
		typed, ok := row.(R)
		if !ok {
			return nil, "", invalid("list %T holds %T, not %T", list, row, typed)
		}
		rows = append(rows, typed)
	}
	for _, d := range found.Damaged {
		damaged(d)
	}
	return rows, found.Next, nil
}

// Each goes through a list to its end, page by page, and calls damaged with what it
// cannot yield. Rows that change on the way may be seen in their old or new form.
func Each[R Row](ctx context.Context, index Index, list List, damaged func(Damage)) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		var none R
		page := RowPage{Limit: MaxPageRecords}
		for {
			rows, next, err := OnePage[R](ctx, index, list, page, damaged)
			if err != nil {
				yield(none, err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			page.Cursor = next
		}
	}
}

// All goes through the records of a session after a sequence, page by page, up
// to its head at the time of the last page.
func All(ctx context.Context, reader Reader, session string, after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for {
			chunk, err := reader.Read(ctx, BySession{Session: session, After: after}, Page{})
			if err != nil {
				yield(Record{}, err)
				return
			}
			for _, record := range chunk.Records {
				if !yield(record, nil) {
					return
				}
				after = record.Sequence
			}
			if !chunk.More {
				return
			}
		}
	}
}
