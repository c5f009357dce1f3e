package client

import (
	"context"
	"time"
)

// Exponential returns waits that double from first to last, each cut at random to
// between half of it and the whole, so that clients that lost one host together do
// not come back together. The random function returns numbers from 0 to below 1.
func Exponential(first, last time.Duration, random func() float64) func(attempt int) time.Duration {
	return func(attempt int) time.Duration {
		wait := first
		for ; attempt > 1 && wait < last; attempt-- {
			wait *= 2
		}
		half := min(wait, last) / 2
		return half + time.Duration(random()*float64(half))
	}
}

// pause waits, or returns the error of the context.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
