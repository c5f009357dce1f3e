package naryahttp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server/naryahttp"
	"github.com/mahati-host/mahati/narad"
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

// Who finds a session by its id did not make it: what somebody chose is not said to have been
// chosen by nobody. The same request again, by its key, is told the same.
func TestModelNoticeOfASessionThatIsThere(t *testing.T) {
	setup(t, func(t *testing.T, b *bed, one, _ string) {
		b.want(b.post("/v1/sessions", fmt.Sprintf(`{"repository":%q,"sessionId":"chosen","model":"one"}`, one)), 201)
		if got := b.want(b.post("/v1/sessions", fmt.Sprintf(`{"repository":%q,"sessionId":"chosen"}`, one)), 200); got.field("modelNotice") != "" {
			t.Errorf("somebody chose: %s", got)
		}
		again := func() reply { return b.withKey("k", "POST", "/v1/sessions", in(one)) }
		first := b.want(again(), 201).field("modelNotice")
		got := again()
		if first == "" || got.field("modelNotice") != first {
			t.Errorf("the same request again: got %s, want the notice %q", got, first)
		}
		b.want(b.put("/v1/sessions/"+got.field("id")+"/model", `{"model":"two"}`), 200)
		if got = again(); got.field("modelNotice") != "" {
			t.Errorf("it runs on another model since: %s", got)
		}
	})
}

// A refusal says what to do in its message, too: a person may see nothing else of it.
func TestRefusalsSayWhatMayBe(t *testing.T) {
	setup(t, func(t *testing.T, b *bed, one, _ string) {
		for path, want := range map[string]string{
			"/v1/sessions?status=busy":                "status must be one of idle, running, waiting, archived",
			"/v1/permissions/decisions?decision=none": "decision must be one of allow, deny, expired",
			"/v1/workflows?status=idle":               "status must be one of running, completed, failed, stopped",
		} {
			if got := b.wantError(b.get(path), narya.CodeMalformed); got.field("message") != want {
				t.Errorf("%s: got %s, want %q", path, got, want)
			}
		}
		got := b.wantError(b.post("/v1/sessions", `{"repository":"here","posture":"away"}`), narya.CodeInvalid, "repository", "posture")
		if want := "posture: must be one of attended, detached; repository: must be an absolute path"; got.field("message") != want {
			t.Errorf("got %s, want %q", got, want)
		}
	})
}

// All that a branch may be told is optional, and so is its body.
func TestBranchWithoutABody(t *testing.T) {
	setup(t, func(t *testing.T, b *bed, one, _ string) {
		parent := b.made(in(one))
		got := b.want(b.post("/v1/sessions/"+parent+"/branch", ""), 201)
		if got.field("parentSessionId") != parent {
			t.Errorf("got %s, want a branch of %s", got, parent)
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

// Lists are paged, filtered, and of what the caller may see; what is archived is on none
// that does not ask for it.
func TestSessionsAreListed(t *testing.T) {
	setup(t, func(t *testing.T, b *bed, one, two string) {
		var ids []string
		for i := range 7 {
			dir, kind := one, "tui"
			if i%2 == 1 {
				dir, kind = two, "api"
			}
			ids = append(ids, b.made(fmt.Sprintf(`{"repository":%q,"clientKind":%q,"agent":"plain"}`, dir, kind)))
		}
		b.want(b.post("/v1/sessions/"+ids[0]+"/archive", ""), 200)
		b.made(fmt.Sprintf(`{"repository":%q,"clientKind":"unknown","agent":"plain"}`, one))
		for query, want := range map[string]int{
			"": 7, "status=archived": 1, "status=idle": 7, "status=running": 0, "clientKind=api": 3, "clientKind=unknown": 1,
			"repository=" + one: 4, "repository=" + one + "&clientKind=tui": 3, "repository=/": 0,
		} {
			for _, limit := range []string{"", "&limit=1", "&limit=2", "&limit=200"} {
				if got := b.idsOf("/v1/sessions?" + query + limit); len(got) != want {
					t.Errorf("%s%s: got %d sessions, want %d", query, limit, len(got), want)
				}
			}
		}
		got := b.idsOf("/v1/sessions?limit=3&clientKind=tui")
		if want := []string{ids[6], ids[4], ids[2]}; !slices.Equal(got, want) {
			t.Errorf("got %v, want the newest first: %v", got, want)
		}
		first := b.get("/v1/sessions?limit=1")
		b.wantError(b.get("/v1/sessions?status=idle&cursor="+first.field("nextCursor")), narya.CodeMalformed)
		elsewhere := b.as("elsewhere", access.Grant{Roles: []access.Role{access.Observe, access.Drive}, Workspaces: []string{"other"}})
		if got := elsewhere.idsOf("/v1/sessions?"); len(got) != 0 {
			t.Errorf("somebody in another workspace sees %v", got)
		}
		b.wantError(elsewhere.get("/v1/sessions/"+ids[1]), narya.CodeSessionNotFound)
		b.wantError(elsewhere.put("/v1/sessions/"+ids[1]+"/title", `{"title":"x"}`), narya.CodeSessionNotFound)
		reader := b.as("reader", access.Grant{Roles: []access.Role{access.Observe}})
		b.want(reader.get("/v1/sessions/"+ids[1]), 200)
		b.wantError(reader.put("/v1/sessions/"+ids[1]+"/title", `{"title":"x"}`), narya.CodeForbidden)
		b.wantError(reader.post("/v1/sessions", in(one)), narya.CodeForbidden)
	})
}

// idsOf are the ids of a whole list, page by page.
func (b *bed) idsOf(path string) (ids []string) {
	b.t.Helper()
	for cursor := ""; ; {
		got := b.want(b.get(path+cursor), 200)
		for _, item := range got.items("items") {
			id, _ := narad.Raw(item).Field("id").IsString()
			ids = append(ids, id)
		}
		if got.field("nextCursor") == "" {
			return ids
		}
		cursor = "&cursor=" + got.field("nextCursor")
	}
}

// pages are the items of a whole list, page by page.
func (b *bed) pages(path string) (items []string) {
	b.t.Helper()
	for cursor := ""; ; {
		got := b.want(b.get(path+cursor), 200)
		items = append(items, got.items("items")...)
		if got.field("nextCursor") == "" {
			return items
		}
		cursor = "&cursor=" + got.field("nextCursor")
	}
}

// R21: what is sent again with its key has its first effect, and other content under the
// key is refused; a chosen id finds its session.
func TestSessionsAreMadeOnce(t *testing.T) {
	setup(t, func(t *testing.T, b *bed, one, two string) {
		keyed := func(path, body string) reply {
			r := b.request("POST", path, body)
			r.Header.Set("Idempotency-Key", "k")
			return b.send(r)
		}
		first := b.want(keyed("/v1/sessions", in(one)), 201)
		again := b.want(keyed("/v1/sessions", in(one)), 201)
		if first.field("id") != again.field("id") {
			t.Errorf("got %s, then %s", first, again)
		}
		b.wantError(keyed("/v1/sessions", in(two)), narya.CodeConflict)
		chosen := fmt.Sprintf(`{"repository":%q,"sessionId":"my-own"}`, one)
		id := b.made(chosen)
		if id != narya.UUID(narya.KindSession, "my-own") {
			t.Errorf("the id is shown as %s", id)
		}
		if got := b.want(b.post("/v1/sessions", chosen), 200); got.field("id") != id {
			t.Errorf("got %s, want %s", got, id)
		}
		branch := "/v1/sessions/" + id + "/branch"
		first = b.want(keyed(branch, `{"title":"b"}`), 201)
		b.want(b.put("/v1/sessions/"+id+"/style", `{"style":"brief"}`), 200)
		again = b.want(keyed(branch, `{"title":"b"}`), 201)
		if first.field("id") != again.field("id") || len(b.idsOf("/v1/sessions?")) != 3 {
			t.Errorf("got %s, then %s", first, again)
		}
		b.wantError(keyed(branch, `{"title":"c"}`), narya.CodeConflict)
	})
}

// Only a session at rest is put away; it is read then, and set up no more.
func TestSessionsArePutAway(t *testing.T) {
	setup(t, func(t *testing.T, b *bed, one, two string) {
		events := b.stream("", "")
		id := b.made(fmt.Sprintf(`{"repository":%q,"agent":"busy"}`, one))
		path := "/v1/sessions/" + id
		b.tells(id, "work")
		events.until(narya.TypeTurnStarted)
		b.wantError(b.post(path+"/archive", ""), narya.CodeBusy)
		if got := b.get(path); got.field("status") != "running" {
			t.Errorf("got %s", got)
		}
		b.want(b.post(path+"/move", in(two)), 200) // from the next turn on
		b.stops(id)
		events.until(narya.TypeTurnFinished)
		events.now()
		for range 2 {
			if got := b.want(b.post(path+"/archive", ""), 200); got.field("status") != "archived" {
				t.Errorf("got %s", got)
			}
		}
		for _, c := range []struct{ name, body string }{
			{"title", `{"title":"x"}`}, {"style", `{"style":"brief"}`}, {"posture", `{"posture":"detached"}`},
			{"warming", `{"enabled":true,"ceilingUsd":1}`}, {"model", `{"model":"nobodys"}`}, {"style", `{"style":"unknown"}`},
		} {
			b.wantError(b.put(path+"/"+c.name, c.body), narya.CodeArchived)
		}
		b.wantError(b.post(path+"/move", in(one)), narya.CodeArchived)
		b.want(b.get(path), 200)
		for range 2 {
			if got := b.want(b.post(path+"/restore", ""), 200); got.field("status") != "idle" {
				t.Errorf("got %s", got)
			}
		}
		want := []narya.Type{narya.TypeSessionStatusChanged, narya.TypeSessionStatusChanged}
		if got := kinds(events.now()); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// viewedAt is read against updatedAt: what happened after it is news, and looking again
// when nothing did changes nothing.
func TestViewed(t *testing.T) {
	setup(t, func(t *testing.T, b *bed, one, _ string) {
		id := b.made(in(one))
		path := "/v1/sessions/" + id
		if got := b.get(path); got.field("viewedAt") != "" {
			t.Errorf("nobody has looked: %s", got)
		}
		pass(time.Second)
		seen := b.want(b.post(path+"/viewed", ""), 200)
		if seen.field("viewedAt") <= seen.field("updatedAt") {
			t.Errorf("got %s", seen)
		}
		pass(time.Second)
		if again := b.want(b.post(path+"/viewed", ""), 200); again.body != seen.body {
			t.Errorf("got %s, want %s", again.body, seen.body)
		}
		b.tells(id, "news")
		pass(time.Second)
		if got := b.get(path); got.field("viewedAt") >= got.field("updatedAt") || got.field("lastOutcome") != "finished" {
			t.Errorf("got %s", got)
		}
	})
}

// A branch whose parent cannot be followed is refused for what the parent is, which names no
// field of the request, and made once that was mended.
func TestBranchWithoutADirectory(t *testing.T) {
	gone, here := filepath.Join(t.TempDir(), "gone"), t.TempDir()
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	bubble(t, bedOptions{agents: map[string]agent.Kind{"other": acts(speaks)}, host: host.Options{Roots: []string{"/"}}}, func(t *testing.T, b *bed) {
		of := func(agent string) string {
			return b.want(b.post("/v1/sessions", `{"repository":`+quote(gone)+`,"agent":"`+agent+`"}`), 201).field("id")
		}
		lost, id := of("other"), of("test")
		if err := os.Remove(gone); err != nil {
			t.Fatal(err)
		}
		got := b.wantError(b.post("/v1/sessions/"+id+"/branch", "{}"), narya.CodeConflict)
		if !strings.Contains(got.field("message"), gone) || !strings.Contains(got.field("message"), "move") {
			t.Errorf("got %s, want the directory %s and what to do", got, gone)
		}
		for _, id := range []string{id, lost} {
			b.want(b.post("/v1/sessions/"+id+"/move", `{"repository":`+quote(here)+`}`), 200)
		}
		b.want(b.post("/v1/sessions/"+id+"/branch", "{}"), 201)
		b.close()
		b = begin(t, bedOptions{before: b, host: host.Options{Roots: []string{"/"}}})
		if got := b.wantError(b.post("/v1/sessions/"+lost+"/branch", "{}"), narya.CodeConflict); !strings.Contains(got.field("message"), "other") {
			t.Errorf("got %s, want the name of the agent", got)
		}
	})
}

// A branch has the conversation up to its entry, is set up as its parent is, and its agent
// is told what was said.
func TestBranch(t *testing.T) {
	const tells = `
script: 1
models: [p/one, p/two]
steps:
  - say: "[{{conversation}}] {{prompt}}"
`
	o := bedOptions{agent: scripted(t, tells)}
	bubble(t, o, func(t *testing.T, b *bed) {
		id := b.made(fmt.Sprintf(`{"repository":%q,"title":"T"}`, t.TempDir()))
		events := b.stream("", "")
		b.tells(id, "first")
		first := events.until(narya.TypeTurnFinished)
		b.tells(id, "second")
		events.until(narya.TypeTurnFinished)
		b.want(b.put("/v1/sessions/"+id+"/model", `{"model":"two"}`), 200)
		events.now()
		entry := ""
		for _, e := range first {
			if end, ok := e.Payload.(*narya.MessageEnd); ok {
				entry = end.EntryID
			}
		}
		branch := b.want(b.post("/v1/sessions/"+id+"/branch", fmt.Sprintf(`{"entryId":%q}`, entry)), 201)
		if branch.field("parentSessionId") != id || branch.field("title") != "T" || branch.field("model") != "two" || branch.field("clientKind") != "api" {
			t.Errorf("got %s", branch)
		}
		if e := events.take(1)[0]; !strings.Contains(e.data, `"parentSessionId":"`+id+`"`) {
			t.Errorf("got %s", e.data)
		}
		b.tells(branch.field("id"), "other")
		said := ""
		for _, e := range events.until(narya.TypeTurnFinished) {
			if d, ok := e.Payload.(*narya.MessageDelta); ok {
				said += d.Delta
			}
		}
		if want := "[user: first\nassistant: [] first\n] other"; said != want {
			t.Errorf("got %q, want %q", said, want)
		}
		transcript := "/v1/sessions/" + branch.field("id") + "/transcript"
		whole := b.want(b.get(transcript), 200).items("items")
		var shown []string
		for _, e := range whole {
			content, _ := narad.Raw(e).Field("content").IsString()
			shown = append(shown, content)
			if lane, _ := narad.Raw(e).Field("laneId").IsString(); lane != narya.MainLaneID(branch.field("id")) {
				t.Errorf("an entry stands in the lane %s: %s", lane, e)
			}
		}
		if want := []string{"first", "[] first", "other", said}; !slices.Equal(shown, want) {
			t.Errorf("the transcript shows %q, want %q", shown, want)
		}
		for _, limit := range []int{1, 2, 3} {
			forth := b.pages(fmt.Sprintf("%s?limit=%d", transcript, limit))
			back := b.pages(fmt.Sprintf("%s?order=desc&limit=%d", transcript, limit))
			slices.Reverse(back)
			if !slices.Equal(forth, whole) || !slices.Equal(back, whole) {
				t.Errorf("by pages of %d: %v and %v, want %v", limit, forth, back, whole)
			}
		}
		if got := b.want(b.get(transcript+"/"+entry), 200); got.body != whole[1] {
			t.Errorf("got %s, want %s", got.body, whole[1])
		}
		export := b.want(b.get("/v1/sessions/"+branch.field("id")+"/export"), 200)
		lines := strings.Split(export.body, "\n")
		if len(lines) != 5 || narad.Raw(lines[0]).Field("session").Field("parentSessionId") == nil {
			t.Fatalf("got %s", export)
		}
		for i, line := range lines[1:] {
			if got := string(narad.Raw(line).Field("entry")); got != whole[i] {
				t.Errorf("line %d: got %s, want %s", i, got, whole[i])
			}
		}
		// An entry of the parent is one of the branch, too, but none after the branch.
		deeper := b.want(b.post("/v1/sessions/"+branch.field("id")+"/branch", fmt.Sprintf(`{"entryId":%q}`, entry)), 201)
		if deeper.field("parentSessionId") != id {
			t.Errorf("got %s", deeper)
		}
		late := b.get("/v1/sessions/" + id + "/transcript?order=desc&limit=1").items("items")[0]
		entry, _ = narad.Raw(late).Field("entryId").IsString()
		b.wantError(b.get(transcript+"/"+entry), narya.CodeEntryNotFound)
		b.wantError(b.post("/v1/sessions/"+branch.field("id")+"/branch", fmt.Sprintf(`{"entryId":%q}`, entry)), narya.CodeEntryNotFound)
	})
}

func TestChoices(t *testing.T) {
	setup(t, func(t *testing.T, b *bed, _, _ string) {
		got := b.want(b.get("/v1/models?agent=test"), 200)
		want := `[{"agent":"test","provider":"p","model":"one","default":true},{"agent":"test","provider":"p","model":"two","variants":["low","high"],"default":false}]`
		if got.field("items") != want {
			t.Errorf("got %s", got)
		}
		if got := b.want(b.get("/v1/styles?limit=1"), 200); got.field("items") != `[{"name":"brief"}]` ||
			b.get("/v1/styles?limit=1&cursor="+got.field("nextCursor")).field("items") != `[{"name":"long"}]` {
			t.Errorf("got %s", got)
		}
		if got := b.want(b.get("/v1/agents"), 200); len(got.items("items")) != 3 {
			t.Errorf("got %s", got)
		}
	})
}

// tells sends a message to the session of a UUID.
func (b *bed) tells(id, text string) {
	b.t.Helper()
	b.perform(id, access.SendMessage, decide.Message{Content: text})
}

func (b *bed) stops(id string) { b.t.Helper(); b.perform(id, access.StopRun, decide.Stop{}) }

func (b *bed) perform(id string, action access.Action, c decide.Command) {
	b.t.Helper()
	_, session, err := b.host.Alias(b.t.Context(), access.Owner(), narya.KindSession, id)
	if err != nil {
		b.t.Fatal(err)
	}
	a, err := b.host.Do(b.t.Context(), access.Owner(), host.Request{Action: action, Session: session, Command: c})
	if err != nil || a.Status != decide.Accepted {
		b.t.Fatalf("%T: %+v %v", c, a, err)
	}
}

// An export has every entry whole, however many pages it takes and however long a message is.
func TestExportIsWhole(t *testing.T) {
	const long = `
script: 1
steps:
  - repeat: {times: 450, steps: [{tool: {name: look, respond: "{{round}}"}}]}
  - say: "{{prompt}}"
`
	bubble(t, bedOptions{agent: scripted(t, long)}, func(t *testing.T, b *bed) {
		id := b.made(in(t.TempDir()))
		text := strings.Repeat("0123456789", 20_000)
		b.tells(id, text)
		pass(time.Minute)
		export := b.want(b.get("/v1/sessions/"+id+"/export"), 200)
		lines := strings.Split(export.body, "\n")
		if want := 1 + 1 + 2*450 + 1; len(lines) != want {
			t.Fatalf("got %d lines, want %d", len(lines), want)
		}
		for _, i := range []int{1, len(lines) - 1} {
			if content, _ := narad.Raw(lines[i]).Field("entry").Field("content").IsString(); content != text {
				t.Errorf("line %d has %d bytes of content, want %d", i, len(content), len(text))
			}
		}
	})
}

// A setting that is sent again has its effect once and shows the session as it is by then;
// the same key of somebody else is another request.
func TestSettingSentAgain(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		id := b.opened("")
		title := func(who *bed, text string) string {
			return who.want(who.withKey("k-"+text, "PUT", path(id, "title"), `{"title":`+quote(text)+`}`), 200).field("title")
		}
		title(b, "first")
		title(b, "second")
		for range 2 {
			if got := title(b, "first"); got != "second" {
				t.Errorf("sent again: got %q, want the title as it is by then", got)
			}
			b.close()
			*b = *begin(t, bedOptions{before: b})
		}
		other := b.as("other", access.Grant{Roles: []access.Role{access.Admin}})
		if got := title(other, "first"); got != "first" {
			t.Errorf("the same key of somebody else: got %q, want that it counts", got)
		}
	})
}
