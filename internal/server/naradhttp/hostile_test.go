package naradhttp_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/internal/access"
)

// A query is read strictly: what cannot be read is not left out, and nobody chooses
// among several. Limits are clamped (R26).
func TestQueries(t *testing.T) {
	long := strings.Repeat("x", 5_000)
	tests := []struct {
		path, query string
		status      int
		code        string
	}{
		{"/sessions/s1/events", "afterSessionSequence=%zz", 400, "bad_request"},
		{"/sessions/s1/events", "afterSessionSequence=1;limit=1", 400, "bad_request"},
		{"/sessions/s1/events", "%zz=1", 400, "bad_request"},
		{"/sessions/s1/events", "afterSessionSequence=1&afterSessionSequence=1", 400, "bad_request"},
		{"/sessions/s1/events", "limit=1&limit=2", 400, "bad_request"},
		{"/sessions/s1/events", "rootRunId=a&rootRunId=b", 400, "bad_request"},
		{"/sessions/s1/stream", "afterSessionSequence=0&afterSessionSequence=1", 400, "bad_request"},
		{"/sessions/s1/attach", "unclaimed=skip&unclaimed=no", 400, "bad_request"},
		{"/sessions", "state=idle&state=running", 400, "bad_request"},
		{"/sessions", "cursor=&cursor=", 400, "bad_request"},
		{"/interrupts", "sessionId=a&sessionId=b", 400, "bad_request"},
		{"/sessions/s1/events", "limit=1e3", 400, "bad_request"},
		{"/sessions/s1/events", "limit=%00", 400, "bad_request"},
		{"/sessions/s1/events", "limit=0x10", 400, "bad_request"},
		{"/sessions/s1/events", "afterSessionSequence=%00", 400, "cursor_invalid"},
		{"/sessions/s1/events", "afterSessionSequence=1.0", 400, "cursor_invalid"},
		{"/sessions/s1/events", "afterSessionSequence=9007199254740992", 400, "cursor_invalid"},
		{"/sessions/s1/events", "afterSessionSequence=9007199254740991", 409, "cursor_ahead"},
		{"/sessions/s1/events", "rootRunId=%00", 400, "invalid_field"},
		{"/sessions/s1/events", "rootRunId=" + long, 400, "invalid_field"},
		{"/sessions/s1/events", "workflowId=a%0ab", 400, "invalid_field"},
		{"/sessions/s1/events", "rootRunId=&afterSequence=0", 400, "cursor_invalid"},
		{"/sessions", "workspaceId=%00", 400, "invalid_field"},
		{"/sessions", "workspaceId=" + long, 400, "invalid_field"},
		{"/sessions", "state=%00", 400, "bad_request"},
		{"/interrupts", "sessionId=~host", 400, "invalid_field"},
		{"/sessions/s1/events", "limit=-1", 200, ""},
		{"/sessions/s1/events", "limit=0", 200, ""},
		{"/sessions/s1/events", "limit=99999999999999999999", 200, ""},
		{"/sessions/s1/events", "limit=-99999999999999999999", 200, ""},
		{"/sessions/s1/events", "unknown=%00&unknown=2&=3&=4", 200, ""},
		{"/sessions/s1/events", "", 200, ""},
	}
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		for _, tt := range tests {
			got := r.get(tt.path + "?" + tt.query)
			if tt.code != "" {
				r.wantProblem(got, tt.status, tt.code)
			} else {
				r.want(got, tt.status)
			}
			if strings.Contains(got.body, long) || strings.Contains(got.body, "%") {
				t.Errorf("%.60s: the answer repeats it: %.300s", tt.query, got)
			}
		}
	})
}

// Two positions are no position.
func TestLastEventIDTwice(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		id := r.facts("s1")[0].Envelope().EventID
		for _, values := range [][]string{{id, id}, {id, ""}, {"", id}} {
			q := r.request("GET", "/sessions/s1/stream", "")
			q.Header["Last-Event-Id"] = values
			r.wantProblem(r.send(q), 400, "bad_request")
		}
		for _, value := range []string{"nonsense", "-1.abcdefgh", "0.abcdefgh", "1.", "1." + strings.Repeat("9", 20_000), "1.\xff\xfe", id + "x", "\t" + id[:3]} {
			q := r.request("GET", "/sessions/s1/stream", "")
			q.Header.Set("Last-Event-ID", value)
			r.wantProblem(r.send(q), 409, "cursor_unknown")
		}
	})
}

// A route of the binding, and who may use it: the roles, in the workspace of the session.
type permission struct {
	method, path, body string
	roles              []access.Role // besides admin
	anywhere           bool          // the answer is filtered: the role may hold in any workspace
}

var (
	observe, decides, drive = []access.Role{access.Observe}, []access.Role{access.Decide}, []access.Role{access.Drive}

	// permissions has every route of docs/http.md. SESSION and INTERRUPT are put in.
	permissions = []permission{
		{"GET", "/capabilities", "", access.Roles(), true},
		{"POST", "/sessions", `{"sessionId":"SESSION","workspaceId":"w1"}`, drive, false},
		{"GET", "/sessions", "", observe, true},
		{"GET", "/sessions?workspaceId=w1", "", observe, false},
		{"GET", "/sessions/SESSION", "", observe, false},
		{"GET", "/sessions/SESSION/attach", "", observe, false},
		{"GET", "/sessions/SESSION/events", "", observe, false},
		{"HEAD", "/sessions/SESSION/stream", "", observe, false},
		{"GET", "/sessions/SESSION/messages", "", observe, false},
		{"HEAD", "/sessions/SESSION/stream?hydrate=messages,graph&watch=1", "", observe, false},
		{"GET", "/sessions/SESSION/graph?rootRunId=x", "", observe, false},
		{"HEAD", "/workspaces/w1/stream", "", observe, false},
		{"GET", "/sessions/SESSION/audit", "", nil, false},
		{"POST", "/sessions/SESSION/archive", "", drive, false},
		{"POST", "/sessions/SESSION/restore", "", drive, false},
		{"DELETE", "/sessions/SESSION", "", nil, false},
		{"GET", "/interrupts", "", decides, true},
		{"POST", "/commands/message", `{"sessionId":"SESSION","content":"x","whenBusy":"reject"}`, drive, false},
		{"POST", "/commands/stop-active-root", `{"sessionId":"SESSION","rootRunId":"none"}`, drive, false},
		{"POST", "/commands/queue", `{"sessionId":"SESSION","action":"release"}`, drive, false},
		{"POST", "/commands/redact", `{"sessionId":"SESSION","messageId":"none","reason":"x"}`, nil, false},
		{"POST", "/commands/resolve-interrupt", `{"interruptId":"INTERRUPT","decision":"not-offered"}`, decides, false},
		{"POST", "/commands/start-workflow", `{"sessionId":"SESSION","definition":{}}`, drive, false},
		{"POST", "/executors/desk/attach", "", []access.Role{access.Execute}, false},
		{"GET", "/executors/desk/stream", "", []access.Role{access.Execute}, false},
		{"POST", "/executors/desk/controls", `{"type":"client.heartbeat","protocolVersion":"narad/v1","clientExecutorId":"desk","leaseId":"mxl_guess"}`, []access.Role{access.Execute}, false},
		{"POST", "/executors/other/attach", "", nil, false},
	}
)

// Role by role over all routes, each with the role everywhere, in the session's
// workspace, and in another. A refusal is 403, or 404 where the session is one that the
// token cannot know of, and changes nothing; what is allowed is anything but that.
func TestEveryRouteTakesItsRole(t *testing.T) {
	bubble(t, rigOptions{agent: asks}, func(t *testing.T, r *rig) {
		r.want(r.post("/sessions", `{"sessionId":"s1","workspaceId":"w1"}`), 201)
		r.say("s1", "write")
		synctest.Wait()
		names := strings.NewReplacer("SESSION", "s1", "INTERRUPT", r.opened()[0])
		for _, role := range access.Roles() {
			for _, workspaces := range [][]string{nil, {"w1"}, {"w2"}} {
				grant := access.Grant{Roles: []access.Role{role}, Workspaces: workspaces}
				if role == access.Execute {
					grant.Executors = []string{"desk"}
				}
				r.token = r.newToken(fmt.Sprint(role, workspaces), grant)
				for _, p := range permissions {
					want := 0
					switch elsewhere := !p.anywhere && slices.Equal(workspaces, []string{"w2"}); {
					case elsewhere && p.path != "/sessions" && names.Replace(p.path+p.body) != p.path+p.body:
						want = 404
					case elsewhere, role != access.Admin && !slices.Contains(p.roles, role):
						want = 403
					}
					if strings.HasPrefix(p.path, "/executors/") { // they are of no workspace
						want = 403
						if slices.Contains(p.roles, role) || role == access.Admin && workspaces == nil {
							want = 0
						}
					}
					r.wantAllowed(p, want, fmt.Sprint(role, " in ", workspaces), names)
				}
			}
		}
		for _, token := range []string{"", "mht_none", strings.Repeat("x", 10_000)} {
			r.token = token
			for _, p := range permissions {
				got := r.send(r.request(p.method, names.Replace(p.path), names.Replace(p.body)))
				if got.status != 401 {
					t.Errorf("nobody: got %s, want 401", got)
				}
			}
		}
	})
}

// Who does not reach a session is told nothing apart of one that is there, or was.
func TestUnreachedIsUnknown(t *testing.T) {
	bubble(t, rigOptions{agent: asks}, func(t *testing.T, r *rig) {
		for _, id := range []string{"s1", "gone"} {
			r.want(r.post("/sessions", `{"sessionId":"`+id+`","workspaceId":"w1"}`), 201)
		}
		r.say("s1", "write")
		synctest.Wait()
		interrupt := r.opened()[0]
		r.want(r.send(r.request("DELETE", "/sessions/gone", "")), 204)
		r.wantProblem(r.get("/sessions/gone"), 410, "session_deleted")
		r.token = r.newToken("stranger", access.Grant{Roles: access.Roles(), Workspaces: []string{"w2"}, Executors: []string{"desk"}})
		compared := 0
		for _, p := range permissions {
			if !strings.Contains(p.path+p.body, "SESSION") || p.path == "/sessions" {
				continue
			}
			compared++
			send := func(id string) reply {
				names := strings.NewReplacer("SESSION", id, "INTERRUPT", interrupt)
				return r.send(r.request(p.method, names.Replace(p.path), names.Replace(p.body)))
			}
			want := send("none")
			for _, id := range []string{"s1", "gone"} {
				got := send(id)
				if got.status != want.status || got.field("code") != want.field("code") || got.field("detail") != want.field("detail") {
					t.Errorf("%s %s of %s: got %s, want what an unknown one is answered: %s", p.method, p.path, id, got, want)
				}
			}
		}
		if compared < 15 {
			t.Errorf("%d routes were compared", compared)
		}
	})
}

// wantAllowed demands a refusal with a status, or none at all (0).
func (r *rig) wantAllowed(p permission, want int, who string, names *strings.Replacer) {
	r.t.Helper()
	before := r.heads()
	q := r.request(p.method, names.Replace(p.path), names.Replace(p.body))
	if want == 0 && p.method == http.MethodDelete {
		q.URL.Path += "none" // so that the session stays for the others
	}
	got := r.send(q)
	word := map[int]string{403: "forbidden", 404: "not_found"}[want]
	switch {
	case want == 0 && (got.status == 403 && got.field("code") != "wrong_lease" || got.status == 401 || got.status >= 500 && got.status != 501):
		r.t.Errorf("%s: got %s, want it allowed", who, got)
	case want != 0 && (got.status != want || p.method != http.MethodHead && got.field("status")+got.field("code") != word):
		r.t.Errorf("%s: got %s, want %d %s", who, got, want, word)
	case want != 0 && r.heads() != before:
		r.t.Errorf("%s: the refused %s %s moved the store from %v to %v", who, p.method, p.path, before, r.heads())
	}
}
