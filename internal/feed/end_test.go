package feed_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/journal"
)

// readers lets subscriptions of several kinds wait, and collects why they end.
func readers(t *testing.T, f *feed.Feed, places ...feed.Place) (ends func() []error) {
	t.Helper()
	var (
		mu   sync.Mutex
		errs []error
		wait sync.WaitGroup
	)
	framer := feed.NewFramer(f, plain)
	ended := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
	}
	for _, place := range places {
		wait.Go(func() {
			sub := f.Subscribe(place)
			defer sub.Close()
			for {
				if _, err := sub.Next(t.Context()); err != nil {
					ended(err)
					return
				}
			}
		})
		wait.Go(func() {
			sub := framer.Subscribe(place)
			defer sub.Close()
			for {
				if _, err := sub.Next(t.Context()); err != nil {
					ended(err)
					return
				}
			}
		})
	}
	return func() []error {
		wait.Wait()
		return errs
	}
}

func wantAll(t *testing.T, errs []error, count int, want error) {
	t.Helper()
	if len(errs) != count {
		t.Errorf("%d subscriptions ended, want %d", len(errs), count)
	}
	for _, err := range errs {
		if !errors.Is(err, want) {
			t.Errorf("a subscription ended with %v, want %v", err, want)
		}
	}
}

func TestDeletedSessionEndsItsSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		s.add(t, "a", 0, 3)
		b := s.add(t, "b", 0, 3)
		ends := readers(t, f, feed.Session("a", 0), feed.Session("a", 3))
		other, host := f.Subscribe(feed.Session("b", 3)), f.Subscribe(feed.Host(6))
		defer other.Close()
		defer host.Close()
		synctest.Wait()
		if err := s.Delete(t.Context(), journal.Deletion{Session: "a", ExpectHead: 3}); err != nil {
			t.Fatal(err)
		}
		f.Deleted("a")
		wantAll(t, ends(), 4, journal.ErrDeleted)

		late := f.Subscribe(feed.Session("a", 0))
		defer late.Close()
		_, err := late.Next(t.Context())
		wantError(t, "subscribe to a deleted session", err, journal.ErrDeleted)
		s.add(t, "b", b, 1)
		records, err := other.Next(t.Context())
		wantSequences(t, "another session", records, err, 4)
		records, err = host.Next(t.Context())
		wantSequences(t, "the host", records, err, 4)
	})
}

func TestRingsOfTheHostForgetADeletedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		head, slow := f.Subscribe(feed.Host(0)), f.Subscribe(feed.Host(0))
		defer head.Close()
		defer slow.Close()
		s.add(t, "a", 0, 2)
		s.add(t, "b", 0, 1)
		synctest.Wait()
		records, err := head.Poll(t.Context())
		wantSequences(t, "before", records, err, 1, 2, 1)
		if err := s.Delete(t.Context(), journal.Deletion{Session: "a", ExpectHead: 2}); err != nil {
			t.Fatal(err)
		}
		f.Deleted("a")
		records, err = slow.Poll(t.Context())
		wantSequences(t, "after the deletion of a", records, err, 1)
	})
}

func TestBrokenJournalEndsEverySubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := false
		s := openStore(t, journal.Options{Fault: func(stage journal.Stage, _ journal.Group) error {
			if fail && stage == journal.StageWritten {
				return errors.New("the disk is gone")
			}
			return nil
		}})
		f := openFeed(t, s, feed.Options{})
		head := s.add(t, "a", 0, 3)
		ends := readers(t, f, feed.Session("a", 0), feed.Host(0), feed.Events(0))
		synctest.Wait()
		fail = true
		if err := s.append("a", head, 1); !errors.Is(err, journal.ErrBroken) {
			t.Fatalf("append: %v", err)
		}
		wantAll(t, ends(), 6, journal.ErrBroken)
		late := f.Subscribe(feed.Session("a", 0))
		defer late.Close()
		_, err := late.Next(t.Context())
		wantError(t, "subscribe when broken", err, journal.ErrBroken)
	})
}

// The owner closes the feed first; this is what happens when it does not.
func TestClosedJournalEndsReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		s.add(t, "a", 0, 3)
		sub := f.Subscribe(feed.Session("a", 0))
		defer sub.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := sub.Next(t.Context())
		wantError(t, "next", err, journal.ErrClosed)
	})
}

func TestCloseEndsEverySubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		s.add(t, "a", 0, 3)
		ends := readers(t, f, feed.Session("a", 0), feed.Host(0), feed.Events(0))
		synctest.Wait()
		f.Close()
		f.Close()
		wantAll(t, ends(), 6, feed.ErrClosed)
		sub := f.Subscribe(feed.Session("a", 0))
		_, err := sub.Next(t.Context())
		wantError(t, "subscribe after Close", err, feed.ErrClosed)
		sub.Close()
		if got := f.Stats().Subscriptions; got != 0 {
			t.Errorf("%d subscriptions are left", got)
		}
		s.add(t, "a", 3, 1) // the journal goes on without it
	})
}

func TestSubscriptionClosedWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		s.add(t, "a", 0, 1)
		sub := f.Subscribe(feed.Session("a", 1))
		ended := make(chan error)
		go func() {
			_, err := sub.Next(t.Context())
			ended <- err
		}()
		synctest.Wait()
		sub.Close()
		sub.Close()
		wantError(t, "next", <-ended, feed.ErrClosed)
	})
}

func TestUnknownSession(t *testing.T) {
	s := openStore(t, journal.Options{})
	f := openFeed(t, s, feed.Options{})
	for _, place := range []feed.Place{feed.Session("nobody", 0), {}} {
		sub := f.Subscribe(place)
		defer sub.Close()
		_, err := sub.Next(t.Context())
		wantError(t, "next", err, journal.ErrNotFound)
		_, err = sub.Lag(t.Context())
		wantError(t, "lag", err, journal.ErrNotFound)
	}
}

func TestDamageEndsTheReaderThatMeetsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, journal.Options{})
		f := openFeed(t, s, feed.Options{})
		a, b := s.add(t, "a", 0, 1), s.add(t, "b", 0, 1)
		damaged, whole, host := f.Subscribe(feed.Session("a", 1)), f.Subscribe(feed.Session("b", 1)), f.Subscribe(feed.Host(2))
		for _, sub := range []*feed.Subscription{damaged, whole, host} {
			defer sub.Close()
			records, err := sub.Poll(t.Context())
			wantSequences(t, "at the head", records, err)
		}
		s.onRead(func(order journal.Order) error {
			if at, ok := order.(journal.BySession); ok && at.Session != "a" {
				return nil
			}
			return &journal.DamagedError{Session: "a", Sequence: 2, Cause: errors.New("checksum")}
		})
		s.add(t, "a", a, 1)
		s.add(t, "b", b, 1)
		for _, sub := range []*feed.Subscription{damaged, host} {
			_, err := sub.Next(t.Context())
			wantError(t, "a reader that meets it", err, journal.ErrDamaged)
		}
		records, err := whole.Next(t.Context())
		wantSequences(t, "a reader of another session", records, err, 2)
	})
}

// Field case 75: what is closed leaves nothing behind.
func TestClosedSubscriptionsLeaveNothing(t *testing.T) {
	s := openStore(t, journal.Options{})
	f := openFeed(t, s, feed.Options{})
	framer := feed.NewFramer(f, plain)
	heads := make([]int, 50)
	for i := range heads {
		heads[i] = s.add(t, session(i), 0, 10)
	}
	before := runtime.NumGoroutine()
	for i := range 5000 {
		place := feed.Session(session(i%len(heads)), uint64(i%12))
		if i%7 == 0 {
			place = feed.Host(uint64(i % 500))
		}
		if i%11 == 0 {
			place = feed.Session("nobody", 0)
		}
		sub, frames := f.Subscribe(place), framer.Subscribe(place)
		if i%3 > 0 { // some leave in the midst of reading, some before
			_, _ = sub.Poll(t.Context())
			_, _ = frames.Poll(t.Context())
		}
		if i%100 == 0 {
			heads[0] = s.add(t, session(0), heads[0], 1)
		}
		sub.Close()
		frames.Close()
	}
	stats := f.Stats()
	if stats.Subscriptions != 0 || stats.Topics != 0 || stats.RingBytes != 0 {
		t.Errorf("after 10,000 subscriptions were closed: %+v, want none, no topics and no bytes", stats)
	}
	if after := runtime.NumGoroutine(); after > before+10 { // a few are the runtime's own
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

func session(i int) string { return fmt.Sprintf("s%d", i) }
