package narya

// MessageStart tells that a round of a model begins. A turn has one for each round; how
// many messages were committed is told by message-end alone.
type MessageStart struct {
	TurnID   string
	Provider string
	Model    string
}

// Type returns message-start.
func (*MessageStart) Type() Type { return TypeMessageStart }

func (p *MessageStart) fields(c *coder) {
	c.uuid("turnId", &p.TurnID, required)
	c.text("provider", &p.Provider, required)
	c.text("model", &p.Model, required)
}

// MessageDelta is a piece of what the assistant says or, with the channel reasoning, of
// what it thinks.
type MessageDelta struct {
	TurnID string
	Delta  string
	// ToolCallID and ChannelDisplay stand in old records of other hosts alone: output of a
	// tool is a ToolCallUpdate.
	ToolCallID string
	Channel    Channel // "" is the answer
}

// Type returns message-delta.
func (*MessageDelta) Type() Type { return TypeMessageDelta }

func (p *MessageDelta) fields(c *coder) {
	c.uuid("turnId", &p.TurnID, required)
	c.text("delta", &p.Delta, required)
	c.text("toolCallId", &p.ToolCallID, optional)
	word(c, "channel", &p.Channel, channels, optional)
}

// Channel says what a piece of text is.
type Channel string

// The channels.
const (
	ChannelDisplay   Channel = "display" // retired
	ChannelReasoning Channel = "reasoning"
)

var channels = []Channel{ChannelDisplay, ChannelReasoning}

// MessageEnd tells that a message of the assistant is committed, as the entry that it
// names. A round may have none, or several.
type MessageEnd struct {
	TurnID  string
	EntryID string
}

// Type returns message-end.
func (*MessageEnd) Type() Type { return TypeMessageEnd }

func (p *MessageEnd) fields(c *coder) {
	c.uuid("turnId", &p.TurnID, required)
	c.uuid("entryId", &p.EntryID, required)
}

// EntryAppended tells that an entry of the transcript is committed. It is told once for
// each entry.
type EntryAppended struct {
	EntryID string
	Kind    EntryKind
	TurnID  string // "" for an entry of no turn
}

// Type returns entry-appended.
func (*EntryAppended) Type() Type { return TypeEntryAppended }

func (p *EntryAppended) fields(c *coder) {
	c.uuid("entryId", &p.EntryID, required)
	word(c, "kind", &p.Kind, entryKinds, required)
	c.uuid("turnId", &p.TurnID, optional)
}

// EntryKind is what an entry of the transcript is.
type EntryKind string

// The kinds of entries.
const (
	EntryUserMessage      EntryKind = "user-message"
	EntryAssistantMessage EntryKind = "assistant-message"
	EntryToolCall         EntryKind = "tool-call"
	EntryToolResult       EntryKind = "tool-result"
	EntrySummary          EntryKind = "summary"
	EntrySystem           EntryKind = "system"
	EntryIntercom         EntryKind = "intercom"
	EntryMonitorEvent     EntryKind = "monitor-event"
)

var entryKinds = []EntryKind{
	EntryUserMessage, EntryAssistantMessage, EntryToolCall, EntryToolResult,
	EntrySummary, EntrySystem, EntryIntercom, EntryMonitorEvent,
}

// QueuedInputWithdrawn tells that a message that waited was taken back.
type QueuedInputWithdrawn struct{ EntryID string }

// Type returns queued-input-withdrawn.
func (*QueuedInputWithdrawn) Type() Type { return TypeQueuedInputWithdrawn }

func (p *QueuedInputWithdrawn) fields(c *coder) { c.uuid("entryId", &p.EntryID, required) }
