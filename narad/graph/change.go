package graph

import (
	"strconv"

	"github.com/mahati-host/mahati/narad"
)

// Change is what one fact changed in a graph.
type Change struct {
	sessionID string
	scope     Scope
	// Revision is the graph's after the change.
	Revision int64
	// Cursor is the fact's place in the run tree or workflow.
	Cursor int64
	// Timestamp is the fact's.
	Timestamp string

	ops []op
}

// op is one operation of a patch.
type op struct {
	verb  narad.Op
	list  string // "/nodes/" or "/edges/"
	index int
	value narad.Raw
}

func (c *Change) add(list string, i int, value narad.Raw) {
	c.ops = append(c.ops, op{narad.OpAdd, list, i, value})
}

func (c *Change) replace(list string, i int, value narad.Raw) {
	c.ops = append(c.ops, op{narad.OpReplace, list, i, value})
}

// Delta returns the change as a record.
func (c *Change) Delta() *narad.GraphDelta {
	return &narad.GraphDelta{
		Timestamp: c.Timestamp, SessionID: c.sessionID, GraphScope: c.scope.at(c.Cursor),
		BaseRevision: c.Revision - 1, Revision: c.Revision, Patch: c.patch(),
	}
}

// patch returns the operations in canonical form.
func (c *Change) patch() narad.Raw {
	out := []byte{'['}
	for i, o := range c.ops {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, `{"op":"`...), o.verb...)
		out = strconv.AppendInt(append(append(out, `","path":"`...), o.list...), int64(o.index), 10)
		out = append(append(append(out, `","value":`...), o.value...), '}')
	}
	return append(out, ']')
}
