package harnesshttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/numbers"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/server/harnesshttp"
	"github.com/mahati-host/mahati/internal/server/servertest"
	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// acts is an agent that a test writes as a function. It takes messages as it runs.
type acts func(context.Context, agent.Handle) agent.Ending

func (a acts) Open(context.Context, agent.Session) (agent.Agent, error) { return a, nil }
func (a acts) Resumes() bool                                            { return false }
func (a acts) Steers() bool                                             { return true }
func (a acts) Run(ctx context.Context, h agent.Handle) agent.Ending     { return a(ctx, h) }
func (a acts) Steer(context.Context, agent.Message) error               { return nil }
func (a acts) Close() error                                             { return nil }

// deaf is an agent that takes none.
type deaf struct{ acts }

func (d deaf) Open(context.Context, agent.Session) (agent.Agent, error) { return d, nil }
func (deaf) Steers() bool                                               { return false }

// cast names one agent.
type cast struct{ kind agent.Kind }

func (c cast) Kind(name string) (agent.Kind, bool) { return c.kind, name == "test" }
func (cast) Default() string                       { return "test" }

var done = agent.Ending{StopReason: "completed"}

// speaks says two things and ends.
func speaks(ctx context.Context, h agent.Handle) agent.Ending {
	_ = h.Text(ctx, "Hello, ")
	_ = h.Text(ctx, "world.")
	return done
}

// waits works until it is stopped.
func waits(ctx context.Context, _ agent.Handle) agent.Ending {
	<-ctx.Done()
	return agent.Ending{Outcome: agent.Cancelled}
}

const secretArgs = "marker-of-tool-arguments"

// asks calls a tool, asks for its permission, and says what was decided.
func asks(ctx context.Context, h agent.Handle) agent.Ending {
	id, err := h.StartTool(ctx, agent.Tool{
		AgentID: "call_1", Name: "write", Kind: "edit", Args: narad.Raw(`{"path":"` + secretArgs + `"}`),
	})
	if err != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	a, err := h.Permit(ctx, agent.Permission{ToolCallID: id, Title: "Write it?", Options: []agent.Option{
		{ID: "y", Action: "approve"}, {ID: "n", Action: "deny"},
	}})
	if err != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	_ = h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Quote(a.Decision)})
	_ = h.Text(ctx, "It was: "+a.Decision)
	return done
}

// rigOptions are what a test may want otherwise than usual.
type rigOptions struct {
	agent     agent.Kind
	host      host.Options
	heartbeat time.Duration
	// before is a rig that was closed: its journal and its tokens are used again.
	before *rig
}

// rig is a host with its HTTP edge, and a client with an administrator's token.
type rig struct {
	t       *testing.T
	journal journal.Journal
	host    *host.Host
	tokens  *access.Store
	streams *server.Streams
	server  *server.Server
	http    *http.Client
	token   string
	tokenID string
	log     *logBuffer
	close   func()
}

// begin runs a host and its edge over a network in memory. They end with the test, or with
// close.
func begin(t *testing.T, o rigOptions) *rig {
	t.Helper()
	r := &rig{t: t, log: &logBuffer{}}
	if o.before != nil {
		r.journal, r.tokens, r.token, r.tokenID = o.before.journal, o.before.tokens, o.before.token, o.before.tokenID
	} else {
		r.open()
	}
	logger := slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if o.agent == nil {
		o.agent = acts(speaks)
	}
	o.host.Logger, o.host.Numbers, o.host.LogMapping = logger, numbers.Of, harness.Mapping
	f := feed.New(r.journal, feed.Options{Logger: logger})
	r.host = host.New(r.journal, f, cast{o.agent}, o.host)
	if err := r.host.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	listener := servertest.NewListener()
	r.http = listener.Client()
	r.streams = server.NewStreams(r.tokens, server.StreamOptions{Heartbeat: o.heartbeat})
	served := r.serve(o, listener, logger)
	var once sync.Once
	r.close = func() { once.Do(func() { r.end(f, served) }) }
	t.Cleanup(r.close)
	return r
}

func (r *rig) open() {
	r.t.Helper()
	var err error
	if r.journal, err = journal.NewMemory(journal.Options{}); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = r.journal.Close() })
	if r.tokens, err = access.Open(r.t.TempDir(), access.StoreOptions{}); err != nil {
		r.t.Fatal(err)
	}
	r.token, r.tokenID = r.newToken("tester", access.Grant{Roles: []access.Role{access.Admin}})
}

func (r *rig) newToken(name string, g access.Grant) (secret, id string) {
	r.t.Helper()
	token, made, err := r.tokens.Create(access.TokenRequest{Name: name, Grant: g}, time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	return made.Reveal(), token.ID
}

// as is the rig in the hands of somebody with some roles, in a workspace or in all.
func (r *rig) as(name string, roles ...access.Role) *rig {
	other := *r
	other.token, other.tokenID = r.newToken(name, access.Grant{Roles: roles})
	return &other
}

func (r *rig) serve(o rigOptions, listener *servertest.Listener, logger *slog.Logger) <-chan error {
	r.t.Helper()
	mux := http.NewServeMux()
	identity := r.journal.Identity()
	harnesshttp.New(r.host, r.streams, harness.NewSigner(identity.Key, identity.Epoch), harnesshttp.Options{Heartbeat: o.heartbeat}).Register(mux)
	var err error
	r.server, err = server.New(server.Routes(mux), r.tokens, access.NewCookies(r.tokens, access.CookieOptions{}), r.streams, server.Options{Logger: logger})
	if err != nil {
		r.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(listener) }()
	return served
}

func (r *rig) end(f *feed.Feed, served <-chan error) {
	r.http.CloseIdleConnections()
	if err := r.server.Shutdown(context.Background()); err != nil {
		r.t.Errorf("Shutdown: %v", err)
	}
	if err := <-served; err != nil {
		r.t.Errorf("Serve: %v", err)
	}
	if err := r.host.Close(); err != nil {
		r.t.Errorf("Close: %v", err)
	}
	f.Close()
}

// bubble runs a test with a rig on the test's own time.
func bubble(t *testing.T, o rigOptions, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, begin(t, o)) })
}

// reply is a response that was read to its end.
type reply struct {
	request string
	status  int
	header  http.Header
	body    string
}

func (a reply) String() string { return a.request + ": " + http.StatusText(a.status) + " " + a.body }

// field returns the value of a field of the body's object.
func (a reply) field(name string) string {
	value := narad.Raw(a.body).Field(name)
	if text, ok := value.IsString(); ok {
		return text
	}
	return string(value)
}

// request makes one with the token. The path stands under the prefix.
func (r *rig) request(method, path, body string) *http.Request {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, "http://localhost:7717"+harnesshttp.Prefix+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+r.token)
	return request
}

func (r *rig) send(request *http.Request) reply {
	r.t.Helper()
	name := request.Method + " " + request.URL.Path
	response, err := r.http.Do(request)
	if err != nil {
		r.t.Errorf("%s: %v", name, err)
		return reply{request: name}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Errorf("%s: read the answer: %v", name, err)
	}
	return reply{name, response.StatusCode, response.Header, strings.TrimSuffix(string(body), "\n")}
}

func (r *rig) get(path string) reply { r.t.Helper(); return r.send(r.request("GET", path, "")) }

func (r *rig) post(path, body string) reply {
	r.t.Helper()
	return r.send(r.request("POST", path, body))
}

// want fails unless the status is that, and returns the reply.
func (r *rig) want(got reply, status int) reply {
	r.t.Helper()
	if got.status != status {
		r.t.Fatalf("got %d, want %d: %s", got.status, status, got)
	}
	return got
}

// wantProblem checks what all problem documents have in common (R23).
func (r *rig) wantProblem(got reply, status int, code string) reply {
	r.t.Helper()
	if got.status != status || got.field("code") != code {
		r.t.Errorf("got %d %s, want %d %s: %s", got.status, got.field("code"), status, code, got)
	}
	if media := got.header.Get("Content-Type"); media != "application/problem+json" {
		r.t.Errorf("media type %q: %s", media, got)
	}
	if got.field("status") != "" {
		r.t.Errorf("a problem document has a status member: %s", got)
	}
	return got
}

// run starts one with an input id, and returns its id.
func (r *rig) run(inputID, text string) string {
	r.t.Helper()
	return r.want(r.post("/runs", `{"input_id":"`+inputID+`","text":`+quote(text)+`}`), 201).field("run_id")
}

// tell sends an input; body is what stands in it besides version, run and id.
func (r *rig) tell(run, inputID, body string) reply {
	r.t.Helper()
	return r.post("/runs/"+run+"/inputs",
		`{"version":"fak.harness.run/v1","run_id":"`+run+`","input_id":"`+inputID+`",`+body+`}`)
}

func decision(approval, word string) string {
	return `"type":"approval.resolve","approval":{"approval_id":"` + approval + `","decision":"` + word + `"}`
}

func grant(credit int) string { return fmt.Sprintf(`"type":"flow.credit","credit":%d`, credit) }

const cancel = `"type":"run.cancel","reason":"enough"`

func say(text string) string { return `"type":"message.submit","message":{"text":` + quote(text) + `}` }

// page is an answer of events.
type page struct {
	events []harness.Event
	lines  []string
	next   string
	ended  bool
	body   string
}

// read reads one batch; query is what stands behind events?.
func (r *rig) read(run, cursor, query string) page {
	r.t.Helper()
	path := "/runs/" + run + "/events?" + query
	if cursor != "" {
		path += "&cursor=" + url.QueryEscape(cursor)
	}
	got := r.want(r.get(path), 200)
	p := page{next: got.field("next_cursor"), ended: got.field("ended") == "true", body: got.body}
	items, _ := narad.Raw(got.body).Field("events").Elements()
	for _, item := range items {
		var e harness.Event
		if err := json.Unmarshal(item, &e); err != nil {
			r.t.Fatalf("%v in %s", err, item)
		}
		p.events, p.lines = append(p.events, e), append(p.lines, string(item))
	}
	return p
}

// all reads a log from its start, as far as it is there.
func (r *rig) all(run string) page {
	r.t.Helper()
	var whole page
	for {
		p := r.read(run, whole.next, "credit=1000")
		whole.events, whole.lines = append(whole.events, p.events...), append(whole.lines, p.lines...)
		whole.next, whole.ended, whole.body = p.next, p.ended, p.body
		if len(p.events) == 0 || p.ended {
			return whole
		}
	}
}

// find returns the first event of a type.
func (p page) find(t *testing.T, kind harness.Type) harness.Event {
	t.Helper()
	for _, e := range p.events {
		if e.Type == kind {
			return e
		}
	}
	t.Fatalf("no %s in\n%s", kind, strings.Join(p.lines, "\n"))
	return harness.Event{}
}

// kinds are the types of the records, in their order.
func (p page) kinds() []harness.Type {
	var list []harness.Type
	for _, e := range p.events {
		list = append(list, e.Type)
	}
	return list
}

// reading is a stream whose frames are taken as they come.
type reading struct {
	response *http.Response
	frames   chan sse.Frame // closed at the end of the stream
	err      error          // why it ended; set before frames is closed
}

// stream opens one; query is what stands behind stream?.
func (r *rig) stream(run, query string) *reading {
	r.t.Helper()
	return r.openStream(r.request("GET", "/runs/"+run+"/stream?"+query, ""))
}

func (r *rig) openStream(request *http.Request) *reading {
	r.t.Helper()
	response, err := r.http.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != 200 {
		body, _ := io.ReadAll(response.Body)
		r.t.Fatalf("%s: got %d, want 200: %s", request.URL, response.StatusCode, body)
	}
	return r.pump(response)
}

// pump takes the frames of a stream as they come.
func (r *rig) pump(response *http.Response) *reading {
	s := &reading{response: response, frames: make(chan sse.Frame, 1<<16)}
	go func() {
		defer close(s.frames)
		in := sse.NewReader(response.Body, sse.Options{})
		for {
			frame, err := in.Next()
			if err != nil {
				s.err = err
				return
			}
			s.frames <- frame
		}
	}()
	return s
}

func (s *reading) close() { s.response.Body.Close() }

// take waits for so many frames.
func (s *reading) take(t *testing.T, n int) (lines []string) {
	t.Helper()
	for range n {
		frame, ok := <-s.frames
		if !ok {
			t.Fatalf("after %d of %d frames: %v", len(lines), n, s.err)
		}
		lines = append(lines, string(frame.Data))
	}
	return lines
}

// rest waits for the end of the stream, which must be in order.
func (s *reading) rest(t *testing.T) (lines []string) {
	t.Helper()
	for frame := range s.frames {
		lines = append(lines, string(frame.Data))
	}
	if !errors.Is(s.err, io.EOF) {
		t.Errorf("the stream ended with %v", s.err)
	}
	return lines
}

// waiting demands that so many frames come within a time, and no more.
func (s *reading) waiting(t *testing.T, d time.Duration, n int) (lines []string) {
	t.Helper()
	pass(d)
	if got := len(s.frames); got != n {
		t.Fatalf("%d frames came, want %d", got, n)
	}
	return s.take(t, n)
}

// pass lets time pass, which in a bubble costs none.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func quote(text string) string { return string(narad.Quote(text)) }

// session makes one by the host itself, and returns its facts' reader.
func (r *rig) session(id, workspace string) {
	r.t.Helper()
	_, err := r.host.Do(r.t.Context(), access.Owner(), host.Request{
		Action: access.CreateSession, Session: id,
		Command: decide.Create{Payload: facts.Created{WorkspaceID: workspace, RequiredProfiles: host.RequiredProfiles.IDs()}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// heads is the end of the store: what a refusal must not move.
func (r *rig) heads() journal.Mark { return r.journal.Durable() }

// logBuffer may be written and read at once.
type logBuffer struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.String()
}

// hostOptions are those of a host with so many places for agents.
func hostOptions(places int) host.Options { return host.Options{MaxRunning: places} }

func unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }
