package host

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// Entry returns the session sequences of the facts between which an entry of the session's
// transcript stands: the last is that at which it was appended. ErrNotFound is for one that
// is not there, or in another session.
func (v *View) Entry(ctx context.Context, entryID string) (first, last uint64, err error) {
	row, err := v.alias(ctx, index.Entry(entryID))
	if err != nil {
		return 0, 0, err
	}
	first, last = index.Span(row.ID)
	return first, last, nil
}

// Redaction returns what the newest fact says that redacted a message of the session, nil for none.
func (v *View) Redaction(ctx context.Context, messageID string) (*facts.Redacted, error) {
	row, err := v.alias(ctx, index.Redaction(v.row.Session, messageID))
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	at, err := strconv.ParseInt(row.ID, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read where a message was redacted: %w", ErrDamaged)
	}
	fact, err := v.host.fact(ctx, v.row.Session, at)
	if err != nil {
		return nil, err
	}
	redacted, ok := facts.RedactedBy(fact)
	if !ok {
		return nil, fmt.Errorf("fact %d redacts nothing: %w", at, ErrDamaged)
	}
	return &redacted, nil
}

func (v *View) alias(ctx context.Context, key journal.Key) (journal.AliasRow, error) {
	if key.Validate() != nil {
		return journal.AliasRow{}, ErrNotFound
	}
	row, err := journal.Get[journal.AliasRow](ctx, v.host.journal, key)
	switch {
	case err != nil:
		return row, fmt.Errorf("find %s: %w", key, err)
	case row.Session != v.row.Session:
		return row, ErrNotFound
	}
	return row, nil
}

// RunSpan is where a run of a session stands.
type RunSpan struct {
	RunID, RootRunID string
	// First is the session sequence of its start, Last that of its end, 0 while it is open.
	First, Last uint64
	// State is running, finished, failed or cancelled.
	State string
}

// Run returns where a run of the session stands, or ErrNotFound.
func (v *View) Run(ctx context.Context, runID string) (RunSpan, error) {
	key := journal.RunKey(runID)
	if key.Validate() != nil {
		return RunSpan{}, ErrNotFound
	}
	row, err := journal.Get[journal.RunRow](ctx, v.host.journal, key)
	switch {
	case err != nil:
		return RunSpan{}, fmt.Errorf("find run: %w", err)
	case row.Session != v.row.Session:
		return RunSpan{}, ErrNotFound
	}
	return RunSpan{row.ID, row.Root, row.First, row.Last, row.State}, nil
}

// Fact returns the fact of a session sequence.
func (v *View) Fact(ctx context.Context, sequence uint64) (narad.Authority, error) {
	return v.host.fact(ctx, v.row.Session, int64(sequence))
}

// Head returns the session's last sequence.
func (v *View) Head(ctx context.Context) (uint64, error) {
	head, err := v.host.journal.Head(ctx, v.row.Session)
	if err != nil {
		return 0, fmt.Errorf("find head: %w", err)
	}
	return head.Sequence, nil
}
