package graph

import (
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/narad"
)

// State is the graph of one scope as its facts tell it. It must be made by [New] or
// [Decode].
type State struct {
	sessionID string
	scope     Scope
	last      int64 // the place of the last fact that was taken

	revision  int64
	cursor    int64  // the place of the last fact that changed the graph
	timestamp string // that fact's

	nodes []Node
	raws  []narad.Raw // the nodes in canonical form
	index map[string]int
	edges edges
	size  int // the bytes of all nodes and edges in canonical form

	gates   map[string]string // open gate runs: the node that each asks for
	current string            // where a workflow stands
}

// New returns the graph of a scope of a session, with nothing in it yet.
func New(sessionID string, scope Scope) *State {
	return &State{sessionID: sessionID, scope: scope, index: map[string]int{}, gates: map[string]string{}}
}

// ErrGap says that a fact before the one given is missing.
var ErrGap = errors.New("a fact before it is missing")

// Apply takes a fact of the session and returns what it changed, nil for nothing. A
// fact of another scope or session, and one that was taken before, change nothing. An
// error is [ErrGap] for a fact that is not the scope's next; the graph stays as it is.
func (s *State) Apply(fact narad.Authority) (*Change, error) {
	e := fact.Envelope()
	place := s.scope.placeOf(e)
	if e.SessionID != s.sessionID || place <= s.last {
		return nil, nil
	}
	if place != s.last+1 {
		return nil, fmt.Errorf("take fact %d after fact %d of a graph: %w", place, s.last, ErrGap)
	}
	s.last = place
	c := &Change{sessionID: s.sessionID, scope: s.scope, Cursor: place, Timestamp: e.Timestamp}
	if s.scope.Kind == narad.ScopeWorkflow {
		s.changeWorkflow(c, fact)
	} else {
		s.changeRunTree(c, fact)
	}
	if len(c.ops) == 0 {
		return nil, nil
	}
	s.revision++
	s.cursor, s.timestamp = place, e.Timestamp
	c.Revision = s.revision
	return c, nil
}

// Revision returns the number of facts that have changed the graph.
func (s *State) Revision() int64 { return s.revision }

// Last returns the place of the last fact that was taken, in the run tree or workflow.
func (s *State) Last() int64 { return s.last }

// Snapshot returns the graph as a record, nil while there is none. There is one for
// each revision. It shares nothing that the state changes later.
func (s *State) Snapshot() *narad.GraphSnapshot {
	if s.revision == 0 {
		return nil
	}
	g := s.envelope()
	g.Nodes, g.Edges = append(g.Nodes, s.raws...), s.edges.raws()
	return g
}

// envelope returns the snapshot without nodes and edges.
func (s *State) envelope() *narad.GraphSnapshot {
	return &narad.GraphSnapshot{
		Timestamp: s.timestamp, SessionID: s.sessionID, GraphScope: s.scope.at(s.cursor),
		Revision: s.revision, RootNodeID: s.scope.root(),
	}
}

// MaxSnapshotBytes bounds a snapshot that is sent (R29).
const MaxSnapshotBytes = 500_000

// Fits reports whether there is a snapshot that is small enough to be sent. It does
// not make one.
func (s *State) Fits() bool {
	if s.revision == 0 {
		return false
	}
	envelope, err := narad.Encode(s.envelope())
	commas := max(len(s.nodes)-1, 0) + max(s.edges.count-1, 0)
	return err == nil && len(envelope)+s.size+commas <= MaxSnapshotBytes
}

// deltas is how many deltas stand between two snapshots that are sent (R29).
const deltas = 128

// Record returns what a host sends for a change that [State.Apply] has just returned:
// its delta, or, for the first one and after every 128 deltas, a snapshot in its
// place. Where a snapshot would be too large the delta is sent.
func (s *State) Record(c *Change) narad.Record {
	if (c.Revision-1)%(deltas+1) == 0 && s.Fits() {
		return s.Snapshot()
	}
	return c.Delta()
}

// Canonical returns the graph in the form of RFC 8785: an object of edges, nodes and
// rootNodeId.
func (s *State) Canonical() narad.Raw {
	return canonicalGraph(s.scope.root(), s.raws, s.edges.raws())
}

// add adds a node, unless one of its id is there.
func (s *State) add(c *Change, n Node) {
	if _, known := s.index[n.ID]; known {
		return
	}
	n.Label, n.Sequence = short(n.Label), c.Cursor
	raw := canonical(n)
	c.add("/nodes/", len(s.nodes), raw)
	s.index[n.ID] = len(s.nodes)
	s.nodes, s.raws = append(s.nodes, n), append(s.raws, raw)
	s.size += len(raw)
}

// update changes a node, if it is there.
func (s *State) update(c *Change, id string, change func(*Node)) {
	i, known := s.index[id]
	if !known {
		return
	}
	n := s.nodes[i]
	change(&n)
	n.Code, n.Decision = short(n.Code), short(n.Decision)
	if n == s.nodes[i] {
		return
	}
	raw := canonical(n)
	c.replace("/nodes/", i, raw)
	s.size += len(raw) - len(s.raws[i])
	s.nodes[i], s.raws[i] = n, raw
}

// link joins two nodes, if both are there and not joined so already.
func (s *State) link(c *Change, from, to string, kind EdgeKind) {
	_, source := s.index[from]
	_, target := s.index[to]
	if !source || !target {
		return
	}
	e := &edge{Edge: Edge{From: from, Kind: kind, To: to}}
	e.raw = canonical(e.Edge)
	if place, added := s.edges.insert(e); added {
		c.add("/edges/", place, e.raw)
		s.size += len(e.raw)
	}
}
