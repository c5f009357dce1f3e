package acp

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"

	wire "github.com/coder/acp-go-sdk"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// Codes of errors for what an executor refuses.
const (
	codeNotFound = -32002
	codeInternal = -32603
)

// offers reports whether the agent was offered a method of the client.
func (o *Options) offers(method string) bool {
	switch method {
	case wire.ClientMethodFsReadTextFile:
		return o.ReadFiles
	case wire.ClientMethodFsWriteTextFile:
		return o.WriteFiles
	case wire.ClientMethodTerminalCreate, wire.ClientMethodTerminalOutput, wire.ClientMethodTerminalWaitForExit,
		wire.ClientMethodTerminalKill, wire.ClientMethodTerminalRelease:
		return o.Terminals
	}
	return false
}

// capabilities is what the agent is told of the client.
func (o *Options) capabilities() wire.ClientCapabilities {
	return wire.ClientCapabilities{
		Fs:       wire.FileSystemCapabilities{ReadTextFile: o.ReadFiles, WriteTextFile: o.WriteFiles},
		Terminal: o.Terminals,
	}
}

// clientRequest hands a request for a file or a terminal to the run's executor. The call is
// recorded before the next line is read; its end is waited for aside.
func (p *peer) clientRequest(id json.RawMessage, method string, params json.RawMessage) error {
	t := p.currentTurn()
	call, err := clientCall(method, params, p.child.dir)
	switch {
	case err != nil:
		_ = p.conn.refuse(id, codeBadParams, "invalid params")
		return err
	case t == nil || call.session != p.sessionID:
		_ = p.conn.refuse(id, codeInternal, "there is no turn that this could belong to")
		return nil
	}
	t.clientCall(slices.Clone(id), method, call.tool)
	return nil
}

// called is a request as a tool call.
type called struct {
	session string
	tool    agent.Tool
}

// clientParams are the parameters of all the methods. What is absent is not told on.
type clientParams struct {
	SessionID  string            `json:"sessionId,omitempty"`
	Path       string            `json:"path,omitempty"`
	Line       *int64            `json:"line,omitempty"`
	Limit      *int64            `json:"limit,omitempty"`
	Content    json.RawMessage   `json:"content,omitempty"`
	TerminalID string            `json:"terminalId,omitempty"`
	Command    string            `json:"command,omitempty"`
	Args       []string          `json:"args,omitempty"`
	Env        []json.RawMessage `json:"env,omitempty"`
	Cwd        string            `json:"cwd,omitempty"`
	Output     *int64            `json:"outputByteLimit,omitempty"`
}

var errNoCall = errors.New("a request for a file or a terminal cannot be read")

// clientCall reads a request. A path in the agent's directory becomes one relative to it:
// the executor's root may lie elsewhere.
func clientCall(method string, params json.RawMessage, dir string) (called, error) {
	var a clientParams
	if err := json.Unmarshal(params, &a); err != nil || a.SessionID == "" {
		return called{}, errNoCall
	}
	c := called{session: a.SessionID}
	a.SessionID, a.Path, a.Cwd = "", within(dir, a.Path), within(dir, a.Cwd)
	c.tool = agent.Tool{Name: method, Kind: string(wire.ToolKindOther), Title: label(a.TerminalID, maxTitle)}
	switch method {
	case wire.ClientMethodFsReadTextFile:
		c.tool.Kind = string(wire.ToolKindRead)
	case wire.ClientMethodFsWriteTextFile:
		c.tool.Kind = string(wire.ToolKindEdit)
	case wire.ClientMethodTerminalCreate:
		c.tool.Kind, c.tool.Title = string(wire.ToolKindExecute), label(a.Command, maxTitle)
	}
	if a.Path != "" {
		c.tool.Title, c.tool.Paths = label(a.Path, maxTitle), []string{a.Path}
	}
	c.tool.Args = encode(a)
	return c, nil
}

func within(dir, path string) string {
	if !filepath.IsAbs(path) {
		return path
	}
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// clientCall calls a tool of the executor, and answers the agent with what comes of it.
func (t *turn) clientCall(id json.RawMessage, method string, tool agent.Tool) {
	if !t.beginCall() {
		_ = t.peer.conn.refuse(id, codeInternal, "too many requests are open")
		return
	}
	t.endMessage(t.root)
	told := make(chan struct{})
	t.asks.Go(func() {
		defer t.endCall()
		t.answerCall(id, method, tool, func() { close(told) })
	})
	select {
	case <-told:
	case <-t.asking.Done():
	}
}

func (t *turn) beginCall() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over != "" || t.calls >= maxOpen {
		return false
	}
	t.calls++
	return true
}

func (t *turn) endCall() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls--
}

// answerCall makes the call, for as long as it takes: a wait for the end of a terminal is
// asked again while that runs. told is called when the first call is recorded, or refused.
func (t *turn) answerCall(id json.RawMessage, method string, tool agent.Tool, told func()) {
	first := true
	tell := func(string) {
		if first {
			first = false
			told()
		}
	}
	defer tell("")
	for {
		r, err := t.root.h.CallClient(t.asking, tool, tell)
		if err != nil {
			t.refuseCall(id, err)
			return
		}
		if string(r.Response.Field("running")) == "true" && method == wire.ClientMethodTerminalWaitForExit {
			continue
		}
		t.answerResult(id, method, r)
		return
	}
}

// refuseCall answers a call that was not made, or that nobody waits for any more.
func (t *turn) refuseCall(id json.RawMessage, err error) {
	why := "the run is being stopped"
	switch {
	case errors.Is(err, agent.ErrTooLarge):
		why = "it is too large"
	case errors.Is(err, context.Canceled), errors.Is(err, agent.ErrStopped), errors.Is(err, agent.ErrEnded):
	default:
		why = "no executor can be asked"
		t.took(t.root, err)
	}
	_ = t.peer.conn.refuse(id, codeInternal, why)
}

// answerResult answers with what the executor said. Its words are the executor's, and are
// the agent's to read.
func (t *turn) answerResult(id json.RawMessage, method string, r agent.ToolResult) {
	if r.Outcome != narad.OutcomeSuccess {
		code, _ := r.Response.Field("code").IsString()
		message, _ := r.Response.Field("message").IsString()
		if code == "" {
			code, message = r.Code, r.Message
		}
		number := codeInternal
		if code == "not_found" {
			number = codeNotFound
		}
		_ = t.peer.conn.refuse(id, number, code+": "+message)
		return
	}
	if _, isObject := r.Response.Members(); !isObject {
		_ = t.peer.conn.refuse(id, codeInternal, "the executor's answer is none of "+method)
		return
	}
	_ = t.peer.conn.answer(id, json.RawMessage(r.Response))
}
