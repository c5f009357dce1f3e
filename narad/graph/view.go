package graph

import (
	"errors"
	"slices"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// ViewOptions are what may be chosen of a [View]. The zero value follows as a client
// does.
type ViewOptions struct {
	// Strict demands what a host must keep: no record ahead of the authority, no cursor
	// and no snapshot that goes back. Otherwise the view waits or passes over them. The
	// same snapshot once more, as a host sends it to who comes back, is a duplicate.
	Strict bool
}

// View holds the graphs of a session as records tell them. It must be made by
// [NewView].
type View struct {
	opt       ViewOptions
	sessionID string
	held      map[Scope]int64 // the authority that is held, by run tree and workflow
	graphs    map[Scope]*shown
}

var _ session.Graphs = (*View)(nil)

// NewView returns a view of a session that has seen nothing. An empty id means the
// session of the first fact.
func NewView(sessionID string, opt ViewOptions) *View {
	return &View{opt: opt, sessionID: sessionID, held: map[Scope]int64{}, graphs: map[Scope]*shown{}}
}

// shown is one graph of a view.
type shown struct {
	document *narad.Document // nil before the first snapshot
	revision int64
	cursor   int64
	resync   bool // only a snapshot helps
	queue    queue
}

// Graph is a graph as a view knows it.
type Graph = session.Graph

// Graph returns the graph of a scope; false if no snapshot of it was applied.
func (v *View) Graph(s Scope) (Graph, bool) {
	g := v.graphs[s]
	if g == nil || g.document == nil {
		return Graph{}, false
	}
	value := g.document.Raw()
	root, _ := value.Field("rootNodeId").IsString()
	nodes, _ := value.Field("nodes").Elements()
	edges, _ := value.Field("edges").Elements()
	return Graph{
		Revision: g.revision, Cursor: g.cursor, RootNodeID: root, Nodes: nodes, Edges: edges, ResyncRequired: g.resync,
	}, true
}

// All returns the graphs of which a snapshot was applied, by the text of their scopes.
func (v *View) All() map[string]Graph {
	all := make(map[string]Graph, len(v.graphs))
	for scope := range v.graphs {
		if g, ok := v.Graph(scope); ok {
			all[scope.String()] = g
		}
	}
	return all
}

// Canonical returns the graph of a scope in the form of RFC 8785, nil if no snapshot
// of it was applied.
func (v *View) Canonical(s Scope) narad.Raw {
	g := v.graphs[s]
	if g == nil || g.document == nil {
		return nil
	}
	value, err := Canonical(g.document.Raw())
	if err != nil {
		panic("graph: a document is always strict JSON: " + err.Error())
	}
	return value
}

// Resync returns the graphs that need a snapshot, which the caller may ask its host
// for and apply, in no particular order.
func (v *View) Resync() []Scope {
	var list []Scope
	for scope, g := range v.graphs {
		if g.resync {
			list = append(list, scope)
		}
	}
	return list
}

// Forget drops the graph of a scope and what is known of its authority.
func (v *View) Forget(s Scope) {
	delete(v.graphs, s)
	delete(v.held, s)
}

// Apply takes a record: a fact that the caller has applied moves the authority on, a
// graph record changes its graph or waits. Any other record is ignored.
func (v *View) Apply(rec narad.Record) Result {
	switch r := rec.(type) {
	case narad.Authority:
		return v.hold(r.Envelope())
	case *narad.GraphSnapshot:
		return v.take(snapshot{r})
	case *narad.GraphDelta:
		return v.take(delta{r})
	}
	return Result{Kind: Ignored}
}

// Check says what Apply would say of a record, and changes nothing.
func (v *View) Check(rec narad.Record) Result {
	var scope Scope
	switch r := rec.(type) {
	case *narad.GraphSnapshot:
		scope = scopeOf(r.GraphScope)
	case *narad.GraphDelta:
		scope = scopeOf(r.GraphScope)
	default:
		return Result{Kind: Ignored}
	}
	trial := &View{opt: v.opt, sessionID: v.sessionID, held: v.held, graphs: map[Scope]*shown{}}
	if g := v.graphs[scope]; g != nil {
		trial.graphs[scope] = g.clone()
	}
	return trial.Apply(rec)
}

// clone returns a graph that can be changed beside the one it was made from.
func (g *shown) clone() *shown {
	c := *g
	c.queue.records = slices.Clone(g.queue.records)
	if g.document != nil {
		c.document = narad.NewDocument(g.document.Raw())
	}
	return &c
}

// hold notes authority and applies what waited for it.
func (v *View) hold(e *narad.Event) Result {
	if v.sessionID == "" {
		v.sessionID = e.SessionID
	}
	if e.SessionID != v.sessionID {
		return result(Ignored, OtherSession)
	}
	for _, scope := range []Scope{RunTree(e.RootRunID), WorkflowOf(e.WorkflowID)} {
		place := scope.placeOf(e)
		if scope.ID == "" || place == 0 {
			continue
		}
		v.held[scope] = max(v.held[scope], place)
		v.drain(scope)
	}
	return Result{Kind: Ignored}
}

// record is a graph record of either type.
type record interface {
	session() string
	graph() narad.GraphScope
	bytes() int
	// apply changes a graph whose authority is held.
	apply(g *shown, opt ViewOptions, waited bool) Result
}

func (v *View) take(r record) Result {
	if v.sessionID != "" && r.session() != v.sessionID {
		return result(Rejected, OtherSession)
	}
	scope := scopeOf(r.graph())
	held, known := v.held[scope]
	if !known {
		return result(Rejected, ScopeUnknown)
	}
	g := v.graphs[scope]
	if g == nil {
		g = &shown{}
		v.graphs[scope] = g
	}
	ahead := r.graph().Source > held
	if ahead && v.opt.Strict {
		return g.settle(result(Rejected, CursorAhead))
	}
	if ahead || g.mustWait(r) {
		return g.wait(r)
	}
	answer := g.settle(r.apply(g, v.opt, false))
	v.drain(scope)
	return answer
}

// drain applies what waited and waits no more.
func (v *View) drain(scope Scope) {
	g := v.graphs[scope]
	for g != nil {
		r := g.queue.first()
		if r == nil || r.graph().Source > v.held[scope] || isDelta(r) && g.resync {
			return
		}
		g.queue.drop()
		g.settle(r.apply(g, v.opt, true))
	}
}

func isDelta(r record) bool {
	_, is := r.(delta)
	return is
}

// mustWait reports whether a record that the authority covers must wait all the same:
// a delta does, behind others and for a snapshot.
func (g *shown) mustWait(r record) bool {
	return isDelta(r) && (g.queue.first() != nil || g.resync)
}

// wait keeps a record for later. While a snapshot is needed the newest deltas are
// kept, since the snapshot that comes may stand among them.
func (g *shown) wait(r record) Result {
	if !isDelta(r) {
		g.queue = queue{} // it makes those before it needless
	}
	for !g.queue.fits(r) {
		if !g.resync || !isDelta(g.queue.first()) {
			return g.settle(result(Rejected, BufferFull))
		}
		g.queue.drop()
	}
	g.queue.put(r)
	if g.resync && isDelta(r) {
		return result(Buffered, SnapshotNeeded)
	}
	return result(Buffered, CursorAhead)
}

// settle marks a graph that can be followed no further.
func (g *shown) settle(r Result) Result {
	if r.Kind == Rejected {
		g.resync = true
		g.queue = queue{}
	}
	return r
}

// snapshot is a graph.snapshot to be applied.
type snapshot struct{ *narad.GraphSnapshot }

func (s snapshot) session() string         { return s.SessionID }
func (s snapshot) graph() narad.GraphScope { return s.GraphScope }

func (s snapshot) bytes() int {
	n := len(s.RootNodeID)
	for _, list := range [][]narad.Raw{s.Nodes, s.Edges} {
		for _, value := range list {
			n += len(value)
		}
	}
	return n
}

func (s snapshot) apply(g *shown, opt ViewOptions, _ bool) Result {
	back := g.document != nil && s.Revision <= g.revision
	switch {
	case g.document != nil && s.Revision == g.revision && !g.resync:
		return s.compare(g)
	case back && opt.Strict:
		return result(Rejected, RevisionPassed)
	case back && s.Revision < g.revision:
		return result(Ignored, RevisionPassed) // an answer that was long on its way
	case s.Source < g.cursor:
		return result(Rejected, CursorRegressed)
	}
	g.document = narad.NewDocument(canonicalGraph(s.RootNodeID, s.Nodes, s.Edges))
	g.revision, g.cursor, g.resync = s.Revision, s.Source, false
	return Result{}
}

// compare says whether a snapshot of the present revision says what the graph does.
func (s snapshot) compare(g *shown) Result {
	theirs, err := Canonical(canonicalGraph(s.RootNodeID, s.Nodes, s.Edges))
	if err != nil {
		return result(Rejected, NotAGraph)
	}
	ours, err := Canonical(g.document.Raw())
	if err != nil || string(ours) != string(theirs) {
		return result(Rejected, RevisionConflict)
	}
	return result(Duplicate, RevisionPassed)
}

// delta is a graph.delta to be applied.
type delta struct{ *narad.GraphDelta }

func (d delta) session() string         { return d.SessionID }
func (d delta) graph() narad.GraphScope { return d.GraphScope }
func (d delta) bytes() int              { return len(d.Patch) }

func (d delta) apply(g *shown, opt ViewOptions, waited bool) Result {
	switch {
	case g.document == nil:
		return result(Rejected, SnapshotMissing)
	case d.Revision <= g.revision && !opt.Strict:
		return result(Ignored, RevisionPassed)
	case d.BaseRevision != g.revision || d.Revision != g.revision+1:
		return result(Rejected, RevisionGap)
	case d.Source < g.cursor && !waited:
		return result(Rejected, CursorRegressed)
	}
	if r := g.patch(d.Patch); r.Kind != Applied {
		return r
	}
	g.revision, g.cursor = d.Revision, max(g.cursor, d.Source)
	return Result{}
}

// patch changes a graph, wholly or not at all. A patch that could leave something else
// than a graph is tried on a copy.
func (g *shown) patch(value narad.Raw) Result {
	p, err := narad.ParsePatch(value)
	framed, document := touchesFrame(p), g.document
	if framed {
		document = narad.NewDocument(document.Raw())
	}
	if err == nil {
		err = document.Apply(p)
	}
	var refusal *narad.Error
	if errors.As(err, &refusal) {
		return refusalOf(refusal)
	}
	if framed && !isGraph(document.Raw()) {
		return result(Rejected, NotAGraph)
	}
	g.document = document
	return Result{}
}

// touchesFrame reports whether a patch changes more than what stands in nodes and edges.
func touchesFrame(p narad.Patch) bool {
	return slices.ContainsFunc(p, func(o narad.Operator) bool {
		return o.Op != narad.OpTest && (len(o.Path) == 1 || o.Op == narad.OpMove && len(o.From) == 1)
	})
}

func isGraph(value narad.Raw) bool {
	root, isText := value.Field("rootNodeId").IsString()
	_, nodes := value.Field("nodes").Elements()
	_, edges := value.Field("edges").Elements()
	return isText && root != "" && nodes && edges
}
