package journaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

func testDelete(t *testing.T, engine Engine) {
	ctx := context.Background()
	j := open(t, engine, journal.Options{})
	model, probes := modelOf(j), &Probes{}
	story, batches := richBatches()
	other := NewStory("other")
	appendBoth(t, j, model, probes, other.Batch(other.Facts(2)...))
	for _, batch := range batches {
		appendBoth(t, j, model, probes, batch)
	}
	appendBoth(t, j, model, probes, other.Batch(other.Facts(2)...))
	if err := j.PutSnapshot(ctx, "rich", journal.Snapshot{Sequence: 2}); err != nil {
		t.Fatal(err)
	}
	wantError(t, "deletion with an old head", j.Delete(ctx, journal.Deletion{Session: "rich", ExpectHead: 1}), journal.ErrConflict)
	wantError(t, "deletion of nothing", j.Delete(ctx, journal.Deletion{Session: "none"}), journal.ErrNotFound)
	compareText(t, "after refused deletions", Everything(j, probes), Everything(model, probes))

	deletion := journal.Deletion{Session: "rich", ExpectHead: story.Head}
	if err := j.Delete(ctx, deletion); err != nil {
		t.Fatalf("delete: %v", err)
	}
	if err := model.Delete(deletion); err != nil {
		t.Fatal(err)
	}
	wantDeleted(t, j, story)
	compareText(t, "after the deletion", Everything(j, probes), Everything(model, probes))
	appendBoth(t, j, model, probes, other.Batch(other.Facts(1)...))
	compareText(t, "after the next append", Everything(j, probes), Everything(model, probes))
	wantVerified(t, j)
}

func wantDeleted(t *testing.T, j journal.Journal, story *Story) {
	t.Helper()
	ctx := context.Background()
	fresh := NewStory(story.Session)
	calls := map[string]func() error{
		"append":      func() error { _, err := j.Append(ctx, fresh.Batch(fresh.Facts(1)...)); return err },
		"term":        func() error { _, err := j.AcquireTerm(ctx, story.Session); return err },
		"delete":      func() error { return j.Delete(ctx, journal.Deletion{Session: story.Session}) },
		"head":        func() error { _, err := j.Head(ctx, story.Session); return err },
		"find":        func() error { _, err := j.Find(ctx, story.Session, "1.x"); return err },
		"snapshot":    func() error { _, err := j.Snapshot(ctx, story.Session, 9); return err },
		"putSnapshot": func() error { return j.PutSnapshot(ctx, story.Session, journal.Snapshot{}) },
		"catalogue":   func() error { _, err := j.Row(ctx, journal.SessionKey(story.Session)); return err },
	}
	for name, call := range calls {
		wantError(t, name+" of a deleted session", call(), journal.ErrDeleted)
	}
}

func wantVerified(t testing.TB, j journal.Keeper) {
	t.Helper()
	report, err := j.Verify(context.Background(), journal.VerifyOptions{})
	if err != nil || !report.OK() {
		t.Errorf("verify: %v, %+v", err, report)
	}
}

func testSpace(t *testing.T, engine Engine) {
	const reserve, second = 1 << 30, time.Second
	now, free := Start, uint64(reserve)
	j := open(t, engine, journal.Options{
		Now: func() time.Time { return now },
		Free: func() (uint64, error) {
			if free == 0 {
				return 0, errors.New("not to be asked")
			}
			return free, nil
		},
	})
	s := NewStory("s")
	try := func(closing bool) error {
		batch := s.Batch(s.Facts(1)...)
		batch.Closing = closing
		_, err := j.Append(context.Background(), batch)
		if err != nil {
			s.Head--
		}
		return err
	}
	tests := []struct {
		free              uint64
		ordinary, closing error
		level             journal.SpaceLevel
	}{
		{reserve, nil, nil, journal.SpaceOpen},
		{reserve - 1, journal.ErrStorageFull, nil, journal.SpaceClosing},
		{reserve - journal.ClosingShare, journal.ErrStorageFull, nil, journal.SpaceClosing},
		{reserve - journal.ClosingShare - 1, journal.ErrStorageFull, journal.ErrStorageFull, journal.SpaceNone},
		{reserve, nil, nil, journal.SpaceOpen},
	}
	for _, test := range tests {
		free, now = test.free, now.Add(second)
		what := fmt.Sprintf("%d bytes free", free)
		wantError(t, what+", ordinary", try(false), test.ordinary)
		wantError(t, what+", closing", try(true), test.closing)
		wantError(t, what+", Admit", j.Admit(false), test.ordinary)
		wantError(t, what+", Admit closing", j.Admit(true), test.closing)
		if got := j.Space(); got.Level != test.level || got.Free != free || got.Reserve != reserve {
			t.Errorf("%s: space is %+v, want level %v", what, got, test.level)
		}
		if _, err := j.Head(context.Background(), "s"); err != nil {
			t.Errorf("%s: reading gives %v", what, err)
		}
	}
	free = reserve - 1
	if err := try(false); err != nil {
		t.Errorf("within a second of the last look: %v, want it accepted", err)
	}
	for range 140 { // 67 MiB without the clock moving
		if err := try(false); err != nil {
			wantError(t, "after 64 MiB", err, journal.ErrStorageFull)
			return
		}
		big := s.Batch(s.Fact(Place{Size: 500_000}))
		if _, err := j.Append(context.Background(), big); err != nil {
			wantError(t, "after 64 MiB", err, journal.ErrStorageFull)
			return
		}
	}
	t.Error("67 MiB were written without a look at the free space")
}

func testSpaceAtOpen(t *testing.T, engine Engine) {
	free := uint64(journal.DefaultReserve - journal.ClosingShare - 1)
	openStore := engine.New(t)
	j, err := openStore(journal.Options{Free: func() (uint64, error) { return free, nil }})
	if err == nil {
		closeJournal(t, j)
	}
	wantError(t, "open below the second line", err, journal.ErrStorageFull)
	var full *journal.StorageFullError
	if !errors.As(err, &full) || full.Path == "" || full.Free != free || full.Needed != free+1 {
		t.Errorf("got %+v, want path, %d free and %d needed", full, free, free+1)
	}
	free++
	j = reopen(t, openStore, journal.Options{Free: func() (uint64, error) { return free, nil }})
	if level := j.Space().Level; level != journal.SpaceClosing {
		t.Errorf("between the lines: level %v, want %v", level, journal.SpaceClosing)
	}
}

func testVerify(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	_, batches := richBatches()
	for _, batch := range batches {
		mustAppend(t, j, batch)
	}
	var last journal.VerifyProgress
	report, err := j.Verify(context.Background(), journal.VerifyOptions{Progress: func(p journal.VerifyProgress) { last = p }})
	if err != nil || !report.OK() {
		t.Fatalf("verify: %v, %+v", err, report)
	}
	if report.Sessions != 1 || report.Facts != 4 || report.Rows != 12 || report.LastOffset != 4 ||
		report.LastEvent != j.Durable().Event || report.Epoch != j.Identity().Epoch {
		t.Errorf("report of 4 facts and 12 rows: %+v", report)
	}
	if last.Facts != 4 || last.Sessions != 1 || last.Bytes == 0 {
		t.Errorf("last progress: %+v", last)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = j.Verify(ctx, journal.VerifyOptions{})
	wantError(t, "verify with a cancelled context", err, context.Canceled)
}

func testVerifyDerived(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	_, batches := richBatches()
	for _, batch := range batches {
		mustAppend(t, j, batch)
	}
	// derive repeats what the batches wrote, as internal/index would; tamper
	// changes it.
	derive := func(tamper func(uint64, []journal.Change) []journal.Change) journal.VerifyOptions {
		return journal.VerifyOptions{Derive: func(session string) func(journal.Record) (journal.Derived, error) {
			return func(r journal.Record) (journal.Derived, error) {
				changes := map[uint64][]journal.Change{3: batches[0].Changes, 4: batches[1].Changes}[r.Sequence]
				return journal.Derived{Changes: tamper(r.Sequence, slices.Clone(changes))}, nil
			}
		}}
	}
	same := func(_ uint64, changes []journal.Change) []journal.Change { return changes }
	report, err := j.Verify(context.Background(), derive(same))
	if err != nil || !report.OK() {
		t.Fatalf("verify with the right derivation: %v, %+v", err, report)
	}
	tests := map[string]func(uint64, []journal.Change) []journal.Change{
		"a row is missing": func(n uint64, c []journal.Change) []journal.Change {
			return append(c, put(journal.RunRow{ID: "another", Session: "rich"}))
		},
		"a row differs": func(n uint64, c []journal.Change) []journal.Change {
			return append(c, put(sessionRow("rich", "odd")))
		},
		"a row too many": func(n uint64, c []journal.Change) []journal.Change {
			return append(c, remove(journal.WorkflowKey("w1")))
		},
	}
	for name, tamper := range tests {
		report, err := j.Verify(context.Background(), derive(tamper))
		if err != nil || report.ProblemCount != 1 || report.Problems[0].Code != journal.ProblemDerived {
			t.Errorf("%s: got %v, %+v; want one problem of derived rows", name, err, report)
		}
	}
}

func testReopen(t *testing.T, engine Engine) {
	openStore := engine.New(t)
	j := reopen(t, openStore, journal.Options{})
	model, probes := modelOf(j), &Probes{}
	story, batches := richBatches()
	for _, batch := range batches {
		appendBoth(t, j, model, probes, batch)
	}
	gone := NewStory("gone")
	appendBoth(t, j, model, probes, gone.Batch(gone.Facts(3)...))
	for _, d := range []func(journal.Deletion) error{
		func(d journal.Deletion) error { return j.Delete(context.Background(), d) }, model.Delete,
	} {
		if err := d(journal.Deletion{Session: "gone", ExpectHead: 3}); err != nil {
			t.Fatal(err)
		}
	}
	term, err := j.AcquireTerm(context.Background(), "rich")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		identity := j.Identity()
		closeJournal(t, j)
		j = reopen(t, openStore, journal.Options{Now: func() time.Time { return time.Now().Add(time.Hour) }})
		if j.Identity() != identity {
			t.Errorf("identity after reopening: got %+v, want %+v", j.Identity(), identity)
		}
		compareText(t, fmt.Sprintf("after reopening %d times", n+1), Everything(j, probes), Everything(model, probes))
		appendBoth(t, j, model, probes, story.Batch(
			story.Fact(Place{Run: "r1", Workflow: "w1", Log: "r1", Logs: 2, Events: 1}), story.Fact(Place{})))
		fresh := NewStory(fmt.Sprintf("fresh%d", n))
		batch := fresh.Batch(fresh.Facts(1)...)
		batch.Changes = []journal.Change{put(sessionRow(fresh.Session, "active"))}
		appendBoth(t, j, model, probes, batch)
		wantDeleted(t, j, gone)
		wantVerified(t, j)
	}
	if fresh, err := j.AcquireTerm(context.Background(), "rich"); err != nil || fresh == term {
		t.Errorf("term after reopening: got %d, %v; want another than %d", fresh, err, term)
	}
}

// testReopenAfterStage breaks a store at each stage. What was acknowledged is
// there afterwards; the batch that was under way is there whole or not at all.
func testReopenAfterStage(t *testing.T, engine Engine) {
	for _, stage := range journal.Stages[1:] {
		openStore := engine.New(t)
		fail := false
		j := reopen(t, openStore, journal.Options{Fault: func(s journal.Stage, _ journal.Group) error {
			if fail && s == stage {
				return errFault
			}
			return nil
		}})
		model, probes := modelOf(j), &Probes{}
		_, batches := richBatches()
		appendBoth(t, j, model, probes, batches[0])
		fail = true
		_, err := j.Append(context.Background(), batches[1])
		wantError(t, "append at "+stage.String(), err, journal.ErrBroken)
		_ = j.Close()
		j = reopen(t, openStore, journal.Options{})
		probes.Add(batches[1])
		without := Everything(model, probes)
		if _, err := model.Append(batches[1]); err != nil {
			t.Fatal(err)
		}
		if got := Everything(j, probes); got != without {
			compareText(t, "reopened after "+stage.String(), got, Everything(model, probes))
		}
		wantVerified(t, j)
	}
}
