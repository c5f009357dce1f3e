package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

func testNumbers(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	a, b := NewStory("a"), NewStory("b")
	seed := j.Identity().FirstEvent

	mustAppend(t, j, a.Batch(a.Fact(Place{Events: 2}), a.Fact(Place{})))
	mustAppend(t, j, b.Batch(b.Fact(Place{Events: 1})))
	mustAppend(t, j, a.Batch(a.Fact(Place{Events: 3})))

	type numbers struct {
		session                 string
		sequence, offset, event uint64
	}
	var got []numbers
	for _, r := range mustRead(t, j, journal.ByOffset{}, journal.Page{}).Records {
		got = append(got, numbers{r.Session, r.Sequence, r.Offset, r.FirstEvent})
	}
	want := []numbers{{"a", 1, 1, seed}, {"a", 2, 2, 0}, {"b", 1, 3, seed + 2}, {"a", 3, 4, seed + 3}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := j.Durable(), (journal.Mark{Offset: 4, Event: seed + 5}); got != want {
		t.Errorf("durable mark: got %v, want %v", got, want)
	}
}

func testReceipt(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	mustAppend(t, j, s.Batch(s.Fact(Place{Run: "r", Log: "r", Logs: 2})))
	batch := s.Batch(
		s.Fact(Place{Run: "r", Log: "r", Logs: 3}),
		s.Fact(Place{Run: "r"}),
		s.Fact(Place{Log: "other", Logs: 1, Events: 2}),
		s.Fact(Place{Run: "r", Log: "r", Logs: 1}),
	)
	receipt := mustAppend(t, j, batch)
	if receipt.FirstSequence != 2 || receipt.FirstOffset != 2 || receipt.FirstEvent != j.Identity().FirstEvent {
		t.Errorf("got %+v, want sequence 2, offset 2 and the first event number", receipt)
	}
	if want := []uint64{3, 0, 1, 6}; !slices.Equal(receipt.FirstLogs, want) {
		t.Errorf("log numbers: got %v, want %v", receipt.FirstLogs, want)
	}
	if receipt.UpTo != j.Durable() {
		t.Errorf("mark of the receipt: got %v, durable is %v", receipt.UpTo, j.Durable())
	}
	receipt = mustAppend(t, j, s.Rows(put(sessionRow("s", "active"))))
	if receipt.FirstSequence != 0 || receipt.FirstOffset != 0 || receipt.FirstEvent != 0 {
		t.Errorf("batch of rows: got %+v, want no numbers", receipt)
	}
}

func testSeed(t *testing.T, engine Engine) {
	at := time.Date(2031, 5, 6, 7, 8, 9, 123_456_789, time.UTC)
	j := open(t, engine, journal.Options{Now: func() time.Time { return at }})
	if got, want := j.Durable(), (journal.Mark{Event: uint64(at.UnixMicro()) - 1}); got != want {
		t.Errorf("mark of a new store: got %v, want %v", got, want)
	}
	s := NewStory("s")
	if got, want := mustAppend(t, j, s.Batch(s.Facts(1)...)).FirstEvent, uint64(at.UnixMicro()); got != want {
		t.Errorf("first event number: got %d, want the microseconds of the store's birth %d", got, want)
	}
}

func testIdentity(t *testing.T, engine Engine) {
	one, two := open(t, engine, journal.Options{}), open(t, engine, journal.Options{})
	if one.Identity().Epoch == "" || one.Identity().Epoch == two.Identity().Epoch {
		t.Errorf("epochs %q and %q: want two that differ", one.Identity().Epoch, two.Identity().Epoch)
	}
	if one.Identity().Key == two.Identity().Key || one.Identity().Key == (journal.SecretKey{}) {
		t.Error("want a key that is random for each store")
	}
	key := one.Identity().Key
	if text := fmt.Sprintf("%v %+v %#v %s", key, one.Identity(), one.Identity(), key); strings.Contains(text, fmt.Sprint(key[:])) ||
		strings.Contains(text, fmt.Sprintf("%#x, %#x, %#x", key[0], key[1], key[2])) {
		t.Errorf("the key shows itself: %s", text)
	}
	if got := one.Identity().Format; got != journal.FormatNumber {
		t.Errorf("format: got %d, want %d", got, journal.FormatNumber)
	}
}

func testBytesAreCopied(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	batch := s.Batch(s.Facts(1)...)
	row := sessionRow("s", "active")
	batch.Changes = []journal.Change{put(row)}
	wantBytes, wantValue := bytes.Clone(batch.Facts[0].Bytes), bytes.Clone(row.Value)
	mustAppend(t, j, batch)

	read := func() ([]byte, []byte) {
		r, err := journal.Get[journal.SessionRow](context.Background(), j, journal.SessionKey("s"))
		if err != nil {
			t.Fatal(err)
		}
		return mustRead(t, j, journal.BySession{Session: "s"}, journal.Page{}).Records[0].Bytes, r.Value
	}
	gotBytes, gotValue := read()
	for _, b := range [][]byte{batch.Facts[0].Bytes, row.Value, gotBytes, gotValue} {
		b[0] ^= 0xff
	}
	if gotBytes, gotValue := read(); !bytes.Equal(gotBytes, wantBytes) || !bytes.Equal(gotValue, wantValue) {
		t.Errorf("after the caller changed its copies: got %q and %q, want %q and %q", gotBytes, gotValue, wantBytes, wantValue)
	}
}

func testInvalidBatches(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	change := func(f func(*journal.Batch)) journal.Batch {
		s := NewStory("s")
		batch := s.Batch(s.Facts(2)...)
		f(&batch)
		return batch
	}
	fact := func(f func(*journal.Fact)) journal.Batch {
		return change(func(b *journal.Batch) { f(&b.Facts[1]) })
	}
	tests := map[string]journal.Batch{
		"no session":             change(func(b *journal.Batch) { b.Session = "" }),
		"control in session":     change(func(b *journal.Batch) { b.Session = "a\x00b" }),
		"nothing":                change(func(b *journal.Batch) { b.Facts = nil }),
		"event id of another":    fact(func(f *journal.Fact) { f.EventID = "7.abcdefgh" }),
		"event id without a dot": fact(func(f *journal.Fact) { f.EventID = "2" }),
		"event id padded":        fact(func(f *journal.Fact) { f.EventID = "02.abcdefgh" }),
		"event id signed":        fact(func(f *journal.Fact) { f.EventID = "+2.abcdefgh" }),
		"no bytes":               fact(func(f *journal.Fact) { f.Bytes = nil }),
		"run without sequence":   fact(func(f *journal.Fact) { f.RootRunID = "r" }),
		"sequence without run":   fact(func(f *journal.Fact) { f.RunSequence = 1 }),
		"workflow half":          fact(func(f *journal.Fact) { f.WorkflowID = "w" }),
		"log half":               fact(func(f *journal.Fact) { f.LogCount = 1 }),
		"control in run id":      fact(func(f *journal.Fact) { f.RootRunID, f.RunSequence = "r\n", 1 }),
		"put without a row":      change(func(b *journal.Batch) { b.Changes = []journal.Change{journal.Put{}} }),
		"no change":              change(func(b *journal.Batch) { b.Changes = []journal.Change{nil} }),
		"no condition":           change(func(b *journal.Batch) { b.Conditions = []journal.Condition{nil} }),
		"key without id":         change(func(b *journal.Batch) { b.Changes = []journal.Change{remove(journal.RunKey(""))} }),
		"key of no kind":         change(func(b *journal.Batch) { b.Conditions = []journal.Condition{journal.IfAbsent{}} }),
		"row of another session": change(func(b *journal.Batch) { b.Changes = []journal.Change{put(sessionRow("t", "active"))} }),
		"interrupt of no fact": change(func(b *journal.Batch) {
			b.Changes = []journal.Change{put(journal.InterruptRow{ID: "i", Session: "s", Sequence: 9})}
		}),
	}
	for name, batch := range tests {
		_, err := j.Append(context.Background(), batch)
		wantError(t, name, err, journal.ErrInvalid)
	}
	if _, err := j.Head(context.Background(), "s"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("after refusals only: head gave %v, want %v", err, journal.ErrNotFound)
	}
	wantError(t, "order", func() error { _, err := j.Read(context.Background(), nil, journal.Page{}); return err }(), journal.ErrInvalid)
	wantError(t, "list", func() error { _, err := j.Rows(context.Background(), nil, journal.RowPage{}); return err }(), journal.ErrInvalid)
	wantError(t, "row", func() error { _, err := j.Row(context.Background(), journal.Key{}); return err }(), journal.ErrInvalid)
}

func testSizes(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	mustAppend(t, j, s.Batch(s.Fact(Place{Size: journal.MaxFactBytes})))
	mustAppend(t, j, s.Batch(s.Facts(journal.MaxBatchFacts)...))
	large := make([]journal.Fact, 16) // 8,000,000 bytes, more than a memtable of the tests
	for i := range large {
		large[i] = s.Fact(Place{Size: 500_000})
	}
	mustAppend(t, j, s.Batch(large...))
	head := s.Head
	chunk := mustRead(t, j, journal.BySession{Session: "s", After: head - 2}, journal.Page{})
	wantSequences(t, "the end of a large batch", chunk, false, head-1, head)

	refuse := func(name string, batch journal.Batch) {
		t.Helper()
		_, err := j.Append(context.Background(), batch)
		wantError(t, name, err, journal.ErrTooLarge)
	}
	refused := func() *Story { r := NewStory("refused"); return r }
	r := refused()
	refuse("a fact of a byte too many", r.Batch(r.Fact(Place{Size: journal.MaxFactBytes + 1})))
	r = refused()
	refuse("a fact too many", r.Batch(r.Facts(journal.MaxBatchFacts+1)...))
	r = refused()
	var big []journal.Fact
	for range 17 {
		big = append(big, r.Fact(Place{Size: journal.MaxFactBytes}))
	}
	refuse("more than 8 MiB of facts", r.Batch(big...))
	r = refused()
	row := sessionRow("refused", "active")
	row.Value = make([]byte, journal.MaxBatchBytes)
	refuse("more than 8 MiB of rows", r.Rows(put(row)))
	r = refused()
	refuse("a long id", r.Rows(remove(journal.RunKey(strings.Repeat("r", journal.MaxID+1)))))

	if got, err := j.Head(context.Background(), "s"); err != nil || got.Sequence != head {
		t.Errorf("head: got %+v, %v; want sequence %d", got, err, head)
	}
}

func testHeads(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	mustAppend(t, j, s.Batch(s.Facts(3)...))
	for _, head := range []uint64{0, 2, 4} {
		other := NewStory("s")
		other.Head = head
		_, err := j.Append(context.Background(), other.Batch(other.Facts(1)...))
		wantError(t, "wrong head", err, journal.ErrConflict)
		var conflict *journal.ConflictError
		if !errors.As(err, &conflict) || conflict.Head != 3 || conflict.ExpectHead != head {
			t.Errorf("expecting head %d: got %+v, want a conflict that names 3", head, conflict)
		}
	}
	mustAppend(t, j, s.Batch(s.Facts(1)...))
}

func testSameHeadTwice(t *testing.T, engine Engine) {
	synctest.Test(t, func(t *testing.T) {
		hold := newHold(journal.StageBuilt)
		j := open(t, engine, journal.Options{Fault: hold.fault})
		first := NewStory("first")
		answers := hold.whileHeld(func() { go appendTo(j, first.Batch(first.Facts(1)...), nil) }, func() []chan error {
			var both []chan error
			for range 2 {
				s := NewStory("s")
				both = append(both, appendLater(j, s.Batch(s.Facts(1)...)))
			}
			return both
		})
		one, two := <-answers[0], <-answers[1]
		if (one == nil) == (two == nil) {
			t.Fatalf("two batches on one head: got %v and %v, want one accepted", one, two)
		}
		wantError(t, "the other", errors.Join(one, two), journal.ErrConflict)
	})
}

func testTerms(t *testing.T, engine Engine) {
	ctx := context.Background()
	j := open(t, engine, journal.Options{})
	old, err := j.AcquireTerm(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	s := NewStory("s")
	wantConflict := func(what string, term journal.Term) {
		t.Helper()
		batch := s.Batch()
		batch.ExpectTerm, batch.Changes = term, []journal.Change{put(sessionRow("s", "active"))}
		_, err := j.Append(ctx, batch)
		wantError(t, what, err, journal.ErrConflict)
	}
	wantConflict("no term while one is held", 0)
	s.Term = old
	mustAppend(t, j, s.Batch(s.Facts(1)...))

	fresh, err := j.AcquireTerm(ctx, "s")
	if err != nil || fresh <= old {
		t.Fatalf("second term: got %d, %v; want above %d", fresh, err, old)
	}
	wantConflict("fenced owner", old)
	wantError(t, "deletion by a fenced owner", j.Delete(ctx, journal.Deletion{Session: "s", ExpectHead: 1, ExpectTerm: old}), journal.ErrConflict)
	j.ReleaseTerm("s", old)
	s.Term = fresh
	mustAppend(t, j, s.Batch(s.Facts(1)...))
	j.ReleaseTerm("s", fresh)
	wantConflict("released", fresh)
	s.Term = 0
	mustAppend(t, j, s.Batch(s.Facts(1)...))
	_, err = j.AcquireTerm(ctx, "")
	wantError(t, "no session", err, journal.ErrInvalid)
}

func testSpanSequences(t *testing.T, engine Engine) {
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	mustAppend(t, j, s.Batch(s.Fact(Place{Run: "r", Workflow: "w"}), s.Fact(Place{Run: "r"})))
	mustAppend(t, j, s.Batch(s.Fact(Place{Run: "q", Workflow: "w"})))
	refuse := func(name string, f func(*journal.Fact)) {
		t.Helper()
		fact := s.Fact(Place{})
		f(&fact)
		_, err := j.Append(context.Background(), s.Batch(fact))
		wantError(t, name, err, journal.ErrInvalid)
		s.Head--
	}
	refuse("run sequence repeated", func(f *journal.Fact) { f.RootRunID, f.RunSequence = "r", 2 })
	refuse("run sequence left out", func(f *journal.Fact) { f.RootRunID, f.RunSequence = "r", 4 })
	refuse("run starts at 2", func(f *journal.Fact) { f.RootRunID, f.RunSequence = "new", 2 })
	refuse("workflow sequence repeated", func(f *journal.Fact) { f.WorkflowID, f.WorkflowSequence = "w", 2 })
	mustAppend(t, j, s.Batch(s.Fact(Place{Run: "r", Workflow: "w"})))
	// Another session has sequences of its own, also for the same run.
	trace := NewStory("s~trace")
	mustAppend(t, j, trace.Batch(trace.Fact(Place{Run: "r"})))
}

func testConditions(t *testing.T, engine Engine) {
	ctx := context.Background()
	j := open(t, engine, journal.Options{})
	s := NewStory("s")
	command := journal.CommandRow{Session: "s", Space: "anna", ID: "c1", Hash: []byte{1}, Value: []byte("accepted")}
	first := s.Batch(s.Facts(1)...)
	first.Conditions = []journal.Condition{journal.IfAbsent{Key: command.Key()}}
	first.Changes = []journal.Change{put(command)}
	mustAppend(t, j, first)

	try := func(conditions ...journal.Condition) error {
		batch := s.Batch(s.Facts(1)...)
		batch.Conditions = conditions
		_, err := j.Append(ctx, batch)
		if err != nil {
			s.Head--
		}
		return err
	}
	err := try(journal.IfEqual{Row: command}, journal.IfAbsent{Key: command.Key()})
	wantError(t, "IfAbsent on a row that is there", err, journal.ErrCondition)
	var failed *journal.ConditionError
	if !errors.As(err, &failed) || failed.Index != 1 || failed.Row == nil || !journal.EqualRows(failed.Row, command) {
		t.Errorf("got %+v, want condition 1 and the row", failed)
	}
	if err := try(journal.IfEqual{Row: command}); err != nil {
		t.Errorf("IfEqual on an equal row: %v", err)
	}
	other := command
	other.Value = []byte("refused")
	wantError(t, "IfEqual on another content", try(journal.IfEqual{Row: other}), journal.ErrCondition)
	wantError(t, "IfEqual on no row", try(journal.IfEqual{Row: journal.LeaseRow{Executor: "e"}}), journal.ErrCondition)
	elsewhere := []journal.Key{
		journal.CommandKey("", "anna", "c1"), journal.CommandKey("s", "bob", "c1"), journal.CommandKey("s", "anna", "c2"),
	}
	for _, key := range elsewhere {
		if err := try(journal.IfAbsent{Key: key}); err != nil {
			t.Errorf("IfAbsent on %s: %v", key, err)
		}
	}
}

func testConditionsWithinGroup(t *testing.T, engine Engine) {
	synctest.Test(t, func(t *testing.T) {
		hold := newHold(journal.StageBuilt)
		j := open(t, engine, journal.Options{Fault: hold.fault})
		first := NewStory("first")
		answers := hold.whileHeld(func() { go appendTo(j, first.Batch(first.Facts(1)...), nil) }, func() []chan error {
			var all []chan error
			for _, session := range []string{"a", "b", "c"} {
				s := NewStory(session)
				batch := s.Batch(s.Facts(1)...)
				lease := journal.LeaseRow{Executor: "laptop", Value: []byte(session)}
				batch.Conditions = []journal.Condition{journal.IfAbsent{Key: lease.Key()}}
				batch.Changes = []journal.Change{put(lease)}
				all = append(all, appendLater(j, batch))
			}
			return all
		})
		accepted := 0
		for _, answer := range answers {
			if err := <-answer; err == nil {
				accepted++
			} else {
				wantError(t, "a loser", err, journal.ErrCondition)
			}
		}
		if accepted != 1 {
			t.Errorf("three batches on one condition in one group: %d accepted, want 1", accepted)
		}
	})
}

func appendTo(j journal.Appender, batch journal.Batch, answer chan<- error) {
	_, err := j.Append(context.Background(), batch)
	if answer != nil {
		answer <- err
	}
}

// appendLater appends on another goroutine.
func appendLater(j journal.Appender, batch journal.Batch) chan error {
	answer := make(chan error, 1)
	go appendTo(j, batch, answer)
	return answer
}

// hold stops the first commit at a stage.
type hold struct {
	stage   journal.Stage
	arrived chan struct{}
	release chan error
	used    bool
}

func newHold(stage journal.Stage) *hold {
	return &hold{stage: stage, arrived: make(chan struct{}), release: make(chan error)}
}

// fault is for Options.Fault; it runs on the committer alone.
func (h *hold) fault(stage journal.Stage, _ journal.Group) error {
	if stage != h.stage || h.used {
		return nil
	}
	h.used = true
	close(h.arrived)
	return <-h.release
}

// whileHeld starts a commit, and while it is held lets others queue up behind
// it, so that they make one group. It needs a bubble of synctest.
func (h *hold) whileHeld(start func(), queue func() []chan error) []chan error {
	start()
	<-h.arrived
	answers := queue()
	synctest.Wait()
	h.release <- nil
	return answers
}
