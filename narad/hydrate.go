package narad

import "github.com/go-json-experiment/json/jsontext"

// MessagesSnapshot is a transcript up to a place in the authority (specification
// §9.3). It is no fact and moves no cursor.
type MessagesSnapshot struct {
	Timestamp                    string
	SnapshotID                   string
	SessionID                    string
	CoversThroughSessionSequence int64
	// Messages is the array as it came; Items reads it.
	Messages []Raw
	// Extra holds the fields that this package does not know.
	Extra []Member
}

// Type returns messages.snapshot.
func (*MessagesSnapshot) Type() Type { return TypeMessagesSnapshot }

func (m *MessagesSnapshot) fields(c *coder) {
	c.forbid(CodeInvalidHydrate, "a hydrate record carries no authority fields", authorityFields...)
	timestamp(c, "timestamp", &m.Timestamp, required)
	c.id("snapshotId", &m.SnapshotID, required)
	c.id("sessionId", &m.SessionID, required)
	c.count("coversThroughSessionSequence", &m.CoversThroughSessionSequence, 0, required)
	c.values("messages", &m.Messages)
}

// SnapshotMessage is one message of a [MessagesSnapshot] (R29).
type SnapshotMessage struct {
	MessageID       string
	Role            Role
	Content         string
	Completed       bool
	MessageScope    Scope
	SessionSequence int64
	Timestamp       string
	RootRunID       string
	RunID           string
	AttachmentIDs   []string
	Redacted        bool
}

// Items reads the messages leniently, since no document defines their form: what
// is no object, or has no id, is left out, and a field of a wrong form is absent.
func (m *MessagesSnapshot) Items() []SnapshotMessage {
	items := make([]SnapshotMessage, 0, len(m.Messages))
	for _, raw := range m.Messages {
		in, ok := membersOf(string(raw))
		if !ok {
			continue
		}
		c := &coder{in: in}
		item := SnapshotMessage{Role: RoleAssistant, Completed: c.take("completed") != "false"}
		item.fields(c)
		if item.MessageID != "" {
			items = append(items, item)
		}
	}
	return items
}

func (s *SnapshotMessage) fields(c *coder) {
	role := string(s.Role)
	c.id("messageId", &s.MessageID, optional)
	c.id("role", &role, optional)
	c.text("content", &s.Content, optional)
	word(c, "messageScope", &s.MessageScope, scopes, optional)
	c.count("sessionSequence", &s.SessionSequence, 1, optional)
	c.text("timestamp", &s.Timestamp, optional)
	c.id("rootRunId", &s.RootRunID, optional)
	c.id("runId", &s.RunID, optional)
	c.words("attachmentIds", &s.AttachmentIDs, words{})
	s.Role = Role(role)
	s.Redacted = c.take("redacted") == "true"
}

// GraphScope is what a graph shows: a run tree, or (reserved) a workflow.
type GraphScope struct {
	Scope     Scope
	RootRunID string
	// WorkflowID is set for workflow scope only.
	WorkflowID string
	// Source is the place in the authority from which the graph was derived.
	Source int64
	// SourceID repeats the root run or the workflow, if the record does.
	SourceID string
}

// GraphSchemaVersion names the form of the nodes and edges.
const GraphSchemaVersion = "narad.graph/v1"

var graphVersions = []string{GraphSchemaVersion}

// GraphSnapshot is a whole graph (§9.7).
type GraphSnapshot struct {
	Timestamp string
	SessionID string
	GraphScope
	Revision   int64
	RootNodeID string
	Nodes      []Raw
	Edges      []Raw
	Extra      []Member
}

// Type returns graph.snapshot.
func (*GraphSnapshot) Type() Type { return TypeGraphSnapshot }

func (g *GraphSnapshot) fields(c *coder) {
	graphEnvelope(c, &g.Timestamp, &g.SessionID, &g.GraphScope)
	c.count("revision", &g.Revision, 1, required)
	c.id("rootNodeId", &g.RootNodeID, required)
	c.values("nodes", &g.Nodes)
	c.values("edges", &g.Edges)
}

// GraphDelta changes a graph by a patch (§9.7).
type GraphDelta struct {
	Timestamp string
	SessionID string
	GraphScope
	BaseRevision int64
	Revision     int64
	Patch        Raw
	Extra        []Member
}

// Type returns graph.delta.
func (*GraphDelta) Type() Type { return TypeGraphDelta }

func (g *GraphDelta) fields(c *coder) {
	graphEnvelope(c, &g.Timestamp, &g.SessionID, &g.GraphScope)
	c.count("baseRevision", &g.BaseRevision, 0, required)
	c.count("revision", &g.Revision, 1, required)
	next(c, g.BaseRevision, g.Revision)
	c.patch("patch", &g.Patch, required)
}

func graphEnvelope(c *coder, at, session *string, s *GraphScope) {
	c.forbid(CodeInvalidHydrate, "a hydrate record carries no authority order",
		"eventId", "sessionSequence", "workflowSequence", "sequence", "runId")
	timestamp(c, "timestamp", at, required)
	c.id("sessionId", session, required)
	word(c, "scope", &s.Scope, interruptScopes, required)
	version := GraphSchemaVersion
	word(c, "graphSchemaVersion", &version, graphVersions, required)
	s.visit(c)
}

func (s *GraphScope) visit(c *coder) {
	if s.Scope == ScopeWorkflow {
		c.forbid(c.code, "a workflow's graph has no run", "rootRunId", "sourceRunCursor")
		c.id("workflowId", &s.WorkflowID, required)
		s.source(c, "sourceWorkflowCursor", "workflowId", c.host())
		return
	}
	c.forbid(c.code, "a run tree's graph has no workflow", "workflowId")
	c.id("rootRunId", &s.RootRunID, required)
	s.source(c, "sourceRunCursor", "rootRunId", true)
}

// source visits the cursor of the authority behind the graph.
func (s *GraphScope) source(c *coder, name, id string, demanded bool) {
	if c.writes(name) {
		if c.mode == schema {
			c.describes(name, formOfSource(id), required)
			return
		}
		s.sameScope(c, name, id)
		inner := c.object(name, nil)
		inner.id(id, &s.SourceID, optional)
		inner.count("sequence", &s.Source, 1, required)
		c.close(inner)
		return
	}
	inner, ok := c.inside(pointer(c.path, name), c.take(name))
	if !ok {
		if demanded {
			c.fail(name, "an object is required")
		}
		return
	}
	inner.id(id, &s.SourceID, optional)
	inner.count("sequence", &s.Source, 1, required)
	if c.strict && len(inner.rest()) > 0 {
		c.fail(name, "a source cursor has no further fields")
	}
	if demanded && c.err == nil && inner.err != nil {
		c.err = inner.err
	}
	s.sameScope(c, name, id)
}

// sameScope demands of a host that the cursor names what the graph shows.
func (s *GraphScope) sameScope(c *coder, name, id string) {
	shown := s.RootRunID
	if s.Scope == ScopeWorkflow {
		shown = s.WorkflowID
	}
	if c.err == nil && c.host() && s.SourceID != "" && s.SourceID != shown {
		c.err = &Error{c.code, pointer(pointer(c.path, name), id), "the cursor names what the graph shows"}
	}
}

// values visits a required array of any values.
func (c *coder) values(name string, p *[]Raw) {
	if c.mode == decoding {
		list, ok := elements(c.take(name))
		if !ok {
			c.failAs(c.code, name, "an array is required")
		}
		*p = raws(list)
		return
	}
	c.writes(name)
	if c.describes(name, `{"type":"array"}`, required) {
		return
	}
	c.put(name)
	c.free = true
	c.out = append(c.out, '[')
	for i, item := range *p {
		if !jsontext.Value(item).IsValid() {
			c.failItem(name, i, "the value must be strict JSON")
			return
		}
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = appendRaw(c.out, item)
	}
	c.out = append(c.out, ']')
}
