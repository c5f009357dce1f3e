package conformance

import (
	"net/http"
	"slices"
	"strings"

	"github.com/mahati-host/mahati/narad"
)

// sessionChecks are about making, finding and attaching to sessions.
var sessionChecks = []Check{
	{"session.create", "R21", "a session is made once: 201, and 200 for the same id again", nothing, checkCreate},
	{"session.unknown", "§10.2", "an id that was never given is 404, and reading it makes nothing", nothing, checkUnknown},
	{"session.list", "R26", "a list leads through all sessions, each once, by an opaque cursor", nothing, checkList},
	{"session.delete", "R4, R8", "a deleted session is 410 for ever, and its id is not given again", nothing, checkDelete},
	{"attach.answer", "§10.4", "attach tells protocol, profiles, limits, head and what is active", nothing, checkAttach},
	{"attach.active", "§10.4", "attach names the active run, and none when nothing runs", agent, checkAttachActive},
	{"attach.profiles", "R25", "a claim without a required profile is refused, unless it says that it skips", nothing, checkClaims},
}

func checkCreate(p *probe) {
	id := p.session()
	for range 2 {
		var again summary
		p.post("/sessions", p.creation(id, "")).is(http.StatusOK).into(&again)
		p.want(again.SessionID == id, "the same id again finds %q", again.SessionID)
	}
	facts := p.history(id, 100)
	p.want(len(ofType(facts, "session.custom")) <= 1, "making a session three times recorded %d facts of its making", len(facts))
	var chosen summary
	p.post("/sessions", strings.Replace(p.creation("", ""), `"sessionId":""`, `"sessionId":null`, 1)).is(http.StatusCreated).into(&chosen)
	p.want(chosen.SessionID != "", "a session without a chosen id has none")
	p.made = append(p.made, chosen.SessionID)
}

func checkUnknown(p *probe) {
	id := p.id()
	for range 2 { // the second time too: reading made nothing
		for _, path := range []string{"", "/attach", "/events", "/stream"} {
			p.get("/sessions/" + id + path).is(http.StatusNotFound)
		}
	}
}

func checkList(p *probe) {
	made := []string{p.session(), p.session(), p.session()}
	seen := map[string]bool{}
	for path, pages := "/sessions?limit=2", 0; ; pages++ {
		var read struct {
			Items      []summary `json:"items"`
			NextCursor string    `json:"nextCursor"`
		}
		p.ok(path, &read)
		p.want(len(read.Items) <= 2, "a page of 2 has %d sessions", len(read.Items))
		for _, s := range read.Items {
			p.want(!seen[s.SessionID], "%s is in the list twice", s.SessionID)
			seen[s.SessionID] = true
		}
		if read.NextCursor == "" {
			break
		}
		p.want(pages < 100_000, "the list has no end")
		path = "/sessions?limit=2&cursor=" + read.NextCursor
	}
	for _, id := range made {
		p.want(seen[id], "%s is not in the list", id)
	}
	p.get("/sessions?cursor=nonsense").problem(http.StatusBadRequest, "cursor_invalid")
}

func checkDelete(p *probe) {
	id := p.session()
	p.request(http.MethodDelete, "/sessions/"+id, nil, nil).is(http.StatusNoContent)
	for _, path := range []string{"", "/attach", "/events", "/stream"} {
		p.get("/sessions/"+id+path).problem(http.StatusGone, "session_deleted")
	}
	a := p.post("/sessions", p.creation(id, ""))
	p.want(a.status == http.StatusGone, "%v: the id of a deleted session is never given again, want 410", a)
	p.command("message", "not_found", `{"sessionId":`+quoted(id)+`,"content":"x"}`)
}

// attached is the answer to an attach.
type attached struct {
	Capabilities struct {
		ProtocolVersion        string   `json:"protocolVersion"`
		ActiveProfiles         []string `json:"activeProfiles"`
		CurrentSessionSequence *int64   `json:"currentSessionSequence"`
		HistoryLimit           int64    `json:"historyLimit"`
		HeartbeatIntervalMs    int64    `json:"heartbeatIntervalMs"`
		ActiveRootRunID        string   `json:"activeRootRunId"`
	} `json:"capabilities"`
	RequiredProfiles        []string `json:"requiredProfiles"`
	Epoch                   string   `json:"epoch"`
	BoundarySessionSequence *int64   `json:"boundarySessionSequence"`
}

func (p *probe) attach(session, query string) (a attached) {
	p.ok("/sessions/"+session+"/attach"+query, &a)
	return a
}

func checkAttach(p *probe) {
	id := p.session()
	a, head := p.attach(id, ""), p.summary(id).CurrentSessionSequence
	c := a.Capabilities
	p.want(c.ProtocolVersion == narad.Version, "the protocol is %q", c.ProtocolVersion)
	p.want(c.HistoryLimit >= 1 && c.HeartbeatIntervalMs >= 1, "the limits are historyLimit %d and heartbeatIntervalMs %d", c.HistoryLimit, c.HeartbeatIntervalMs)
	p.want(c.CurrentSessionSequence != nil && *c.CurrentSessionSequence == head, "currentSessionSequence is not the head %d", head)
	p.want(a.BoundarySessionSequence != nil && *a.BoundarySessionSequence == head, "boundarySessionSequence is not the head %d", head)
	p.want(c.ActiveRootRunID == "", "an idle session has the active run %q", c.ActiveRootRunID)
	active, offered := p.wantProfiles(c.ActiveProfiles), p.wantProfiles(p.capabilities().ActiveProfiles)
	p.want(offered.Has(active), "attach has profiles that the host does not offer: %v", (active &^ offered).IDs())
	p.want(active.Has(p.wantProfiles(a.RequiredProfiles)), "attach without a claim leaves out required profiles")
	p.want(a.Epoch == p.capabilities().Epoch, "the epoch is %q, and in capabilities another", a.Epoch)
}

func checkAttachActive(p *probe) {
	id := p.session()
	run := p.say(id, promptWait).RunID
	p.want(run != "", "an accepted message names no runId")
	p.awaitFact(id, "run.started")
	p.want(p.attach(id, "").Capabilities.ActiveRootRunID == run, "attach does not name the active run %s", run)
	p.command("stop-active-root", "accepted", `{"sessionId":`+quoted(id)+`,"rootRunId":`+quoted(run)+`}`)
	p.idle(id)
	active := p.attach(id, "").Capabilities.ActiveRootRunID
	p.want(active == "", "attach names the run %s, which has ended", active)
}

func checkClaims(p *probe) {
	id := p.session()
	a := p.attach(id, "")
	if len(a.RequiredProfiles) == 0 {
		p.skipf("the session requires no profile")
	}
	p.get("/sessions/"+id+"/attach?profiles="+a.RequiredProfiles[0]+"x").problem(http.StatusConflict, "profiles_required")
	for i := range a.RequiredProfiles {
		claim := slices.Delete(slices.Clone(a.RequiredProfiles), i, i+1)
		path := "?profiles=" + strings.Join(append(claim, "narad.unheard/v1"), ",")
		p.get("/sessions/"+id+"/attach"+path).problem(http.StatusConflict, "profiles_required")
		skips := p.attach(id, path+"&unclaimed=skip").Capabilities.ActiveProfiles
		p.want(slices.Equal(skips, claim), "a claim of %v that skips the rest is answered with %v", claim, skips)
	}
	backwards := slices.Clone(a.RequiredProfiles)
	slices.Reverse(backwards)
	got := p.attach(id, "?profiles="+strings.Join(backwards, ",")).Capabilities.ActiveProfiles
	p.want(slices.Equal(got, backwards), "a claim of all is answered with %v, want its own order", got)
}
