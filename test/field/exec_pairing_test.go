package field_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mahati-host/mahati/narad"
)

// Case 50. Calls of one tool that run at once are told apart by their ids alone: each end
// belongs to its start whatever the order, and one that fails takes no other with it.
func TestCase50ParallelResultsKeepTheirCalls(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
steps:
  - parallel:
      - - tool: {name: look, args: {n: 1}, output: out1, delay: 400ms, respond: {n: 1}, outcome: error, code: broke, message: It broke.}
      - - tool: {name: look, args: {n: 2}, output: out2, delay: 700ms, respond: {n: 2}}
      - - tool: {name: look, args: {n: 3}, output: out3, delay: 100ms, respond: {n: 3}}
`)
	b.session("s1")
	run := b.say("s1", "go")
	live := b.stream("s1", "?afterSessionSequence=0", "")
	var seen []narad.Raw
	for {
		f, e := live.fact()
		seen = append(seen, narad.Raw(f.data))
		if e.Envelope().RunID == run && terminal(e) {
			if e.Type() != narad.TypeRunFinished {
				t.Errorf("the run ended as %s: a call that fails is no failure of the run", e.Type())
			}
			break
		}
	}
	for view, facts := range map[string][]narad.Raw{"live": seen, "history": b.facts("s1")} {
		args := map[string]string{}
		var order []string
		for _, e := range decode(t, facts) {
			switch f := e.(type) {
			case *narad.ToolCallStarted:
				args[f.ToolCallID] = string(f.Args)
			case *narad.ToolCallFinished:
				order = append(order, fmt.Sprintf("%s %s %s%s", f.Response, args[f.ToolCallID], f.Outcome, f.Code))
				delete(args, f.ToolCallID) // a second end finds no start
			}
		}
		want := []string{`{"n":3} {"n":3} success`, `{"n":1} {"n":1} errorbroke`, `{"n":2} {"n":2} success`}
		if !slices.Equal(order, want) || len(args) != 0 {
			t.Errorf("%s: got %q and %d calls without an end, want %q", view, order, len(args), want)
		}
		var outcomes []string
		for _, call := range reduce(t, facts).Snapshot().Tools {
			outcomes = append(outcomes, fmt.Sprintf("%s %s", call.Args, call.Outcome))
		}
		slices.Sort(outcomes)
		if want := []string{`{"n":1} error`, `{"n":2} success`, `{"n":3} success`}; !slices.Equal(outcomes, want) {
			t.Errorf("%s: the reduced calls are %q, want %q", view, outcomes, want)
		}
	}
}
