package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

const (
	starts = 3
	killed = 8 // sessions in which agents write when the host is killed
)

// measureStart starts the host, from the start of its process to the line that says that
// it serves, and asks for the first page of the list: after it ended in order, and after
// kill -9 while agents write.
func measureStart(b *bench) ([]line, error) {
	if err := b.restart(); err != nil {
		return nil, err
	}
	var clean, dead []time.Duration
	var list []time.Duration
	for range starts {
		if err := b.restart(); err != nil {
			return nil, err
		}
		clean = append(clean, b.host.started)
		took, err := b.list()
		if err != nil {
			return nil, err
		}
		list = append(list, took)
	}
	memory, _, _ := b.host.resident()
	for i := range starts {
		if err := b.write(i); err != nil {
			return nil, err
		}
		b.host.kill()
		b.host = nil
		if err := b.serve(); err != nil {
			return nil, err
		}
		dead = append(dead, b.host.started)
	}
	of := fmt.Sprintf("%d sessions, one of %d facts, %d of 10 MB", b.seed.sessions, b.seed.large, b.seed.medium)
	return []line{
		startLine("start after an orderly end", clean, of, "the start of the process and of the engine"),
		startLine(fmt.Sprintf("start after kill -9, %d runs open", killed), dead, of, "replay of the engine's log, and the repair of each open session"),
		{
			name: "case 114: the first page of the list after a start", figure: slices.Max(list).Round(100 * time.Microsecond).String(),
			goal: "< 50ms", verdict: judge(slices.Max(list) < 50*time.Millisecond),
			against: fmt.Sprintf("%s; 100 a page; the host then has %d MiB", of, memory>>20), limit: "a look at the head of each session of the page",
		},
	}, nil
}

func startLine(name string, all []time.Duration, of, limit string) line {
	worst := slices.Max(all)
	return line{
		name: name, figure: worst.Round(time.Millisecond).String(), goal: "< 1s", verdict: judge(worst < time.Second),
		against: fmt.Sprintf("%s; the slowest of %d, the quickest %s", of, len(all), slices.Min(all).Round(time.Millisecond)), limit: limit,
	}
}

func (b *bench) list() (time.Duration, error) {
	var buf bytes.Buffer
	begun := time.Now()
	if err := b.get("/sessions?limit=100", &buf); err != nil {
		return 0, err
	}
	took := time.Since(begun)
	var page struct{ Items []struct{ SessionID string } }
	if err := json.Unmarshal(buf.Bytes(), &page); err != nil {
		return 0, err
	}
	if want := min(100, b.seed.sessions); len(page.Items) != want {
		return 0, fmt.Errorf("the first page: got %d sessions, want %d", len(page.Items), want)
	}
	return took, nil
}

// write lets agents write for a while and leaves them at it.
func (b *bench) write(round int) error {
	for i := range killed {
		session := fmt.Sprintf("killed-%d-%d", round, i)
		if err := b.create(session, "torrent"); err != nil {
			return err
		}
		if err := b.say(session); err != nil {
			return err
		}
	}
	time.Sleep(b.time / 10)
	return nil
}
