package narad

// Custom is a named value of an extension (specification §9.9). Kind is one of
// session.custom, workflow.custom, run.custom, node.custom. Core reducers ignore
// names that they do not know.
type Custom struct {
	Event
	Kind   Type
	NodeID string
	// Name matches [a-z0-9]+(\.[a-z0-9]+)+ (R6).
	Name  string
	Value Raw
}

// Type returns c.Kind.
func (c *Custom) Type() Type { return c.Kind }

func (c *Custom) fields(v *coder) {
	c.envelope(v, extensionLane(c.Kind))
	c.extensionScope(v, c.Kind, &c.NodeID)
	v.id("name", &c.Name, required)
	if !v.describes("name", formName, required) && v.err == nil && v.host() && !isCustomName(c.Name) {
		v.fail("name", "lower-case letters and digits in parts joined by dots are required")
	}
	v.value("value", &c.Value, required)
}

// Opaque is an encoded payload of an extension, which must never trigger an
// execution (§9.9, §12). Kind is one of session.raw, workflow.raw, run.raw,
// node.raw.
type Opaque struct {
	Event
	Kind        Type
	NodeID      string
	ContentType string
	Payload     string
}

// Type returns o.Kind.
func (o *Opaque) Type() Type { return o.Kind }

func (o *Opaque) fields(c *coder) {
	o.envelope(c, extensionLane(o.Kind))
	o.extensionScope(c, o.Kind, &o.NodeID)
	c.id("contentType", &o.ContentType, required)
	c.text("payload", &o.Payload, required)
}

func extensionLane(t Type) lane {
	if t == TypeWorkflowCustom || t == TypeWorkflowRaw {
		return laneWorkflow
	}
	return laneSession
}

// extensionScope visits nodeId and demands of a host the ids of the event's scope.
func (e *Event) extensionScope(c *coder, t Type, nodeID *string) {
	host := c.host()
	node := t == TypeNodeCustom || t == TypeNodeRaw
	if host && node {
		e.scoped(c, ScopeWorkflow)
	}
	if t == TypeRunCustom || t == TypeRunRaw {
		e.scoped(c, ScopeRun)
	}
	c.id("nodeId", nodeID, need(host && node))
}

// isCustomName reports whether s is two or more parts of lower-case letters and
// digits, joined by dots.
func isCustomName(s string) bool {
	dots, part := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.' && part > 0:
			dots, part = dots+1, 0
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			part++
		default:
			return false
		}
	}
	return dots > 0 && part > 0
}

// Tracing is an event of the trace or the debug profile: an envelope whose content
// the specification leaves open, kept in Extra. Kind is one of trace.span.started,
// trace.span.completed, trace.event, debug.log, debug.snapshot. It never affects a
// lifecycle (§12).
type Tracing struct {
	Event
	Kind Type
}

// Type returns t.Kind.
func (t *Tracing) Type() Type { return t.Kind }

func (t *Tracing) fields(c *coder) { t.envelope(c, laneSession) }

// Skipped is an authority event of a profile that was not negotiated: it takes its
// place in the orderings and tells nothing else (specification §2.1).
type Skipped struct {
	Event
	Kind Type
}

// Type returns s.Kind.
func (s *Skipped) Type() Type { return s.Kind }

func (s *Skipped) fields(c *coder) { s.envelope(c, laneSession) }
