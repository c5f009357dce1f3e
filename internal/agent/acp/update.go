package acp

import (
	"encoding/json"
	"strings"

	wire "github.com/coder/acp-go-sdk"
)

// The shapes of updates are our own: the SDK's turn numbers of free-form values into
// floats, refuse kinds of updates that they do not know, and lose halves of characters.

// notice is the content of a session/update.
type notice struct {
	SessionID string `json:"sessionId"`
	Update    update `json:"update"`
}

// request is the content of a session/request_permission.
type request struct {
	SessionID string                  `json:"sessionId"`
	Options   []wire.PermissionOption `json:"options"`
	ToolCall  update                  `json:"toolCall"`
}

// update is any session update: what is not of its kind is absent.
type update struct {
	Kind string `json:"sessionUpdate"`
	Meta meta   `json:"_meta"`

	// Content is a block of a chunk, or the list of a tool call.
	Content   json.RawMessage `json:"content"`
	MessageID string          `json:"messageId"`

	ToolCallID string          `json:"toolCallId"`
	Title      text            `json:"title"`
	ToolKind   string          `json:"kind"`
	Status     string          `json:"status"`
	Locations  []location      `json:"locations"`
	RawInput   json.RawMessage `json:"rawInput"`
	RawOutput  json.RawMessage `json:"rawOutput"`

	Entries []entry `json:"entries"`

	// ConfigOptions are all settings of the session.
	ConfigOptions json.RawMessage `json:"configOptions"`

	// Size is the context window in tokens, Cost what the session has cost so far.
	Size *int64 `json:"size"`
	Cost *cost  `json:"cost"`
}

type cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

type location struct {
	Path string `json:"path"`
}

// entry is one step of a plan.
type entry struct {
	Content text   `json:"content"`
	Status  string `json:"status"`
}

// Kinds of updates.
const (
	kindMessage    = "agent_message_chunk"
	kindThought    = "agent_thought_chunk"
	kindTool       = "tool_call"
	kindToolUpdate = "tool_call_update"
	kindPlan       = "plan"
	kindUsage      = "usage_update"
	kindSettings   = "config_option_update"
)

// meta is what agents add to updates that the protocol has no field for: the name of a
// tool, and the tool call below which a delegate speaks.
type meta struct {
	ToolName         string
	ParentToolCallID string
}

// UnmarshalJSON reads the fields of those agents that write any. Whatever else stands
// there is not ours.
func (m *meta) UnmarshalJSON(data []byte) error {
	var known struct {
		ToolName         any `json:"toolName"`
		ParentToolCallID any `json:"parentToolCallId"`
		ClaudeCode       struct {
			ToolName        any `json:"toolName"`
			ParentToolUseID any `json:"parentToolUseId"`
		} `json:"claudeCode"`
	}
	_ = json.Unmarshal(data, &known)
	m.ToolName = firstText(known.ToolName, known.ClaudeCode.ToolName)
	m.ParentToolCallID = firstText(known.ParentToolCallID, known.ClaudeCode.ParentToolUseID)
	return nil
}

func firstText(values ...any) string {
	for _, v := range values {
		if s, ok := v.(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// paths returns the files that a tool call names.
func (u *update) paths() []string {
	const most = 64
	var list []string
	for _, l := range u.Locations {
		if l.Path != "" && len(l.Path) < 4<<10 && len(list) < most {
			list = append(list, strings.ToValidUTF8(l.Path, "\uFFFD"))
		}
	}
	return list
}

// absent reports whether a value is not there.
func absent(v json.RawMessage) bool { return len(v) == 0 || string(v) == "null" }

// blank reports whether a value says nothing, as the arguments of a call do whose text is
// still being written. Some agents put the directory there before anything else.
func blank(v json.RawMessage) bool {
	if absent(v) {
		return true
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(v, &members) != nil {
		return string(v) == `""`
	}
	_, directory := members["cwd"]
	return len(members) == 0 || len(members) == 1 && directory
}
