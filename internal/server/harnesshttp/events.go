package harnesshttp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narad"
)

// The bounds of a batch.
const (
	defaultBatch  = 256
	maxBatch      = 1_000
	maxBatchBytes = 4 << 20
	// maxWait is how long a request may wait for the first record, in seconds.
	maxWait = 60
)

// events answers with the records after a cursor, at most as many as the credit says, and
// the cursor behind them.
func (b *Binding) events(w http.ResponseWriter, r *request) error {
	credit, err := r.number("credit", 1, maxBatch, defaultBatch)
	if err != nil {
		return err
	}
	wait, err := r.number("wait", 0, maxWait, 0)
	if err != nil {
		return err
	}
	l, err := b.log(r)
	if err != nil {
		return err
	}
	after, err := l.begin(r.Context(), r.query.Get("cursor"))
	if err != nil {
		return err
	}
	lines, over, err := l.batch(r.Context(), after, int(credit))
	if err != nil {
		return err
	}
	if len(lines) == 0 && !over && wait > 0 {
		lines, over, err = b.await(w, r, l, after, int(credit), time.Duration(wait)*time.Second)
		if err != nil {
			return err
		}
	}
	if len(lines) > 0 {
		after = lines[len(lines)-1].sequence
	}
	writeJSON(w, http.StatusOK, l.document(lines, after, over))
	return nil
}

// document is a batch on the wire.
func (l *runLog) document(lines []line, next uint64, over bool) []byte {
	var out bytes.Buffer
	out.WriteString(`{"run_id":`)
	out.Write(narad.Quote(l.id))
	out.WriteString(`,"events":[`)
	for i, e := range lines {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(e.bytes)
	}
	out.WriteString(`],"next_cursor":`)
	out.Write(narad.Quote(l.sign(next).Token()))
	out.WriteString(`,"sequence":` + strconv.FormatUint(next, 10) + `,"ended":` + strconv.FormatBool(over) + "}\n")
	return out.Bytes()
}

// batch reads what is there after a sequence, within the bounds of one answer, and tells
// whether nothing can follow.
func (l *runLog) batch(ctx context.Context, after uint64, credit int) (lines []line, over bool, err error) {
	chunk, err := l.Read(ctx, after, host.Page{Limit: credit, Bytes: maxBatchBytes})
	if err != nil {
		return nil, false, err
	}
	if len(chunk.Records) == 0 {
		last, ended, err := l.End(ctx)
		return nil, ended && last == after, err
	}
	return l.answer(ctx, chunk.Records, after, credit)
}

// answer makes a batch of facts.
func (l *runLog) answer(ctx context.Context, records []host.Record, after uint64, credit int) (lines []line, over bool, err error) {
	lines, err = l.lines(ctx, records, after)
	if err != nil || len(lines) == 0 {
		return nil, false, err
	}
	lines = bounded(lines, credit, maxBatchBytes)
	over, err = l.final(ctx, lines[len(lines)-1])
	return lines, over, err
}

// bounded cuts lines to a number and to bytes; the first is given whatever its size.
func bounded(lines []line, most, size int) []line {
	total := 0
	for i, e := range lines {
		if total += len(e.bytes); i == most || i > 0 && total > size {
			return lines[:i]
		}
	}
	return lines
}

// await waits for the first record after a sequence. It ends with nothing when the time is
// over or the server drains: the position stays, and nothing is lost.
func (b *Binding) await(w http.ResponseWriter, r *request, l *runLog, after uint64, credit int, wait time.Duration) ([]line, bool, error) {
	held, err := b.streams.Hold(w, r.Request)
	if err != nil {
		return nil, false, err
	}
	f, err := l.Follow(r.Context(), after)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	late, beat := time.NewTimer(wait), time.NewTicker(b.opt.Heartbeat)
	defer late.Stop()
	defer beat.Stop()
	for {
		records, err := f.Poll(held.Context())
		switch {
		case errors.Is(err, io.EOF):
			return nil, true, nil
		case err != nil && held.Context().Err() == nil:
			return nil, false, err
		case len(records) > 0:
			lines, over, err := l.answer(r.Context(), records, after, credit)
			return lines, over, errors.Join(err, held.Alive())
		}
		select {
		case <-f.Wake():
		case <-late.C:
			return nil, false, held.Alive()
		case <-beat.C: // its token may have ended
			if err := held.Alive(); err != nil {
				return nil, false, err
			}
		case <-held.Context().Done():
			return nil, false, ended(held)
		}
	}
}

// ended is why a held request is over before its time, nil where it is answered all the same.
func ended(held *server.Stream) error {
	if why := context.Cause(held.Context()); why != server.ErrDraining {
		return why
	}
	return nil
}
