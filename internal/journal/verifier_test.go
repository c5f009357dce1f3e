package journal

import (
	"bytes"
	"strings"
	"testing"
)

// TestNumbersAreDerived: a fact has as many numbers in other contracts as the facts say.
func TestNumbersAreDerived(t *testing.T) {
	is := Numbers{LogRun: "r", Logs: 2}
	for _, c := range []struct {
		want     *Numbers
		problems int
	}{
		{nil, 0}, {&Numbers{LogRun: "r", Logs: 2}, 0}, {&Numbers{}, 1}, {&Numbers{LogRun: "r", Logs: 1}, 1},
		{&Numbers{LogRun: "q", Logs: 2}, 1}, {&Numbers{LogRun: "r", Logs: 2, Events: 1}, 1},
	} {
		v := NewVerifier(Identity{}, VerifyOptions{Derive: func(string) func(Record) (Derived, error) {
			return func(Record) (Derived, error) { return Derived{Numbers: c.want}, nil }
		}})
		record := Record{Fact: Fact{EventID: "1.a", Bytes: []byte("{}")}, Sequence: 1, Offset: 1, FirstLog: 1}
		record.Take(is)
		v.Session("s").Record(record)
		report := v.Report(Mark{})
		if len(report.Problems) != c.problems || c.problems == 1 && report.Problems[0].Code != ProblemNumbers {
			t.Errorf("stored %+v, derived %+v: got %+v", is, c.want, report.Problems)
		}
	}
}

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
