package narad

// StateSnapshot holds a whole scoped state (specification §9.6). Kind is
// state.snapshot or ui.state.snapshot.
type StateSnapshot struct {
	Event
	Kind     Type
	Scope    Scope
	Revision int64
	State    Raw
}

// Type returns s.Kind.
func (s *StateSnapshot) Type() Type { return s.Kind }

func (s *StateSnapshot) fields(c *coder) {
	s.envelope(c, laneSession)
	word(c, "scope", &s.Scope, scopes, required)
	s.scoped(c, s.Scope)
	c.count("revision", &s.Revision, 1, required)
	c.value("state", &s.State, required)
}

// StateDelta changes a scoped state by a patch. Kind is state.delta or
// ui.state.delta. Revision is BaseRevision + 1 (§9.6).
type StateDelta struct {
	Event
	Kind         Type
	Scope        Scope
	BaseRevision int64
	Revision     int64
	Patch        Raw
}

// Type returns s.Kind.
func (s *StateDelta) Type() Type { return s.Kind }

func (s *StateDelta) fields(c *coder) {
	s.envelope(c, laneSession)
	word(c, "scope", &s.Scope, scopes, required)
	s.scoped(c, s.Scope)
	c.count("baseRevision", &s.BaseRevision, 0, required)
	c.count("revision", &s.Revision, 1, required)
	next(c, s.BaseRevision, s.Revision)
	c.patch("patch", &s.Patch, required)
}

// next demands of a host that a delta leads to the next revision.
func next(c *coder, base, revision int64) {
	if c.err == nil && c.host() && c.mode != schema && revision != base+1 {
		c.fail("revision", "baseRevision + 1 is required")
	}
}

// StateCompacted says that the facts of a scoped state up to a sequence now stand
// in its snapshot of that revision (§9.6).
type StateCompacted struct {
	Event
	Scope                        Scope
	CoversThroughSessionSequence int64
	SnapshotRevision             int64
}

// Type returns state.compacted.
func (*StateCompacted) Type() Type { return TypeStateCompacted }

func (s *StateCompacted) fields(c *coder) {
	s.envelope(c, laneSession)
	word(c, "scope", &s.Scope, scopes, required)
	s.scoped(c, s.Scope)
	c.count("coversThroughSessionSequence", &s.CoversThroughSessionSequence, 0, required)
	c.count("snapshotRevision", &s.SnapshotRevision, 1, required)
}

// ViewOpened opens a view (§9.6).
type ViewOpened struct {
	Event
	ViewID string
	Model  Raw
}

// Type returns view.opened.
func (*ViewOpened) Type() Type { return TypeViewOpened }

func (v *ViewOpened) fields(c *coder) {
	v.envelope(c, laneSession)
	c.id("viewId", &v.ViewID, required)
	c.value("model", &v.Model, optional)
	asideUpdate(c)
}

// asideUpdate checks the fields of an update in a view's other events.
func asideUpdate(c *coder) {
	c.aside("operation", oneOf(operations), formOperation, func(value string) bool {
		return is(value, string(OperationReplace)) || is(value, string(OperationPatch))
	})
	c.aside("patch", "an array of operations is required", formPatch, func(value string) bool {
		_, err := parsePatch(value, "", true)
		return err == nil
	})
}

// Operation says how a view is updated.
type Operation string

// The operations.
const (
	OperationReplace Operation = "replace"
	OperationPatch   Operation = "patch"
)

var operations = []Operation{OperationReplace, OperationPatch}

// ViewUpdated changes an open view: by a new model, or by a patch.
type ViewUpdated struct {
	Event
	ViewID    string
	Operation Operation
	Model     Raw
	Patch     Raw
}

// Type returns view.updated.
func (*ViewUpdated) Type() Type { return TypeViewUpdated }

func (v *ViewUpdated) fields(c *coder) {
	v.envelope(c, laneSession)
	c.id("viewId", &v.ViewID, required)
	word(c, "operation", &v.Operation, operations, required)
	c.value("model", &v.Model, need(v.Operation == OperationReplace))
	c.patch("patch", &v.Patch, need(v.Operation == OperationPatch))
}

// ViewClosed closes a view.
type ViewClosed struct {
	Event
	ViewID string
}

// Type returns view.closed.
func (*ViewClosed) Type() Type { return TypeViewClosed }

func (v *ViewClosed) fields(c *coder) {
	v.envelope(c, laneSession)
	c.id("viewId", &v.ViewID, required)
	asideUpdate(c)
}
