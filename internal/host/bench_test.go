package host_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/journaltest"
	"github.com/mahati-host/mahati/internal/journal/pebble"
)

// engines runs a benchmark over both engines.
func engines(b *testing.B, run func(*testing.B, journal.Journal)) {
	b.Run("memory", func(b *testing.B) {
		j, err := journal.NewMemory(journal.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer j.Close()
		run(b, j)
	})
	b.Run("pebble", func(b *testing.B) {
		j, err := pebble.Open(b.TempDir(), pebble.Options{})
		if err != nil {
			b.Fatal(err)
		}
		defer j.Close()
		run(b, j)
	})
}

func benchHost(b *testing.B, j journal.Journal, kind agent.Kind, sessions int) *host.Host {
	b.Helper()
	f := newFeed(j)
	h := host.New(j, f, cast{kind}, host.Options{MaxRunning: sessions})
	b.Cleanup(func() {
		if err := h.Close(); err != nil {
			b.Error(err)
		}
		f.Close()
	})
	if err := h.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	for i := range sessions {
		do(b, h, host.Request{Action: access.CreateSession, Session: fmt.Sprint("s", i), Command: create()})
	}
	return h
}

func do(b *testing.B, h *host.Host, r host.Request) host.Answer {
	a, err := h.Do(context.Background(), access.Owner(), r)
	if err != nil || a.Status != decide.Accepted {
		b.Errorf("%T: %+v %v", r.Command, a, err)
	}
	return a
}

const doSessions = 256

// BenchmarkDo is one command of a client that appends one fact, in 256 sessions at once,
// by turns of a few seconds' work with as many writers to a raw log, each of which writes
// as many bytes.
func BenchmarkDo(b *testing.B) {
	engines(b, func(b *testing.B, j journal.Journal) {
		h, raw := benchHost(b, j, acts{run: waits}, doSessions), benchLog(b)
		const turn = 60 // commands of each session, an even number
		var own, plain time.Duration
		done := 0
		b.ResetTimer()
		for done < b.N {
			own += allAtOnce(b, func(i int) error { return putAwayAndBack(h, i, turn) })
			plain += allAtOnce(b, func(int) error { return writeRaw(raw, turn) })
			done += turn * doSessions
		}
		b.ReportMetric(plain.Seconds()/own.Seconds(), "of-raw-log")
		b.ReportMetric(float64(done)/own.Seconds(), "commands/s")
		b.ReportMetric(float64(done)/plain.Seconds(), "raw-groups/s")
	})
}

// BenchmarkDoAlone is the same in one session with nobody else about, in turn with a
// write and sync of as many bytes.
func BenchmarkDoAlone(b *testing.B) {
	engines(b, func(b *testing.B, j journal.Journal) {
		h, raw := benchHost(b, j, acts{run: waits}, 1), benchLog(b)
		var own, plain []time.Duration
		bytes := make([]byte, doBytes)
		for range b.N {
			begun := time.Now()
			if err := putAwayAndBack(h, 0, 2); err != nil {
				b.Fatal(err)
			}
			own = append(own, time.Since(begun)/2)
			begun = time.Now()
			if err := raw.AppendAlone(bytes); err != nil {
				b.Fatal(err)
			}
			plain = append(plain, time.Since(begun))
		}
		slices.Sort(own)
		slices.Sort(plain)
		half := b.N / 2
		b.ReportMetric(float64(own[half])/float64(plain[half]), "x-write+sync")
		b.ReportMetric(float64(own[half].Microseconds()), "p50-us")
		b.ReportMetric(float64(plain[half].Microseconds()), "raw-p50-us")
	})
}

// doBytes is about what the fact of a command takes.
const doBytes = 300

// putAwayAndBack archives and restores a session, so many commands in all.
func putAwayAndBack(h *host.Host, i, commands int) error {
	id := fmt.Sprint("s", i)
	for n := range commands {
		r := host.Request{Action: access.ArchiveSession, Session: id, Command: decide.Archive{}}
		if n%2 == 1 {
			r.Action, r.Command = access.RestoreSession, decide.Restore{}
		}
		a, err := h.Do(context.Background(), access.Owner(), r)
		if err != nil || a.Status != decide.Accepted {
			return fmt.Errorf("%T: %+v %w", r.Command, a, err)
		}
	}
	return nil
}

func allAtOnce(b *testing.B, write func(i int) error) time.Duration {
	begun := time.Now()
	var writers sync.WaitGroup
	for i := range doSessions {
		writers.Go(func() {
			if err := write(i); err != nil {
				b.Error(err)
			}
		})
	}
	writers.Wait()
	return time.Since(begun)
}

func benchLog(b *testing.B) *journaltest.RawLog {
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
	bytes := make([]byte, doBytes)
	for range n {
		if err := l.Append(bytes); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkText is what an agent says: one delta of 2 KiB, in 64 sessions at once.
func BenchmarkText(b *testing.B) {
	chunk := strings.Repeat("x", 2048)
	engines(b, func(b *testing.B, j journal.Journal) {
		const sessions = 64
		work := make(chan int)
		done := make(chan error)
		h := benchHost(b, j, acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
			for range work {
				if err := h.Text(ctx, chunk); err != nil {
					done <- err
					return agent.Ending{}
				}
			}
			done <- nil
			return agent.Ending{}
		}}, sessions)
		for i := range sessions {
			do(b, h, host.Request{Action: access.SendMessage, Session: fmt.Sprint("s", i), Command: decide.Message{Content: "x"}})
		}
		b.SetBytes(int64(len(chunk)))
		b.ReportAllocs()
		b.ResetTimer()
		for n := range b.N {
			work <- n
		}
		close(work)
		for range sessions {
			if err := <-done; err != nil {
				b.Error(err)
			}
		}
	})
}
