package main

import (
	"fmt"
	"net/http"
	"time"
)

// measureReach attaches to, and commands, the large session and one of a few facts, one
// after the other. First is the first command to them after a start, for which the host
// reads the session's state; another session has been commanded before.
func measureReach(b *bench) ([]line, error) {
	if err := b.restart(); err != nil {
		return nil, err
	}
	const rounds, starts = 300, 5
	var attach, command, first pair
	for i := range starts {
		if i > 0 {
			if err := b.restart(); err != nil {
				return nil, err
			}
		}
		if err := b.putAway(smallSession(8 + i)); err != nil {
			return nil, err
		}
		if err := first.alternate(1, b.putAway); err != nil {
			return nil, err
		}
	}
	if err := attach.alternate(rounds, func(session string) error { return b.get("/sessions/"+session+"/attach", nil) }); err != nil {
		return nil, err
	}
	if err := command.alternate(rounds, b.putAway); err != nil {
		return nil, err
	}
	against := fmt.Sprintf("a session of %d facts, this one of %d", smallFacts, b.seed.large)
	return []line{
		attach.line("attach at the tail of a large session", against, "requests to the host"),
		command.line("command to a large session", against, "the sync of the journal"),
		first.line("the first command after a start, to a large session", against, "the newest snapshot and what is behind it"),
	}, nil
}

// putAway is two commands, each of which is one fact.
func (b *bench) putAway(session string) error {
	for _, command := range []string{"archive", "restore"} {
		err := b.expect(http.StatusOK, http.MethodPost, b.host.url+api+"/sessions/"+session+"/"+command, nil, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// pair is how long the same takes in a large session and in a small one.
type pair struct{ large, small []time.Duration }

func (p *pair) alternate(rounds int, do func(session string) error) error {
	for i := range rounds {
		small := smallSession(i % 7)
		for _, of := range []struct {
			session string
			times   *[]time.Duration
		}{{largeSession, &p.large}, {small, &p.small}} {
			begun := time.Now()
			if err := do(of.session); err != nil {
				return err
			}
			*of.times = append(*of.times, time.Since(begun))
		}
	}
	return nil
}

func (p *pair) line(name, against, limit string) line {
	large, small := percentile(p.large, 0.5), percentile(p.small, 0.5)
	against += fmt.Sprintf(": p50 %s, this one %s", small.Round(time.Microsecond), large.Round(time.Microsecond))
	return atMost(name, large.Seconds()/small.Seconds(), 2, against, limit)
}
