package feed_test

import (
	"bytes"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/journal"
)

// The waker hangs in a read for ever; the committer goes on.
func TestOnDurableNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, journal.Options{})
		release := make(chan struct{})
		head := s.add(t, "a", 0, 1)
		f := openFeed(t, s, feed.Options{})
		host := f.Subscribe(feed.Host(0))
		defer host.Close()
		s.onRead(func(journal.Order) error {
			<-release
			return nil
		})
		start := time.Now()
		for range 500 {
			head = s.add(t, "a", head, 1)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("500 appends waited %v for the waker", took)
		}
		close(release)
		got := 0
		for got < head {
			records, err := host.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got += len(records)
		}
	})
}

// A feed has one goroutine, whatever follows it, and none after Close.
func TestExactlyOneWaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // what other tests leave ending does not count here
		s := openStore(t, journal.Options{})
		synctest.Wait()
		before := wakers()
		f := openFeed(t, s, feed.Options{})
		for i := range 1000 {
			sub := f.Subscribe(feed.Session(session(i), 0))
			defer sub.Close()
		}
		s.add(t, session(0), 0, 1)
		synctest.Wait()
		if got := wakers() - before; got != 1 {
			t.Errorf("a feed with 1,000 subscriptions has %d goroutines, want 1", got)
		}
		f.Close()
		synctest.Wait()
		if got := wakers() - before; got != 0 {
			t.Errorf("%d goroutines are left after Close", got)
		}
	})
}

// wakers counts the goroutines that this package has started in the test's bubble.
func wakers() int {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	n := 0
	for _, stack := range bytes.Split(stacks, []byte("\n\n")) {
		head, _, _ := bytes.Cut(stack, []byte("\n"))
		if bytes.Contains(head, []byte("synctest bubble")) && bytes.Contains(stack, []byte("created by github.com/mahati-host/mahati/internal/feed.")) {
			n++
		}
	}
	return n
}

// countReads tells how often the journal is read while something is done.
func countReads(s *store, do func()) int64 {
	synctest.Wait()
	before := s.reads.Load()
	do()
	synctest.Wait()
	return s.reads.Load() - before
}

func TestWhatNobodyFollowsCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		appendMany := func() {
			head, err := s.Head(t.Context(), "busy")
			if err != nil {
				t.Fatal(err)
			}
			at := int(head.Sequence)
			for range 200 {
				at = s.add(t, "busy", at, 5)
				synctest.Wait()
			}
		}
		s.add(t, "busy", 0, 1)
		s.add(t, "quiet", 0, 1)
		if got := countReads(s, appendMany); got != 0 {
			t.Errorf("nobody follows anything: %d reads, want 0", got)
		}
		// One reader of a quiet session: at most one small read a round.
		sub := f.Subscribe(feed.Session("quiet", 0))
		defer sub.Close()
		if _, err := sub.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := countReads(s, appendMany); got > 200 {
			t.Errorf("one quiet session is followed: %d reads in 200 rounds", got)
		}
		if got := f.Stats().RingBytes; got != 0 {
			t.Errorf("rings hold %d bytes of a session that nobody follows", got)
		}
	})
}

// Many sessions are followed, one moves: its readers alone are woken, with a
// constant number of reads.
func TestARoundCostsWhatMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions = 300
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		subs := make([]*feed.Subscription, sessions)
		for i := range subs {
			s.add(t, session(i), 0, 1)
			subs[i] = f.Subscribe(feed.Session(session(i), 0))
			defer subs[i].Close()
			if _, err := subs[i].Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for _, sub := range subs {
			select {
			case <-sub.Wake():
			default:
			}
		}
		reads := countReads(s, func() { s.add(t, session(7), 1, 3) })
		if reads > 1 {
			t.Errorf("3 facts in one of %d sessions: %d reads, want 1", sessions, reads)
		}
		for i, sub := range subs {
			woken := false
			select {
			case <-sub.Wake():
				woken = true
			default:
			}
			if woken != (i == 7) {
				t.Errorf("reader of %s woken: %v", session(i), woken)
			}
		}
	})
}

// A reader at the head of one session is served by the ring while many others
// are written.
func TestReaderAtTheHeadDoesNotReadTheJournal(t *testing.T) {
	for _, wholeHost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := openStore(t, journal.Options{})
			f := openFeed(t, s, feed.Options{})
			a, b := s.add(t, "a", 0, 5), s.add(t, "b", 0, 5)
			subs := []*feed.Subscription{f.Subscribe(feed.Session("a", 0))}
			if wholeHost {
				subs = append(subs, f.Subscribe(feed.Host(0)), f.Subscribe(feed.Events(0)))
			}
			poll := func() {
				for _, sub := range subs {
					if _, err := sub.Poll(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			synctest.Wait()
			poll()
			before := f.Stats().Reads
			for range 100 {
				a, b = s.add(t, "a", a, 2), s.add(t, "b", b, 7)
				synctest.Wait()
				poll()
			}
			if got := f.Stats().Reads - before; got != 0 {
				t.Errorf("whole host %v: readers at the head read the journal %d times, want 0", wholeHost, got)
			}
			for _, sub := range subs {
				if lag, err := sub.Lag(t.Context()); err != nil || lag != 0 {
					t.Errorf("whole host %v: lag %d, %v", wholeHost, lag, err)
				}
				sub.Close()
			}
		})
	}
}

// Field case 72: a reader that stops holds up nobody and holds nothing.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := feed.Options{RingFacts: 100, RingBytes: 10_000, PageBytes: 4_000}
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, o)
		framer := feed.NewFramer(f, func(r journal.Record) []byte {
			return append(bytes.Repeat([]byte{'x'}, 1000), plain(r)...)
		})
		head := s.add(t, "a", 0, 1)
		slow, fast := framer.Subscribe(feed.Session("a", 0)), framer.Subscribe(feed.Session("a", 0))
		defer slow.Close()
		defer fast.Close()
		count := func(sub *feed.Frames) int {
			frames, err := sub.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(frames) > o.PageBytes {
				t.Fatalf("a look gives %d bytes, want at most %d", len(frames), o.PageBytes)
			}
			return strings.Count(string(frames), "\n")
		}
		got := map[*feed.Frames]int{slow: count(slow), fast: count(fast)}
		for range 500 {
			head = s.add(t, "a", head, 2)
			synctest.Wait()
			for got[fast] < head {
				got[fast] += count(fast)
			}
			if stats := f.Stats(); stats.RingBytes > int64(o.RingBytes) {
				t.Fatalf("the ring holds %d bytes, want at most %d", stats.RingBytes, o.RingBytes)
			}
		}
		if lag, err := slow.Lag(t.Context()); err != nil || lag != 1000 || got[fast] != head {
			t.Fatalf("slow reader lags %d, %v, want 1000; fast reader got %d of %d", lag, err, got[fast], head)
		}
		for got[slow] < head {
			got[slow] += count(slow)
		}
	})
}

func TestRingsTogetherAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions, total = 50, 30_000
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{RingTotal: total})
		var subs []*feed.Subscription
		for i := range sessions {
			s.add(t, session(i), 0, 1)
			subs = append(subs, f.Subscribe(feed.Session(session(i), 1)))
			defer subs[i].Close()
		}
		for round := 1; round < 60; round += 2 {
			for i := range sessions {
				s.add(t, session(i), round, 2)
				synctest.Wait()
				if got := f.Stats().RingBytes; got > total {
					t.Fatalf("rings hold %d bytes, want at most %d", got, total)
				}
			}
			for _, sub := range subs {
				records, err := sub.Next(t.Context())
				wantSequences(t, "round", records, err, uint64(round+1), uint64(round+2))
			}
		}
	})
}

// measure gives how many bytes each of n things holds that do makes.
func measure(n int, do func()) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	do()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return (after.HeapInuse + after.StackInuse - before.HeapInuse - before.StackInuse) / uint64(n)
}

func TestIdleSubscriptionsAreCheap(t *testing.T) {
	const readers, limit = 10_000, 1 << 10
	s := openStore(t, journal.Options{})
	f := openFeed(t, s, feed.Options{})
	framer := feed.NewFramer(f, plain)
	for i := range readers {
		if i < 100 || i%100 == 0 {
			s.add(t, session(i), 0, 3)
		}
	}
	subs := make([]*feed.Frames, 0, readers)
	defer func() {
		for _, sub := range subs {
			sub.Close()
		}
	}()
	each := measure(readers, func() {
		for i := range readers {
			sub := framer.Subscribe(feed.Session(session(i%100), 0))
			if _, err := sub.Poll(t.Context()); err != nil {
				t.Fatal(err)
			}
			subs = append(subs, sub)
		}
	})
	t.Logf("an idle subscription holds %d bytes", each)
	if each > limit {
		t.Errorf("an idle subscription holds %d bytes, want at most %d", each, limit)
	}
	var waiting, ended sync.WaitGroup
	waiting.Add(readers)
	each = measure(readers, func() {
		for _, sub := range subs {
			ended.Go(func() {
				waiting.Done()
				if _, err := sub.Next(t.Context()); err == nil {
					t.Error("an idle reader got something")
				}
			})
		}
		waiting.Wait()
	})
	t.Logf("a goroutine that waits for it %d more", each)
	f.Close()
	ended.Wait()
}

// wakings counts who is woken, without looking.
func wakings(subs []*feed.Subscription) (woken int) {
	for _, sub := range subs {
		select {
		case <-sub.Wake():
			woken++
		default:
		}
	}
	return woken
}

// Readers of one session that do not look are woken for the first of many facts, and
// again, for all others at once, no later than after the longest rest.
func TestACrowdIsNotWokenForEachFact(t *testing.T) {
	for _, test := range []struct{ readers, atOnce int }{{10, 10}, {200, 0}} {
		synctest.Test(t, func(t *testing.T) {
			s := openStore(t, journal.Options{})
			f := openFeed(t, s, feed.Options{})
			head := s.add(t, "a", 0, 1)
			var subs []*feed.Subscription
			for range test.readers {
				sub := f.Subscribe(feed.Session("a", 0))
				defer sub.Close()
				if _, err := sub.Poll(t.Context()); err != nil {
					t.Fatal(err)
				}
				subs = append(subs, sub)
			}
			synctest.Wait()
			wakings(subs) // what the beginning of the ring gave
			steps := []struct {
				name string
				do   func()
				want int
			}{
				{"the first fact", func() { head = s.add(t, "a", head, 1) }, test.readers},
				{"the second, at once", func() { head = s.add(t, "a", head, 1) }, test.atOnce},
				{"the third, at once", func() { head = s.add(t, "a", head, 1) }, test.atOnce},
				{"a tenth of a second later", func() { time.Sleep(100 * time.Millisecond) }, test.readers - test.atOnce},
			}
			for _, step := range steps {
				step.do()
				synctest.Wait()
				if got := wakings(subs); got != step.want {
					t.Errorf("%d readers, %s: got %d woken, want %d", test.readers, step.name, got, step.want)
				}
			}
			records, err := subs[0].Poll(t.Context())
			wantSequences(t, "what gathered", records, err, 2, 3, 4)
		})
	}
}
