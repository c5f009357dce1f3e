package graph

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/narad"
)

// stored is a state as bytes.
type stored struct {
	Version   int               `json:"version"`
	SessionID string            `json:"sessionId"`
	Kind      narad.Scope       `json:"scope"`
	ID        string            `json:"id"`
	Last      int64             `json:"last"`
	Revision  int64             `json:"revision"`
	Cursor    int64             `json:"cursor"`
	Timestamp string            `json:"timestamp"`
	Nodes     []Node            `json:"nodes"`
	Edges     []Edge            `json:"edges"`
	Gates     map[string]string `json:"gates,omitempty"`
	Current   string            `json:"current,omitzero"`
}

// storedVersion is that of the form and of the derivation: a graph kept by another one
// is derived anew.
const storedVersion = 1

// Encode returns the state as bytes for [Decode], a cache of what the facts say.
func (s *State) Encode() []byte {
	kept := stored{
		Version: storedVersion, SessionID: s.sessionID, Kind: s.scope.Kind, ID: s.scope.ID, Last: s.last,
		Revision: s.revision, Cursor: s.cursor, Timestamp: s.timestamp,
		Nodes: s.nodes, Edges: make([]Edge, 0, s.edges.count), Gates: s.gates, Current: s.current,
	}
	for _, block := range s.edges.blocks {
		for _, e := range block {
			kept.Edges = append(kept.Edges, e.Edge)
		}
	}
	data, err := json.Marshal(kept, json.Deterministic(true))
	if err != nil {
		panic("graph: a state is always JSON: " + err.Error())
	}
	return data
}

// Decode reads what [State.Encode] wrote. An error means that the graph must be
// derived from its facts.
func Decode(data []byte) (*State, error) {
	var kept stored
	if err := json.Unmarshal(data, &kept); err != nil {
		return nil, fmt.Errorf("decode a graph: %w", err)
	}
	if kept.Version != storedVersion {
		return nil, fmt.Errorf("decode a graph: version %d, not %d", kept.Version, storedVersion)
	}
	s := New(kept.SessionID, Scope{kept.Kind, kept.ID})
	s.last, s.revision, s.cursor, s.timestamp = kept.Last, kept.Revision, kept.Cursor, kept.Timestamp
	s.current = kept.Current
	maps.Copy(s.gates, kept.Gates)
	s.nodes, s.raws = kept.Nodes, make([]narad.Raw, len(kept.Nodes))
	for i, n := range s.nodes {
		s.index[n.ID], s.raws[i] = i, canonical(n)
		s.size += len(s.raws[i])
	}
	for part := range slices.Chunk(kept.Edges, maxBlock/2) {
		block := make([]*edge, len(part))
		for i, e := range part {
			block[i] = &edge{e, canonical(e)}
			s.size += len(block[i].raw)
		}
		s.edges.blocks = append(s.edges.blocks, block)
		s.edges.count += len(block)
	}
	return s, nil
}
