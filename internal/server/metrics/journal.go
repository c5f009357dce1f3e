package metrics

import (
	"context"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// Journal returns a journal whose appends are measured, as their caller sees them.
func (m *Metrics) Journal(j journal.Journal) journal.Journal { return measured{j, m} }

type measured struct {
	journal.Journal
	metrics *Metrics
}

// Append is that of the journal.
func (j measured) Append(ctx context.Context, batch journal.Batch) (journal.Receipt, error) {
	begun := time.Now()
	receipt, err := j.Journal.Append(ctx, batch)
	j.metrics.append.Observe(time.Since(begun).Seconds())
	return receipt, err
}
