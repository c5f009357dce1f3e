package agenttest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Options are what may be chosen of a [Session]. The zero value leaves every
// interrupt to [Session.Resolve] and is never cut.
type Options struct {
	// Cwd is the session's working directory.
	Cwd string
	// Chosen is what somebody has chosen for the session, Before what was said before it.
	Chosen agent.Chosen
	Before []agent.Said
	// From is the session that says every message, nil for a person.
	From *facts.Speaker
	// Attachments come with every message.
	Attachments []agent.Attachment
	// Answer decides an interrupt when somebody waits for it; false leaves it open.
	Answer func(session.Interrupt) (Decision, bool)
	// Client runs the calls of the session's executor; nil: there is none.
	Client func(ctx context.Context, toolCallID, name string) (agent.ToolResult, error)
	// Cut says where the host dies.
	Cut Cut
}

// Cut is a place between two batches where the host dies, counted from 1. At most one
// of its fields is set.
type Cut struct {
	// After is the batch whose record is the last thing that happens: its caller
	// never learns of it.
	After int
	// Before is the batch that is not recorded any more: whatever its caller did
	// before it wanted to tell has happened.
	Before int
}

// Session is one session in memory. It must be made by [New].
type Session struct {
	t   testing.TB
	opt Options

	mu        sync.Mutex
	state     *session.State
	log       [][]byte         // the facts, encoded
	batches   []int            // how many facts there are after each batch
	open      []*book          // the open runs, in the order of their starts
	calls     map[string]*call // the open tool calls
	answers   map[string]narad.Raw
	artifacts map[string][]byte
	traces    []agent.Trace
	counts    map[string]int // ids given, by their kind
	changed   chan struct{}  // closed at the next batch, and when the host dies
	life      int            // counts restarts: handles of an earlier life are dead
	dead      bool
	cancel    context.CancelFunc // of the run under way
	ref       string
	owned     []agent.Process
	refused   []string
}

// New returns an empty session.
func New(t testing.TB, opt Options) *Session {
	s := &Session{t: t, opt: opt, counts: map[string]int{}, changed: make(chan struct{})}
	s.forget()
	return s
}

// forget drops what is known beside the recorded bytes.
func (s *Session) forget() {
	s.state = session.New(session.Options{SessionID: "session-1", Remember: session.RememberAll})
	s.open, s.calls, s.answers = nil, map[string]*call{}, map[string]narad.Raw{}
}

// Open makes the session's agent.
func (s *Session) Open(kind agent.Kind) agent.Agent {
	s.t.Helper()
	s.mu.Lock()
	about := agent.Session{ID: s.state.SessionID(), Cwd: s.opt.Cwd, Ref: s.ref, Own: s.own, Disown: s.disown}
	s.mu.Unlock()
	a, err := kind.Open(context.Background(), about)
	if err != nil {
		s.t.Fatalf("open the agent: %v", err)
	}
	return a
}

func (s *Session) own(_ context.Context, p agent.Process) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return agent.ErrEnded
	}
	s.owned = append(s.owned, p)
	return nil
}

func (s *Session) disown(_ context.Context, p agent.Process) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owned = slices.DeleteFunc(s.owned, func(known agent.Process) bool { return known == p })
	return nil
}

// Owned returns the processes that are recorded as the session's.
func (s *Session) Owned() []agent.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.owned)
}

// Facts returns everything recorded, read back from its bytes.
func (s *Session) Facts() []narad.Authority {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.factsLocked()
}

func (s *Session) factsLocked() []narad.Authority {
	list := make([]narad.Authority, len(s.log))
	for i, data := range s.log {
		list[i] = s.decode(data)
	}
	return list
}

func (s *Session) decode(data []byte) narad.Authority {
	rec, err := narad.Decoder{Strict: true}.Decode(data)
	if err != nil {
		s.t.Fatalf("a recorded fact cannot be read: %v\n%s", err, data)
	}
	return rec.(narad.Authority)
}

// Batches returns how many batches were recorded.
func (s *Session) Batches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.batches)
}

// Snapshot returns the session's state.
func (s *Session) Snapshot() session.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Snapshot()
}

// Refused returns what the agent wanted to record and might not.
func (s *Session) Refused() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

// Waiting returns the open interrupts, the oldest first.
func (s *Session) Waiting() []session.Interrupt {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []session.Interrupt
	for _, i := range s.state.Snapshot().Interrupts {
		if i.Open {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b session.Interrupt) int {
		return int(a.RequestedSequence - b.RequestedSequence)
	})
	return list
}

// id returns a new id. It tells what it is for, and counts.
func (s *Session) id(kind string) string {
	s.counts[kind]++
	return fmt.Sprintf("%s-%d", kind, s.counts[kind])
}

// record appends a batch, or nothing of it.
func (s *Session) record(batch ...narad.Authority) error {
	if len(batch) == 0 {
		return nil
	}
	if s.dead {
		return agent.ErrEnded
	}
	if s.opt.Cut.Before == len(s.batches)+1 {
		s.die()
		return agent.ErrEnded
	}
	for i, rec := range batch {
		if err := s.admit(rec); err != nil {
			if i > 0 {
				s.t.Errorf("a batch was refused in its middle, at %s: %v", rec.Type(), err)
			}
			s.refused = append(s.refused, fmt.Sprintf("%s: %v", rec.Type(), err))
			return err
		}
	}
	s.batches = append(s.batches, len(s.log))
	s.wake()
	if s.opt.Cut.After == len(s.batches) {
		s.die()
		return agent.ErrEnded
	}
	return nil
}

// admit numbers, encodes and applies one fact, and keeps its bytes.
func (s *Session) admit(rec narad.Authority) error {
	e := rec.Envelope()
	e.EventID = fmt.Sprintf("%d.%08d", s.state.Last()+1, len(s.log)+1)
	e.Timestamp = narad.Timestamp(time.Now())
	s.state.Number(rec)
	data, err := narad.Encode(rec)
	if err != nil {
		return refusal(err)
	}
	if r := s.state.Check(rec); r.Kind != session.Applied {
		return fmt.Errorf("%w: %s (%s)", agent.ErrInvalid, r.Detail, r.Code)
	}
	s.take(s.decode(data), data)
	return nil
}

// take applies a fact from its bytes.
func (s *Session) take(rec narad.Authority, data []byte) {
	if r := s.state.Admit(rec); r.Kind != session.Applied {
		s.t.Fatalf("a recorded fact is not admitted: %v\n%s", r, data)
	}
	s.log = append(s.log, data)
	s.keep(rec)
}

// wake lets everybody look again who waits for something.
func (s *Session) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// die is the end of the host: nothing is recorded any more.
func (s *Session) die() {
	s.dead = true
	for _, b := range s.open {
		b.rest()
	}
	if s.cancel != nil {
		s.cancel()
	}
	s.wake()
}

// Cut ends the host now. The run under way must be waited for.
func (s *Session) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.die()
}

// Dead reports whether the host has died and was not restarted.
func (s *Session) Dead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

// Remembered returns what the agent last gave to Handle.Remember.
func (s *Session) Remembered() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ref
}

// remembered keeps the reference of a fact that tells one.
func (s *Session) remembered(rec narad.Authority) {
	if r, ok := facts.Read[facts.Remembered](rec, facts.AgentRemembered); ok {
		s.ref = r.Ref
	}
}

// Reach waits until so many batches are recorded; false if done is closed before.
func (s *Session) Reach(batches int, done <-chan struct{}) bool {
	for {
		s.mu.Lock()
		n, wake := len(s.batches), s.changed
		s.mu.Unlock()
		if n >= batches {
			return true
		}
		select {
		case <-wake:
		case <-done:
			return false
		}
	}
}
