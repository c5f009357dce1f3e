package cli

import (
	"strings"
	"testing"
)

// A row is the same point on all three contracts, or an error that names the one that differs.
func TestContractsThatDiffer(t *testing.T) {
	same := point{what: permissionDecided, about: "p approve", as: "interrupt.resolved 3"}
	for name, test := range map[string]struct {
		log, event *point // nil: it has ended
		want       string // in the error, "" for none
	}{
		"all the same":     {&same, &same, ""},
		"another decision": {&same, &point{what: permissionDecided, about: "p deny", as: "permission-decided 9"}, "permission-decided 9"},
		"another order":    {&point{what: runEnds, about: "p approve", as: "run.completed 4"}, &same, "run.completed 4"},
		"one that ended":   {nil, &same, contracts[1] + " ended before the run did"},
	} {
		var columns [3]chan point
		for i, p := range []*point{&same, test.log, test.event} {
			columns[i] = make(chan point, 1)
			if p != nil {
				columns[i] <- *p
			}
			close(columns[i])
		}
		row, err := takeRow(t.Context(), columns)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, %v, want an error with %q", name, row, err, test.want)
		}
	}
}
