package daemon_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/mahati-host/mahati/internal/config"
	"github.com/mahati-host/mahati/internal/daemon"
	"github.com/mahati-host/mahati/internal/server/servertest"
	"github.com/mahati-host/mahati/narad"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a daemon on a network in memory, and a client of it with the first token.
type rig struct {
	*daemon.Daemon
	t        *testing.T
	cfg      config.Config
	listener *servertest.Listener
	http     *http.Client
	token    string
}

// configured is the configuration of a home, with these lines of a file.
func configured(t *testing.T, home string, lines ...string) config.Config {
	t.Helper()
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	file := strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(home, config.FileName), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(home, func(name string) string { return map[string]string{"HOME": t.TempDir()}[name] })
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// start starts a daemon that ends with the test, or with close.
func start(t *testing.T, cfg config.Config, o daemon.Options) *rig {
	t.Helper()
	r := &rig{t: t, cfg: cfg, listener: servertest.NewListener()}
	if o.Listener == nil {
		o.Listener = r.listener
	}
	r.http = r.listener.Client()
	var err error
	if r.Daemon, err = daemon.Start(t.Context(), cfg, o); err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(r.close)
	r.token = r.file("token")
	return r
}

func (r *rig) close() {
	r.t.Helper()
	r.http.CloseIdleConnections()
	if err := r.Close(); err != nil {
		r.t.Errorf("Close: %v", err)
	}
}

// bubble runs a test on its own time, with a daemon whose home is new.
func bubble(t *testing.T, o daemon.Options, test func(t *testing.T, r *rig)) {
	t.Helper()
	home := t.TempDir()
	synctest.Test(t, func(t *testing.T) { test(t, start(t, configured(t, home), o)) })
}

// file is what a file of the home says.
func (r *rig) file(name string) string {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.cfg.Home, name))
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// reply is an answer that was read to its end.
type reply struct {
	status int
	header http.Header
	body   string
}

func (a reply) field(name string) string {
	value := narad.Raw(a.body).Field(name)
	if text, ok := value.IsString(); ok {
		return text
	}
	return string(value)
}

func (r *rig) request(ctx context.Context, method, path, body string) *http.Request {
	r.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	return request
}

func (r *rig) do(method, path, body string) reply {
	r.t.Helper()
	return r.send(r.request(r.t.Context(), method, path, body))
}

func (r *rig) send(request *http.Request) reply {
	r.t.Helper()
	response, err := r.http.Do(request)
	if err != nil {
		r.t.Fatalf("%s %s: %v", request.Method, request.URL.Path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatalf("%s %s: read the answer: %v", request.Method, request.URL.Path, err)
	}
	return reply{response.StatusCode, response.Header, strings.TrimSpace(string(body))}
}

func (r *rig) want(status int, method, path, body string) reply {
	r.t.Helper()
	got := r.do(method, path, body)
	if got.status != status {
		r.t.Fatalf("%s %s %s: got %d %s, want %d", method, path, body, got.status, got.body, status)
	}
	return got
}

const narad1 = "/api/narad/v1"

// say makes a session and has it answer.
func (r *rig) say(session, content string) {
	r.t.Helper()
	r.want(201, "POST", narad1+"/sessions", `{"sessionId":"`+session+`"}`)
	r.want(202, "POST", narad1+"/commands/message", `{"sessionId":"`+session+`","content":"`+content+`"}`)
}
