package feed

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/mahati-host/mahati/internal/journal"
)

func newTopic(o Options) *topic {
	o = o.withDefaults()
	return &topic{
		line: line{bySession, "a"}, options: &o, held: new(atomic.Int64), subscribers: map[*cursor]struct{}{},
	}
}

// facts makes the records of some sequences.
func facts(from, to uint64) []*journal.Record {
	var list []*journal.Record
	for sequence := from; sequence <= to; sequence++ {
		fact := journal.Fact{Bytes: fmt.Appendf(nil, "fact %03d", sequence)}
		list = append(list, &journal.Record{Fact: fact, Session: "a", Sequence: sequence})
	}
	return list
}

// shown is what a look at the ring tells, as text.
func shown(t *topic, after uint64) string {
	b, covered, _, err := t.waiting(&cursor{}, after)
	if err != nil || !covered {
		return fmt.Sprintf("not covered, error %v", err)
	}
	text := "covered:"
	for _, record := range b.records {
		text += fmt.Sprintf(" %d", record.Sequence)
	}
	return text
}

func TestRingCoversWhatItHasWholeAndNothingElse(t *testing.T) {
	const no = "not covered, error <nil>"
	tests := []struct {
		name string
		do   func(*topic)
		want map[uint64]string
	}{
		{"cold", func(*topic) {}, map[uint64]string{0: no, 5: no}},
		{"filled", func(x *topic) {
			x.fill(facts(5, 6))
		}, map[uint64]string{3: no, 4: "covered: 5 6", 5: "covered: 6", 6: "covered:", 7: no}},
		{"begun where the line ended", func(x *topic) {
			x.reached(4, 0)
		}, map[uint64]string{3: no, 4: "covered:", 5: no}},
		{"begun, then filled with what was known and more", func(x *topic) {
			x.reached(4, 0)
			x.fill(facts(2, 5))
		}, map[uint64]string{3: no, 4: "covered: 5", 5: "covered:"}},
		{"the end has moved since the reader looked", func(x *topic) {
			x.cool()
			x.reached(4, 0)
		}, map[uint64]string{4: no}},
		{"warm rings do not begin again", func(x *topic) {
			x.fill(facts(1, 2))
			x.reached(9, 1)
		}, map[uint64]string{0: "covered: 1 2", 2: "covered:", 9: no}},
		{"a hole", func(x *topic) {
			x.fill(facts(1, 2))
			x.fill(facts(4, 5))
		}, map[uint64]string{2: no, 3: "covered: 4 5"}},
		{"more than fits", func(x *topic) {
			x.fill(facts(1, 3))
			x.fill(facts(4, 5))
		}, map[uint64]string{1: no, 2: "covered: 3 4 5"}},
		{"trimmed", func(x *topic) {
			x.fill(facts(1, 3))
			x.trim()
		}, map[uint64]string{2: no, 3: "covered:"}},
		{"trimmed, then filled", func(x *topic) {
			x.fill(facts(1, 3))
			x.trim()
			x.fill(facts(4, 4))
		}, map[uint64]string{2: no, 3: "covered: 4"}},
		{"dropped", func(x *topic) {
			x.fill(facts(1, 3))
			x.cool()
		}, map[uint64]string{2: no, 3: no}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := newTopic(Options{RingFacts: 3})
			test.do(x)
			for after, want := range test.want {
				if got := shown(x, after); got != want {
					t.Errorf("behind %d: got %q, want %q", after, got, want)
				}
			}
			if got, want := x.held.Load(), int64(x.ring.bytes); got != want || want != int64(len(x.ring.entries)*(entrySize+8)) {
				t.Errorf("held %d bytes, the ring has %d in %d entries", got, want, len(x.ring.entries))
			}
		})
	}
}

// A reader may move a ring's end past facts of which others were not told.
func TestWhoeverWaitsIsWokenWhenARingBegins(t *testing.T) {
	x := newTopic(Options{})
	waiting := &cursor{slot: make(chan struct{}, 1)}
	x.join(waiting)
	x.reached(7, 0)
	if len(waiting.slot) != 1 {
		t.Error("the reader in front of the ring was not woken")
	}
}

// What a reader was given stays as it was, whatever is added behind it.
func TestFramesInTheHandsOfAReaderDoNotChange(t *testing.T) {
	x := newTopic(Options{PageBytes: 64})
	x.framer = NewFramer(nil, func(r journal.Record) []byte { return append(r.Bytes, '\n') })
	x.reached(0, 0)
	given := map[string][]byte{}
	for sequence := uint64(1); sequence <= 40; sequence++ {
		x.fill(facts(sequence, sequence))
		b, covered, _, err := x.waiting(&cursor{}, sequence-1)
		want := fmt.Sprintf("fact %03d\n", sequence)
		if !covered || err != nil || string(b.frames) != want || len(b.frames) != cap(b.frames) {
			t.Fatalf("behind %d: got %q of capacity %d, %v, %v, want %q", sequence-1, b.frames, cap(b.frames), covered, err, want)
		}
		given[want] = b.frames
	}
	for was, is := range given {
		if string(is) != was {
			t.Errorf("a frame is now %q, was %q", is, was)
		}
	}
	b, _, _, _ := x.waiting(&cursor{}, 3)
	if got, want := string(b.frames), "fact 004\nfact 005\nfact 006\nfact 007\n"; got != want {
		t.Errorf("joined: got %q, want %q: up to the end of a piece of 64 bytes", got, want)
	}
}
