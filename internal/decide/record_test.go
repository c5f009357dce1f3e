package decide_test

import (
	"fmt"
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

func output(call, text string) facts.Output { return facts.Output{ToolCallID: call, Text: text} }

// Field case 107: what is said before a call stands before it, complete.
func TestTextToolText(t *testing.T) {
	b, run := running(t)
	b.ok(decide.Think{RunID: run, MessageID: "m", Text: "hm"})
	b.ok(decide.Say{RunID: run, MessageID: "m", Text: "a"})
	b.ok(decide.StartTool{RunID: run, ToolCallID: "call", Name: "x", Args: narad.Raw("{}")})
	b.ok(decide.ToolOutput{RunID: run, Output: output("call", "out")})
	b.ok(decide.FinishTool{RunID: run, ToolCallID: "call", Outcome: narad.OutcomeSuccess, Response: narad.Raw("1")})
	b.ok(decide.Say{RunID: run, MessageID: "m-2", Text: "b"})
	b.ok(decide.EndMessage{RunID: run})
	b.refuses(decide.EndMessage{RunID: run}, decide.AlreadyApplied)
	b.tells(`
		reasoning.started run-1 reasoning:m
		reasoning.delta run-1 reasoning:m hm
		message.text.started run-1 m session
		message.text.delta run-1 m a
		reasoning.completed run-1 reasoning:m
		message.text.completed run-1 m
		tool.call.started run-1 call x
		mahati.tool.output run-1
		tool.call.finished run-1 call success
		message.text.started run-1 m-2 session
		message.text.delta run-1 m-2 b
		message.text.completed run-1 m-2`)
}

// Field case 68, R9: what a nested run says is its own.
func TestNestedRunsSpeakForThemselves(t *testing.T) {
	b, run := running(t)
	b.ok(decide.StartRun{ParentRunID: run, RunID: "a", Prompt: "do a", MessageID: "p-a"})
	b.ok(decide.StartRun{ParentRunID: run, RunID: "b"})
	for i := range 2 {
		for _, r := range []string{run, "a", "b"} {
			b.ok(decide.Say{RunID: r, MessageID: "m-" + r, Text: fmt.Sprint(r, i, ";")})
		}
	}
	b.ok(decide.EndRun{RunID: "a"})
	b.ok(decide.EndRun{RunID: "b", Ending: decide.Ending{State: session.Failed, Code: "c", Message: "m"}})
	b.ok(decide.Ended{RunID: run})
	for _, m := range b.whole.Messages() {
		want := narad.ScopeRun
		if m.RunID == run {
			want = narad.ScopeSession
		}
		if m.MessageScope != want {
			t.Errorf("message %s of run %s has scope %s, want %s", m.MessageID, m.RunID, m.MessageScope, want)
		}
		if said := m.RunID + "0;" + m.RunID + "1;"; m.Role == narad.RoleAssistant && m.Content != said {
			t.Errorf("message of %s: got %q, want %q", m.RunID, m.Content, said)
		}
	}
	b.idle()
}

// Field case 65: a grandchild's question is decided by its id alone, and the chain ends.
func TestQuestionFromTwoLevelsDown(t *testing.T) {
	b, run := running(t)
	b.ok(decide.StartRun{ParentRunID: run, RunID: "child"})
	b.ok(decide.StartRun{ParentRunID: "child", RunID: "grandchild"})
	b.ok(approval("grandchild"))
	if i, _ := b.owner.Interrupt("i"); i.RunID != "grandchild" || i.RootRunID != run {
		t.Errorf("got %+v, want the grandchild's in the root's tree", i)
	}
	b.ok(decide.Resolve{InterruptID: "i", Decision: "approve"})
	for _, r := range []string{"grandchild", "child"} {
		b.ok(decide.EndRun{RunID: r})
	}
	b.ok(decide.Ended{RunID: run})
	b.idle()
}

// Field case 50: parallel calls end in any order, each as itself.
func TestParallelCalls(t *testing.T) {
	b, run := running(t)
	for _, id := range []string{"1", "2", "3"} {
		b.ok(decide.StartTool{RunID: run, ToolCallID: id, AgentID: "call_1", Name: "same", Args: narad.Raw("{}")})
	}
	end := func(id string, o narad.Outcome) {
		b.ok(decide.FinishTool{RunID: run, ToolCallID: id, Outcome: o, Response: narad.Quote(id)})
	}
	end("3", narad.OutcomeSuccess)
	end("1", narad.OutcomeError)
	end("2", narad.OutcomeSuccess)
	for id, outcome := range map[string]narad.Outcome{"1": narad.OutcomeError, "2": narad.OutcomeSuccess, "3": narad.OutcomeSuccess} {
		if tool, _ := b.whole.Tool(id); tool.Outcome != outcome || string(tool.Response) != `"`+id+`"` {
			t.Errorf("call %s: got %s %s", id, tool.Outcome, tool.Response)
		}
	}
}

func TestRecordsRefused(t *testing.T) {
	b, run := running(t)
	b.ok(decide.StartRun{ParentRunID: run, RunID: "child"})
	b.ok(decide.StartTool{RunID: run, ToolCallID: "call", Name: "x", Args: narad.Raw("{}")})
	for _, c := range []decide.Command{
		decide.FinishTool{RunID: "child", ToolCallID: "call", Outcome: narad.OutcomeSuccess, Response: narad.Raw("1")},
		decide.FinishTool{RunID: run, ToolCallID: "x", Outcome: narad.OutcomeSuccess, Response: narad.Raw("1")},
		decide.ToolOutput{RunID: "child", Output: output("call", "x")},
		decide.ToolOutput{RunID: run, Output: output("x", "x")},
		decide.StartRun{ParentRunID: "child", ParentToolCallID: "call", RunID: "n"},
		decide.StartRun{ParentRunID: run, ParentToolCallID: "x", RunID: "n"},
		decide.EndRun{RunID: run},
	} {
		b.bars(c, decide.RefusedInvalid)
	}
	b.ok(permit(run, "call", "gate", "i"))
	for _, c := range records("gate") {
		b.bars(c, decide.RefusedInvalid)
	}
	b.ok(decide.EndRun{RunID: "child"})
	b.ok(decide.Ended{RunID: run})
	for _, r := range []string{run, "child", "nothing"} {
		for _, c := range records(r) {
			if b.bars(c, decide.RefusedEnded); t.Failed() {
				t.Fatalf("%s after the end of %s", name(c), r)
			}
		}
	}
}

// records is one record of every kind about a run.
func records(run string) []decide.Command {
	return []decide.Command{
		decide.Say{RunID: run, MessageID: "m", Text: "x"}, decide.Think{RunID: run, MessageID: "m", Text: "x"},
		decide.EndMessage{RunID: run}, decide.Progress{RunID: run, ProgressID: "p"},
		decide.Custom{RunID: run, Name: "a.b", Value: narad.Raw("1")}, decide.Remember{RunID: run, Agent: "a", Ref: "r"},
		decide.StartTool{RunID: run, ToolCallID: "t", Name: "x", Args: narad.Raw("{}")},
		decide.FinishTool{RunID: run, ToolCallID: "t"}, decide.ToolOutput{RunID: run},
		permit(run, "t", "g", "i"), approval(run), decide.Await{RunID: run, InterruptID: "i"},
		decide.StartRun{ParentRunID: run, RunID: "n"}, decide.EndRun{RunID: run}, decide.Ended{RunID: run},
	}
}

func TestRemember(t *testing.T) {
	b, run := running(t)
	b.ok(decide.Remember{RunID: run, Agent: "coder", Ref: "abc"})
	b.refuses(decide.Remember{RunID: run, Agent: "coder", Ref: "abc"}, decide.AlreadyApplied)
	last, _ := facts.Read[facts.Remembered](b.list[len(b.list)-1], facts.AgentRemembered)
	if b.desk.Ref != "abc" || last.Agent != "coder" {
		t.Errorf("got %q and %+v, want abc of coder", b.desk.Ref, last)
	}
}

// Whatever is open can be closed in one batch: the rest is refused.
func TestOpenWorkIsBounded(t *testing.T) {
	b, run := running(t)
	until := func(what string, c func(i int) decide.Command) int {
		for i := range 1000 {
			if b.do(c(i)).Status != decide.Accepted {
				return i
			}
		}
		t.Fatalf("%s: a thousand are open", what)
		return 0
	}
	tools := until("tools", func(i int) decide.Command {
		return decide.StartTool{RunID: run, ToolCallID: fmt.Sprint("t", i), Name: "x", Args: narad.Raw("{}")}
	})
	until("activities", func(i int) decide.Command {
		return decide.Progress{RunID: run, ProgressID: fmt.Sprint("p", i), Category: "phase", Label: "l", Status: narad.ProgressActive, Privacy: narad.PrivacyPublic}
	})
	gates := until("gates", func(i int) decide.Command {
		return permit(run, fmt.Sprint("t", i%tools), fmt.Sprint("g", i), fmt.Sprint("i", i))
	})
	if tools < 100 || gates < 50 {
		t.Errorf("only %d tools and %d gates may be open", tools, gates)
	}
	b.ok(decide.Ended{RunID: run}) // the bed refuses a batch that is too large
	b.idle()
}

// R1: the figures of a finish are in the fact, also where the clock jumps (case 102).
func TestFinishTellsItsTool(t *testing.T) {
	for _, tt := range []struct{ passed, want int64 }{{1500, 1500}, {-3600_000, 0}} {
		b, run := withCall(t)
		b.env.Now = b.env.Now.Add(msec(tt.passed))
		b.ok(decide.FinishTool{RunID: run, ToolCallID: "call", Outcome: narad.OutcomeSuccess, Response: narad.Raw("1")})
		e := b.list[len(b.list)-1].Envelope()
		if got := string(e.Optional("durationMs")); facts.ToolName(e) != "write" || got != fmt.Sprint(tt.want) {
			t.Errorf("after %d ms: %s of %q, want %d of write", tt.passed, got, facts.ToolName(e), tt.want)
		}
	}
}
