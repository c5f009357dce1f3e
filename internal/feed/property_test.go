package feed_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/journal"
)

// Field case 9: whatever is appended while readers come, each of them gets what
// stands behind its cursor once, in order and without a hole, also when time
// passes between its registration and its first read, and with whatever caches.
func TestNoHoleAndNoRepeat(t *testing.T) {
	options := map[string]feed.Options{
		"default":          {},
		"no rings":         {RingFacts: -1},
		"tiny rings":       {RingFacts: 2, RingBytes: 64, PageBytes: 32},
		"no room for all":  {RingTotal: 1},
		"wakes everybody":  {MaxSpan: 1},
		"one fact a look":  {PageBytes: 1},
		"tiny and too far": {RingFacts: 3, MaxSpan: 4, RingTotal: 2000, PageBytes: 100},
	}
	for name, o := range options {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				for _, wholeHost := range []bool{false, true} {
					name := fmt.Sprintf("seed %d, whole host %v", seed, wholeHost)
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { newRace(t, o, seed, wholeHost).run() })
					})
				}
			}
		})
	}
}

const (
	raceSessions = 5
	raceFacts    = 150 // of each session
	raceReaders  = 200
)

// race is one run: writers append, readers come at any moment.
type race struct {
	t         *testing.T
	random    *rand.Rand
	store     *store
	feed      *feed.Feed
	framer    *feed.Framer
	wholeHost bool
}

func newRace(t *testing.T, o feed.Options, seed uint64, wholeHost bool) *race {
	s := openStore(t, journal.Options{})
	f := openFeed(t, s, o)
	return &race{
		t: t, random: rand.New(rand.NewPCG(seed, 9)), store: s, feed: f,
		framer: feed.NewFramer(f, plain), wholeHost: wholeHost,
	}
}

func (r *race) run() {
	s := r.store
	heads := make([]int, raceSessions)
	for i := range heads {
		heads[i] = s.add(r.t, session(i), 0, 20)
	}
	first := s.Durable()
	slow := slowReads()
	s.before.Store(&slow)
	s.after.Store(&slow)
	var wait sync.WaitGroup
	for i, head := range heads {
		random := rand.New(rand.NewPCG(r.random.Uint64(), uint64(i)))
		wait.Go(func() { r.write(session(i), head, random) })
	}
	for i := range raceReaders {
		random := rand.New(rand.NewPCG(r.random.Uint64(), uint64(i)))
		wait.Go(func() { r.read(random, first) })
	}
	wait.Wait()
}

// slowReads lets time pass before and after half of the reads: between
// registering and reading, between two pages, and between reading and telling.
func slowReads() func(journal.Order) error {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	return func(journal.Order) error {
		mu.Lock()
		delay := time.Duration(random.IntN(60)-30) * time.Millisecond
		mu.Unlock()
		if delay > 0 {
			<-time.After(delay)
		}
		return nil
	}
}

func pause(random *rand.Rand, below time.Duration) {
	<-time.After(time.Duration(random.Int64N(int64(below))))
}

func (r *race) write(session string, head int, random *rand.Rand) {
	for head < raceFacts {
		facts := min(1+random.IntN(8), raceFacts-head)
		if err := r.store.append(session, head, facts); err != nil {
			r.t.Errorf("append to %s: %v", session, err)
			return
		}
		head += facts
		pause(random, 20*time.Millisecond)
	}
}

// read follows something from a random cursor to its end, at a random pace.
func (r *race) read(random *rand.Rand, first journal.Mark) {
	pause(random, 300*time.Millisecond)
	slow := time.Millisecond
	if random.IntN(4) == 0 {
		slow = 100 * time.Millisecond
	}
	kind := random.IntN(4)
	if !r.wholeHost {
		kind = random.IntN(2)
	}
	name, after := session(random.IntN(raceSessions)), uint64(random.IntN(raceFacts))
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var err error
	switch kind {
	case 0:
		err = r.readFrames(ctx, name, after, func() { pause(random, slow) })
	case 1:
		err = r.readSession(ctx, name, after, func() { pause(random, slow) })
	case 2:
		err = r.readHost(ctx, uint64(random.Int64N(int64(first.Offset))), func() { pause(random, slow) })
	case 3:
		all := first.Event - r.store.Identity().FirstEvent
		err = r.readEvents(ctx, first.Event-uint64(random.Int64N(int64(all))), func() { pause(random, slow) })
	}
	if err != nil {
		r.t.Errorf("kind %d, session %s, after %d: %v", kind, name, after, err)
	}
}

func (r *race) readSession(ctx context.Context, session string, after uint64, pause func()) error {
	sub := r.feed.Subscribe(feed.Session(session, after))
	defer sub.Close()
	for after < raceFacts {
		records, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		for _, record := range records {
			if record.Session != session || record.Sequence != after+1 {
				return fmt.Errorf("got %s %d, want %s %d", record.Session, record.Sequence, session, after+1)
			}
			after++
		}
		pause()
	}
	return r.nothingMore(ctx, sub.Poll)
}

func (r *race) nothingMore(ctx context.Context, poll func(context.Context) ([]journal.Record, error)) error {
	if records, err := poll(ctx); err != nil || len(records) > 0 {
		return fmt.Errorf("behind the end: %v, %w", sequences(records), err)
	}
	return nil
}

func (r *race) readFrames(ctx context.Context, session string, after uint64, pause func()) error {
	sub := r.framer.Subscribe(feed.Session(session, after))
	defer sub.Close()
	for after < raceFacts {
		frames, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		for frame := range bytes.Lines(frames) {
			if want := fmt.Sprintf("%s/%d\n", session, after+1); string(frame) != want {
				return fmt.Errorf("got frame %q, want %q", frame, want)
			}
			after++
		}
		if got := sub.Position(); got != after {
			return fmt.Errorf("position %d after the frame of %d", got, after)
		}
		pause()
	}
	return nil
}

func (r *race) readHost(ctx context.Context, after uint64, pause func()) error {
	sub := r.feed.Subscribe(feed.Host(after))
	defer sub.Close()
	seen := map[string]uint64{}
	for after < raceSessions*raceFacts {
		records, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		for _, record := range records {
			if record.Offset != after+1 {
				return fmt.Errorf("got offset %d, want %d", record.Offset, after+1)
			}
			if last := seen[record.Session]; last > 0 && record.Sequence != last+1 {
				return fmt.Errorf("got %s %d after %d", record.Session, record.Sequence, last)
			}
			seen[record.Session] = record.Sequence
			after++
		}
		pause()
	}
	return r.nothingMore(ctx, sub.Poll)
}

func (r *race) readEvents(ctx context.Context, after uint64, pause func()) error {
	sub := r.feed.Subscribe(feed.Events(after))
	defer sub.Close()
	last := r.store.Identity().FirstEvent + 2*raceSessions*raceFacts - 1
	for after < last {
		records, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		for _, record := range records {
			// The first fact may straddle the cursor.
			if record.FirstEvent != after+1 && record.FirstEvent != after {
				return fmt.Errorf("got event %d, want %d", record.FirstEvent, after+1)
			}
			after = record.FirstEvent + 1
		}
		pause()
	}
	return r.nothingMore(ctx, sub.Poll)
}

// Field case 89: what a reader is given is there for every other way of reading,
// and a commit that fails gives nothing.
func TestWhatIsGivenIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(89, 0))
		failed := false
		s := openStore(t, journal.Options{Fault: func(stage journal.Stage, _ journal.Group) error {
			if failed = stage == journal.StageBuilt && random.IntN(100) == 0; failed {
				return fmt.Errorf("not this one")
			}
			return nil
		}})
		f := openFeed(t, s, feed.Options{})
		const facts = 2000
		appended := make(chan int)
		go func() {
			head := 0
			for head < facts {
				if s.append("a", head, 1) == nil {
					head++
				}
				if head == 1 {
					select {
					case appended <- head:
					default:
					}
				}
			}
			close(appended)
		}()
		<-appended
		sub := feed.NewFramer(f, plain).Subscribe(feed.Session("a", 0))
		defer sub.Close()
		given := 0
		for given < facts {
			frames, err := sub.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(frames)) {
				given++
				number := strings.TrimSuffix(strings.TrimPrefix(line, "a/"), "\n")
				if number != strconv.Itoa(given) {
					t.Fatalf("got %q, want a/%d", line, given)
				}
				if _, err := s.Find(t.Context(), "a", number+".abcdefgh"); err != nil {
					t.Fatalf("find what was given: %v", err)
				}
			}
		}
		if head, err := s.Head(t.Context(), "a"); err != nil || head.Sequence != uint64(given) {
			t.Errorf("given %d facts, head %d, %v", given, head.Sequence, err)
		}
	})
}
