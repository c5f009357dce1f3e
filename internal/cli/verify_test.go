package cli

import (
	"testing"

	"github.com/mahati-host/mahati/internal/journal"
)

func TestPlaceOfAProblem(t *testing.T) {
	for _, test := range []struct {
		problem journal.Problem
		want    string
	}{
		{journal.Problem{}, ""},
		{journal.Problem{Session: "s"}, `session "s"`},
		{journal.Problem{Session: "s", Sequence: 7}, `session "s" at 7`},
		{journal.Problem{Session: "s", Sequence: 7, Row: "run r"}, `session "s" at 7 run r`},
	} {
		if got := placeOf(test.problem); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.problem, got, test.want)
		}
	}
}
