package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const historyClients = 4

// measureHistory reads pages of the large session, by turns from the host and, the same
// bytes, from memory.
func measureHistory(b *bench) ([]line, error) {
	if err := b.serve(); err != nil {
		return nil, err
	}
	head, err := b.head(largeSession)
	if err != nil {
		return nil, err
	}
	var lines []line
	for _, p := range []struct {
		size  int
		after uint64
		goal  float64
	}{{100, head - 150, 0.5}, {1_000, head - 3_000, 0.2}} {
		l, err := b.page(p.size, p.after, p.goal)
		if err != nil {
			return lines, err
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func (b *bench) page(size int, after uint64, goal float64) (line, error) {
	path := fmt.Sprintf("/sessions/%s/events?afterSessionSequence=%d&limit=%d", largeSession, after, size)
	var page bytes.Buffer
	if err := b.get(path, &page); err != nil {
		return line{}, err
	}
	if n := bytes.Count(page.Bytes(), []byte(`"eventId":`)); n != size {
		return line{}, fmt.Errorf("%s: got %d events, want %d", path, n, size)
	}
	if err := b.expect(http.StatusOK, http.MethodPut, b.plain.url+"/page", page.Bytes(), nil); err != nil {
		return line{}, err
	}
	ours := &fetching{bench: b, url: b.host.url + api + path, size: page.Len(), from: b.host}
	fromMemory := &fetching{bench: b, url: b.plain.url + "/page", size: page.Len(), from: b.plain}
	own, plain, err := byTurns(b.time/2, ours.turn, fromMemory.turn)
	if err != nil {
		return line{}, err
	}
	name := fmt.Sprintf("history, pages of %d near the tail", size)
	against := fmt.Sprintf("net/http serving the same bytes from memory: %.0f pages/s, ours %.0f (%.0f MB/s); processor %s a page, ours %s",
		plain, own, own*float64(page.Len())/1e6, fromMemory.cost(), ours.cost())
	return atLeast(name, own/plain, goal, against, "checksums and decoding of stored batches"), nil
}

// fetching asks for one page again and again.
type fetching struct {
	*bench
	url   string
	size  int
	from  *process
	pages atomic.Int64
	used  time.Duration // of the server's processor
}

// cost is the server's processor time for a page.
func (f *fetching) cost() time.Duration {
	return (f.used / time.Duration(max(f.pages.Load(), 1))).Round(time.Microsecond)
}

// turn asks for a turn, and gives pages a second.
func (f *fetching) turn() (float64, error) {
	before := f.from.processor()
	defer func() { f.used += f.from.processor() - before }()
	return perSecond(&f.pages, func(until time.Time) error {
		errs := make([]error, historyClients)
		var clients sync.WaitGroup
		for i := range historyClients {
			clients.Go(func() {
				var buf bytes.Buffer
				for time.Now().Before(until) && errs[i] == nil {
					errs[i] = f.expect(http.StatusOK, http.MethodGet, f.url, nil, &buf)
					if errs[i] == nil && buf.Len() != f.size {
						errs[i] = fmt.Errorf("%s: got %d bytes, want %d", f.url, buf.Len(), f.size)
					}
					f.pages.Add(1)
				}
			})
		}
		clients.Wait()
		return errors.Join(errs...)
	})
}
