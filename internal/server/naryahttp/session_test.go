package naryahttp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server/naryahttp"
	"github.com/mahati-host/mahati/narya"
)

const offering = `
script: 1
models:
  - p/one
  - {model: p/two, variants: [low, high]}
steps:
  - say: "{{model}} {{variant}} {{style}} in {{cwd}}: {{prompt}}"
`

// setup is a bed of which a session can be set up in every way, and two directories below
// its root.
func setup(t *testing.T, test func(t *testing.T, b *bed, one, two string)) {
	t.Helper()
	root := t.TempDir()
	one, two := filepath.Join(root, "one"), filepath.Join(root, "two")
	for _, dir := range []string{one, two} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	o := bedOptions{
		agent: scripted(t, offering), agents: map[string]agent.Kind{"plain": acts(speaks), "busy": acts(waits)},
		host:    host.Options{Roots: []string{root}, Styles: map[string]string{"brief": "Be brief.", "long": "Tell all."}},
		binding: naryahttp.Options{Agents: []string{"test", "plain", "busy"}},
	}
	bubble(t, o, func(t *testing.T, b *bed) { test(t, b, one, two) })
}

// made makes a session and returns its id.
func (b *bed) made(body string) string {
	b.t.Helper()
	return b.want(b.post("/v1/sessions", body), 201).field("id")
}

func in(dir string) string { return fmt.Sprintf(`{"repository":%q}`, dir) }

// A session is what it was made with, and each of its settings shows in its answer, in
// every read, and on the stream where the contract has an event for it.
func TestSessionIsSetUp(t *testing.T) {
	setup(t, func(t *testing.T, b *bed, one, two string) {
		events := b.stream("", "")
		id := b.made(fmt.Sprintf(`{"repository":%q,"title":"T","clientKind":"tui","model":"two","variant":"low","style":"brief","posture":"detached"}`, one))
		path := "/v1/sessions/" + id
		got := b.want(b.get(path), 200)
		want := map[string]string{
			"id": id, "title": "T", "repository": one, "status": "idle", "provider": "p", "model": "two", "variant": "low",
			"style": "brief", "clientKind": "tui", "posture": "detached", "modelNotice": "",
		}
		for field, value := range want {
			if got.field(field) != value {
				t.Errorf("%s: got %q, want %q", field, got.field(field), value)
			}
		}
		if e := events.take(2); e[0].data == "" || !strings.Contains(e[0].data, `"model":"two"`) || !strings.Contains(e[0].data, `"posture":"detached"`) {
			t.Errorf("the event of its creation: %s", e[0].data)
		}
		for _, c := range []struct{ method, name, body, field, value string }{
			{"PUT", "title", `{"title":"Other"}`, "title", "Other"},
			{"PUT", "model", `{"provider":"p","model":"one"}`, "model", "one"},
			{"PUT", "model", `{"model":"two"}`, "variant", ""},
			{"PUT", "variant", `{"variant":"high"}`, "variant", "high"},
			{"PUT", "style", `{"style":"long"}`, "style", "long"},
			{"PUT", "posture", `{"posture":"attended"}`, "posture", "attended"},
			{"PUT", "warming", `{"enabled":true,"ceilingUsd":0.5}`, "warming", `{"enabled":true,"ceilingUsd":0.5}`},
		} {
			for range 2 { // what is so already changes nothing
				answer := b.want(b.send(b.request(c.method, path+"/"+c.name, c.body)), 200)
				if answer.field(c.field) != c.value {
					t.Errorf("%s: got %q, want %q", c.name, answer.field(c.field), c.value)
				}
				if read := b.get(path); read.field(c.field) != c.value {
					t.Errorf("%s is read as %q, want %q", c.name, read.field(c.field), c.value)
				}
			}
		}
		for range 2 {
			answer := b.want(b.post(path+"/move", in(two)), 200)
			if answer.field("session", "repository") != two || answer.field("restorePointsDropped") != "0" {
				t.Errorf("moved: %s", answer)
			}
		}
		told := []narya.Type{
			narya.TypeModelSwitch, narya.TypeModelSwitch, narya.TypeSessionPostureChanged, narya.TypeSessionMoved,
		}
		if now := events.now(); !slices.Equal(kinds(now), told) {
			t.Errorf("got %v, want %v", kinds(now), told)
		}
	})
}

// The first model of an agent is that of a session which names none, and that is said, as
// is a variant that a model has no use for.
func TestModelNotice(t *testing.T) {
	setup(t, func(t *testing.T, b *bed, one, _ string) {
		got := b.want(b.post("/v1/sessions", in(one)), 201)
		if got.field("model") != "one" || !strings.Contains(got.field("modelNotice"), "p/two") {
			t.Errorf("nobody chose: %s", got)
		}
		path := "/v1/sessions/" + got.field("id")
		if got = b.put(path+"/model", `{"model":"two","variant":"high"}`); got.field("modelNotice") != "" {
			t.Errorf("somebody chose: %s", got)
		}
		if got = b.want(b.put(path+"/model", `{"model":"one","variant":"high"}`), 200); got.field("modelNotice") == "" || got.field("variant") != "" {
			t.Errorf("a variant without use: %s", got)
		}
		if got = b.get(path); got.field("modelNotice") != "" {
			t.Errorf("a read tells how it came about: %s", got)
		}
	})
}

// What cannot be is refused with its field, and changes nothing.
func TestSessionRefusals(t *testing.T) {
	setup(t, func(t *testing.T, b *bed, one, _ string) {
		id := b.made(in(one))
		path := "/v1/sessions/" + id
		before := b.get(path).body
		long := strings.Repeat("x", 513)
		for _, c := range []struct {
			method, path, body string
			code               narya.Code
			fields             string
		}{
			{"POST", "/v1/sessions", `no json`, narya.CodeMalformed, ""},
			{"POST", "/v1/sessions", `[]`, narya.CodeMalformed, ""},
			{"POST", "/v1/sessions", `{}`, narya.CodeInvalid, "repository"},
			{"POST", "/v1/sessions", `{"repository":7}`, narya.CodeInvalid, "repository"},
			{"POST", "/v1/sessions", `{"repository":"relative","title":"a\u0007","clientKind":"x","posture":"y"}`, narya.CodeInvalid, "repository title clientKind posture"},
			{"POST", "/v1/sessions", in(one + "/missing"), narya.CodeInvalid, "repository"},
			{"POST", "/v1/sessions", in("/"), narya.CodeInvalid, "repository"},
			{"POST", "/v1/sessions", fmt.Sprintf(`{"repository":%q,"title":%q}`, one, long), narya.CodeInvalid, "title"},
			{"POST", "/v1/sessions", fmt.Sprintf(`{"repository":%q,"sessionId":"a b"}`, one), narya.CodeInvalid, "sessionId"},
			{"POST", "/v1/sessions", fmt.Sprintf(`{"repository":%q,"agent":"nobody"}`, one), narya.CodeInvalid, "agent"},
			{"POST", "/v1/sessions", fmt.Sprintf(`{"repository":%q,"model":"three"}`, one), narya.CodeInvalid, "model"},
			{"POST", "/v1/sessions", fmt.Sprintf(`{"repository":%q,"model":"two","variant":"mid"}`, one), narya.CodeInvalid, "variant"},
			{"POST", "/v1/sessions", fmt.Sprintf(`{"repository":%q,"style":"loud"}`, one), narya.CodeInvalid, "style"},
			{"POST", "/v1/sessions", fmt.Sprintf(`{"repository":%q,"agent":"plain","model":"one"}`, one), narya.CodeNoModel, ""},
			{"PUT", path + "/title", `{}`, narya.CodeInvalid, "title"},
			{"PUT", path + "/title", `{"title":"a\u2028b"}`, narya.CodeInvalid, "title"},
			{"PUT", path + "/title", `{"title":"` + long + `"}`, narya.CodeInvalid, "title"},
			{"PUT", path + "/model", `{}`, narya.CodeInvalid, "model"},
			{"PUT", path + "/model", `{"model":""}`, narya.CodeInvalid, "model"},
			{"PUT", path + "/model", `{"model":"three"}`, narya.CodeInvalid, "model"},
			{"PUT", path + "/variant", `{"variant":"low"}`, narya.CodeInvalid, "variant"},
			{"PUT", path + "/style", `{"style":"loud"}`, narya.CodeInvalid, "style"},
			{"PUT", path + "/posture", `{"posture":"away"}`, narya.CodeInvalid, "posture"},
			{"PUT", path + "/posture", `{}`, narya.CodeInvalid, "posture"},
			{"PUT", path + "/warming", `{"enabled":true}`, narya.CodeInvalid, "ceilingUsd"},
			{"PUT", path + "/warming", `{"enabled":"yes","ceilingUsd":1}`, narya.CodeInvalid, "enabled"},
			{"PUT", path + "/warming", `{"enabled":true,"ceilingUsd":-1}`, narya.CodeInvalid, "ceilingUsd"},
			{"POST", path + "/move", `{"repository":"` + one + `/missing"}`, narya.CodeInvalid, "repository"},
			{"POST", path + "/move", `{"repository":""}`, narya.CodeInvalid, "repository"},
			{"POST", path + "/branch", `{"entryId":"x"}`, narya.CodeInvalid, "entryId"},
			{"POST", path + "/branch", `{"entryId":"` + id + `"}`, narya.CodeEntryNotFound, ""},
			{"GET", "/v1/sessions?status=asleep", "", narya.CodeMalformed, ""},
			{"GET", "/v1/sessions?limit=0", "", narya.CodeMalformed, ""},
			{"GET", "/v1/sessions?cursor=x", "", narya.CodeMalformed, ""},
			{"GET", "/v1/sessions/nobody", "", narya.CodeSessionNotFound, ""},
			{"PUT", "/v1/sessions/5d0b6a54-3c7e-4f21-9a86-4e71c290d813/title", `{"title":"x"}`, narya.CodeSessionNotFound, ""},
			{"POST", "/v1/sessions/5d0b6a54-3c7e-4f21-9a86-4e71c290d813/archive", "", narya.CodeSessionNotFound, ""},
			{"POST", "/v1/sessions/5d0b6a54-3c7e-4f21-9a86-4e71c290d813/branch", "{}", narya.CodeSessionNotFound, ""},
			{"GET", "/v1/models?agent=nobody", "", narya.CodeMalformed, ""},
		} {
			if b.wantError(b.send(b.request(c.method, c.path, c.body)), c.code, strings.Fields(c.fields)...); t.Failed() {
				t.Fatalf("the body was %s", c.body)
			}
		}
		if after := b.get(path).body; after != before || len(b.get("/v1/sessions").items("items")) != 1 {
			t.Errorf("something was done: %s, %s", before, after)
		}
	})
}
