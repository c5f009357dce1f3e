package server

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// origins decides which Host and Origin headers are let in. The first stops DNS
// rebinding: a foreign name that was made to resolve to this host. The second
// stops pages of other sites from making a browser ask with the user's cookie.
type origins struct {
	hosts       map[string]bool // "name" or "name:port", lower case
	cors        map[string]bool // "scheme://host[:port]", lower case
	behindProxy bool
}

func newOrigins(hosts, cors []string, behindProxy bool) (*origins, error) {
	o := &origins{hosts: make(map[string]bool), cors: make(map[string]bool), behindProxy: behindProxy}
	for _, host := range hosts {
		if host == "" || strings.ContainsAny(host, "/@ *") {
			return nil, fmt.Errorf("allowed host %q: must be a name or name:port", host)
		}
		o.hosts[strings.ToLower(host)] = true
	}
	for _, origin := range cors {
		scheme, host, ok := splitOrigin(origin)
		if !ok {
			return nil, fmt.Errorf("cors origin %q: must be http(s)://host or http(s)://host:port", origin)
		}
		o.cors[scheme+"://"+host] = true
	}
	return o, nil
}

// allowsHost knows the names of loopback besides those it was given: no foreign
// page is served under them.
func (o *origins) allowsHost(host string) bool {
	host = strings.ToLower(host)
	name := hostname(host)
	if o.hosts[host] || o.hosts[name] {
		return true
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

func hostname(host string) string {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
}

// A verdict is what is to be done with a request because of where it comes from.
type verdict int

const (
	sameSite  verdict = iota // ours, or not of a browser
	foreign                  // refused
	corsGrant                // of another origin that is configured
)

func (o *origins) judge(r *http.Request) verdict {
	values := r.Header.Values("Origin")
	if len(values) == 0 {
		// A browser that names no origin still says how the request came about.
		switch r.Header.Get("Sec-Fetch-Site") {
		case "", "same-origin", "none":
			return sameSite
		}
		return foreign
	}
	scheme, host, ok := splitOrigin(values[0])
	switch {
	case len(values) > 1 || !ok:
		return foreign
	case o.isOurs(r, scheme, host):
		return sameSite
	case o.cors[scheme+"://"+host]:
		return corsGrant
	}
	return foreign
}

// isOurs compares an origin with the address the request was made to. Behind a
// proxy it cannot be seen whether that was http or https.
func (o *origins) isOurs(r *http.Request, scheme, host string) bool {
	if !o.behindProxy && (scheme == "https") != (r.TLS != nil) {
		return false
	}
	return host == withoutDefaultPort(scheme, strings.ToLower(r.Host))
}

// splitOrigin takes an origin apart, in lower case and without a default port.
// "null" and anything with a path or user is none.
func splitOrigin(origin string) (scheme, host string, ok bool) {
	u, err := url.Parse(strings.ToLower(origin))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", "", false
	}
	if u.Scheme+"://"+u.Host != strings.ToLower(origin) {
		return "", "", false
	}
	return u.Scheme, withoutDefaultPort(u.Scheme, u.Host), true
}

func withoutDefaultPort(scheme, host string) string {
	if scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// What a page of another origin may use and see, of all bindings: what they take and answer, but for what
// browsers grant by themselves.
const (
	corsMethods = "GET, HEAD, POST, PUT, DELETE"
	corsHeaders = "Authorization, Content-Digest, Content-Type, Idempotency-Key, If-None-Match, If-Range, Last-Event-ID, Narad-Lease, Range"
	corsExposed = "Allow, Content-Disposition, Content-Range, ETag, Harness-Subscriber, Harness-Version, " + HeaderHeartbeat + ", Location, " +
		"Narad-Active-Root, Narad-Epoch, Narad-Profiles, Narad-Session-Sequence, Narad-Version, Narad-Workspace-Revision, Request-Id, Retry-After"
)

// grantCORS lets a page of a configured origin read the answer. With
// credentials the origin must be named, a star will not do.
func grantCORS(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	header.Set("Access-Control-Allow-Credentials", "true")
	if !isPreflight(r) {
		header.Set("Access-Control-Expose-Headers", corsExposed)
		return
	}
	header.Set("Access-Control-Allow-Methods", corsMethods)
	header.Set("Access-Control-Allow-Headers", corsHeaders)
	header.Set("Access-Control-Max-Age", "600")
}

func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}
