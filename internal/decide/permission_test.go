package decide_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// about is what a permission is asked for.
func about(action, resource string) narad.Raw {
	input, _ := facts.Value(map[string]string{"action": action, "toolName": "sh", "resource": resource})
	return input
}

// gates begins a call in a run and asks for it; it returns the interrupt.
func (b *bed) gates(run string, input narad.Raw) decide.Answer {
	b.t.Helper()
	id := b.newID()
	b.ok(decide.StartTool{RunID: run, ToolCallID: "call-" + id, Name: "sh", Args: narad.Raw("{}")})
	p := permit(run, "call-"+id, "gate-"+id, "i-"+id)
	p.Input = input
	return b.ok(p)
}

func allow(id, remember string) decide.DecidePermission {
	return decide.DecidePermission{InterruptID: id, Decision: decide.Allow, Remember: remember}
}

func deny(id, remember string) decide.DecidePermission {
	return decide.DecidePermission{InterruptID: id, Decision: decide.Deny, Remember: remember}
}

// Field cases 21, 22: a permission is decided once, and whoever comes later is told how.
func TestPermissionIsDecidedOnce(t *testing.T) {
	b, run := running(t)
	id := b.gates(run, about("execute", "ls")).RequestID
	b.story()
	b.ok(allow(id, ""))
	b.tells(`
		interrupt.resolved gate-` + strings.TrimPrefix(id, "i-") + ` ` + id + ` approve
		run.resumed gate-` + strings.TrimPrefix(id, "i-") + `
		run.finished gate-` + strings.TrimPrefix(id, "i-"))
	b.refuses(allow(id, ""), decide.AlreadyApplied)
	if a := b.refuses(deny(id, ""), decide.Conflict); a.Decision != "approve" || a.SessionSequence == 0 {
		t.Errorf("got %+v, want the winner's", a)
	}
	b.refuses(allow(id, facts.ForSession), decide.Conflict)
	b.refuses(allow("nothing", ""), decide.NotFound)
}

// A decision given in another word of permissions comes to the same.
func TestPermissionDecidedElsewhere(t *testing.T) {
	b, run := running(t)
	id := b.gates(run, about("execute", "ls")).RequestID
	b.ok(decide.Resolve{InterruptID: id, Decision: "approve_always"})
	b.refuses(allow(id, ""), decide.AlreadyApplied)
	b.refuses(deny(id, ""), decide.Conflict)
}

// Members of a pack are permissions of their own (R12).
func TestPermissionsOfAPack(t *testing.T) {
	b, run := running(t)
	ask := approval(run)
	ask.Members = members("a", "b")
	b.ok(ask)
	b.story()
	member := func(id, decision string) decide.DecidePermission {
		return decide.DecidePermission{InterruptID: "i", RequestID: id, Decision: decision}
	}
	b.refuses(allow("i", ""), decide.NotFound)
	b.refuses(member("c", decide.Allow), decide.NotFound)
	b.ok(member("b", decide.Deny))
	b.tells(`mahati.decision run-1 i b:deny`)
	b.refuses(member("b", decide.Deny), decide.AlreadyApplied)
	b.refuses(member("b", decide.Allow), decide.Conflict)
	b.ok(member("a", decide.Allow))
	b.tells(`
		mahati.decision run-1 i a:approve
		interrupt.resolved run-1 i deny a:approve b:deny
		run.resumed run-1`)
	b.refuses(member("a", decide.Allow), decide.AlreadyApplied)
	b.refuses(member("b", decide.Allow), decide.Conflict)
	b.refuses(member("c", decide.Allow), decide.NotFound)
	b.refuses(allow("i", ""), decide.NotFound)
}

// R11: allow means once. An agent that knows no such answer is not told another one.
func TestAllowIsForOnce(t *testing.T) {
	b, run := running(t)
	ask := approval(run)
	ask.Actions = []string{"approve_always", "stop"}
	b.ok(ask)
	for _, c := range []decide.Command{allow("i", ""), deny("i", "")} {
		if a := b.refuses(c, decide.Unsupported); a.Err != decide.RefusedNotOffered {
			t.Errorf("got %+v", a)
		}
	}
	b.refuses(decide.AnswerQuestion{InterruptID: "i", Dismiss: true}, decide.NotFound)
}

// What is remembered decides the very same later, by a rule of its own, and nothing else:
// no other resource, action, lane or session.
func TestRememberedDecisions(t *testing.T) {
	for _, tt := range []struct {
		scope        string
		nested, root string // what is decided of the same in another lane, and in the main one
	}{
		{facts.ForSession, "approve", "approve"},
		{facts.ForLane, "", "approve"},
	} {
		t.Run(tt.scope, func(t *testing.T) {
			b, run := running(t)
			b.ok(decide.StartTool{RunID: run, ToolCallID: "task", Name: "task", Args: narad.Raw("{}")})
			b.ok(decide.StartRun{ParentRunID: run, RunID: "child", ParentToolCallID: "task"})
			b.ok(allow(b.gates(run, about("execute", "ls")).RequestID, tt.scope))
			rule := b.desk.Rules[0].Rule
			for _, c := range []struct {
				run, action, resource, want string
			}{
				{run, "execute", "ls", tt.root}, {"child", "execute", "ls", tt.nested},
				{run, "execute", "ls ", ""}, {run, "execute", "LS", ""}, {run, "read", "ls", ""}, {run, "execute", "", ""},
			} {
				a := b.gates(c.run, about(c.action, c.resource))
				if a.Decision != c.want {
					t.Errorf("%+v: got %q", c, a.Decision)
				}
				if c.want != "" && !strings.Contains(string(b.resolved(a.RequestID).Actor), rule) {
					t.Errorf("%+v: got actor %s, want %s", c, b.resolved(a.RequestID).Actor, rule)
				}
			}
			other, otherRun := running(t)
			if a := other.gates(otherRun, about("execute", "ls")); a.Decision != "" {
				t.Errorf("another session: got %q", a.Decision)
			}
		})
	}
}

// resolved is how an interrupt was resolved.
func (b *bed) resolved(id string) *narad.InterruptResolved {
	for _, f := range b.list {
		if r, ok := f.(*narad.InterruptResolved); ok && r.InterruptID == id {
			return r
		}
	}
	b.t.Fatalf("%s was not resolved", id)
	return nil
}

// The lane of a nested run takes what was remembered for it along.
func TestRememberedInANestedLane(t *testing.T) {
	b, run := running(t)
	b.ok(decide.StartTool{RunID: run, ToolCallID: "task", Name: "task", Args: narad.Raw("{}")})
	b.ok(decide.StartRun{ParentRunID: run, RunID: "child", ParentToolCallID: "task"})
	b.ok(deny(b.gates("child", about("execute", "ls")).RequestID, facts.ForLane))
	if a := b.gates(run, about("execute", "ls")); a.Decision != "" {
		t.Errorf("the lane above: got %q", a.Decision)
	}
	if a := b.gates("child", about("execute", "ls")); a.Decision != "deny" {
		t.Errorf("the lane itself: got %q", a.Decision)
	}
	b.ok(decide.EndRun{RunID: "child"})
	if len(b.desk.Rules) != 0 {
		t.Errorf("got %+v, want that the rule went with its lane", b.desk.Rules)
	}
}

// Of two that hold, the one that refuses counts; a decision for the same replaces the one
// before it; the policy of the host goes before both.
func TestRememberedDecisionsTogether(t *testing.T) {
	b, run := running(t)
	first, second, third := b.gates(run, about("execute", "ls")), b.gates(run, about("execute", "ls")), b.gates(run, about("execute", "ls"))
	b.ok(allow(first.RequestID, facts.ForLane))
	if i, _ := b.owner.Interrupt(second.RequestID); !i.Open {
		t.Error("what was asked before was decided too")
	}
	b.ok(deny(second.RequestID, facts.ForSession))
	if a := b.gates(run, about("execute", "ls")); a.Decision != "deny" {
		t.Errorf("got %q, want deny", a.Decision)
	}
	b.ok(allow(third.RequestID, facts.ForSession))
	if a := b.gates(run, about("execute", "ls")); a.Decision != "approve" || len(b.desk.Rules) != 2 {
		t.Errorf("got %q and %+v, want the later word", a.Decision, b.desk.Rules)
	}
	b.ok(decide.StartTool{RunID: run, ToolCallID: "call", Name: "sh", Args: narad.Raw("{}")})
	p := permit(run, "call", "gate", "ruled")
	p.Input, p.Ruling = about("execute", "ls"), &decide.Ruling{Rule: "never", Decision: "deny"}
	if a := b.ok(p); a.Decision != "deny" {
		t.Errorf("against the policy: got %q", a.Decision)
	}
}

// Not all that can be decided can be remembered, and then nothing is.
func TestNotRemembered(t *testing.T) {
	b, run := running(t)
	several := narad.Raw(`{"action":"execute","resource":"ls","quorum":2}`)
	for _, input := range []narad.Raw{narad.Raw(`{}`), about("execute", ""), several, about("execute", strings.Repeat("x", 5000))} {
		id := b.gates(run, input).RequestID
		if a := b.refuses(allow(id, facts.ForSession), decide.Rejected); a.Err != decide.RefusedRemember {
			t.Errorf("%.50s: got %+v", input, a)
		}
	}
	for n := range 256 {
		b.apply(facts.Session(facts.PermissionRemembered, facts.PermissionRule{Scope: facts.ForSession, Subject: facts.Subject{Resource: fmt.Sprint(n)}}))
	}
	more := b.gates(run, about("execute", "one more")).RequestID
	b.refuses(allow(more, facts.ForSession), decide.Conflict)
	b.ok(allow(more, ""))
}

// An ask of one thing, and each member of a pack, is decided by what is remembered.
func TestRememberedOfAsksAndMembers(t *testing.T) {
	b, run := running(t)
	ask := approval(run)
	ask.Input = about("edit", "/a")
	b.ok(ask)
	b.ok(allow("i", facts.ForSession))
	ask.InterruptID, ask.WaitID = "j", "wj"
	if a := b.ok(ask); a.Decision != "approve" {
		t.Errorf("got %+v", a)
	}
	pack := approval(run)
	pack.InterruptID, pack.WaitID = "k", "wk"
	pack.Members = []decide.Member{
		{RequestID: "a", ToolName: "sh", Action: "edit", Resource: "/a"}, {RequestID: "b", ToolName: "sh", Action: "edit", Resource: "/b"},
	}
	b.story()
	b.ok(pack)
	b.tells(`
		interrupt.requested run-1 k approval approve,deny
		run.paused run-1
		mahati.decision run-1 k a:approve`)
	b.ok(decide.DecidePermission{InterruptID: "k", RequestID: "b", Decision: decide.Deny, Remember: facts.ForSession})
	pack.InterruptID, pack.WaitID = "l", "wl"
	if a := b.ok(pack); a.Decision != "deny" || b.resolved("l").Members[0].Decision != "approve" {
		t.Errorf("got %+v, want each member by its own rule", a)
	}
	question := approval(run)
	question.InterruptID, question.WaitID, question.Input, question.Actions = "q", "wq", about("edit", "/a"), []string{"approve", "later"}
	if a := b.ok(question); a.Decision != "" {
		t.Errorf("a choice of other words: got %+v", a)
	}
}

// A decision that is told again is remembered once.
func TestRememberedTwice(t *testing.T) {
	b, run := running(t)
	id := b.gates(run, about("execute", "ls")).RequestID
	b.ok(allow(id, facts.ForLane))
	b.refuses(allow(id, facts.ForLane), decide.AlreadyApplied)
	b.refuses(allow(id, ""), decide.AlreadyApplied)
	b.refuses(allow(id, facts.ForSession), decide.Conflict)
}

// Told again it is answered as the first time, whatever became of its rule since, and
// makes none again.
func TestRememberedTwiceAfterItsRule(t *testing.T) {
	for name, later := range map[string]func(b *bed, run, other string){
		"replaced":           func(b *bed, _, other string) { b.ok(deny(other, facts.ForLane)) },
		"forgotten":          func(b *bed, _, _ string) { b.ok(decide.ForgetPermission{Rule: b.desk.Rules[0].Rule}) },
		"its lane has ended": func(b *bed, run, _ string) { b.ok(decide.EndRun{RunID: run}) },
	} {
		t.Run(name, func(t *testing.T) {
			b, root := running(t)
			run := "child"
			b.ok(decide.StartRun{ParentRunID: root, RunID: run})
			id, other := b.gates(run, about("execute", "ls")).RequestID, b.gates(run, about("execute", "ls")).RequestID
			b.ok(allow(id, facts.ForLane))
			later(b, run, other)
			rules := len(b.desk.Rules)
			b.refuses(allow(id, facts.ForLane), decide.AlreadyApplied)
			b.refuses(allow(id, facts.ForSession), decide.Conflict)
			b.refuses(deny(id, facts.ForLane), decide.Conflict)
			if len(b.desk.Rules) != rules {
				t.Errorf("got %+v, want no new rule", b.desk.Rules)
			}
		})
	}
}

// A member of a pack that waits is told again alike, and after its end.
func TestRememberedTwiceOfAMember(t *testing.T) {
	b, run := running(t)
	ask := approval(run)
	ask.Members = []decide.Member{{RequestID: "a", Action: "edit", Resource: "/a"}, {RequestID: "b", Action: "edit", Resource: "/b"}}
	b.ok(ask)
	member := decide.DecidePermission{InterruptID: "i", RequestID: "a", Decision: decide.Allow, Remember: facts.ForSession}
	b.ok(member)
	b.ok(decide.ForgetPermission{Rule: b.desk.Rules[0].Rule})
	b.refuses(member, decide.AlreadyApplied)
	b.ok(decide.Stop{RootRunID: run})
	b.refuses(member, decide.AlreadyApplied)
	member.Decision = decide.Deny
	b.refuses(member, decide.Conflict)
}

// R13: places are those of the options as they are drawn, the recommended one first.
func TestAnswersByPlace(t *testing.T) {
	two := 2
	one := []decide.Question{{Text: "Which?", Options: []string{"a", "b", "c"}, Recommended: &two}}
	free := []decide.Question{{Text: "Which?", Options: []string{"a", "b"}, Free: true}, {Text: "Why?"}}
	many := []decide.Question{{Text: "Which?", Options: []string{"a", "b", "c"}, Recommended: &two, Multiple: true}}
	type answers = []decide.QuestionAnswer
	for _, tt := range []struct {
		name      string
		questions []decide.Question
		answers   answers
		want      string // the decision and the answers, or the field that is wrong
	}{
		{"the recommended one", one, answers{{Options: []int{0}}}, "2 "},
		{"another", one, answers{{Options: []int{2}}}, "1 "},
		{"typed", free, answers{{Options: []int{2}, Text: "own"}, {Text: "so"}}, `answer [{"text":"own"},{"text":"so"}]`},
		{"typed, no place", free, answers{{Text: "own"}, {Options: []int{0}, Text: "so"}}, `answer [{"text":"own"},{"text":"so"}]`},
		{"several", many, answers{{Options: []int{1, 0}}}, `answer [{"options":[0,2]}]`},
		{"too few", free, answers{{Options: []int{0}}}, "answers"},
		{"none", one, nil, "answers"},
		{"out of range", one, answers{{Options: []int{3}}}, "answers[0]"},
		{"below", one, answers{{Options: []int{-1}}}, "answers[0]"},
		{"two of one", one, answers{{Options: []int{0, 1}}}, "answers[0]"},
		{"twice", many, answers{{Options: []int{1, 1}}}, "answers[0]"},
		{"typed where it cannot be", one, answers{{Text: "own"}}, "answers[0]"},
		{"the place for typing, and no text", free, answers{{Options: []int{2}}, {Text: "so"}}, "answers[0]"},
		{"two of one, typed", free, answers{{Options: []int{0, 2}, Text: "own"}, {Text: "so"}}, "answers[0]"},
		{"an option and typed", free, answers{{Options: []int{1}, Text: "own"}, {Text: "so"}}, "answers[0]"},
		{"nothing", free, answers{{Options: []int{1}}, {}}, "answers[1]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, run := running(t)
			b.ok(decide.Ask{RunID: run, InterruptID: "i", WaitID: "w", ToolCallID: "c", Questions: tt.questions})
			command := decide.AnswerQuestion{InterruptID: "i", Answers: tt.answers}
			if strings.HasPrefix(tt.want, "answers") {
				if a := b.refuses(command, decide.Rejected); a.Err != decide.RefusedAnswer || a.Field != tt.want || a.Detail == "" {
					t.Errorf("got %+v, want %s wrong", a, tt.want)
				}
				return
			}
			b.ok(command)
			f := b.resolved("i")
			if got := f.Decision + " " + string(facts.Answers(&f.Event)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			b.env.Actor.ID = "bob" // R22: whoever answers alike
			b.refuses(command, decide.AlreadyApplied)
			b.refuses(decide.AnswerQuestion{InterruptID: "i", Dismiss: true}, decide.Conflict)
			b.refuses(decide.AnswerQuestion{InterruptID: "i", Answers: answers{{Text: "other"}, {Text: "so"}}}, decide.Conflict)
			b.refuses(decide.AnswerQuestion{InterruptID: "i", Answers: answers{{Options: []int{1}}}}, decide.Conflict)
		})
	}
}

func TestQuestionsDismissed(t *testing.T) {
	b, run := running(t)
	dismiss := decide.AnswerQuestion{InterruptID: "i", Dismiss: true}
	b.refuses(dismiss, decide.NotFound)
	b.ok(decide.Ask{RunID: run, InterruptID: "i", WaitID: "w", ToolCallID: "c", Questions: []decide.Question{{Text: "Why?"}}})
	b.refuses(allow("i", ""), decide.NotFound)
	b.ok(dismiss)
	b.refuses(dismiss, decide.AlreadyApplied)
	b.refuses(decide.AnswerQuestion{InterruptID: "i", Answers: []decide.QuestionAnswer{{Text: "so"}}}, decide.Conflict)
	b.refuses(allow("i", ""), decide.NotFound)
}

// A choice of an agent's own words is a question, whose options are the words.
func TestChoiceOfOwnWords(t *testing.T) {
	b, run := running(t)
	ask := approval(run)
	ask.Kind, ask.Actions = "lab.colour", []string{"red", "blue"}
	b.ok(ask)
	b.refuses(allow("i", ""), decide.NotFound)
	b.refuses(decide.AnswerQuestion{InterruptID: "i", Dismiss: true}, decide.Unsupported)
	b.refuses(decide.AnswerQuestion{InterruptID: "i", Answers: []decide.QuestionAnswer{{Options: []int{2}}}}, decide.Rejected)
	b.ok(decide.AnswerQuestion{InterruptID: "i", Answers: []decide.QuestionAnswer{{Options: []int{1}}}})
	if got := b.resolved("i").Decision; got != "blue" {
		t.Errorf("got %q", got)
	}
}

// R22: another answer is another decision, in whatever order its options are told.
func TestAnswersAlike(t *testing.T) {
	b, run := running(t)
	b.ok(decide.Ask{RunID: run, InterruptID: "i", WaitID: "w", ToolCallID: "c", Questions: []decide.Question{
		{Text: "Which?", Options: []string{"a", "b", "c"}, Multiple: true},
	}})
	answer := func(options ...int) []decide.QuestionAnswer { return []decide.QuestionAnswer{{Options: options}} }
	b.ok(decide.Resolve{InterruptID: "i", Decision: "answer", Answers: answer(0, 2)})
	for _, tt := range []struct {
		options []int
		want    decide.Status
	}{
		{[]int{0, 2}, decide.AlreadyApplied}, {[]int{2, 0}, decide.AlreadyApplied}, {[]int{0}, decide.Conflict}, {[]int{0, 1, 2}, decide.Conflict}, {nil, decide.Conflict},
	} {
		b.refuses(decide.Resolve{InterruptID: "i", Decision: "answer", Answers: answer(tt.options...)}, tt.want)
		b.refuses(decide.AnswerQuestion{InterruptID: "i", Answers: answer(tt.options...)}, tt.want)
	}
}

// Who decides too late is told why nobody can decide any more.
func TestWhyNobodyDecided(t *testing.T) {
	for _, tt := range []struct {
		name  string
		close func(run string) decide.Command
		want  string
	}{
		{"its time is over", func(string) decide.Command { return decide.Expire{InterruptID: "i"} }, "in time"},
		{"stopped", func(run string) decide.Command { return decide.Stop{RootRunID: run} }, "before its run was stopped"},
		{"withdrawn", func(run string) decide.Command { return decide.Retract{RunID: run, InterruptID: "i"} }, "before it was withdrawn"},
		{"the agent's own reason", func(run string) decide.Command {
			return decide.Retract{RunID: run, InterruptID: "i", Reason: "bored"}
		}, "before it was withdrawn"},
		{"ended", func(run string) decide.Command {
			return decide.Ended{RunID: run, Ending: decide.Ending{State: session.Finished}}
		}, "before its run ended"},
		{"restarted", func(run string) decide.Command { return decide.Recover{} }, "before the host was restarted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asks := approval("")
			asks.Kind, asks.Actions = "lab.colour", []string{"red", "blue"}
			for _, of := range []struct {
				ask  decide.Ask
				late []decide.Command
				want string
			}{
				{approval(""), []decide.Command{allow("i", ""), deny("i", "")}, "nobody decided the permission "},
				{asks, []decide.Command{decide.AnswerQuestion{InterruptID: "i", Answers: []decide.QuestionAnswer{{Options: []int{0}}}}}, "nobody answered the question "},
				{approval(""), []decide.Command{decide.Resolve{InterruptID: "i", Decision: "deny"}}, "nobody decided the interrupt "},
			} {
				b, run := running(t)
				of.ask.RunID, of.ask.ExpiresIn = run, time.Minute
				b.ok(of.ask)
				b.env.Now = b.env.Now.Add(time.Minute)
				b.ok(tt.close(run))
				for _, c := range of.late {
					if a := b.refuses(c, decide.Expired); a.Detail != of.want+tt.want {
						t.Errorf("%#v: got %q, want %q", c, a.Detail, of.want+tt.want)
					}
				}
			}
		})
	}
}
