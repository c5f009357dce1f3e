package graph

import "github.com/mahati-host/mahati/narad"

// Graphs derives the graphs of a session's run trees while they are under way. It
// must be made by [NewGraphs].
type Graphs struct {
	sessionID string
	states    map[string]*State // by root run
}

// NewGraphs returns the graphs of a session that has no run yet.
func NewGraphs(sessionID string) *Graphs {
	return &Graphs{sessionID: sessionID, states: map[string]*State{}}
}

// Adopt adds the graph of a run tree that is under way, which is then g's.
func (g *Graphs) Adopt(s *State) { g.states[s.scope.ID] = s }

// Open returns the graph of a run tree that is under way.
func (g *Graphs) Open(rootRunID string) (*State, bool) {
	s, ok := g.states[rootRunID]
	return s, ok
}

// Apply takes the session's next fact and returns what a host sends after it, nil for
// nothing. The graph of a run tree is dropped with the terminal of its root, since no
// fact follows that. An error is [ErrGap] for a fact of a run tree whose earlier facts
// were not given; nothing has changed then.
func (g *Graphs) Apply(fact narad.Authority) (narad.Record, error) {
	e := fact.Envelope()
	if e.RootRunID == "" || e.Sequence == 0 || e.SessionID != g.sessionID {
		return nil, nil
	}
	s := g.states[e.RootRunID]
	if s == nil {
		s = New(g.sessionID, RunTree(e.RootRunID))
	}
	c, err := s.Apply(fact)
	if err != nil {
		return nil, err
	}
	g.states[e.RootRunID] = s
	if ended(fact) && !e.Nested() {
		delete(g.states, e.RootRunID)
	}
	if c == nil {
		return nil, nil
	}
	return s.Record(c), nil
}
