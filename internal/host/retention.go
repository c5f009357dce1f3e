package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/internal/journal"
)

// retention bounds how far back the stream of events can be resumed (R40). What was the
// newest event is marked from time to time, in a timer of the store's own; a mark that is old
// enough says what can be let go. The number never falls, whatever the clock does: one that
// jumps ahead lets go of no more than maxLapse marks each time that is looked.
type retention struct {
	oldest atomic.Uint64 // the first event that is kept
}

// retained is the value of the timer.
type retained struct {
	Oldest uint64         `json:"oldest"`
	Marks  []retainedMark `json:"marks"`
}

// retainedMark says what the newest event was at a time.
type retainedMark struct {
	At    time.Time `json:"at"`
	Event uint64    `json:"event"`
}

const (
	retentionTimer = "narya.retention"
	// retentionSteps is how many marks there are in the time for which events are kept.
	retentionSteps = 168
	maxLapse       = 2
)

// look marks the newest event at a time, and lets go of what is older than long.
func (k *retained) look(now time.Time, long time.Duration, newest uint64) {
	for i := range k.Marks {
		if k.Marks[i].At.After(now) { // the clock was ahead, or is behind
			k.Marks[i].At = now
		}
	}
	for range maxLapse {
		if len(k.Marks) == 0 || now.Sub(k.Marks[0].At) < long {
			break
		}
		k.Oldest = max(k.Oldest, k.Marks[0].Event+1)
		k.Marks = slices.Delete(k.Marks, 0, 1)
	}
	k.Marks = append(k.Marks, retainedMark{now, newest})
}

// loadRetention takes up what is kept, or begins to keep.
func (h *Host) loadRetention(ctx context.Context) error {
	key := journal.TimerKey("", retentionTimer)
	row, err := journal.Get[journal.TimerRow](ctx, h.journal, key)
	var k retained
	switch {
	case errors.Is(err, journal.ErrNotFound):
		k.Oldest, err = h.journal.Identity().FirstEvent, nil
	case errors.Is(err, journal.ErrDamaged):
		h.damaged(journal.Damage{Key: key, Cause: err})
	case err != nil:
		return fmt.Errorf("read how long events are kept: %w", err)
	default:
		err = json.Unmarshal(row.Value, &k)
	}
	if err != nil { // what was let go is not known: all is, so that the number does not fall
		k = retained{Oldest: h.journal.Durable().Event + 1}
	}
	h.retention.oldest.Store(k.Oldest)
	if err == nil && row.Value != nil {
		return nil // its time comes
	}
	if err := h.keepEvents(ctx, k); err != nil { // a store that takes no writes is served all the same
		h.opt.Logger.Warn("events are kept without an end", "error", err)
	}
	return nil
}

// fireRetention looks at what is to be kept.
func (h *Host) fireRetention(ctx context.Context, row journal.TimerRow) error {
	k := retained{Oldest: h.retention.oldest.Load()}
	if row.Value != nil {
		if err := json.Unmarshal(row.Value, &k); err != nil {
			return fmt.Errorf("read how long events are kept: %w", err)
		}
	}
	return h.keepEvents(ctx, k)
}

// keepEvents looks, and stores what is found before anybody is told.
func (h *Host) keepEvents(ctx context.Context, k retained) error {
	now := h.opt.Now().UTC()
	k.look(now, h.opt.Retention, h.journal.Durable().Event)
	value, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("encode how long events are kept: %w", err)
	}
	row := journal.TimerRow{ID: retentionTimer, Due: now.Add(h.opt.Retention / retentionSteps), Carried: true, Value: value}
	if err := h.carry(ctx, journal.Put{Row: row}); err != nil {
		return err
	}
	h.retention.oldest.Store(k.Oldest)
	h.timers.Changed()
	return nil
}
