package acp

import (
	"strings"

	wire "github.com/coder/acp-go-sdk"
)

// transports says over what an agent reaches servers besides their standard input and
// output.
type transports struct {
	HTTP bool `json:"http"`
	SSE  bool `json:"sse"`
}

// oneTransport reports whether a server is one of those that an agent can be told of.
func oneTransport(m wire.McpServer) bool {
	n := 0
	for _, has := range []bool{m.Stdio != nil, m.Http != nil, m.Sse != nil} {
		if has {
			n++
		}
	}
	return n == 1 && m.Acp == nil
}

// reach reports whether an agent can reach all servers that it is told of.
func (t transports) reach(servers []wire.McpServer) bool {
	for _, m := range servers {
		if m.Http != nil && !t.HTTP || m.Sse != nil && !t.SSE {
			return false
		}
	}
	return true
}

// secretsOf returns the values of a server's configuration that must not be seen in a
// log.
func secretsOf(m wire.McpServer) []string {
	var list []string
	headers := func(of []wire.HttpHeader) {
		for _, h := range of {
			list = append(list, h.Value)
		}
	}
	switch {
	case m.Stdio != nil:
		for _, word := range m.Stdio.Args {
			_, value, _ := strings.Cut(word, "=")
			list = append(list, word, value)
		}
		for _, v := range m.Stdio.Env {
			list = append(list, v.Value)
		}
	case m.Http != nil:
		headers(m.Http.Headers)
	case m.Sse != nil:
		headers(m.Sse.Headers)
	}
	return list
}
