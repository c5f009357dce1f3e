package host_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
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

// BenchmarkDo is one command of a client that appends one fact, in 256 sessions at once.
func BenchmarkDo(b *testing.B) {
	engines(b, func(b *testing.B, j journal.Journal) {
		const sessions = 256
		h := benchHost(b, j, acts{run: waits}, sessions)
		var next atomic.Int64
		b.SetParallelism(sessions / 2)
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			id := fmt.Sprint("s", next.Add(1)%sessions)
			for n := 0; pb.Next(); n++ {
				r := host.Request{Action: access.ArchiveSession, Session: id, Command: decide.Archive{}}
				if n%2 == 1 {
					r.Action, r.Command = access.RestoreSession, decide.Restore{}
				}
				if _, err := h.Do(context.Background(), access.Owner(), r); err != nil {
					b.Error(err)
				}
			}
		})
	})
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
