package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	workers = 100
	pagers  = 20
	look    = 20 * time.Millisecond // how long a client looks at what it read
)

// measureParallel is field case 86: a hundred sessions in which agents record fifty facts
// a second each, while clients page through what there is. Nothing may fail, and nothing
// be missing at the end.
func measureParallel(b *bench) ([]line, error) {
	if err := b.serve(); err != nil {
		return nil, err
	}
	sessions := make([]string, workers)
	for i := range sessions {
		sessions[i] = fmt.Sprintf("worker-%d", i)
		if err := b.create(sessions[i], "worker"); err != nil {
			return nil, err
		}
	}
	begun := time.Now()
	for _, session := range sessions {
		if err := b.say(session); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	var pages, failures atomic.Int64
	var first atomic.Pointer[error]
	failed := func(err error) {
		failures.Add(1)
		first.CompareAndSwap(nil, &err)
	}
	var clients sync.WaitGroup
	for range pagers {
		clients.Go(func() {
			for ctx.Err() == nil {
				if _, err := b.leaf(sessions[rand.IntN(workers)], 100); err != nil {
					failed(err)
				}
				pages.Add(1)
				time.Sleep(look)
			}
		})
	}
	want := workerFacts(b.time)
	for _, session := range sessions {
		if err := b.awaitEnd(session, b.time+5*time.Minute); err != nil {
			failed(err)
		}
	}
	took := time.Since(begun)
	stop()
	clients.Wait()
	for _, session := range sessions {
		if err := b.whole(session, want); err != nil {
			failed(err)
		}
	}
	l := line{
		name:   fmt.Sprintf("case 86: %d sessions write, %d clients page", workers, pagers),
		figure: fmt.Sprintf("%d failures", failures.Load()), goal: "0", verdict: judge(failures.Load() == 0), limit: "-",
		against: fmt.Sprintf("%.0f facts/s in each for %s, %.0f pages/s", float64(want)/took.Seconds(), took.Round(time.Second), float64(pages.Load())/took.Seconds()),
	}
	if cause := first.Load(); cause != nil {
		l.limit = (*cause).Error()
	}
	return []line{l}, nil
}

// chapter is a page of history.
type chapter struct {
	Events []struct {
		Type            string
		SessionSequence int
	}
	NextSessionSequence *int
}

// leaf reads a session's history in pages, and gives how many facts of each type it has.
func (b *bench) leaf(session string, limit int) (types map[string]int, err error) {
	types = map[string]int{}
	var buf bytes.Buffer
	for after, more := 0, true; more; {
		var c chapter
		if err := b.get(fmt.Sprintf("/sessions/%s/events?afterSessionSequence=%d&limit=%d", session, after, limit), &buf); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(buf.Bytes(), &c); err != nil {
			return nil, err
		}
		for _, e := range c.Events {
			if after++; e.SessionSequence != after {
				return nil, fmt.Errorf("%s: got sequence %d, want %d", session, e.SessionSequence, after)
			}
			types[e.Type]++
		}
		more = c.NextSessionSequence != nil
	}
	return types, nil
}

// awaitEnd waits until nothing is active in a session.
func (b *bench) awaitEnd(session string, most time.Duration) error {
	var buf bytes.Buffer
	for until := time.Now().Add(most); time.Now().Before(until); {
		var s struct{ ActiveRootRunID string }
		if err := b.get("/sessions/"+session, &buf); err != nil {
			return err
		}
		if err := json.Unmarshal(buf.Bytes(), &s); err != nil {
			return err
		}
		if s.ActiveRootRunID == "" {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-b.ctx.Done():
			return b.ctx.Err()
		}
	}
	return fmt.Errorf("%s did not end within %s", session, most)
}

// whole demands that a session has everything that its agent recorded.
func (b *bench) whole(session string, want int) error {
	types, err := b.leaf(session, 1_000)
	if err != nil {
		return err
	}
	if got := types["run.custom"]; got != want || types["run.finished"] != 1 {
		return fmt.Errorf("%s: got %d facts of its agent and %v, want %d", session, got, types, want)
	}
	return nil
}
