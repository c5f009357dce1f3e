package naryahttp_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narya"
)

// pagesOf are all lists, by what makes one another list: its path, its session, its filters.
// S1 and S2 are sessions.
var pagesOf = []string{
	"/v1/sessions", "/v1/sessions?status=running", "/v1/sessions?clientKind=api", "/v1/sessions?repository=/",
	"/v1/permissions", "/v1/permissions?sessionId=S1", "/v1/permissions?sessionId=S2",
	"/v1/permissions/decisions", "/v1/permissions/decisions?sessionId=S1", "/v1/permissions/decisions?decision=allow",
	"/v1/questions", "/v1/questions?sessionId=S1",
	"/v1/sessions/S1/rules", "/v1/sessions/S2/rules",
	"/v1/sessions/S1/transcript", "/v1/sessions/S2/transcript", "/v1/sessions/S1/transcript?order=desc", "/v1/sessions/S1/transcript?laneId=LANE",
	"/v1/sessions/S1/lanes", "/v1/sessions/S2/lanes",
	"/v1/intercom", "/v1/sessions/S1/intercom/asks", "/v1/sessions/S2/intercom/asks",
	"/v1/workflows", "/v1/workflows?sessionId=S3", "/v1/workflows?status=completed", "/v1/workflows?sessionId=S1",
	"/v1/models", "/v1/styles", "/v1/agents",
}

// A cursor is good for the list that gave it, with its filters, and for no other; a page has
// at most 200 items.
func TestCursorsOfLists(t *testing.T) {
	o := bedOptions{
		agent: scripted(t, packs), agents: map[string]agent.Kind{"other": acts(speaks)},
		host: host.Options{Styles: map[string]string{"a": "A", "b": "B"}},
	}
	bubble(t, o, func(t *testing.T, b *bed) {
		for _, id := range []string{"s1", "s2"} {
			b.create(id, "go")
			b.tell(id, "waits", "")
		}
		b.create("s3", "")
		synctest.Wait()
		ids := b.pendingIDs("?sessionId=" + uuid("s1"))
		b.want(b.decide(ids[0], "allow", ""), 200)
		b.want(b.decide(ids[1], "allow", ""), 200)
		for range 2 {
			body := `{"to":"` + b.nameOf(uuid("s1")) + `","content":"x","kind":"ask"}`
			b.want(b.post(path("s3", "intercom"), body), 202)
			definition := quote("workflow: 1\nnodes:\n  a: {set: {x: y}, next: b}\n  b: {end: completed}\n")
			b.want(b.post("/v1/workflows", `{"sessionId":"`+uuid("s3")+`","definition":`+definition+`}`), 202)
			pass(time.Second)
		}
		names := strings.NewReplacer("S1", uuid("s1"), "S2", uuid("s2"), "S3", uuid("s3"), "LANE", narya.MainLaneID("s1"))
		with := func(list, query string) reply {
			if strings.Contains(list, "?") {
				return b.get(names.Replace(list) + "&" + query)
			}
			return b.get(names.Replace(list) + "?" + query)
		}
		given := map[string]string{}
		for _, list := range pagesOf {
			for _, wrong := range []string{"limit=0", "limit=201", "limit=x", "limit=", "cursor=x", "cursor=" + strings.Repeat("A", 10_000), "cursor=1", "limit=1&limit=2"} {
				b.wantError(with(list, wrong), narya.CodeMalformed)
			}
			page := b.want(with(list, "limit=1"), http.StatusOK)
			if n := len(page.items("items")); n > 1 {
				t.Errorf("%s: %d items on a page of one", list, n)
			}
			if cursor := page.field("nextCursor"); cursor != "" {
				given[list] = cursor
			}
		}
		for list, cursor := range given {
			for _, other := range pagesOf {
				if other == list {
					b.want(with(other, "cursor="+cursor), http.StatusOK)
					continue
				}
				if got := with(other, "cursor="+cursor); got.status != http.StatusBadRequest {
					t.Errorf("%s takes the cursor of %s: %s", other, list, got)
				}
			}
			last := "A"
			if strings.HasSuffix(cursor, last) {
				last = "Q"
			}
			b.wantError(with(list, "cursor="+cursor[:len(cursor)-1]+last), narya.CodeMalformed)
		}
		for _, list := range []string{
			"/v1/sessions", "/v1/permissions", "/v1/permissions/decisions", "/v1/sessions/S1/transcript", "/v1/sessions/S1/transcript?order=desc",
			"/v1/intercom", "/v1/sessions/S1/intercom/asks", "/v1/workflows", "/v1/styles", "/v1/permissions?sessionId=S2",
		} {
			if given[list] == "" {
				t.Errorf("%s gave no cursor, so the test shows nothing of it", list)
			}
		}
	})
}

// A page has some MiB at most, whatever stands in it, and the others follow.
func TestPagesOfLargeItems(t *testing.T) {
	large := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		ask := agent.Ask{
			Kind: "approval", Title: "t", Actions: []string{"approve", "deny"},
			Members: []agent.Member{{RequestID: "a", Action: "run", Resource: strings.Repeat("x", 400_000)}},
		}
		if _, err := h.Ask(ctx, ask); err != nil {
			return ending(err)
		}
		return done
	})
	bubble(t, bedOptions{agent: large, host: host.Options{MaxRunning: 100}}, func(t *testing.T, b *bed) {
		const sessions = 30
		for i := range sessions {
			b.create(fmt.Sprint("s", i), "go")
		}
		synctest.Wait()
		all := func(list string) (ids []string) {
			for next := list + "?limit=200"; next != ""; {
				page := b.want(b.get(next), 200)
				if n := len(page.body); n > 6<<20 {
					t.Errorf("a page of %s has %d bytes", list, n)
				}
				for _, item := range page.items("items") {
					ids = append(ids, text(item, "permissionId"))
				}
				if next = ""; page.field("nextCursor") != "" {
					next = list + "?limit=200&cursor=" + page.field("nextCursor")
				}
			}
			return ids
		}
		ids := all("/v1/permissions")
		if len(ids) != sessions {
			t.Fatalf("%d wait, want %d", len(ids), sessions)
		}
		for _, id := range ids {
			b.want(b.decide(id, "deny", ""), 200)
		}
		synctest.Wait()
		if settled := all("/v1/permissions/decisions"); len(settled) != sessions {
			t.Errorf("%d decisions, want %d", len(settled), sessions)
		}
	})
}
