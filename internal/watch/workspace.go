package watch

import (
	"bytes"
	"slices"
	"strings"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// Change is a fact of a session of a workspace, with its place among all facts of
// the store.
type Change struct {
	Fact   narad.Authority
	Offset int64
}

// Workspace returns the watch event of a fact for those who follow the workspace
// that its session is in. A fact about the session as a whole yields its session
// event, any other workspace.revision. The result is nil for the stream of the host
// and for side sessions (R8).
func Workspace(workspaceID string, c Change) *narad.Revision {
	e := c.Fact.Envelope()
	if hidden(e.SessionID) {
		return nil
	}
	kind := lifecycle(c.Fact)
	r := &narad.Revision{
		Kind: kind, Timestamp: e.Timestamp, WorkspaceID: workspaceID,
		Revision: c.Offset, Cursor: sessionCursor(e),
	}
	if kind == narad.TypeWorkspaceRevision {
		r.EventID = idOf(kind, workspaceID, c.Offset)
		// The record names no session, so the cursor says whose place it is.
		r.Cursor.Extra = []narad.Member{{Name: "sessionId", Value: narad.Quote(e.SessionID)}}
		return r
	}
	r.SessionID, r.EventID = e.SessionID, idOf(kind, e.SessionID, c.Offset)
	return r
}

// CoalesceWorkspace returns the least of the watch events of facts of one workspace,
// which stand in the order of their offsets: the last workspace.revision, and the
// last event of each kind for each session.
func CoalesceWorkspace(workspaceID string, changes []Change) []*narad.Revision {
	var events []*narad.Revision
	told := map[key]bool{}
	for _, c := range slices.Backward(changes) {
		r := Workspace(workspaceID, c)
		if r == nil || told[key{kind: r.Kind, id: r.SessionID}] {
			continue
		}
		told[key{kind: r.Kind, id: r.SessionID}] = true
		events = append(events, r)
	}
	slices.Reverse(events)
	return events
}

// Merge returns the least of events of a workspace and of later ones, both coalesced.
func Merge(events, later []*narad.Revision) []*narad.Revision {
	told := map[key]bool{}
	for _, r := range later {
		told[key{kind: r.Kind, id: r.SessionID}] = true
	}
	events = slices.DeleteFunc(events, func(r *narad.Revision) bool { return told[key{kind: r.Kind, id: r.SessionID}] })
	return append(events, later...)
}

// MayTell reports whether a stored fact may yield another event than
// workspace.revision. It looks at the bytes alone, so that most facts need not be
// decoded, and is never wrong about one that does.
func MayTell(fact []byte) bool {
	return bytes.Contains(fact, []byte(`"`+string(narad.TypeSessionCustom)+`"`)) || bytes.Contains(fact, []byte(`"`+statusField+`"`))
}

// statusField is the optional field that tells of a change of the session's status
// (R1).
const statusField = "status"

// lifecycle returns the type of a fact's workspace event.
func lifecycle(fact narad.Authority) narad.Type {
	if c, ok := fact.(*narad.Custom); ok && c.Kind == narad.TypeSessionCustom {
		switch c.Name {
		case facts.SessionCreated:
			return narad.TypeSessionCreated
		case facts.SessionArchived:
			return narad.TypeSessionArchived
		case facts.SessionRestored, facts.Posture, facts.SessionTitled, facts.SessionMoved, facts.SessionModel,
			facts.SessionVariant, facts.SessionStyle, facts.SessionWarming:
			return narad.TypeSessionUpdated
		}
	}
	if fact.Envelope().Optional(statusField) != nil {
		return narad.TypeSessionUpdated
	}
	return narad.TypeWorkspaceRevision
}

// hidden reports whether a session is in no list and no watch (R8).
func hidden(sessionID string) bool {
	return sessionID == "~host" || strings.HasSuffix(sessionID, "~trace")
}
