package server_test

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/server"
)

// counted is plain, and counts what reaches it.
func counted(reached *atomic.Int64) func(*rig) http.Handler {
	return func(r *rig) http.Handler {
		inner := plain(r)
		return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			reached.Add(1)
			inner.ServeHTTP(w, q)
		})
	}
}

// raw sends bytes on a connection of their own and returns everything that comes back
// until the server closes it, or nothing comes for a minute.
func (r *rig) raw(sent string) string {
	r.t.Helper()
	conn, err := r.listener.Dial(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		_, _ = io.WriteString(conn, sent) // the server may stop reading
	}()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	got, _ := io.ReadAll(conn)
	_ = conn.Close()
	<-wrote
	return string(got)
}

// What is no request, or might be two, reaches no handler.
func TestMalformedRequestsReachNobody(t *testing.T) {
	const head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer TOKEN\r\n"
	const get = "GET /whoami HTTP/1.1\r\nConnection: close\r\nAuthorization: Bearer TOKEN\r\n"
	tests := []struct{ name, sent, status string }{
		{"no HTTP", "hello\r\n\r\n", "400"},
		{"HTTP/0.9", "GET /whoami\r\n\r\n", "400"},
		{"no Host", get + "\r\n", "400"},
		{"two Hosts", get + "Host: localhost\r\nHost: evil.example\r\n\r\n", "400"},
		{"an empty Host", get + "Host:\r\n\r\n", "403"},
		{"a Host with a user", get + "Host: a@localhost\r\n\r\n", "400"},
		{"a foreign address and our Host", "GET http://evil.example/whoami HTTP/1.1\r\nConnection: close\r\nHost: localhost\r\n\r\n", "403"},
		{"a proxy is wanted", "CONNECT evil.example:443 HTTP/1.1\r\nConnection: close\r\nHost: evil.example:443\r\n\r\n", "403"},
		{"a control character in a header", get + "Host: localhost\r\nX: a\x01b\r\n\r\n", "400"},
		{"a space in a header's name", get + "Host: localhost\r\nX y: a\r\n\r\n", "400"},
		{"a header of 70 KiB", get + "Host: localhost\r\nX: " + strings.Repeat("a", 70<<10) + "\r\n\r\n", "431"},
		{"a header of 300 KiB", get + "Host: localhost\r\nX: " + strings.Repeat("a", 300<<10) + "\r\n\r\n", "431"},
		{"a first line of 70 KiB", "GET /" + strings.Repeat("a", 70<<10) + " HTTP/1.1\r\nConnection: close\r\nHost: localhost\r\n\r\n", "431"},
		{"two lengths", head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc", "400"},
		{"a negative length", head + "Content-Length: -1\r\n\r\n", "400"},
		{"a length that is none", head + "Content-Length: 0x2\r\n\r\nab", "400"},
		{"an unknown transfer coding", head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "501"},
		{"two transfer codings", head + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", "501"},
		{"chunked twice", head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "501"},
		{"a length of 1 TiB", head + "Content-Length: 1099511627776\r\n\r\nx", "413"},
		{"a coded body", head + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", "415"},
		{"an odd expectation", get + "Host: localhost\r\nExpect: nonsense\r\n\r\n", "417"},
	}
	synctest.Test(t, func(t *testing.T) {
		var reached atomic.Int64
		r := start(t, rigOptions{}, counted(&reached))
		for _, tt := range tests {
			got := r.raw(strings.ReplaceAll(tt.sent, "TOKEN", r.token))
			if status := strings.SplitN(got, " ", 3); len(status) < 3 || status[1] != tt.status {
				t.Errorf("%s: got %.300q, want %s", tt.name, got, tt.status)
			}
			if strings.Count(got, "HTTP/1.") != 1 {
				t.Errorf("%s: got more than one answer: %.600q", tt.name, got)
			}
			if n := reached.Load(); n != 0 {
				t.Fatalf("%s reached the handler", tt.name)
			}
		}
	})
}

// A body that is not as it says is refused by who reads it, and what follows on the
// connection is never taken for a request.
func TestBodiesThatLie(t *testing.T) {
	const head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\n"
	const second = "GET /whoami HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer TOKEN\r\n\r\n"
	tests := []struct{ name, sent, status string }{
		{"a chunk without a size", head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + second, "400"},
		{"a chunk that is too long", head + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n" + second, "400"},
		{"a chunk larger than all", head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n" + second, "400"},
		{"chunks without an end", head + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n", "408"},
		{"half a body", head + "Content-Length: 10\r\n\r\nabc", "408"},
		{"chunks above the limit", head + "Transfer-Encoding: chunked\r\n\r\n200000\r\n" + strings.Repeat("a", 1<<21) + "\r\n0\r\n\r\n" + second, "413"},
	}
	synctest.Test(t, func(t *testing.T) {
		r := start(t, rigOptions{}, plain)
		for _, tt := range tests {
			got := r.raw(strings.ReplaceAll(tt.sent, "TOKEN", r.token))
			if status := strings.SplitN(got, " ", 3); len(status) < 3 || status[1] != tt.status {
				t.Errorf("%s: got %.300q, want %s", tt.name, got, tt.status)
			}
			if strings.Contains(got, r.tokenID) || strings.Count(got, "HTTP/1.") != 1 {
				t.Errorf("%s: what followed was answered: %.600q", tt.name, got)
			}
		}
	})
}

// Requests that stand behind each other in one piece are answered one by one.
func TestPipelinedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, rigOptions{}, plain)
		one := "GET /whoami HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + r.token + "\r\n\r\n"
		bad := "GET /whoami HTTP/1.1\r\nHost: localhost\r\n\r\n"
		last := strings.Replace(one, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)
		answers := bufio.NewReader(strings.NewReader(r.raw(one + bad + last)))
		for i, want := range []int{200, 401, 200} {
			response, err := http.ReadResponse(answers, nil)
			if err != nil || response.StatusCode != want {
				t.Fatalf("answer %d: got %v, %v, want %d", i, response, err, want)
			}
			if _, err := io.Copy(io.Discard, response.Body); err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
		}
	})
}

// A path is what it says: nobody is sent elsewhere, and nothing is found by a detour.
func TestUncleanPaths(t *testing.T) {
	var reached atomic.Int64
	r := start(t, rigOptions{}, func(*rig) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("/a/{id}", func(http.ResponseWriter, *http.Request) { reached.Add(1) })
		return server.Routes(mux)
	})
	for _, path := range []string{"//a/b", "/a//b", "/a/./b", "/x/../a/b", "/a/..", "/a/%2e%2e", "/a/b/..", "/a/b/%2e", "//evil.example/..", "/a/b/", "/%2fa/b"} {
		got := r.do(r.request("GET", "", "", func(q *http.Request) {
			q.URL.RawPath = path
			q.URL.Path, _ = url.PathUnescape(path)
		}))
		r.wantProblem(got, 404, "not_found")
		if got.header.Get("Location") != "" {
			t.Errorf("%s: sent to %s", path, got.header.Get("Location"))
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("the handler was reached %d times", n)
	}
	if got := r.get("/a/b"); got.status != 200 || reached.Load() != 1 {
		t.Errorf("a clean path: %+v", got)
	}
}

// OPTIONS * is a request like any other.
func TestOptionsOfTheHost(t *testing.T) {
	r := start(t, rigOptions{}, plain)
	star := func(edit func(*http.Request)) answer {
		return r.do(r.request("OPTIONS", "/", "", func(q *http.Request) { q.URL.Opaque = "*"; edit(q) }))
	}
	r.wantProblem(star(func(q *http.Request) { q.Header.Del("Authorization") }), 401, "unauthenticated")
	r.wantProblem(star(func(q *http.Request) { q.Host = "evil.example" }), 403, "host_not_allowed")
	r.wantProblem(star(func(*http.Request) {}), 404, "not_found")
}
