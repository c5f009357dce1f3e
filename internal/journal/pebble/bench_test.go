package pebble_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/journaltest"
	"github.com/mahati-host/mahati/internal/journal/pebble"
)

// The figures of DESIGN section 12: groups of three facts of about 420 bytes,
// against the least that a durable log can do in the same run on the same disk.
const (
	benchSessions = 256
	benchFacts    = 3
	benchBytes    = 420
)

// BenchmarkAppend has 256 sessions append at once, and 256 writers share a raw
// log that writes and syncs what waits, in turns of a few seconds' work so that
// a busy machine is as busy for both. One operation is one group.
func BenchmarkAppend(b *testing.B) {
	j, raw := openBench(b), openRawLog(b)
	sessions := make([]*benchSession, benchSessions)
	for i := range sessions {
		sessions[i] = newBenchSession(fmt.Sprintf("session-%d", i))
	}
	const turn = 100 // groups of each writer
	var rawTime, ownTime time.Duration
	groups := 0
	for groups < b.N {
		n := min(turn, (b.N-groups)/benchSessions+1)
		rawTime += allAtOnce(func(int) error { return writeRaw(raw, n) }, b)
		ownTime += allAtOnce(func(i int) error { return sessions[i].writer(j, n) }, b)
		groups += n * benchSessions
	}
	stats := j.Stats()
	b.ReportMetric(float64(rawTime)/float64(ownTime), "of-raw-log")
	b.ReportMetric(float64(groups)/ownTime.Seconds(), "groups/s")
	b.ReportMetric(float64(groups)/rawTime.Seconds(), "raw-groups/s")
	b.ReportMetric(float64(stats.Batches)/float64(stats.Groups), "batches/commit")
}

func allAtOnce(write func(i int) error, b *testing.B) time.Duration {
	start := time.Now()
	var writers sync.WaitGroup
	for i := range benchSessions {
		writers.Go(func() {
			if err := write(i); err != nil {
				b.Error(err)
			}
		})
	}
	writers.Wait()
	return time.Since(start)
}

func (s *benchSession) writer(j *pebble.Journal, n int) error {
	for range n {
		if _, err := j.Append(context.Background(), s.batch()); err != nil {
			return err
		}
	}
	return nil
}

func openBench(b *testing.B) *pebble.Journal {
	b.Helper()
	j, err := pebble.Open(b.TempDir(), pebble.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := j.Close(); err != nil {
			b.Error(err)
		}
	})
	return j
}

// benchSession makes facts that are ready to be appended: the bench is not to
// measure how they are made.
type benchSession struct {
	name  string
	head  uint64
	bytes []byte
}

func newBenchSession(name string) *benchSession {
	return &benchSession{name: name, bytes: make([]byte, benchBytes)}
}

func (s *benchSession) batch() journal.Batch {
	const run = "019a0000-0000-7000-8000-000000000000"
	facts := make([]journal.Fact, benchFacts)
	for i := range facts {
		number := s.head + uint64(i) + 1
		facts[i] = journal.Fact{
			EventID: strconv.FormatUint(number, 10) + ".abcdefgh", Bytes: s.bytes,
			RootRunID: run, RunSequence: number, LogRun: run, LogCount: 1, EventCount: 1,
		}
	}
	batch := journal.Batch{Session: s.name, ExpectHead: s.head, Facts: facts}
	s.head += benchFacts
	return batch
}

func openRawLog(b *testing.B) *journaltest.RawLog {
	b.Helper()
	l, err := journaltest.OpenRawLog(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := l.Close(); err != nil {
			b.Error(err)
		}
	})
	return l
}

func writeRaw(l *journaltest.RawLog, n int) error {
	bytes := make([]byte, benchFacts*benchBytes)
	for range n {
		if err := l.Append(bytes); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkAppendAlone has one session append with nobody else about, in turn
// with the write and sync of the same bytes.
func BenchmarkAppendAlone(b *testing.B) {
	j, log := openBench(b), openRawLog(b)
	s := newBenchSession("session")
	var own, raw []time.Duration
	bytes := make([]byte, benchFacts*benchBytes)
	for range b.N {
		batch := s.batch()
		start := time.Now()
		if _, err := j.Append(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
		own = append(own, time.Since(start))
		start = time.Now()
		if err := log.AppendAlone(bytes); err != nil {
			b.Fatal(err)
		}
		raw = append(raw, time.Since(start))
	}
	slices.Sort(own)
	slices.Sort(raw)
	half := b.N / 2
	b.ReportMetric(float64(own[half])/float64(raw[half]), "x-write+sync")
	b.ReportMetric(float64(own[half].Microseconds()), "p50-us")
	b.ReportMetric(float64(raw[half].Microseconds()), "raw-p50-us")
}

// BenchmarkRead reads pages of 100 facts near the end of a session.
func BenchmarkRead(b *testing.B) {
	j := openBench(b)
	s := newBenchSession("session")
	for range 3_000 {
		if _, err := j.Append(context.Background(), s.batch()); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for range b.N {
		chunk, err := j.Read(context.Background(), journal.BySession{Session: "session", After: s.head - 100}, journal.Page{})
		if err != nil || len(chunk.Records) != 100 {
			b.Fatalf("%d records, %v", len(chunk.Records), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/fact")
}
