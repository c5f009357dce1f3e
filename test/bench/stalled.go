package main

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	watchers     = 100
	stalledTurns = 3
)

// measureStalled follows a session in which an agent writes fifty facts a second, by
// turns with and without a reader of its whole past that takes nothing. A delay is from
// the timestamp of a fact, which the host gives it before the journal has it, to its end
// at the reader.
func measureStalled(b *bench) ([]line, error) {
	if err := b.serve(); err != nil {
		return nil, err
	}
	if b.seed.medium < 1 {
		return nil, errors.New("needs a medium session")
	}
	session := mediumSession(1)
	if err := b.say(session); err != nil {
		return nil, err
	}
	defer func() { _ = b.quit(session) }()
	var alone, beside []time.Duration
	for range stalledTurns {
		for _, stall := range []bool{false, true} {
			delays, err := b.watch(session, stall, b.time/(2*stalledTurns))
			if err != nil {
				return nil, err
			}
			if stall {
				beside = append(beside, delays...)
			} else {
				alone = append(alone, delays...)
			}
		}
	}
	ratio := percentile(beside, 0.99).Seconds() / percentile(alone, 0.99).Seconds()
	against := fmt.Sprintf("no stalled reader: p50 %s and p99 %s, with one %s and %s, of %d frames each",
		percentile(alone, 0.5), percentile(alone, 0.99), percentile(beside, 0.5), percentile(beside, 0.99), len(alone))
	l := atMost(fmt.Sprintf("p99 of %d readers beside a stalled one", watchers), ratio, 1.25, against, "the sync of the journal, and this machine's scheduler")
	l.goal = "no change (<= 1.25)"
	return []line{l}, nil
}

// watch gives the delays that the readers of a session see for a while.
func (b *bench) watch(session string, stall bool, each time.Duration) ([]time.Duration, error) {
	head, err := b.head(session)
	if err != nil {
		return nil, err
	}
	if stall {
		r, err := b.open(b.streamOf(session, 0), 4<<10)
		if err != nil {
			return nil, err
		}
		defer r.close()
	}
	until := time.Now().Add(each)
	delays, errs := make([][]time.Duration, watchers), make([]error, watchers)
	var ended sync.WaitGroup
	for i := range watchers {
		r, err := b.open(b.streamOf(session, head), 0)
		if err != nil {
			return nil, err
		}
		ended.Go(func() {
			defer r.close()
			delays[i], errs[i] = r.delays(until)
		})
	}
	ended.Wait()
	var all []time.Duration
	for _, of := range delays {
		all = append(all, of...)
	}
	return all, errors.Join(errs...)
}

// delays reads until a time, and tells how old the facts were that were made meanwhile.
func (r *reader) delays(until time.Time) (all []time.Duration, err error) {
	begun := time.Now()
	for time.Now().Before(until) {
		_, data, err := r.next()
		if err != nil {
			return all, err
		}
		made, err := timestamp(data)
		if err != nil {
			return all, err
		}
		if made.After(begun) {
			all = append(all, time.Since(made))
		}
	}
	return all, nil
}

func timestamp(fact []byte) (time.Time, error) {
	_, behind, _ := bytes.Cut(fact, []byte(`"timestamp":"`))
	text, _, found := bytes.Cut(behind, []byte(`"`))
	if !found {
		return time.Time{}, fmt.Errorf("no timestamp in %.200s", fact)
	}
	return time.Parse(time.RFC3339Nano, string(text))
}
