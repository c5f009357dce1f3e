package naradhttp

import (
	"context"
	"net/http"
	"strconv"
	"sync"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
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
	p := newPage()
	defer p.giveBack()
	if err := p.read(r.Context(), v, asked, n); err != nil {
		return err
	}
	p.finish(asked)
	setHeaders(w.Header(), s)
	writeJSON(w, http.StatusOK, p.bytes)
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

func cursorAhead() error { return server.Conflict("cursor_ahead", "the cursor is above the head") }

// historyPage is an answer of history in the making. It has the stored bytes, which are never
// encoded again.
type historyPage struct {
	bytes       []byte
	count       int
	first, last host.Record // without their bytes
	more        bool
}

// read reads a page in the narrowest order asked for. Several cursors must cut their
// orders at the same facts. A run or workflow that has not begun has no facts yet.
func (p *historyPage) read(ctx context.Context, v *host.View, asked []position, n int) (err error) {
	last := asked[len(asked)-1]
	if p.more, err = v.Scan(ctx, cursorOf(last), host.Page{Limit: n}, p.add); err != nil {
		return err
	}
	if last.filter == "" {
		return nil // its cursor was held against the head
	}
	before, err := factBefore(ctx, v, last)
	if err != nil {
		return err
	}
	for _, wide := range asked[:len(asked)-1] {
		if !p.agrees(wide, before) {
			return server.Conflict("cursor_conflict", "the cursors do not stand at the same facts")
		}
	}
	return nil
}

func (p *historyPage) add(r *host.Record) {
	if p.count > 0 {
		p.bytes = append(p.bytes, ',')
	}
	p.bytes = append(p.bytes, r.Bytes...)
	p.last = *r
	p.last.Bytes = nil
	if p.count++; p.count == 1 {
		p.first = p.last
	}
}

// finish adds the cursors of the next page.
func (p *historyPage) finish(asked []position) {
	p.bytes = append(p.bytes, ']')
	for _, at := range asked {
		p.bytes = append(p.bytes, `,"`...)
		p.bytes = append(p.bytes, at.next...)
		p.bytes = append(p.bytes, `":`...)
		if !p.more || p.count == 0 {
			p.bytes = append(p.bytes, "null"...)
			continue
		}
		p.bytes = strconv.AppendUint(p.bytes, at.place(p.last), 10)
	}
	p.bytes = append(p.bytes, "}\n"...)
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

// agrees reports whether a wider cursor cuts the narrowest order where its own cursor
// does, between the fact before the page and the first of the page. A workflow must be
// that of the facts, whether it has a cursor or not.
func (p *historyPage) agrees(wide position, before *host.Record) bool {
	holds := func(r host.Record) bool { return wide.filter != "workflowId" || r.WorkflowID == wide.id }
	if before != nil && (!holds(*before) || wide.given && wide.place(*before) > wide.after) {
		return false
	}
	return p.count == 0 || holds(p.first) && (!wide.given || wide.place(p.first) > wide.after)
}

// pages are kept for the next request: the garbage of large ones is what history costs most.
var pages = sync.Pool{New: func() any { return new(historyPage) }}

// maxKept is the size above which the bytes of a page are not kept.
const maxKept = 1 << 20

func newPage() *historyPage {
	p := pages.Get().(*historyPage)
	*p = historyPage{bytes: append(p.bytes[:0], `{"events":[`...)}
	return p
}

func (p *historyPage) giveBack() {
	if cap(p.bytes) <= maxKept {
		pages.Put(p)
	}
}
