package narad

// Revision is a watch event: something in its scope changed (specification §8).
// It carries no authority. Kind says which scope, and so which ids are there.
type Revision struct {
	Kind      Type
	EventID   string
	Timestamp string
	// SessionID is absent only from workspace.revision.
	SessionID   string
	RootRunID   string
	RunID       string
	WorkflowID  string
	NodeID      string
	WorkspaceID string
	Revision    int64
	// Cursor is the authority that the event covers, if it says so.
	Cursor *Cursor
	// Extra holds the fields that this package does not know.
	Extra []Member

	print uint64
}

// Cursor is a typed place in one of the three orderings.
type Cursor struct {
	// Kind is session, workflow or run.
	Kind Scope
	// ID names the workflow or the root run; a session cursor has none.
	ID string
	// Sequence is the place in that ordering.
	Sequence int64
	// Extra holds the fields that this package does not know.
	Extra []Member
}

// Type returns r.Kind.
func (r *Revision) Type() Type { return r.Kind }

// Fingerprint is what [Event.Fingerprint] is.
func (r *Revision) Fingerprint() uint64 { return r.print }

func (r *Revision) fields(c *coder) {
	c.id("eventId", &r.EventID, required)
	timestamp(c, "timestamp", &r.Timestamp, required)
	switch r.Kind {
	case TypeSessionRevision:
		c.id("sessionId", &r.SessionID, required)
	case TypeRunRevision:
		c.id("sessionId", &r.SessionID, required)
		c.id("rootRunId", &r.RootRunID, required)
		c.id("runId", &r.RunID, required)
	case TypeWorkflowRevision, TypeNodeRevision:
		c.id("sessionId", &r.SessionID, required)
		c.id("workflowId", &r.WorkflowID, required)
		if r.Kind == TypeNodeRevision {
			c.id("nodeId", &r.NodeID, required)
		}
		c.asideIDs("nodeId")
	case TypeWorkspaceRevision:
		c.id("workspaceId", &r.WorkspaceID, required)
		c.asideIDs("sessionId")
	default:
		c.id("workspaceId", &r.WorkspaceID, required)
		c.id("sessionId", &r.SessionID, required)
	}
	c.count("revision", &r.Revision, 1, required)
	cursor(c, "cursor", &r.Cursor)
}

// cursorFields are the names of a cursor's id and place, by its kind.
var cursorFields = map[Scope][2]string{
	ScopeSession:  {"", "sessionSequence"},
	ScopeWorkflow: {"workflowId", "workflowSequence"},
	ScopeRun:      {"rootRunId", "sequence"},
}

// cursor visits an optional cursor. A client goes on without one it cannot read.
func cursor(c *coder, name string, p **Cursor) {
	if c.writes(name) {
		if c.describes(name, formCursor, optional) || *p == nil {
			return
		}
		inner := c.object(name, (*p).Extra)
		(*p).fields(inner)
		c.close(inner)
		return
	}
	value := c.take(name)
	if value == "" {
		return
	}
	inner, ok := c.inside(pointer(c.path, name), value)
	cur := new(Cursor)
	cur.fields(inner)
	switch {
	case ok && inner.err == nil:
		*p = cur
	case !ok:
		c.unusable(name, "an object is required", optional)
	case c.strict && c.err == nil:
		c.err = inner.err
	}
}

func (u *Cursor) fields(c *coder) {
	word(c, "kind", &u.Kind, scopes, required)
	names := cursorFields[u.Kind]
	if names[0] != "" {
		c.id(names[0], &u.ID, required)
	}
	c.count(names[1], &u.Sequence, 1, required)
	if c.mode == decoding {
		u.Extra = c.rest()
	}
}
