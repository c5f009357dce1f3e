package session

import "github.com/mahati-host/mahati/narad"

// Graphs holds the graphs of a session. The View of package narad/graph is one; this
// package cannot name it, since graphs are derived from what is told here.
type Graphs interface {
	// Apply takes a graph record, or a fact that the state has just taken, which moves
	// the authority on that graph records wait for.
	Apply(rec narad.Record) Result
	// Check says what Apply would say of a graph record, and changes nothing.
	Check(rec narad.Record) Result
	// All returns every graph by its scope: run:ID or workflow:ID.
	All() map[string]Graph
}

// Graph is a graph as a client knows it.
type Graph struct {
	Revision int64 `json:"revision"`
	// Cursor is the place in the run tree or workflow that the graph was derived from.
	Cursor     int64       `json:"cursor"`
	RootNodeID string      `json:"rootNodeId"`
	Nodes      []narad.Raw `json:"nodes"`
	Edges      []narad.Raw `json:"edges"`
	// ResyncRequired says that the graph is old and can be followed no further until a
	// snapshot comes.
	ResyncRequired bool `json:"resyncRequired,omitzero"`
}

// Graphs returns the graphs that the state was given, by their scopes.
func (s *State) Graphs() map[string]Graph {
	if s.opt.Graphs == nil {
		return nil
	}
	return s.opt.Graphs.All()
}

// takeGraph gives a graph record to the graphs (§9.7). A gap of the session does not
// hold it up, and what is wrong with a graph stays in the graph.
func (s *State) takeGraph(rec narad.Record) Result {
	if s.opt.Graphs == nil || s.skips(rec) {
		return result(Ignored, ProfileNotClaimed)
	}
	return s.opt.Graphs.Apply(rec)
}

func (s *State) judgeGraph(rec narad.Record) Result {
	if s.opt.Graphs == nil || s.skips(rec) {
		return result(Ignored, ProfileNotClaimed)
	}
	return s.opt.Graphs.Check(rec)
}
