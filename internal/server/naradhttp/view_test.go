package naradhttp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// R6: an administrator learns who stands behind an actor, and nobody else.
func TestAuditNamesWhoDecided(t *testing.T) {
	pack := func(ctx context.Context, h agent.Handle) agent.Ending {
		_, err := h.Ask(ctx, agent.Ask{Kind: "approval", Title: "Both?", Actions: []string{"approve", "deny"}, Members: []agent.Member{
			{RequestID: "m1", Action: "write", Resource: "a"}, {RequestID: "m2", Action: "write", Resource: "b"},
		}})
		if err != nil {
			return agent.Ending{Outcome: agent.Cancelled}
		}
		return agent.Ending{}
	}
	bubble(t, rigOptions{agent: pack}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.say("s1", "write")
		synctest.Wait()
		id := r.opened()[0]
		admin := r.token
		for i, name := range []string{"alice", "bob"} {
			r.token = r.newToken(name, access.Grant{Roles: []access.Role{access.Decide}})
			body := fmt.Sprintf(`{"interruptId":%q,"decision":"approve","members":[{"requestId":"m%d","decision":"approve"}],"reason":"by %s"}`, id, i+1, name)
			r.wantWord(r.post("/commands/resolve-interrupt", body), 202, "accepted")
		}
		synctest.Wait()
		r.token = admin
		var all []string
		after := "0"
		for after != "null" {
			page := r.want(r.get("/sessions/s1/audit?limit=1&afterSessionSequence="+after), 200)
			items, _ := narad.Raw(page.field("items")).Elements()
			for _, item := range items {
				name, _ := item.Field("actor").Field("name").IsString()
				reason, _ := item.Field("reason").IsString()
				of, _ := item.Field("interruptId").IsString()
				if of != id || reason != "by "+name {
					t.Errorf("got %s", item)
				}
				all = append(all, name)
			}
			after = page.field("nextSessionSequence")
		}
		if got := strings.Join(all, " "); !strings.HasPrefix(got, "alice bob") {
			t.Errorf("got the deciders %q, want alice, then bob", got)
		}
		if public := r.get("/sessions/s1/events").body; strings.Contains(public, "alice") && strings.Contains(public, `"name":"alice"`) {
			t.Error("a fact names the token behind an actor")
		}
		r.wantProblem(r.get("/sessions/s1/audit?afterSessionSequence=1000"), 409, "cursor_ahead")
	})
}

// R29: the transcript is a function of the fact at its cursor, and is what the reducer
// of a client makes of it.
func TestTranscriptIsARecord(t *testing.T) {
	bubble(t, rigOptions{agent: nests}, func(t *testing.T, r *rig) {
		r.create("s1")
		empty := r.want(r.get("/sessions/s1/messages"), 200)
		if !strings.Contains(empty.body, `"messages":[]`) {
			t.Errorf("an empty session: got %s", empty)
		}
		r.say("s1", "<hi> & 😀")
		synctest.Wait()
		first := r.want(r.get("/sessions/s1/messages"), 200)
		if again := r.get("/sessions/s1/messages"); again.body != first.body {
			t.Errorf("got %s\nthen %s", first, again)
		}
		record, err := narad.Decode([]byte(first.body))
		snapshot, ok := record.(*narad.MessagesSnapshot)
		if err != nil || !ok {
			t.Fatalf("got %s: %v", first, err)
		}
		facts := r.facts("s1")
		last := facts[len(facts)-1].Envelope()
		if snapshot.Timestamp != last.Timestamp || snapshot.CoversThroughSessionSequence != last.SessionSequence || snapshot.SessionID != "s1" {
			t.Errorf("got %s, want it to be of %+v", first, last)
		}
		state := session.New(session.Options{})
		for _, f := range facts {
			state.Apply(f)
		}
		want := state.Messages()
		if len(snapshot.Messages) != len(want) || len(want) != 3 {
			t.Fatalf("got %d messages, want %d", len(snapshot.Messages), len(want))
		}
		for i, raw := range snapshot.Messages {
			content, _ := raw.Field("content").IsString()
			scope, _ := raw.Field("messageScope").IsString()
			if content != want[i].Content || scope != string(want[i].MessageScope) || string(raw.Field("completed")) != "true" {
				t.Errorf("message %d: got %s, want %+v", i, raw, want[i])
			}
		}
	})
}

func TestATranscriptThatIsTooLarge(t *testing.T) {
	tells := func(ctx context.Context, h agent.Handle) agent.Ending {
		for range 60 {
			_ = h.Text(ctx, strings.Repeat("x", 10_000))
			_ = h.EndMessage(ctx)
		}
		return agent.Ending{}
	}
	bubble(t, rigOptions{agent: tells}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.say("s1", "tell")
		synctest.Wait()
		r.wantProblem(r.get("/sessions/s1/messages"), 413, "snapshot_too_large")
	})
}
