package desk_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/narad"
)

func number[N int64 | float64](n N) *N { return &n }

// A session's figures are those of all its runs; what one run does not tell, nobody knows.
func TestSpent(t *testing.T) {
	run := func(root, id string) narad.Event { return narad.Event{RootRunID: root, RunID: id} }
	tokens := func(in, out int64, more ...narad.Member) *narad.Usage {
		return &narad.Usage{PromptTokens: &in, CompletionTokens: &out, Extra: more}
	}
	end := func(f narad.Authority, took facts.Turn) narad.Authority {
		facts.SetTurn(f.Envelope(), took)
		return f
	}
	gate := &narad.RunFinished{Event: run("r", "g")}
	facts.SetGate(&gate.Event)
	first, second := &facts.Tokens{Input: 5, Output: 1}, &facts.Tokens{Input: 9, Output: 2}
	var d desk.State
	for _, step := range []struct {
		fact narad.Authority
		want desk.Spent
	}{
		{gate, desk.Spent{}},
		{
			end(&narad.RunFinished{Event: run("r", "r"), Usage: tokens(10, 2, narad.Member{Name: "cachedReadTokens", Value: narad.Raw("7")})}, facts.Turn{CostUSD: number(0.5), LastRound: first}),
			desk.Spent{Input: 10, Output: 2, CacheRead: number(int64(7)), Told: true, CostUSD: 0.5, LastRound: first, LastOutcome: desk.OutcomeFinished},
		},
		{ // a run below is another conversation
			end(&narad.RunError{Event: run("q", "n"), Usage: tokens(1, 1)}, facts.Turn{CostUSD: number(0.25), LastRound: second}),
			desk.Spent{Input: 11, Output: 3, CacheRead: number(int64(7)), Told: true, CostUSD: 0.75, LastRound: first, LastOutcome: desk.OutcomeFinished},
		},
		{
			end(&narad.RunError{Event: run("q", "q")}, facts.Turn{LastRound: second}),
			desk.Spent{Input: 11, Output: 3, CacheRead: number(int64(7)), Told: true, CostUSD: 0.75, Unpriced: true, LastRound: second, LastOutcome: desk.OutcomeFailed},
		},
		{ // an interrupt is no news, and what is not told is not zero
			&narad.RunCancelled{Event: run("s", "s"), Usage: &narad.Usage{}},
			desk.Spent{Input: 11, Output: 3, CacheRead: number(int64(7)), Told: true, CostUSD: 0.75, Unpriced: true, LastRound: second},
		},
		{ // a run of a workflow's is no conversation; how the workflow ends counts
			end(&narad.RunFinished{Event: narad.Event{RootRunID: "w", RunID: "w", WorkflowID: "f"}}, facts.Turn{CostUSD: number(0.25)}),
			desk.Spent{Input: 11, Output: 3, CacheRead: number(int64(7)), Told: true, CostUSD: 1, Unpriced: true, LastRound: second},
		},
		{
			&narad.WorkflowEnded{Kind: narad.TypeWorkflowError},
			desk.Spent{Input: 11, Output: 3, CacheRead: number(int64(7)), Told: true, CostUSD: 1, Unpriced: true, LastRound: second, LastOutcome: desk.OutcomeFailed},
		},
		{
			&narad.WorkflowEnded{Kind: narad.TypeWorkflowFinished},
			desk.Spent{Input: 11, Output: 3, CacheRead: number(int64(7)), Told: true, CostUSD: 1, Unpriced: true, LastRound: second, LastOutcome: desk.OutcomeFinished},
		},
		{
			&narad.WorkflowEnded{Kind: narad.TypeWorkflowCancelled},
			desk.Spent{Input: 11, Output: 3, CacheRead: number(int64(7)), Told: true, CostUSD: 1, Unpriced: true, LastRound: second},
		},
	} {
		d.Apply(step.fact)
		if diff := cmp.Diff(step.want, d.Spent); diff != "" {
			t.Fatalf("after %s of %s (-want +got):\n%s", step.fact.Type(), step.fact.Envelope().RunID, diff)
		}
		again, err := desk.Decode(d.Encode())
		if err != nil || cmp.Diff(d.Spent, again.Spent) != "" {
			t.Errorf("read again: %v %+v", err, again)
		}
	}
}
