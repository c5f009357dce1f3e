package timer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// rest is how long a timer is left alone that fired and is still there: because
// it failed, or because its owner has not removed it yet.
type rest struct {
	due  time.Time // of the row that fired; a row set anew does not rest
	from time.Time
	long time.Duration
}

// left is the time until the timer fires again. A clock that has gone back ends
// the rest.
func (r rest) left(now time.Time) time.Duration {
	passed := now.Sub(r.from)
	if passed < 0 {
		return 0
	}
	return r.long - passed
}

// pass fires every timer that is due and not at rest, and says how long to
// sleep then.
func (t *Timers) pass(ctx context.Context) (Outcome, time.Duration, error) {
	t.passing.Lock()
	defer t.passing.Unlock()
	t.wake()
	var all Outcome
	now := t.options.Now()
	sleep := t.options.MaxSleep
	seen := map[journal.Key]bool{}
	list := journal.TimersDue{Until: now.Add(t.options.MaxSleep)}
	page := journal.RowPage{Limit: journal.MaxPageRecords}
	for {
		var lost []journal.TimerRow
		rows, cursor, err := journal.OnePage[journal.TimerRow](ctx, t.index, list, page, func(d journal.Damage) {
			t.options.Damaged(d)
			if !d.Due.IsZero() {
				lost = append(lost, journal.TimerRow{Session: d.Session, ID: d.Key.ID, Due: d.Due})
			}
		})
		if err != nil {
			return all, 0, fmt.Errorf("read the timers that are due: %w", err)
		}
		if rows = append(rows, lost...); len(lost) > 0 {
			slices.SortStableFunc(rows, func(a, b journal.TimerRow) int { return a.Due.Compare(b.Due) })
		}
		due, next := t.choose(rows, now, seen)
		sleep = min(sleep, next)
		outcome := t.fireAll(ctx, due)
		all.Fired += outcome.Fired
		all.Failed += outcome.Failed
		if err := ctx.Err(); err != nil {
			return all, 0, fmt.Errorf("fire timers: %w", err)
		}
		for _, row := range due {
			sleep = min(sleep, t.rests[row.Key()].long)
		}
		if cursor == "" {
			t.forget(seen)
			return all, sleep, nil
		}
		page.Cursor = cursor
	}
}

// choose gives the timers that are to fire now, and the time until the first of
// the others.
func (t *Timers) choose(rows []journal.TimerRow, now time.Time, seen map[journal.Key]bool) ([]journal.TimerRow, time.Duration) {
	var due []journal.TimerRow
	next := t.options.MaxSleep
	for _, timer := range rows {
		seen[timer.Key()] = true
		wait := timer.Due.Sub(now)
		if r, resting := t.rests[timer.Key()]; resting && r.due.Equal(timer.Due) {
			wait = max(wait, r.left(now))
		}
		if wait > 0 {
			next = min(next, wait)
			continue
		}
		due = append(due, timer)
	}
	return due, next
}

// forget drops the rests of timers that are gone or far off.
func (t *Timers) forget(seen map[journal.Key]bool) {
	for key := range t.rests {
		if !seen[key] {
			delete(t.rests, key)
		}
	}
}

// fireAll fires the timers of several sessions at once, those of one in order.
// It returns when all are done.
func (t *Timers) fireAll(ctx context.Context, due []journal.TimerRow) Outcome {
	failed := make([]bool, len(due))
	groups := bySession(due)
	queue := make(chan []int, len(groups))
	for _, group := range groups {
		queue <- group
	}
	close(queue)
	var workers sync.WaitGroup
	for range min(t.options.Parallel, len(groups)) {
		workers.Go(func() {
			for group := range queue {
				for _, i := range group {
					failed[i] = !t.fireOne(ctx, due[i])
				}
			}
		})
	}
	workers.Wait()
	return t.settle(due, failed)
}

// bySession groups timers, by their places in the list.
func bySession(due []journal.TimerRow) [][]int {
	var groups [][]int
	at := map[string]int{}
	for i := range due {
		group, ok := at[due[i].Session]
		if !ok {
			group = len(groups)
			at[due[i].Session] = group
			groups = append(groups, nil)
		}
		groups[group] = append(groups[group], i)
	}
	return groups
}

func (t *Timers) fireOne(ctx context.Context, row journal.TimerRow) bool {
	if ctx.Err() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, t.options.FireTimeout)
	defer cancel()
	if err := t.fire(ctx, row); err != nil {
		t.options.Logger.Warn("timer failed, to be tried again",
			"session", row.Session, "timer", row.ID, "due", row.Due, "cause", err)
		return false
	}
	return true
}

// settle lets the timers that fired rest.
func (t *Timers) settle(due []journal.TimerRow, failed []bool) Outcome {
	outcome := Outcome{Fired: len(due)}
	now := t.options.Now()
	for i, row := range due {
		if failed[i] {
			outcome.Failed++
		}
		long := t.options.RetryMin
		if r, again := t.rests[row.Key()]; again && r.due.Equal(row.Due) {
			long = min(2*r.long, t.options.RetryMax)
		}
		t.rests[row.Key()] = rest{due: row.Due, from: now, long: long}
	}
	return outcome
}
