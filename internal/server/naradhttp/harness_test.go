package naradhttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/server/bindingtest"
	"github.com/mahati-host/mahati/internal/server/naradhttp"
	"github.com/mahati-host/mahati/internal/server/servertest"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/session"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// acts is an agent that a test writes as a function.
type acts func(context.Context, agent.Handle) agent.Ending

func (a acts) Open(context.Context, agent.Session) (agent.Agent, error) { return a, nil }
func (a acts) Resumes() bool                                            { return false }
func (a acts) Steers() bool                                             { return false }
func (a acts) Run(ctx context.Context, h agent.Handle) agent.Ending     { return a(ctx, h) }
func (a acts) Steer(context.Context, agent.Message) error               { return errors.ErrUnsupported }
func (a acts) Close() error                                             { return nil }

// speaks says two things and ends, waits works until it is stopped.
var speaks, waits acts = bindingtest.Speaks, bindingtest.Waits

// asks calls a tool, asks for its permission, and says what was decided.
func asks(ctx context.Context, h agent.Handle) agent.Ending {
	id, err := h.StartTool(ctx, agent.Tool{
		AgentID: "call_1", Name: "write", Kind: "edit", Args: narad.Raw(`{"n":1.10,"path":"` + secretArgs + `"}`),
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
	return agent.Ending{StopReason: "completed"}
}

const secretArgs = "marker-of-tool-arguments"

// rigOptions are what a test may want otherwise than usual.
type rigOptions struct {
	agent   acts
	host    host.Options
	binding naradhttp.Options
	journal journal.Options
	// engine is used instead of a journal in memory.
	engine journal.Journal
	// before is a rig that was closed: its journal and its tokens are used again.
	before *rig
	// slow is how long each read of a session takes, after it has read.
	slow time.Duration
	// unstarted leaves the host as it is before it has recovered.
	unstarted bool
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
}

// start runs a host and its edge over a network in memory. They end with the test, or
// with close.
func start(t *testing.T, o rigOptions) *rig {
	t.Helper()
	r := &rig{t: t}
	if o.agent == nil {
		o.agent = speaks
	}
	made := bindingtest.Options{
		Agents: bindingtest.Cast{"test": o.agent}, Host: o.host, Streams: server.StreamOptions{Heartbeat: o.binding.Heartbeat},
		Journal: o.engine, Unstarted: o.unstarted,
		Read: func(j journal.Journal) journal.Journal { return slowly{j, o.slow} },
		Register: func(b *bindingtest.Bed, mux *http.ServeMux, edge *server.Options) {
			o.binding.ActorName = func(id string) (string, bool) {
				token, err := b.Tokens.Lookup(id)
				return token.Name, err == nil
			}
			binding := naradhttp.New(b.Host, b.Streams, o.binding)
			binding.Register(mux)
			edge.LongBody = binding.LongBody
		},
	}
	switch {
	case o.before != nil:
		made.Journal, made.Tokens, r.token = o.before.journal, o.before.tokens, o.before.token
	case o.engine == nil:
		made.Journal = bindingtest.Memory(t, o.journal)
	}
	r.parts = bindingtest.Begin(t, made)
	r.journal, r.host, r.tokens, r.streams = r.parts.Journal, r.parts.Host, r.parts.Tokens, r.parts.Streams
	r.server, r.http, r.log, r.close = r.parts.Server, r.parts.HTTP, r.parts.Log, r.parts.Close
	if o.before == nil {
		r.token = r.newToken("tester", access.Grant{Roles: []access.Role{access.Admin}})
	}
	return r
}

func (r *rig) newToken(name string, g access.Grant) string {
	r.t.Helper()
	secret, _ := r.parts.NewToken(r.t, name, g)
	return secret
}

// slowly is a journal whose readers of a session wait between reading and having read.
type slowly struct {
	journal.Journal
	pause time.Duration
}

func (s slowly) Read(ctx context.Context, o journal.Order, p journal.Page) (journal.Chunk, error) {
	chunk, err := s.Journal.Read(ctx, o, p)
	_, ofSession := o.(journal.BySession)
	if _, ofHost := o.(journal.ByOffset); (ofSession || ofHost) && s.pause > 0 {
		<-time.After(s.pause)
	}
	return chunk, err
}

// bubble runs a test with a rig on the test's own time.
func bubble(t *testing.T, o rigOptions, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, start(t, o)) })
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
	request, err := http.NewRequestWithContext(r.t.Context(), method, "http://localhost:7717"+naradhttp.Prefix+path, strings.NewReader(body))
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
func (r *rig) wantProblem(got reply, status int, code string) {
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
}

// wantWord checks the answer to a command.
func (r *rig) wantWord(got reply, status int, word string) {
	r.t.Helper()
	if got.status != status || got.field("status") != word {
		r.t.Errorf("got %d %s, want %d %s: %s", got.status, got.field("status"), status, word, got)
	}
	if media := got.header.Get("Content-Type"); media != "application/json" {
		r.t.Errorf("media type %q: %s", media, got)
	}
}

func (r *rig) create(id string) {
	r.t.Helper()
	r.want(r.post("/sessions", `{"sessionId":"`+id+`"}`), 201)
}

// say sends a message, which must be accepted, and returns its run.
func (r *rig) say(id, content string) (runID string) {
	r.t.Helper()
	a := r.want(r.post("/commands/message", `{"sessionId":"`+id+`","content":`+quote(content)+`}`), 202)
	return a.field("runId")
}

func (r *rig) resolve(interrupt, decision string) reply {
	r.t.Helper()
	return r.post("/commands/resolve-interrupt", `{"interruptId":"`+interrupt+`","decision":`+quote(decision)+`}`)
}

// opened returns the interrupts that wait, by id, in the inbox's order.
func (r *rig) opened() []string {
	r.t.Helper()
	items, _ := narad.Raw(r.want(r.get("/interrupts?state=open"), 200).body).Field("items").Elements()
	ids := []string{}
	for _, item := range items {
		id, _ := item.Field("interruptId").IsString()
		ids = append(ids, id)
	}
	return ids
}

// heads is the end of the store and of each session: what a refusal must not move.
func (r *rig) heads() journal.Mark { return r.journal.Durable() }

// facts returns a session's facts, each judged as strictly as a host must be.
func (r *rig) facts(id string) []narad.Authority {
	r.t.Helper()
	state := session.New(session.Options{Remember: session.RememberAll})
	var list []narad.Authority
	for record, err := range journal.All(r.t.Context(), r.journal, id, 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		if got := state.ApplyJSON(record.Bytes, true); got.Kind != session.Applied {
			r.t.Fatalf("fact %d: %v %s\n%s", record.Sequence, got.Kind, got.Code, record.Bytes)
		}
		decoded, err := narad.Decode(record.Bytes)
		if err != nil {
			r.t.Fatal(err)
		}
		list = append(list, decoded.(narad.Authority))
	}
	return list
}

// count is how many facts of a type a session has.
func (r *rig) count(id string, kind narad.Type) int {
	r.t.Helper()
	return len(slices.DeleteFunc(r.facts(id), func(f narad.Authority) bool { return f.Type() != kind }))
}

// client returns the Go client of the host, without random waits.
func (r *rig) client() *client.Client {
	r.t.Helper()
	c, err := client.New("http://localhost:7717", client.Options{
		Token: client.Token(r.token), HTTPClient: r.http,
		Backoff: client.Exponential(50*time.Millisecond, time.Second, func() float64 { return 0 }),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// pass lets time pass, which in a bubble costs none.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func quote(text string) string { return mustJSON(text) }

func mustJSON(v any) string {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return string(data)
}

func unmarshal(text string, v any) error { return json.Unmarshal([]byte(text), v) }

func memberOf(text, name string) (narad.Raw, bool) {
	members, _ := narad.Raw(text).Members()
	for _, m := range members {
		if m.Name == name {
			return m.Value, true
		}
	}
	return nil, false
}

// everything is the grant of an administrator.
func everything() access.Grant { return access.Grant{Roles: []access.Role{access.Admin}} }
