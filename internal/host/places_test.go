package host

import (
	"fmt"
	"math/rand"
	"slices"
	"sync"
	"testing"
)

// No more places are given than there are, whatever sessions do, and who waits is woken.
func TestPlacesProperty(t *testing.T) {
	for seed := range int64(300) {
		rng := rand.New(rand.NewSource(seed))
		var mu sync.Mutex
		woken := map[string]int{}
		n := 1 + rng.Intn(4)
		p := newPlaces(n, func(s string) {
			mu.Lock()
			defer mu.Unlock()
			woken[s]++
		})
		held := map[string]bool{}
		waits := []string{}
		for range 200 {
			s := fmt.Sprint(rng.Intn(8))
			switch rng.Intn(4) {
			case 0, 1:
				if held[s] {
					break
				}
				if p.take(s) {
					held[s] = true
					p.leave(s)
					waits = slices.DeleteFunc(waits, func(w string) bool { return w == s })
				} else {
					if !slices.Contains(waits, s) {
						waits = append(waits, s)
					}
					p.wait(s)
				}
			case 2:
				if held[s] {
					delete(held, s)
					p.give()
				}
			case 3:
				p.woken(s)
			}
			if len(held) > n {
				t.Fatalf("seed %d: %d of %d places are taken", seed, len(held), n)
			}
			for i, s := range waits[:min(len(waits), n-len(held))] {
				if woken[s] == 0 {
					t.Fatalf("seed %d: %s, %dth of %v, was not woken with %d of %d taken", seed, s, i, waits, len(held), n)
				}
			}
		}
		for s := range held {
			delete(held, s)
			p.give()
		}
		if p.free != n {
			t.Fatalf("seed %d: %d places are free at the end, want %d", seed, p.free, n)
		}
	}
}

func TestPlacesAfterForce(t *testing.T) {
	var woken []string
	p := newPlaces(1, func(s string) { woken = append(woken, s) })
	p.force()
	p.force() // two runs were active before the restart
	p.wait("a")
	p.give()
	if p.take("a") || len(woken) != 0 {
		t.Errorf("a place was given while one run too many is active: %v", woken)
	}
	p.give()
	if len(woken) != 1 || p.take("b") || !p.take("a") {
		t.Errorf("woken %v: the place is a's", woken)
	}
}
