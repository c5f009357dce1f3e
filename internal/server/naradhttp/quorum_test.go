package naradhttp_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narad"
)

// asksForThree starts three tools, asks for all of them at once, and treats each by its
// own decision.
func asksForThree(ctx context.Context, h agent.Handle) agent.Ending {
	var ids []string
	ask := agent.Ask{Kind: "approval", Title: "Three?", Actions: []string{"approve", "deny"}}
	for _, kind := range []string{"read", "edit", "delete"} {
		id, err := h.StartTool(ctx, agent.Tool{Name: kind + "-it", Kind: kind})
		if err != nil {
			return agent.Ending{Outcome: agent.Failed, Message: err.Error()}
		}
		ids = append(ids, id)
		ask.Members = append(ask.Members, agent.Member{RequestID: kind, ToolCallID: id, ToolName: kind + "-it", ToolType: kind, Resource: kind + ".txt"})
	}
	a, err := h.Ask(ctx, ask)
	if err != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	for i, m := range ask.Members {
		r := agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Quote("did " + m.RequestID)}
		if a.Members[m.RequestID] != "approve" {
			r = agent.ToolResult{Outcome: narad.OutcomeCancelled, Code: "denied"}
		}
		if err := h.FinishTool(ctx, ids[i], r); err != nil {
			return agent.Ending{Outcome: agent.Failed, Message: err.Error()}
		}
	}
	return agent.Ending{}
}

// as sends a request with another token.
func (r *rig) as(token, method, path, body string) reply {
	r.t.Helper()
	request := r.request(method, path, body)
	request.Header.Set("Authorization", "Bearer "+token)
	return r.send(request)
}

func (r *rig) openInterrupt() string {
	r.t.Helper()
	synctest.Wait()
	items, _ := narad.Raw(r.want(r.get("/interrupts"), 200).body).Field("items").Elements()
	if len(items) != 1 {
		r.t.Fatalf("%d interrupts are open, want 1", len(items))
	}
	id, _ := items[0].Field("interruptId").IsString()
	return id
}

// §7.7, R12: three tools in one approval. One is denied and two are approved; the
// decisions are three people's, of whom two may not see the session.
func TestThreeToolsInOneApproval(t *testing.T) {
	o := rigOptions{agent: asksForThree, host: host.Options{Rules: []host.Rule{
		{Name: "deleting takes two", Effect: host.AskOn, Kinds: []string{"delete"}, Quorum: 2},
	}}}
	bubble(t, o, func(t *testing.T, r *rig) {
		decider := func(name string) string { return r.newToken(name, access.Grant{Roles: []access.Role{access.Decide}}) }
		viewer := r.newToken("viewer", access.Grant{Roles: []access.Role{access.Observe}})
		wilma, bob := decider("wilma"), decider("bob")
		r.create("s1")
		r.say("s1", "go")
		id := r.openInterrupt()
		resolve := func(token, decision, member string) reply {
			return r.as(token, "POST", "/commands/resolve-interrupt", fmt.Sprintf(`{"interruptId":%q,"decision":%q,"members":[%q]}`, id, decision, member))
		}
		// Roles: who watches does not decide, and who decides does not watch.
		r.wantWord(resolve(viewer, "approve", "read"), 403, "forbidden")
		r.want(r.as(viewer, "GET", "/sessions/s1/events", ""), 200)
		r.want(r.as(wilma, "GET", "/sessions/s1/events", ""), 403)
		if got := r.want(r.as(wilma, "GET", "/interrupts", ""), 200); !strings.Contains(got.body, `"quorum":2`) {
			t.Errorf("the inbox does not tell of the quorum: %s", got)
		}

		if got := r.as(wilma, "POST", "/commands/resolve-interrupt", fmt.Sprintf(`{"interruptId":%q,"decision":"approve","members":[]}`, id)); got.status != 400 {
			t.Errorf("a selection of nobody: got %s, want it refused", got)
		}
		r.wantWord(resolve(wilma, "approve", "delete"), 202, "accepted")
		r.wantWord(resolve(wilma, "approve", "delete"), 200, "already_applied")
		r.wantWord(resolve(wilma, "deny", "delete"), 409, "conflict")
		r.wantWord(resolve(wilma, "deny", "edit"), 202, "accepted")
		r.wantWord(resolve(bob, "approve", "edit"), 409, "conflict")
		r.wantWord(resolve(bob, "approve", "read"), 202, "accepted")
		if got := r.get("/interrupts").body; !strings.Contains(got, id) {
			t.Fatal("the pack was settled by one of two votes")
		}
		r.wantWord(resolve(bob, "approve", "delete"), 202, "accepted")
		synctest.Wait()

		outcomes := map[string]string{}
		events, _ := narad.Raw(r.get("/sessions/s1/events").body).Field("events").Elements()
		for _, e := range events {
			name, _ := e.Field("toolName").IsString()
			if kind, _ := e.Field("type").IsString(); kind == "tool.call.finished" {
				outcome, _ := e.Field("outcome").IsString()
				code, _ := e.Field("code").IsString()
				outcomes[name] = outcome + code
			}
			if strings.Contains(string(e), "wilma") || strings.Contains(string(e), "bob") {
				t.Errorf("a name stands in a fact: %s", e)
			}
		}
		want := map[string]string{"read-it": "success", "edit-it": "cancelleddenied", "delete-it": "success"}
		if fmt.Sprint(outcomes) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", outcomes, want)
		}
		// The names are the administrator's alone.
		r.want(r.as(viewer, "GET", "/sessions/s1/audit", ""), 403)
		audit := r.want(r.get("/sessions/s1/audit"), 200).body
		for _, want := range []string{`"name":"wilma"`, `"name":"bob"`, `"vote":true`} {
			if !strings.Contains(audit, want) {
				t.Errorf("no %s in %s", want, audit)
			}
		}
	})
}

// Many deciders at once, several times each: as many votes count as are needed, and none
// twice.
func TestManyDecidersAtOnce(t *testing.T) {
	o := rigOptions{agent: asks, host: host.Options{Rules: []host.Rule{{Effect: host.AskOn, Quorum: 7}}}}
	bubble(t, o, func(t *testing.T, r *rig) {
		r.create("s1")
		r.say("s1", "go")
		id := r.openInterrupt()
		var tokens []string
		for i := range 20 {
			tokens = append(tokens, r.newToken(fmt.Sprint("decider", i), access.Grant{Roles: []access.Role{access.Decide}}))
		}
		var mu sync.Mutex
		accepted := map[string]int{}
		var all sync.WaitGroup
		for range 3 {
			for _, token := range tokens {
				all.Go(func() {
					a := r.as(token, "POST", "/commands/resolve-interrupt", `{"interruptId":"`+id+`","decision":"approve"}`)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case a.status == 202:
						accepted[token]++
					case a.field("status") != "already_applied":
						t.Errorf("got %s", a)
					}
				})
			}
		}
		all.Wait()
		if len(accepted) != 7 {
			t.Errorf("%d deciders were heard, want 7", len(accepted))
		}
		for _, n := range accepted {
			if n != 1 {
				t.Errorf("a decider voted %d times", n)
			}
		}
		events := r.get("/sessions/s1/events").body
		if v, d := strings.Count(events, `"vote":true`), strings.Count(events, `"interrupt.resolved"`); v != 6 || d != 1 {
			t.Errorf("%d votes and %d decisions, want 6 and 1", v, d)
		}
	})
}

// The policy sees to the members of a pack as to any other call.
func TestPolicyOfAPack(t *testing.T) {
	o := rigOptions{agent: asksForThree, host: host.Options{Rules: []host.Rule{
		{Name: "reading is fine", Effect: host.Allow, Kinds: []string{"read"}},
		{Name: "no deleting", Effect: host.Deny, Kinds: []string{"delete"}},
	}}}
	bubble(t, o, func(t *testing.T, r *rig) {
		r.create("s1")
		r.say("s1", "go")
		id := r.openInterrupt()
		r.wantWord(r.post("/commands/resolve-interrupt", `{"interruptId":"`+id+`","decision":"approve"}`), 202, "accepted")
		audit := r.want(r.get("/sessions/s1/audit"), 200).body
		if !strings.Contains(audit, `"rule":"reading is fine"`) || !strings.Contains(audit, `"rule":"no deleting"`) {
			t.Errorf("got %s", audit)
		}
		if got := r.get("/sessions/s1/events").body; !strings.Contains(got, `"members":[{"requestId":"read","toolCallId"`) ||
			strings.Count(got, `"decision":"deny"`) < 2 {
			t.Errorf("got %s", got)
		}
	})
}
