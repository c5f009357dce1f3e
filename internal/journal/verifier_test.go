package journal

import (
	"bytes"
	"strings"
	"testing"
)

// TestReportsHoldNoValues: the value of a row may be long, and is what an agent asked for:
// a report tells two of them apart and repeats neither.
func TestReportsHoldNoValues(t *testing.T) {
	row := func(fill byte) Row {
		return InterruptRow{ID: "i", Session: "s", Sequence: 1, Open: true, Value: bytes.Repeat([]byte{fill}, 400_000), Offset: 1}
	}
	derive := func(string) func(Record) (Derived, error) {
		return func(Record) (Derived, error) { return Derived{Changes: []Change{Put{Row: row('a')}}}, nil }
	}
	v := NewVerifier(Identity{}, VerifyOptions{Derive: derive})
	check := v.Session("s")
	check.Record(Record{Fact: Fact{EventID: "1.a", Bytes: []byte("{}")}, Sequence: 1, Offset: 1})
	check.Finish(func(Key) (Row, error) { return row('b'), nil })
	report := v.Report(Mark{})
	if len(report.Problems) != 1 || report.Problems[0].Code != ProblemDerived {
		t.Fatalf("got %d problems, want the one of a row with another value", len(report.Problems))
	}
	detail := report.Problems[0].Detail
	is, facts, found := strings.Cut(detail, ", the facts say ")
	if !found || len(detail) > 1_000 || strings.TrimPrefix(is, "is ") == facts {
		t.Errorf("got %d bytes: %.200s; want two short descriptions that differ", len(detail), detail)
	}
}
