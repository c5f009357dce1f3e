package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad/session"
)

var control = session.Options{NoDisplay: true}

func TestAnySnapshotAndTheRestGiveTheWhole(t *testing.T) {
	for seed := range int64(3) {
		encoded := history(t, seed, 120)
		want := controlText(fold(t, control, encoded))
		before := fold(t, control, nil)
		for at := range len(encoded) + 1 {
			if at > 0 {
				applyAll(t, before, at, encoded[at-1:at])
			}
			snapshot := journal.Snapshot{Sequence: uint64(at), Bytes: encode(before)}
			state, err := decode(testSession, snapshot)
			if err != nil {
				t.Fatalf("seed %d: decode the snapshot at %d: %v", seed, at, err)
			}
			if got, want := controlText(state), controlText(before); got != want {
				t.Fatalf("seed %d: the snapshot at %d reads back as\n%s\nwant\n%s", seed, at, got, want)
			}
			applyAll(t, state, at+1, encoded[at:])
			if got := controlText(state); got != want {
				t.Fatalf("seed %d: the snapshot at %d and the rest give\n%s\nwant\n%s", seed, at, got, want)
			}
		}
	}
}

// Whatever snapshots there are, and whatever is dropped at any moment, a state at
// a sequence is that of its facts.
func TestStatesDoNotDependOnSnapshots(t *testing.T) {
	for seed := range int64(2) {
		random := rand.New(rand.NewSource(seed))
		encoded := history(t, seed+100, 400)
		s := openStore(t)
		s.add(t, testSession, encoded)
		want := controlTexts(t, encoded)
		r := New(s, Options{Every: 10})
		for range 100 {
			at := uint64(random.Intn(len(encoded) + 1))
			got, err := r.At(t.Context(), testSession, at)
			if err != nil {
				t.Fatalf("seed %d: at %d: %v", seed, at, err)
			}
			if got := controlText(got.State); got != want[at] {
				t.Fatalf("seed %d: at %d: got\n%s\nwant\n%s", seed, at, got, want[at])
			}
			if random.Intn(4) == 0 {
				below := uint64(random.Intn(len(encoded)))
				if err := s.DropSnapshots(t.Context(), testSession, below); err != nil {
					t.Fatal(err)
				}
			}
		}
		opened, err := r.Open(t.Context(), testSession)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := controlText(opened.State), want[len(encoded)]; got != want {
			t.Errorf("seed %d: open: got\n%s\nwant\n%s", seed, got, want)
		}
	}
}

func TestUnreadableSnapshotIsDroppedAndMadeAnew(t *testing.T) {
	const facts = 100
	encoded := history(t, 7, facts)
	whole := fold(t, control, encoded)
	good := encode(whole)
	foreign := append([]byte{snapshotVersion + 1}, good[1:]...)
	other := encode(fold(t, control, encoded[:50]))
	broken := map[string][]byte{
		"empty": {}, "short": good[:3], "cut": good[:len(good)-1], "longer": append(good[:len(good):len(good)], 'x'),
		"foreign version": foreign, "of another sequence": other,
	}
	for at := 0; at < len(good); at += 1 + len(good)/50 {
		flipped := append([]byte(nil), good...)
		flipped[at] ^= 0x40
		broken[fmt.Sprintf("byte %d of %d", at, len(good))] = flipped
	}
	for name, bytes := range broken {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			s.add(t, testSession, encoded)
			last := uint64(len(encoded))
			for _, snapshot := range []journal.Snapshot{{Sequence: 50, Bytes: other}, {Sequence: last, Bytes: bytes}} {
				if err := s.PutSnapshot(t.Context(), testSession, snapshot); err != nil {
					t.Fatal(err)
				}
			}
			r := New(s, Options{Every: 20})
			opened, err := r.Open(t.Context(), testSession)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := controlText(opened.State), controlText(whole); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			stored, err := s.Snapshot(t.Context(), testSession, last)
			if err != nil || string(stored.Bytes) != string(good) {
				t.Errorf("the snapshot was not made anew: %v\ngot  %q\nwant %q", err, stored.Bytes, good)
			}
			before := s.records.Load()
			if _, err := r.Open(t.Context(), testSession); err != nil {
				t.Fatal(err)
			}
			if got := s.records.Load() - before; got != 0 {
				t.Errorf("opened again: %d facts read, want 0", got)
			}
		})
	}
}

func TestSnapshotOfAnotherSession(t *testing.T) {
	if _, err := decode("other", journal.Snapshot{Sequence: 0, Bytes: encode(Empty(testSession).State)}); !errors.Is(err, errSnapshot) {
		t.Errorf("got error %v, want %v", err, errSnapshot)
	}
}

// What opening costs follows from the snapshots, not from the session's length.
func TestOpeningALongSession(t *testing.T) {
	const facts, behind = 100_000, 300
	s := openStore(t)
	s.add(t, testSession, postures(t, testSession, 1, facts))
	r := New(s, Options{})
	if _, err := r.At(t.Context(), testSession, facts-behind); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		do   func() (*Control, error)
		want uint64
		max  int64
	}{
		{"open", func() (*Control, error) { return New(s, Options{}).Open(t.Context(), testSession) }, facts, behind},
		{"at the snapshot", func() (*Control, error) { return r.At(t.Context(), testSession, facts-behind) }, facts - behind, 1},
		{"behind the snapshot", func() (*Control, error) { return r.At(t.Context(), testSession, facts-200) }, facts - 200, 100},
	} {
		reads, records := s.reads.Load(), s.records.Load()
		c, err := test.do()
		if err != nil || c.Sequence() != test.want {
			t.Fatalf("%s: got %v, %v, want sequence %d", test.name, c, err, test.want)
		}
		reads, records = s.reads.Load()-reads, s.records.Load()-records
		if reads > 1 || records > test.max {
			t.Errorf("%s: %d facts in %d reads, want at most %d in 1", test.name, records, reads, test.max)
		}
	}
}

// An owner that works leaves a snapshot every so many facts, and one when it ends
// if that spares its successor something.
func TestSaveKeepsASnapshotNowAndThen(t *testing.T) {
	const every, batch = 64, 5
	encoded := postures(t, testSession, 1, 1000)
	s := openStore(t)
	s.add(t, testSession, encoded)
	r := New(s, Options{Every: every})
	c := Empty(testSession)
	for at := 0; at < len(encoded); at += batch {
		applyAll(t, c.State, at+1, encoded[at:at+batch])
		r.Save(t.Context(), testSession, c)
	}
	if got, least, most := s.puts.Load(), int64(len(encoded)/(every+batch)), int64(len(encoded)/every); got < least || got > most {
		t.Errorf("%d snapshots of %d facts, want %d to %d", got, len(encoded), least, most)
	}
	more := postures(t, testSession, 1001, every)
	s.add(t, testSession, more)
	left := func(facts int) int64 {
		c, err := r.Open(t.Context(), testSession)
		if err != nil {
			t.Fatal(err)
		}
		puts := s.puts.Load()
		c.saved = c.Sequence() - uint64(facts)
		r.Leave(t.Context(), testSession, c)
		r.Leave(t.Context(), testSession, c)
		return s.puts.Load() - puts
	}
	for facts, want := range map[int]int64{0: 0, every/8 - 1: 0, every / 8: 1, every: 1} {
		if got := left(facts); got != want {
			t.Errorf("an owner ends %d facts after the snapshot and keeps %d, want %d", facts, got, want)
		}
	}
}

// A state ahead of the disk is not kept, and that is no error.
func TestSaveAheadOfTheDisk(t *testing.T) {
	s := openStore(t)
	encoded := postures(t, testSession, 1, 20)
	s.add(t, testSession, encoded[:10])
	r := New(s, Options{Every: 5})
	c := Empty(testSession)
	applyAll(t, c.State, 1, encoded)
	r.Save(t.Context(), testSession, c)
	opened, err := r.Open(t.Context(), testSession)
	if err != nil || opened.Sequence() != 10 {
		t.Errorf("got %v, %v, want sequence 10", opened, err)
	}
}

func TestSequencesThatAreNotThere(t *testing.T) {
	s := openStore(t)
	s.add(t, testSession, postures(t, testSession, 1, 10))
	r := New(s, Options{})
	if c, err := r.At(t.Context(), testSession, 0); err != nil || c.Sequence() != 0 {
		t.Errorf("at 0: got %v, %v", c, err)
	}
	if _, err := r.At(t.Context(), testSession, 11); !errors.Is(err, ErrAhead) {
		t.Errorf("at 11 of 10: got %v, want %v", err, ErrAhead)
	}
	gone := openStore(t)
	gone.add(t, testSession, postures(t, testSession, 1, 10))
	if err := gone.Delete(t.Context(), journal.Deletion{Session: testSession, ExpectHead: 10}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		store   *store
		session string
		want    error
	}{{s, "nobody", journal.ErrNotFound}, {gone, testSession, journal.ErrDeleted}} {
		r := New(test.store, Options{})
		for name, do := range everyWay(t, r, test.session) {
			if err := do(); !errors.Is(err, test.want) {
				t.Errorf("%s %q: got %v, want %v", name, test.session, err, test.want)
			}
		}
	}
}

// everyWay are the ways to a state of a session.
func everyWay(t *testing.T, r *Replay, sessionID string) map[string]func() error {
	return map[string]func() error{
		"open": func() error { _, err := r.Open(t.Context(), sessionID); return err },
		"at":   func() error { _, err := r.At(t.Context(), sessionID, 10); return err },
		"at 0": func() error { _, err := r.At(t.Context(), sessionID, 0); return err },
		"display": func() error {
			return r.Display(t.Context(), sessionID, func(State) error { return nil })
		},
	}
}

func TestDamage(t *testing.T) {
	sound := postures(t, testSession, 1, 10)
	damaged := map[string][]byte{
		"no JSON":                []byte("not a fact"),
		"another sequence":       sound[2],
		"not a fact":             []byte(`{"type":"server.heartbeat","protocolVersion":"narad/v1","serverTime":"2026-01-02T03:04:05.000Z"}`),
		"of another session":     postures(t, "other", 6, 1)[0],
		"must not stand there":   []byte(`{"type":"run.finished","protocolVersion":"narad/v1","eventId":"6.abcdefgh","timestamp":"2026-01-02T03:04:05.000Z","sessionId":"s-1","sessionSequence":6,"rootRunId":"r","runId":"r","sequence":1}`),
		"moves the cursor alone": []byte(`{"type":"run.finished","protocolVersion":"narad/v1","eventId":"6.abcdefgh","timestamp":"2026-01-02T03:04:05.000Z","sessionId":"s-1","sessionSequence":6,"rootRunId":"r","runId":"n","parentRunId":"r","sequence":1}`),
	}
	for name, bytes := range damaged {
		t.Run(name, func(t *testing.T) {
			encoded := append([][]byte(nil), sound...)
			encoded[5] = bytes
			s := openStore(t)
			s.add(t, testSession, encoded)
			r := New(s, Options{})
			for name, do := range everyWay(t, r, testSession) {
				if name == "at 0" {
					continue
				}
				for range 2 { // what was applied before is no better
					err := do()
					var damage *journal.DamagedError
					if !errors.Is(err, journal.ErrDamaged) || !errors.As(err, &damage) {
						t.Fatalf("%s: got %v, want %v", name, err, journal.ErrDamaged)
					}
					if damage.Session != testSession || damage.Sequence != 6 {
						t.Errorf("%s: got %q at %d, want %q at 6", name, damage.Session, damage.Sequence, testSession)
					}
				}
			}
			if c, err := r.At(t.Context(), testSession, 5); err != nil || c.Sequence() != 5 {
				t.Errorf("before the damage: got %v, %v, want sequence 5", c, err)
			}
		})
	}
}

// unreadable is a store that has a snapshot which it cannot read.
type unreadable struct{ *store }

func (unreadable) Snapshot(context.Context, string, uint64) (journal.Snapshot, error) {
	return journal.Snapshot{}, &journal.DamagedError{Session: testSession, Cause: errors.New("checksum")}
}

func TestSnapshotThatTheEngineCannotRead(t *testing.T) {
	s := openStore(t)
	s.add(t, testSession, postures(t, testSession, 1, 10))
	var log bytes.Buffer
	r := New(unreadable{s}, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if c, err := r.Open(t.Context(), testSession); err != nil || c.Sequence() != 10 {
		t.Errorf("got %v, %v, want the state that the facts give, at 10", c, err)
	}
	if !strings.Contains(log.String(), testSession) || !strings.Contains(log.String(), "checksum") {
		t.Errorf("the log says %q, want the session and the cause", log.String())
	}
}

func TestDamageOfTheEngine(t *testing.T) {
	s := openStore(t)
	s.add(t, testSession, postures(t, testSession, 1, 10))
	s.onRead = func() error {
		return fmt.Errorf("read: %w", &journal.DamagedError{Session: testSession, Sequence: 3, Cause: errors.New("checksum")})
	}
	for name, do := range everyWay(t, New(s, Options{}), testSession) {
		if err := do(); !errors.Is(err, journal.ErrDamaged) {
			t.Errorf("%s: got %v, want %v", name, err, journal.ErrDamaged)
		}
	}
}
