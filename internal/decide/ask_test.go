package decide_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
)

// withCall is a bed with a run that has called a tool.
func withCall(t *testing.T) (*bed, string) {
	t.Helper()
	b, run := running(t)
	b.ok(decide.StartTool{RunID: run, ToolCallID: "call", AgentID: "call_1", Name: "write", Kind: "edit", Args: narad.Raw(`{}`)})
	b.story()
	return b, run
}

// R10, R11: a permission is asked in a gate run, and the run above works on.
func TestGate(t *testing.T) {
	b, run := withCall(t)
	b.ok(permit(run, "call", "gate", "i"))
	b.ok(decide.Say{RunID: run, MessageID: "m", Text: "meanwhile"})
	b.ok(decide.Resolve{InterruptID: "i", Decision: "deny", Reason: "no"})
	b.ok(decide.FinishTool{RunID: run, ToolCallID: "call", Outcome: narad.OutcomeCancelled, Response: narad.Raw("null"), Code: "denied"})
	b.tells(`
		run.started gate parent=run-1 call=call gate
		interrupt.requested gate i approval approve,approve_always,deny
		run.paused gate
		message.text.started run-1 m session
		message.text.delta run-1 m meanwhile
		interrupt.resolved gate i deny no
		run.resumed gate
		run.finished gate
		tool.call.finished run-1 call cancelled denied`)
}

func TestGateDecidedAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name     string
		detached bool
		ruling   *decide.Ruling
		want     string
	}{
		{"by rule", false, &decide.Ruling{Rule: "edits", Decision: "approve"}, "approve policy"},
		{"by rule, detached", true, &decide.Ruling{Rule: "edits", Decision: "approve"}, "approve policy"},
		{"by posture", true, nil, "deny detached"}, // R18
		{"by posture, the rule's word is not offered", true, &decide.Ruling{Rule: "r", Decision: "yes"}, "deny detached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, run := withCall(t)
			if tt.detached {
				b.detach()
			}
			p := permit(run, "call", "gate", "i")
			p.Ruling = tt.ruling
			b.ok(p)
			b.tells(`
				run.started gate parent=run-1 call=call gate
				interrupt.requested gate i approval approve,approve_always,deny
				run.paused gate
				interrupt.resolved gate i ` + tt.want + `
				run.resumed gate
				run.finished gate`)
		})
	}
}

// A rule's word that was not offered leaves the decision to a person.
func TestRulingThatIsNotOffered(t *testing.T) {
	b, run := withCall(t)
	p := permit(run, "call", "gate", "i")
	p.Ruling = &decide.Ruling{Rule: "r", Decision: "yes"}
	if a := b.ok(p); a.Decision != "" {
		t.Errorf("got %+v, want it open", a)
	}
}

func TestPermitRefused(t *testing.T) {
	b, run := withCall(t)
	b.ok(decide.StartRun{ParentRunID: run, RunID: "child"})
	b.bars(permit("child", "call", "g", "i"), decide.RefusedInvalid) // another run's call
	b.bars(permit(run, "nothing", "g", "i"), decide.RefusedInvalid)
	b.bars(permit("nothing", "call", "g", "i"), decide.RefusedEnded)
	b.ok(approval(run))
	b.bars(permit(run, "call", "g", "i-2"), decide.RefusedPaused) // paused
}

func approval(run string) decide.Ask {
	return decide.Ask{
		RunID: run, InterruptID: "i", WaitID: "w", Kind: "approval", Actions: []string{"approve", "deny"}, AgentID: "a",
	}
}

// §6.2: a paused run begins nothing, and goes on with what it says.
func TestPausedRun(t *testing.T) {
	b, run := withCall(t)
	b.ok(decide.Say{RunID: run, MessageID: "m", Text: "May I"})
	b.ok(approval(run))
	b.bars(approval(run), decide.RefusedPaused)
	b.bars(decide.StartTool{RunID: run, ToolCallID: "t", Name: "x", Args: narad.Raw("{}")}, decide.RefusedPaused)
	b.bars(decide.StartRun{ParentRunID: run, RunID: "child"}, decide.RefusedPaused)
	b.ok(decide.ToolOutput{RunID: run, Output: output("call", "x")})
	b.ok(decide.FinishTool{RunID: run, ToolCallID: "call", Outcome: narad.OutcomeSuccess, Response: narad.Raw("1")})
	b.ok(decide.Resolve{InterruptID: "i", Decision: "approve"})
	b.ok(decide.StartTool{RunID: run, ToolCallID: "t", Name: "x", Args: narad.Raw("{}")})
}

// R13: a question is asked through a call, and its answers stand in fact and response.
func TestQuestions(t *testing.T) {
	one := []decide.Question{{Text: "Colour?", Options: []string{"red", "blue"}}}
	two := []decide.Question{{Text: "Which?", Options: []string{"a", "b", "c"}, Multiple: true}, {Text: "Why?"}}
	for _, tt := range []struct {
		name      string
		questions []decide.Question
		resolve   decide.Resolve
		want      string
	}{
		{"one single choice", one, decide.Resolve{Decision: "1"}, `
			tool.call.started run-1 call ask_user
			interrupt.requested run-1 i question 0,1,dismiss
			run.paused run-1
			interrupt.resolved run-1 i 1
			run.resumed run-1
			tool.call.finished run-1 call success`},
		{"dismissed", one, decide.Resolve{Decision: "dismiss"}, `
			tool.call.started run-1 call ask_user
			interrupt.requested run-1 i question 0,1,dismiss
			run.paused run-1
			interrupt.resolved run-1 i dismiss
			run.resumed run-1
			tool.call.finished run-1 call cancelled dismissed`},
		{"several", two, decide.Resolve{Decision: "answer", Answers: []decide.QuestionAnswer{{Options: []int{0, 2}}, {Text: "so"}}}, `
			tool.call.started run-1 call ask_user
			interrupt.requested run-1 i question answer,dismiss
			run.paused run-1
			interrupt.resolved run-1 i answer [{"options":[0,2]},{"text":"so"}]
			run.resumed run-1
			tool.call.finished run-1 call success`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, run := running(t)
			b.ok(decide.Ask{RunID: run, InterruptID: "i", WaitID: "w", ToolCallID: "call", Questions: tt.questions})
			tt.resolve.InterruptID = "i"
			b.ok(tt.resolve)
			b.tells(tt.want)
		})
	}
}

func TestAnswersMustFit(t *testing.T) {
	b, run := running(t)
	b.ok(decide.Ask{RunID: run, InterruptID: "i", WaitID: "w", ToolCallID: "call", Questions: []decide.Question{
		{Text: "Which?", Options: []string{"a", "b"}}, {Text: "Or?", Options: []string{"a", "b"}, Multiple: true, Free: true},
	}})
	first := decide.QuestionAnswer{Options: []int{0}}
	for name, answers := range map[string][]decide.QuestionAnswer{
		"none": nil, "too few": {first}, "too many": {first, first, first},
		"no option":           {{}, first},
		"text where none is":  {{Text: "x"}, first},
		"two where one is":    {{Options: []int{0, 1}}, first},
		"no such option":      {{Options: []int{2}}, first},
		"negative":            {first, {Options: []int{-1}}},
		"an option twice":     {first, {Options: []int{1, 1}}},
		"nothing of the free": {first, {}},
	} {
		t.Run(name, func(t *testing.T) {
			b.refuses(decide.Resolve{InterruptID: "i", Decision: "answer", Answers: answers}, decide.Rejected)
		})
	}
	b.refuses(decide.Resolve{InterruptID: "i", Decision: "dismiss", Answers: []decide.QuestionAnswer{first, first}}, decide.Rejected)
	b.ok(decide.Resolve{InterruptID: "i", Decision: "answer", Answers: []decide.QuestionAnswer{first, {Text: "x"}}})
}

// R18: in a detached session an ask is denied, and a question dismissed, in one batch.
func TestDetached(t *testing.T) {
	for _, tt := range []struct {
		name string
		ask  decide.Ask
		want string
	}{
		{"approval", decide.Ask{Kind: "approval", Actions: []string{"approve", "deny"}}, "deny detached"},
		{"neither word", decide.Ask{Kind: "x.y", Actions: []string{"left", "right"}}, "expired detached"},
		{"pack", decide.Ask{Kind: "approval", Actions: []string{"approve", "deny"}, Members: members("a", "b")}, "deny detached a:deny b:deny"},
		{"with a deadline", decide.Ask{Kind: "approval", Actions: []string{"approve", "deny"}, ExpiresIn: time.Second}, "deny detached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, run := running(t)
			b.detach()
			tt.ask.RunID, tt.ask.InterruptID, tt.ask.WaitID = run, "i", "w"
			b.ok(tt.ask)
			asked := fmt.Sprintf("interrupt.requested run-1 i %s %s,%s", tt.ask.Kind, tt.ask.Actions[0], tt.ask.Actions[1])
			b.tells(asked + `
				run.paused run-1
				interrupt.resolved run-1 i ` + tt.want + `
				run.resumed run-1`)
		})
	}
	b, run := running(t)
	b.detach()
	b.ok(decide.Ask{RunID: run, InterruptID: "i", WaitID: "w", ToolCallID: "call", Questions: []decide.Question{{Text: "?", Options: []string{"a"}}}})
	b.tells(`
		tool.call.started run-1 call ask_user
		interrupt.requested run-1 i question 0,dismiss
		run.paused run-1
		interrupt.resolved run-1 i dismiss detached
		run.resumed run-1
		tool.call.finished run-1 call cancelled dismissed`)
}

// R12, R18: where nobody is there to ask, a member that a rule or a remembered decision
// covers is decided by it, and only the others are denied for that.
func TestDetachedPackKeepsItsRules(t *testing.T) {
	b, run := running(t)
	before := approval(run)
	before.InterruptID, before.WaitID, before.Input = "before", "wb", about("edit", "/b")
	b.ok(before)
	b.ok(allow("before", facts.ForSession))
	b.detach()
	ask := approval(run)
	ask.Members = []decide.Member{
		{RequestID: "ruled", Action: "edit", Ruling: &decide.Ruling{Rule: "edits", Decision: "approve"}},
		{RequestID: "remembered", ToolName: "sh", Action: "edit", Resource: "/b"},
		{RequestID: "neither", Action: "edit", Resource: "/c"},
	}
	b.ok(ask)
	b.tells(`
		interrupt.requested run-1 i approval approve,deny
		run.paused run-1
		mahati.decision run-1 i ruled:approve
		mahati.decision run-1 i remembered:approve
		interrupt.resolved run-1 i deny detached ruled:approve remembered:approve neither:deny
		run.resumed run-1`)
	ask.InterruptID, ask.WaitID, ask.Members = "j", "wj", ask.Members[:2]
	if a := b.ok(ask); a.Decision != "approve" || b.resolved("j").Reason != "policy" {
		t.Errorf("all are ruled: got %+v by %s, want approve by policy", a, tell(b.resolved("j")))
	}
}

func members(ids ...string) []decide.Member {
	var list []decide.Member
	for _, id := range ids {
		list = append(list, decide.Member{RequestID: id, ToolName: "write", Action: "edit"})
	}
	return list
}

// What cannot be decided later is not asked.
func TestAskRefused(t *testing.T) {
	many := make([]string, 33)
	for i := range many {
		many[i] = fmt.Sprint("m", i)
	}
	words := []string{"approve", "deny"}
	for name, a := range map[string]decide.Ask{
		"33 members":            {Actions: words, Members: members(many...)},
		"a member twice":        {Actions: words, Members: members("a", "a")},
		"a member without id":   {Actions: words, Members: members("")},
		"no plain approve":      {Actions: []string{"approve_always", "deny"}, Members: members("a")},
		"no plain deny":         {Actions: []string{"approve", "deny_always"}, Members: members("a")},
		"another word":          {Actions: []string{"approve", "deny", "maybe"}, Members: members("a")},
		"members and questions": {Actions: words, Members: members("a"), Questions: []decide.Question{{Text: "?"}}},
		"33 questions":          {Questions: make([]decide.Question, 33)},
		"input is no object":    {Actions: words, Members: members("a"), Input: narad.Raw("1")},
	} {
		t.Run(name, func(t *testing.T) {
			b, run := running(t)
			b.ok(decide.Say{RunID: run, MessageID: "m", Text: "x"})
			a.RunID, a.InterruptID, a.WaitID, a.ToolCallID, a.Kind = run, "i", "w", "call", "approval"
			b.bars(a, decide.RefusedInvalid)
		})
	}
}

// R10: a question that its agent gives up is closed in legal order, as expired and with
// the reason; whoever decides it then comes too late.
func TestRetract(t *testing.T) {
	b, run := withCall(t)
	b.ok(permit(run, "call", "gate", "i"))
	b.story()
	b.ok(decide.StartRun{ParentRunID: run, RunID: "other"})
	b.story()
	b.bars(decide.Retract{RunID: "other", InterruptID: "i"}, decide.RefusedInvalid)
	b.bars(decide.Retract{RunID: "gate", InterruptID: "i"}, decide.RefusedInvalid)
	b.ok(decide.Retract{RunID: run, InterruptID: "i", Reason: "turn_ended"})
	b.tells(`
		interrupt.resolved gate i expired turn_ended
		run.resumed gate
		run.finished gate`)
	b.refuses(decide.Retract{RunID: run, InterruptID: "i", Reason: "again"}, decide.AlreadyApplied)
	b.refuses(decide.Retract{RunID: run, InterruptID: "nothing"}, decide.AlreadyApplied)
	b.refuses(decide.Resolve{InterruptID: "i", Decision: "approve"}, decide.Expired)

	b.ok(decide.Ask{RunID: "other", InterruptID: "q", WaitID: "w", ToolCallID: "asks", Questions: []decide.Question{{Text: "?"}}})
	b.story()
	b.bars(decide.Retract{RunID: run, InterruptID: "q"}, decide.RefusedInvalid)
	b.ok(decide.Retract{RunID: "other", InterruptID: "q"})
	b.tells(`
		interrupt.resolved other q expired withdrawn
		run.resumed other
		tool.call.finished other asks cancelled expired`)
}

// R10: a call that ends has nothing left to ask, whoever ends it.
func TestFinishClosesItsGates(t *testing.T) {
	b, run := withCall(t)
	b.ok(decide.StartTool{RunID: run, ToolCallID: "other", Name: "read", Args: narad.Raw(`{}`)})
	b.ok(permit(run, "other", "gate-0", "i-0"))
	b.ok(permit(run, "call", "gate-1", "i-1"))
	b.ok(permit(run, "call", "gate-2", "i-2"))
	b.story()
	b.ok(decide.FinishTool{RunID: run, ToolCallID: "call", Outcome: narad.OutcomeSuccess, Response: narad.Raw("null")})
	b.tells(`
		interrupt.resolved gate-1 i-1 expired call_ended
		run.resumed gate-1
		run.finished gate-1
		interrupt.resolved gate-2 i-2 expired call_ended
		run.resumed gate-2
		run.finished gate-2
		tool.call.finished run-1 call success`)
	b.ok(decide.Resolve{InterruptID: "i-0", Decision: "approve"})
}

// What the decider was first with stays, and so does what a stop has closed.
func TestRetractTooLate(t *testing.T) {
	b, run := withCall(t)
	b.ok(permit(run, "call", "gate", "i"))
	b.ok(decide.Resolve{InterruptID: "i", Decision: "approve"})
	b.refuses(decide.Retract{RunID: run, InterruptID: "i"}, decide.AlreadyApplied)
	b.ok(permit(run, "call", "gate-2", "i-2"))
	b.ok(decide.Stop{})
	b.refuses(decide.Retract{RunID: run, InterruptID: "i-2"}, decide.AlreadyApplied)
	b.ok(decide.Ended{RunID: run})
	b.bars(decide.Retract{RunID: run, InterruptID: "i-2"}, decide.RefusedEnded)
}
