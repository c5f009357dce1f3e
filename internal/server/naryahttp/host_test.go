package naryahttp_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/server/naryahttp"
	"github.com/mahati-host/mahati/narya"
)

func TestHost(t *testing.T) {
	bubble(t, bedOptions{binding: naryahttp.Options{Version: "1.2.3", Agents: []string{"test", "other"}}}, func(t *testing.T, b *bed) {
		pass(3 * time.Second)
		got := b.want(b.get("/v1/host"), 200)
		if got.field("version") != "1.2.3" || got.field("uptimeMs") != "3000" || got.field("mode") != "serve" || got.field("agents") != `["test","other"]` {
			t.Errorf("got %s", got.body)
		}
		first := b.journal.Identity().FirstEvent
		if got.field("store", "oldestEventId") != narya.FormatID(int64(first)) || got.field("store", "newestEventId") != narya.FormatID(int64(first)-1) ||
			got.field("store", "epoch") != b.host.Epoch() || got.field("store", "writable") != "true" {
			t.Errorf("first event %d, got %s", first, got.body)
		}
	})
}

func TestOpenAPIIsServed(t *testing.T) {
	b := begin(t, bedOptions{})
	if got := b.want(b.get("/v1/openapi.json"), 200); got.body != string(narya.OpenAPI()) {
		t.Errorf("another document is served: %.200s", got.body)
	}
}

// TestEdgeRefusesInTheEnvelope: what the edge refuses on a path of the contract is the one
// envelope, and elsewhere what it was.
func TestEdgeRefusesInTheEnvelope(t *testing.T) {
	b := begin(t, bedOptions{tcp: true})
	nobody := *b
	nobody.token = ""
	large := b.request("POST", "/v1/host", strings.Repeat("x", server.MaxBody+1))
	foreign := b.request("GET", "/v1/host", "")
	foreign.Header.Set("Origin", "https://evil.example")
	swollen := b.request("GET", "/v1/host", "")
	swollen.Header.Set("X-Swollen", strings.Repeat("x", 70<<10))
	for _, c := range []struct {
		name string
		got  reply
		code narya.Code
	}{
		{"a header that is too large", b.send(swollen), narya.CodeMalformed},
		{"a path with an empty step in front", b.get("//v1/host"), narya.CodeNoSuchRoute},
		{"a path that leads here", b.get("/other/../v1/host"), narya.CodeNoSuchRoute},
		{"the prefix alone", b.get("/v1"), narya.CodeNoSuchRoute},
		{"no token", nobody.get("/v1/host"), narya.CodeUnauthorised},
		{"a foreign page", b.send(foreign), narya.CodeForbidden},
		{"no route", b.get("/v1/nothing"), narya.CodeNoSuchRoute},
		{"a path that leads elsewhere", b.get("/v1//host"), narya.CodeNoSuchRoute},
		{"another method", b.delete("/v1/host"), narya.CodeMethod},
		{"a body that is too large", b.send(large), narya.CodeTooLarge},
		{"a query that is no query", b.get("/v1/host?a=%zz"), narya.CodeMalformed},
		{"a parameter twice", b.get("/v1/events?sessionId=a&sessionId=b"), narya.CodeMalformed},
	} {
		t.Run(c.name, func(t *testing.T) { b.wantError(c.got, c.code) })
	}
	if got := nobody.request("GET", "/other", ""); true {
		response, err := b.http.Do(got)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if media := response.Header.Get("Content-Type"); media != "application/problem+json" {
			t.Errorf("elsewhere the edge refuses as %q", media)
		}
	}
}

// TestWrongTypesAreNamed: a field of a wrong type is refused as a value that cannot be is, under the same
// name, whatever the operation, and nothing of its value is repeated.
func TestWrongTypesAreNamed(t *testing.T) {
	b := begin(t, bedOptions{})
	b.create("s1", "")
	const id = "0198c2f0-7c1e-7b0a-9f0e-3a5b7c9d1e2f"
	for _, c := range []struct{ path, body, field string }{
		{"/v1/sessions", `{"repository":["secret"]}`, "repository"},
		{path("s1", "messages"), `{"content":{"secret":1}}`, "content"},
		{path("s1", "messages"), `{"content":"x","attachmentIds":["a",{"secret":1}]}`, "attachmentIds[1]"},
		{path("s1", "messages"), `{"content":"x","attachmentIds":"secret"}`, "attachmentIds"},
		{path("s1", "intercom"), `{"to":7,"content":"x"}`, "to"},
		{"/v1/questions/" + id + "/answer", `{"answers":[{"options":[0]},{"options":[0,"secret"]}]}`, "answers[1].options[1]"},
		{"/v1/questions/" + id + "/answer", `{"answers":[{"text":["secret"]}]}`, "answers[0].text"},
		{"/v1/questions/" + id + "/answer", `{"answers":["secret"]}`, "answers[0]"},
		{"/v1/questions/" + id + "/answer", `{"dismiss":"secret"}`, "dismiss"},
		{"/v1/permissions/" + id + "/decision", `{"decision":7}`, "decision"},
		{"/v1/workflows", `{"sessionId":7}`, "sessionId"},
		{"/v1/extensions/events", `{"extension":"a/b","name":[]}`, "name"},
	} {
		got := b.wantError(b.post(c.path, c.body), narya.CodeInvalid, c.field)
		if text(got.body, "message") != c.field+": has the wrong type" || strings.Contains(got.body, "secret") {
			t.Errorf("%s: got %s, want the field %s", c.body, got, c.field)
		}
	}
}

// TestAPageMayUseEveryOperation: a page of an origin that is configured is granted each method and each header
// that the document has.
func TestAPageMayUseEveryOperation(t *testing.T) {
	const page = "https://app.example"
	b := begin(t, bedOptions{tcp: true, edge: server.Options{CORSOrigins: []string{page}}})
	ask := b.request("OPTIONS", "/v1/host", "")
	ask.Header.Set("Origin", page)
	ask.Header.Set("Access-Control-Request-Method", "PUT")
	response, err := b.http.Do(ask)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	granted := func(header string) []string { return strings.Split(strings.ToLower(response.Header.Get(header)), ", ") }
	type parameter struct {
		In   string `json:"in"`
		Name string `json:"name"`
	}
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []parameter `json:"parameters"`
		} `json:"paths"`
		Components struct {
			Parameters map[string]parameter `json:"parameters"`
		} `json:"components"`
	}
	unmarshal(t, string(narya.OpenAPI()), &document)
	methods, headers := 0, 0
	parameters := slices.Collect(maps.Values(document.Components.Parameters))
	for path, operations := range document.Paths {
		for method, is := range operations {
			parameters = append(parameters, is.Parameters...)
			if methods++; !slices.Contains(granted("Access-Control-Allow-Methods"), method) {
				t.Errorf("%s %s is not granted: %v", method, path, response.Header)
			}
		}
	}
	for _, p := range parameters {
		if p.In != "header" {
			continue
		}
		if headers++; !slices.Contains(granted("Access-Control-Allow-Headers"), strings.ToLower(p.Name)) {
			t.Errorf("the header %s is not granted: %v", p.Name, response.Header)
		}
	}
	if methods < 30 || headers < 2 {
		t.Errorf("only %d operations and %d headers were looked at", methods, headers)
	}
}

// TestRecoveringHost: while a host starts it says so, whatever it is asked.
func TestRecoveringHost(t *testing.T) {
	b := begin(t, bedOptions{edge: server.Options{Recovering: func() bool { return true }}})
	for _, path := range []string{"/v1/host", "/v1/events", "/v1/nothing"} {
		if got := b.wantError(b.get(path), narya.CodeNotReady); got.header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", path)
		}
	}
}

// TestPanicIsTold: a handler that panics answers with the envelope.
func TestPanicIsTold(t *testing.T) {
	b := begin(t, bedOptions{edge: server.Options{Owner: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret") })}})
	if got := b.wantError(b.get("/v1/host"), narya.CodeInternal); strings.Contains(got.body+b.log.String(), "secret") {
		t.Errorf("the value of a panic is shown: %s\n%s", got.body, b.log)
	}
}

// TestHostIsForTheAuthenticated: whoever has a token may know what host it is; the stream of
// all takes the right to observe all.
func TestHostIsForTheAuthenticated(t *testing.T) {
	b := begin(t, bedOptions{tcp: true})
	decider := b.as("decider", access.Grant{Roles: []access.Role{access.Decide}})
	b.want(decider.get("/v1/host"), 200)
	b.wantError(decider.get("/v1/events"), narya.CodeForbidden)
}
