package graph_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/graph"
)

// grow adds work to a tree: a call with a gate and a nested run that has a call.
func (w *tree) grow(n int) {
	tool, nested, gate := fmt.Sprintf("t%d", n), fmt.Sprintf("c%d", n), fmt.Sprintf("g%d", n)
	w.call("r", tool)
	w.start(gate, "r", tool).SetOptional("gate", narad.Raw("true"))
	w.ask(gate, "i"+tool)
	w.tell(gate, &narad.RunFinished{})
	w.start(nested, "r", tool)
	w.call(nested, "u"+tool)
	for range 4 {
		w.tell(nested, &narad.ProgressRecorded{ProgressID: "p", Category: "phase", Label: "x", Status: narad.ProgressActive, Privacy: narad.PrivacyPublic})
	}
	w.tell(nested, &narad.ToolCallFinished{ToolCallID: "u" + tool, Outcome: narad.OutcomeSuccess, Response: narad.Raw("null")})
	w.tell(nested, &narad.RunFinished{})
	w.tell("r", &narad.ToolCallFinished{ToolCallID: tool, Outcome: narad.OutcomeSuccess, Response: narad.Raw("null")})
}

const perTurn = 16

// A turn of work costs as many allocations in a large graph as in a small one, and no
// more memory than its nodes and edges need.
func TestCostDoesNotGrow(t *testing.T) {
	turns := 4_000
	if os.Getenv("MAHATI_LONG") == "1" {
		turns = 1_000_000 / perTurn
	}
	const measured = 20
	w := &tree{}
	w.start("r", "", "")
	for n := range turns {
		w.grow(n)
	}
	s := graph.New("s", graph.RunTree("r"))
	next := 0
	take := func() {
		if c := apply(t, s, w.facts[next]); c != nil {
			s.Record(c)
		}
		next++
	}
	cost := func() float64 {
		return testing.AllocsPerRun(measured*perTurn, take) * perTurn
	}
	take()
	for next < turns/10*perTurn {
		take()
	}
	early := cost()
	for next < (turns-2*measured)*perTurn {
		take()
	}
	late := cost()
	t.Logf("allocations of %d facts: %.0f early, %.0f late, in a graph of %d revisions", perTurn, early, late, s.Revision())
	if late > early*1.1+2*perTurn {
		t.Errorf("late facts allocate %.0f times, early ones %.0f", late, early)
	}
}

// BenchmarkDerive derives one graph from so many facts; ns/fact must not grow with them.
func BenchmarkDerive(b *testing.B) {
	for _, facts := range []int{10_000, 100_000, 1_000_000} {
		w := &tree{}
		w.start("r", "", "")
		for n := range facts / perTurn {
			w.grow(n)
		}
		for _, send := range []bool{false, true} {
			b.Run(fmt.Sprintf("facts=%d/records=%v", facts, send), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s := graph.New("s", graph.RunTree("r"))
					for _, fact := range w.facts {
						if c := apply(b, s, fact); c != nil && send {
							s.Record(c)
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(w.facts)), "ns/fact")
			})
		}
	}
}
