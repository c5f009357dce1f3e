package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mahati-host/mahati/narad"
	narads "github.com/mahati-host/mahati/narad/client"
)

// measureExecutor is client execution: how long a call takes there and back, and what ten
// thousand executors cost that wait for one.
func measureExecutor(b *bench) ([]line, error) {
	trip, err := b.measureTrip()
	if err != nil {
		return nil, err
	}
	attached, err := b.measureAttached()
	return append(trip, attached...), err
}

// measureTrip lets a script call a tool that does nothing, one call after another. From one
// call's beginning to the next one's is a whole round trip.
func (b *bench) measureTrip() ([]line, error) {
	if err := b.serve(); err != nil {
		return nil, err
	}
	c, err := narads.New(b.host.url, narads.Options{Token: narads.Token(b.token)})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ledger, err := narads.OpenLedger(filepath.Join(b.home, "bench-ledger.jsonl"))
	if err != nil {
		return nil, err
	}
	defer ledger.Close()
	var trips []time.Duration // the tool's alone: calls come one after another
	var last time.Time
	tool := func(context.Context, narads.ToolCall) (narad.Raw, error) {
		now := time.Now()
		if !last.IsZero() {
			trips = append(trips, now.Sub(last))
		}
		last = now
		return narad.Raw("1"), nil
	}
	ctx, cancel := context.WithTimeout(b.ctx, b.time+5*time.Second)
	defer cancel()
	if err := b.createFor("trips", "caller", "bench"); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- c.Execute(ctx, "bench", ledger, narads.ExecutorOptions{Tools: map[string]narads.ToolFunc{"echo": tool}})
	}()
	if err := b.say("trips"); err != nil {
		return nil, err
	}
	time.Sleep(b.time)
	if err := b.quit("trips"); err != nil {
		return nil, err
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		return nil, err
	}
	var bare []time.Duration
	body := bytes.Repeat([]byte("x"), 300)
	for begun := time.Now(); time.Since(begun) < time.Second; {
		at := time.Now()
		if err := b.expect(http.StatusOK, http.MethodPut, b.plain.url+"/page", body, nil); err != nil {
			return nil, err
		}
		bare = append(bare, time.Since(at))
	}
	ours, theirs := percentile(trips, 0.5), percentile(bare, 0.5)
	return []line{{
		name: "execute, there and back", figure: fmt.Sprintf("%.1f", float64(ours)/float64(max(theirs, 1))), goal: "-", verdict: informative,
		against: fmt.Sprintf("a bare HTTP request with 300 bytes: p50 %v, ours %v (p99 %v, %d calls)",
			theirs.Round(time.Microsecond), ours.Round(time.Microsecond), percentile(trips, 0.99).Round(time.Microsecond), len(trips)),
		limit: "two commits of the host and two syncs of the ledger, one after another",
	}}, nil
}

// createFor makes a session with an executor.
func (b *bench) createFor(id, agent, executor string) error {
	data, err := json.Marshal(map[string]string{"sessionId": id, "agent": agent, "clientExecutorId": executor})
	if err != nil {
		return err
	}
	return b.expect(http.StatusCreated, http.MethodPost, b.host.url+api+"/sessions", data, nil)
}

const attachedExecutors = 10_000

// attachedExecutor is one with its stream.
type attachedExecutor struct {
	id, lease string
	stream    *reader
}

// measureAttached attaches ten thousand executors and renews their leases for two rounds of
// heartbeats. The host is fresh.
func (b *bench) measureAttached() ([]line, error) {
	name, goal := fmt.Sprintf("%d attached executors, resident memory", attachedExecutors), "< 1 GiB"
	if err := b.restart(); err != nil {
		return nil, err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < attachedExecutors+500 {
		return []line{notMeasured(name, goal, fmt.Sprintf("%d descriptors are allowed, %d are needed", limit.Cur, attachedExecutors+500))}, err
	}
	before, _, err := b.host.resident()
	if err != nil {
		return []line{notMeasured(name, goal, err)}, nil
	}
	begun := time.Now()
	all := make([]attachedExecutor, attachedExecutors)
	defer func() {
		for _, x := range all {
			if x.stream != nil {
				x.stream.close()
			}
		}
	}()
	if err := eachOf(len(all), 64, func(n int) (err error) { all[n], err = b.attachExecutor(n); return err }); err != nil {
		return nil, err
	}
	attaching := time.Since(begun)
	const every = 15 * time.Second // R31
	spent := b.host.processor()
	begun = time.Now()
	beats := make([]time.Duration, 2*len(all))
	for round := range 2 {
		// Spread over the interval, as they are when executors come one after another.
		slices := 50
		for s := range slices {
			time.Sleep(time.Until(begun.Add(time.Duration(round)*every + time.Duration(s)*every/time.Duration(slices))))
			part := len(all) / slices
			err := eachOf(part, 8, func(n int) error {
				at := time.Now()
				err := b.beat(all[s*part+n])
				beats[round*len(all)+s*part+n] = time.Since(at)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	busy := (b.host.processor() - spent).Seconds() / time.Since(begun).Seconds()
	now, most, err := b.host.resident()
	if err != nil {
		return nil, err
	}
	return []line{
		{
			name: name, figure: fmt.Sprintf("%d MiB", now>>20), goal: goal, verdict: judge(now < 1<<30),
			against: fmt.Sprintf("%d MiB without; %d kB an executor; %d MiB at the most; attached in %v", before>>20,
				(now-before)/attachedExecutors>>10, most>>20, attaching.Round(time.Second)),
			limit: "as an idle reader, and a lease with its timer",
		},
		{
			name: "their heartbeats", figure: fmt.Sprintf("%.2f processors", busy), goal: "-", verdict: informative,
			against: fmt.Sprintf("%.0f a second, each answered and told on its stream: p50 %v, p99 %v", attachedExecutors/every.Seconds(),
				percentile(beats, 0.5).Round(time.Microsecond), percentile(beats, 0.99).Round(time.Microsecond)),
			limit: "a request each; nothing is written to disk",
		},
	}, nil
}

// eachOf does something for each number below n, so many at once.
func eachOf(n, workers int, do func(n int) error) error {
	var next atomic.Int64
	errs := make([]error, workers)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && errs[w] == nil; i = int(next.Add(1)) - 1 {
				errs[w] = do(i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (b *bench) attachExecutor(n int) (attachedExecutor, error) {
	x := attachedExecutor{id: fmt.Sprintf("executor-%d", n)}
	base := b.host.url + api + "/executors/" + x.id
	var buf bytes.Buffer
	if err := b.expect(http.StatusOK, http.MethodPost, base+"/attach", nil, &buf); err != nil {
		return x, err
	}
	var a struct{ LeaseID string }
	if err := json.Unmarshal(buf.Bytes(), &a); err != nil {
		return x, err
	}
	x.lease = a.LeaseID
	r, err := b.open(base+"/stream", 4<<10, "Narad-Lease: "+x.lease)
	if err != nil {
		return x, err
	}
	x.stream = r.idle()
	return x, nil
}

func (b *bench) beat(x attachedExecutor) error {
	body, err := narad.Encode(&narad.ClientHeartbeat{Lease: narad.Lease{ClientExecutorID: x.id, LeaseID: x.lease}})
	if err != nil {
		return err
	}
	return b.expect(http.StatusOK, http.MethodPost, b.host.url+api+"/executors/"+x.id+"/controls", body, nil)
}
