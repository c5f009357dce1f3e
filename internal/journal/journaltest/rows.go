package journaltest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// rowText reads a row as text, or its error.
func rowText(j journal.Index, key journal.Key) string {
	row, err := j.Row(context.Background(), key)
	if err != nil {
		return errorName(err)
	}
	return fmt.Sprintf("%T %+v", row, row)
}

func testRows(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	_, batches := richBatches()
	mustAppend(t, j, batches[0])
	for _, change := range batches[0].Changes {
		want := change.(journal.Put).Row
		if interrupt, ok := want.(journal.InterruptRow); ok {
			interrupt.Offset = 3
			want = interrupt
		}
		if got := rowText(j, want.Key()); got != fmt.Sprintf("%T %+v", want, want) {
			t.Errorf("row: got %s, want %T %+v", got, want, want)
		}
	}
	mustAppend(t, j, batches[1])
	gone := "error: " + journal.ErrNotFound.Error()
	for _, key := range []journal.Key{journal.TimerKey("rich", "expiry"), journal.OpenWorkKey("rich"), journal.RunKey("none")} {
		if got := rowText(j, key); got != gone {
			t.Errorf("row %s: got %s, want it gone", key, got)
		}
	}
	s := NewStory("last")
	mustAppend(t, j, s.Rows(put(sessionRow("last", "a")), remove(journal.SessionKey("last")), put(sessionRow("last", "b"))))
	if got, err := journal.Get[journal.SessionRow](context.Background(), j, journal.SessionKey("last")); err != nil || got.State != "b" {
		t.Errorf("put, remove, put in one batch: got %+v, %v; want the last", got, err)
	}
	_, err := journal.Get[journal.RunRow](context.Background(), j, journal.SessionKey("last"))
	wantError(t, "row read as another type", err, journal.ErrInvalid)
}

// A workflow's row is an interval of its session, whoever writes it last.
func testWorkflowKeepsItsBeginning(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	s, other := NewStory("s"), NewStory("other")
	begins := func(id string, first uint64) journal.Change {
		return put(journal.WorkflowRow{ID: id, Session: "s", First: first, State: "running"})
	}
	ends := func(id, session string) journal.Change {
		return put(journal.WorkflowRow{ID: id, Session: session, Last: 9, State: "finished"})
	}
	mustAppend(t, j, s.Rows(begins("apart", 3)))
	mustAppend(t, j, s.Rows(ends("apart", "s")))
	mustAppend(t, j, s.Rows(begins("at once", 4), ends("at once", "s")))
	mustAppend(t, j, s.Rows(begins("again", 5), begins("again", 6), remove(journal.WorkflowKey("none")), ends("none", "s")))
	mustAppend(t, j, s.Rows(begins("elsewhere", 7)))
	mustAppend(t, j, other.Rows(ends("elsewhere", "other")))
	for id, want := range map[string]uint64{"apart": 3, "at once": 4, "again": 6, "none": 0, "elsewhere": 0} {
		row, err := journal.Get[journal.WorkflowRow](context.Background(), j, journal.WorkflowKey(id))
		if err != nil || row.First != want {
			t.Errorf("workflow %q: got %+v, %v; want its first sequence to be %d", id, row, err, want)
		}
	}
}

func testRowOwnership(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	a, b := NewStory("a"), NewStory("b")
	mustAppend(t, j, a.Rows(put(timerRow("a", "x", time.Second)), put(sessionRow("a", "active"))))
	refuse := func(what string, change journal.Change) {
		t.Helper()
		_, err := j.Append(context.Background(), b.Rows(change))
		wantError(t, what, err, journal.ErrInvalid)
	}
	refuse("put", put(timerRow("a", "x", time.Minute)))
	refuse("remove", remove(journal.TimerKey("a", "x")))
	refuse("put of a token", put(journal.TokenRow{Executor: "e", ID: "t", Session: "a"}))
	mustAppend(t, j, b.Rows(put(journal.AgentRow{ID: "agent", Session: "a"}), put(timerRow("", "x", time.Second))))
}

func list[R journal.Row](t testing.TB, j journal.Index, l journal.List, name func(R) string) []string {
	t.Helper()
	var names []string
	damaged := func(d journal.Damage) { t.Errorf("list %+v: %v", l, d.Err()) }
	for row, err := range journal.Each[R](context.Background(), j, l, damaged) {
		if err != nil {
			t.Fatalf("list %+v: %v", l, err)
		}
		names = append(names, name(row))
	}
	return names
}

func wantList(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func testLists(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	for i, session := range []string{"zeta", "alpha", "mid"} {
		s := NewStory(session)
		mustAppend(t, j, s.Rows(
			put(sessionRow(session, []string{"active", "archived"}[i%2])),
			put(journal.OpenWorkRow{Session: session}),
			put(journal.LeaseRow{Executor: "e" + session}),
			put(journal.TokenRow{Executor: "laptop", ID: "t" + session, Session: session}),
			put(journal.TokenRow{Executor: "laptop2", ID: "other", Session: session}),
			put(journal.AgentRow{ID: session}),
			put(journal.WorkflowRow{ID: fmt.Sprint("w", i), Session: session, First: 1, State: []string{"running", "finished"}[i%2]}),
			put(journal.MaterialRow{Session: session, Space: "b", ID: "1" + session, Digest: "d"}),
			put(journal.MaterialRow{Session: session, Space: "a", ID: "2" + session}),
			put(journal.DecisionRow{ID: fmt.Sprintf("%d%s", 9-i, session), Session: session, Decision: []string{"allow", "deny"}[i%2]}),
			put(journal.DecisionRow{Of: session, ID: "1" + session, Session: session, Decision: "allow"}),
			put(journal.DecisionRow{Of: session, ID: "2" + session, Session: session, Decision: "expired"}),
		))
	}
	session := func(r journal.SessionRow) string { return r.Session }
	wantList(t, "sessions", list(t, j, journal.Sessions{}, session), "zeta", "alpha", "mid")
	wantList(t, "newest first", list(t, j, journal.Sessions{NewestFirst: true}, session), "mid", "alpha", "zeta")
	wantList(t, "by state", list(t, j, journal.Sessions{State: "active"}, session), "zeta", "mid")
	wantList(t, "by workspace", list(t, j, journal.Sessions{Workspace: "other"}, session))
	wantList(t, "open work", list(t, j, journal.OpenWork{}, func(r journal.OpenWorkRow) string { return r.Session }), "zeta", "alpha", "mid")
	wantList(t, "leases", list(t, j, journal.Leases{}, func(r journal.LeaseRow) string { return r.Executor }), "ealpha", "emid", "ezeta")
	wantList(t, "tokens", list(t, j, journal.Tokens{Executor: "laptop"}, func(r journal.TokenRow) string { return r.ID }), "talpha", "tmid", "tzeta")
	wantList(t, "agents", list(t, j, journal.Agents{}, func(r journal.AgentRow) string { return r.ID }), "alpha", "mid", "zeta")
	material := func(r journal.MaterialRow) string { return r.Space + r.ID }
	wantList(t, "materials", list(t, j, journal.Materials{}, material), "a2zeta", "b1zeta", "a2alpha", "b1alpha", "a2mid", "b1mid")
	wantList(t, "materials of one", list(t, j, journal.Materials{Session: "alpha", Space: "b"}, material), "b1alpha")
	wantList(t, "materials of none", list(t, j, journal.Materials{Session: "none", Space: "b"}, material))
	decision := func(r journal.DecisionRow) string { return r.ID }
	wantList(t, "decisions", list(t, j, journal.Decisions{}, decision), "7mid", "8alpha", "9zeta")
	wantList(t, "decisions of a kind", list(t, j, journal.Decisions{Decision: "allow"}, decision), "7mid", "9zeta")
	wantList(t, "decisions of one", list(t, j, journal.Decisions{Session: "mid"}, decision), "1mid", "2mid")
	wantList(t, "decisions of a kind of one", list(t, j, journal.Decisions{Session: "mid", Decision: "allow"}, decision), "1mid")
	workflow := func(r journal.WorkflowRow) string { return r.ID }
	wantList(t, "workflows", list(t, j, journal.Workflows{}, workflow), "w2", "w1", "w0")
	wantList(t, "workflows of one", list(t, j, journal.Workflows{Session: "mid"}, workflow), "w2")
	wantList(t, "workflows in a state", list(t, j, journal.Workflows{State: "finished"}, workflow), "w1")
	wantList(t, "decisions of none", list(t, j, journal.Decisions{Session: "mi"}, decision))
	testPages(t, j)
}

// testPages goes through the catalogue one row a page, with a row added and a
// row removed on the way.
func testPages(t *testing.T, j journal.Journal) {
	read := func(l journal.List, cursor string) (string, string) {
		t.Helper()
		rows, err := j.Rows(context.Background(), l, journal.RowPage{Cursor: cursor, Limit: 1})
		if err != nil || len(rows.Rows) != 1 {
			t.Fatalf("page of %+v after %q: got %+v, %v; want one row", l, cursor, rows, err)
		}
		return rows.Rows[0].(journal.SessionRow).Session, rows.Next
	}
	first, next := read(journal.Sessions{}, "")
	zeta, late := NewStory("zeta"), NewStory("late")
	mustAppend(t, j, zeta.Rows(remove(journal.SessionKey("zeta"))))
	mustAppend(t, j, late.Rows(put(sessionRow("late", "active"))))
	second, next := read(journal.Sessions{}, next)
	third, next := read(journal.Sessions{}, next)
	fourth, next := read(journal.Sessions{}, next)
	if got := []string{first, second, third, fourth}; !slices.Equal(got, []string{"zeta", "alpha", "mid", "late"}) || next != "" {
		t.Errorf("pages: got %v, next %q", got, next)
	}
	_, err := j.Rows(context.Background(), journal.Sessions{}, journal.RowPage{Limit: -1})
	if err != nil {
		t.Errorf("negative limit: %v, want it clamped", err)
	}
}

func testTimers(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	a, b := NewStory("a"), NewStory("b")
	mustAppend(t, j, a.Rows(put(timerRow("a", "late", 3*time.Hour)), put(timerRow("a", "soon", time.Second))))
	mustAppend(t, j, b.Rows(put(timerRow("b", "soon", time.Second)), put(timerRow("b", "before 1970", -100*365*24*time.Hour))))
	mustAppend(t, j, b.Rows(put(timerRow("", "lease", time.Second)), put(timerRow("b", "soon2", time.Second))))
	due := func(after time.Duration) []string {
		return list(t, j, journal.TimersDue{Until: Start.Add(after)}, func(r journal.TimerRow) string { return r.Session + "/" + r.ID })
	}
	wantList(t, "due in a second", due(time.Second), "b/before 1970", "/lease", "a/soon", "b/soon", "b/soon2")
	wantList(t, "due a microsecond before", due(time.Second-time.Microsecond), "b/before 1970")
	mustAppend(t, j, a.Rows(put(timerRow("a", "soon", 2*time.Hour)), put(timerRow("a", "late", time.Minute))))
	mustAppend(t, j, b.Rows(remove(journal.TimerKey("b", "soon")), remove(journal.TimerKey("b", "before 1970")), remove(journal.TimerKey("b", "never set"))))
	wantList(t, "after moving two and settling two", due(24*time.Hour), "/lease", "b/soon2", "a/late", "a/soon")
	next, err := j.Rows(context.Background(), journal.TimersDue{Until: time.UnixMicro(1 << 62).UTC()}, journal.RowPage{Limit: 1})
	if err != nil || len(next.Rows) != 1 || next.Rows[0].(journal.TimerRow).ID != "lease" {
		t.Errorf("the next timer: got %+v, %v; want lease", next, err)
	}
}

func testInterrupts(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	a, b := NewStory("a"), NewStory("b")
	ask := func(s *Story, id string) {
		t.Helper()
		batch := s.Batch(s.Facts(2)...)
		batch.Changes = []journal.Change{put(journal.InterruptRow{ID: id, Session: s.Session, Sequence: s.Head, Open: true})}
		mustAppend(t, j, batch)
	}
	ask(b, "z1")
	ask(a, "y2")
	ask(b, "x3")
	ask(a, "w4")
	open := func(session string) []string {
		return list(t, j, journal.OpenInterrupts{Session: session}, func(r journal.InterruptRow) string { return r.ID })
	}
	wantList(t, "all open", open(""), "z1", "y2", "x3", "w4")
	wantList(t, "open of b", open("b"), "z1", "x3")
	wantList(t, "open of none", open("none"))
	batch := b.Batch(b.Facts(1)...)
	batch.Changes = []journal.Change{put(journal.InterruptRow{ID: "z1", Session: "b", Sequence: 2, Value: []byte("approve")})}
	mustAppend(t, j, batch)
	mustAppend(t, j, a.Rows(remove(journal.InterruptKey("w4"))))
	wantList(t, "after one was resolved and one removed", open(""), "y2", "x3")
	closed, err := journal.Get[journal.InterruptRow](context.Background(), j, journal.InterruptKey("z1"))
	if err != nil || closed.Open || closed.Offset != 2 || string(closed.Value) != "approve" {
		t.Errorf("resolved interrupt: got %+v, %v", closed, err)
	}
	_, err = j.Append(context.Background(), a.Rows(put(journal.InterruptRow{ID: "z1", Session: "a", Sequence: 2})))
	wantError(t, "interrupt of another session", err, journal.ErrInvalid)
}

func testSnapshots(t *testing.T, engine Engine) {
	ctx := context.Background()
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	mustAppend(t, j, s.Batch(s.Facts(10)...))
	get := func(at uint64) string {
		snapshot, err := j.Snapshot(ctx, "s", at)
		if err != nil {
			return errorName(err)
		}
		return fmt.Sprintf("%d %s", snapshot.Sequence, snapshot.Bytes)
	}
	save := func(sequence uint64, text string) {
		t.Helper()
		if err := j.PutSnapshot(ctx, "s", journal.Snapshot{Sequence: sequence, Bytes: []byte(text)}); err != nil {
			t.Errorf("snapshot at %d: %v", sequence, err)
		}
	}
	none := "error: " + journal.ErrNotFound.Error()
	wantText := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	wantText("before any", get(10), none)
	save(7, "seven")
	save(3, "three")
	save(7, "seven again")
	wantText("at the head", get(10), "7 seven again")
	wantText("before the newer", get(6), "3 three")
	wantText("before both", get(2), none)
	err := j.PutSnapshot(ctx, "s", journal.Snapshot{Sequence: 11})
	wantError(t, "snapshot above the head", err, journal.ErrInvalid)
	wantError(t, "snapshot of no session", j.PutSnapshot(ctx, "none", journal.Snapshot{}), journal.ErrNotFound)
	if err := j.DropSnapshots(ctx, "s", 7); err != nil {
		t.Errorf("drop: %v", err)
	}
	wantText("after the drop, older", get(6), none)
	wantText("after the drop, newer", get(9), "7 seven again")
}
