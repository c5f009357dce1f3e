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
	node := nodeOf(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	s := newStage(t, ctx, script)
	s.awaitOpen("while history is read")
	front := httptest.NewServer(s.proxy())
	t.Cleanup(front.Close)

	seen := s.consume(node, front.URL)
	s.compare(seen)
	if grown := s.grown.Load(); grown <= 256 {
		t.Errorf("%d facts came while history was read; they fit into the client's places, so this shows nothing", grown)
	}
	if s.broken.Load() != 1 || seen.Subscriptions < 2 {
		t.Errorf("got %d broken streams and %d subscriptions, want a break and a return", s.broken.Load(), seen.Subscriptions)
	}
	t.Logf("%d facts, %d of them while history was read, %d buffered at most, %d subscriptions",
		seen.Applied, s.grown.Load(), seen.MostBuffered, seen.Subscriptions)
}

func nodeOf(t *testing.T) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("node is missing, and CI runs this test")
		}
		t.Skip("node is not on this machine")
	}
	return node
}

// seen is what the consumer tells of a session.
type seen struct {
	Last, Applied      int64
	Runs, Texts, Tools map[string]string
	Subscriptions      int
	Failures           int
	Repeated           int
	MostBuffered       int
}

// consume follows the session with Node to the end of its runs.
func (s *stage) consume(node, front string) seen {
	s.t.Helper()
	cmd := exec.CommandContext(s.ctx, node, "consumer.mjs", example, front+client.Prefix, s.session)
	cmd.Env = append(os.Environ(), "MAHATI_TOKEN="+s.token)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("node: %v\n%s\n%s", err, said.String(), out.String())
	}
	var told seen
	if err := json.Unmarshal(out.Bytes(), &told); err != nil {
		s.t.Fatalf("node printed %s: %v", out.String(), err)
	}
	return told
}

// compare demands that the consumer has seen what the Go client does, each fact once.
func (s *stage) compare(seen seen) {
	s.t.Helper()
	want := s.state()
	if seen.Last != want.Last() || seen.Applied != want.Last() {
		s.t.Errorf("got %d facts up to %d, want each of %d once", seen.Applied, seen.Last, want.Last())
	}
	for id, run := range want.Snapshot().Runs {
		if seen.Runs[id] != "run."+string(run.State) {
			s.t.Errorf("run %s: got %q, want run.%s", id, seen.Runs[id], run.State)
		}
	}
	for _, m := range want.Snapshot().Messages {
		if m.Role == "assistant" && seen.Texts[m.MessageID] != m.Content {
			s.t.Errorf("message %s: got %q, want %q", m.MessageID, seen.Texts[m.MessageID], m.Content)
		}
	}
	for id, tool := range want.Snapshot().Tools {
		if seen.Tools[id] != string(tool.Outcome) {
			s.t.Errorf("tool call %s: got %q, want %q", id, seen.Tools[id], tool.Outcome)
		}
	}
}

// stage is a host with a session in which the script plays.
type stage struct {
	t       *testing.T
	ctx     context.Context
	target  *url.URL
	token   string
	client  *client.Client
	session string
	dir     string
	listen  string // the address of the host, the same after a restart
	daemon  *daemon.Daemon

	reads, streams, grown, broken atomic.Int64
	deciding                      sync.WaitGroup
}

func newStage(t *testing.T, ctx context.Context, script string) *stage {
	t.Helper()
	s := &stage{t: t, ctx: ctx, dir: t.TempDir(), listen: "127.0.0.1:0"}
	s.must(os.WriteFile(filepath.Join(s.dir, "agent.yaml"), []byte(script), 0o600))
	s.must(s.start())
	t.Cleanup(s.stop)
	secret, err := access.ReadFirst(s.daemon.Home())
	s.must(err)
	s.token = secret.Reveal()
	s.target, err = url.Parse(s.daemon.URL())
	s.must(err)
	s.listen = s.target.Host
	s.client, err = client.New(s.daemon.URL(), client.Options{Token: client.Token(s.token)})
	s.must(err)
	t.Cleanup(func() { s.deciding.Wait(); s.client.Close() })
	s.session = s.say("go")
	return s
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// say begins a run in a session of its own.
func (s *stage) say(prompt string) (session string) {
	s.t.Helper()
	created, _, err := s.client.CreateSession(s.ctx, client.NewSession{CWD: s.dir, ClientExecutorID: "desk"})
	s.must(err)
	_, err = s.client.Message(s.ctx, client.Message{SessionID: created.SessionID, Content: prompt})
	s.must(err)
	return created.SessionID
}

// start starts the host on its home.
func (s *stage) start() error {
	settings := map[string]string{
		"HOME": s.dir, "MAHATI_LISTEN": s.listen, "MAHATI_STORAGE_RESERVE": "64MiB", "MAHATI_WORKSPACES_ROOTS": s.dir,
		"MAHATI_STREAMS_HEARTBEAT": "1s",
	}
	cfg, err := config.Load(filepath.Join(s.dir, "home"), func(name string) string { return settings[name] })
	if err != nil {
		return err
	}
	if err := cfg.AddAgent("script", config.Agent{Kind: config.KindScript, File: filepath.Join(s.dir, "agent.yaml")}); err != nil {
		return err
	}
	cfg.Agents.Default = "script"
	s.daemon, err = daemon.Start(s.ctx, cfg, daemon.Options{})
	return err
}

func (s *stage) stop() {
	if err := s.daemon.Close(); err != nil {
		s.t.Error(err)
	}
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
