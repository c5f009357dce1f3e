package main

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const idleReaders = 10_000

// measureIdle opens ten thousand streams, of as many sessions where there are so many,
// lets two rounds of heartbeats pass and looks at what the host takes. The host is fresh.
func measureIdle(b *bench) ([]line, error) {
	name, goal := fmt.Sprintf("%d idle readers, resident memory", idleReaders), "< 1 GiB"
	if err := b.restart(); err != nil {
		return nil, err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < idleReaders+500 {
		return []line{notMeasured(name, goal, fmt.Sprintf("%d descriptors are allowed, %d are needed", limit.Cur, idleReaders+500))}, err
	}
	before, _, err := b.host.resident()
	if err != nil {
		return []line{notMeasured(name, goal, err)}, nil
	}
	readers, err := b.openIdle()
	defer func() {
		for _, r := range readers {
			r.close()
		}
	}()
	if err != nil {
		return nil, err
	}
	time.Sleep(heartbeats)
	now, most, err := b.host.resident()
	if err != nil {
		return nil, err
	}
	return []line{{
		name: name, figure: fmt.Sprintf("%d MiB", now>>20), goal: goal, verdict: judge(now < 1<<30),
		against: fmt.Sprintf("%d MiB without readers; %d kB a reader; %d MiB at the most", before>>20, (now-before)/idleReaders>>10, most>>20),
		limit:   "two goroutines, buffers and request of a connection in net/http",
	}}, nil
}

// heartbeats is two intervals, and a little.
const heartbeats = 32 * time.Second

func (b *bench) openIdle() ([]*reader, error) {
	sessions := b.seed.sessions - b.seed.medium - 1
	readers, errs := make([]*reader, idleReaders), make([]error, 2*runtime.NumCPU())
	var openers sync.WaitGroup
	for i := range errs {
		openers.Go(func() {
			for n := i; n < idleReaders && errs[i] == nil; n += len(errs) {
				r, err := b.open(b.streamOf(smallSession(n%sessions), smallFacts), 4<<10)
				if err != nil {
					errs[i] = fmt.Errorf("reader %s: %w", strconv.Itoa(n), err)
					return
				}
				readers[n] = r.idle()
			}
		})
	}
	openers.Wait()
	open := readers[:0]
	for _, r := range readers {
		if r != nil {
			open = append(open, r)
		}
	}
	return open, errors.Join(errs...)
}
