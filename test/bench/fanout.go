package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const fanOutReaders = 1_000

// measureFanOut appends facts to one session that a thousand readers follow, in rounds:
// the next begins when the last reader has the last fact. By turns a plain server does the
// same with the same frames, after as many writes and syncs to a file.
func measureFanOut(b *bench) (lines []line, err error) {
	stage, err := start(roleStage, b.home)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stage.stop()) }()
	if err := b.learnToken(); err != nil {
		return nil, err
	}
	address := stage.url + api + "/sessions/" + stageSession + "/stream?afterSessionSequence=1"
	addTo := func(p *process) func() error {
		return func() error { return b.expect(http.StatusOK, http.MethodPost, p.url+"/frames", nil, nil) }
	}
	frames, err := b.round(address, addTo(stage))
	if err != nil {
		return nil, fmt.Errorf("learn what a round is: %w", err)
	}
	if err := b.expect(http.StatusOK, http.MethodPut, b.plain.url+"/frames", frames, nil); err != nil {
		return nil, err
	}
	address = strings.Replace(address, "=1", fmt.Sprintf("=%d", 1+roundFacts), 1)
	ours, err := b.newCrowd(stage, addTo(stage), address)
	if err != nil {
		return nil, err
	}
	defer ours.leave()
	plain, err := b.newCrowd(b.plain, addTo(b.plain), b.plain.url+"/stream")
	if err != nil {
		return nil, err
	}
	defer plain.leave()
	own, other, err := byTurns(b.time, ours.turn, plain.turn)
	if err != nil {
		return nil, err
	}
	against := fmt.Sprintf("net/http, a cursor loop over a slice of the same frames: %s, ours %s", plain.say(other), ours.say(own))
	return []line{atLeast(fmt.Sprintf("fan-out, %d readers of one session", fanOutReaders), own/other, 0.8, against,
		"system calls: one write for each reader that is woken")}, nil
}

// round performs one round with a single reader and gives its frames.
func (b *bench) round(address string, begin func() error) (frames []byte, err error) {
	r, err := b.open(address, 0)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if err := begin(); err != nil {
		return nil, err
	}
	for range roundFacts {
		sequence, data, err := r.next()
		if err != nil {
			return nil, err
		}
		frames = fmt.Appendf(frames, "id: %d.abcdefgh\ndata: %s\n", sequence, data)
	}
	return frames, nil
}

// crowd is readers of one stream.
type crowd struct {
	from    *process
	begin   func() error
	readers []*reader
	ended   sync.WaitGroup
	used    time.Duration

	passed  sync.WaitGroup // readers that are in the round
	arrived atomic.Int64   // frames
	pieces  atomic.Int64   // in so many reads
}

// newCrowd opens the readers, who take turns with the addresses.
func (b *bench) newCrowd(from *process, begin func() error, addresses ...string) (*crowd, error) {
	c := &crowd{from: from, begin: begin}
	for i := range fanOutReaders {
		r, err := b.open(addresses[i%len(addresses)], 0)
		if err != nil {
			c.leave()
			return nil, err
		}
		c.readers = append(c.readers, r)
		c.ended.Go(func() { c.follow(r) })
	}
	return c, nil
}

func (c *crowd) leave() {
	for _, r := range c.readers {
		r.close()
	}
	c.ended.Wait()
}

func (c *crowd) follow(r *reader) {
	seen := 0
	_ = r.count(func(frames int) { // until it is closed
		before := seen / roundFacts
		seen += frames
		c.arrived.Add(int64(frames))
		c.pieces.Add(1)
		if seen/roundFacts > before {
			c.passed.Done()
		}
	})
}

// turn plays rounds for a turn, and gives frames a second.
func (c *crowd) turn() (float64, error) {
	before := c.from.processor()
	defer func() { c.used += c.from.processor() - before }()
	return perSecond(&c.arrived, func(until time.Time) error {
		for time.Now().Before(until) {
			c.passed.Add(len(c.readers))
			if err := c.begin(); err != nil {
				return err
			}
			if err := waitFor(&c.passed); err != nil {
				return err
			}
		}
		return nil
	})
}

// say tells a rate, and what it took.
func (c *crowd) say(rate float64) string {
	frames := max(c.arrived.Load(), 1)
	return fmt.Sprintf("%.0f frames/s (processor %s a frame, %.1f frames a read)", rate,
		(c.used / time.Duration(frames)).Round(10*time.Nanosecond), float64(frames)/float64(max(c.pieces.Load(), 1)))
}

// waitFor waits, but not for ever.
func waitFor(group *sync.WaitGroup) error {
	done, cancel := context.WithTimeout(context.Background(), time.Minute)
	go func() { defer cancel(); group.Wait() }()
	<-done.Done()
	if errors.Is(done.Err(), context.DeadlineExceeded) {
		return errors.New("a minute was not enough for all readers")
	}
	return nil
}
