package journaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mahati-host/mahati/internal/journal"
)

// History is what one writer of a crash suite knows about its batches, which
// all have facts and whose sessions and rows no other writer uses.
type History struct {
	// Acknowledged are the batches of which Append returned without an error.
	Acknowledged []journal.Batch
	// InFlight are the batches, in order, of which nothing was heard before the
	// crash: mostly one.
	InFlight []journal.Batch
}

// CheckSurvivors compares a store after a crash with what its writers know:
// everything acknowledged is there, byte for byte, what was in flight is there
// whole or not at all, nothing else is, the numbers have no holes, and rows and
// marks agree with the facts. It says how many of each writer's batches in
// flight survived.
func CheckSurvivors(j journal.Journal, histories []History) (survived []int, err error) {
	probes := &Probes{}
	var batches []placedBatch
	survived = make([]int, len(histories))
	for i, h := range histories {
		for _, batch := range h.Acknowledged {
			probes.Add(batch)
			placed, err := place(j, batch)
			if err != nil {
				return nil, fmt.Errorf("writer %d, acknowledged batch of %q at %d: %w", i, batch.Session, batch.ExpectHead, err)
			}
			batches = append(batches, placed)
		}
		for n, batch := range h.InFlight {
			probes.Add(batch)
			placed, err := place(j, batch)
			if errors.Is(err, journal.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("writer %d, batch in flight: %w", i, err)
			}
			if survived[i] != n {
				return nil, fmt.Errorf("writer %d: batch %d in flight is there, one before it is not", i, n)
			}
			batches, survived[i] = append(batches, placed), n+1
		}
	}
	model, err := rebuild(j, batches)
	if err != nil {
		return nil, err
	}
	page := journal.Page{Limit: 100, Bytes: 1 << 20}
	if got, want := everything(j, probes, page), everything(model, probes, page); got != want {
		return nil, fmt.Errorf("content differs: %s", firstDifference(got, want))
	}
	report, err := j.Verify(context.Background(), journal.VerifyOptions{})
	if err == nil && !report.OK() {
		err = fmt.Errorf("verify finds %+v", report.Problems)
	}
	return survived, err
}

// placedBatch is a batch with the offset at which the store has it.
type placedBatch struct {
	batch  journal.Batch
	offset uint64
}

func place(j journal.Reader, batch journal.Batch) (placedBatch, error) {
	record, err := j.Find(context.Background(), batch.Session, batch.Facts[0].EventID)
	return placedBatch{batch, record.Offset}, err
}

// rebuild tells a model the batches in the order of their offsets, which must
// be the numbers that the model gives.
func rebuild(j journal.Keeper, batches []placedBatch) (*Model, error) {
	model := NewModel(j.Identity().FirstEvent)
	slices.SortFunc(batches, func(a, b placedBatch) int { return int(a.offset) - int(b.offset) })
	for _, b := range batches {
		receipt, err := model.Append(b.batch)
		if err != nil {
			return nil, fmt.Errorf("batch of %q at %d does not follow: %w", b.batch.Session, b.batch.ExpectHead, err)
		}
		if receipt.FirstOffset != b.offset {
			return nil, fmt.Errorf("batch of %q at %d has offset %d, want %d",
				b.batch.Session, b.batch.ExpectHead, b.offset, receipt.FirstOffset)
		}
	}
	return model, nil
}

func firstDifference(got, want string) string {
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		if g, w := lineAt(gotLines, i), lineAt(wantLines, i); g != w {
			return fmt.Sprintf("line %d:\ngot  %s\nwant %s", i+1, g, w)
		}
	}
	return "none"
}
