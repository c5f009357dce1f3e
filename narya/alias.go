package narya

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// Alias is the way back from a UUIDv5 to the id that it stands for (R5).
type Alias struct {
	UUID string
	Kind Kind
	// ID is that of the session, run, interrupt or workflow; RequestID names the member of a
	// pack.
	ID        string
	RequestID string
}

// Aliases returns the UUIDs by which a fact's events name something for the first time
// and from which its id cannot be read. Entries are not among them: see [Mapping.Entries].
func (m Mapping) Aliases(fact narad.Authority) []Alias {
	if !m.projects(fact) {
		return nil
	}
	e := fact.Envelope()
	var list aliases
	switch f := fact.(type) {
	case *narad.Custom:
		if f.Name == facts.SessionCreated {
			list.shown(KindSession, e.SessionID)
			list.add(Alias{UUID: MainLaneID(e.SessionID), Kind: KindMainLane, ID: e.SessionID})
		}
	case *narad.RunStarted:
		if p := (&projection{event: e}); !facts.Gate(e) {
			list.shown(KindRun, e.RunID)
			if !p.main() {
				list.add(Alias{UUID: p.lane(), Kind: KindLane, ID: e.RunID})
			}
		}
	case *narad.WorkflowStarted:
		list.shown(KindWorkflow, e.WorkflowID)
	case *narad.InterruptRequested:
		if members := membersOf(f); len(members) > 0 {
			for _, m := range members {
				list.add(Alias{MemberPermissionID(f.InterruptID, m.RequestID), KindMember, f.InterruptID, m.RequestID})
			}
			break
		}
		list.shown(KindInterrupt, f.InterruptID)
	}
	return list
}

// Entries returns the ids of the entries that a fact appends to a transcript.
func (m Mapping) Entries(fact narad.Authority) (ids []string) {
	switch f := fact.(type) {
	case *narad.MessageUserRecorded, *narad.MessageTextCompleted, *narad.ToolCallStarted, *narad.ToolCallFinished:
	case *narad.Custom:
		if f.Name != facts.InputQueued && f.Name != facts.Intercom {
			return nil
		}
	default:
		return nil
	}
	for _, e := range m.Project(fact) {
		if entry, ok := e.Payload.(*EntryAppended); ok {
			ids = append(ids, entry.EntryID)
		}
	}
	return ids
}

type aliases []Alias

func (a *aliases) add(one Alias) { *a = append(*a, one) }

// shown adds the alias of an id that is not shown as it is.
func (a *aliases) shown(kind Kind, id string) {
	if uuid := UUID(kind, id); uuid != id {
		a.add(Alias{UUID: uuid, Kind: kind, ID: id})
	}
}
