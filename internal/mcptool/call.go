package mcptool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// Codes of calls that have failed.
const (
	codeUnavailable = "mcp_unavailable" // no server could be started: nothing has run
	codeToolError   = "tool_error"      // the tool says so
	codeRefused     = "mcp_refused"     // the server refused the call
)

// callKey is the field of a call's _meta with the host's id of it.
const callKey = "mahati.host/toolCallId"

// call makes one call.
func (s *Server) call(ctx context.Context, call client.ToolCall) (narad.Raw, error) {
	if _, isObject := call.Args.Members(); !isObject {
		return nil, &client.ToolError{Code: codeRefused, Message: "The arguments of an MCP tool are an object."}
	}
	r, err := s.serving(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &client.ToolError{Code: codeUnavailable, Message: "The MCP server cannot be started."}
	}
	defer r.tap.forget(call.ToolCallID)
	result, err := r.session.CallTool(ctx, &mcp.CallToolParams{
		Meta: mcp.Meta{callKey: call.ToolCallID}, Name: call.ToolName, Arguments: json.RawMessage(call.Args),
	})
	var refused *jsonrpc.Error
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &refused) && !r.tap.broken():
		return nil, &client.ToolError{Code: codeRefused, Message: short(refused.Message)}
	case err != nil:
		return nil, &client.ToolError{
			Code: string(client.CodeOutcomeUnknown), Message: "The MCP server ended while the tool ran; nobody knows whether it took effect.",
		}
	case result.IsError:
		return nil, &client.ToolError{Code: codeToolError, Message: short(text(result.Content))}
	}
	if raw := r.tap.result(call.ToolCallID); raw != nil {
		return raw, nil
	}
	return nil, errors.New("the result of the call is not known")
}

// text joins the texts of a result.
func text(content []mcp.Content) string {
	var parts []string
	for _, c := range content {
		if t, ok := c.(*mcp.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// short bounds what a server says of a failure.
func short(s string) string {
	const most = 8 << 10
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	s = s[:most]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "..."
}
