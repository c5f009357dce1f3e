package decide

import "github.com/mahati-host/mahati/facts"

// Create makes a session (R8). The same id again is already_applied, unless it is that
// of a session elsewhere.
type Create struct{ Payload facts.Created }

func (c Create) propose(d *draft) Answer {
	switch {
	case !d.desk.Exists():
	case d.desk.Created.WorkspaceID != c.Payload.WorkspaceID:
		return refuse(Conflict, "the id was given to another session")
	default:
		return Answer{Status: AlreadyApplied}
	}
	d.add(facts.Session(facts.SessionCreated, c.Payload))
	return Answer{Status: Accepted}
}

// Archive puts a session away; Restore takes it back. Archiving needs an idle session
// with an empty queue (R8). The asks that it is part of end: nobody could answer them.
type Archive struct{}

func (Archive) propose(d *draft) Answer {
	switch {
	case !d.desk.Exists():
		return refuse(NotFound, "no such session")
	case d.desk.Archived:
		return Answer{Status: AlreadyApplied}
	case d.busy():
		return RefuseBusy()
	}
	d.closeAsks("archived")
	d.subject()
	d.add(facts.Session(facts.SessionArchived, facts.Archived{}))
	return Answer{Status: Accepted}
}

// Restore takes an archived session back.
type Restore struct{}

func (Restore) propose(d *draft) Answer {
	switch {
	case !d.desk.Exists():
		return refuse(NotFound, "no such session")
	case !d.desk.Archived:
		return Answer{Status: AlreadyApplied}
	}
	d.add(facts.Session(facts.SessionRestored, facts.Archived{}))
	return Answer{Status: Accepted}
}

// busy reports whether something is active or waits.
func (d *draft) busy() bool { return d.executing() || len(d.desk.Queue) > 0 }

// executing reports whether a top-level execution is active.
func (d *draft) executing() bool {
	return d.state.ActiveRootRunID() != "" || d.state.ActiveWorkflowID() != ""
}
