package harnesshttp

import (
	"context"
	"fmt"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narad"
)

// runLog is the log of a run in the eyes of one reader. It belongs to one goroutine.
type runLog struct {
	*host.RunLog
	id     string
	signer *harness.Signer
	run    harness.Run // what its start recorded, once it has one
}

// line is one record as its reader gets it.
type line struct {
	sequence uint64
	kind     harness.Type
	bytes    []byte
}

// log returns the log that the path names.
func (b *Binding) log(r *request) (*runLog, error) {
	id, err := r.run()
	if err != nil {
		return nil, err
	}
	l, err := b.host.Log(r.Context(), r.principal(), access.ReadLog, id)
	if err != nil {
		return nil, err
	}
	server.Annotate(r.Context(), "session", l.Session())
	return &runLog{RunLog: l, id: id, signer: b.signer}, nil
}

// begin verifies a cursor against the log as it is now and returns the sequence that it
// stands for.
func (l *runLog) begin(ctx context.Context, token string) (after uint64, err error) {
	cursor, err := harness.ParseToken(token)
	if err != nil {
		return 0, err
	}
	if err := l.signer.Verify(cursor, l.id, cursor.Sequence); err != nil {
		return 0, err // before anything is read for it
	}
	there, err := l.Has(ctx, cursor.Sequence)
	if err == nil && !there {
		err = harness.ErrCursorAhead
	}
	return cursor.Sequence, err
}

// final reports whether a record is the last of the log for ever.
func (l *runLog) final(ctx context.Context, e line) (bool, error) {
	if e.kind != harness.Checkpointed {
		return false, nil
	}
	last, ended, err := l.End(ctx)
	return ended && e.sequence == last, err
}

// lines returns the records of facts that come after a sequence, as the reader may see them.
func (l *runLog) lines(ctx context.Context, records []host.Record, after uint64) ([]line, error) {
	var lines []line
	for _, record := range records {
		events, err := l.project(ctx, record)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			if e.Sequence <= after {
				continue
			}
			data, err := harness.RedactClassed(e, l.Observes()).AppendLine(nil)
			if err != nil {
				return nil, fmt.Errorf("encode record %d: %w", e.Sequence, err)
			}
			lines = append(lines, line{e.Sequence, e.Type, data})
		}
	}
	return lines, nil
}

func (l *runLog) project(ctx context.Context, record host.Record) ([]harness.Event, error) {
	decoded, err := narad.Decode(record.Bytes)
	if err != nil {
		return nil, fmt.Errorf("decode a stored fact: %w", err)
	}
	fact, ok := decoded.(narad.Authority)
	if !ok {
		return nil, fmt.Errorf("a stored %s is no fact", decoded.Type())
	}
	if l.run.ID == "" {
		if l.run, err = l.recorded(ctx, fact, record.FirstLog == 1); err != nil {
			return nil, err
		}
	}
	return l.run.Project(fact, record.FirstLog, int(record.LogCount), l.sign)
}

// recorded returns what the log's first fact recorded for all of it.
func (l *runLog) recorded(ctx context.Context, fact narad.Authority, first bool) (harness.Run, error) {
	if !first {
		var err error
		if fact, err = l.Start(ctx); err != nil {
			return harness.Run{}, err
		}
	}
	return harness.RunOf(fact)
}

func (l *runLog) sign(sequence uint64) harness.Cursor { return l.signer.Cursor(l.id, sequence) }
