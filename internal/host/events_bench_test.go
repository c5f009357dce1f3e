package host_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/pebble"
)

// longLog is a host over a store with so many events, and one that appends to it.
func longLog(b *testing.B, events int) (*host.Host, *host.Framer, func()) {
	b.Helper()
	j, err := pebble.Open(b.TempDir(), pebble.Options{})
	if err != nil {
		b.Fatal(err)
	}
	f := feed.New(j, feed.Options{})
	h := host.New(j, f, cast{}, host.Options{})
	b.Cleanup(func() {
		_ = h.Close()
		f.Close()
		_ = j.Close()
	})
	head := uint64(0)
	add := func(n int) {
		batch := journal.Batch{Session: "log", ExpectHead: head, Time: time.Now()}
		for range n {
			head++
			batch.Facts = append(batch.Facts, journal.Fact{EventID: strconv.FormatUint(head, 10) + ".abcdefgh", Bytes: []byte(`{}`), EventCount: 1})
		}
		if _, err := j.Append(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	add(1)
	for left := events - 1; left > 0; left -= 1000 {
		add(min(left, 1000))
	}
	framer := h.NewFramer(func(r host.Record) []byte { return fmt.Appendf(nil, "id: %d\ndata: {}\n\n", r.FirstEvent) })
	return h, framer, func() { add(1) }
}

func eachSize(b *testing.B, bench func(*testing.B, int)) {
	for _, events := range []int{0, 1_000_000} {
		b.Run(strconv.Itoa(events), func(b *testing.B) { bench(b, events) })
	}
}

// BenchmarkResumeAtHead is a reader that comes with the last id.
func BenchmarkResumeAtHead(b *testing.B) {
	eachSize(b, func(b *testing.B, events int) {
		h, framer, _ := longLog(b, events)
		for b.Loop() {
			frames := h.FollowEvents(framer, h.Events().Newest)
			if data, err := frames.Poll(b.Context()); err != nil || len(data) > 0 {
				b.Fatal(len(data), err)
			}
			frames.Close()
		}
	})
}

// BenchmarkAppendBesideNewcomers is an append, for which 20 readers without a cursor have
// just come.
func BenchmarkAppendBesideNewcomers(b *testing.B) {
	eachSize(b, func(b *testing.B, events int) {
		h, framer, add := longLog(b, events)
		for b.Loop() {
			var readers []*host.EventFrames
			for range 20 {
				frames := h.FollowEvents(framer, h.Events().Newest)
				if _, err := frames.Poll(b.Context()); err != nil {
					b.Fatal(err)
				}
				readers = append(readers, frames)
			}
			add()
			for _, frames := range readers {
				for { // a wake says that it may be worth to look
					<-frames.Wake()
					data, err := frames.Poll(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					if len(data) > 0 {
						break
					}
				}
				frames.Close()
			}
		}
	})
}
