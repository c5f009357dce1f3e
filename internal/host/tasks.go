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

// Tasks returns the list of tasks that the session's agent wrote last; it is empty where
// none ever did.
func (v *View) Tasks(ctx context.Context) ([]facts.Task, error) {
	f, err := v.host.factAt(ctx, v.row.Session, index.Tasks(v.row.Session))
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the tasks: %w", err)
	}
	list, _ := facts.Read[facts.Tasked](f, facts.TaskList)
	return list.Tasks, nil
}

// factAt reads the fact whose sequence stands in a row of the session.
func (h *Host) factAt(ctx context.Context, session string, key journal.Key) (narad.Authority, error) {
	row, err := journal.Get[journal.AliasRow](ctx, h.journal, key)
	if err != nil {
		return nil, err
	}
	at, err := strconv.ParseInt(row.ID, 10, 64)
	if err != nil || at < 1 || row.Session != session {
		return nil, fmt.Errorf("%s: %w", key, journal.ErrDamaged)
	}
	return h.fact(ctx, session, at)
}
