package naryahttp_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narya"
)

// A page of large messages, which are shown shorter than they are, ends where it has looked,
// and the next one goes on there.
func TestTranscriptOfLargeMessages(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		b.create("s1", "")
		var want []string
		for range 24 {
			told := b.tell("s1", strings.Repeat("x", 400_000), "")
			want = append(want, told.field("entryId"))
			synctest.Wait()
		}
		var got []string
		for _, e := range b.allItems(b.session("s1") + "/transcript?limit=200") {
			if text(e, "kind") == string(narya.EntryUserMessage) {
				got = append(got, text(e, "entryId"))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %d messages, want %d", len(got), len(want))
		}
		exported := b.want(b.send(b.request("GET", path("s1", "export"), "")), 200)
		if n := strings.Count(exported.body, `"kind":"user-message"`); n != len(want) {
			t.Errorf("the export has %d messages, want %d", n, len(want))
		}
	})
}

// What is withdrawn with a key can be told again; its entry stays, and says what became of it.
func TestWithdrawalToldAgain(t *testing.T) {
	bubble(t, bedOptions{agent: acts(waits)}, func(t *testing.T, b *bed) {
		b.create("s1", "")
		b.tell("s1", "work", "")
		one, two := b.tell("s1", "one", ""), b.tell("s1", "two", "")
		stream := b.stream("sessionId="+uuid("s1"), "")
		input := path("s1", "inputs/"+one.field("entryId"))
		first := b.want(b.withKey("k", "DELETE", input, ""), 200)
		if again := b.want(b.withKey("k", "DELETE", input, ""), 200); again.body != first.body {
			t.Errorf("told again: got %s, want %s", again, first)
		}
		b.wantError(b.delete(input), narya.CodeNotWaiting)
		b.wantError(b.withKey("k", "DELETE", path("s1", "inputs/"+two.field("entryId")), ""), narya.CodeConflict)
		if events := stream.now(); count(events, narya.TypeQueuedInputWithdrawn) != 1 {
			t.Errorf("got %v, want one withdrawal", kinds(events))
		}
		for entry, want := range map[string]string{one.field("entryId"): "withdrawn", two.field("entryId"): ""} {
			if got := b.want(b.get(path("s1", "transcript/"+entry)), 200); got.field("setAside") != want {
				t.Errorf("got %s, want setAside %q", got, want)
			}
		}
	})
}

// reached are the operations that name what is in one session. LANE is its main lane,
// PERMISSION one that waits in it, TURN its turn.
var reached = []struct{ method, path, body string }{
	{"GET", "/v1/sessions/SESSION", ""},
	{"GET", "/v1/sessions/SESSION/export", ""},
	{"POST", "/v1/sessions/SESSION/archive", ""},
	{"POST", "/v1/sessions/SESSION/restore", ""},
	{"POST", "/v1/sessions/SESSION/branch", ""},
	{"POST", "/v1/sessions/SESSION/branch", `{"entryId":"ENTRY"}`},
	{"POST", "/v1/sessions/SESSION/move", `{"repository":"/"}`},
	{"POST", "/v1/sessions/SESSION/viewed", ""},
	{"PUT", "/v1/sessions/SESSION/title", `{"title":"x"}`},
	{"PUT", "/v1/sessions/SESSION/model", `{"model":"x"}`},
	{"PUT", "/v1/sessions/SESSION/variant", `{"variant":"x"}`},
	{"PUT", "/v1/sessions/SESSION/style", `{"style":""}`},
	{"PUT", "/v1/sessions/SESSION/posture", `{"posture":"detached"}`},
	{"PUT", "/v1/sessions/SESSION/warming", `{"enabled":true,"ceilingUsd":1}`},
	{"POST", "/v1/sessions/SESSION/messages", `{"content":"x"}`},
	{"POST", "/v1/sessions/SESSION/interrupt", ""},
	{"POST", "/v1/sessions/SESSION/interrupt", `{"turnId":"TURN"}`},
	{"DELETE", "/v1/sessions/SESSION/inputs/ENTRY", ""},
	{"POST", "/v1/sessions/SESSION/inputs/release", ""},
	{"GET", "/v1/sessions/SESSION/rules", ""},
	{"DELETE", "/v1/sessions/SESSION/rules/x", ""},
	{"GET", "/v1/sessions/SESSION/transcript", ""},
	{"GET", "/v1/sessions/SESSION/transcript?laneId=LANE", ""},
	{"GET", "/v1/sessions/SESSION/transcript/ENTRY", ""},
	{"GET", "/v1/sessions/SESSION/lanes", ""},
	{"GET", "/v1/lanes/LANE", ""},
	{"GET", "/v1/permissions?sessionId=SESSION", ""},
	{"POST", "/v1/permissions/PERMISSION/decision", `{"decision":"allow"}`},
	{"GET", "/v1/permissions/decisions?sessionId=SESSION", ""},
	{"GET", "/v1/questions?sessionId=SESSION", ""},
	{"POST", "/v1/questions/PERMISSION/answer", `{"dismiss":true}`},
	{"POST", "/v1/sessions/SESSION/intercom", `{"to":"x","content":"x"}`},
	{"GET", "/v1/sessions/SESSION/intercom/asks", ""},
	{"POST", "/v1/workflows", `{"sessionId":"SESSION","definition":"x"}`},
	{"GET", "/v1/workflows?sessionId=SESSION", ""},
	{"POST", "/v1/extensions/events", `{"sessionId":"SESSION","extension":"a/b","name":"c"}`},
}

// Who does not reach a session is told nothing apart of one that is there, or was.
func TestUnreachedIsUnknown(t *testing.T) {
	bubble(t, bedOptions{agent: acts(permits), tcp: true}, func(t *testing.T, b *bed) {
		const none, gone = "0198c2f0-7c1e-7b0a-9f0e-3a5b7c9d1e2f", "0198c2f0-7c1e-7b0a-9f0e-3a5b7c9d1e30"
		b.create("s1", "ls")
		permission := b.only()
		entries := b.allItems(path("s1", "transcript"))
		turn, entry := text(entries[0], "turnId"), text(entries[0], "entryId")
		for _, id := range []string{gone, "gone"} {
			b.create(id, "")
			if _, err := b.host.Delete(t.Context(), access.Owner(), id); err != nil {
				t.Fatal(err)
			}
		}
		b.wantError(b.get("/v1/sessions/"+gone), narya.CodeDeleted)
		b.wantError(b.post("/v1/sessions", `{"repository":"/","sessionId":"`+gone+`"}`), narya.CodeDeleted)
		all := []access.Role{access.Observe, access.Drive, access.Decide, access.Admin}
		stranger := b.as("stranger", access.Grant{Roles: all, Workspaces: []string{"other"}})
		unknown := strings.NewReplacer("SESSION", none, "LANE", narya.MainLaneID(none), "PERMISSION", none, "TURN", turn, "ENTRY", entry)
		for _, op := range reached {
			want := stranger.send(stranger.request(op.method, unknown.Replace(op.path), unknown.Replace(op.body)))
			if want.status != http.StatusNotFound {
				t.Errorf("%s %s of an unknown session: %s", op.method, op.path, want)
			}
			for _, id := range []string{"s1", gone, "gone"} {
				names := strings.NewReplacer(
					"SESSION", uuid(id), "LANE", narya.MainLaneID(id), "PERMISSION", permission, "TURN", turn, "ENTRY", entry)
				got := stranger.send(stranger.request(op.method, names.Replace(op.path), names.Replace(op.body)))
				if got.status != want.status || got.body != want.body {
					t.Errorf("%s %s of %s: got %s, want what an unknown one is answered: %s", op.method, op.path, id, got, want)
				}
			}
		}
		// An id is given once in the whole store, so it is told that it is taken, and no more.
		driver := b.as("driver", access.Grant{Roles: all, Workspaces: []string{"default"}})
		elsewhere := b.wantError(driver.post("/v1/sessions", `{"repository":"/","sessionId":"`+gone+`"}`), narya.CodeConflict)
		if _, err := b.host.Do(t.Context(), access.Owner(), host.Request{
			Action: access.CreateSession, Session: none, Command: decide.Create{Payload: facts.Created{WorkspaceID: "other", ClientKind: "api", Cwd: "/"}},
		}); err != nil {
			t.Fatal(err)
		}
		if got := driver.post("/v1/sessions", `{"repository":"/","sessionId":"`+none+`"}`); got.body != elsewhere.body {
			t.Errorf("made with an id of a session elsewhere: got %s, with that of a deleted one: %s", got, elsewhere)
		}
	})
}

// A page of a list has no more items than it may have, however many are asked for at once.
func TestPacksOnPages(t *testing.T) {
	bubble(t, bedOptions{agent: scripted(t, packs)}, func(t *testing.T, b *bed) {
		b.create("s1", "go")
		b.create("s2", "go")
		synctest.Wait()
		want := b.pendingIDs("")
		if len(want) != 6 {
			t.Fatalf("%d wait, want 6", len(want))
		}
		for _, limit := range []string{"1", "2", "4"} {
			var got []string
			for query := "?limit=" + limit; query != ""; {
				page := b.want(b.get("/v1/permissions"+query), 200)
				items := page.items("items")
				if len(items) > int(limit[0]-'0') {
					t.Errorf("limit %s: %d items", limit, len(items))
				}
				for _, item := range items {
					got = append(got, text(item, "permissionId"))
				}
				if query = ""; page.field("nextCursor") != "" {
					query = "?limit=" + limit + "&cursor=" + page.field("nextCursor")
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("limit %s: got %v, want %v", limit, got, want)
			}
		}
	})
}

// Nobody said anything about a posture before the first time.
func TestFirstPostureHasNoOther(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		b.create("s1", "")
		stream := b.stream("sessionId="+uuid("s1"), "")
		for _, posture := range []string{"detached", "detached", "attended"} {
			b.want(b.put(path("s1", "posture"), `{"posture":"`+posture+`"}`), http.StatusOK)
		}
		var got []string
		for _, e := range stream.now() {
			if p, ok := e.Payload.(*narya.SessionPostureChanged); ok {
				got = append(got, string(p.Posture)+" after "+string(p.PreviousPosture))
			}
		}
		if want := []string{"detached after ", "attended after detached"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

const packs = `
script: 1
steps:
  - ask: {title: "Three?", kind: approval, actions: [approve, deny], members: [{id: a, action: edit}, {id: b, action: run}, {id: c, action: read}]}
`

// What was decided of a member stays decided where the rest of its pack is never settled.
func TestMemberOfAPackThatExpired(t *testing.T) {
	bubble(t, bedOptions{agent: scripted(t, packs)}, func(t *testing.T, b *bed) {
		b.create("s1", "go")
		synctest.Wait()
		ids := b.pendingIDs("")
		b.want(b.decide(ids[0], "allow", ""), 200)
		b.want(b.post(path("s1", "interrupt"), ""), http.StatusAccepted)
		synctest.Wait()
		if again := b.want(b.decide(ids[0], "allow", ""), 200); again.field("decision") != "allow" {
			t.Errorf("told again: got %s", again)
		}
		b.wantError(b.decide(ids[0], "deny", ""), narya.CodeAlreadyDecided)
		b.wantError(b.decide(ids[1], "allow", ""), narya.CodeExpired)
	})
}

// What is wrong with a workflow is named by the field that has it.
func TestInputOfAWorkflow(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		b.create("s1", "")
		body := func(definition, input string) string {
			return `{"sessionId":` + quote(uuid("s1")) + `,"definition":` + quote(definition) + `,"input":` + input + `}`
		}
		large := `"` + strings.Repeat("x", 600_000) + `"`
		got := b.wantError(b.post("/v1/workflows", body(twoSteps, large)), narya.CodeInvalid, "input")
		if got.field("fields", "definition") != "" {
			t.Errorf("the definition is named: %s", got)
		}
		b.wantError(b.post("/v1/workflows", body("nonsense", "1")), narya.CodeInvalid, "definition")
	})
}

// A session that began before this contract was served is not found on it, by its own id
// neither.
func TestSessionBeforeTheContract(t *testing.T) {
	bubble(t, bedOptions{silent: true}, func(t *testing.T, b *bed) {
		const id = "0198c2f0-7c1e-7b0a-9f0e-3a5b7c9d1e2f"
		b.create(id, "")
		b.close()
		b = begin(t, bedOptions{before: b})
		b.wantError(b.get(path(id, "transcript")), narya.CodeSessionNotFound)
		body := `{"repository":"/","sessionId":"` + id + `"}`
		b.wantError(b.post("/v1/sessions", body), narya.CodeConflict)
	})
}
