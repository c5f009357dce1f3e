package narad

// MessageUserRecorded records what a person said (specification §9.2).
type MessageUserRecorded struct {
	Event
	MessageID     string
	MessageScope  Scope
	Content       string
	AttachmentIDs []string
}

// Type returns message.user.recorded.
func (*MessageUserRecorded) Type() Type { return TypeMessageUserRecorded }

func (m *MessageUserRecorded) fields(c *coder) {
	m.envelope(c, laneSession)
	c.id("messageId", &m.MessageID, required)
	word(c, "messageScope", &m.MessageScope, scopes, required)
	m.scoped(c, m.MessageScope)
	c.text("content", &m.Content, required)
	c.words("attachmentIds", &m.AttachmentIDs, words{})
}

// Role says who speaks in a message.
type Role string

// The roles. A streamed message is never the user's.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleSystem    Role = "system"
)

var streamedRoles = []Role{RoleAssistant, RoleSystem}

// MessageTextStarted begins a streamed message.
type MessageTextStarted struct {
	Event
	MessageID    string
	Role         Role
	MessageScope Scope
}

// Type returns message.text.started.
func (*MessageTextStarted) Type() Type { return TypeMessageTextStarted }

func (m *MessageTextStarted) fields(c *coder) {
	m.envelope(c, laneSession)
	c.id("messageId", &m.MessageID, required)
	word(c, "role", &m.Role, streamedRoles, required)
	word(c, "messageScope", &m.MessageScope, scopes, required)
	m.scoped(c, m.MessageScope)
}

// MessageTextDelta adds text to a streamed message.
type MessageTextDelta struct {
	Event
	MessageID string
	Delta     string
}

// Type returns message.text.delta.
func (*MessageTextDelta) Type() Type { return TypeMessageTextDelta }

func (m *MessageTextDelta) fields(c *coder) {
	m.envelope(c, laneSession)
	c.id("messageId", &m.MessageID, required)
	c.text("delta", &m.Delta, required)
}

// MessageTextCompleted ends a streamed message.
type MessageTextCompleted struct {
	Event
	MessageID string
}

// Type returns message.text.completed.
func (*MessageTextCompleted) Type() Type { return TypeMessageTextCompleted }

func (m *MessageTextCompleted) fields(c *coder) {
	m.envelope(c, laneSession)
	c.id("messageId", &m.MessageID, required)
}

// MessageRedacted replaces what is shown of a message and nothing else (§9.4).
type MessageRedacted struct {
	Event
	MessageID string
	Reason    string
	// DisplayReplacement is shown instead; nil shows nothing.
	DisplayReplacement *string
}

// Type returns message.redacted.
func (*MessageRedacted) Type() Type { return TypeMessageRedacted }

func (m *MessageRedacted) fields(c *coder) {
	m.envelope(c, laneSession)
	c.id("messageId", &m.MessageID, required)
	c.id("reason", &m.Reason, required)
	c.nullableText("displayReplacement", &m.DisplayReplacement)
}

// ReasoningStarted begins a stretch of reasoning.
type ReasoningStarted struct {
	Event
	ReasoningID string
	MessageID   string
}

// Type returns reasoning.started.
func (*ReasoningStarted) Type() Type { return TypeReasoningStarted }

func (r *ReasoningStarted) fields(c *coder) {
	r.envelope(c, laneSession)
	c.id("reasoningId", &r.ReasoningID, required)
	c.id("messageId", &r.MessageID, optional)
}

// ReasoningDelta adds text to a stretch of reasoning.
type ReasoningDelta struct {
	Event
	ReasoningID string
	MessageID   string
	Delta       string
}

// Type returns reasoning.delta.
func (*ReasoningDelta) Type() Type { return TypeReasoningDelta }

func (r *ReasoningDelta) fields(c *coder) {
	r.envelope(c, laneSession)
	c.id("reasoningId", &r.ReasoningID, required)
	c.id("messageId", &r.MessageID, optional)
	c.text("delta", &r.Delta, required)
}

// ReasoningCompleted ends a stretch of reasoning.
type ReasoningCompleted struct {
	Event
	ReasoningID string
	MessageID   string
}

// Type returns reasoning.completed.
func (*ReasoningCompleted) Type() Type { return TypeReasoningCompleted }

func (r *ReasoningCompleted) fields(c *coder) {
	r.envelope(c, laneSession)
	c.id("reasoningId", &r.ReasoningID, required)
	c.id("messageId", &r.MessageID, optional)
}
