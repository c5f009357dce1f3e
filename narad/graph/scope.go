package graph

import "github.com/mahati-host/mahati/narad"

// Scope is what one graph shows.
type Scope struct {
	// Kind is run or workflow.
	Kind narad.Scope
	// ID is the root run or the workflow.
	ID string
}

// RunTree is the scope of a root run and all below it.
func RunTree(rootRunID string) Scope { return Scope{narad.ScopeRun, rootRunID} }

// WorkflowOf is the scope of a workflow, which the specification reserves for
// orchestration.
func WorkflowOf(workflowID string) Scope { return Scope{narad.ScopeWorkflow, workflowID} }

// String returns run:ID or workflow:ID.
func (s Scope) String() string { return string(s.Kind) + ":" + s.ID }

// scopeOf returns the scope of a record.
func scopeOf(g narad.GraphScope) Scope {
	if g.Scope == narad.ScopeWorkflow {
		return WorkflowOf(g.WorkflowID)
	}
	return RunTree(g.RootRunID)
}

// at returns the scope as a record derived at a place of its ordering carries it.
func (s Scope) at(sequence int64) narad.GraphScope {
	g := narad.GraphScope{Scope: s.Kind, Source: sequence, SourceID: s.ID}
	if s.Kind == narad.ScopeWorkflow {
		g.WorkflowID = s.ID
	} else {
		g.RootRunID = s.ID
	}
	return g
}

// placeOf returns a fact's place in the scope's ordering, 0 if it has none.
func (s Scope) placeOf(e *narad.Event) int64 {
	switch {
	case s.Kind == narad.ScopeWorkflow && e.WorkflowID == s.ID:
		return e.WorkflowSequence
	case s.Kind == narad.ScopeRun && e.RootRunID == s.ID:
		return e.Sequence
	}
	return 0
}

// root returns the id of the node that the graph hangs from.
func (s Scope) root() string {
	if s.Kind == narad.ScopeWorkflow {
		return nodeID(KindWorkflow, s.ID)
	}
	return nodeID(KindRun, s.ID)
}
