package harnesshttp

import (
	"errors"
	"sync"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/server"
)

// errSuperseded is why a stream ends when its subscriber has opened another one.
var errSuperseded = errors.New("the subscriber has opened another stream")

// subscribers is who follows which run. A subscriber is a name that a principal chose for
// one run: names of others are no business of its.
type subscribers struct {
	mu   sync.Mutex
	open map[follower]map[string]*subscriber
}

// follower is a principal that follows a run.
type follower struct{ run, principal string }

// subscriber is one stream with its ledger.
type subscriber struct {
	*ledger
	stream *server.Stream
}

func newSubscribers() *subscribers {
	return &subscribers{open: make(map[follower]map[string]*subscriber)}
}

// enter puts a stream in its name's place. One that was there before ends: a client that
// comes back under its name is not kept out by a connection that nobody noticed was dead.
func (s *subscribers) enter(who follower, name string, sub *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.open[who]
	if names == nil {
		names = make(map[string]*subscriber)
		s.open[who] = names
	}
	if before := names[name]; before != nil {
		before.stream.End(errSuperseded)
	}
	names[name] = sub
}

// leave takes a stream out, unless another one has its place.
func (s *subscribers) leave(who follower, name string, sub *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[who][name] != sub {
		return
	}
	delete(s.open[who], name)
	if len(s.open[who]) == 0 {
		delete(s.open, who)
	}
}

var (
	errNoSubscriber  = errors.New("no stream of that subscriber is open")
	errAmbiguous     = errors.New("several streams are open")
	errUsedForCredit = errors.New("the input granted credit")
)

// grant adds the credit of an input to the stream of a name, or to the only one that there is
// (R38), once. left is what that stream has then.
func (s *subscribers) grant(who follower, in harness.Input) (name string, left uint64, repeated bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, l, err := s.findLocked(who, in.CorrelationID, in.InputID)
	if err != nil {
		return "", 0, false, err
	}
	repeated, err = l.grant(in.InputID, in.Credit)
	return name, l.credit(), repeated, err
}

// findLocked looks first for a stream that the input granted credit to (R21): since it was
// told, another one may have been opened.
func (s *subscribers) findLocked(who follower, name, inputID string) (found string, l *ledger, err error) {
	names := s.open[who]
	for known, sub := range names {
		if !sub.knows(inputID) {
			continue
		}
		if name != "" && name != known {
			return "", nil, errGrantConflict
		}
		return known, sub.ledger, nil
	}
	if name != "" {
		sub := names[name]
		if sub == nil {
			return "", nil, errNoSubscriber
		}
		return name, sub.ledger, nil
	}
	if len(names) > 1 {
		return "", nil, errAmbiguous
	}
	for only, sub := range names {
		return only, sub.ledger, nil
	}
	return "", nil, errNoSubscriber
}

// granted reports whether an input granted credit to an open stream of the follower.
func (s *subscribers) granted(who follower, inputID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.open[who] {
		if sub.knows(inputID) {
			return true
		}
	}
	return false
}
