package index

import (
	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// What stands in a row that cannot be read, its session's facts tell as well.

// CurrentSession is the catalogue row of a session in a state.
func CurrentSession(id string, s *session.State, d *desk.State) journal.SessionRow {
	state := atRest(d)
	if s.ActiveRootRunID() != "" || s.ActiveWorkflowID() != "" {
		state = Running
	}
	return sessionRow(id, state, d)
}

// CurrentOpen is the value of the open-work row of a session in a state.
func CurrentOpen(s *session.State) Open {
	return Open{RootRunID: s.ActiveRootRunID(), WorkflowID: s.ActiveWorkflowID()}
}

// Requested is the row of an interrupt, without its offset, as its request alone tells it.
func Requested(f *narad.InterruptRequested) journal.InterruptRow {
	return journal.InterruptRow{
		ID: f.InterruptID, Session: f.SessionID, Sequence: uint64(f.SessionSequence), Open: true,
		Value: value(Interrupt{
			RunID: f.RunID, RootRunID: f.RootRunID, WorkflowID: asker(f.Scope, f.WorkflowID),
			WaitID: f.WaitID, Kind: f.Kind, Actions: f.Actions,
			Title: f.Title, Message: f.Message, Input: f.Input, ExpiresAt: f.ExpiresAt, RequestedAt: f.Timestamp,
		}),
	}
}
