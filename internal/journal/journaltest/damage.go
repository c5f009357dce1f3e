package journaltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// listed is every list with the rows of three sessions in it, the second of which will be
// damaged. Each row's text is told by its key.
type listed struct {
	list journal.List
	row  func(session string) journal.Row
	// whose says that a list tells whose a row is that cannot be read.
	whose bool
}

func listsOf(first uint64) []listed {
	return []listed{
		{journal.Sessions{}, func(s string) journal.Row { return sessionRow(s, "active") }, true},
		{journal.Sessions{State: "active", Workspace: "w1"}, func(s string) journal.Row { return sessionRow(s, "active") }, true},
		{journal.OpenWork{}, func(s string) journal.Row { return journal.OpenWorkRow{Session: s} }, true},
		{journal.OpenInterrupts{}, func(s string) journal.Row {
			return journal.InterruptRow{ID: "i" + s, Session: s, Sequence: first, Open: true}
		}, true},
		{journal.TimersDue{Until: Start.Add(time.Hour)}, func(s string) journal.Row { return timerRow(s, "t", time.Second) }, true},
		{journal.Leases{}, func(s string) journal.Row { return journal.LeaseRow{Executor: "e" + s} }, false},
		{journal.Tokens{Executor: "e"}, func(s string) journal.Row { return journal.TokenRow{Executor: "e", ID: "t" + s, Session: s} }, false},
		{journal.Agents{}, func(s string) journal.Row { return journal.AgentRow{ID: "a" + s} }, false},
		{journal.Materials{}, func(s string) journal.Row { return journal.MaterialRow{Session: s, Space: "m", ID: "m" + s} }, true},
		{journal.Decisions{}, func(s string) journal.Row { return journal.DecisionRow{ID: "x" + s, Session: s} }, false},
		{journal.Decisions{Decision: "allow"}, func(s string) journal.Row {
			return journal.DecisionRow{ID: "x" + s, Session: s, Decision: "allow"}
		}, false},
		{journal.Workflows{}, func(s string) journal.Row { return workflowRow(s, first) }, false},
		{journal.Workflows{State: "running"}, func(s string) journal.Row { return workflowRow(s, first) }, false},
	}
}

func workflowRow(session string, first uint64) journal.Row {
	return journal.WorkflowRow{ID: "w" + session, Session: session, First: first, State: "running"}
}

// damagedStore has three sessions with a row in each list, those of b unreadable.
func damagedStore(t *testing.T, engine Engine) (j journal.Journal, stories map[string]*Story) {
	j = open(t, engine, journal.Options{})
	stories = map[string]*Story{}
	for _, session := range []string{"a", "b", "c"} {
		s := NewStory(session)
		stories[session] = s
		batch := s.Batch(s.Facts(1)...)
		for _, l := range listsOf(1) {
			batch.Changes = append(batch.Changes, put(l.row(session)))
		}
		mustAppend(t, j, batch)
	}
	var keys []journal.Key
	for _, l := range listsOf(1) {
		keys = append(keys, l.row("b").Key())
	}
	engine.Damage(t, j, keys...)
	mustAppend(t, j, stories["c"].Batch(stories["c"].Facts(1)...)) // an engine may show it from its next commit on
	return j, stories
}

// readList reads a list in pages of a limit.
func readList(t *testing.T, j journal.Index, list journal.List, limit int) (rows []string, damaged []journal.Damage) {
	t.Helper()
	page := journal.RowPage{Limit: limit}
	for range 20 {
		got, err := j.Rows(context.Background(), list, page)
		if err != nil {
			t.Fatalf("list %T %+v: %v", list, list, err)
		}
		if n := len(got.Rows) + len(got.Damaged); n > limit {
			t.Errorf("list %T: a page of %d has %d rows", list, limit, n)
		}
		for _, row := range got.Rows {
			rows = append(rows, row.Key().String())
		}
		damaged = append(damaged, got.Damaged...)
		if got.Next == "" {
			return rows, damaged
		}
		page.Cursor = got.Next
	}
	t.Fatalf("list %T does not end: %v, damaged %v", list, rows, damaged)
	return nil, nil
}

// A row that cannot be read costs no other row of its list, whatever the pages, and is
// named with its session.
func testDamagedRows(t *testing.T, engine Engine) {
	j, _ := damagedStore(t, engine)
	for _, l := range listsOf(1) {
		bad := l.row("b").Key()
		want := []string{l.row("a").Key().String(), l.row("c").Key().String()}
		if _, lastFirst := l.list.(journal.Workflows); lastFirst {
			slices.Reverse(want)
		}
		for _, limit := range []int{1, 2, 100} {
			rows, damaged := readList(t, j, l.list, limit)
			wantList(t, fmt.Sprintf("%T in pages of %d", l.list, limit), rows, want...)
			if len(damaged) != 1 || damaged[0].Key != bad || damaged[0].Cause == nil || l.whose && damaged[0].Session != "b" {
				t.Errorf("%T in pages of %d: got %+v, want %s damaged, of b", l.list, limit, damaged, bad)
			}
		}
		_, err := j.Row(context.Background(), bad)
		wantError(t, bad.String(), err, journal.ErrDamaged)
	}
	rows, damaged := readList(t, j, journal.Sessions{NewestFirst: true}, 1)
	if got := strings.Join(rows, " "); got != `session "c" session "a"` || len(damaged) != 1 {
		t.Errorf("newest first: got %s, %+v; want c, a, and b damaged", got, damaged)
	}
	_, damaged = readList(t, j, journal.TimersDue{Until: Start.Add(time.Hour)}, 10)
	if due := Start.Add(time.Second); len(damaged) != 1 || !damaged[0].Due.Equal(due) {
		t.Errorf("lost timer: got %+v, want it to be due at %s", damaged, due)
	}
	_, damaged = readList(t, j, journal.OpenInterrupts{Session: "b"}, 10)
	if len(damaged) != 1 || damaged[0].Session != "b" {
		t.Errorf("interrupts of b: got %+v, want one, damaged", damaged)
	}
	if rows, damaged = readList(t, j, journal.OpenInterrupts{Session: "a"}, 10); len(rows) != 1 || len(damaged) != 0 {
		t.Errorf("interrupts of a: got %v, %+v; want one, and no damage", rows, damaged)
	}
}

// Who reads a list page by page is told of each damaged row once, and gets the others.
func testDamagedEach(t *testing.T, engine Engine) {
	j, _ := damagedStore(t, engine)
	var told []string
	damaged := func(d journal.Damage) { told = append(told, d.Session) }
	var got []string
	for row, err := range journal.Each[journal.OpenWorkRow](context.Background(), j, journal.OpenWork{}, damaged) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row.Session)
	}
	wantList(t, "rows", got, "a", "c")
	wantList(t, "damaged", told, "b")
}

// What a batch writes over an unreadable row is whole, and nothing of that row is left in
// the lists.
func testDamagedRowsAreWritten(t *testing.T, engine Engine) {
	j, stories := damagedStore(t, engine)
	b := stories["b"]
	_, err := j.Append(context.Background(), journal.Batch{
		Session: "b", ExpectHead: b.Head, Changes: []journal.Change{put(sessionRow("b", "idle"))},
		Conditions: []journal.Condition{journal.IfAbsent{Key: journal.InterruptKey("ib")}},
	})
	wantError(t, "condition on an unreadable row", err, journal.ErrDamaged)

	batch := b.Batch(b.Facts(1)...)
	batch.Changes = []journal.Change{
		put(sessionRow("b", "idle")), remove(journal.OpenWorkKey("b")), remove(journal.TimerKey("b", "t")),
		put(journal.InterruptRow{ID: "ib", Session: "b", Sequence: 1, Value: []byte("approve")}),
		put(journal.LeaseRow{Executor: "eb"}), put(journal.TokenRow{Executor: "e", ID: "tb", Session: "b"}),
		remove(journal.AgentKey("ab")), put(journal.MaterialRow{Session: "b", Space: "m", ID: "mb"}),
		put(journal.DecisionRow{ID: "xb", Session: "b"}), put(workflowRow("b", 1)),
	}
	mustAppend(t, j, batch)
	for _, l := range listsOf(1) {
		if rows, damaged := readList(t, j, l.list, 1); len(damaged) != 0 {
			t.Errorf("%T: got %v and %+v damaged, want none", l.list, rows, damaged)
		}
	}
	if rows, _ := readList(t, j, journal.OpenInterrupts{}, 10); len(rows) != 2 {
		t.Errorf("open interrupts: got %v, want those of a and c", rows)
	}
	row, err := journal.Get[journal.InterruptRow](context.Background(), j, journal.InterruptKey("ib"))
	if err != nil || row.Open || row.Offset != 2 {
		t.Errorf("resolved: got %+v, %v; want it closed, of offset 2", row, err)
	}
	wantVerified(t, j)
}

// Verify names each unreadable row, with its session where the key tells it, and nobody
// else's.
func testDamagedRowsAreFound(t *testing.T, engine Engine) {
	j, _ := damagedStore(t, engine)
	report, err := j.Verify(context.Background(), journal.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range listsOf(1) {
		key := l.row("b").Key()
		found := slices.ContainsFunc(report.Problems, func(p journal.Problem) bool {
			return p.Row == key.String() && (p.Session == "b" || !l.whose)
		})
		if !found {
			t.Errorf("verify: got %+v, want %s of b", report.Problems, key)
		}
	}
	for _, p := range report.Problems {
		if p.Session != "b" && p.Session != "" {
			t.Errorf("verify: got %+v, want problems of b alone", p)
		}
	}
}

// A deleted session leaves nothing in the lists that everybody reads.
func testDamagedRowsAreDeleted(t *testing.T, engine Engine) {
	j, stories := damagedStore(t, engine)
	if err := j.Delete(context.Background(), journal.Deletion{Session: "b", ExpectHead: stories["b"].Head}); err != nil {
		t.Fatal(err)
	}
	for _, l := range listsOf(1) {
		rows, damaged := readList(t, j, l.list, 1)
		if l.whose && (len(rows) != 2 || len(damaged) != 0) {
			t.Errorf("%T: got %v and %+v damaged; want those of a and c, and no damage", l.list, rows, damaged)
		}
	}
}

// A workflow whose row was unreadable keeps its beginning.
func testDamagedWorkflow(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	mustAppend(t, j, s.Batch(s.Facts(2)...))
	begins := s.Batch(s.Fact(Place{Workflow: "w"}))
	begins.Changes = []journal.Change{put(journal.WorkflowRow{ID: "w", Session: "s", First: 3, State: "running"})}
	mustAppend(t, j, begins)
	engine.Damage(t, j, journal.WorkflowKey("w"))
	mustAppend(t, j, s.Batch(s.Facts(1)...))
	ends := s.Batch(s.Fact(Place{Workflow: "w"}))
	ends.Changes = []journal.Change{put(journal.WorkflowRow{ID: "w", Session: "s", Last: 5, State: "finished"})}
	mustAppend(t, j, ends)
	row, err := journal.Get[journal.WorkflowRow](context.Background(), j, journal.WorkflowKey("w"))
	if err != nil || row.First != 3 || row.Last != 5 {
		t.Errorf("got %+v, %v; want it from 3 to 5", row, err)
	}
}
