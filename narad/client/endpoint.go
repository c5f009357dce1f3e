package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Prefix is the path of the Narad binding below a host's address.
const Prefix = "/api/narad/v1"

// errBaseURL repeats nothing of the URL, which may hold what is secret.
var errBaseURL = errors.New("the base URL must be http://HOST, https://HOST or unix:///PATH, without user, query and fragment")

// An endpoint is where a host is reached.
type endpoint struct {
	base   string // what stands before the path of every request
	socket string // the path of a Unix socket, or ""
}

func parseEndpoint(raw string) (endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "" {
		return endpoint{}, errBaseURL
	}
	switch {
	case u.Scheme == "unix" && u.Host == "" && len(u.Path) > 1:
		return endpoint{"http://localhost" + Prefix, u.Path}, nil
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		path := strings.TrimRight(u.EscapedPath(), "/")
		if path == "" {
			path = Prefix
		}
		return endpoint{u.Scheme + "://" + u.Host + path, ""}, nil
	}
	return endpoint{}, errBaseURL
}

// dialer returns a transport that reaches a Unix socket whatever the address.
func dialer(socket string) *http.Transport {
	t := newTransport()
	t.Proxy = nil
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return t
}

// newTransport is like the transport of the program, if that is one of net/http.
func newTransport() *http.Transport {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		return t.Clone()
	}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second,
	}
}

// segment escapes an id as one segment of a path. The second result is false for
// what no host can have given and what a path would swallow.
func segment(id string) (string, bool) {
	if id == "" || id == "." || id == ".." || len(id) > maxID || strings.ContainsFunc(id, control) {
		return "", false
	}
	return url.PathEscape(id), true
}

const maxID = 1024

func control(r rune) bool { return r < ' ' || r == 0x7f }
