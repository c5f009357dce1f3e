package replay

import (
	"fmt"

	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// State is a session at a sequence.
type State struct {
	Session *session.State
	Desk    *desk.State
}

// Sequence is that of the last fact applied, 0 before the first.
func (s State) Sequence() uint64 { return uint64(s.Session.Last()) }

// Control is control state, in the hands of one owner, who applies the facts that
// it appends.
type Control struct {
	State
	// saved is the sequence of the newest snapshot that the owner knows of.
	saved uint64
}

// Empty is the control state of a session that is not there yet.
func Empty(sessionID string) *Control {
	return &Control{State: newState(session.Options{SessionID: sessionID, NoDisplay: true})}
}

func newState(o session.Options) State { return State{session.New(o), &desk.State{}} }

// apply adds the next fact. An error is damage.
func (s State) apply(record *journal.Record) error {
	damaged := func(cause error) error {
		return &journal.DamagedError{Session: record.Session, Sequence: record.Sequence, Cause: cause}
	}
	fact, err := narad.Decode(record.Bytes)
	if err != nil {
		return damaged(err)
	}
	authority, ok := fact.(narad.Authority)
	if !ok {
		return damaged(fmt.Errorf("%s is not a fact", fact.Type()))
	}
	if at := authority.Envelope().SessionSequence; uint64(at) != record.Sequence {
		return damaged(fmt.Errorf("the fact calls itself the %dth", at))
	}
	// One that moved the cursor alone is one that Admit refuses: no owner appended it.
	if result := s.Session.Apply(authority); result.Kind != session.Applied || result.Code != "" {
		return damaged(fmt.Errorf("%s: %s: %s", result.Kind, result.Code, result.Detail))
	}
	s.Desk.Apply(authority)
	return nil
}
