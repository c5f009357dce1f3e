package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/server"
)

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func TestOnlyTheAuthenticatedReachTheHandler(t *testing.T) {
	r := start(t, rigOptions{}, plain)
	if got := r.get("/whoami"); got.status != 200 || got.body != r.tokenID {
		t.Errorf("with the token: %+v", got)
	}
	if got := r.do(r.request("GET", "/whoami", "", header("Authorization", "bearer  "+r.token))); got.status != 200 {
		t.Errorf("scheme in lower case: %+v", got)
	}
	refused := map[string]func(*http.Request){
		"nothing":        func(r *http.Request) { r.Header.Del("Authorization") },
		"no token":       header("Authorization", "Bearer "),
		"no scheme":      header("Authorization", r.token),
		"another scheme": header("Authorization", "Basic "+r.token),
		"unknown token":  header("Authorization", "Bearer mht_"+strings.Repeat("A", 43)),
		"two":            func(q *http.Request) { q.Header.Add("Authorization", "Bearer "+r.token) },
		"token as cookie": func(q *http.Request) {
			q.Header.Set("Cookie", "mahati_session="+r.token)
			q.Header.Del("Authorization")
		},
		"token in the URL": func(q *http.Request) { q.URL.RawQuery = "access_token=" + r.token; q.Header.Del("Authorization") },
	}
	for name, edit := range refused {
		for _, path := range []string{"/whoami", "/no/such/thing"} {
			got := r.do(r.request("GET", path, "", edit))
			r.wantProblem(got, 401, "unauthenticated")
			if challenge := got.header.Get("WWW-Authenticate"); !strings.HasPrefix(challenge, "Bearer") {
				t.Errorf("%s: WWW-Authenticate is %q", name, challenge)
			}
		}
	}
	if got := r.server.Counters().Unauthenticated; got != uint64(2*len(refused)) {
		t.Errorf("counted %d, want %d", got, 2*len(refused))
	}
}

func TestUnreadableTokensAreAnInternalError(t *testing.T) {
	home := t.TempDir()
	tokens, err := access.Open(home, access.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := tokens.Create(access.TokenRequest{Name: "n", Grant: access.Grant{Roles: []access.Role{access.Admin}}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(home, "tokens.json"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, damaged := tokens.Authenticate("mht_"+strings.Repeat("A", 43), time.Now())
	if problem := server.ProblemOf(damaged); problem.HTTPStatus != 500 || problem.Detail != "" {
		t.Errorf("%v gives %+v", damaged, problem)
	}
}

func TestHostHeader(t *testing.T) {
	r := start(t, rigOptions{edge: server.Options{AllowedHosts: []string{"Mahati.example", "other.example:8443"}}}, plain)
	tests := map[string]bool{
		"localhost":            true,
		"localhost:7717":       true,
		"LOCALHOST:7717":       true,
		"127.0.0.1:7717":       true,
		"127.8.9.1":            true,
		"[::1]:7717":           true,
		"[::1]":                true,
		"mahati.example":       true,
		"mahati.example:443":   true,
		"other.example:8443":   true,
		"other.example":        false,
		"other.example:1":      false,
		"evil.example":         false,
		"localhost.evil.test":  false,
		"evil.test:7717":       false,
		"192.0.2.1:7717":       false,
		"0.0.0.0:7717":         false,
		"xlocalhost":           false,
		"mahati.example.evil":  false,
		"127.0.0.1.evil.test":  false,
		"user@localhost":       false,
		"localhost:7717:7717":  false,
		"mahati.example.:7717": false,
	}
	for host, want := range tests {
		got := r.do(r.request("GET", "/whoami", "", func(q *http.Request) { q.Host = host }))
		if want {
			if got.status != 200 {
				t.Errorf("Host %q: %+v", host, got)
			}
			continue
		}
		if got.status == 400 && got.header.Get("Request-Id") == "" {
			continue // net/http did not even take it for a host
		}
		r.wantProblem(got, 403, "host_not_allowed")
	}
	probe := r.do(r.request("GET", "/healthz", "", func(q *http.Request) { q.Host = "10.1.2.3:7717" }))
	if probe.status != 200 {
		t.Errorf("a probe by address: %+v", probe)
	}
}

func TestRequestsOfForeignPages(t *testing.T) {
	r := start(t, rigOptions{edge: server.Options{CORSOrigins: []string{"https://app.example", "http://localhost:3000"}}}, plain)
	tests := []struct {
		name   string
		origin string
		site   string
		want   bool
		cors   bool
	}{
		{"no browser", "", "", true, false},
		{"own page", "http://localhost:7717", "same-origin", true, false},
		{"typed address", "", "none", true, false},
		{"own page without an origin", "", "same-origin", true, false},
		{"configured", "https://app.example", "cross-site", true, true},
		{"configured, default port", "https://app.example:443", "cross-site", true, true},
		{"configured, same site", "http://localhost:3000", "same-site", true, true},
		{"foreign", "https://evil.example", "cross-site", false, false},
		{"foreign, older browser", "https://evil.example", "", false, false},
		{"foreign without an origin", "", "cross-site", false, false},
		{"another port of this machine", "http://localhost:9999", "same-site", false, false},
		{"another port without an origin", "", "same-site", false, false},
		{"another scheme", "https://localhost:7717", "same-site", false, false},
		{"null", "null", "", false, false},
		{"prefix", "https://app.example.evil.test", "", false, false},
		{"with a path", "https://app.example/x", "", false, false},
		{"with a user", "https://a@app.example", "", false, false},
		{"empty", " ", "", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := r.do(r.request("GET", "/whoami", "", func(q *http.Request) {
				if tt.origin != "" {
					q.Header.Set("Origin", tt.origin)
				}
				if tt.site != "" {
					q.Header.Set("Sec-Fetch-Site", tt.site)
				}
			}))
			if tt.want != (got.status == 200) {
				t.Fatalf("%+v: %+v", tt, got)
			}
			if !tt.want {
				r.wantProblem(got, 403, "origin_not_allowed")
			}
			allowed := got.header.Get("Access-Control-Allow-Origin")
			if tt.cors && (allowed != tt.origin || got.header.Get("Access-Control-Allow-Credentials") != "true") || !tt.cors && allowed != "" {
				t.Errorf("%+v: CORS headers %v", tt, got.header)
			}
			if got.header.Get("Vary") != "Origin" {
				t.Errorf("%+v: Vary is %q", tt, got.header.Get("Vary"))
			}
		})
	}
}

func TestPreflight(t *testing.T) {
	r := start(t, rigOptions{edge: server.Options{CORSOrigins: []string{"https://app.example"}}}, plain)
	ask := func(origin string) answer {
		return r.do(r.request("OPTIONS", "/echo", "", func(q *http.Request) {
			q.Header.Del("Authorization")
			q.Header.Set("Origin", origin)
			q.Header.Set("Access-Control-Request-Method", "POST")
			q.Header.Set("Access-Control-Request-Headers", "authorization")
		}))
	}
	got := ask("https://app.example")
	for header, words := range map[string]string{
		"Access-Control-Allow-Methods": "GET HEAD POST PUT DELETE",
		"Access-Control-Allow-Headers": "Authorization Content-Type Last-Event-ID Idempotency-Key Narad-Lease Content-Digest If-None-Match If-Range Range",
	} {
		for _, word := range strings.Fields(words) {
			if !slices.Contains(strings.Split(got.header.Get(header), ", "), word) || got.status != 204 {
				t.Errorf("a configured origin: got %d, %s %q, want %s in it", got.status, header, got.header.Get(header), word)
			}
		}
	}
	seen := r.do(r.request("GET", "/whoami", "", header("Origin", "https://app.example"))).header.Get("Access-Control-Expose-Headers")
	for _, word := range strings.Fields("Allow Location ETag Content-Range Heartbeat-Interval-Ms Harness-Version Narad-Version Narad-Epoch Request-Id Retry-After") {
		if !slices.Contains(strings.Split(seen, ", "), word) {
			t.Errorf("a configured origin sees %q, want %s in it", seen, word)
		}
	}
	r.wantProblem(ask("https://evil.example"), 403, "origin_not_allowed")
	two := r.do(r.request("GET", "/whoami", "", func(q *http.Request) {
		q.Header["Origin"] = []string{"https://app.example", "https://evil.example"}
	}))
	r.wantProblem(two, 403, "origin_not_allowed")
}

func TestBehindAProxyTheOwnOriginIsHTTPS(t *testing.T) {
	r := start(t, rigOptions{edge: server.Options{BehindProxy: true, AllowedHosts: []string{"mahati.example"}}}, plain)
	got := r.do(r.request("GET", "/whoami", "", func(q *http.Request) {
		q.Host = "mahati.example"
		q.Header.Set("Origin", "https://mahati.example")
	}))
	if got.status != 200 {
		t.Errorf("own page behind a proxy: %+v", got)
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	for _, o := range []server.Options{
		{AllowedHosts: []string{"http://mahati.example"}},
		{AllowedHosts: []string{""}},
		{CORSOrigins: []string{"*"}},
		{CORSOrigins: []string{"app.example"}},
		{CORSOrigins: []string{"https://app.example/"}},
		{CORSOrigins: []string{"null"}},
	} {
		if _, err := server.New(http.NotFoundHandler(), nil, nil, nil, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func TestBodyLimit(t *testing.T) {
	r := start(t, rigOptions{}, plain)
	fits := strings.Repeat("x", server.MaxBody)
	if got := r.do(r.request("POST", "/echo", fits, nil)); got.status != 200 || len(got.body) != server.MaxBody {
		t.Errorf("a body at the limit: status %d, %d bytes back", got.status, len(got.body))
	}
	unsized := func(q *http.Request) { q.ContentLength, q.Body = -1, io.NopCloser(q.Body) }
	if got := r.do(r.request("POST", "/echo", fits, unsized)); got.status != 200 || len(got.body) != server.MaxBody {
		t.Errorf("a body at the limit, of unknown length: status %d, %d bytes back", got.status, len(got.body))
	}
	for name, edit := range map[string]func(*http.Request){"known length": nil, "unknown length": unsized} {
		t.Run(name, func(t *testing.T) {
			r.wantProblem(r.do(r.request("POST", "/echo", fits+"x", edit)), 413, "body_too_large")
		})
	}
}

func TestSlowBodyIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, rigOptions{}, plain)
		reader, writer := io.Pipe()
		defer writer.Close()
		begun := time.Now()
		go func() { _, _ = io.WriteString(writer, "never more than this") }()
		got := r.do(r.request("POST", "/echo", "", func(q *http.Request) { q.Body, q.ContentLength = reader, -1 }))
		r.wantProblem(got, 408, "body_timeout")
		if took := time.Since(begun); took != 30*time.Second {
			t.Errorf("given up after %v", took)
		}
	})
}

// The deadline of the body must not be taken for the client having left while
// the handler works on.
func TestHandlerMayTakeLongerThanTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, rigOptions{}, func(*rig) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, err := server.ReadBody(r); err != nil {
					server.WriteProblem(w, r, err)
					return
				}
				select {
				case <-r.Context().Done():
					t.Error("the request was taken for abandoned")
				case <-time.After(5 * time.Minute):
				}
				_, _ = io.WriteString(w, "done")
			})
		})
		if got := r.do(r.request("POST", "/echo", "body", nil)); got.body != "done" {
			t.Errorf("%+v", got)
		}
	})
}

// R17: never 401 or 404.
func TestWhileRecoveringEverythingIs503(t *testing.T) {
	var recovering atomic.Bool
	recovering.Store(true)
	r := start(t, rigOptions{edge: server.Options{Recovering: recovering.Load}}, plain)
	requests := map[string]*http.Request{
		"valid":         r.request("GET", "/whoami", "", nil),
		"no token":      r.request("GET", "/whoami", "", func(q *http.Request) { q.Header.Del("Authorization") }),
		"unknown route": r.request("GET", "/no/such/thing", "", nil),
		"wrong method":  r.request("PUT", "/whoami", "", nil),
		"login":         r.request("POST", "/login", "{}", nil),
		"readyz":        r.request("GET", "/readyz", "", nil),
	}
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			got := r.do(request)
			r.wantProblem(got, 503, "recovering")
			if got.header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
			}
		})
	}
	if got := r.get("/healthz"); got.status != 200 {
		t.Errorf("healthz: %+v", got)
	}
	recovering.Store(false)
	if got := r.get("/whoami"); got.status != 200 {
		t.Errorf("once recovered: %+v", got)
	}
}

func TestNotReadyStillServes(t *testing.T) {
	reason := "storage_full"
	r := start(t, rigOptions{edge: server.Options{Ready: func() string { return reason }}}, plain)
	got := r.do(r.request("GET", "/readyz", "", func(q *http.Request) { q.Header.Del("Authorization") }))
	r.wantProblem(got, 503, "not_ready")
	if !strings.Contains(got.body, "storage_full") || got.header.Get("Retry-After") == "" {
		t.Errorf("readyz: %+v", got)
	}
	if got := r.get("/whoami"); got.status != 200 {
		t.Errorf("a request: %+v", got)
	}
	reason = ""
	if got := r.get("/readyz"); got.status != 200 {
		t.Errorf("readyz once ready: %+v", got)
	}
}

func TestPanicBeforeTheAnswer(t *testing.T) {
	r := start(t, rigOptions{}, func(*rig) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/runtime" {
				var none []int
				_ = none[len(r.URL.Path)]
			}
			panic("the user wrote: my-secret-text")
		})
	})
	for _, path := range []string{"/value", "/runtime"} {
		got := r.get(path)
		r.wantProblem(got, 500, "internal")
		if strings.Contains(got.body, "detail") {
			t.Errorf("%s tells the client %s", path, got.body)
		}
	}
	log := r.log.String()
	if !strings.Contains(log, "index out of range") || !strings.Contains(log, "edge_test.go") {
		t.Errorf("the log does not say what happened:\n%s", log)
	}
	if strings.Contains(log, "my-secret-text") {
		t.Errorf("the log has the value of the panic:\n%s", log)
	}
	if got := r.server.Counters().Panics; got != 2 {
		t.Errorf("counted %d panics", got)
	}
}

func TestPanicInTheAnswerCutsTheConnection(t *testing.T) {
	r := start(t, rigOptions{}, func(*rig) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half of ")
			_ = http.NewResponseController(w).Flush()
			panic("no")
		})
	})
	response, err := r.client.Do(r.request("GET", "/", "", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the client takes %q for the whole answer: %v", body, err)
	}
}

func TestUnknownErrorsShowNothing(t *testing.T) {
	r := start(t, rigOptions{}, func(*rig) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			server.Annotate(r.Context(), "session", "s-1")
			server.WriteProblem(w, r, errors.New("open /home/ada/journal: permission denied"))
		})
	})
	got := r.get("/")
	r.wantProblem(got, 500, "internal")
	if strings.Contains(got.body, "journal") {
		t.Errorf("the client learns %s", got.body)
	}
	for _, want := range []string{"permission denied", got.header.Get("Request-Id"), `"session":"s-1"`, r.tokenID} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, r.log)
		}
	}
}

func TestProblemMembers(t *testing.T) {
	r := start(t, rigOptions{}, func(*rig) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			server.WriteProblem(w, r, &server.Problem{
				HTTPStatus: 409, Code: "cursor_ahead", RetryAfter: 1200 * time.Millisecond,
				Members: map[string]any{"head": 12, "status": "accepted", "code": "other"},
			})
		})
	})
	got := r.get("/")
	r.wantProblem(got, 409, "cursor_ahead")
	if !strings.Contains(got.body, `"head":12`) || got.header.Get("Retry-After") != "2" {
		t.Errorf("%+v", got)
	}
}

func TestRoutesRefuseInProblems(t *testing.T) {
	r := start(t, rigOptions{}, plain)
	r.wantProblem(r.get("/no/such/thing"), 404, "not_found")
	for path, allowed := range map[string]string{
		"/whoami": "GET, HEAD", "/echo": "POST", "/healthz": "GET, HEAD", "/readyz": "GET, HEAD", "/metrics": "GET, HEAD",
		"/login": "POST", "/logout": "POST",
	} {
		for _, method := range []string{"DELETE", "OPTIONS", "PATCH", "NONSENSE"} {
			got := r.do(r.request(method, path, "", nil))
			r.wantProblem(got, 405, "method_not_allowed")
			if got.header.Get("Allow") != allowed || !strings.Contains(got.body, allowed) {
				t.Errorf("%s %s: Allow is %q, the document %s; want %s in both", method, path, got.header.Get("Allow"), got.body, allowed)
			}
		}
	}
}

func TestOwnerNeedsNoTokenOnItsSocket(t *testing.T) {
	r := start(t, rigOptions{owner: true}, plain)
	bare := func(q *http.Request) {
		q.Host = "unix"
		q.Header.Del("Authorization")
	}
	if got := r.do(r.request("GET", "/whoami", "", bare)); got.status != 200 || got.body != access.Owner().ID() {
		t.Errorf("without a token: %+v", got)
	}
	if got := r.get("/whoami"); got.body != r.tokenID {
		t.Errorf("a token that is sent counts: %+v", got)
	}
	r.wantProblem(r.do(r.request("GET", "/whoami", "", header("Authorization", "Bearer mht_bad"))), 401, "unauthenticated")
}

func TestNothingSecretIsLogged(t *testing.T) {
	r := start(t, rigOptions{}, plain)
	const marker = "marker-4711"
	marked := func(q *http.Request) {
		q.URL.RawQuery = "q=" + marker
		q.Header.Set("Last-Event-ID", marker)
		q.Header.Set("User-Agent", marker)
		q.Header.Set("Cookie", "mahati_session="+marker)
	}
	r.do(r.request("POST", "/echo", marker, marked))
	r.do(r.request("GET", "/"+marker, "", marked))
	r.do(r.request(marker, "/whoami", "", nil))
	r.do(r.request("GET", "/whoami", "", header("Authorization", "Bearer "+marker)))
	r.do(r.request("POST", "/login", `{"token":"`+marker+`"`, header("Content-Type", "application/json")))
	r.do(r.request("GET", "/whoami", "", func(q *http.Request) { q.Host = marker + ".example" }))
	log := r.log.String()
	if strings.Count(log, `"msg":"request"`) != 6 {
		t.Errorf("not one line a request:\n%s", log)
	}
	for _, secret := range []string{marker, r.token, strings.TrimPrefix(r.token, "mht_")} {
		if strings.Contains(log, secret) {
			t.Errorf("the log has %q:\n%s", secret, log)
		}
	}
	if !strings.Contains(log, `"route":"POST /echo"`) {
		t.Errorf("the log lacks the route:\n%s", log)
	}
}

func TestShutdownRefusesAndMayBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, release := make(chan struct{}), make(chan struct{})
		r := start(t, rigOptions{}, func(*rig) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				close(entered)
				<-release
				_, _ = io.WriteString(w, "finished")
			})
		})
		answered := make(chan answer, 1)
		go func() { answered <- r.get("/") }()
		<-entered
		down := make(chan error, 1)
		go func() { down <- r.server.Shutdown(context.Background()) }()
		synctest.Wait()
		if conn, err := r.listener.Dial(context.Background()); err == nil {
			conn.Close()
			t.Error("a new connection is taken during the shutdown")
		}
		close(release)
		if got := <-answered; got.body != "finished" {
			t.Errorf("the request in flight: %+v", got)
		}
		if err := <-down; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := r.server.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown again: %v", err)
		}
	})
}

func TestShutdownSaysWhenAHandlerStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, release := make(chan struct{}), make(chan struct{})
		r := start(t, rigOptions{}, func(*rig) http.Handler {
			return http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				close(entered)
				<-release
			})
		})
		go func() {
			if response, err := r.client.Do(r.request("GET", "/", "", nil)); err == nil {
				response.Body.Close()
			}
		}()
		<-entered
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if err := r.server.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown with a handler that stays: %v", err)
		}
		close(release)
	})
}
