package naryahttp_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narya"
)

// worn is a journal that cannot read some facts of a session any more.
type worn struct {
	journal.Journal
	session     string
	first, last uint64 // sequences
}

func (w *worn) lost(r journal.Record) bool {
	return r.Session == w.session && r.Sequence >= w.first && r.Sequence <= w.last
}

// Head cannot be told where the end is damaged.
func (w *worn) Head(ctx context.Context, session string) (journal.Head, error) {
	head, err := w.Journal.Head(ctx, session)
	if err == nil && session == w.session && head.Sequence <= w.last {
		return journal.Head{}, &journal.DamagedError{Session: session, Sequence: w.first, Cause: errors.New("a fault of the test")}
	}
	return head, err
}

// Read gives what stands before the damage, and behind that the damage itself.
func (w *worn) Read(ctx context.Context, order journal.Order, page journal.Page) (journal.Chunk, error) {
	chunk, err := w.Journal.Read(ctx, order, page)
	at := slices.IndexFunc(chunk.Records, w.lost)
	if err != nil || at < 0 {
		return chunk, err
	}
	if at > 0 {
		chunk.Records, chunk.More = chunk.Records[:at], true
		return chunk, nil
	}
	lost := &journal.DamagedError{Session: w.session, Sequence: w.first, Cause: errors.New("a fault of the test")}
	for r, err := range journal.All(ctx, w.Journal, w.session, 0) {
		if err != nil {
			return journal.Chunk{}, err
		}
		if w.lost(r) && r.EventCount > 0 {
			lost.ResumeOffset, lost.ResumeEvent = r.Offset, r.FirstEvent+uint64(r.EventCount)-1
		}
		if r.Sequence > w.last {
			lost.ResumeSequence = w.last
		}
	}
	return journal.Chunk{}, lost
}

// Case 52. What is damaged in the middle is a jump in the ids of the stream of all, and the
// log says so; everything before and behind it comes, live too. So it is on the stream of the
// damaged session alone, and that of any other is whole.
func TestCase52DamageIsAJump(t *testing.T) {
	for name, last := range map[string]uint64{"in the middle": 4, "to the end": 1 << 40} {
		t.Run(name, func(t *testing.T) { damageIsAJump(t, last) })
	}
}

// damageIsAJump loses the facts of a session from the second to a last one.
func damageIsAJump(t *testing.T, last uint64) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		begun := b.newest()
		for _, id := range []string{"one", "two", "three"} {
			b.create(id, "hello")
			pass(0)
		}
		whole := b.stream("", narya.FormatID(begun)).now()
		b.close()
		broken := &worn{b.journal, "two", 2, last}
		before := *b
		before.journal = broken
		next := begin(t, bedOptions{before: &before})
		var lost, kept []event
		for r, err := range journal.All(t.Context(), b.journal, "two", 0) {
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range whole {
				if id := uint64(e.ID); broken.lost(r) && id >= r.FirstEvent && id < r.FirstEvent+uint64(r.EventCount) {
					lost = append(lost, e)
				}
			}
		}
		for _, e := range whole {
			if !slices.Contains(lost, e) {
				kept = append(kept, e)
			}
		}
		if len(lost) < 3 || kept[0] != whole[0] || kept[len(kept)-1] != whole[len(whole)-1] {
			t.Fatalf("%d of %d events are lost", len(lost), len(whole))
		}
		for _, after := range []int64{begun, lost[0].ID - 1, lost[0].ID, lost[len(lost)-1].ID} {
			s := next.stream("", narya.FormatID(after))
			want := kept[slices.IndexFunc(kept, func(e event) bool { return e.ID > after }):]
			if got := s.now(); !slices.EqualFunc(got, want, sameEvent) {
				t.Errorf("behind %d came %d events, want %d", after, len(got), len(want))
			}
			next.publish("one", "live")
			if got := s.now(); len(got) != 1 || got[0].ID != next.newest() {
				t.Errorf("behind the damage came %v, want what happens", kinds(got))
			}
			s.close()
			kept = append(kept, next.stream("", narya.FormatID(next.newest()-1)).now()...)
		}
		if log := next.log.String(); !strings.Contains(log, "events cannot be read") {
			t.Errorf("the log says nothing of it: %s", log)
		}
		for _, session := range []string{"two", "three"} {
			for _, after := range []int64{begun, lost[0].ID - 1, lost[0].ID, lost[len(lost)-1].ID, next.newest()} {
				for _, query := range []string{"", "&hostEvents=true"} {
					want := slices.DeleteFunc(slices.Clone(kept), func(e event) bool { return e.SessionID != uuidOf(session) || e.ID <= after })
					s := next.stream("sessionId="+uuidOf(session)+query, narya.FormatID(after))
					if got := s.now(); !slices.EqualFunc(got, want, sameEvent) {
						t.Errorf("of session %s%s behind %d came %d events, want %d", session, query, after, len(got), len(want))
					}
					pass(3 * time.Minute)
					if s.over() {
						t.Errorf("the stream of session %s%s behind %d has ended", session, query, after)
					}
					s.close()
				}
			}
		}
	})
}

// A workflow of a session that is damaged costs no other its place in the list.
func TestWorkflowsBesideDamage(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		var runs []string
		for _, id := range []string{"one", "two", "three"} {
			b.create(id, "")
			definition := quote("workflow: 1\nnodes:\n  a: {set: {x: y}, next: b}\n  b: {end: completed}\n")
			run := b.want(b.post("/v1/workflows", `{"sessionId":"`+uuidOf(id)+`","definition":`+definition+`}`), 202)
			runs = append(runs, run.field("runId"))
			pass(time.Second)
		}
		b.close()
		before := *b
		before.journal = &worn{b.journal, "two", 2, 4}
		next := begin(t, bedOptions{before: &before})
		var got []string
		for _, item := range next.want(next.get("/v1/workflows"), 200).items("items") {
			got = append(got, text(item, "runId"))
		}
		if want := []string{runs[2], runs[0]}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		next.wantError(next.get("/v1/workflows/"+runs[1]), narya.CodeInternal)
	})
}

func sameEvent(a, b event) bool { return a.data == b.data }
