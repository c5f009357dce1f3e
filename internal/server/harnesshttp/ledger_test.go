package harnesshttp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
)

// Whatever is granted and spent, in any order and however often a grant is told, no more is
// spent than was granted, and all of it can be.
func TestLedgerAddsUp(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		initial := uint32(random.IntN(5))
		l, granted, spent := newLedger(initial), uint64(initial), uint64(0)
		told := map[string]uint32{}
		for range 300 {
			id, credit := strconv.Itoa(random.IntN(40)), uint32(1+random.IntN(9))
			if before, again := told[id]; again && random.IntN(3) > 0 {
				credit = before
			}
			before, again := told[id]
			repeated, err := l.grant(id, credit)
			switch {
			case again && before != credit:
				if !errors.Is(err, errGrantConflict) {
					t.Fatalf("seed %d: grant %s of %d after %d: %v", seed, id, credit, before, err)
				}
			case err != nil || repeated != again:
				t.Fatalf("seed %d: grant %s: repeated %v, %v", seed, id, repeated, err)
			case !again:
				told[id] = credit
				granted += uint64(credit)
			}
			want := random.IntN(12)
			n := l.spend(want)
			if n > want {
				t.Fatalf("seed %d: spent %d, asked for %d", seed, n, want)
			}
			if spent += uint64(n); spent > granted || n < want && spent != granted {
				t.Fatalf("seed %d: spent %d of %d", seed, spent, granted)
			}
			if l.credit() != granted-spent {
				t.Fatalf("seed %d: %d are left, want %d", seed, l.credit(), granted-spent)
			}
		}
	}
}

func TestLedgerIsBounded(t *testing.T) {
	l := newLedger(maxCredit)
	if _, err := l.grant("a", 1); !errors.Is(err, errCreditExceeded) || l.knows("a") || l.credit() != maxCredit {
		t.Errorf("one more than the most: %v, %d left", err, l.credit())
	}
	if n := l.spend(-1); n != 0 {
		t.Errorf("spent %d of less than nothing", n)
	}
	l.spend(2 * maxGrants)
	for i := range 2 * maxGrants {
		if _, err := l.grant(fmt.Sprint(i), 1); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.grants) != maxGrants || len(l.order) != maxGrants || l.knows("0") || !l.knows(fmt.Sprint(2*maxGrants-1)) {
		t.Errorf("%d grants are remembered", len(l.grants))
	}
}

// Whoever waits without credit is woken by a grant, whenever that comes.
func TestLedgerWakes(t *testing.T) {
	l := newLedger(0)
	var granting sync.WaitGroup
	for i := range 100 {
		granting.Go(func() { _, _ = l.grant(fmt.Sprint(i), 1) })
	}
	for spent := 0; spent < 100; {
		if n := l.spend(100); n > 0 {
			spent += n
			continue
		}
		<-l.granted
	}
	granting.Wait()
}
