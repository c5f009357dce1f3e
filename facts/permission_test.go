package facts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

func TestOptionOrder(t *testing.T) {
	for _, c := range []struct {
		options     int
		recommended *int
		want        []int
	}{
		{0, nil, []int{}}, {3, nil, []int{0, 1, 2}}, {3, at(0), []int{0, 1, 2}}, {4, at(2), []int{2, 0, 1, 3}}, {2, at(1), []int{1, 0}},
		{2, at(2), []int{0, 1}}, {2, at(-1), []int{0, 1}},
	} {
		if got := facts.OptionOrder(c.options, c.recommended); !slices.Equal(got, c.want) {
			t.Errorf("%d options: got %v, want %v", c.options, got, c.want)
		}
	}
}

func at(n int) *int { return &n }

// What was cut may be anything, and what several must agree to is agreed to each time.
func TestSubjects(t *testing.T) {
	long := strings.Repeat("x", 4<<10)
	for input, want := range map[string]facts.Subject{
		`{"action":"execute","toolName":"shell","resource":"ls","detail":"d"}`: {Action: "execute", Tool: "shell", Resource: "ls"},
		`{"resource":"ls","quorum":1}`:                                         {Resource: "ls"},
		`{"resource":"` + long + `"}`:                                          {Resource: long},
		`{"action":"execute"}`:                                                 {},
		`{"resource":"ls","quorum":2}`:                                         {},
		`{"resource":"` + long + `x"}`:                                         {},
		`{"resource":7}`:                                                       {},
		`[]`:                                                                   {},
		``:                                                                     {},
	} {
		got, ok := facts.SubjectOf(narad.Raw(input))
		if ok != (want != facts.Subject{}) || ok && got != want {
			t.Errorf("%.60s: got %+v, %v, want %+v", input, got, ok, want)
		}
	}
}
