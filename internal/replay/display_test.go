package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/narad/session"
)

// shown gives all that a session displays.
func shown(t testing.TB, r *Replay, sessionID string) string {
	t.Helper()
	var text string
	err := r.Display(t.Context(), sessionID, func(s State) error {
		text = displayText(s)
		return nil
	})
	if err != nil {
		t.Errorf("display %q: %v", sessionID, err)
	}
	return text
}

func TestDisplayIsTheWholeState(t *testing.T) {
	for seed := range int64(3) {
		encoded := history(t, seed, 300)
		s := openStore(t)
		r := New(s, Options{})
		for at, step := 0, 0; at < len(encoded); at += step {
			step = min(37, len(encoded)-at)
			s.add(t, testSession, encoded[at:at+step])
			before := s.records.Load()
			if got, want := shown(t, r, testSession), displayText(fold(t, session.Options{}, encoded[:at+step])); got != want {
				t.Fatalf("seed %d: at %d: got\n%s\nwant\n%s", seed, at+step, got, want)
			}
			if got := s.records.Load() - before; got != int64(step) {
				t.Errorf("seed %d: %d new facts, %d read", seed, step, got)
			}
		}
	}
}

func TestErrorOfTheReaderComesBack(t *testing.T) {
	s := openStore(t)
	s.add(t, testSession, postures(t, testSession, 1, 3))
	r := New(s, Options{})
	want := errors.New("the reader's own")
	if err := r.Display(t.Context(), testSession, func(State) error { return want }); err != want {
		t.Errorf("got %v, want %v", err, want)
	}
	if got, want := shown(t, r, testSession), displayText(fold(t, session.Options{}, postures(t, testSession, 1, 3))); got != want {
		t.Errorf("afterwards: got\n%s\nwant\n%s", got, want)
	}
}

func TestDisplaysAreBounded(t *testing.T) {
	const sessions, each = 10, 20
	s := openStore(t)
	size := 0
	for i := range sessions {
		encoded := postures(t, name(i), 1, each)
		s.add(t, name(i), encoded)
		for _, bytes := range encoded {
			size = max(size, len(bytes)*each)
		}
	}
	tests := []struct {
		name    string
		options Options
		kept    int
	}{
		{"by count", Options{Displays: 3}, 3},
		{"by bytes", Options{DisplayBytes: 4*size + each}, 4},
		{"too large for any", Options{DisplayBytes: size / 2}, 0},
		{"room for all", Options{}, sessions},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := New(s, test.options)
			read := func(i int) int64 {
				before := s.records.Load()
				shown(t, r, name(i))
				return s.records.Load() - before
			}
			for i := range sessions {
				if got := read(i); got != each {
					t.Errorf("first look at %s: %d facts read, want %d", name(i), got, each)
				}
			}
			for i := sessions - 1; i >= sessions-test.kept; i-- {
				if got := read(i); got != 0 {
					t.Errorf("%s was used lately: %d facts read, want 0", name(i), got)
				}
			}
			if test.kept == sessions {
				return
			}
			if got := read(0); got != each {
				t.Errorf("%s was used long ago: %d facts read, want %d", name(0), got, each)
			}
			if r.displays.order.Len() > test.kept || r.displays.bytes > r.displays.maxBytes {
				t.Errorf("%d states with %d bytes are kept", r.displays.order.Len(), r.displays.bytes)
			}
		})
	}
}

func name(i int) string { return fmt.Sprintf("d-%d", i) }

// Readers of few and of many sessions at once, while facts come and states are
// put out: each sees the facts up to some sequence, never fewer than before.
func TestConcurrentReaders(t *testing.T) {
	const sessions, facts, readers = 6, 60, 8
	s := openStore(t)
	encoded := map[string][][]byte{}
	for i := range sessions {
		encoded[name(i)] = postures(t, name(i), 1, facts)
		s.add(t, name(i), encoded[name(i)][:1])
	}
	r := New(s, Options{Displays: 3})
	var wait sync.WaitGroup
	for i := range sessions {
		wait.Go(func() {
			for at := 1; at < facts; at++ {
				s.add(t, name(i), encoded[name(i)][at:at+1])
			}
		})
	}
	for reader := range readers {
		wait.Go(func() {
			seen := map[string]uint64{}
			for round := range 100 {
				id := name((reader + round) % sessions)
				err := r.Display(t.Context(), id, func(state State) error {
					snapshot := state.Session.Snapshot()
					if at := uint64(snapshot.LastSessionSequence); at < seen[id] {
						return fmt.Errorf("sequence %d after %d", at, seen[id])
					}
					seen[id] = state.Sequence()
					return nil
				})
				if err != nil {
					t.Errorf("display %s: %v", id, err)
				}
			}
		})
	}
	wait.Wait()
}

func TestReaderNeedNotWaitForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t)
		s.add(t, testSession, postures(t, testSession, 1, 3))
		s.add(t, "other", postures(t, "other", 1, 3))
		r := New(s, Options{})
		release, ended := make(chan struct{}), make(chan error)
		go func() {
			ended <- r.Display(t.Context(), testSession, func(State) error {
				<-release
				return nil
			})
		}()
		synctest.Wait()
		shown(t, r, "other")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- r.Display(ctx, testSession, func(State) error { return nil }) }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("a reader that gave up: got %v", err)
		}
		close(release)
		if err := <-ended; err != nil {
			t.Errorf("the reader that was first: %v", err)
		}
	})
}

// A reader that gives up in the midst leaves what it has applied to the next one.
func TestInterruptedDisplayGoesOn(t *testing.T) {
	const facts = 3000
	s := openStore(t)
	s.add(t, testSession, postures(t, testSession, 1, facts))
	r := New(s, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	pages := 0
	s.onRead = func() error {
		if pages++; pages == 3 {
			cancel()
		}
		return nil
	}
	err := r.Display(ctx, testSession, func(State) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
	before := s.records.Load()
	if before != 2000 {
		t.Fatalf("%d facts were read, want 2000", before)
	}
	shown(t, r, testSession)
	if got := s.records.Load() - before; got != facts-before {
		t.Errorf("%d facts read, want %d", got, facts-before)
	}
}
