package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/internal/journal"
)

// Told reports whether an input of this id told the run something that was accepted and is
// kept (R21).
func (l *RunLog) Told(ctx context.Context, inputID string) (bool, error) {
	_, err := journal.Get[journal.CommandRow](ctx, l.host.journal, journal.CommandKey(l.session, inputSpace(l.run), inputID))
	if errors.Is(err, journal.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for an input: %w", err)
	}
	return true, nil
}

// inputSpace is where the ids of a run's inputs are unique.
func inputSpace(run string) string { return "run:" + run }
