package harnesshttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/numbers"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/server/bindingtest"
	"github.com/mahati-host/mahati/internal/server/harnesshttp"
	"github.com/mahati-host/mahati/internal/server/servertest"
	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	acts = bindingtest.Acts
	deaf = bindingtest.Deaf
)

var (
	speaks, waits = bindingtest.Speaks, bindingtest.Waits
	done          = agent.Ending{StopReason: "completed"}
)

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
	parts   *bindingtest.Bed
	journal journal.Journal
	host    *host.Host
	tokens  *access.Store
	streams *server.Streams
	server  *server.Server
	http    *http.Client
	log     *servertest.Log
	close   func()
	t       *testing.T
	token   string
	tokenID string
}

// begin runs a host and its edge over a network in memory. They end with the test, or with
// close.
func begin(t *testing.T, o rigOptions) *rig {
	t.Helper()
	r := &rig{t: t}
	if o.agent == nil {
		o.agent = acts(speaks)
	}
	o.host.Numbers, o.host.LogMapping = numbers.Of, harness.Mapping
	made := bindingtest.Options{
		Agents: bindingtest.Cast{"test": o.agent}, Host: o.host, Streams: server.StreamOptions{Heartbeat: o.heartbeat},
		Register: func(b *bindingtest.Bed, mux *http.ServeMux, _ *server.Options) {
			identity := b.Journal.Identity()
			signer := harness.NewSigner(identity.Key, identity.Epoch)
			harnesshttp.New(b.Host, b.Streams, signer, harnesshttp.Options{Heartbeat: o.heartbeat}).Register(mux)
		},
	}
	if o.before != nil {
		made.Journal, made.Tokens, r.token, r.tokenID = o.before.journal, o.before.tokens, o.before.token, o.before.tokenID
	}
	r.parts = bindingtest.Begin(t, made)
	r.journal, r.host, r.tokens, r.streams = r.parts.Journal, r.parts.Host, r.parts.Tokens, r.parts.Streams
	r.server, r.http, r.log, r.close = r.parts.Server, r.parts.HTTP, r.parts.Log, r.parts.Close
	if o.before == nil {
		r.token, r.tokenID = r.parts.NewToken(t, "tester", access.Grant{Roles: []access.Role{access.Admin}})
	}
	return r
}

// as is the rig in the hands of somebody with some roles, in a workspace or in all.
func (r *rig) as(name string, roles ...access.Role) *rig {
	other := *r
	other.token, other.tokenID = r.parts.NewToken(r.t, name, access.Grant{Roles: roles})
	return &other
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

// hostOptions are those of a host with so many places for agents.
func hostOptions(places int) host.Options { return host.Options{MaxRunning: places} }

func unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }
