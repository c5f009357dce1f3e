package pebble

import (
	"slices"
	"testing"

	"github.com/mahati-host/mahati/internal/journal"
)

// TestMarks pins what is written for spans: marks are few, and none is further
// from the next than readers count on.
func TestMarks(t *testing.T) {
	marks := map[string][]byte{}
	tracker := newTracker(1)
	add := func(sequence uint64, run string, number uint64) {
		r := &journal.Record{Fact: journal.Fact{RootRunID: run, RunSequence: number}, Sequence: sequence}
		tracker.observe(r, func(key, value []byte) { marks[string(key)] = value }, func(key []byte) { delete(marks, string(key)) })
	}
	sequence := uint64(0)
	for number := range uint64(600) {
		sequence += 2 // a session fact between
		add(sequence, "a", number+1)
	}
	add(1_201, "b", 1)
	add(1_202, "a", 601)

	type mark struct{ number, sequence uint64 }
	of := func(run string) (found []mark) {
		for key, value := range marks {
			prefix := markPrefix(1, span{spanRun, run})
			if len(key) == len(prefix)+8 && key[:len(prefix)] == string(prefix) {
				at, err := decodeMark(value)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, mark{numberAt([]byte(key), len(prefix)), at})
			}
		}
		slices.SortFunc(found, func(a, b mark) int { return int(a.sequence) - int(b.sequence) })
		return found
	}
	if got, want := of("a"), []mark{{1, 2}, {257, 514}, {513, 1_026}, {601, 1_202}}; !slices.Equal(got, want) {
		t.Errorf("marks of a: got %v, want %v", got, want)
	}
	if got, want := of("b"), []mark{{1, 1_201}, {lastMark, 1_202}}; !slices.Equal(got, want) {
		t.Errorf("marks of b: got %v, want %v", got, want)
	}
	current, err := decodeCurrents(marks[string(keyOf(tagCurrent, 1))])
	if err != nil || current != (currents{"a"}) {
		t.Errorf("current spans: got %v, %v; want a", current, err)
	}
	if want := 7; len(marks) != want {
		t.Errorf("%d keys for 602 facts of two runs, want %d", len(marks), want)
	}
}
