package harnesshttp_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
)

// pending returns the approval that a run waits for.
func (r *rig) pending(run string) string {
	r.t.Helper()
	synctest.Wait()
	return r.all(run).find(r.t, harness.ApprovalRequested).CorrelationID
}

// An approval is decided by one of two words, once; what is told again gets its first
// answer, also after the run has ended and the host was started again.
func TestApproval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, rigOptions{agent: acts(asks)})
		run := r.run("in", "go")
		id := r.pending(run)
		first := r.want(r.tell(run, "a-1", decision(id, "approve")), 202)
		if first.field("status") != "accepted" || first.field("decision") != "approve" || first.field("approval_id") != id || first.field("duplicate") != "" {
			t.Errorf("got %s", first)
		}
		synctest.Wait()
		p := r.all(run)
		resolved := p.find(t, harness.ApprovalResolved)
		if resolved.CausationID != "a-1" || !strings.Contains(string(resolved.Payload), `"approved"`) || !p.ended {
			t.Errorf("got %+v, ended %v", resolved, p.ended)
		}
		again := func() {
			t.Helper()
			heads := r.heads()
			got := r.want(r.tell(run, "a-1", decision(id, "approve")), 200)
			if got.field("duplicate") != "true" || got.field("session_sequence") != first.field("session_sequence") {
				t.Errorf("told again: %s", got)
			}
			for body, want := range map[string]string{
				decision(id, "deny"): "approve", cancel: "approve", say("x"): "approve",
			} {
				conflict := r.wantProblem(r.tell(run, "a-1", body), 409, "input_conflict")
				if !strings.Contains(conflict.field("first"), want) {
					t.Errorf("the first effect is not named: %s", conflict)
				}
			}
			if got := r.want(r.tell(run, "a-2", decision(id, "approve")), 200); got.field("status") != "already_applied" {
				t.Errorf("the same decision: %s", got)
			}
			lost := r.wantProblem(r.tell(run, "a-3", decision(id, "deny")), 409, "approval_boundary")
			if lost.field("decision") != "approve" {
				t.Errorf("the winner's decision is not named: %s", lost)
			}
			if r.heads() != heads {
				t.Errorf("the store moved from %v to %v", heads, r.heads())
			}
		}
		again()
		r.close()
		r = begin(t, rigOptions{agent: acts(asks), before: r})
		again()
	})
}

// Field cases 22, 24 and 27: nothing is decided but what is pending in that run, by words
// that it offers.
func TestApprovalsThatCannotBe(t *testing.T) {
	bubble(t, rigOptions{agent: acts(asks)}, func(t *testing.T, r *rig) {
		run, other := r.run("in", "go"), r.run("in-2", "go")
		id, foreign := r.pending(run), r.pending(other)
		heads := r.heads()
		r.wantProblem(r.tell(run, "x-1", decision("none", "approve")), 404, "approval_boundary")
		r.wantProblem(r.tell(run, "x-1", decision(foreign, "approve")), 404, "approval_boundary")
		for _, word := range []string{"yes", "APPROVE", "", "approve_always", "expired", "stop"} {
			r.wantProblem(r.tell(run, "x-1", decision(id, word)), 400, "invalid_input")
		}
		scoped := func(scope string) string {
			return `"type":"approval.resolve","approval":{"approval_id":"` + id + `","decision":"approve","scope":` + quote(scope) + `}`
		}
		r.wantProblem(r.tell(run, "x-1", scoped("everything")), 422, "scope_exceeded")
		if r.heads() != heads {
			t.Errorf("the store moved from %v to %v", heads, r.heads())
		}
		declared := harness.Approval{}
		if err := unmarshal(r.all(run).find(t, harness.ApprovalRequested).Payload, &declared); err != nil {
			t.Fatal(err)
		}
		r.want(r.tell(run, "x-1", scoped(declared.Scope)), 202) // what was refused used no id
		synctest.Wait()
		if p := r.all(other); p.ended {
			t.Error("the other run has gone on")
		}
		r.wantProblem(r.tell("none", "x", decision(id, "approve")), 404, "not_found")
		r.wantProblem(r.post("/runs/"+run+"/inputs", `{"version":"fak.harness.run/v1","run_id":"`+other+`","input_id":"x",`+cancel+`}`), 409, "run_mismatch")
	})
}

// Field case 21: of fifty who decide at once one wins, and all learn what was decided.
func TestFiftyDecideAtOnce(t *testing.T) {
	bubble(t, rigOptions{agent: acts(asks)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		id := r.pending(run)
		var all sync.WaitGroup
		answers := make([]reply, 50)
		for i := range answers {
			all.Go(func() {
				answers[i] = r.tell(run, fmt.Sprintf("a-%d", i), decision(id, []string{"approve", "deny"}[i%2]))
			})
		}
		all.Wait()
		won := 0
		decided := map[string]bool{}
		for _, a := range answers {
			decided[a.field("decision")] = true
			if a.status == 202 {
				won++
			}
		}
		synctest.Wait()
		resolved := 0
		for _, kind := range r.all(run).kinds() {
			if kind == harness.ApprovalResolved {
				resolved++
			}
		}
		if won != 1 || len(decided) != 1 || resolved != 1 {
			t.Errorf("%d won, the decisions were %v, %d records", won, decided, resolved)
		}
	})
}

// R38: a message steers the run that it names, or is refused and says why.
func TestMessages(t *testing.T) {
	bubble(t, rigOptions{agent: acts(waits), host: hostOptions(1)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		queued := r.run("in-2", "go")
		synctest.Wait()
		r.want(r.tell(run, "m-1", say("more")), 202)
		if a := r.want(r.tell(run, "m-1", say("more")), 200); a.field("duplicate") != "true" {
			t.Errorf("got %s", a)
		}
		r.wantProblem(r.tell(run, "m-1", say("else")), 409, "input_conflict")
		r.wantProblem(r.tell(queued, "m-1", say("more")), 409, "run_not_started")
		p := r.all(run)
		if last := p.events[len(p.events)-1]; last.Type != harness.MessageCompleted || last.CausationID != "m-1" || last.CorrelationID != "m-1" {
			t.Errorf("got %+v", last)
		}
		r.want(r.tell(run, "m-s", `"type":"message.submit","message":{"text":"hush","sensitivity":"secret"}`), 202)
		p = r.all(run)
		if last := p.events[len(p.events)-1]; last.Sensitivity != harness.Secret || strings.Contains(p.lines[len(p.lines)-1], "hush") {
			t.Errorf("got %s", p.lines[len(p.lines)-1])
		}
		r.want(r.tell(run, "stop", cancel), 202)
		r.want(r.tell(run, "stop", cancel), 200)
		synctest.Wait()
		if a := r.want(r.tell(run, "stop-2", cancel), 200); a.field("status") != "already_applied" {
			t.Errorf("got %s", a)
		}
		r.wantProblem(r.tell(run, "m-2", say("more")), 409, "run_canceled")
		r.want(r.tell(run, "m-1", say("more")), 200) // it has its first answer for ever
		r.wantProblem(r.tell(run, "m-3", `"type":"message.submit","message":{"text":""}`), 400, "invalid_input")
		r.wantProblem(r.tell(run, "m-3", say(strings.Repeat("x", 256<<10+1))), 400, "invalid_field")
	})
	bubble(t, rigOptions{agent: deaf{Acts: waits}}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		synctest.Wait()
		r.wantProblem(r.tell(run, "m-1", say("more")), 501, "unsupported")
	})
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		synctest.Wait()
		r.wantProblem(r.tell(run, "m-1", say("more")), 409, "run_ended")
		r.wantProblem(r.tell(run, "stop", cancel), 409, "run_ended")
	})
}

// Field case 59: after a cancel come run.canceled and the final checkpoint, and nothing else.
func TestCancel(t *testing.T) {
	bubble(t, rigOptions{agent: acts(asks)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		id := r.pending(run)
		before := len(r.all(run).events)
		r.want(r.tell(run, "stop", cancel), 202)
		synctest.Wait()
		p := r.all(run)
		if got := p.kinds()[before:]; !slices.Equal(got, []harness.Type{harness.RunCanceled, harness.Checkpointed}) || !p.ended {
			t.Errorf("got %v, ended %v", got, p.ended)
		}
		if e := p.events[before]; e.CausationID != "stop" {
			t.Errorf("the cancel was caused by %q", e.CausationID)
		}
		r.wantProblem(r.tell(run, "a-1", decision(id, "approve")), 410, "expired")
	})
}

// Field cases 45 and 109: a start has one effect, however often and from wherever it is told.
func TestStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := begin(t, rigOptions{agent: acts(waits)})
		body := `{"input_id":"in","text":"go","title":"t"}`
		var all sync.WaitGroup
		answers := make([]reply, 50)
		for i := range answers {
			all.Go(func() { answers[i] = r.post("/runs", body) })
		}
		all.Wait()
		run, made := answers[0].field("run_id"), 0
		for _, a := range answers {
			if a.field("run_id") != run || a.field("session_id") != answers[0].field("session_id") {
				t.Errorf("got %s and %s", a, answers[0])
			}
			if a.status == 201 {
				made++
			}
		}
		if made != 1 || run == "" {
			t.Errorf("%d were the first: %s", made, answers[0])
		}
		if got := answers[0].header.Get("Location"); got != "/api/harness/v1/runs/"+run+"/events" {
			t.Errorf("Location: %q", got)
		}
		for _, other := range []string{
			`{"input_id":"in","text":"go"}`, `{"input_id":"in","text":"stay","title":"t"}`, `{"input_id":"in","text":"go","title":"t","workspace_id":"w"}`,
			`{"input_id":"in","text":"go","title":"t","cwd":"/tmp"}`, `{"input_id":"in","text":"go","title":"t","when_busy":"reject"}`,
		} {
			got := r.wantProblem(r.post("/runs", other), 409, "input_conflict")
			if !strings.Contains(got.field("first"), run) {
				t.Errorf("the first effect is not named: %s", got)
			}
		}
		// Another principal's ids are its own.
		colleague := r.as("colleague", access.Drive)
		if a := r.want(colleague.post("/runs", body), 201); a.field("run_id") == run {
			t.Errorf("got the run of another: %s", a)
		}
		r.close()
		r = begin(t, rigOptions{agent: acts(waits), before: r})
		if a := r.want(r.post("/runs", body), 200); a.field("run_id") != run || a.field("duplicate") != "true" {
			t.Errorf("after a restart: %s", a)
		}
	})
}

// A start in a session that is busy waits its turn or is refused, as it wants (R16); each
// has a log from the first moment, and is run once.
func TestStartsInASession(t *testing.T) {
	bubble(t, rigOptions{agent: acts(waits)}, func(t *testing.T, r *rig) {
		r.session("s1", "default")
		in := func(id, more string) reply {
			return r.post("/runs", `{"input_id":"`+id+`","text":"go","session_id":"s1"`+more+`}`)
		}
		first := r.want(in("in-1", ""), 201).field("run_id")
		synctest.Wait()
		second := r.want(in("in-2", `,"when_busy":"queue"`), 201).field("run_id")
		busy := r.wantProblem(in("in-3", `,"when_busy":"reject"`), 409, "session_busy")
		if busy.field("run_id") != first {
			t.Errorf("got %s", busy)
		}
		if p := r.all(second); len(p.events) > 0 || p.ended {
			t.Errorf("got %s", p.body)
		}
		r.want(r.tell(first, "stop", cancel), 202)
		synctest.Wait()
		r.want(in("in-2", ""), 200)                          // to queue is what it said
		third := r.want(in("in-3", ""), 201).field("run_id") // the id was free
		synctest.Wait()
		if p := r.all(second); len(p.events) == 0 {
			t.Error("the second run does not run: a new message moves the queue")
		}
		if p := r.all(third); len(p.events) > 0 {
			t.Errorf("the third run runs: %s", p.body)
		}
		r.wantProblem(r.post("/runs", `{"input_id":"x","text":"go","session_id":"none"}`), 404, "not_found")
	})
}

func TestStartsThatCannotBe(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		heads := r.heads()
		for body, code := range map[string]string{
			`{"text":"go"}`:                                                     "invalid_field",
			`{"input_id":"in"}`:                                                 "invalid_field",
			`{"input_id":"in","text":""}`:                                       "invalid_field",
			`{"input_id":"a b","text":"go"}`:                                    "invalid_field",
			`{"input_id":"in","text":5}`:                                        "invalid_field",
			`{"input_id":"in","text":"go","when_busy":"now"}`:                   "invalid_field",
			`{"input_id":"in","text":"go","session_id":"s","agent":"test"}`:     "invalid_field",
			`{"input_id":"in","text":"go","session_id":".."}`:                   "invalid_field",
			`{"input_id":"in","text":"go","title":"a\nb"}`:                      "invalid_field",
			`{"version":"fak.harness.run/v2","input_id":"in","text":"go"}`:      "version_unsupported",
			`{"input_id":"` + strings.Repeat("x", 129) + `","text":"go"}`:       "invalid_field",
			`{"input_id":"in","text":"` + strings.Repeat("x", 256<<10+1) + `"}`: "invalid_field",
			`[]`: "bad_request", ``: "bad_request", `{"input_id":"in","input_id":"in","text":"go"}`: "bad_request",
			"{\"input_id\":\"in\",\"text\":\"\xff\"}": "bad_request",
		} {
			r.wantProblem(r.post("/runs", body), 400, code)
		}
		r.wantProblem(r.post("/runs", `{"input_id":"in","text":"go","agent":"nobody"}`), 422, "rejected")
		r.wantProblem(r.post("/runs", `{"input_id":"in","text":"`+strings.Repeat("x", 1<<20)+`"}`), 413, "body_too_large")
		r.wantProblem(r.post("/runs", `{"input_id":"in","text":"`+strings.Repeat(`\u0001`, 100_000)+`"}`), 422, "rejected") // too long for a fact
		r.wantProblem(r.get("/runs"), 405, "method_not_allowed")
		r.wantProblem(r.get("/runs/none/events"), 404, "not_found")
		r.wantProblem(r.get("/runs/none/stream"), 404, "not_found")
		if r.heads() != heads {
			t.Errorf("the store moved from %v to %v", heads, r.heads())
		}
	})
}

// Each input takes the right of what it does, and reading takes any part in the session; of a
// run elsewhere nothing is told.
func TestRights(t *testing.T) {
	bubble(t, rigOptions{agent: acts(asks)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		id := r.pending(run)
		for role, may := range map[access.Role]string{
			access.Observe: "read", access.Decide: "read decide", access.Drive: "read drive", access.Execute: "", access.Trace: "",
		} {
			who := r.as(string(role), role)
			for kind, got := range map[string]reply{
				"read":   who.get("/runs/" + run + "/events"),
				"drive":  who.tell(run, "m-"+string(role), say("x")),
				"decide": who.tell(run, "d-"+string(role), decision("none", "approve")),
			} {
				if allowed := got.status != 403; allowed != strings.Contains(may, kind) {
					t.Errorf("%s: %s is answered %s", role, kind, got)
				}
			}
			if got := who.tell(run, "c", grant(1)); (got.status == 403) != (may == "") {
				t.Errorf("%s grants credit: %s", role, got)
			}
			if got := who.post("/runs", `{"input_id":"x","text":"go"}`); (got.status == 403) != !strings.Contains(may, "drive") {
				t.Errorf("%s starts a run: %s", role, got)
			}
			r.want(who.get("/contract"), 200)
		}
		other, _ := r.parts.NewToken(t, "elsewhere", access.Grant{Roles: access.Roles(), Workspaces: []string{"w"}, Executors: nil})
		stranger := *r
		stranger.token = other
		stranger.wantProblem(stranger.get("/runs/"+run+"/events"), 404, "not_found")
		stranger.wantProblem(stranger.tell(run, "x", cancel), 404, "not_found")
		stranger.wantProblem(stranger.tell(run, "x", decision(id, "approve")), 404, "not_found")
		if _, err := r.host.Do(t.Context(), access.Owner(), host.Request{
			Action: access.CreateSession, Session: "gone", Command: decide.Create{Payload: facts.Created{WorkspaceID: "default", ClientKind: "api"}},
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.host.Delete(t.Context(), access.Owner(), "gone"); err != nil {
			t.Fatal(err)
		}
		r.wantProblem(r.post("/runs", `{"input_id":"z","text":"go","session_id":"gone"}`), 410, "session_deleted")
		unknown := stranger.wantProblem(stranger.post("/runs", `{"input_id":"y","text":"go","session_id":"none"}`), 404, "not_found")
		if got := stranger.post("/runs", `{"input_id":"y","text":"go","session_id":"gone"}`); got.field("code") != "not_found" || got.field("detail") != unknown.field("detail") {
			t.Errorf("a run in a session that was deleted: got %s, want %s", got, unknown)
		}
		nobody := *r
		nobody.token = "x"
		nobody.wantProblem(nobody.get("/runs/"+run+"/events"), 401, "unauthenticated")
	})
}

// R37: private payloads are for who may observe the session, secret ones for nobody; the
// envelope stays as it is, so that all follow the same log.
func TestPayloadsThatAreHidden(t *testing.T) {
	policy := harness.Policy{Rules: []harness.Rule{{Type: "tool.started", Class: harness.Secret}, {Type: "message.delta", Class: harness.Public}}}
	bubble(t, rigOptions{agent: acts(asks), host: host.Options{LogPolicy: policy.Encode()}}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		id := r.pending(run)
		r.want(r.tell(run, "a-1", decision(id, "approve")), 202)
		synctest.Wait()
		for _, role := range []access.Role{access.Observe, access.Decide, access.Drive} {
			who := r.as(string(role), role)
			p := who.all(run)
			streamed := who.stream(run, "credit=1000").rest(t)
			if !slices.Equal(p.lines, streamed) {
				t.Errorf("%s: read\n%s\nfollowed\n%s", role, p.lines, streamed)
			}
			for _, e := range p.events {
				hidden := string(e.Payload) == `{"redacted":true}`
				want := e.Sensitivity == harness.Secret || e.Sensitivity == harness.Private && role != access.Observe
				if hidden != want {
					t.Errorf("%s sees of %s (%s): %s", role, e.Type, e.Sensitivity, e.Payload)
				}
			}
			if call := p.find(t, harness.ToolStarted); call.Sensitivity != harness.Secret {
				t.Errorf("the call is %s", call.Sensitivity)
			}
			if strings.Contains(strings.Join(p.lines, ""), secretArgs) {
				t.Errorf("%s sees the arguments of a secret call", role)
			}
			if text := p.find(t, harness.MessageDelta); !strings.Contains(string(text.Payload), "It was: approve") {
				t.Errorf("%s does not see what is public: %s", role, text.Payload)
			}
		}
	})
}

// Field case 98: what a request carries stands in no log.
func TestNothingOfARequestIsLogged(t *testing.T) {
	bubble(t, rigOptions{agent: acts(asks)}, func(t *testing.T, r *rig) {
		run := r.run("in", "marker-of-the-prompt")
		id := r.pending(run)
		cursor := r.read(run, "", "credit=1").next
		r.read(run, cursor, "wait=1")
		r.stream(run, "credit=3&cursor="+cursor).take(t, 3)
		r.tell(run, "c-1", grant(5))
		r.tell(run, "m-1", say("marker-of-a-message"))
		r.tell(run, "a-1", decision(id, "approve"))
		r.tell(run, "x", `"type":"run.cancel","reason":"marker-of-a-reason"`)
		r.tell(run, "bad", `"type":"marker-of-a-type"`)
		synctest.Wait()
		log := r.log.String()
		for _, marker := range []string{"marker-of", cursor, r.token, secretArgs, "checkpoint"} {
			if strings.Contains(log, marker) {
				t.Errorf("the log holds %q", marker)
			}
		}
		if !strings.Contains(log, `"run":"`+run+`"`) {
			t.Errorf("the log does not name the run:\n%s", log)
		}
	})
}

// The contract is the published inventory, with what the host adds beside it.
func TestContract(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		got := r.want(r.get("/contract"), 200)
		var said struct {
			RunProtocol harness.Inventory `json:"run_protocol"`
			Limits      map[string]uint64 `json:"limits"`
		}
		if err := unmarshal([]byte(got.body), &said); err != nil {
			t.Fatal(err)
		}
		if said.RunProtocol.Version != harness.Version || len(said.RunProtocol.Events) != 16 || said.Limits["credit_batch"] != 1000 {
			t.Errorf("got %s", got)
		}
	})
}

// One principal's approval is one vote where several must decide (R12).
func TestVotes(t *testing.T) {
	rules := []host.Rule{{Effect: host.AskOn, Quorum: 2}}
	bubble(t, rigOptions{agent: acts(asks), host: host.Options{Rules: rules}}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		id := r.pending(run)
		if a := r.want(r.tell(run, "a-1", decision(id, "approve")), 202); a.field("detail") != "1 of 2 approvals" || a.field("decision") != "" {
			t.Errorf("got %s", a)
		}
		if a := r.want(r.tell(run, "a-2", decision(id, "approve")), 200); a.field("status") != "already_applied" {
			t.Errorf("a second vote of one: %s", a)
		}
		second := r.as("second", access.Decide)
		if a := r.want(second.tell(run, "a-3", decision(id, "approve")), 202); a.field("decision") != "approve" {
			t.Errorf("got %s", a)
		}
	})
}

// A question is answered by the option that it recommends (R13).
func TestQuestions(t *testing.T) {
	agent := func(ctx context.Context, h agent.Handle) agent.Ending {
		for _, q := range []agent.Question{{Text: "Which?", Options: []string{"a", "b"}, Recommended: 1}, {Text: "And?", Options: []string{"a", "b"}, Recommended: -1}} {
			if _, err := h.Ask(ctx, agent.Ask{Questions: []agent.Question{q}}); err != nil {
				return done
			}
		}
		return done
	}
	bubble(t, rigOptions{agent: acts(agent)}, func(t *testing.T, r *rig) {
		run := r.run("in", "go")
		if a := r.want(r.tell(run, "q-1", decision(r.pending(run), "approve")), 202); a.field("decision") != "1" {
			t.Errorf("got %s", a)
		}
		pass(time.Second)
		asked := r.all(run)
		second := asked.events[len(asked.events)-1].CorrelationID
		r.wantProblem(r.tell(run, "q-2", decision(second, "approve")), 422, "decision_not_offered")
		if a := r.want(r.tell(run, "q-2", decision(second, "deny")), 202); a.field("decision") != "dismiss" {
			t.Errorf("got %s", a)
		}
	})
}
