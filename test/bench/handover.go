package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	handovers = 200
	writers   = 4
	// beyond is how far each client reads behind the head that it found.
	beyond = 100
)

// measureHandover is field case 9: agents write as fast as the journal lets them, and
// clients come and go at places up to 2,000 facts back. Between what was stored and what
// comes there must be no hole and no repetition.
func measureHandover(b *bench) ([]line, error) {
	if err := b.serve(); err != nil {
		return nil, err
	}
	sessions := make([]string, writers)
	for i := range sessions {
		sessions[i] = fmt.Sprintf("torrent-%d", i)
		if err := errors.Join(b.create(sessions[i], "torrent"), b.say(sessions[i])); err != nil {
			return nil, err
		}
		defer func() { _ = b.quit(sessions[i]) }()
	}
	before, err := b.heads(sessions)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	var next, failures atomic.Int64
	var first atomic.Pointer[error]
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			for next.Add(1) <= handovers && b.ctx.Err() == nil {
				if err := b.handover(sessions[rand.IntN(writers)]); err != nil {
					failures.Add(1)
					first.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	clients.Wait()
	took := time.Since(begun)
	after, err := b.heads(sessions)
	if err != nil {
		return nil, err
	}
	l := line{
		name: fmt.Sprintf("case 9: %d connects at random cursors", handovers), figure: fmt.Sprintf("%d failures", failures.Load()),
		goal: "0", verdict: judge(failures.Load() == 0), limit: "-",
		against: fmt.Sprintf("%d sessions at %.0f facts/s together", writers, float64(after-before)/took.Seconds()),
	}
	if failed := first.Load(); failed != nil {
		l.limit = (*failed).Error()
	}
	return []line{l}, nil
}

// heads is the sum of the last sequences of sessions.
func (b *bench) heads(sessions []string) (sum uint64, err error) {
	for _, session := range sessions {
		head, err := b.head(session)
		if err != nil {
			return 0, err
		}
		sum += head
	}
	return sum, nil
}

func (b *bench) handover(session string) error {
	head, err := b.head(session)
	if err != nil {
		return err
	}
	after := head - uint64(rand.Int64N(int64(min(head, 2_000)+1)))
	r, err := b.open(b.streamOf(session, after), 0)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	for want := after + 1; want <= head+beyond; want++ {
		got, _, err := r.next()
		if err != nil {
			return fmt.Errorf("%s after %d: %w", session, after, err)
		}
		if got != want {
			return fmt.Errorf("%s after %d: got sequence %d, want %d", session, after, got, want)
		}
	}
	return nil
}
