package index_test

import (
	"context"
	"fmt"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
	"github.com/mahati-host/mahati/narad/session/sessiontest"
)

// shelf appends facts with the rows that they change, one a batch.
type shelf struct {
	t       *testing.T
	journal *journal.Memory
	state   *session.State // as the owner has it
	whole   *session.State
	desk    *desk.State
	list    []narad.Authority
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	j, err := journal.NewMemory(journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return &shelf{
		t: t, journal: j, desk: &desk.State{}, state: session.New(session.Options{SessionID: "s", NoDisplay: true}),
		whole: session.New(session.Options{SessionID: "s"}),
	}
}

// add appends a fact, and reports whether it may stand there.
func (s *shelf) add(f narad.Authority) bool {
	s.t.Helper()
	s.state.Number(f)
	e := f.Envelope()
	e.EventID, e.Timestamp = fmt.Sprintf("%d.aaaaaaaa", e.SessionSequence), fmt.Sprintf("2026-01-02T03:04:05.%03dZ", e.SessionSequence%1000)
	data, err := narad.Encode(f)
	if err != nil || s.state.Check(f).Kind != session.Applied || s.whole.Check(f).Kind != session.Applied {
		return false
	}
	_, err = s.journal.Append(context.Background(), journal.Batch{
		Session: "s", ExpectHead: uint64(s.state.Last()), Changes: index.Changes(s.state, s.desk, f),
		Facts: []journal.Fact{{
			EventID: e.EventID, Bytes: data, RootRunID: e.RootRunID, RunSequence: uint64(e.Sequence),
			WorkflowID: e.WorkflowID, WorkflowSequence: uint64(e.WorkflowSequence),
		}},
	})
	if err != nil {
		s.t.Fatalf("append %s: %v", data, err)
	}
	s.state.Admit(f)
	s.whole.Admit(f)
	s.desk.Apply(f)
	s.list = append(s.list, f)
	return true
}

func (s *shelf) must(list ...narad.Authority) {
	s.t.Helper()
	for _, f := range list {
		if !s.add(f) {
			s.t.Fatalf("%s is not allowed here", f.Type())
		}
	}
}

func row[R journal.Row](s *shelf, key journal.Key) (R, bool) {
	r, err := journal.Get[R](context.Background(), s.journal, key)
	return r, err == nil
}

// verify derives the rows again and compares.
func (s *shelf) verify() {
	s.t.Helper()
	report, err := s.journal.Verify(context.Background(), journal.VerifyOptions{Derive: index.Deriver(nil)})
	if err != nil || !report.OK() {
		s.t.Errorf("verify: %v %+v", err, report.Problems)
	}
}

// matches holds the rows to what the whole state says: a second opinion.
func (s *shelf) matches() {
	s.t.Helper()
	snapshot := s.whole.Snapshot()
	for id, run := range snapshot.Runs {
		got, _ := row[journal.RunRow](s, journal.RunKey(id))
		state := string(run.State)
		if run.State == session.Paused { // a pause is no change of the row
			state = string(session.Running)
		}
		if got.State != state || got.Root != run.RootRunID || (got.Last > 0) != run.State.Ended() {
			s.t.Errorf("run %s: got %+v, the state says %+v", id, got, run)
		}
	}
	for id, i := range snapshot.Interrupts {
		got, _ := row[journal.InterruptRow](s, journal.InterruptKey(id))
		v := index.Read[index.Interrupt](got.Value)
		if got.Open != i.Open || v.Decision != i.Decision || v.Kind != i.Kind {
			s.t.Errorf("interrupt %s: got %+v %+v, the state says %+v", id, got, v, i)
		}
		if _, timed := row[journal.TimerRow](s, journal.TimerKey("s", index.TimerID(id))); timed != (i.Open && i.ExpiresAt != "") {
			s.t.Errorf("interrupt %s until %q, open %v: timer %v", id, i.ExpiresAt, i.Open, timed)
		}
	}
	for _, m := range snapshot.Messages {
		if _, known := row[journal.AliasRow](s, index.Recorded("s", m.MessageID)); !known {
			s.t.Errorf("message %s has no row", m.MessageID)
		}
	}
	s.matchesWork()
}

func (s *shelf) matchesWork() {
	s.t.Helper()
	active := s.whole.ActiveRootRunID() != "" || s.whole.ActiveWorkflowID() != ""
	work, known := row[journal.OpenWorkRow](s, journal.OpenWorkKey("s"))
	if known != (active || len(s.desk.Queue) > 0) {
		s.t.Errorf("open work %v, active %v with %d waiting", known, active, len(s.desk.Queue))
	}
	want := index.Open{RootRunID: s.whole.ActiveRootRunID(), WorkflowID: s.whole.ActiveWorkflowID()}
	if got := index.Read[index.Open](work.Value); known && got != want {
		s.t.Errorf("open work: got %+v, want %+v", got, want)
	}
	catalogue, known := row[journal.SessionRow](s, journal.SessionKey("s"))
	state := index.Idle
	switch {
	case s.desk.Archived:
		state = index.Archived
	case active:
		state = index.Running
	case len(s.desk.Queue) > 0:
		state = index.Waiting
	}
	if known && catalogue.State != state {
		s.t.Errorf("the session is %s, want %s", catalogue.State, state)
	}
	if again := index.CurrentOpen(s.state); again != want {
		s.t.Errorf("open work by the state: got %+v, want %+v", again, want)
	}
	if again := index.CurrentSession("s", s.state, s.desk); known && !journal.EqualRows(again, catalogue) {
		s.t.Errorf("catalogue by the state: got %+v, want %+v", again, catalogue)
	}
}

// Derived again from the facts, the rows of any trace are those that were written with
// it, and they say what the whole state says.
func TestRowsOfAnyTrace(t *testing.T) {
	kept := 0
	for seed := range int64(60) {
		s := newShelf(t)
		rng := rand.New(rand.NewSource(seed))
		s.must(facts.Session(facts.SessionCreated, facts.Created{WorkspaceID: "w", RequiredProfiles: []string{}}))
		for _, line := range sessiontest.Trace(rng, 150) {
			rec, err := narad.Decode(line)
			f, ok := rec.(narad.Authority)
			if err != nil || !ok || f.Envelope().Projection() {
				continue
			}
			if s.add(f) {
				kept++
			}
			if rng.Intn(6) == 0 {
				s.add(ours(rng))
			}
		}
		s.verify()
		s.matches()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if kept < 2000 {
		t.Errorf("only %d facts of the traces were used", kept)
	}
}

// ours is a fact of Mahati's own.
func ours(rng *rand.Rand) narad.Authority {
	run := fmt.Sprint("q", rng.Intn(4))
	switch rng.Intn(4) {
	case 0:
		return facts.Session(facts.InputWithdrawn, facts.Withdrawn{MessageID: "m" + run, RunID: run})
	case 1:
		return facts.Session(facts.QueueReleased, facts.Released{})
	default:
		return facts.Session(facts.InputQueued, facts.Queued{MessageID: "m" + run, RunID: run, Kind: facts.FollowUp, Content: "x"})
	}
}

func in(run string) narad.Event { return narad.Event{RootRunID: "root", RunID: run} }

// The story of one session, and its catalogue row at each step.
func TestCatalogue(t *testing.T) {
	s := newShelf(t)
	queued := facts.Queued{MessageID: "m", RunID: "next", Kind: facts.FollowUp, Content: "x"}
	for _, step := range []struct {
		fact narad.Authority
		want string
	}{
		{facts.Session(facts.SessionCreated, facts.Created{WorkspaceID: "w", Title: "t", Agent: "a", Cwd: "/x", ClientExecutorID: "e", RequiredProfiles: []string{"p"}}), index.Idle},
		{facts.Session(facts.InputQueued, queued), index.Waiting},
		{facts.Session(facts.InputWithdrawn, facts.Withdrawn{MessageID: "m", RunID: "next"}), index.Idle},
		{facts.Session(facts.SessionArchived, facts.Archived{}), index.Archived},
		{facts.Session(facts.SessionRestored, facts.Archived{}), index.Idle},
		{&narad.RunStarted{Event: in("root")}, index.Running},
		{facts.Session(facts.InputQueued, queued), index.Running},
		{&narad.RunStarted{Event: in("child"), ParentRunID: "root"}, index.Running},
		{&narad.RunFinished{Event: in("child")}, index.Running},
		{&narad.RunError{Event: in("root"), Code: "c", Message: "m"}, index.Waiting},
	} {
		s.must(step.fact)
		got, _ := row[journal.SessionRow](s, journal.SessionKey("s"))
		if got.State != step.want || got.Workspace != "w" {
			t.Errorf("after %s: got %+v, want %s", step.fact.Type(), got, step.want)
		}
		v := index.Read[index.Session](got.Value)
		if v.Title != "t" || v.Agent != "a" || v.Cwd != "/x" || v.ClientExecutorID != "e" || v.CreatedAt == "" {
			t.Errorf("after %s: got %+v", step.fact.Type(), v)
		}
	}
	s.verify()
	s.matches()
}

// R16: the id of a run that never started is known, as withdrawn.
func TestWithdrawnRun(t *testing.T) {
	s := newShelf(t)
	s.must(
		facts.Session(facts.SessionCreated, facts.Created{WorkspaceID: "w"}),
		facts.Session(facts.InputQueued, facts.Queued{MessageID: "m", RunID: "r", Content: "x"}),
		facts.Session(facts.InputWithdrawn, facts.Withdrawn{MessageID: "m", RunID: "r"}),
	)
	got, _ := row[journal.RunRow](s, journal.RunKey("r"))
	if diff := cmp.Diff(journal.RunRow{ID: "r", Session: "s", Root: "r", First: 3, Last: 3, State: index.Withdrawn}, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if _, known := row[journal.AliasRow](s, index.Recorded("s", "m")); known {
		t.Error("a message that was never recorded has a row")
	}
}

// R12: what was decided for each member of a pack is kept.
func TestMembersOfAPack(t *testing.T) {
	s := newShelf(t)
	s.must(
		facts.Session(facts.SessionCreated, facts.Created{WorkspaceID: "w"}),
		&narad.RunStarted{Event: in("root")},
		&narad.InterruptRequested{Event: in("root"), InterruptID: "i", WaitID: "w", Kind: "approval", Actions: []string{"approve", "deny"},
			Input: narad.Raw(`{"members":[{"requestId":"a"},{"requestId":"b"}]}`), ExpiresAt: "2026-01-02T04:00:00Z"},
		&narad.RunPaused{Event: in("root"), WaitID: "w", InterruptID: "i", Reason: "interrupt", ResumeMode: narad.ResumeCommand},
	)
	s.matches()
	s.must(&narad.InterruptResolved{Event: in("root"), InterruptID: "i", WaitID: "w", Decision: "deny", Members: []narad.MemberDecision{
		{RequestID: "a", Decision: "approve"}, {RequestID: "b", Decision: "deny"},
	}})
	got, _ := row[journal.InterruptRow](s, journal.InterruptKey("i"))
	v := index.Read[index.Interrupt](got.Value)
	if diff := cmp.Diff(map[string]string{"a": "approve", "b": "deny"}, v.Members); diff != "" || v.SessionSequence != 5 {
		t.Errorf("got %+v: %s", v, diff)
	}
	s.matches()
	s.verify()
}

// Text that streams touches no row.
func TestDeltasTouchNoRow(t *testing.T) {
	s := newShelf(t)
	s.must(facts.Session(facts.SessionCreated, facts.Created{WorkspaceID: "w"}), &narad.RunStarted{Event: in("root")},
		&narad.MessageTextStarted{Event: in("root"), MessageID: "m", Role: narad.RoleAssistant, MessageScope: narad.ScopeSession})
	delta := &narad.MessageTextDelta{Event: in("root"), MessageID: "m", Delta: "x"}
	s.state.Number(delta)
	if changes := index.Changes(s.state, s.desk, delta); len(changes) != 0 {
		t.Errorf("got %+v, want none", changes)
	}
}

// Verify tells rows that the facts do not: the derivation can fail.
func TestDeriverRefuses(t *testing.T) {
	s := newShelf(t)
	s.must(facts.Session(facts.SessionCreated, facts.Created{WorkspaceID: "w"}))
	_, err := s.journal.Append(t.Context(), journal.Batch{Session: "s", ExpectHead: 1, Changes: []journal.Change{
		journal.Put{Row: journal.OpenWorkRow{Session: "s"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	report, err := s.journal.Verify(t.Context(), journal.VerifyOptions{Derive: index.Deriver(nil)})
	if err != nil || report.ProblemCount != 1 || report.Problems[0].Code != journal.ProblemDerived {
		t.Errorf("a row too many: %v %+v", err, report)
	}
	derive := index.Deriver(nil)("s")
	for name, bytes := range map[string]string{
		"no JSON": `{`, "no fact": `{"type":"server.heartbeat","protocolVersion":"narad/v1"}`,
		"out of place": `{"type":"run.finished","protocolVersion":"narad/v1","eventId":"1.aaaaaaaa","timestamp":"2026-01-02T03:04:05Z","sessionId":"s","sessionSequence":1,"rootRunId":"r","runId":"r","sequence":1}`,
	} {
		if _, err := derive(journal.Record{Fact: journal.Fact{Bytes: []byte(bytes)}}); err == nil {
			t.Errorf("%s: derived rows", name)
		}
	}
}

// R16: a run that waits is found by its id alone, unless a host before the headless
// contract queued it.
func TestQueuedRunsHaveRows(t *testing.T) {
	s := newShelf(t)
	s.must(facts.Session(facts.SessionCreated, facts.Created{WorkspaceID: "w"}))
	mapped := facts.Session(facts.InputQueued, facts.Queued{MessageID: "m1", RunID: "mapped", Kind: facts.Start, Content: "x"})
	facts.SetHarness(&mapped.Event, 1)
	s.must(mapped, facts.Session(facts.InputQueued, facts.Queued{MessageID: "m2", RunID: "old", Kind: facts.Start, Content: "x"}))
	got, known := row[journal.RunRow](s, journal.RunKey("mapped"))
	if want := (journal.RunRow{ID: "mapped", Session: "s", Root: "mapped", First: 2, State: index.Queued}); !known || !cmp.Equal(got, want) {
		t.Errorf("got %+v %v, want %+v", got, known, want)
	}
	if got, known := row[journal.RunRow](s, journal.RunKey("old")); known {
		t.Errorf("the other has a row: %+v", got)
	}
	s.verify()
}
