package graph

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mahati-host/mahati/narad"
)

// Canonical returns a JSON value in the form of RFC 8785: names sorted by UTF-16 code
// units, no white space, one spelling of each string and number. Numbers become what
// a double holds. An error means that the value is not strict JSON.
func Canonical(value narad.Raw) (narad.Raw, error) {
	v := jsontext.Value(bytes.Clone(value))
	if err := v.Canonicalize(); err != nil {
		return nil, fmt.Errorf("write in canonical form: %w", err)
	}
	return narad.Raw(v), nil
}

// canonicalGraph joins values that are canonical into a canonical graph.
func canonicalGraph(rootNodeID string, nodes, edges []narad.Raw) narad.Raw {
	out := appendArray([]byte(`{"edges":`), edges)
	out = appendArray(append(out, `,"nodes":`...), nodes)
	out = append(append(out, `,"rootNodeId":`...), narad.Quote(rootNodeID)...)
	return append(out, '}')
}

func appendArray(out []byte, values []narad.Raw) []byte {
	out = append(out, '[')
	for i, value := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, value...)
	}
	return append(out, ']')
}
