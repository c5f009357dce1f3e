package sessiontest

import (
	"math/rand"
	"testing"

	"github.com/mahati-host/mahati/narad"
)

// mayStand are the answers to a line of a valid trace: what is no fact may be none of
// a reducer's business, and what comes twice is taken once.
var mayStand = map[Verdict]bool{
	applied: true, duplicate: true, control: true,
	ignored("snapshot_unchanged"): true, ignored("profile_not_negotiated"): true,
}

func TestTracesAreValid(t *testing.T) {
	types := map[string]int{}
	for seed := range int64(300) {
		trace := Trace(rand.New(rand.NewSource(seed)), 80)
		m := NewModel(true, 0, "")
		for i, line := range trace {
			if got := m.Apply(line); !mayStand[got] {
				t.Fatalf("seed %d, line %d: got %v, want it applied\n%s", seed, i+1, got, line)
			}
			r, err := narad.DecodeStrict(line)
			if err != nil {
				t.Fatalf("seed %d, line %d: %v\n%s", seed, i+1, err, line)
			}
			types[string(r.Type())]++
		}
	}
	for _, kind := range narad.Types() {
		if types[string(kind)] == 0 && kind != narad.TypeClientAttached && kind != narad.TypeClientToolExecute {
			t.Errorf("no trace has a %s", kind)
		}
	}
}

func TestTracesAreRepeatable(t *testing.T) {
	for name, trace := range map[string]func(*rand.Rand) [][]byte{
		"Trace":  func(r *rand.Rand) [][]byte { return Trace(r, 200) },
		"Mutate": func(r *rand.Rand) [][]byte { return Mutate(r, Trace(r, 200)) },
		"Wild":   func(r *rand.Rand) [][]byte { return Wild(r, NewModel(true, 0, ""), 100) },
	} {
		one, two := trace(rand.New(rand.NewSource(7))), trace(rand.New(rand.NewSource(7)))
		if len(one) != len(two) {
			t.Fatalf("%s: %d lines, then %d", name, len(one), len(two))
		}
		for i := range one {
			if string(one[i]) != string(two[i]) {
				t.Fatalf("%s, line %d: one seed, two traces:\n%s\n%s", name, i+1, one[i], two[i])
			}
		}
	}
}
