package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tap keeps the results of calls as they came: the SDK makes floats of their numbers.
type tap struct {
	inner mcp.Transport

	mu      sync.Mutex
	calls   map[any]string    // guarded by mu: by the id of a request, the host's of the call
	results map[string][]byte // guarded by mu: by the host's id
	over    bool              // guarded by mu: nothing more can be read
}

// Connect implements mcp.Transport.
func (t *tap) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &tapped{c, t}, nil
}

func (t *tap) broken() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

func (t *tap) result(call string) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.results[call]
}

// forget drops what is kept of a call.
func (t *tap) forget(call string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.results, call)
	for id, of := range t.calls {
		if of == call {
			delete(t.calls, id)
		}
	}
}

// tapped is a connection that is listened to.
type tapped struct {
	mcp.Connection
	tap *tap
}

// Write implements mcp.Connection.
func (c *tapped) Write(ctx context.Context, m jsonrpc.Message) error {
	if request, ok := m.(*jsonrpc.Request); ok && request.Method == "tools/call" {
		var params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
		var call string
		if json.Unmarshal(request.Params, &params) == nil && json.Unmarshal(params.Meta[callKey], &call) == nil {
			c.tap.mu.Lock()
			c.tap.calls[request.ID.Raw()] = call
			c.tap.mu.Unlock()
		}
	}
	return c.Connection.Write(ctx, m)
}

// Read implements mcp.Connection.
func (c *tapped) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	if err != nil {
		c.tap.over = true
		return m, err
	}
	if response, ok := m.(*jsonrpc.Response); ok {
		if call, ours := c.tap.calls[response.ID.Raw()]; ours {
			delete(c.tap.calls, response.ID.Raw())
			c.tap.results[call] = bytes.Clone(response.Result)
		}
	}
	return m, nil
}
