package feed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/journal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a journal in memory with a hook on every read.
type store struct {
	journal.Journal
	reads         atomic.Int64
	before, after atomic.Pointer[func(journal.Order) error]
}

// onRead sets what is called before each Read of the journal.
func (s *store) onRead(hook func(journal.Order) error) { s.before.Store(&hook) }

func (s *store) Read(ctx context.Context, order journal.Order, page journal.Page) (journal.Chunk, error) {
	s.reads.Add(1)
	if hook := s.before.Load(); hook != nil {
		if err := (*hook)(order); err != nil {
			return journal.Chunk{}, err
		}
	}
	chunk, err := s.Journal.Read(ctx, order, page)
	if hook := s.after.Load(); hook != nil && err == nil {
		err = (*hook)(order)
	}
	return chunk, err
}

func openStore(t testing.TB, options journal.Options) *store {
	t.Helper()
	memory, err := journal.NewMemory(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	})
	return &store{Journal: memory}
}

func openFeed(t testing.TB, s *store, options feed.Options) *feed.Feed {
	t.Helper()
	f := feed.New(s, options)
	t.Cleanup(f.Close)
	return f
}

// add appends facts of some bytes to a session that has head facts, each with
// two event numbers, and gives the new head.
func (s *store) add(t testing.TB, session string, head, facts int) int {
	t.Helper()
	if err := s.append(session, head, facts); err != nil {
		t.Fatalf("append %d facts to %q: %v", facts, session, err)
	}
	return head + facts
}

func (s *store) append(session string, head, facts int) error {
	batch := journal.Batch{Session: session, ExpectHead: uint64(head)}
	for i := range facts {
		sequence := head + i + 1
		batch.Facts = append(batch.Facts, journal.Fact{
			EventID: fmt.Sprintf("%d.abcdefgh", sequence), EventCount: 2,
			Bytes: fmt.Appendf(nil, "%s/%d", session, sequence),
		})
	}
	_, err := s.Append(context.Background(), batch)
	return err
}

// plain frames a fact as one line.
func plain(record journal.Record) []byte { return append(slices.Clone(record.Bytes), '\n') }

// sequences gives the sequences of records.
func sequences(records []journal.Record) []uint64 {
	list := make([]uint64, len(records))
	for i := range records {
		list[i] = records[i].Sequence
	}
	return list
}

func wantSequences(t testing.TB, what string, records []journal.Record, err error, want ...uint64) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if got := sequences(records); !slices.Equal(got, want) {
		t.Fatalf("%s: got sequences %v, want %v", what, got, want)
	}
}

func wantError(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

func TestNextGivesWhatIsThereAndThenWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		head := s.add(t, "a", 0, 3)

		sub := f.Subscribe(feed.Session("a", 1))
		defer sub.Close()
		records, err := sub.Next(t.Context())
		wantSequences(t, "what is there", records, err, 2, 3)
		records, err = sub.Poll(t.Context())
		wantSequences(t, "poll at the head", records, err)

		got := make(chan []journal.Record)
		go func() {
			records, err := sub.Next(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- records
		}()
		synctest.Wait()
		s.add(t, "b", 0, 1)
		synctest.Wait()
		select {
		case records := <-got:
			t.Fatalf("another session's fact woke the reader with %v", sequences(records))
		default:
		}
		s.add(t, "a", head, 2)
		wantSequences(t, "what came", <-got, nil, 4, 5)
		if got := sub.Position(); got != 5 {
			t.Errorf("position %d, want 5", got)
		}
	})
}

func TestWakeNeverMissesWhatComesBetweenLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		head := s.add(t, "a", 0, 1)
		sub := f.Subscribe(feed.Session("a", 1))
		defer sub.Close()
		records, err := sub.Poll(t.Context())
		wantSequences(t, "at the head", records, err)
		s.add(t, "a", head, 1) // nobody waits
		synctest.Wait()
		select {
		case <-sub.Wake():
		default:
			t.Fatal("the slot is empty")
		}
		records, err = sub.Poll(t.Context())
		wantSequences(t, "after the wake", records, err, 2)
	})
}

func TestContextEndsNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		s.add(t, "a", 0, 1)
		sub := f.Subscribe(feed.Session("a", 1))
		defer sub.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := sub.Next(ctx)
		wantError(t, "next", err, context.DeadlineExceeded)
		if got := sub.Position(); got != 1 {
			t.Errorf("position %d, want 1", got)
		}
	})
}

func TestFramesAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		odd := feed.NewFramer(f, func(r journal.Record) []byte {
			if r.Sequence%2 == 0 {
				return nil
			}
			return plain(r)
		})
		head := s.add(t, "a", 0, 3)
		sub := odd.Subscribe(feed.Session("a", 0))
		defer sub.Close()
		next := func(want string) {
			t.Helper()
			got, err := sub.Next(t.Context())
			if err != nil || string(got) != want {
				t.Fatalf("got %q, %v, want %q", got, err, want)
			}
		}
		next("a/1\na/3\n") // from the journal
		for range 3 {
			head = s.add(t, "a", head, 1)
		}
		synctest.Wait()
		next("a/5\n") // from the ring
		if got := sub.Position(); got != 6 {
			t.Errorf("position %d, want 6: the facts without a frame are passed", got)
		}
		s.add(t, "a", head, 5)
		synctest.Wait()
		next("a/7\na/9\na/11\n")
	})
}

func TestAFrameIsMadeOnceForAllReadersAtTheHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const readers, rounds = 100, 50
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		var made atomic.Int64
		framer := feed.NewFramer(f, func(r journal.Record) []byte {
			made.Add(1)
			return plain(r)
		})
		head := s.add(t, "a", 0, 1)
		subs := make([]*feed.Frames, readers)
		look := func() {
			for _, sub := range subs {
				if _, err := sub.Poll(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range subs {
			subs[i] = framer.Subscribe(feed.Session("a", 0))
			defer subs[i].Close()
		}
		look() // each has read the journal
		madeBefore, readsBefore := made.Load(), f.Stats().Reads
		for range rounds {
			head = s.add(t, "a", head, 3)
			synctest.Wait()
			look()
		}
		if got, want := made.Load()-madeBefore, int64(rounds*3); got != want {
			t.Errorf("%d frames were made of %d facts for %d readers, want one a fact", got, want, readers)
		}
		if got := f.Stats().Reads - readsBefore; got != 0 {
			t.Errorf("readers at the head read the journal %d times, want 0", got)
		}
		for i, sub := range subs {
			if got := sub.Position(); got != uint64(head) {
				t.Errorf("reader %d is at %d, want %d", i, got, head)
			}
		}
	})
}

func TestHostAndEventOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		seed := s.Identity().FirstEvent
		host, events := f.Subscribe(feed.Host(0)), f.Subscribe(feed.Events(seed)) // inside the first fact's two
		defer host.Close()
		defer events.Close()
		a, b := 0, 0
		for round := range 3 { // the first from the journal, the others from the rings
			a, b = s.add(t, "a", a, 1), s.add(t, "b", b, 1)
			synctest.Wait()
			for name, sub := range map[string]*feed.Subscription{"host": host, "events": events} {
				records, err := sub.Next(t.Context())
				if err != nil || len(records) != 2 {
					t.Fatalf("%s, round %d: got %d records, %v, want 2", name, round, len(records), err)
				}
				if records[0].Session != "a" || records[1].Session != "b" || records[0].Sequence != uint64(a) {
					t.Fatalf("%s, round %d: got %v", name, round, records)
				}
			}
		}
		if got, want := host.Position(), uint64(6); got != want {
			t.Errorf("host position %d, want %d", got, want)
		}
		if got, want := events.Position(), seed+11; got != want {
			t.Errorf("event position %d, want %d", got, want)
		}
	})
}

func TestCursorAboveTheHeadWaitsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		head := s.add(t, "a", 0, 2)
		ahead, behind := f.Subscribe(feed.Session("a", 5)), f.Subscribe(feed.Session("a", 2))
		defer ahead.Close()
		defer behind.Close()
		for range 3 {
			records, err := ahead.Poll(t.Context())
			wantSequences(t, "ahead", records, err)
			head = s.add(t, "a", head, 1)
			synctest.Wait()
			records, err = behind.Poll(t.Context())
			wantSequences(t, "behind", records, err, uint64(head))
		}
		s.add(t, "a", head, 2)
		synctest.Wait()
		records, err := ahead.Poll(t.Context())
		wantSequences(t, "passed by the head", records, err, 6, 7)
	})
}

func TestLagIsWhatIsNotYetGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		s.add(t, "a", 0, 7)
		s.add(t, "b", 0, 2)
		tests := []struct {
			name  string
			place feed.Place
			want  uint64
		}{
			{"session", feed.Session("a", 2), 5},
			{"session at its head", feed.Session("b", 2), 0},
			{"session above its head", feed.Session("b", 9), 0},
			{"host", feed.Host(3), 6},
			{"events", feed.Events(s.Durable().Event - 4), 4},
		}
		for _, test := range tests {
			sub := f.Subscribe(test.place)
			defer sub.Close()
			if got, err := sub.Lag(t.Context()); err != nil || got != test.want {
				t.Errorf("%s: got lag %d, %v, want %d", test.name, got, err, test.want)
			}
			if _, err := sub.Poll(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := sub.Lag(t.Context()); err != nil || got != 0 {
				t.Errorf("%s, read to the end: got lag %d, %v, want 0", test.name, got, err)
			}
		}
	})
}
