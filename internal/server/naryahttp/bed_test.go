package naryahttp_test

import (
	"errors"
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
	"github.com/mahati-host/mahati/internal/agent/script"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/numbers"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/server/bindingtest"
	"github.com/mahati-host/mahati/internal/server/naryahttp"
	"github.com/mahati-host/mahati/internal/server/servertest"
	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
	"github.com/mahati-host/mahati/narya/naryatest"
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

// scripted is an agent that performs a script.
func scripted(t *testing.T, text string) agent.Kind {
	t.Helper()
	kind, err := script.New([]byte(text), script.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

// bedOptions are what a test may want otherwise than usual.
type bedOptions struct {
	// agent is the default agent; agents are others by name.
	agent     agent.Kind
	agents    map[string]agent.Kind
	host      host.Options
	binding   naryahttp.Options
	edge      server.Options
	streams   server.StreamOptions
	heartbeat time.Duration
	// silent hosts make sessions that began before the contract.
	silent bool
	// tcp serves as over TCP, for an administrator's token; else as on the owner's socket.
	tcp bool
	// journal is used instead of one in memory; before is a bed that was closed, whose
	// journal and tokens are used again.
	journal journal.Journal
	before  *bed
}

// bed is a host with its HTTP edge, and a client of it.
type bed struct {
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
	token   string // "" for the owner
}

// begin runs a host and its edge over a network in memory. They end with the test, or with
// close.
func begin(t *testing.T, o bedOptions) *bed {
	t.Helper()
	b := &bed{t: t}
	o.host.Numbers, o.host.LogMapping = numbers.Of, harness.Mapping
	if !o.silent {
		o.host.Mappings = facts.Mappings{Narya: int(narya.Mapping1)}
	}
	o.streams.Heartbeat, o.binding.Heartbeat = o.heartbeat, o.heartbeat
	made := bindingtest.Options{
		Agents: castOf(o), Host: o.host, Streams: o.streams, Edge: o.edge, Journal: o.journal, Owner: !o.tcp,
		Register: func(b *bindingtest.Bed, mux *http.ServeMux, edge *server.Options) {
			naryahttp.New(b.Host, b.Streams, o.binding).Register(mux)
			edge.Forms = []server.Form{naryahttp.Form()}
		},
	}
	if o.before != nil {
		made.Journal, made.Tokens, b.token = o.before.journal, o.before.tokens, o.before.token
	}
	b.parts = bindingtest.Begin(t, made)
	b.journal, b.host, b.tokens, b.streams = b.parts.Journal, b.parts.Host, b.parts.Tokens, b.parts.Streams
	b.server, b.http, b.log, b.close = b.parts.Server, b.parts.HTTP, b.parts.Log, b.parts.Close
	if o.tcp && o.before == nil {
		b.token = b.newToken("tester", access.Grant{Roles: []access.Role{access.Admin}})
	}
	return b
}

func castOf(o bedOptions) bindingtest.Cast {
	c := bindingtest.Cast{"test": acts(speaks)}
	if o.agent != nil {
		c["test"] = o.agent
	}
	for name, kind := range o.agents {
		c[name] = kind
	}
	return c
}

func (b *bed) newToken(name string, g access.Grant) string {
	b.t.Helper()
	secret, _ := b.parts.NewToken(b.t, name, g)
	return secret
}

// as is the bed in the hands of somebody else. Over the owner's socket a token counts, too.
func (b *bed) as(name string, g access.Grant) *bed {
	other := *b
	other.token = b.newToken(name, g)
	return &other
}

// bubble runs a test with a bed on the test's own time.
func bubble(t *testing.T, o bedOptions, test func(t *testing.T, b *bed)) {
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

// field returns the value of a field of the body's object, or of the object in it that a
// path of names leads to.
func (a reply) field(names ...string) string {
	value := narad.Raw(a.body)
	for _, name := range names {
		value = value.Field(name)
	}
	if text, ok := value.IsString(); ok {
		return text
	}
	return string(value)
}

// items are the elements of the body's list of that name.
func (a reply) items(name string) []string {
	elements, _ := narad.Raw(a.body).Field(name).Elements()
	var list []string
	for _, e := range elements {
		list = append(list, string(e))
	}
	return list
}

// request makes one. An empty body is none.
func (b *bed) request(method, path, body string) *http.Request {
	b.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	request, err := http.NewRequestWithContext(b.t.Context(), method, "http://localhost:7717"+path, in)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.token != "" {
		request.Header.Set("Authorization", "Bearer "+b.token)
	}
	return request
}

// send makes a request and demands an answer that the OpenAPI document allows.
func (b *bed) send(request *http.Request) reply {
	b.t.Helper()
	name := request.Method + " " + request.URL.Path
	response, err := b.http.Do(request)
	if err != nil {
		b.t.Errorf("%s: %v", name, err)
		return reply{request: name}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.t.Errorf("%s: read the answer: %v", name, err)
	}
	got := reply{name, response.StatusCode, response.Header, strings.TrimSuffix(string(body), "\n")}
	if request.Method != http.MethodHead {
		err = naryatest.Ours(b.t).Response(request.Method, request.URL.Path, got.status, got.header.Get("Content-Type"), got.body)
		if err != nil {
			b.t.Errorf("the document does not allow the answer: %v\n%s", err, got)
		}
	}
	return got
}

func (b *bed) get(path string) reply { b.t.Helper(); return b.send(b.request("GET", path, "")) }

func (b *bed) post(path, body string) reply {
	b.t.Helper()
	return b.send(b.request("POST", path, body))
}

func (b *bed) put(path, body string) reply {
	b.t.Helper()
	return b.send(b.request("PUT", path, body))
}

func (b *bed) delete(path string) reply { b.t.Helper(); return b.send(b.request("DELETE", path, "")) }

// want fails unless the status is that, and returns the reply.
func (b *bed) want(got reply, status int) reply {
	b.t.Helper()
	if got.status != status {
		b.t.Fatalf("got %d, want %d: %s", got.status, status, got)
	}
	return got
}

// wantError demands the envelope with a code, and with these fields if any are named.
func (b *bed) wantError(got reply, code narya.Code, fields ...string) reply {
	b.t.Helper()
	entry, _ := narya.Lookup(code)
	if got.status != entry.Status || got.field("code") != string(code) || got.field("title") != entry.Title {
		b.t.Errorf("got %d %s, want %d %s: %s", got.status, got.field("code"), entry.Status, code, got)
	}
	if media := got.header.Get("Content-Type"); media != "application/json" {
		b.t.Errorf("media type %q: %s", media, got)
	}
	for _, name := range fields {
		if got.field("fields", name) == "" {
			b.t.Errorf("the field %s is not named: %s", name, got)
		}
	}
	return got
}

// reading is an event stream whose frames are taken as they come.
type reading struct {
	bed      *bed
	response *http.Response
	frames   chan sse.Frame // closed at the end of the stream
	err      error          // why it ended; set before frames is closed
}

// stream opens one; query is what stands behind events?, lastID the header, "" for none.
func (b *bed) stream(query, lastID string) *reading {
	b.t.Helper()
	request := b.request("GET", "/v1/events?"+query, "")
	if lastID != "" {
		request.Header.Set("Last-Event-ID", lastID)
	}
	return b.open(request)
}

func (b *bed) open(request *http.Request) *reading {
	b.t.Helper()
	response, err := b.http.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != 200 {
		body, _ := io.ReadAll(response.Body)
		b.t.Fatalf("%s: got %d, want 200: %s", request.URL, response.StatusCode, body)
	}
	s := &reading{bed: b, response: response, frames: make(chan sse.Frame, 1<<16)}
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

// event is one frame, as it came and as it was read.
type event struct {
	narya.Event
	data string
}

// take waits for so many events.
func (s *reading) take(n int) (events []event) {
	s.bed.t.Helper()
	for range n {
		frame, ok := <-s.frames
		if !ok {
			s.bed.t.Fatalf("after %d of %d frames: %v", len(events), n, s.err)
		}
		events = append(events, s.bed.checkFrame(frame))
	}
	return events
}

// until waits for an event of a type, and returns it with all before it.
func (s *reading) until(kind narya.Type) (events []event) {
	s.bed.t.Helper()
	for {
		events = append(events, s.take(1)...)
		if events[len(events)-1].Type() == kind {
			return events
		}
	}
}

// now returns the events that have come once nothing goes on any more. It is for bubbles.
func (s *reading) now() []event {
	s.bed.t.Helper()
	synctest.Wait()
	return s.take(len(s.frames))
}

// rest waits for the end of the stream, which must be in order.
func (s *reading) rest() (events []event) {
	s.bed.t.Helper()
	for frame := range s.frames {
		events = append(events, s.bed.checkFrame(frame))
	}
	if !errors.Is(s.err, io.EOF) {
		s.bed.t.Errorf("the stream ended with %v", s.err)
	}
	return events
}

// checkFrame demands of a frame what every frame must be: an id, which the data repeats, and
// data that our document, the published one and the decoder take.
func (b *bed) checkFrame(frame sse.Frame) event {
	b.t.Helper()
	data := string(frame.Data)
	if err := naryatest.Ours(b.t).Event(data); err != nil {
		b.t.Errorf("our document does not allow the event: %v\n%s", err, data)
	}
	if theirs := naryatest.Published(b.t); theirs != nil {
		if err := theirs.Event(data); err != nil {
			b.t.Errorf("the published document does not allow the event: %v\n%s", err, data)
		}
	}
	e, err := narya.Decode(frame.Data)
	if err != nil {
		b.t.Errorf("%v\n%s", err, data)
	}
	if !frame.HasID || frame.ID != narya.FormatID(e.ID) || frame.Event != "" {
		b.t.Errorf("a frame with id %q (%v) and event %q holds %s", frame.ID, frame.HasID, frame.Event, data)
	}
	return event{e, data}
}

// over reports whether the stream has ended and all of it was taken.
func (s *reading) over() bool {
	select {
	case _, ok := <-s.frames:
		if ok {
			s.bed.t.Error("a frame was not taken")
		}
		return !ok
	default:
		return false
	}
}

// projected is the whole stream behind an event, made of the facts in the journal.
func (b *bed) projected(query string, after int64) (data []string) {
	b.t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		b.t.Fatal(err)
	}
	for at := uint64(after); ; {
		chunk, err := b.journal.Read(b.t.Context(), journal.ByEvent{After: at}, journal.Page{})
		if err != nil {
			b.t.Fatal(err)
		}
		for _, r := range chunk.Records {
			at = r.FirstEvent + uint64(r.EventCount) - 1
			rec, err := narad.Decode(r.Bytes)
			if err != nil {
				b.t.Fatal(err)
			}
			events := narya.Mapping1.Project(rec.(narad.Authority))
			if len(events) != int(r.EventCount) {
				b.t.Fatalf("a fact has %d numbers and %d events", r.EventCount, len(events))
			}
			for i, e := range events {
				e.ID = int64(r.FirstEvent) + int64(i)
				if e.ID <= after || values.Has("sessionId") && e.SessionID != values.Get("sessionId") && (e.SessionID != "" || values.Get("hostEvents") != "true") {
					continue
				}
				text, err := narya.Encode(e)
				if err != nil {
					b.t.Fatal(err)
				}
				data = append(data, string(text))
			}
		}
		if !chunk.More {
			return data
		}
	}
}

// wantEvents demands that a stream with that query had exactly what the facts say.
func (b *bed) wantEvents(t *testing.T, query string, after int64, got []event) {
	t.Helper()
	want := b.projected(query, after)
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("%q: %d events came, want %d; the first that lacks is %s", query, len(got), len(want), want[i])
		case i >= len(want) || got[i].data != want[i]:
			t.Fatalf("%q: event %d of %d, want %d, is\n%s\nwant\n%s", query, i, len(got), len(want), got[i].data, append(want, "none")[min(i, len(want))])
		}
	}
}

// idOfLast is the id of the last frame.
func idOfLast(frames string) string {
	_, frame, _ := strings.Cut(frames[strings.LastIndex(frames, "id: "):], "id: ")
	id, _, _ := strings.Cut(frame, "\n")
	return id
}

// kinds are the types of events, in their order.
func kinds(events []event) (list []narya.Type) {
	for _, e := range events {
		list = append(list, e.Type())
	}
	return list
}

// pass lets time pass, which in a bubble costs none.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func quote(text string) string { return string(narad.Quote(text)) }

func unmarshal(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}
