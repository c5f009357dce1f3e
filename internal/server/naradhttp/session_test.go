package naradhttp_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/uuid"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/server/naradhttp"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

func TestCreateNamesWhatWasLeftOut(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		got := r.want(r.post("/sessions", `{"title":null,"cwd":null,"futureField":{"a":[1]}}`), 201)
		id := got.field("sessionId")
		if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 7 {
			t.Errorf("the id %q is no UUIDv7: %v", id, err)
		}
		first := r.facts(id)[0]
		c, ok := facts.Read[facts.Created](first, facts.SessionCreated)
		if !ok || c.WorkspaceID != "default" || c.Agent != "test" || c.Mappings.Narya != 0 {
			t.Errorf("first fact: %+v", first)
		}
		left := slices.DeleteFunc(narad.AllProfiles.IDs(), func(p string) bool { return slices.Contains(c.RequiredProfiles, p) })
		want := []string{"narad.graph/v1", "narad.workspace/v1", "narad.trace/v1", "narad.debug/v1"}
		slices.Sort(left)
		if slices.Sort(want); !slices.Equal(left, want) {
			t.Errorf("profiles that are not required: got %v, want %v", left, want)
		}
		for field, want := range map[string]string{
			"workspaceId": "default", "state": "idle", "agent": "test", "currentSessionSequence": "1", "title": "",
		} {
			if got.field(field) != want {
				t.Errorf("%s: got %q, want %q", field, got.field(field), want)
			}
		}
	})
}

// A summary shows what the session was made with, wherever it is read.
func TestSummariesShowTheSession(t *testing.T) {
	dir := t.TempDir()
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		const made = `{"sessionId":"s1","workspaceId":"w1","title":"T","agent":"test","clientExecutorId":"laptop:1"`
		answers := map[string]reply{
			"create": r.want(r.post("/sessions", made+`,"cwd":`+quote(dir)+`}`), 201),
			"get":    r.want(r.get("/sessions/s1"), 200),
		}
		items, _ := narad.Raw(r.want(r.get("/sessions"), 200).body).Field("items").Elements()
		answers["list"] = reply{body: string(items[0])}
		for from, got := range answers {
			for field, want := range map[string]string{
				"sessionId": "s1", "workspaceId": "w1", "title": "T", "agent": "test", "clientExecutorId": "laptop:1", "cwd": dir,
			} {
				if got.field(field) != want {
					t.Errorf("%s: %s is %q, want %q", from, field, got.field(field), want)
				}
			}
		}
	})
}

// R21, field case 45: the id of a session is its key.
func TestCreateAgainFindsTheSession(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		body := `{"sessionId":"s1","title":"one","workspaceId":"w1"}`
		first := r.want(r.post("/sessions", body), 201)
		again := r.want(r.post("/sessions", body), 200)
		if again.body != first.body {
			t.Errorf("got %s\nwant %s", again.body, first.body)
		}
		r.wantProblem(r.post("/sessions", `{"sessionId":"s1","workspaceId":"w2"}`), 409, "session_exists")
		if n := len(r.facts("s1")); n != 1 {
			t.Errorf("got %d facts, want the one", n)
		}
	})
}

func TestCreateRefusesWhatCannotRun(t *testing.T) {
	root := t.TempDir()
	inside := filepath.Join(root, "inside")
	if err := os.Mkdir(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	bubble(t, rigOptions{host: host.Options{Roots: []string{root}}}, func(t *testing.T, r *rig) {
		before := r.heads()
		for name, body := range map[string]string{
			"no such agent":         `{"agent":"nobody"}`,
			"relative":              `{"cwd":"inside"}`,
			"outside of the roots":  `{"cwd":` + quote(outside) + `}`,
			"out of it by dots":     `{"cwd":` + quote(inside+"/../..") + `}`,
			"out of it by a link":   `{"cwd":` + quote(root+"/link") + `}`,
			"a name that begins so": `{"cwd":` + quote(root+"-other") + `}`,
		} {
			if got := r.post("/sessions", body); got.status != 422 || got.field("code") != "rejected" {
				t.Errorf("%s: got %s, want 422 rejected", name, got)
			}
		}
		if r.heads() != before {
			t.Errorf("refusals moved the store from %v to %v", before, r.heads())
		}
		got := r.want(r.post("/sessions", `{"cwd":`+quote(inside)+`}`), 201)
		if got.field("cwd") != inside {
			t.Errorf("cwd: got %q, want %q", got.field("cwd"), inside)
		}
	})
}

func TestArchiveRestoreDelete(t *testing.T) {
	bubble(t, rigOptions{agent: waits}, func(t *testing.T, r *rig) {
		r.create("s1")
		run := r.say("s1", "work")
		for _, request := range []string{"POST /sessions/s1/archive", "DELETE /sessions/s1"} {
			method, path, _ := strings.Cut(request, " ")
			r.wantProblem(r.send(r.request(method, path, "")), 409, "session_busy")
		}
		r.want(r.post("/commands/stop-active-root", `{"sessionId":"s1","rootRunId":"`+run+`"}`), 202)
		synctest.Wait()
		for range 2 { // the second time changes nothing
			if got := r.want(r.post("/sessions/s1/archive", ""), 200); got.field("state") != "archived" {
				t.Errorf("got %s, want it archived", got)
			}
		}
		r.wantWord(r.post("/commands/message", `{"sessionId":"s1","content":"hi"}`), 409, "conflict")
		if got := r.want(r.post("/sessions/s1/restore", ""), 200); got.field("state") != "idle" {
			t.Errorf("got %s, want it idle", got)
		}
		if got := r.want(r.send(r.request("DELETE", "/sessions/s1", "")), 204); got.body != "" {
			t.Errorf("got the body %q, want none", got.body)
		}
		for _, path := range []string{"", "/attach", "/events", "/stream", "/messages", "/audit"} {
			r.wantProblem(r.get("/sessions/s1"+path), 410, "session_deleted")
		}
		r.wantProblem(r.post("/sessions", `{"sessionId":"s1"}`), 410, "session_deleted")
		r.wantWord(r.post("/commands/message", `{"sessionId":"s1","content":"hi"}`), 404, "not_found")
	})
}

func TestListPagesThroughAllSessions(t *testing.T) {
	bubble(t, rigOptions{agent: waits}, func(t *testing.T, r *rig) {
		want := []string{"e", "d", "c", "b", "a"} // the newest first
		for _, id := range slices.Backward(want) {
			r.create(id)
		}
		r.say("b", "work")
		r.want(r.post("/sessions/c/archive", ""), 200)
		for _, limit := range []int{1, 2, 5, 100} {
			if got := r.list(client.SessionQuery{Limit: limit}); !slices.Equal(got, want) {
				t.Errorf("limit %d: got %v, want %v", limit, got, want)
			}
		}
		for state, want := range map[string][]string{"idle": {"e", "d", "a"}, "running": {"b"}, "archived": {"c"}, "waiting": nil} {
			if got := r.list(client.SessionQuery{State: state}); !slices.Equal(got, want) {
				t.Errorf("state %s: got %v, want %v", state, got, want)
			}
		}
		r.wantProblem(r.get("/sessions?state=odd"), 400, "bad_request")
	})
}

func (r *rig) list(q client.SessionQuery) (ids []string) {
	r.t.Helper()
	for s, err := range r.client().Sessions(r.t.Context(), q) {
		if err != nil {
			r.t.Fatal(err)
		}
		ids = append(ids, s.SessionID)
	}
	return ids
}

// A token that is limited to workspaces sees those alone, and one without the role to
// read may still know what it has made.
func TestSessionsOfOthersAreNotShown(t *testing.T) {
	bubble(t, rigOptions{agent: asks}, func(t *testing.T, r *rig) {
		for _, w := range []string{"w1", "w2"} {
			r.want(r.post("/sessions", `{"sessionId":"of-`+w+`","workspaceId":"`+w+`"}`), 201)
			r.say("of-"+w, "write")
			synctest.Wait() // it has asked before the next one does
		}
		all := r.opened()
		admin := r.token
		r.token = r.newToken("w1", access.Grant{Roles: []access.Role{access.Observe, access.Decide}, Workspaces: []string{"w1"}})
		if got := r.list(client.SessionQuery{}); !slices.Equal(got, []string{"of-w1"}) {
			t.Errorf("sessions: got %v, want of-w1", got)
		}
		if got := r.opened(); !slices.Equal(got, all[:1]) {
			t.Errorf("inbox: got %v, want %v", got, all[:1])
		}
		for _, session := range []string{"of-w2", "of-nobody"} { // who may see neither cannot tell them apart
			r.wantProblem(r.get("/sessions/"+session), 404, "not_found")
			r.wantProblem(r.get("/sessions/"+session+"/stream"), 404, "not_found")
			r.wantProblem(r.send(r.request("DELETE", "/sessions/"+session, "")), 404, "not_found")
			r.wantWord(r.post("/commands/message", `{"sessionId":"`+session+`","content":"x"}`), 404, "not_found")
		}
		for _, interrupt := range []string{all[1], "nothing"} {
			r.wantWord(r.resolve(interrupt, "approve"), 404, "not_found")
		}
		r.wantWord(r.resolve(all[0], "approve"), 202, "accepted")

		r.token = r.newToken("driver", access.Grant{Roles: []access.Role{access.Drive}})
		r.want(r.post("/sessions", `{"sessionId":"own"}`), 201)
		r.wantProblem(r.get("/sessions/own"), 403, "forbidden")
		r.token = admin
		r.want(r.get("/sessions/own"), 200)
	})
}

func TestCapabilitiesAndAttach(t *testing.T) {
	bubble(t, rigOptions{agent: waits, binding: naradhttp.Options{Version: "1.2.3", Page: 500}}, func(t *testing.T, r *rig) {
		caps := r.want(r.get("/capabilities"), 200)
		if caps.field("protocolVersion") != narad.Version || caps.field("epoch") != r.host.Epoch() {
			t.Errorf("got %s", caps)
		}
		if v, _ := narad.Raw(caps.field("host")).Field("version").IsString(); v != "1.2.3" {
			t.Errorf("host: got %s", caps.field("host"))
		}
		r.create("s1")
		run := r.say("s1", "work")
		a, err := r.client().Attach(t.Context(), "s1", client.AttachQuery{})
		if err != nil {
			t.Fatal(err)
		}
		c := a.Capabilities
		if c.ActiveRootRunID != run || c.HistoryLimit != 500 || c.HeartbeatIntervalMs != 15_000 || a.Epoch != r.host.Epoch() {
			t.Errorf("got %+v", a)
		}
		if head := int64(r.head("s1")); c.CurrentSessionSequence != head || a.Boundary != head {
			t.Errorf("got %+v, want the head %d", a, head)
		}
		if want := append(slices.Clone(a.RequiredProfiles), "narad.graph/v1"); !slices.Equal(c.ActiveProfiles, want) {
			t.Errorf("nothing claimed: got %v, want %v", c.ActiveProfiles, want)
		}
	})
}

// R25: a claim that leaves out a required profile is refused, unless the client skips.
func TestAttachWithClaims(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		a, err := r.client().Attach(t.Context(), "s1", client.AttachQuery{})
		if err != nil {
			t.Fatal(err)
		}
		reversed := slices.Clone(a.RequiredProfiles)
		slices.Reverse(reversed)
		tests := []struct {
			query string
			want  []string // nil: refused
		}{
			{"?profiles=narad.conversation/v1", nil},
			{"?profiles=unknown/v1", nil},
			{"?profiles=unknown/v1&unclaimed=skip", []string{}},
			{"?profiles=narad.conversation/v1&unclaimed=skip", []string{"narad.conversation/v1"}},
			{"?profiles=narad.graph/v1,narad.conversation/v1,narad.conversation/v1&unclaimed=skip", []string{"narad.graph/v1", "narad.conversation/v1"}},
			{"?profiles=" + strings.Join(reversed, ","), reversed},
			{"?profiles=narad.trace/v1," + strings.Join(reversed, ","), reversed},
			{"?profiles=", append(slices.Clone(a.RequiredProfiles), "narad.graph/v1")},
		}
		for _, test := range tests {
			got := r.get("/sessions/s1/attach" + test.query)
			if test.want == nil {
				r.wantProblem(got, 409, "profiles_required")
				if list, _ := narad.Raw(got.field("requiredProfiles")).Elements(); len(list) != len(a.RequiredProfiles) {
					t.Errorf("%s: the refusal names %s", test.query, got.field("requiredProfiles"))
				}
				continue
			}
			items, ok := narad.Raw(got.field("capabilities")).Field("activeProfiles").Elements()
			profiles := []string{}
			for _, item := range items {
				id, _ := item.IsString()
				profiles = append(profiles, id)
			}
			if got.status != 200 || !ok || !slices.Equal(profiles, test.want) {
				t.Errorf("%s: got %d %v, want %v", test.query, got.status, profiles, test.want)
			}
		}
	})
}

// Field case 10: who comes after the end learns so without waiting.
func TestAttachAfterTheEnd(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.say("s1", "hi")
		synctest.Wait()
		head := int64(r.head("s1"))
		a, err := r.client().Attach(t.Context(), "s1", client.AttachQuery{})
		if err != nil || a.Capabilities.ActiveRootRunID != "" || a.Boundary != head {
			t.Errorf("got %+v, %v: want no active run and the boundary %d", a, err, head)
		}
		page, err := r.client().History(t.Context(), "s1", client.HistoryQuery{AfterSessionSequence: head})
		if err != nil || len(page.Events) != 0 || page.NextSessionSequence != nil {
			t.Errorf("history at the end: got %+v, %v: want an empty page and no cursor", page, err)
		}
		last := r.facts("s1")[head-1]
		page, err = r.client().History(t.Context(), "s1", client.HistoryQuery{AfterSessionSequence: head - 1})
		if err != nil || len(page.Events) != 1 || last.Type() != narad.TypeRunFinished {
			t.Errorf("history before the end: got %+v, %v: want the terminal", page, err)
		}
	})
}

// Lists show what is whole and name what is damaged, to who may see it.
func TestListsNameWhatIsDamaged(t *testing.T) {
	bubble(t, rigOptions{agent: asks}, func(t *testing.T, r *rig) {
		for _, id := range []string{"hurt", "whole"} {
			r.want(r.post("/sessions", `{"sessionId":"`+id+`","workspaceId":"`+id+`"}`), 201)
			r.want(r.post("/commands/message", `{"sessionId":"`+id+`","content":"go"}`), 202)
		}
		synctest.Wait()
		_, interrupt, _ := strings.Cut(r.want(r.get("/interrupts?sessionId=hurt"), 200).body, `"interruptId":"`)
		interrupt, _, _ = strings.Cut(interrupt, `"`)
		r.journal.(*journal.Memory).Damage(journal.SessionKey("hurt"), journal.OpenWorkKey("hurt"), journal.InterruptKey(interrupt))
		damaged := `"damaged":[{"sessionId":"hurt"`
		for path, want := range map[string]string{
			"/sessions": damaged + `}]`, "/sessions?state=waiting": damaged + `}]`, "/interrupts": damaged + `,"interruptId":"` + interrupt + `"}]`,
		} {
			if got := r.want(r.get(path), 200); !strings.Contains(got.body, want) {
				t.Errorf("%s: got %s, want %s", path, got, want)
			}
		}
		if got := r.want(r.get("/interrupts"), 200); strings.Count(got.body, `"title":"Write it?"`) != 2 {
			t.Errorf("inbox: got %s, want both, as they were asked", got)
		}
		r.token = r.newToken("other", access.Grant{Roles: []access.Role{access.Observe, access.Decide}, Workspaces: []string{"whole"}})
		for _, path := range []string{"/sessions", "/interrupts"} {
			if got := r.want(r.get(path), 200); strings.Contains(got.body, "hurt") || strings.Contains(got.body, "damaged") {
				t.Errorf("%s of another workspace: got %s", path, got)
			}
		}
	})
}

// A list of materials names what cannot be read of it.
func TestMaterialsNameWhatIsDamaged(t *testing.T) {
	bubble(t, rigOptions{agent: speaks}, func(t *testing.T, r *rig) {
		r.want(r.post("/sessions", `{"sessionId":"s"}`), 201)
		for _, id := range []string{"a", "b", "c"} {
			r.row(journal.MaterialRow{Session: "s", Space: host.Artifacts, ID: id, Value: []byte(`{"state":"ready","name":"n"}`)})
		}
		r.journal.(*journal.Memory).Damage(journal.MaterialKey("s", host.Artifacts, "b"))
		got := r.want(r.get("/sessions/s/artifacts"), 200)
		if !strings.Contains(got.body, `"damaged":[{"sessionId":"s","artifactId":"b"}]`) || !strings.Contains(got.body, `"artifactId":"c"`) {
			t.Errorf("artifacts: got %s, want a and c, and b damaged", got)
		}
	})
}

// row writes a row of the session s behind the host's back, whose owner is not alive.
func (r *rig) row(row journal.Row) {
	r.t.Helper()
	head, err := r.journal.Head(r.t.Context(), "s")
	if err != nil {
		r.t.Fatal(err)
	}
	term, err := r.journal.AcquireTerm(r.t.Context(), "s")
	if err != nil {
		r.t.Fatal(err)
	}
	_, err = r.journal.Append(r.t.Context(), journal.Batch{
		Session: "s", ExpectHead: head.Sequence, ExpectTerm: term, Changes: []journal.Change{journal.Put{Row: row}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
}
