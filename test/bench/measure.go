package main

import (
	"slices"
	"sync/atomic"
	"time"
)

// turnTime is how long one of two that are compared goes on before the other does.
const turnTime = time.Second

// byTurns measures two rates alternately for so long each, and gives the mean of each.
func byTurns(each time.Duration, a, b func() (float64, error)) (rateA, rateB float64, err error) {
	turns := max(int(each/turnTime), 1)
	for range turns {
		x, err := a()
		if err != nil {
			return 0, 0, err
		}
		y, err := b()
		if err != nil {
			return 0, 0, err
		}
		rateA += x / float64(turns)
		rateB += y / float64(turns)
	}
	return rateA, rateB, nil
}

// perSecond runs work for one turn and gives how fast the count grew.
func perSecond(count *atomic.Int64, work func(until time.Time) error) (float64, error) {
	begun, before := time.Now(), count.Load()
	err := work(begun.Add(turnTime))
	return float64(count.Load()-before) / time.Since(begun).Seconds(), err
}

// percentile of durations, which it sorts.
func percentile(all []time.Duration, share float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(int(share*float64(len(all))), len(all)-1)]
}
