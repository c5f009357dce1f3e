package feed_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/journal"
)

const (
	benchReaders = 1000
	benchRound   = 64 // facts until everybody has them
	benchBatch   = 3
	benchBytes   = 420
)

// BenchmarkFanOut gives the facts of one session to 1,000 readers at its head,
// and prints how many frames reached them in a second as a ratio to the plainest
// way there is: a cursor loop over a slice of ready frames that joins what waits
// into one write. Both write into memory, as a socket would copy.
func BenchmarkFanOut(b *testing.B) {
	for b.Loop() {
		plain := measurePlain(200)
		ours := measureFeed(b, 200)
		b.ReportMetric(ours, "frames/s")
		b.ReportMetric(plain, "plain-frames/s")
		b.ReportMetric(ours/plain, "ratio")
	}
}

// sink is what a reader writes to.
type sink struct{ buffer []byte }

func (s *sink) write(frames []byte) { s.buffer = append(s.buffer[:0], frames...) }

func benchFrame(sequence int) []byte {
	line := fmt.Appendf(nil, "id: %d.abcdefgh\ndata: ", sequence)
	return append(append(line, bytes.Repeat([]byte{'x'}, benchBytes)...), "\n\n"...)
}

// rate runs rounds of facts: append makes one batch, and all readers have passed
// the round before the next begins.
func rate(rounds int, passed *sync.WaitGroup, appendBatch func(facts int)) float64 {
	start := time.Now()
	for range rounds {
		passed.Add(benchReaders)
		for left := benchRound; left > 0; {
			facts := min(benchBatch, left)
			appendBatch(facts)
			left -= facts
		}
		passed.Wait()
	}
	return float64(rounds*benchRound*benchReaders) / time.Since(start).Seconds()
}

// frameSlice is the plain way.
type frameSlice struct {
	mu     sync.Mutex
	grown  *sync.Cond
	frames [][]byte
	closed bool
}

// wait gives the frames from a place on, and nothing at the end.
func (s *frameSlice) wait(from int) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.frames) == from && !s.closed {
		s.grown.Wait()
	}
	return s.frames[from:]
}

func (s *frameSlice) add(frames ...[]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames = append(s.frames, frames...)
	s.grown.Broadcast()
}

func (s *frameSlice) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.grown.Broadcast()
}

func measurePlain(rounds int) float64 {
	frames := &frameSlice{}
	frames.grown = sync.NewCond(&frames.mu)
	var passed, ended sync.WaitGroup
	for range benchReaders {
		ended.Go(func() {
			var out sink
			var joined []byte
			for cursor := 0; ; {
				waiting := frames.wait(cursor)
				if len(waiting) == 0 {
					return
				}
				joined = joined[:0]
				for _, frame := range waiting {
					joined = append(joined, frame...)
				}
				out.write(joined)
				cursor += pass(cursor, len(waiting), &passed)
			}
		})
	}
	sequence := 0
	result := rate(rounds, &passed, func(facts int) {
		batch := make([][]byte, facts)
		for i := range batch {
			sequence++
			batch[i] = benchFrame(sequence)
		}
		frames.add(batch...)
	})
	frames.end()
	ended.Wait()
	return result
}

// pass tells when a reader has gone over the end of a round.
func pass(cursor, frames int, passed *sync.WaitGroup) int {
	if cursor/benchRound != (cursor+frames)/benchRound {
		passed.Done()
	}
	return frames
}

func measureFeed(b *testing.B, rounds int) float64 {
	s := openStore(b, journal.Options{})
	f := feed.New(s, feed.Options{})
	framer := feed.NewFramer(f, func(r journal.Record) []byte { return benchFrame(int(r.Sequence)) })
	head := s.add(b, "a", 0, 1)
	var ready, passed, ended sync.WaitGroup
	ready.Add(benchReaders)
	for range benchReaders {
		ended.Go(func() {
			sub := framer.Subscribe(feed.Session("a", 1))
			defer sub.Close()
			ready.Done()
			var out sink
			for cursor := 0; ; {
				frames, err := sub.Next(context.Background())
				if err != nil {
					return
				}
				out.write(frames)
				cursor += pass(cursor, int(sub.Position())-1-cursor, &passed)
			}
		})
	}
	ready.Wait()
	result := rate(rounds, &passed, func(facts int) { head = s.add(b, "a", head, facts) })
	f.Close()
	ended.Wait()
	return result
}
