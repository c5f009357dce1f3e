package naryahttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server/naryahttp"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// permits asks for each command of its prompt, line by line, and says what was decided. A
// line that begins with a tab is asked for in a nested run.
func permits(ctx context.Context, h agent.Handle) agent.Ending {
	var nested agent.Handle
	for line := range strings.SplitSeq(h.Info().Prompt.Content, "\n") {
		by, command := h, strings.TrimPrefix(line, "\t")
		if command != line {
			if nested == nil {
				call, err := h.StartTool(ctx, agent.Tool{Name: "task", Kind: "other"})
				if err != nil {
					return ending(err)
				}
				if nested, err = h.StartRun(ctx, agent.Nested{ParentToolCallID: call}); err != nil {
					return ending(err)
				}
			}
			by = nested
		}
		word, err := permitted(ctx, by, command)
		if err != nil {
			return ending(err)
		}
		_ = h.Text(ctx, command+": "+word+"\n")
	}
	return done
}

// permitted asks for a command, and returns the word of the decision.
func permitted(ctx context.Context, h agent.Handle, command string) (string, error) {
	call, err := h.StartTool(ctx, agent.Tool{Name: "shell", Kind: "execute", Args: narad.Raw(`{}`)})
	if err != nil {
		return "", err
	}
	answer, err := h.Permit(ctx, agent.Permission{
		ToolCallID: call, Title: "Run a command", Resource: command,
		Options: []agent.Option{{ID: "1", Action: "approve"}, {ID: "2", Action: "approve_always"}, {ID: "3", Action: "deny"}},
	})
	if err != nil {
		return "", err
	}
	result := agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Raw(`"ran"`)}
	if answer.Decision != "approve" {
		result = agent.ToolResult{Outcome: narad.OutcomeCancelled, Response: narad.Raw("null"), Code: "denied"}
	}
	return answer.Decision, h.FinishTool(ctx, call, result)
}

func ending(err error) agent.Ending {
	if errors.Is(err, agent.ErrStopped) || errors.Is(err, context.Canceled) {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	return agent.Ending{Outcome: agent.Failed, Code: "test", Message: err.Error()}
}

// uuid is a session as it is shown.
func uuid(session string) string { return narya.UUID(narya.KindSession, session) }

// pendingIDs are the permissions that wait, in their order.
func (b *bed) pendingIDs(query string) (ids []string) {
	b.t.Helper()
	for _, item := range b.want(b.get("/v1/permissions"+query), 200).items("items") {
		id, _ := narad.Raw(item).Field("permissionId").IsString()
		ids = append(ids, id)
	}
	return ids
}

// only is the one permission that waits.
func (b *bed) only() string {
	b.t.Helper()
	synctest.Wait()
	ids := b.pendingIDs("")
	if len(ids) != 1 {
		b.t.Fatalf("%d permissions wait, want one", len(ids))
	}
	return ids[0]
}

func (b *bed) decide(id, decision, remember string) reply {
	b.t.Helper()
	body := `{"decision":` + quote(decision)
	if remember != "" {
		body += `,"remember":` + quote(remember)
	}
	return b.post("/v1/permissions/"+id+"/decision", body+"}")
}

// Field cases 22, 30: what waits is listed for whoever comes, and decided once.
func TestPermission(t *testing.T) {
	bubble(t, bedOptions{agent: acts(permits)}, func(t *testing.T, b *bed) {
		b.create("s1", "ls")
		synctest.Wait()
		stream := b.stream("sessionId="+uuid("s1"), "")
		got := b.want(b.get("/v1/permissions?sessionId="+uuid("s1")), 200)
		item := reply{body: got.items("items")[0]}
		if item.field("action") != "execute" || item.field("resource") != "ls" || item.field("sessionId") != uuid("s1") ||
			item.field("laneId") != narya.MainLaneID("s1") || item.field("toolCallId") == "" || !strings.Contains(item.field("detail"), "remembered") {
			t.Errorf("got %s", item.body)
		}
		id := item.field("permissionId")
		for _, unknown := range []string{"0198c2f0-7c1e-7b0a-9f0e-3a5b7c9d1e2f", "x", uuid("s1")} {
			b.wantError(b.decide(unknown, "allow", ""), narya.CodePermissionNotFound)
			b.wantError(b.post("/v1/questions/"+unknown+"/answer", `{"dismiss":true}`), narya.CodeQuestionNotFound)
		}
		b.wantError(b.post("/v1/questions/"+id+"/answer", `{"dismiss":true}`), narya.CodeQuestionNotFound)
		if again := b.pendingIDs(""); !slices.Equal(again, []string{id}) {
			t.Errorf("after refusals %v wait, want %s", again, id)
		}
		decided := b.want(b.decide(strings.ToUpper(id), "deny", ""), 200)
		if decided.field("decision") != "deny" || decided.field("permissionId") != id {
			t.Errorf("got %s", decided)
		}
		b.want(b.decide(id, "deny", ""), 200)
		if late := b.wantError(b.decide(id, "allow", ""), narya.CodeAlreadyDecided); !strings.Contains(late.field("message"), "deny") {
			t.Errorf("the winner's decision is not named: %s", late)
		}
		events := stream.now()
		if n := count(events, narya.TypePermissionDecided); n != 1 {
			t.Errorf("%d decisions on the stream, want 1: %v", n, kinds(events))
		}
		if len(b.pendingIDs("")) != 0 {
			t.Error("it waits still")
		}
	})
}

func count(events []event, kind narya.Type) (n int) {
	for _, e := range events {
		if e.Type() == kind {
			n++
		}
	}
	return n
}

// Field case 21: of many deciders at once one wins, and each is told who.
func TestPermissionRace(t *testing.T) {
	bubble(t, bedOptions{agent: acts(permits)}, func(t *testing.T, b *bed) {
		stream := b.stream("", "")
		b.create("s1", "ls")
		var id string
		for _, e := range stream.now() {
			if asked, ok := e.Payload.(*narya.PermissionAsked); ok {
				id = asked.PermissionID
			}
		}
		const deciders = 50
		answers := make([]reply, deciders)
		var wait sync.WaitGroup
		for i := range deciders {
			wait.Go(func() {
				if i%10 == 0 { // over another contract
					a, err := b.host.Do(t.Context(), access.Owner(), host.Request{
						Action: access.ResolveInterrupt, Command: decide.Resolve{InterruptID: id, Decision: "approve_always"},
					})
					if err != nil {
						t.Errorf("resolve: %+v, %v", a, err)
					}
					return
				}
				answers[i] = b.decide(id, []string{"allow", "deny"}[i%2], "")
			})
		}
		wait.Wait()
		var won narya.Decision
		for _, e := range stream.now() {
			if decided, ok := e.Payload.(*narya.PermissionDecided); ok {
				if won != "" {
					t.Errorf("decided twice: %s", e.data)
				}
				won = decided.Decision
			}
		}
		for i, a := range answers {
			want := 409
			if word := []string{"allow", "deny"}[i%2]; word == string(won) {
				want = 200
			}
			if i%10 != 0 && (a.status != want || want == 409 && !strings.Contains(a.field("message"), string(won))) {
				t.Errorf("decider %d, %s won: got %d, want %d: %s", i, won, a.status, want, a)
			}
		}
	})
}

// asksAll raises three permissions at once, in nested runs.
func asksAll(ctx context.Context, h agent.Handle) agent.Ending {
	var wait sync.WaitGroup
	for _, name := range []string{"one", "two", "three"} {
		call, err := h.StartTool(ctx, agent.Tool{Name: "task", Kind: "other"})
		if err != nil {
			return ending(err)
		}
		below, err := h.StartRun(ctx, agent.Nested{ParentToolCallID: call})
		if err != nil {
			return ending(err)
		}
		asked := make(chan struct{})
		wait.Go(func() {
			word, err := nestedAsk(ctx, below, name, asked)
			_ = below.Text(ctx, word)
			if err == nil {
				_ = below.End(ctx, agent.Ending{})
			}
		})
		<-asked
	}
	wait.Wait()
	return done
}

func nestedAsk(ctx context.Context, h agent.Handle, name string, asked chan<- struct{}) (string, error) {
	call, err := h.StartTool(ctx, agent.Tool{Name: "shell", Kind: "execute"})
	if err != nil {
		close(asked)
		return "", err
	}
	id, err := h.OpenGate(ctx, agent.Permission{ToolCallID: call, Resource: name, Options: []agent.Option{{Action: "approve"}, {Action: "deny"}}})
	close(asked)
	if err != nil {
		return "", err
	}
	answer, err := h.Await(ctx, id)
	if err != nil {
		return "", err
	}
	return answer.Decision, h.FinishTool(ctx, call, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Raw("null")})
}

// Field case 24: one answer decides one of several that wait, and no other goes on.
func TestOneAnswerDecidesOne(t *testing.T) {
	bubble(t, bedOptions{agent: acts(asksAll)}, func(t *testing.T, b *bed) {
		b.create("s1", "go")
		synctest.Wait()
		ids := b.pendingIDs("")
		if len(ids) != 3 {
			t.Fatalf("%d wait, want 3", len(ids))
		}
		stream := b.stream("sessionId="+uuid("s1"), "")
		b.want(b.decide(ids[1], "deny", ""), 200)
		events := stream.now()
		if got := b.pendingIDs(""); !slices.Equal(got, []string{ids[0], ids[2]}) {
			t.Errorf("%v wait, want the first and the third of %v", got, ids)
		}
		if d, c := count(events, narya.TypePermissionDecided), count(events, narya.TypeLaneFinished); d != 1 || c != 1 {
			t.Errorf("%d decisions and %d lanes that went on, want one of each: %v", d, c, kinds(events))
		}
		b.want(b.decide(ids[2], "allow", ""), 200)
		b.want(b.decide(ids[0], "allow", ""), 200)
		if events = stream.now(); count(events, narya.TypeTurnFinished) != 3 { // of two lanes, and of the main one
			t.Errorf("got %v", kinds(events))
		}
	})
}

// asksPack asks for several things together.
func asksPack(ctx context.Context, h agent.Handle) agent.Ending {
	ask := agent.Ask{Kind: "approval", Title: "All of these?", Actions: []string{"approve", "deny"}}
	for _, name := range []string{"a", "b", "c"} {
		ask.Members = append(ask.Members, agent.Member{RequestID: name, Action: "write", Resource: "/" + name})
	}
	answer, err := h.Ask(ctx, ask)
	if err != nil {
		return ending(err)
	}
	_ = h.Text(ctx, fmt.Sprint(answer.Decision, answer.Members))
	return done
}

// R12: each member of a pack is a permission of its own.
func TestPackIsSeveralPermissions(t *testing.T) {
	bubble(t, bedOptions{agent: acts(asksPack)}, func(t *testing.T, b *bed) {
		stream := b.stream("", "")
		b.create("s1", "go")
		synctest.Wait()
		ids := b.pendingIDs("")
		if len(ids) != 3 {
			t.Fatalf("%v wait, want three", ids)
		}
		b.want(b.decide(ids[1], "deny", "session"), 200)
		if got := b.pendingIDs(""); !slices.Equal(got, []string{ids[0], ids[2]}) {
			t.Errorf("%v wait, want the first and the third of %v", got, ids)
		}
		b.wantError(b.decide(ids[1], "allow", ""), narya.CodeAlreadyDecided)
		b.want(b.decide(ids[2], "allow", ""), 200)
		b.want(b.decide(ids[0], "allow", ""), 200)
		b.want(b.decide(ids[0], "allow", ""), 200)
		b.wantError(b.decide(ids[1], "allow", ""), narya.CodeAlreadyDecided)
		var decided []string
		for _, e := range stream.now() {
			if p, ok := e.Payload.(*narya.PermissionDecided); ok {
				decided = append(decided, fmt.Sprint(slices.Index(ids, p.PermissionID), p.Decision))
			}
		}
		if got := strings.Join(decided, ","); got != "1deny,2allow,0allow" {
			t.Errorf("on the stream: got %s", got)
		}
		b.say("s1", "again")
		synctest.Wait()
		if got := b.pendingIDs(""); len(got) != 2 {
			t.Errorf("%v wait, want the two that nothing is remembered of", got)
		}
	})
}

// R12: what was decided of a member stays so on the stream, in the audit and for who comes
// later, when the turn of its pack is stopped; the others have expired, and say why.
func TestStopOfAPackInParts(t *testing.T) {
	bubble(t, bedOptions{agent: acts(asksPack)}, func(t *testing.T, b *bed) {
		stream := b.stream("", "")
		b.create("s1", "go")
		synctest.Wait()
		ids := b.pendingIDs("")
		b.want(b.decide(ids[0], "allow", ""), 200)
		b.want(b.decide(ids[1], "deny", ""), 200)
		b.want(b.post(path("s1", "interrupt"), ""), http.StatusAccepted)
		want := []string{"0 allow user", "1 deny user", "2 expired policy"}
		var decided []string
		for _, e := range stream.now() {
			if p, ok := e.Payload.(*narya.PermissionDecided); ok {
				decided = append(decided, fmt.Sprintln(slices.Index(ids, p.PermissionID), p.Decision, p.DecidedBy))
			}
		}
		if got := strings.Join(decided, ""); got != strings.Join(want, "\n")+"\n" {
			t.Errorf("on the stream: got %s, want %q", got, want)
		}
		var audited []string
		for _, item := range b.want(b.get("/v1/permissions/decisions"), 200).items("items") {
			row := reply{body: item}
			audited = append(audited, fmt.Sprint(slices.Index(ids, row.field("permissionId")), " ", row.field("decision"), " ", row.field("decidedBy")))
		}
		slices.Sort(audited)
		if !slices.Equal(audited, want) {
			t.Errorf("in the audit: got %q, want %q", audited, want)
		}
		b.want(b.decide(ids[0], "allow", ""), 200)
		b.wantError(b.decide(ids[0], "deny", ""), narya.CodeAlreadyDecided)
		b.want(b.decide(ids[1], "deny", ""), 200)
		late := b.wantError(b.decide(ids[2], "allow", ""), narya.CodeExpired)
		if got := late.field("message"); !strings.HasSuffix(got, "before its run was stopped") {
			t.Errorf("got %q, want that it was stopped", got)
		}
	})
}

// A decision that is told again is answered as the first time, also when what it remembered
// was forgotten, and after a restart; it remembers nothing again.
func TestRememberToldAgain(t *testing.T) {
	bubble(t, bedOptions{agent: acts(asksPack)}, func(t *testing.T, b *bed) {
		b.create("s1", "go")
		synctest.Wait()
		ids := b.pendingIDs("")
		first := b.want(b.decide(ids[1], "deny", "session"), 200)
		b.want(b.decide(ids[0], "allow", "lane"), 200)
		b.want(b.decide(ids[2], "allow", ""), 200)
		rules := b.session("s1") + "/rules"
		for _, item := range b.want(b.get(rules), 200).items("items") {
			b.want(b.delete(rules+"/"+(reply{body: item}).field("rule")), 200)
		}
		for range 2 {
			if again := b.want(b.decide(ids[1], "deny", "session"), 200); again.body != first.body {
				t.Errorf("told again: got %s, want %s", again.body, first.body)
			}
			b.want(b.decide(ids[0], "allow", "lane"), 200)
			b.wantError(b.decide(ids[0], "allow", "session"), narya.CodeAlreadyDecided)
			b.wantError(b.decide(ids[1], "allow", "session"), narya.CodeAlreadyDecided)
			b.wantError(b.decide(ids[2], "allow", "lane"), narya.CodeAlreadyDecided)
			if left := b.want(b.get(rules), 200).items("items"); len(left) != 0 {
				t.Errorf("got %v, want nothing remembered again", left)
			}
			b.close()
			*b = *begin(t, bedOptions{agent: acts(asksPack), before: b})
		}
	})
}

// A remembered decision holds for the very same in its scope, and leaks nowhere.
func TestRemember(t *testing.T) {
	told := make(chan string, 100)
	kind := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		e := permits(ctx, h)
		told <- h.Info().SessionID
		return e
	})
	bubble(t, bedOptions{agent: kind}, func(t *testing.T, b *bed) {
		stream := b.stream("", "")
		b.create("s1", "ls")
		b.want(b.decide(b.only(), "allow", "session"), 200)
		b.say("s1", "ls\n\tls\nls -l")
		id := b.only() // of ls -l alone
		rule := ""
		for _, e := range stream.now() {
			if p, ok := e.Payload.(*narya.PermissionDecided); ok && p.DecidedBy == narya.ByPolicy && p.Decision == narya.Allow {
				rule += "."
			}
		}
		if rule != ".." {
			t.Errorf("decided by rule: %s, want twice", rule)
		}
		b.want(b.decide(id, "deny", "lane"), 200)
		b.say("s1", "ls -l\n\tls -l")
		id = b.only() // in the lane below
		b.want(b.decide(id, "allow", "lane"), 200)
		b.say("s1", "\tls -l") // another lane of the same kind
		b.want(b.decide(b.only(), "deny", ""), 200)
		b.create("s2", "ls")
		b.want(b.decide(b.only(), "deny", ""), 200)
		synctest.Wait()
		if len(told) != 5 || len(b.pendingIDs("")) != 0 {
			t.Errorf("%d turns ended, want 5", len(told))
		}
		got := b.want(b.get("/v1/permissions/decisions?decision=allow&sessionId="+uuid("s1")), 200)
		rules := 0
		for _, item := range got.items("items") {
			if r := (reply{body: item}); strings.HasPrefix(r.field("rule"), "remembered:") && r.field("decidedBy") == "policy" {
				rules++
			}
		}
		if rules != 2 {
			t.Errorf("%d decisions of remembered rules in the audit, want 2: %s", rules, got.body)
		}
	})
}

// What is remembered is listed and forgotten; then people are asked again, and what was
// decided stands.
func TestForget(t *testing.T) {
	bubble(t, bedOptions{agent: acts(permits)}, func(t *testing.T, b *bed) {
		b.create("s1", "ls\npwd")
		for _, scope := range []string{"session", "lane"} {
			synctest.Wait()
			b.want(b.decide(b.pendingIDs("")[0], "allow", scope), 200)
		}
		b.create("s2", "")
		synctest.Wait()
		rules := b.session("s1") + "/rules"
		names := b.pages(rules)
		if len(names) != 2 {
			t.Fatalf("%d decisions are remembered, want 2: %v", len(names), names)
		}
		first := reply{body: names[0]}
		if first.field("resource") != "ls" || first.field("scope") != "session" || first.field("laneId") != "" || first.field("decision") != "allow" {
			t.Errorf("the first rule is %s", names[0])
		}
		if second := (reply{body: names[1]}); second.field("laneId") != narya.MainLaneID("s1") {
			t.Errorf("the second rule is %s, want one of the main lane", names[1])
		}
		name := first.field("rule")
		b.wantError(b.delete(b.session("s2")+"/rules/"+name), narya.CodeNotRemembered)
		b.want(b.delete(rules+"/"+name), 200)
		b.wantError(b.delete(rules+"/"+name), narya.CodeNotRemembered)
		b.wantError(b.delete(rules+"/%20"), narya.CodeNotRemembered)
		b.say("s1", "ls\npwd")
		synctest.Wait()
		if waiting := b.pendingIDs(""); len(waiting) != 1 {
			t.Fatalf("%d permissions wait, want that of ls alone", len(waiting))
		}
		b.want(b.decide(b.only(), "deny", ""), 200)
		if got := b.pages(rules); len(got) != 1 || got[0] != names[1] {
			t.Errorf("%v is remembered, want %v", got, names[1:])
		}
	})
}

// What is remembered survives the host.
func TestRememberedAfterRestart(t *testing.T) {
	bubble(t, bedOptions{agent: acts(permits)}, func(t *testing.T, b *bed) {
		b.create("s1", "ls")
		b.want(b.decide(b.only(), "allow", "session"), 200)
		synctest.Wait()
		b.close()
		b = begin(t, bedOptions{agent: acts(permits), before: b})
		stream := b.stream("", "")
		b.say("s1", "ls")
		if events := stream.now(); count(events, narya.TypeTurnFinished) != 1 || count(events, narya.TypePermissionDecided) != 1 {
			t.Errorf("got %v, want the turn to end", kinds(events))
		}
	})
}

// always is an agent whose permissions know no answer for once.
func always(ctx context.Context, h agent.Handle) agent.Ending {
	call, err := h.StartTool(ctx, agent.Tool{Name: "shell", Kind: "execute"})
	if err == nil {
		_, err = h.Permit(ctx, agent.Permission{ToolCallID: call, Options: []agent.Option{{Action: "approve_always"}, {Action: "deny"}}})
	}
	if err != nil {
		return ending(err)
	}
	return done
}

func TestDecisionsRefused(t *testing.T) {
	bubble(t, bedOptions{agent: acts(always)}, func(t *testing.T, b *bed) {
		b.create("s1", "ls")
		id := b.only()
		path := "/v1/permissions/" + id + "/decision"
		b.wantError(b.decide(id, "allow", ""), narya.CodeUnsupported)
		b.wantError(b.decide(id, "deny", "session"), narya.CodeInvalid, "remember") // no resource
		b.wantError(b.decide(id, "expired", "ever"), narya.CodeInvalid, "decision", "remember")
		b.wantError(b.post(path, `{"decision":"deny","reason":"`+strings.Repeat("x", 1025)+`"}`), narya.CodeInvalid, "reason")
		b.wantError(b.post(path, `{"decision":"deny","reason":"\u0007"}`), narya.CodeInvalid, "reason")
		b.wantError(b.post(path, `{"decision":7}`), narya.CodeInvalid, "decision")
		for _, body := range []string{"", "[]", "no", `{"decision":"deny"`} {
			b.wantError(b.post(path, body), narya.CodeMalformed)
		}
		for _, query := range []string{"limit=0", "limit=x", "cursor=x", "sessionId=x"} {
			b.wantError(b.get("/v1/permissions?"+query), narya.CodeMalformed)
			b.wantError(b.get("/v1/permissions/decisions?"+query), narya.CodeMalformed)
			b.wantError(b.get("/v1/questions?"+query), narya.CodeMalformed)
		}
		b.wantError(b.get("/v1/permissions/decisions?decision=perhaps"), narya.CodeMalformed)
		b.wantError(b.get("/v1/permissions?sessionId="+uuid("none")), narya.CodeSessionNotFound)
		b.want(b.decide(id, "deny", ""), 200)
	})
}

// expiring asks for what expires after a minute.
func expiring(ctx context.Context, h agent.Handle) agent.Ending {
	_, err := h.Ask(ctx, agent.Ask{Kind: "approval", Title: "May I?", Actions: []string{"approve", "deny"}, ExpiresIn: time.Minute})
	if err != nil {
		return ending(err)
	}
	return done
}

func TestPermissionExpires(t *testing.T) {
	bubble(t, bedOptions{agent: acts(expiring)}, func(t *testing.T, b *bed) {
		b.create("s1", "go")
		id := b.only()
		if got := b.get("/v1/permissions"); (reply{body: got.items("items")[0]}).field("expiresAt") == "" {
			t.Errorf("got %s, want when it expires", got)
		}
		pass(2 * time.Minute)
		for _, word := range []string{"allow", "deny"} {
			b.wantError(b.decide(id, word, ""), narya.CodeExpired)
		}
		got := b.want(b.get("/v1/permissions/decisions?decision=expired"), 200)
		row := reply{body: got.items("items")[0]}
		if row.field("permissionId") != id || row.field("decidedBy") != "policy" || row.field("reason") != "expired" || row.field("decider") != "" {
			t.Errorf("got %s", row.body)
		}
	})
}

// The audit tells who decided what, when and why, the newest first, over all sessions and
// of one.
func TestAudit(t *testing.T) {
	names := naryahttp.Options{ActorName: func(id string) (string, bool) { return "name of " + id, true }}
	rules := host.Options{Rules: []host.Rule{{Name: "no rm", Effect: host.Deny, Tool: "rm"}}}
	bubble(t, bedOptions{agent: acts(permits), binding: names, host: rules}, func(t *testing.T, b *bed) {
		for _, session := range []string{"s1", "s2"} {
			b.create(session, "one\ntwo")
			for _, word := range []string{"allow", "deny"} {
				id := b.only()
				pass(time.Second)
				b.want(b.post("/v1/permissions/"+id+"/decision", `{"decision":`+quote(word)+`,"reason":"for `+word+`"}`), 200)
			}
		}
		got := b.want(b.get("/v1/permissions/decisions"), 200)
		var rows []string
		for _, item := range got.items("items") {
			r := reply{body: item}
			rows = append(rows, r.field("resource")+" "+r.field("decision")+" "+r.field("decidedBy")+" "+r.field("reason"))
			if r.field("askedAt") >= r.field("decidedAt") || r.field("laneId") == "" || r.field("toolCallId") == "" || r.field("action") != "execute" ||
				r.field("decider", "name") != "name of "+r.field("decider", "id") {
				t.Errorf("got %s", item)
			}
		}
		want := []string{"two deny user for deny", "one allow user for allow"}
		if !slices.Equal(rows, append(want, want...)) {
			t.Errorf("got %v", rows)
		}
		if of := b.want(b.get("/v1/permissions/decisions?sessionId="+uuid("s2")), 200); !slices.Equal(of.items("items"), got.items("items")[:2]) {
			t.Errorf("of s2: got %s", of.body)
		}
		var paged []string
		for query := "?limit=1"; query != ""; {
			page := b.want(b.get("/v1/permissions/decisions"+query), 200)
			paged = append(paged, page.items("items")...)
			if query = ""; page.field("nextCursor") != "" {
				query = "?limit=1&cursor=" + page.field("nextCursor")
				b.wantError(b.get("/v1/permissions/decisions"+query+"&decision=deny"), narya.CodeMalformed)
				b.wantError(b.get("/v1/permissions"+query), narya.CodeMalformed)
			}
		}
		if !slices.Equal(paged, got.items("items")) {
			t.Errorf("page by page: got %v", paged)
		}
	})
}

// Who decided is for an administrator; what waits, for who may decide it.
func TestWhoMayDecide(t *testing.T) {
	bubble(t, bedOptions{agent: acts(permits), tcp: true}, func(t *testing.T, b *bed) {
		b.create("s1", "ls")
		id := b.only()
		grant := func(workspace string, role access.Role) *bed {
			return b.as("t"+workspace+string(role), access.Grant{Roles: []access.Role{role}, Workspaces: []string{workspace}})
		}
		observer, stranger, decider := grant("default", access.Observe), grant("other", access.Decide), grant("default", access.Decide)
		b.wantError(observer.get("/v1/permissions"), narya.CodeForbidden)
		b.wantError(observer.decide(id, "allow", ""), narya.CodeForbidden)
		if got := stranger.pendingIDs(""); len(got) != 0 {
			t.Errorf("a stranger sees %v", got)
		}
		b.wantError(stranger.decide(id, "allow", ""), narya.CodePermissionNotFound)
		b.wantError(decider.get("/v1/permissions/decisions"), narya.CodeForbidden)
		b.want(decider.decide(id, "allow", ""), 200)
		if got := b.want(grant("other", access.Admin).get("/v1/permissions/decisions"), 200); len(got.items("items")) != 0 {
			t.Errorf("another workspace's administrator sees %s", got)
		}
		if got := b.want(b.get("/v1/permissions/decisions"), 200); len(got.items("items")) != 1 {
			t.Errorf("got %s, want one", got)
		}
	})
}

// What several must agree to waits until they have.
func TestQuorum(t *testing.T) {
	rules := host.Options{Rules: []host.Rule{{Name: "two", Effect: host.AskOn, Quorum: 2}}}
	bubble(t, bedOptions{agent: acts(permits), host: rules, tcp: true}, func(t *testing.T, b *bed) {
		b.create("s1", "ls")
		id := b.only()
		ada := b.as("ada", access.Grant{Roles: []access.Role{access.Decide}})
		b.wantError(b.decide(id, "allow", "lane"), narya.CodeInvalid, "remember")
		for range 2 {
			if got := b.want(b.decide(id, "allow", ""), 200); got.field("decision") != "" || !strings.Contains(got.field("detail"), "1 of 2") {
				t.Errorf("got %s", got)
			}
		}
		b.wantError(b.decide(id, "deny", ""), narya.CodeAlreadyDecided) // a decider votes once
		if got := b.want(ada.decide(id, "allow", ""), 200); got.field("decision") != "allow" {
			t.Errorf("got %s", got)
		}
	})
}

// Field case 31: what an agent asks that can resume is asked still after a restart, once.
func TestPermissionAfterRestart(t *testing.T) {
	const text = "script: 1\nsteps:\n- tool:\n    name: shell\n    kind: execute\n    respond: ok\n    permit: {resource: ls}\n- say: done\n"
	bubble(t, bedOptions{agent: scripted(t, text)}, func(t *testing.T, b *bed) {
		b.create("s1", "go")
		id := b.only()
		last := narya.FormatID(int64(b.journal.Durable().Event))
		b.close()
		b = begin(t, bedOptions{agent: scripted(t, text), before: b})
		if again := b.only(); again != id {
			t.Fatalf("after the restart %s waits, want %s", again, id)
		}
		b.want(b.decide(id, "deny", ""), 200)
		events := b.stream("", last).now()
		if count(events, narya.TypePermissionAsked) != 0 || count(events, narya.TypePermissionDecided) != 1 || count(events, narya.TypeTurnFinished) != 1 {
			t.Errorf("got %v, want one decision and the end of the turn", kinds(events))
		}
	})
}

// Field case 36: no permission outlives its turn.
func TestPermissionOfAStoppedTurn(t *testing.T) {
	bubble(t, bedOptions{agent: acts(permits)}, func(t *testing.T, b *bed) {
		b.create("s1", "one\ntwo")
		id := b.only()
		stream := b.stream("", "")
		b.want(b.post("/v1/sessions/"+uuid("s1")+"/interrupt", ""), http.StatusAccepted)
		events := stream.now()
		if count(events, narya.TypePermissionAsked) != 0 || count(events, narya.TypeToolCallStarted) != 0 {
			t.Errorf("after the stop: %v", kinds(events))
		}
		if d := events[0].Payload.(*narya.PermissionDecided); d.Decision != narya.Expired || d.DecidedBy != narya.ByPolicy {
			t.Errorf("got %s", events[0].data)
		}
		told := b.wantError(b.decide(id, "allow", ""), narya.CodeExpired)
		if got, want := told.field("message"), "nobody decided the permission before its run was stopped"; got != want {
			t.Errorf("after a stop: got %q, want %q", got, want)
		}
		b.close()
		b = begin(t, bedOptions{agent: acts(permits), before: b})
		if again := b.wantError(b.decide(id, "allow", ""), narya.CodeExpired); again.body != told.body {
			t.Errorf("after a restart: got %s, want %s", again.body, told.body)
		}
		if len(b.pendingIDs("")) != 0 {
			t.Error("it waits")
		}
	})
}
