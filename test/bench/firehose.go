package main

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// measureFirehose appends facts with an event each, which a thousand readers follow over the
// stream of all events, every second of them that of one session. By turns a plain server
// does the same with the same frames.
func measureFirehose(b *bench) (lines []line, err error) {
	stage, err := start(roleStage, b.home)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stage.stop()) }()
	if err := b.learnToken(); err != nil {
		return nil, err
	}
	post := func(address string) func() error {
		return func() error { return b.expect(http.StatusOK, http.MethodPost, address, nil, nil) }
	}
	all, one := stage.url+"/v1/events", stage.url+"/v1/events?sessionId="+eventsSession
	frames, err := b.round(all, post(stage.url+"/events"))
	if err != nil {
		return nil, fmt.Errorf("learn what a round is: %w", err)
	}
	if err := b.expect(http.StatusOK, http.MethodPut, b.plain.url+"/frames", frames, nil); err != nil {
		return nil, err
	}
	before, _, _ := stage.resident()
	ours, err := b.newCrowd(stage, post(stage.url+"/events"), all, one)
	if err != nil {
		return nil, err
	}
	defer ours.leave()
	plain, err := b.newCrowd(b.plain, post(b.plain.url+"/frames"), b.plain.url+"/stream")
	if err != nil {
		return nil, err
	}
	defer plain.leave()
	own, other, err := byTurns(b.time, ours.turn, plain.turn)
	if err != nil {
		return nil, err
	}
	after, _, _ := stage.resident()
	lines = append(lines, atLeast(fmt.Sprintf("the stream of all events, %d readers, half of them of one session", fanOutReaders), own/other, 0.8,
		fmt.Sprintf("net/http, a cursor loop over a slice of the same frames: %s, ours %s", plain.say(other), ours.say(own)),
		"system calls: one write for each reader that is woken"))
	for _, rate := range []int{200, 400, 800} {
		mine, err := ours.paced(rate, b.time/4)
		if err != nil {
			return lines, err
		}
		theirs, err := plain.paced(rate, b.time/4)
		if err != nil {
			return lines, err
		}
		lines = append(lines, line{
			name:    fmt.Sprintf("the last of them has the last event, at %d events/s", rate),
			figure:  fmt.Sprintf("p99 %s", percentile(mine, 0.99).Round(time.Millisecond)),
			against: fmt.Sprintf("the same of net/http: p99 %s", percentile(theirs, 0.99).Round(time.Millisecond)),
			goal:    "-", verdict: informative, limit: "the processor",
		})
	}
	lines = append(lines, line{
		name: "memory of each of these readers", figure: fmt.Sprintf("%.0f KiB", float64(after-before)/fanOutReaders/1024),
		against: "the host before they came", goal: "-", verdict: informative, limit: "a goroutine and the buffers of net/http",
	})
	return append(lines, b.resumed()...), nil
}

// paced plays rounds at a rate of events, and gives how long each took to reach the last
// reader. A round that is late begins at once.
func (c *crowd) paced(rate int, each time.Duration) (took []time.Duration, err error) {
	step := time.Second * roundFacts / time.Duration(rate)
	for due, end := time.Now(), time.Now().Add(each); due.Before(end); due = due.Add(step) {
		time.Sleep(time.Until(due))
		begun := time.Now()
		c.passed.Add(len(c.readers))
		if err := c.begin(); err != nil {
			return nil, err
		}
		if err := waitFor(&c.passed); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begun))
	}
	return took, nil
}

// resumed compares long logs with empty ones, by the benchmarks of the host.
func (b *bench) resumed() (lines []line) {
	for _, f := range []struct{ name, bench, limit string }{
		{"a reader comes back at the end of 1,000,000 events", "BenchmarkResumeAtHead", "a read of the index"},
		{"an append while 20 readers without a cursor come to 1,000,000 events", "BenchmarkAppendBesideNewcomers", "the disk"},
	} {
		var ns [2]float64
		for i, size := range []string{"0", "1000000"} {
			m, err := kernelFigure{pkg: "./internal/host", bench: "^" + f.bench + "$/^" + size + "$", metric: "ns/op"}.metrics(b, "200x")
			if err != nil {
				return append(lines, notMeasured(f.name, "<= 2.00", err))
			}
			ns[i] = m["ns/op"]
		}
		lines = append(lines, atMost(f.name, ns[1]/ns[0], 2,
			fmt.Sprintf("an empty log: %s, the long one %s", time.Duration(ns[0]), time.Duration(ns[1])), f.limit))
	}
	return lines
}
