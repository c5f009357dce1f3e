package server_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/server/servertest"
)

// A rig is a running server and a client of it.
type rig struct {
	t        *testing.T
	server   *server.Server
	streams  *server.Streams
	tokens   *access.Store
	listener *servertest.Listener
	client   *http.Client
	token    string
	tokenID  string
	log      *servertest.Log
}

type rigOptions struct {
	edge    server.Options
	streams server.StreamOptions
	owner   bool // serve as on the Unix socket
}

// start runs a server whose handler build makes. It ends with the test.
func start(t *testing.T, o rigOptions, build func(*rig) http.Handler) *rig {
	t.Helper()
	tokens, err := access.Open(t.TempDir(), access.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, tokens: tokens, listener: servertest.NewListener(), log: &servertest.Log{}}
	token, secret, err := tokens.Create(access.TokenRequest{Name: "tester", Grant: access.Grant{Roles: []access.Role{access.Admin}}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r.token, r.tokenID, r.client = secret.Reveal(), token.ID, r.listener.Client()
	r.streams = server.NewStreams(tokens, o.streams)
	o.edge.Logger = slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r.server, err = server.New(build(r), tokens, access.NewCookies(tokens, access.CookieOptions{}), r.streams, o.edge)
	if err != nil {
		t.Fatal(err)
	}
	serve := r.server.Serve
	if o.owner {
		serve = r.server.ServeOwner
	}
	served := make(chan error, 1)
	go func() { served <- serve(r.listener) }()
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		if err := r.server.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return r
}

// plain is a handler for tests of what comes before it.
func plain(*rig) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /whoami", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, server.PrincipalOf(r.Context()).ID())
	})
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		body, err := server.ReadBody(r)
		if err != nil {
			server.WriteProblem(w, r, err)
			return
		}
		_, _ = w.Write(body)
	})
	return server.Routes(mux)
}

// request makes one with the token; edit changes it before it is sent.
func (r *rig) request(method, path, body string, edit func(*http.Request)) *http.Request {
	r.t.Helper()
	request, err := http.NewRequest(method, "http://localhost:7717"+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	if edit != nil {
		edit(request)
	}
	return request
}

// An answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

func (r *rig) do(request *http.Request) answer {
	r.t.Helper()
	response, err := r.client.Do(request)
	if err != nil {
		r.t.Fatalf("%s %s: %v", request.Method, request.URL, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatalf("%s %s: read the answer: %v", request.Method, request.URL, err)
	}
	return answer{response.StatusCode, response.Header, string(body)}
}

// get is do for a plain GET with the token.
func (r *rig) get(path string) answer {
	r.t.Helper()
	return r.do(r.request("GET", path, "", nil))
}

// wantProblem checks everything that all problem documents have in common.
func (r *rig) wantProblem(got answer, status int, code string) {
	r.t.Helper()
	var document map[string]any
	if err := json.Unmarshal([]byte(got.body), &document); err != nil {
		r.t.Errorf("status %d, not a document: %q", got.status, got.body)
		return
	}
	if got.status != status || document["code"] != code {
		r.t.Errorf("status %d, document %s; want %d, %s", got.status, got.body, status, code)
	}
	if media := got.header.Get("Content-Type"); media != "application/problem+json" {
		r.t.Errorf("%s: media type %q", got.body, media)
	}
	if _, ok := document["status"]; ok {
		r.t.Errorf("%s has a status member", got.body)
	}
	if id := got.header.Get("Request-Id"); id == "" || document["requestId"] != id {
		r.t.Errorf("%s: Request-Id is %q", got.body, id)
	}
}
