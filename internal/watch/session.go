package watch

import (
	"cmp"
	"slices"

	"github.com/mahati-host/mahati/narad"
)

// Session returns the watch events of a numbered fact for those who follow its
// session, in the order in which they are sent. There are none for the stream of the
// host and for side sessions (R8).
func Session(fact narad.Authority) []*narad.Revision {
	keys := keysOf(fact)
	events := make([]*narad.Revision, len(keys))
	for i, k := range keys {
		events[i] = k.event(fact.Envelope())
	}
	return events
}

// Coalesce returns the least of the watch events of consecutive facts of one
// session: the last event of each key.
func Coalesce(facts []narad.Authority) []*narad.Revision {
	var events []*narad.Revision
	told := map[key]bool{}
	for _, fact := range slices.Backward(facts) {
		for _, k := range slices.Backward(keysOf(fact)) {
			if !told[k] {
				told[k] = true
				events = append(events, k.event(fact.Envelope()))
			}
		}
	}
	slices.Reverse(events)
	return events
}

// key is what the revisions of a session's watch events count for.
type key struct {
	kind narad.Type
	// id is the node, the workflow, the run or the session.
	id string
	// workflow is that of a node: the names of nodes are a workflow's own.
	workflow string
}

// keysOf returns the keys that a fact changes, from the innermost out.
func keysOf(fact narad.Authority) []key {
	e := fact.Envelope()
	if hidden(e.SessionID) {
		return nil
	}
	keys := make([]key, 0, 4)
	if e.WorkflowID != "" {
		for _, id := range nodesOf(fact) {
			keys = append(keys, key{narad.TypeNodeRevision, id, e.WorkflowID})
		}
		keys = append(keys, key{kind: narad.TypeWorkflowRevision, id: e.WorkflowID})
	}
	if e.RunID != "" {
		for _, id := range runsOf(fact) {
			keys = append(keys, key{kind: narad.TypeRunRevision, id: id})
		}
	}
	return append(keys, key{kind: narad.TypeSessionRevision, id: e.SessionID})
}

// nodesOf returns the nodes of the workflow that a fact is about, in their order.
func nodesOf(fact narad.Authority) []string {
	switch f := fact.(type) {
	case *narad.WorkflowStarted:
		return named(f.NodeID)
	case *narad.WorkflowPaused:
		return named(f.NodeID)
	case *narad.WorkflowResumed:
		return named(f.NodeID)
	case *narad.WorkflowStep:
		return named(f.NodeID)
	case *narad.WorkflowEdgeTaken: // one node is left, the other is entered
		return named(f.From, f.To)
	case *narad.Custom:
		return named(f.NodeID)
	case *narad.Opaque:
		return named(f.NodeID)
	}
	return nil
}

// runsOf returns the runs that a fact is about: its own, and the one that it stops.
func runsOf(fact narad.Authority) []string {
	if f, ok := fact.(*narad.RunStopRequested); ok {
		return named(f.RunID, f.TargetRunID)
	}
	return []string{fact.Envelope().RunID}
}

// named returns the names that are there, sorted, each once.
func named(names ...string) []string {
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.SortFunc(names, cmp.Compare[string])
	return slices.Compact(names)
}

// event returns the event of a key at a fact.
func (k key) event(e *narad.Event) *narad.Revision {
	r := &narad.Revision{
		Kind: k.kind, EventID: idOf(k.kind, k.id, e.SessionSequence), Timestamp: e.Timestamp,
		SessionID: e.SessionID, Revision: e.SessionSequence,
	}
	switch k.kind {
	case narad.TypeNodeRevision:
		r.WorkflowID, r.NodeID, r.Cursor = e.WorkflowID, k.id, workflowCursor(e)
	case narad.TypeWorkflowRevision:
		r.WorkflowID, r.Cursor = e.WorkflowID, workflowCursor(e)
	case narad.TypeRunRevision:
		r.RootRunID, r.RunID = e.RootRunID, k.id
		r.Cursor = &narad.Cursor{Kind: narad.ScopeRun, ID: e.RootRunID, Sequence: e.Sequence}
	default:
		r.Cursor = sessionCursor(e)
	}
	return r
}

func workflowCursor(e *narad.Event) *narad.Cursor {
	return &narad.Cursor{Kind: narad.ScopeWorkflow, ID: e.WorkflowID, Sequence: e.WorkflowSequence}
}

func sessionCursor(e *narad.Event) *narad.Cursor {
	return &narad.Cursor{Kind: narad.ScopeSession, Sequence: e.SessionSequence}
}
