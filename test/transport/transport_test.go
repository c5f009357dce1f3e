package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/config"
	"github.com/mahati-host/mahati/internal/daemon"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/session"
)

const (
	example  = "../../docs/examples/narad-transport.mjs"
	patience = 30 * time.Second
)

// More facts come before the attach than a page has, and more while history is read than
// the client has places. Three times somebody has to decide before it goes on, and then
// nothing happens for longer than a heartbeat.
const script = `
script: 1
steps:
  - repeat: {times: 150, steps: [{progress: {id: a, category: work, label: "one {{round}}"}}]}
  - ask: {title: "while history is read"}
  - repeat: {times: 400, steps: [{progress: {id: b, category: work, label: "two {{round}}"}}]}
  - ask: {title: "before the break"}
  - repeat: {times: 60, steps: [{progress: {id: c, category: work, label: "three {{round}}"}}]}
  - ask: {title: "after the break"}
  - delay: 1200ms
  - say: "That is all."
`

// TestTransport follows a run through a proxy that makes history slow and breaks the
// first stream, and demands that every fact came once and nothing ran over (R45).
func TestTransport(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("node is missing, and CI runs this test")
		}
		t.Skip("node is not on this machine")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	s := newStage(t, ctx)
	s.awaitOpen("while history is read")
	front := httptest.NewServer(s.proxy())
	t.Cleanup(front.Close)

	cmd := exec.CommandContext(ctx, node, "consumer.mjs", example, front.URL+client.Prefix, s.session)
	cmd.Env = append(os.Environ(), "MAHATI_TOKEN="+s.token)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("node: %v\n%s\n%s", err, said.String(), out.String())
	}
	var seen struct {
		Last, Applied int64
		Runs, Texts   map[string]string
		Subscriptions int
		MostBuffered  int
	}
	if err := json.Unmarshal(out.Bytes(), &seen); err != nil {
		t.Fatalf("node printed %s: %v", out.String(), err)
	}
	want := s.state()
	if seen.Last != want.Last() || seen.Applied != want.Last() {
		t.Errorf("got %d facts up to %d, want each of %d once", seen.Applied, seen.Last, want.Last())
	}
	for id, run := range want.Snapshot().Runs {
		if seen.Runs[id] != "run."+string(run.State) {
			t.Errorf("run %s: got %q, want run.%s", id, seen.Runs[id], run.State)
		}
	}
	for _, m := range want.Snapshot().Messages {
		if m.Role == "assistant" && seen.Texts[m.MessageID] != m.Content {
			t.Errorf("message %s: got %q, want %q", m.MessageID, seen.Texts[m.MessageID], m.Content)
		}
	}
	if grown := s.grown.Load(); grown <= 256 {
		t.Errorf("%d facts came while history was read; they fit into the client's places, so this shows nothing", grown)
	}
	if s.broken.Load() != 1 || seen.Subscriptions < 2 {
		t.Errorf("got %d broken streams and %d subscriptions, want a break and a return", s.broken.Load(), seen.Subscriptions)
	}
	t.Logf("%d facts, %d of them while history was read, %d buffered at most, %d subscriptions",
		seen.Applied, s.grown.Load(), seen.MostBuffered, seen.Subscriptions)
}

// stage is a host with a session in which the script plays.
type stage struct {
	t       *testing.T
	ctx     context.Context
	target  *url.URL
	token   string
	client  *client.Client
	session string

	reads, streams, grown, broken atomic.Int64
	deciding                      sync.WaitGroup
}

func newStage(t *testing.T, ctx context.Context) *stage {
	t.Helper()
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(dir, "agent.yaml"), []byte(script), 0o600))
	settings := map[string]string{
		"HOME": dir, "MAHATI_LISTEN": "127.0.0.1:0", "MAHATI_STORAGE_RESERVE": "64MiB", "MAHATI_WORKSPACES_ROOTS": dir,
		"MAHATI_STREAMS_HEARTBEAT": "1s",
	}
	cfg, err := config.Load(filepath.Join(dir, "home"), func(name string) string { return settings[name] })
	must(err)
	must(cfg.AddAgent("script", config.Agent{Kind: config.KindScript, File: filepath.Join(dir, "agent.yaml")}))
	cfg.Agents.Default = "script"
	d, err := daemon.Start(ctx, cfg, daemon.Options{})
	must(err)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	secret, err := access.ReadFirst(d.Home())
	must(err)
	s := &stage{t: t, ctx: ctx, token: secret.Reveal()}
	s.target, err = url.Parse(d.URL())
	must(err)
	s.client, err = client.New(d.URL(), client.Options{Token: client.Token(s.token)})
	must(err)
	t.Cleanup(func() { s.deciding.Wait(); s.client.Close() })
	created, _, err := s.client.CreateSession(ctx, client.NewSession{CWD: dir})
	must(err)
	s.session = created.SessionID
	_, err = s.client.Message(ctx, client.Message{SessionID: s.session, Content: "go"})
	must(err)
	return s
}

// awaitOpen waits until the script asks this, and returns the interrupt.
func (s *stage) awaitOpen(title string) string {
	for s.ctx.Err() == nil {
		for i, err := range s.client.Interrupts(s.ctx, client.InboxQuery{}) {
			if err == nil && i.Title == title {
				return i.InterruptID
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Errorf("the script never asks %q", title)
	return ""
}

func (s *stage) approve(title string) {
	id := s.awaitOpen(title)
	_, err := s.client.ResolveInterrupt(s.ctx, client.ResolveInterrupt{InterruptID: id, Decision: "approve", CommandID: "approve:" + id})
	if err != nil {
		s.t.Errorf("approve %q: %v", title, err)
	}
}

func (s *stage) head() int64 {
	summary, err := s.client.Session(s.ctx, s.session)
	if err != nil {
		s.t.Error(err)
	}
	return summary.CurrentSessionSequence
}

// state is the session as the Go client reduces it.
func (s *stage) state() *session.State {
	s.t.Helper()
	state := session.New(session.Options{SessionID: s.session})
	for raw, err := range s.client.Events(s.ctx, s.session, client.HistoryQuery{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		record, err := narad.Decode(raw)
		if err != nil {
			s.t.Fatal(err)
		}
		state.Apply(record)
	}
	return state
}

// proxy stands between the transport and the host.
func (s *stage) proxy() http.Handler {
	through := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(s.target); r.Out.Host = s.target.Host },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/events") && s.reads.Add(1) == 1:
			s.growMeanwhile()
		case strings.HasSuffix(r.URL.Path, "/stream"):
			s.stream(w, r, through)
			return
		}
		through.ServeHTTP(w, r)
	})
}

// growMeanwhile lets the session grow while the client waits for its first page.
func (s *stage) growMeanwhile() {
	before := s.head()
	s.approve("while history is read")
	s.awaitOpen("before the break")
	s.grown.Store(s.head() - before)
}

// stream lets the first stream break in the middle of a frame.
func (s *stage) stream(w http.ResponseWriter, r *http.Request, through http.Handler) {
	if s.streams.Add(1) > 1 {
		s.deciding.Go(func() { s.approve("after the break") })
		through.ServeHTTP(w, r)
		return
	}
	s.deciding.Go(func() { s.approve("before the break") })
	through.ServeHTTP(&breaking{ResponseWriter: w, left: 5000, stage: s}, r)
}

// breaking is an answer whose connection breaks some bytes after history was read: a
// client that reads it before has too much to keep by then.
type breaking struct {
	http.ResponseWriter
	left  int
	stage *stage
}

func (b *breaking) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func (b *breaking) Write(p []byte) (int, error) {
	if b.stage.grown.Load() == 0 {
		return b.ResponseWriter.Write(p)
	}
	if len(p) < b.left {
		b.left -= len(p)
		return b.ResponseWriter.Write(p)
	}
	_, _ = b.ResponseWriter.Write(p[:b.left])
	_ = http.NewResponseController(b.ResponseWriter).Flush()
	b.stage.broken.Add(1)
	panic(http.ErrAbortHandler)
}

// TestQuoted: what docs/narad.md shows of the transport is the transport.
func TestQuoted(t *testing.T) {
	file, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/narad.md")
	if err != nil {
		t.Fatal(err)
	}
	_, begun, _ := strings.Cut(string(file), "  // begin: quoted in docs/narad.md\n")
	quoted, _, ok := strings.Cut(begun, "  // end\n")
	if !ok || len(quoted) < 500 {
		t.Fatalf("the example has no part to quote")
	}
	if !strings.Contains(string(page), "```js\n"+quoted+"```\n") {
		t.Errorf("docs/narad.md does not quote this part of %s:\n%s", example, quoted)
	}
}
