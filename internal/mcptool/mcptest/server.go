// Package mcptest is an MCP server for tests: a test binary becomes it when its first
// argument is [Arg], if its TestMain calls [Main] first. [Command] returns the command line.
// It is made with the SDK, speaks on standard input and output, and has tools that do what
// their names say. One goroutine reads; each call has one. It is no server to learn from.
package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Arg is the first argument of a test binary that is to be the server.
const Arg = "mcp-test-server"

// Command returns the command line of the server. What runs is appended to the file, a line
// a call.
func Command(file string) []string {
	exe, err := os.Executable()
	if err != nil {
		panic("mcptest: find the test binary: " + err.Error())
	}
	return []string{"/usr/bin/env", "GORACE=atexit_sleep_ms=0", exe, Arg, file}
}

// Main becomes the server, and does not return, if the process was started by [Command].
// Its tools are:
//
//	echo      gives its arguments back, as text and as structured content
//	fails     says that it failed, with the text "no luck"
//	refuses   is refused by the server
//	dies      notes that it ran, and ends the server with status 3
//	hangs     notes that it ran, and waits for ever
//	token     says whether it sees the executor's token
func Main() {
	if len(os.Args) < 3 || os.Args[1] != Arg {
		return
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	for name, act := range map[string]func(context.Context, json.RawMessage) (*mcp.CallToolResult, error){
		"echo": func(_ context.Context, args json.RawMessage) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(args)}}, StructuredContent: args}, nil
		},
		"fails": func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "no luck"}}}, nil
		},
		"refuses": func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
			return nil, fmt.Errorf("not today")
		},
		"dies": func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
			os.Exit(3)
			return nil, nil
		},
		"hangs": func(ctx context.Context, _ json.RawMessage) (*mcp.CallToolResult, error) {
			<-time.After(time.Hour)
			return nil, ctx.Err()
		},
		"token": func(context.Context, json.RawMessage) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "token=" + os.Getenv("MAHATI_TOKEN")}}}, nil
		},
	} {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				note(name)
				return act(ctx, r.Params.Arguments)
			})
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(0)
}

// note writes down that a tool runs.
func note(name string) {
	file, err := os.OpenFile(os.Args[2], os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(file, "%s %d\n", name, os.Getpid())
		_ = file.Close()
	}
	if err != nil {
		panic("mcptest: " + err.Error())
	}
}
