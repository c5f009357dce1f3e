package host

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// RunLog is the headless log of one run in the eyes of a reader who may see it: the facts
// behind the log, with the numbers of the records that they become.
type RunLog struct {
	host      *Host
	run       string
	session   string
	workspace string
	observes  bool
}

// Log returns the log of a root run for a caller who may do action in its workspace. A
// run that waits in a queue has a log without records. ErrNotFound is for a run that is
// not there, that is nested, or that has no log, since it started before there were any
// (R1). Other errors are those of package access, or of reading.
func (h *Host) Log(ctx context.Context, p access.Principal, action access.Action, runID string) (*RunLog, error) {
	if !h.ready.Load() {
		return nil, h.notReady()
	}
	if p.IsZero() {
		return nil, access.ErrUnauthenticated
	}
	row, err := h.logRow(ctx, runID)
	if err != nil {
		return nil, err
	}
	workspace, err := h.workspace(ctx, p, action, row.Session)
	switch {
	case err != nil:
		return nil, err
	case workspace == unknownSession:
		return nil, ErrNotFound
	}
	l := &RunLog{
		host: h, run: runID, session: row.Session, workspace: workspace,
		observes: access.Authorize(p, access.ReadSession, workspace) == nil,
	}
	if row.State == index.Queued {
		return l, nil
	}
	first, err := l.Start(ctx)
	if err == nil && facts.Harness(first.Envelope()) == 0 {
		return nil, ErrNotFound
	}
	return l, err
}

// logRow finds the row of a root run.
func (h *Host) logRow(ctx context.Context, runID string) (journal.RunRow, error) {
	key := journal.RunKey(runID)
	if key.Validate() != nil {
		return journal.RunRow{}, ErrNotFound
	}
	row, err := journal.Get[journal.RunRow](ctx, h.journal, key)
	switch {
	case err != nil:
		return row, fmt.Errorf("find run: %w", err)
	case row.Root != row.ID:
		return row, fmt.Errorf("a nested run has no log of its own: %w", ErrNotFound)
	}
	return row, nil
}

// Session and Workspace say where the run is.
func (l *RunLog) Session() string { return l.session }

// Workspace is that of the run's session.
func (l *RunLog) Workspace() string { return l.workspace }

// Observes reports whether the reader may see private payloads: others follow the log
// with these redacted.
func (l *RunLog) Observes() bool { return l.observes }

// Start returns the fact with which the log begins: that of the run's start, or of its
// withdrawal; nil while the run waits.
func (l *RunLog) Start(ctx context.Context) (narad.Authority, error) {
	row, err := l.host.logRow(ctx, l.run)
	if err != nil || row.State == index.Queued {
		return nil, err
	}
	page := journal.Page{Limit: 1}
	chunk, err := l.host.journal.Read(ctx, journal.BySession{Session: l.session, After: row.First - 1}, page)
	if err != nil || len(chunk.Records) == 0 {
		return nil, fmt.Errorf("read the start of a run: %w", errors.Join(err, missing(chunk)))
	}
	rec, err := narad.Decode(chunk.Records[0].Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the start of a run: %w", err)
	}
	first, ok := rec.(narad.Authority)
	if !ok {
		return nil, ErrDamaged
	}
	return first, nil
}

func missing(c Chunk) error {
	if len(c.Records) == 0 {
		return ErrDamaged
	}
	return nil
}

// Read returns a page of the facts with a record above after, in the order of the log.
// One that has records on both sides is given whole.
func (l *RunLog) Read(ctx context.Context, after uint64, page Page) (Chunk, error) {
	chunk, err := l.host.journal.Read(ctx, l.order(after), page)
	if err != nil {
		return chunk, fmt.Errorf("read the log of a run: %w", err)
	}
	return chunk, nil
}

func (l *RunLog) order(after uint64) journal.Order {
	return journal.ByLog{Session: l.session, LogRun: l.run, After: after}
}

// reaches reports whether the log has a record with a number above after.
func (l *RunLog) reaches(ctx context.Context, after uint64) (Record, bool, error) {
	chunk, err := l.Read(ctx, after, Page{Limit: 1})
	if err != nil || len(chunk.Records) == 0 {
		return Record{}, false, err
	}
	return chunk.Records[0], true, nil
}

// Has reports whether the log has a record of that number; it has one of 0, its start.
func (l *RunLog) Has(ctx context.Context, sequence uint64) (bool, error) {
	if sequence == 0 {
		return true, nil
	}
	_, ok, err := l.reaches(ctx, sequence-1)
	return ok, err
}

// End returns the number of the log's last record once that is the last for ever, and false
// before. It reads little, also of a long log.
func (l *RunLog) End(ctx context.Context) (last uint64, ended bool, err error) {
	row, err := l.host.logRow(ctx, l.run)
	if err != nil || !hasEnded(row) {
		return 0, false, err
	}
	last, err = l.final(ctx, row)
	return last, err == nil, err
}

// final returns the number of the last record of a run that has ended.
func (l *RunLog) final(ctx context.Context, row journal.RunRow) (uint64, error) {
	chunk, err := l.host.journal.Read(ctx, journal.BySession{Session: l.session, After: row.Last - 1}, Page{Limit: 1})
	if err != nil || len(chunk.Records) == 0 {
		return 0, fmt.Errorf("read the end of a run: %w", errors.Join(err, missing(chunk)))
	}
	return lastLog(&chunk.Records[0]), nil
}

// hasEnded reports whether a run that has a row will have no more records.
func hasEnded(row journal.RunRow) bool {
	return session.RunState(row.State).Ended() || row.State == index.Withdrawn
}

// lastLog is the number of a fact's last record.
func lastLog(r *Record) uint64 { return r.FirstLog + uint64(r.LogCount) - 1 }

// Follow reads the log's facts with a record above after, and goes on with it until it has
// ended. The caller closes the follower.
func (l *RunLog) Follow(ctx context.Context, after uint64) (*Follower, error) {
	head, err := l.host.journal.Head(ctx, l.session)
	if err != nil {
		return nil, fmt.Errorf("follow the log of a run: %w", err)
	}
	from := head.Sequence
	first, more, err := l.reaches(ctx, after)
	if err != nil {
		return nil, err
	}
	f := &Follower{log: l, after: after}
	if more {
		from = first.Sequence - 1
	} else if row, err := l.host.logRow(ctx, l.run); err != nil {
		return nil, err
	} else {
		f.done = hasEnded(row) && row.Last <= head.Sequence
	}
	f.subscription = l.host.feed.Subscribe(feed.Session(l.session, from))
	return f, nil
}

// Follower follows one log. It belongs to one goroutine, but for Wake and Close.
type Follower struct {
	log          *RunLog
	subscription *feed.Subscription
	after        uint64
	done         bool
}

// Wake gives a value when it may be worth to look again.
func (f *Follower) Wake() <-chan struct{} { return f.subscription.Wake() }

// Close ends the follower. It may be called twice.
func (f *Follower) Close() { f.subscription.Close() }

// Lag is how many facts of the session are behind what was given. It may read the journal.
func (f *Follower) Lag(ctx context.Context) (uint64, error) { return f.subscription.Lag(ctx) }

// Poll returns the facts that the log has got meanwhile, none where it has not: then wait
// for Wake. After the fact with which the log ends it gives io.EOF. The records may be
// shared with other readers and must not be changed.
func (f *Follower) Poll(ctx context.Context) ([]Record, error) {
	for {
		if f.done {
			return nil, io.EOF
		}
		records, err := f.subscription.Poll(ctx)
		if err != nil || len(records) == 0 {
			return nil, err
		}
		if own := f.take(records); len(own) > 0 {
			return own, nil
		}
	}
}

// Next is Poll, but it waits until there is something.
func (f *Follower) Next(ctx context.Context) ([]Record, error) {
	for {
		records, err := f.Poll(ctx)
		if err != nil || len(records) > 0 {
			return records, err
		}
		select {
		case <-f.Wake():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take picks the log's own facts, and looks for its end.
func (f *Follower) take(records []Record) []Record {
	var own []Record
	for _, r := range records {
		if r.LogRun == f.log.run && lastLog(&r) > f.after {
			own = append(own, r)
			f.after = lastLog(&r)
		}
	}
	if len(own) > 0 {
		f.done = endsLog(own[len(own)-1])
	}
	return own
}

// endsLog reports whether a fact is the last of its log. Every last one has several
// records.
func endsLog(r Record) bool {
	if r.LogCount < 2 {
		return false
	}
	rec, err := narad.Decode(r.Bytes)
	if err != nil {
		return false
	}
	switch f := rec.(type) {
	case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		return rec.(narad.Authority).Envelope().RunID == r.LogRun
	case *narad.Custom:
		return f.Name == facts.InputWithdrawn
	}
	return false
}
