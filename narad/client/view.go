package client

import (
	"github.com/mahati-host/mahati/narad/session"
)

// Snapshot returns the whole state as a value. It costs as much as the state is
// large; to ask for one thing there are the other methods.
func (f *Follower) Snapshot() session.Snapshot {
	return look(f, func(s *session.State) session.Snapshot { return s.Snapshot() })
}

// Messages returns the transcript in the order in which the messages appeared.
func (f *Follower) Messages() []session.Message {
	return look(f, func(s *session.State) []session.Message { return s.Messages() })
}

// Transcript returns the messages that a person is shown: the primary transcript, or, with
// the id of a run, what that run said (specification §9.2).
func (f *Follower) Transcript(runID string) []session.Message {
	return look(f, func(s *session.State) []session.Message { return s.Transcript(runID) })
}

// Reasoning returns the reasoning in the order in which it began.
func (f *Follower) Reasoning() []session.Reasoning {
	return look(f, func(s *session.State) []session.Reasoning { return s.Reasoning() })
}

// Run returns a run of the session.
func (f *Follower) Run(id string) (session.Run, bool) {
	return find(f, id, (*session.State).Run)
}

// Tool returns a tool call of the session.
func (f *Follower) Tool(id string) (session.Tool, bool) {
	return find(f, id, (*session.State).Tool)
}

// Interrupt returns an interrupt of the session.
func (f *Follower) Interrupt(id string) (session.Interrupt, bool) {
	return find(f, id, (*session.State).Interrupt)
}

// Graphs returns the graphs that were followed, by run:ID. One that says ResyncRequired is
// old: the host could not tell it as one record.
func (f *Follower) Graphs() map[string]session.Graph {
	return look(f, (*session.State).Graphs)
}

// ActiveRootRunID returns the active top-level run, or "".
func (f *Follower) ActiveRootRunID() string {
	return look(f, func(s *session.State) string { return s.ActiveRootRunID() })
}

// ActiveWorkflowID returns the active workflow, or "".
func (f *Follower) ActiveWorkflowID() string {
	return look(f, func(s *session.State) string { return s.ActiveWorkflowID() })
}

// ResyncRequired reports whether a scoped state inside the session can no longer be
// followed by deltas; the session itself goes on.
func (f *Follower) ResyncRequired() bool {
	return look(f, func(s *session.State) bool { return s.ResyncRequired() })
}

// Last returns the sequence of the last fact that the follower has.
func (f *Follower) Last() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cursor
}

// Position returns the place to come back to.
func (f *Follower) Position() Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Position{SessionID: f.sessionID, Sequence: f.cursor, Epoch: f.epoch}
}

// Phase returns the present phase.
func (f *Follower) Phase() Phase {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.phase
}

// Profiles returns the profiles that were negotiated, in the order of the claim; nil
// before the first attach.
func (f *Follower) Profiles() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.profiles...)
}

// Detach hands the state over to the caller, to keep it or to follow with it later.
// The follower has none from then on and is of no more use. The second result is
// false while a loop is under way, and where there is no state.
func (f *Follower) Detach() (*session.State, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running || f.state == nil {
		return nil, false
	}
	s := f.state
	f.state, f.running = nil, true
	return s, true
}

// look asks the state under the lock: even its questions may change what it has
// prepared for the next one. Without a state the answer is the zero value.
func look[T any](f *Follower, ask func(*session.State) T) (answer T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == nil {
		return answer
	}
	return ask(f.state)
}

func find[T any](f *Follower, id string, in func(*session.State, string) (T, bool)) (found T, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state == nil {
		return found, false
	}
	return in(f.state, id)
}
