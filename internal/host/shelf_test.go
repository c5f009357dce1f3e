package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/mahati-host/mahati/internal/blob"
	"github.com/mahati-host/mahati/internal/journal"
)

// openShelf is a shelf over a journal in memory.
func openShelf(t *testing.T) *shelf {
	t.Helper()
	j, err := journal.NewMemory(journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := blob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(store.Close(), j.Close()); err != nil {
			t.Error(err)
		}
	})
	return newShelf(store, j)
}

// name lets a session name a content.
func (s *shelf) name(t *testing.T, session, id string, d blob.Digest) {
	t.Helper()
	_, err := s.journal.Append(t.Context(), journal.Batch{Session: session, Changes: []journal.Change{
		journal.Put{Row: journal.MaterialRow{Session: session, Space: Artifacts, ID: id, Digest: d.String()}},
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// What a row names or somebody has pinned stays, all else goes.
func TestSweep(t *testing.T) {
	s := openShelf(t)
	put := func(text string) kept {
		k, err := s.put(bytes.NewReader([]byte(text)), 100)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	named, pinned, orphan := put("named"), put("pinned"), put("orphan")
	s.name(t, "s", "a", named.Digest)
	named.release()
	orphan.release()
	if n, err := s.sweep(t.Context()); n != 1 || err != nil {
		t.Errorf("swept %d, %v, want 1", n, err)
	}
	for _, k := range []kept{named, pinned} {
		if err := s.store.Verify(k.Digest); err != nil {
			t.Error(err)
		}
	}
	if err := s.store.Verify(orphan.Digest); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("the orphan: %v, want that it is gone", err)
	}
	pinned.release()
	pinned.release() // again does nothing
	if n, err := s.sweep(t.Context()); n != 1 || err != nil {
		t.Errorf("swept %d, %v, want 1", n, err)
	}
	broken, cancel := context.WithCancel(t.Context())
	cancel()
	put("kept when nobody can tell").release()
	if n, err := s.sweep(broken); n != 0 || err == nil {
		t.Errorf("swept %d, %v, want nothing and an error", n, err)
	}
}

// Few contents are put, named and swept by many at once: what is named at the end of a put
// is there ever after.
func TestSweepBesidePuts(t *testing.T) {
	s := openShelf(t)
	var writers, sweeper sync.WaitGroup
	stop := make(chan struct{})
	sweeper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.sweep(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	for w := range 6 {
		writers.Go(func() {
			for i := range 40 {
				k, err := s.put(bytes.NewReader([]byte(fmt.Sprint("content ", i%8, w%3))), 100)
				if err != nil {
					t.Error(err)
					return
				}
				if i%2 == w%2 {
					s.name(t, fmt.Sprint("s", w), fmt.Sprint(i), k.Digest)
					k.release()
					if err := s.store.Verify(k.Digest); err != nil {
						t.Errorf("named and gone: %v", err)
					}
					continue
				}
				k.release()
			}
		})
	}
	writers.Wait()
	close(stop)
	sweeper.Wait()
	for row, err := range journal.Each[journal.MaterialRow](t.Context(), s.journal, journal.Materials{}, func(d journal.Damage) { t.Error(d.Err()) }) {
		if err != nil {
			t.Fatal(err)
		}
		d, err := blob.ParseDigest(row.Digest)
		if err = errors.Join(err, s.store.Verify(d)); err != nil {
			t.Error(err)
		}
	}
}

// What a row that cannot be read names is not known: nothing is removed.
func TestSweepRemovesNothingBesideDamage(t *testing.T) {
	s := openShelf(t)
	var digests []blob.Digest
	for _, text := range []string{"of a lost row", "orphan"} {
		k, err := s.put(bytes.NewReader([]byte(text)), 100)
		if err != nil {
			t.Fatal(err)
		}
		k.release()
		digests = append(digests, k.Digest)
	}
	s.name(t, "s", "a", digests[0])
	s.name(t, "t", "b", digests[0])
	s.journal.(*journal.Memory).Damage(journal.MaterialKey("t", Artifacts, "b"))
	if n, err := s.sweep(t.Context()); n != 0 || !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("swept %d, %v, want none, and the damage", n, err)
	}
	for _, d := range digests {
		if err := s.store.Verify(d); err != nil {
			t.Errorf("%s: %v", d, err)
		}
	}
}
