package naryahttp_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/server/naryahttp"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// talks has something of every kind in its transcript: two messages at once in two lanes,
// calls that end in each way, and files.
const talks = `
script: 1
steps:
  - say: "I shall look."
  - tool: {name: read, kind: read, title: Read a, paths: [/w/a], args: {n: 1.10}, respond: {x: 1.0}}
  - tool: {name: rm, kind: delete, permit: true, on: {deny: [{think: No.}]}}
  - agent:
      name: helper
      prompt: Help
      tool: {name: agent, title: Ask a helper}
      steps:
        - say: "Helped."
        - tool: {name: t, outcome: error, code: c, message: why}
  - say: "Done."
`

func (b *bed) session(id string) string { return "/v1/sessions/" + narya.UUID(narya.KindSession, id) }

// allItems follows a list to its end.
func (b *bed) allItems(path string) (items []string) {
	b.t.Helper()
	sign := "?"
	if strings.Contains(path, "?") {
		sign = "&"
	}
	for at, pages := path, 0; ; pages++ {
		got := b.want(b.get(at), 200)
		items = append(items, got.items("items")...)
		next := got.field("nextCursor")
		if next == "" {
			return items
		}
		if pages > 10_000 {
			b.t.Fatalf("%s does not end", path)
		}
		at = path + sign + "cursor=" + next
	}
}

func text(object string, names ...string) string { return reply{body: object}.field(names...) }

// Each entry that the stream tells of stands in the transcript, in that order, and can be
// fetched by its id; whatever the size of a page and the direction, a reader gets the same.
func TestTranscriptIsWhatTheStreamTold(t *testing.T) {
	for _, facts := range []uint64{0, 1, 7} {
		bubble(t, bedOptions{agent: scripted(t, talks), binding: naryahttp.Options{PageFacts: facts}}, func(t *testing.T, b *bed) {
			s := b.stream("", "")
			b.create("one", "hello")
			b.create("two", "other")
			synctest.Wait()
			for _, asked := range b.asked() {
				b.resolve(asked, "deny")
			}
			events := s.now()
			for _, id := range []string{"one", "two"} {
				var want []string
				lanes := map[string][]string{}
				for _, e := range events {
					if p, ok := e.Payload.(*narya.EntryAppended); ok && e.SessionID == narya.UUID(narya.KindSession, id) {
						want = append(want, fmt.Sprint(p.EntryID, p.Kind, e.LaneID, p.TurnID, e.Timestamp))
						lanes[e.LaneID] = append(lanes[e.LaneID], p.EntryID)
					}
				}
				all := b.allItems(b.session(id) + "/transcript")
				var got []string
				for _, e := range all {
					got = append(got, text(e, "entryId")+text(e, "kind")+text(e, "laneId")+text(e, "turnId")+text(e, "createdAt"))
					if one := b.want(b.get(b.session(id)+"/transcript/"+text(e, "entryId")), 200); one.body != e {
						t.Errorf("by itself: got %s, want %s", one.body, e)
					}
				}
				if !slices.Equal(got, want) || len(got) < 12 {
					t.Fatalf("got  %q\nwant %q", got, want)
				}
				back := slices.Clone(all)
				slices.Reverse(back)
				for limit := range 4 {
					query := fmt.Sprintf("/transcript?limit=%d", limit+1)
					if got := b.allItems(b.session(id) + query); !slices.Equal(got, all) {
						t.Errorf("%s: got %q", query, got)
					}
					if got := b.allItems(b.session(id) + query + "&order=desc"); !slices.Equal(got, back) {
						t.Errorf("%s, newest first: got %q\nwant %q", query, got, back)
					}
				}
				for lane, want := range lanes {
					for _, order := range []string{"asc", "desc"} {
						var got []string
						for _, e := range b.allItems(b.session(id) + "/transcript?limit=2&order=" + order + "&laneId=" + lane) {
							got = append(got, text(e, "entryId"))
						}
						if order == "desc" {
							slices.Reverse(got)
						}
						if !slices.Equal(got, want) {
							t.Errorf("lane %s, %s: got %q, want %q", lane, order, got, want)
						}
					}
				}
			}
		})
	}
}

// What entries say is what was said, called and brought, with its own bytes.
func TestEntriesSayWhatHappened(t *testing.T) {
	bubble(t, bedOptions{agent: scripted(t, talks)}, func(t *testing.T, b *bed) {
		b.create("one", "hello")
		synctest.Wait()
		b.resolve(b.asked()[0], "deny")
		synctest.Wait()
		var got []string
		for _, e := range b.allItems(b.session("one") + "/transcript") {
			line := []string{text(e, "kind")}
			for _, name := range []string{"content", "tool", "title", "input", "status", "output", "failure", "fileTouches"} {
				if v := text(e, name); v != "" {
					line = append(line, name+"="+v)
				}
			}
			got = append(got, strings.Join(line, " "))
		}
		want := []string{
			`user-message content=hello`,
			`assistant-message content=I shall look.`,
			`tool-call tool=read title=Read a input={"n":1.10}`,
			`tool-result tool=read status=ok output={"x":1.0} fileTouches=[{"path":"/w/a","op":"read"}]`,
			`tool-call tool=rm input={}`,
			`tool-result tool=rm status=denied output=null`,
			`tool-call tool=agent title=Ask a helper input={}`,
			`user-message content=Help`,
			`assistant-message content=Helped.`,
			`tool-call tool=t input={}`,
			`tool-result tool=t status=error output=null failure=why`,
			`tool-result tool=agent status=ok output={"outcome":"finished"}`,
			`assistant-message content=Done.`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// A long answer is cut in a list, at a whole character, and not where it is asked for alone.
func TestLongEntries(t *testing.T) {
	long := strings.Repeat("ä", 50_000)
	says := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		_ = h.Text(ctx, long)
		return done
	})
	bubble(t, bedOptions{agent: says}, func(t *testing.T, b *bed) {
		b.create("one", "hello")
		synctest.Wait()
		item := b.allItems(b.session("one") + "/transcript")[1]
		if got := text(item, "content"); len(got) != 64<<10 || !strings.HasPrefix(long, got) || text(item, "truncated") != "true" {
			t.Errorf("got %d bytes, truncated %q", len(got), text(item, "truncated"))
		}
		one := b.want(b.get(b.session("one")+"/transcript/"+text(item, "entryId")), 200)
		if one.field("content") != long || one.field("truncated") != "" {
			t.Errorf("by itself: got %d bytes, truncated %q", len(one.field("content")), one.field("truncated"))
		}
	})
}

// What was redacted is not shown, in whatever way it is asked for.
func TestRedactedEntries(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		b.create("one", "secret")
		synctest.Wait()
		list := b.allItems(b.session("one") + "/transcript")
		instead := "gone"
		for _, f := range b.facts("one") {
			id, replacement := "", &instead
			switch f := f.(type) {
			case *narad.MessageUserRecorded:
				id, replacement = f.MessageID, nil
			case *narad.MessageTextCompleted:
				id = f.MessageID
			default:
				continue
			}
			b.do(access.RedactMessage, "one", decide.Redact{MessageID: id, Reason: "r", DisplayReplacement: replacement})
		}
		for i, want := range []string{"", "gone"} {
			path := b.session("one") + "/transcript"
			one := b.get(path + "/" + text(list[i], "entryId"))
			for _, got := range []string{b.allItems(path)[i], one.body} {
				if text(got, "content") != want || text(got, "redacted") != "true" || strings.Contains(got, "secret") {
					t.Errorf("got %s, want the content %q", got, want)
				}
			}
		}
	})
}

// Lanes stand with what became of them.
func TestLanes(t *testing.T) {
	bubble(t, bedOptions{agent: scripted(t, talks), binding: naryahttp.Options{PageFacts: 5}}, func(t *testing.T, b *bed) {
		b.create("one", "hello")
		synctest.Wait()
		b.resolve(b.asked()[0], "deny")
		synctest.Wait()
		list := b.allItems(b.session("one") + "/lanes?limit=1")
		var got []string
		for _, l := range list {
			got = append(got, strings.TrimSpace(strings.Join([]string{text(l, "kind"), text(l, "status"), text(l, "agent")}, " ")))
			if one := b.want(b.get("/v1/lanes/"+text(l, "laneId")), 200); one.body != l {
				t.Errorf("by itself: got %s, want %s", one.body, l)
			}
		}
		if want := []string{"main open", "subagent completed helper"}; !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		if text(list[0], "turnId") != "" || text(list[1], "turnId") == "" || text(list[1], "parentToolCallId") == "" || text(list[1], "finishedAt") == "" {
			t.Errorf("got %s", list)
		}
	})
}

// What is not there is told by its own code, and what is in another session is not there.
func TestTranscriptRefusals(t *testing.T) {
	bubble(t, bedOptions{tcp: true}, func(t *testing.T, b *bed) {
		b.create("one", "hello")
		b.create("two", "")
		synctest.Wait()
		entry := text(b.allItems(b.session("one") + "/transcript")[0], "entryId")
		cursor := b.get(b.session("one") + "/transcript?limit=1").field("nextCursor")
		main := narya.MainLaneID("one")
		for path, code := range map[string]narya.Code{
			b.session("none") + "/transcript":                            narya.CodeSessionNotFound,
			b.session("none") + "/lanes":                                 narya.CodeSessionNotFound,
			"/v1/sessions/one/transcript":                                narya.CodeSessionNotFound,
			b.session("two") + "/transcript/" + entry:                    narya.CodeEntryNotFound,
			b.session("two") + "/transcript/x":                           narya.CodeEntryNotFound,
			b.session("two") + "/transcript?laneId=" + main:              narya.CodeLaneNotFound,
			b.session("two") + "/transcript?laneId=x":                    narya.CodeMalformed,
			b.session("two") + "/transcript?order=up":                    narya.CodeMalformed,
			b.session("two") + "/transcript?limit=0":                     narya.CodeMalformed,
			b.session("two") + "/transcript?cursor=x":                    narya.CodeMalformed,
			b.session("two") + "/transcript?cursor=" + cursor:            narya.CodeMalformed,
			b.session("one") + "/transcript?order=desc&cursor=" + cursor: narya.CodeMalformed,
			"/v1/lanes/x":        narya.CodeLaneNotFound,
			"/v1/lanes/" + entry: narya.CodeLaneNotFound,
		} {
			b.wantError(b.get(path), code)
		}
		stranger := b.as("stranger", access.Grant{Roles: []access.Role{access.Observe}, Workspaces: []string{"other"}})
		stranger.wantError(stranger.get(b.session("one")+"/transcript"), narya.CodeSessionNotFound)
		stranger.wantError(stranger.get("/v1/lanes/"+main), narya.CodeLaneNotFound)
	})
}

// do performs a command by the host itself.
func (b *bed) do(action access.Action, id string, c decide.Command) host.Answer {
	b.t.Helper()
	a, err := b.host.Do(b.t.Context(), access.Owner(), host.Request{Action: action, Session: id, Command: c})
	if err != nil || !a.Status.Accepted() {
		b.t.Fatalf("%T: %+v, %v", c, a, err)
	}
	return a
}

// asked are the open interrupts of the host.
func (b *bed) asked() (ids []string) {
	b.t.Helper()
	list, _, _, err := b.host.Inbox(b.t.Context(), access.Owner(), "", "", 100)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, a := range list {
		ids = append(ids, a.InterruptID)
	}
	return ids
}

func (b *bed) resolve(interrupt, decision string) {
	b.t.Helper()
	b.do(access.ResolveInterrupt, "", decide.Resolve{InterruptID: interrupt, Decision: decision})
}

// facts are those of a session.
func (b *bed) facts(id string) (list []narad.Authority) {
	b.t.Helper()
	v, err := b.host.Attach(b.t.Context(), access.Owner(), access.ReadSession, id)
	if err != nil {
		b.t.Fatal(err)
	}
	chunk, err := v.Read(b.t.Context(), host.Cursor{}, host.Page{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, r := range chunk.Records {
		rec, err := narad.Decode(r.Bytes)
		if err != nil {
			b.t.Fatal(err)
		}
		list = append(list, rec.(narad.Authority))
	}
	return list
}

// weighed counts the bytes of the facts that are read.
type weighed struct {
	journal.Journal
	bytes atomic.Int64
}

func (w *weighed) Scan(ctx context.Context, order journal.Order, page journal.Page, visit func(*journal.Record)) (bool, error) {
	return w.Journal.Scan(ctx, order, page, func(r *journal.Record) {
		w.bytes.Add(int64(len(r.Bytes)))
		visit(r)
	})
}

// Facts may be large, and nobody asks for all of them at once: whatever the size of a page,
// newest first, few bytes are read for it beside those that it is made of, and it is the same.
func TestNewestOfLargeMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, err := journal.NewMemory(journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		w := &weighed{Journal: j}
		b := begin(t, bedOptions{agent: acts(waits), journal: w})
		b.create("s1", "")
		b.tell("s1", "work", "")
		for i := range 60 {
			b.tell("s1", strings.Repeat("x", 450_000)+fmt.Sprint(i), "")
			if i%5 == 0 {
				b.want(b.put(path("s1", "title"), fmt.Sprintf(`{"title":"%d"}`, i)), 200)
			}
		}
		synctest.Wait()
		want := b.allItems(path("s1", "transcript?limit=200"))
		slices.Reverse(want)
		if len(want) != 61 {
			t.Fatalf("%d entries, want 61", len(want))
		}
		for _, limit := range []int{1, 7, 200} {
			var got []string
			for next := fmt.Sprintf("transcript?order=desc&limit=%d", limit); next != ""; {
				w.bytes.Store(0)
				page := b.want(b.get(path("s1", next)), 200)
				got = append(got, page.items("items")...)
				if read := w.bytes.Load(); limit < 10 && read > 10<<20 {
					t.Errorf("a page of %d: %d bytes were read", limit, read)
				}
				if next = ""; page.field("nextCursor") != "" {
					next = fmt.Sprintf("transcript?order=desc&limit=%d&cursor=%s", limit, page.field("nextCursor"))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d: got %d entries, want %d in their order", limit, len(got), len(want))
			}
		}
	})
}
