package naradhttp_test

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// Field case 104: pages are cut by sequence, so facts of one moment are not lost.
func TestEveryPagingGivesTheSame(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		w := r.newWriter("s1", 1)
		frozen := time.Now()
		w.now = func() time.Time { return frozen }
		w.write(999)
		var want [][]byte
		for record, err := range journal.All(t.Context(), r.journal, "s1", 0) {
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, record.Bytes)
		}
		for _, limit := range []int{1, 7, 100, 1_000} {
			n := 0
			for raw, err := range r.client().Events(t.Context(), "s1", client.HistoryQuery{Limit: limit}) {
				if err != nil {
					t.Fatalf("limit %d: %v", limit, err)
				}
				if n >= len(want) || !bytes.Equal(raw, want[n]) {
					t.Fatalf("limit %d: event %d: got %s", limit, n, raw)
				}
				n++
			}
			if n != len(want) {
				t.Errorf("limit %d: got %d events, want %d", limit, n, len(want))
			}
		}
	})
}

func TestPagesAreBounded(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		w := r.newWriter("s1", 1)
		w.write(750)
		w.write(750)
		for limit, want := range map[string]int{
			"0": 1, "-5": 1, "1": 1, "1000": 1_000, "1001": 1_000, "99999999999999999999": 1_000, "": 1_000,
		} {
			page, err := r.page("s1", url.Values{"limit": {limit}})
			if err != nil || len(page.Events) != want || page.NextSessionSequence == nil || *page.NextSessionSequence != int64(want) {
				t.Errorf("limit %q: got %d events, %v, want %d and where to go on", limit, len(page.Events), err, want)
			}
		}
		for query, more := range map[string]bool{"limit=1&afterSessionSequence=1500": false, "limit=1&afterSessionSequence=1499": true} {
			q, _ := url.ParseQuery(query)
			page, err := r.page("s1", q)
			if err != nil || len(page.Events) != 1 || (page.NextSessionSequence != nil) != more {
				t.Errorf("%s: got %+v, %v, want one event, and more: %v", query, page, err, more)
			}
		}
		w.fill = string(bytes.Repeat([]byte{'x'}, 400_000))
		w.write(20)
		page, err := r.page("s1", url.Values{"afterSessionSequence": {"1501"}})
		if size := len(bytes.Join(raws(page.Events), nil)); err != nil || size > 4<<20 || len(page.Events) != 10 {
			t.Errorf("got %d events of %d bytes, %v; want at most 4 MiB: 10 events", len(page.Events), size, err)
		}
	})
}

func raws(list []narad.Raw) (out [][]byte) {
	for _, raw := range list {
		out = append(out, raw)
	}
	return out
}

// page reads one page as the query says.
func (r *rig) page(id string, q url.Values) (client.HistoryPage, error) {
	got := r.get("/sessions/" + id + "/events?" + q.Encode())
	var page client.HistoryPage
	if got.status != 200 {
		return page, fmt.Errorf("%s", got)
	}
	if _, present := memberOf(got.body, "nextSessionSequence"); !present {
		return page, fmt.Errorf("no nextSessionSequence: %s", got.body[:min(len(got.body), 200)])
	}
	return page, unmarshal(got.body, &page)
}

// twoRuns is a session with two root runs, one of which has a nested one.
func twoRuns(r *rig) (first, second string) {
	r.t.Helper()
	r.create("s1")
	first = r.say("s1", "one")
	second = r.say("s1", "two")
	synctest.Wait()
	return first, second
}

func nests(ctx context.Context, h agent.Handle) agent.Ending {
	if n, err := h.StartRun(ctx, agent.Nested{Name: "helper"}); err == nil {
		_ = n.Text(ctx, "below")
		_ = n.End(ctx, agent.Ending{})
	}
	return speaks(ctx, h)
}

func TestHistoryOfOneRun(t *testing.T) {
	bubble(t, rigOptions{agent: nests}, func(t *testing.T, r *rig) {
		_, second := twoRuns(r)
		var want []string
		for _, f := range r.facts("s1") {
			if e := f.Envelope(); e.RootRunID == second {
				want = append(want, e.EventID)
			}
		}
		for _, limit := range []int{1, 3, 100} {
			var got []string
			for raw, err := range r.client().Events(t.Context(), "s1", client.HistoryQuery{RootRunID: second, Limit: limit}) {
				if err != nil {
					t.Fatal(err)
				}
				id, _ := raw.Field("eventId").IsString()
				got = append(got, id)
			}
			if !slices.Equal(got, want) {
				t.Errorf("limit %d: got %v\nwant %v", limit, got, want)
			}
		}
	})
}

// R26: several cursors must stand at the same facts, and none above the head.
func TestCursorsThatDoNotFit(t *testing.T) {
	bubble(t, rigOptions{agent: nests}, func(t *testing.T, r *rig) {
		first, second := twoRuns(r)
		var of []int64 // session sequences of the first run's facts
		for _, f := range r.facts("s1") {
			if e := f.Envelope(); e.RootRunID == first {
				of = append(of, e.SessionSequence)
			}
		}
		head := int64(r.head("s1"))
		both := func(session, sequence int64) string {
			return fmt.Sprintf("?rootRunId=%s&afterSequence=%d&afterSessionSequence=%d", first, sequence, session)
		}
		last := int64(len(of))
		tests := []struct {
			name, query string
			status      int
			code        string
		}{
			{"agree at the beginning", both(0, 0), 200, ""},
			{"agree: before the run's first", both(of[0]-1, 0), 200, ""},
			{"agree in the middle", both(of[2], 3), 200, ""},
			{"agree between two of its facts", both(of[3]-1, 3), 200, ""},
			{"agree after its end", both(head, last), 200, ""},
			{"session behind", both(of[2]-1, 3), 409, "cursor_conflict"},
			{"session ahead", both(of[3], 3), 409, "cursor_conflict"},
			{"run at its beginning, session not", both(of[0], 0), 409, "cursor_conflict"},
			{"run not at its beginning, session is", both(0, 1), 409, "cursor_conflict"},
			{"session above the head", "?afterSessionSequence=" + strconv.FormatInt(head+1, 10), 409, "cursor_ahead"},
			{"run above its end", "?rootRunId=" + first + "&afterSequence=" + strconv.FormatInt(last+1, 10), 409, "cursor_ahead"},
			{"at the head", "?afterSessionSequence=" + strconv.FormatInt(head, 10), 200, ""},
			{"a run that has not begun", "?rootRunId=nothing", 200, ""},
			{"a place in a run that has not begun", "?rootRunId=nothing&afterSequence=1", 409, "cursor_ahead"},
			{"a workflow that has not begun", "?workflowId=nothing", 200, ""},
			{"a run of no workflow", "?workflowId=nothing&rootRunId=" + second, 409, "cursor_conflict"},
			{"a run cursor without its run", "?afterSequence=1", 400, "cursor_invalid"},
			{"a workflow cursor without its workflow", "?afterWorkflowSequence=1", 400, "cursor_invalid"},
			{"negative", "?afterSessionSequence=-1", 400, "cursor_invalid"},
			{"not a number", "?afterSessionSequence=x", 400, "cursor_invalid"},
			{"beyond what JSON holds", "?afterSessionSequence=9007199254740993", 400, "cursor_invalid"},
			{"limit is no number", "?limit=x", 400, "bad_request"},
		}
		for _, test := range tests {
			got := r.get("/sessions/s1/events" + test.query)
			if test.code != "" {
				r.wantProblem(got, test.status, test.code)
			} else if got.status != test.status {
				t.Errorf("%s: got %s", test.name, got)
			}
			if t.Failed() {
				t.Fatalf("case %q: %s", test.name, test.query)
			}
		}
	})
}

// §10.2: a page may be of one run of a workflow, and then has all three cursors.
func TestHistoryOfARunOfAWorkflow(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		w := r.newWriter("s1", 1)
		for i := range uint64(8) { // session 2..9: run a, then run b, both of workflow w
			w.place = journal.Fact{
				RootRunID: []string{"a", "b"}[i/4], RunSequence: i%4 + 1, WorkflowID: "w", WorkflowSequence: i + 1,
			}
			w.write(1)
		}
		got := r.want(r.get("/sessions/s1/events?workflowId=w&limit=3"), 200)
		if got.field("nextWorkflowSequence") != "3" || got.field("nextSessionSequence") != "4" || got.field("nextSequence") != "" {
			t.Errorf("the workflow: got %s", got)
		}
		got = r.want(r.get("/sessions/s1/events?workflowId=w&rootRunId=b&limit=2&afterSequence=1&afterWorkflowSequence=5&afterSessionSequence=6"), 200)
		if got.field("nextSequence") != "3" || got.field("nextWorkflowSequence") != "7" || got.field("nextSessionSequence") != "8" {
			t.Errorf("the run in it: got %s", got)
		}
		for _, query := range []string{
			"workflowId=w&rootRunId=b&afterSequence=1&afterWorkflowSequence=6",
			"workflowId=w&rootRunId=b&afterSequence=1&afterWorkflowSequence=4",
			"workflowId=w&rootRunId=b&afterSequence=1&afterWorkflowSequence=5&afterSessionSequence=7",
			"workflowId=other&rootRunId=b",
		} {
			r.wantProblem(r.get("/sessions/s1/events?"+query), 409, "cursor_conflict")
		}
	})
}
