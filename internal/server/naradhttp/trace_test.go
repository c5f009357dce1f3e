package naradhttp_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// R6: a side session is read with the role trace alone, like any session, and the
// session's own readers see nothing of it.
func TestSideSession(t *testing.T) {
	traces := func(ctx context.Context, h agent.Handle) agent.Ending {
		_ = h.Trace(ctx, agent.Trace{Type: narad.TypeTraceSpanStarted, Value: narad.Raw(`{"name":"marker-of-a-span"}`)})
		_ = h.Trace(ctx, agent.Trace{Type: narad.TypeDebugLog, Value: narad.Raw(`{"text":"marker-of-a-log"}`)})
		return agent.Ending{}
	}
	bubble(t, rigOptions{agent: traces}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.create("s2")
		r.say("s1", "go")
		synctest.Wait()
		admin := r.token
		for _, tt := range []struct {
			role access.Role
			want int
		}{{access.Trace, 200}, {access.Admin, 200}, {access.Observe, 403}, {access.Drive, 403}, {access.Decide, 403}} {
			r.token = r.newToken(string(tt.role), access.Grant{Roles: []access.Role{tt.role}})
			for _, path := range []string{"", "/events", "/attach"} {
				if got := r.get("/sessions/s1~trace" + path); got.status != tt.want {
					t.Errorf("%s reads %q: got %s, want %d", tt.role, path, got, tt.want)
				}
			}
		}
		r.token = r.newToken("elsewhere", access.Grant{Roles: []access.Role{access.Trace}, Workspaces: []string{"w2"}})
		r.want(r.get("/sessions/s1~trace/events"), 404)
		r.token = admin
		got := r.want(r.get("/sessions/s1~trace/events"), 200)
		if strings.Count(got.body, "marker-of-a-") != 2 || !strings.Contains(got.body, `"sessionId":"s1~trace"`) {
			t.Errorf("got %s", got)
		}
		if own := r.get("/sessions/s1/events").body + r.get("/sessions").body + r.get("/sessions/s1").body; strings.Contains(own, "marker-of-a-") || strings.Contains(own, "~trace") {
			t.Errorf("the trace shows: %s", own)
		}
		r.wantProblem(r.get("/sessions/s2~trace/events"), 404, "not_found") // nothing was traced
		r.wantProblem(r.get("/sessions/none~trace/events"), 404, "not_found")
		r.wantProblem(r.get("/sessions/s1~trace/audit"), 404, "not_found")
		r.wantProblem(r.get("/sessions/s1~trace/artifacts"), 404, "not_found")
		r.wantProblem(r.post("/sessions/s1~trace/archive", ""), 404, "not_found")
		r.wantProblem(r.get("/sessions/~trace/events"), 400, "invalid_field")
		r.want(r.send(r.request("DELETE", "/sessions/s1~trace", "")), 404)
	})
}
