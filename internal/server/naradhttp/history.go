package naradhttp

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
)

// ordering is one of the three in which history may be asked for (§10.2).
type ordering struct {
	filter, after, next string
	place               func(host.Record) uint64
}

// orderings, from the widest to the narrowest: the session holds its workflows, and a
// workflow its run trees.
var orderings = []ordering{
	{"", "afterSessionSequence", "nextSessionSequence", func(r host.Record) uint64 { return r.Sequence }},
	{"workflowId", "afterWorkflowSequence", "nextWorkflowSequence", func(r host.Record) uint64 { return r.WorkflowSequence }},
	{"rootRunId", "afterSequence", "nextSequence", func(r host.Record) uint64 { return r.RunSequence }},
}

// events serves one page of history (R26).
func (b *Binding) events(w http.ResponseWriter, r *request) error {
	v, s, err := b.view(r, access.ReadSession)
	if err != nil {
		return err
	}
	asked, err := b.positions(r, s.Last)
	if err != nil {
		return err
	}
	n, err := limit(r, b.opt.Page)
	if err != nil {
		return err
	}
	chunk, err := b.read(r.Context(), v, asked, n)
	if err != nil {
		return err
	}
	writePage(w, s, chunk, asked)
	return nil
}

// position is a cursor of one ordering.
type position struct {
	ordering
	id    string
	after uint64
	given bool // the cursor was in the query
}

// positions reads the cursors of a query. The first is the session's.
func (b *Binding) positions(r *request, head uint64) ([]position, error) {
	var list []position
	for _, o := range orderings {
		p := position{ordering: o, given: r.query.Has(o.after)}
		if o.filter != "" {
			p.id = r.query.Get(o.filter)
			if p.id == "" && !p.given {
				continue
			}
			if p.id == "" {
				return nil, bad("cursor_invalid", o.after+" needs "+o.filter)
			}
			if err := checkID(o.filter, p.id); err != nil {
				return nil, err
			}
		}
		var err error
		if p.after, err = number(r, o.after); err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	if list[0].after > head {
		return nil, cursorAhead()
	}
	return list, nil
}

func cursorAhead() error { return conflict("cursor_ahead", "the cursor is above the head") }

// read reads a page in the narrowest order asked for. Several cursors must cut their
// orders at the same facts. A run or workflow that has not begun has no facts yet.
func (b *Binding) read(ctx context.Context, v *host.View, asked []position, n int) (host.Chunk, error) {
	last := asked[len(asked)-1]
	chunk, err := v.Read(ctx, cursorOf(last), host.Page{Limit: n})
	if err != nil {
		return chunk, err
	}
	if last.filter == "" {
		return chunk, nil // its cursor was held against the head
	}
	before, err := factBefore(ctx, v, last)
	if err != nil {
		return chunk, err
	}
	for _, wide := range asked[:len(asked)-1] {
		if !agree(wide, before, chunk) {
			return chunk, conflict("cursor_conflict", "the cursors do not stand at the same facts")
		}
	}
	return chunk, nil
}

func cursorOf(p position) host.Cursor {
	c := host.Cursor{After: p.after}
	switch p.filter {
	case "rootRunId":
		c.RootRunID = p.id
	case "workflowId":
		c.WorkflowID = p.id
	}
	return c
}

// factBefore returns the fact at a position, nil at the beginning. A position at which
// no fact stands is above the head.
func factBefore(ctx context.Context, v *host.View, p position) (*host.Record, error) {
	if p.after == 0 {
		return nil, nil
	}
	at := p
	at.after--
	chunk, err := v.Read(ctx, cursorOf(at), host.Page{Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(chunk.Records) == 0 {
		return nil, cursorAhead()
	}
	return &chunk.Records[0], nil
}

// agree reports whether a wider cursor cuts the narrowest order where its own cursor
// does, between the fact before the page and the first of the page. A workflow must be
// that of the facts, whether it has a cursor or not.
func agree(wide position, before *host.Record, chunk host.Chunk) bool {
	holds := func(r host.Record) bool { return wide.filter != "workflowId" || r.WorkflowID == wide.id }
	if before != nil && (!holds(*before) || wide.given && wide.place(*before) > wide.after) {
		return false
	}
	if len(chunk.Records) == 0 {
		return true
	}
	first := chunk.Records[0]
	return holds(first) && (!wide.given || wide.place(first) > wide.after)
}

// writePage answers with the stored bytes, which are never encoded again.
func writePage(w http.ResponseWriter, s host.Summary, chunk host.Chunk, asked []position) {
	buffer := pages.Get().(*[]byte)
	defer giveBack(buffer)
	out := slices.Grow((*buffer)[:0], sizeOf(chunk))
	out = append(out, `{"events":[`...)
	for i, r := range chunk.Records {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, r.Bytes...)
	}
	out = append(out, ']')
	for _, p := range asked {
		out = append(out, `,"`...)
		out = append(out, p.next...)
		out = append(out, `":`...)
		if !chunk.More || len(chunk.Records) == 0 {
			out = append(out, "null"...)
			continue
		}
		out = strconv.AppendUint(out, p.place(chunk.Records[len(chunk.Records)-1]), 10)
	}
	out = append(out, "}\n"...)
	*buffer = out
	setHeaders(w.Header(), s)
	writeJSON(w, http.StatusOK, out)
}

// pages are buffers for pages: the garbage of large ones is what history costs most.
var pages = sync.Pool{New: func() any { return new([]byte) }}

// maxKept is the size above which a buffer is not kept, in bytes.
const maxKept = 1 << 20

func giveBack(buffer *[]byte) {
	if cap(*buffer) <= maxKept {
		pages.Put(buffer)
	}
}

// sizeOf is a little more than a page takes.
func sizeOf(chunk host.Chunk) int {
	const around = 256 // the names and numbers around the events
	size := around
	for _, r := range chunk.Records {
		size += len(r.Bytes) + len(",")
	}
	return size
}
