package timer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/timer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a journal with timers, and an owner that removes what fires.
type bed struct {
	t       *testing.T
	journal *journal.Memory

	mu    sync.Mutex
	shift time.Duration // of the wall clock
	fired []string
	// refuse says what the owner answers instead of removing the row.
	refuse func(ctx context.Context, row journal.TimerRow) (dealt bool, err error)
}

func newBed(t *testing.T) *bed {
	memory, err := journal.NewMemory(journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	})
	return &bed{t: t, journal: memory}
}

// now is the wall clock of the bed.
func (b *bed) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Now().Add(b.shift)
}

func (b *bed) jump(by time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shift += by
}

// timers makes the timers of the bed; nothing is running yet.
func (b *bed) timers(o timer.Options) *timer.Timers {
	o.Now = b.now
	timers := timer.New(b.journal, b.fire, o)
	b.t.Cleanup(timers.Close)
	return timers
}

// set writes timers of a session that are due at one time.
func (b *bed) set(session string, due time.Time, ids ...string) {
	b.t.Helper()
	batch := journal.Batch{Session: session}
	for _, id := range ids {
		batch.Changes = append(batch.Changes, journal.Put{Row: journal.TimerRow{Session: session, ID: id, Due: due}})
	}
	b.append(batch)
}

func (b *bed) append(batch journal.Batch) {
	b.t.Helper()
	if _, err := b.journal.Append(context.Background(), batch); err != nil {
		b.t.Errorf("append: %v", err)
	}
}

func (b *bed) fire(ctx context.Context, row journal.TimerRow) error {
	b.mu.Lock()
	b.fired = append(b.fired, row.Session+"/"+row.ID)
	refuse := b.refuse
	b.mu.Unlock()
	if refuse != nil {
		if dealt, err := refuse(ctx, row); dealt || err != nil {
			return err
		}
	}
	b.append(journal.Batch{Session: row.Session, Changes: []journal.Change{journal.Remove{Key: row.Key()}}})
	return nil
}

// taken gives what fired since the last call.
func (b *bed) taken() []string {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	fired := b.fired
	b.fired = nil
	return fired
}

func (b *bed) want(when string, want ...string) {
	b.t.Helper()
	if got := b.taken(); !slices.Equal(got, want) {
		b.t.Errorf("%s: fired %q, want %q", when, got, want)
	}
}

func TestFiresWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.set("a", b.now().Add(5*time.Second), "five")
		b.set("b", b.now().Add(50*time.Second), "fifty")
		timers := b.timers(timer.Options{})
		timers.Start()
		b.want("at the start")
		time.Sleep(5*time.Second - time.Nanosecond)
		b.want("just before")
		time.Sleep(time.Nanosecond)
		b.want("at 5 s", "a/five")
		b.set("a", b.now().Add(2*time.Second), "sooner")
		timers.Changed()
		time.Sleep(2 * time.Second)
		b.want("at 7 s", "a/sooner")
		time.Sleep(43 * time.Second)
		b.want("at 50 s", "b/fifty")
		time.Sleep(time.Hour)
		b.want("later")
	})
}

// Without Changed a new timer is found at the next look.
func TestSleepsNoLongerThanMaxSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.timers(timer.Options{}).Start()
		synctest.Wait()
		b.set("a", b.now().Add(time.Second), "unannounced")
		time.Sleep(30 * time.Second)
		b.want("after 30 s", "a/unannounced")
	})
}

// Field case 102: the clock jumps.
func TestClockJumpsForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.set("a", b.now().Add(time.Hour), "in an hour")
		b.timers(timer.Options{}).Start()
		time.Sleep(time.Minute)
		b.want("before the jump")
		b.jump(time.Hour)
		time.Sleep(30 * time.Second)
		b.want("at most 30 s after the jump", "a/in an hour")
		time.Sleep(2 * time.Hour)
		b.want("later")
	})
}

func TestClockJumpsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.set("a", b.now().Add(10*time.Second), "soon")
		b.timers(timer.Options{}).Start()
		time.Sleep(5 * time.Second)
		b.jump(-time.Hour)
		time.Sleep(time.Hour)
		b.want("an hour later, by this clock 5 s before the time")
		time.Sleep(5 * time.Second)
		b.want("when this clock says so", "a/soon")
	})
}

func TestClockJumpsBackWhileATimerRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		var failing atomic.Bool
		failing.Store(true)
		b.refuse = func(context.Context, journal.TimerRow) (bool, error) {
			if failing.Load() {
				return false, errors.New("not now")
			}
			return false, nil
		}
		b.set("a", b.now().Add(-2*time.Hour), "overdue")
		b.timers(timer.Options{}).Start()
		b.want("at the start", "a/overdue")
		b.jump(-time.Hour)
		failing.Store(false)
		time.Sleep(30 * time.Second)
		b.want("soon after", "a/overdue")
	})
}

// Field case 33: what became due while nothing ran fires before anything else.
func TestRestartWithOverdueTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		first := b.timers(timer.Options{})
		first.Start()
		b.set("a", b.now().Add(3*time.Second), "late", "later")
		b.set("a", b.now().Add(2*time.Second), "earliest")
		b.set("b", b.now().Add(time.Hour), "not yet")
		first.Close()
		time.Sleep(10 * time.Second)
		b.want("nothing runs")

		second := b.timers(timer.Options{})
		outcome, err := second.FireOverdue(t.Context())
		if want := (timer.Outcome{Fired: 3}); err != nil || outcome != want {
			t.Errorf("got %+v, %v, want %+v", outcome, err, want)
		}
		b.want("when FireOverdue has returned", "a/earliest", "a/late", "a/later")
		second.Start()
		time.Sleep(time.Minute)
		b.want("once they were fired")
		time.Sleep(time.Hour)
		b.want("an hour later", "b/not yet")
	})
}

func TestThousandsWithTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions, each = 50, 60
		b := newBed(t)
		due := b.now().Add(time.Minute)
		want := map[string]int{}
		for i := range sessions {
			session := fmt.Sprintf("s%d", i)
			var ids []string
			for n := range each {
				id := fmt.Sprintf("t%02d", n)
				ids = append(ids, id)
				want[session+"/"+id]++
			}
			b.set(session, due, ids...)
		}
		b.timers(timer.Options{}).Start()
		time.Sleep(time.Minute)
		got := map[string]int{}
		for _, fired := range b.taken() {
			got[fired]++
		}
		if len(got) != len(want) {
			t.Errorf("%d timers fired, want %d", len(got), len(want))
		}
		for name, times := range got {
			if times != want[name] {
				t.Errorf("%s fired %d times, want once", name, times)
			}
		}
		time.Sleep(time.Hour)
		b.want("later")
	})
}

func TestDeletedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.set("a", b.now().Add(time.Minute), "one")
		b.set("b", b.now().Add(time.Minute), "two")
		b.timers(timer.Options{}).Start()
		synctest.Wait()
		if err := b.journal.Delete(t.Context(), journal.Deletion{Session: "a"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		b.want("when both were due", "b/two")
	})
}

func TestFailedTimersComeAgainAndDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		var healthy atomic.Bool
		b.refuse = func(_ context.Context, row journal.TimerRow) (bool, error) {
			if row.Session == "ill" && !healthy.Load() {
				return false, errors.New("not now")
			}
			return false, nil
		}
		b.set("ill", b.now(), "x")
		b.set("well", b.now().Add(10*time.Second), "y")
		b.timers(timer.Options{}).Start()
		b.want("at once", "ill/x")
		for _, wait := range []time.Duration{1, 2, 4} {
			time.Sleep(wait*time.Second - time.Nanosecond)
			b.want("before the next attempt")
			time.Sleep(time.Nanosecond)
			b.want("the next attempt", "ill/x")
		}
		time.Sleep(3 * time.Second)
		b.want("at 10 s", "well/y")
		time.Sleep(time.Hour)
		if got := len(b.taken()); got < 60 || got > 70 {
			t.Errorf("%d attempts in an hour, want about one a minute", got)
		}
		healthy.Store(true)
		time.Sleep(time.Minute)
		b.want("when the owner can", "ill/x")
		time.Sleep(time.Hour)
		b.want("later")
	})
}

// An owner that answers and leaves the row there is not asked without pause.
func TestTimerThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.refuse = func(context.Context, journal.TimerRow) (bool, error) { return true, nil }
		b.set("a", b.now(), "x")
		timers := b.timers(timer.Options{})
		timers.Start()
		b.want("at once", "a/x")
		for range 10 {
			timers.Changed()
			b.want("not again yet")
		}
		b.set("a", b.now(), "y")
		timers.Changed()
		b.want("another one", "a/y")
		b.set("a", b.now().Add(-time.Second), "x") // set anew with another time
		timers.Changed()
		b.want("a timer set anew", "a/x")
	})
}

func TestHangingTimerDelaysOthersByItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.refuse = func(ctx context.Context, row journal.TimerRow) (bool, error) {
			if row.Session != "hangs" {
				return false, nil
			}
			<-ctx.Done()
			return false, ctx.Err()
		}
		b.set("hangs", b.now(), "x")
		b.set("a", b.now(), "at once")
		b.set("a", b.now().Add(time.Second), "soon")
		b.timers(timer.Options{FireTimeout: 5 * time.Second}).Start()
		if got := b.taken(); len(got) != 2 {
			t.Errorf("at once: fired %q, want both that are due", got)
		}
		time.Sleep(5 * time.Second)
		b.want("when the other gave up", "a/soon")
	})
}

func TestCloseWhileATimerFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.refuse = func(ctx context.Context, row journal.TimerRow) (bool, error) {
			<-ctx.Done()
			return false, ctx.Err()
		}
		b.set("a", b.now(), "x", "y")
		timers := b.timers(timer.Options{})
		timers.Start()
		timers.Start()
		b.want("at once", "a/x")
		start := time.Now()
		timers.Close()
		timers.Close()
		if took := time.Since(start); took != 0 {
			t.Errorf("Close waited %v for a timer that hangs", took)
		}
		b.want("after Close")
		timers.Start()
		timers.Changed()
		time.Sleep(time.Hour)
		b.want("Start after Close")
	})
}

func TestFireOverdueReportsFailuresAndErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.refuse = func(_ context.Context, row journal.TimerRow) (bool, error) {
			if row.ID == "bad" {
				return false, errors.New("no")
			}
			return false, nil
		}
		b.set("a", b.now(), "bad", "good")
		timers := b.timers(timer.Options{})
		outcome, err := timers.FireOverdue(t.Context())
		if want := (timer.Outcome{Fired: 2, Failed: 1}); err != nil || outcome != want {
			t.Errorf("got %+v, %v, want %+v", outcome, err, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := timers.FireOverdue(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: got %v", err)
		}
		if err := b.journal.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := timers.FireOverdue(t.Context()); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("closed journal: got %v, want %v", err, journal.ErrClosed)
		}
		timers.Start() // ends by itself, and Close still joins
	})
}

// A timer whose row is lost fires in its turn, and delays no other.
func TestDamagedTimerFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		due := b.now().Add(5 * time.Second)
		b.set("a", due.Add(-time.Second), "first")
		b.set("a", due, "lost")
		b.set("a", due.Add(time.Second), "last")
		b.set("b", due, "other")
		b.journal.Damage(journal.TimerKey("a", "lost"))
		told := map[journal.Key]int{}
		timers := b.timers(timer.Options{Damaged: func(d journal.Damage) { told[d.Key]++ }})
		timers.Start()
		time.Sleep(4999 * time.Millisecond)
		b.want("just before", "a/first")
		time.Sleep(time.Millisecond)
		fired := b.taken()
		slices.Sort(fired) // those of two sessions fire at once
		if !slices.Equal(fired, []string{"a/lost", "b/other"}) {
			t.Errorf("at 5 s: fired %q, want the lost and the other", fired)
		}
		time.Sleep(time.Minute)
		b.want("later", "a/last")
		if len(told) != 1 || told[journal.TimerKey("a", "lost")] == 0 {
			t.Errorf("told of %v, want the lost one alone", told)
		}
	})
}

// What is due in one pass fires in the order of the due times, lost or not.
func TestDamagedTimerKeepsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		now := b.now()
		for i, id := range []string{"first", "lost", "last"} {
			b.set("a", now.Add(time.Duration(i-3)*time.Second), id)
		}
		b.journal.Damage(journal.TimerKey("a", "lost"))
		if outcome, err := b.timers(timer.Options{}).FireOverdue(t.Context()); err != nil || outcome.Fired != 3 {
			t.Errorf("got %+v, %v; want three fired", outcome, err)
		}
		b.want("overdue", "a/first", "a/lost", "a/last")
	})
}
