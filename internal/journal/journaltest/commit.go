package journaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

var errFault = errors.New("fault of a test")

// testCommitOrder reads the order of a commit back as text.
func testCommitOrder(t *testing.T, engine Engine) {
	var log transcript
	var j journal.Journal
	visible := func() string {
		mark := j.Durable()
		chunk, err := j.Read(context.Background(), journal.ByOffset{}, journal.Page{})
		return fmt.Sprintf("mark %d, %d facts, %v", mark.Offset, len(chunk.Records), err)
	}
	options := journal.Options{
		Fault: func(stage journal.Stage, group journal.Group) error {
			log.add("%s (%d facts): %s", stage, group.Facts, visible())
			return nil
		},
		Observe: func(group journal.Group) { log.add("observed: up to %d", group.UpTo.Offset) },
	}
	j = open(t, engine, options)
	j.OnDurable(func(mark journal.Mark) { log.add("OnDurable(%d): %s", mark.Offset, visible()) })
	s := NewStory("s")
	for range 2 {
		mustAppend(t, j, s.Batch(s.Facts(2)...))
		log.add("returned: %s", visible())
	}
	want := `
built (2 facts): mark 0, 0 facts, <nil>
written (2 facts): mark 0, 0 facts, <nil>
synced (2 facts): mark 0, 0 facts, <nil>
published (2 facts): mark 2, 2 facts, <nil>
OnDurable(2): mark 2, 2 facts, <nil>
notified (2 facts): mark 2, 2 facts, <nil>
observed: up to 2
returned: mark 2, 2 facts, <nil>
built (2 facts): mark 2, 2 facts, <nil>
written (2 facts): mark 2, 2 facts, <nil>
synced (2 facts): mark 2, 2 facts, <nil>
published (2 facts): mark 4, 4 facts, <nil>
OnDurable(4): mark 4, 4 facts, <nil>
notified (2 facts): mark 4, 4 facts, <nil>
observed: up to 4
returned: mark 4, 4 facts, <nil>
`
	if got := log.text(); got != strings.TrimLeft(want, "\n") {
		t.Errorf("order of two commits:\n%swant:%s", got, want)
	}
}

type transcript struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (l *transcript) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.lines, format+"\n", args...)
}

func (l *transcript) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

// richBatches fill a store with something for every question of Everything.
func richBatches() (*Story, []journal.Batch) {
	s := NewStory("rich")
	first := s.Batch(
		s.Fact(Place{Events: 1}),
		s.Fact(Place{Run: "r1", Workflow: "w1", Log: "r1", Logs: 2, Events: 2}),
		s.Fact(Place{Run: "r1", Log: "r1", Logs: 1}),
	)
	first.Changes = []journal.Change{
		put(sessionRow("rich", "active")),
		put(journal.InterruptRow{ID: "i1", Session: "rich", Sequence: 3, Open: true, Value: []byte("ask")}),
		put(journal.RunRow{ID: "r1", Session: "rich", Root: "r1", First: 2, State: "running"}),
		put(journal.WorkflowRow{ID: "w1", Session: "rich", First: 2, State: "running"}),
		put(journal.OpenWorkRow{Session: "rich"}),
		put(timerRow("rich", "expiry", 5*time.Second)),
		put(journal.TimerRow{ID: "lease", Due: Start, Carried: true}),
		put(journal.CommandRow{Session: "rich", Space: "p", ID: "c", Hash: []byte("h"), Value: []byte("accepted")}),
		put(journal.AliasRow{Space: "narya", Alias: "uuid", Session: "rich", ID: "rich"}),
		put(journal.LeaseRow{Executor: "laptop", Value: []byte("lease")}),
		put(journal.TokenRow{Executor: "laptop", ID: "token", Session: "rich"}),
		put(journal.AgentRow{ID: "agent", Session: "rich", Value: []byte("pid")}),
		put(journal.MaterialRow{Session: "rich", Space: "artifact", ID: "m", Digest: "d"}),
		put(journal.DecisionRow{Of: "rich", ID: "2026 i1", Session: "rich", Decision: "allow", Value: []byte("who")}),
	}
	second := s.Batch(s.Fact(Place{Run: "r1", Workflow: "w1", Log: "r1", Logs: 1, Events: 1}))
	second.Changes = []journal.Change{
		put(journal.InterruptRow{ID: "i1", Session: "rich", Sequence: 3, Value: []byte("approved")}),
		remove(journal.TimerKey("rich", "expiry")),
		remove(journal.OpenWorkKey("rich")),
		put(sessionRow("rich", "archived")),
	}
	return s, []journal.Batch{first, second}
}

func testHeldSync(t *testing.T, engine Engine) {
	for _, stage := range []journal.Stage{journal.StageWritten, journal.StageSynced} {
		for n := range 2 {
			t.Run(fmt.Sprintf("%s, batch %d", stage, n+1), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { holdSync(t, engine, stage, n) })
			})
		}
	}
}

// holdSync writes the rich batches up to one that it holds in its commit and
// then fails; nothing of that one may be seen by any reader at any time.
func holdSync(t *testing.T, engine Engine, stage journal.Stage, at int) {
	arrived, release := make(chan struct{}), make(chan error)
	commits := 0
	j := open(t, engine, journal.Options{Fault: func(s journal.Stage, _ journal.Group) error {
		if s == journal.StageBuilt {
			commits++
		}
		if s != stage || commits != at+1 {
			return nil
		}
		close(arrived)
		return <-release
	}})
	var probes Probes
	_, batches := richBatches()
	for _, batch := range batches {
		probes.Add(batch)
	}
	for _, batch := range batches[:at] {
		mustAppend(t, j, batch)
	}
	before := Everything(j, &probes)
	notified := 0
	j.OnDurable(func(journal.Mark) { notified++ })

	answer := appendLater(j, batches[at])
	<-arrived
	compareText(t, "while the commit is held", Everything(j, &probes), before)
	release <- errFault
	err := <-answer
	wantError(t, "append", err, journal.ErrBroken)
	wantError(t, "append", err, errFault)
	compareText(t, "after the commit failed", Everything(j, &probes), before)
	if notified != 0 {
		t.Errorf("OnDurable was called %d times for a batch that failed", notified)
	}
	select {
	case <-j.Broken():
	default:
		t.Error("Broken is not closed")
	}
	wantError(t, "Err", j.Err(), journal.ErrBroken)
	_, err = j.Append(context.Background(), batches[at])
	wantError(t, "the next append", err, journal.ErrBroken)
	wantError(t, "Admit", j.Admit(true), journal.ErrBroken)
	_, err = j.AcquireTerm(context.Background(), "rich")
	wantError(t, "AcquireTerm", err, journal.ErrBroken)
	wantError(t, "Delete", j.Delete(context.Background(), journal.Deletion{Session: "rich"}), journal.ErrBroken)
}

// compareText shows the first line in which two texts differ.
func compareText(t testing.TB, when, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s, %s", when, firstDifference(got, want))
	}
}

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(end)"
}

func testRefusedGroup(t *testing.T, engine Engine) {
	refuse := true
	j := open(t, engine, journal.Options{Fault: func(stage journal.Stage, _ journal.Group) error {
		if refuse && stage == journal.StageBuilt {
			return errFault
		}
		return nil
	}})
	var probes Probes
	_, batches := richBatches()
	for _, batch := range batches {
		probes.Add(batch)
	}
	before := Everything(j, &probes)
	_, err := j.Append(context.Background(), batches[0])
	wantError(t, "append", err, journal.ErrRefused)
	wantError(t, "append", err, errFault)
	compareText(t, "after the refusal", Everything(j, &probes), before)
	if j.Err() != nil {
		t.Errorf("a refusal broke the store: %v", j.Err())
	}
	refuse = false
	for _, batch := range batches {
		mustAppend(t, j, batch)
	}
	model := modelOf(j)
	for _, batch := range batches {
		if _, err := model.Append(batch); err != nil {
			t.Fatalf("model: %v", err)
		}
	}
	compareText(t, "after the same batches were accepted", Everything(j, &probes), Everything(model, &probes))
}

func modelOf(j journal.Keeper) *Model { return NewModel(j.Identity().FirstEvent) }

func testBroken(t *testing.T, engine Engine) {
	for _, stage := range journal.Stages[1:] {
		j := open(t, engine, journal.Options{Fault: func(s journal.Stage, _ journal.Group) error {
			if s == stage {
				return errFault
			}
			return nil
		}})
		s := NewStory("s")
		_, err := j.Append(context.Background(), s.Batch(s.Facts(1)...))
		wantError(t, stage.String(), err, journal.ErrBroken)
		_, err = j.Append(context.Background(), s.Batch(s.Facts(1)...))
		wantError(t, stage.String()+", second append", err, journal.ErrBroken)
		visible := uint64(0)
		if stage >= journal.StagePublished {
			visible = 1
		}
		if got := j.Durable().Offset; got != visible {
			t.Errorf("%s: durable offset %d, want %d", stage, got, visible)
		}
	}
}

func testGroups(t *testing.T, engine Engine) {
	synctest.Test(t, func(t *testing.T) {
		var groups []int
		hold := newHold(journal.StageBuilt)
		j := open(t, engine, journal.Options{
			Fault:   hold.fault,
			Observe: func(g journal.Group) { groups = append(groups, g.Batches) },
		})
		first := NewStory("first")
		answers := hold.whileHeld(func() { go appendTo(j, first.Batch(first.Facts(1)...), nil) }, func() []chan error {
			var all []chan error
			for i := range 600 {
				s := NewStory(fmt.Sprintf("s%d", i))
				all = append(all, appendLater(j, s.Batch(s.Facts(1)...)))
			}
			return all
		})
		for _, answer := range answers {
			if err := <-answer; err != nil {
				t.Fatal(err)
			}
		}
		closeJournal(t, j)
		if want := []int{1, 512, 88}; !slices.Equal(groups, want) {
			t.Errorf("601 batches, 600 of them waiting: groups of %v, want %v", groups, want)
		}
		if got := j.Stats(); got.Batches != 601 || got.Groups != 3 || got.Facts != 601 {
			t.Errorf("stats: got %+v, want 601 batches and facts in 3 groups", got)
		}
	})
}

func testContext(t *testing.T, engine Engine) {
	synctest.Test(t, func(t *testing.T) {
		hold := newHold(journal.StageWritten)
		j := open(t, engine, journal.Options{Fault: hold.fault})
		inGroup, cancelInGroup := context.WithCancel(context.Background())
		waiting, cancelWaiting := context.WithCancel(context.Background())
		appendWith := func(ctx context.Context, session string) chan error {
			answer := make(chan error, 1)
			s := NewStory(session)
			go func() {
				_, err := j.Append(ctx, s.Batch(s.Facts(1)...))
				answer <- err
			}()
			return answer
		}
		one := appendWith(inGroup, "in group")
		<-hold.arrived
		two := appendWith(waiting, "waiting")
		synctest.Wait()
		cancelInGroup()
		cancelWaiting()
		hold.release <- nil
		if err := <-one; err != nil {
			t.Errorf("cancelled once in a group: %v, want it written", err)
		}
		wantError(t, "cancelled while waiting", <-two, context.Canceled)
		if _, err := j.Head(context.Background(), "waiting"); !errors.Is(err, journal.ErrNotFound) {
			t.Errorf("cancelled while waiting: head gives %v, want nothing written", err)
		}
		if got := j.Durable().Offset; got != 1 {
			t.Errorf("durable offset %d, want 1", got)
		}
		_, err := j.Read(waiting, journal.ByOffset{}, journal.Page{})
		wantError(t, "read with a cancelled context", err, context.Canceled)
	})
}

func testCloseWhileWaiting(t *testing.T, engine Engine) {
	synctest.Test(t, func(t *testing.T) {
		hold := newHold(journal.StageWritten)
		j := open(t, engine, journal.Options{Fault: hold.fault})
		first := NewStory("first")
		inGroup := appendLater(j, first.Batch(first.Facts(1)...))
		<-hold.arrived
		var waiting []chan error
		for i := range 1_100 { // more than the queue holds
			s := NewStory(fmt.Sprintf("s%d", i))
			waiting = append(waiting, appendLater(j, s.Batch(s.Facts(1)...)))
		}
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- j.Close() }()
		synctest.Wait()
		select {
		case err := <-closed:
			t.Fatalf("Close returned %v in the middle of a commit", err)
		default:
		}
		hold.release <- nil
		if err := <-inGroup; err != nil {
			t.Errorf("the batch in the group: %v, want it written", err)
		}
		for _, answer := range waiting {
			wantError(t, "a batch that waited", <-answer, journal.ErrClosed)
		}
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// testReadsDuringClose has readers busy while the store closes: each read gives
// what it should, or ErrClosed.
func testReadsDuringClose(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	mustAppend(t, j, s.Batch(s.Facts(20)...))
	var readers sync.WaitGroup
	reading := make(chan struct{}, 8)
	for range cap(reading) {
		readers.Go(func() {
			for n := 0; ; n++ {
				chunk, err := j.Read(context.Background(), journal.ByOffset{}, journal.Page{})
				if n == 0 {
					reading <- struct{}{}
				}
				if errors.Is(err, journal.ErrClosed) {
					return
				}
				if err != nil || len(chunk.Records) != 20 || j.Durable().Offset != 20 {
					t.Errorf("read during close: %d records, %v", len(chunk.Records), err)
					return
				}
			}
		})
	}
	for range cap(reading) {
		<-reading
	}
	closeJournal(t, j)
	readers.Wait()
}

func testClosed(t *testing.T, engine Engine) {
	ctx := context.Background()
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	mustAppend(t, j, s.Batch(s.Facts(1)...))
	for range 2 {
		closeJournal(t, j)
	}
	calls := map[string]func() error{
		"Admit":         func() error { return j.Admit(true) },
		"Append":        func() error { _, err := j.Append(ctx, s.Batch(s.Facts(1)...)); return err },
		"AcquireTerm":   func() error { _, err := j.AcquireTerm(ctx, "s"); return err },
		"Delete":        func() error { return j.Delete(ctx, journal.Deletion{Session: "s"}) },
		"Head":          func() error { _, err := j.Head(ctx, "s"); return err },
		"Read":          func() error { _, err := j.Read(ctx, journal.ByOffset{}, journal.Page{}); return err },
		"Find":          func() error { _, err := j.Find(ctx, "s", "1.x"); return err },
		"Row":           func() error { _, err := j.Row(ctx, journal.SessionKey("s")); return err },
		"Rows":          func() error { _, err := j.Rows(ctx, journal.Sessions{}, journal.RowPage{}); return err },
		"Snapshot":      func() error { _, err := j.Snapshot(ctx, "s", 1); return err },
		"PutSnapshot":   func() error { return j.PutSnapshot(ctx, "s", journal.Snapshot{Sequence: 1}) },
		"DropSnapshots": func() error { return j.DropSnapshots(ctx, "s", 1) },
		"Verify":        func() error { _, err := j.Verify(ctx, journal.VerifyOptions{}); return err },
	}
	for name, call := range calls {
		wantError(t, name, call(), journal.ErrClosed)
	}
	if got := j.Durable().Offset; got != 1 {
		t.Errorf("mark after Close: %d, want 1", got)
	}
}

func testOnDurable(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	var marks []uint64
	var cancelSelf func()
	var once int
	j.OnDurable(func(mark journal.Mark) { marks = append(marks, mark.Offset) })
	cancelSelf = j.OnDurable(func(journal.Mark) { once++; cancelSelf() })
	s := NewStory("s")
	for n := range 3 {
		mustAppend(t, j, s.Batch(s.Facts(n+1)...))
	}
	mustAppend(t, j, s.Rows(put(sessionRow("s", "active"))))
	if want := []uint64{1, 3, 6}; !slices.Equal(marks, want) {
		t.Errorf("OnDurable called with %v, want %v (a batch of rows moves no mark)", marks, want)
	}
	if once != 1 {
		t.Errorf("a function that cancelled itself was called %d times, want 1", once)
	}
}

func testOnDurablePanics(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	j.OnDurable(func(journal.Mark) { panic("a waker's mistake") })
	s := NewStory("s")
	_, err := j.Append(context.Background(), s.Batch(s.Facts(1)...))
	wantError(t, "append", err, journal.ErrBroken)
	wantError(t, "Err", j.Err(), journal.ErrBroken)
}
