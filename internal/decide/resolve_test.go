package decide_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// R22: what is closed answers by what was decided.
func TestResolveClosed(t *testing.T) {
	b, run := running(t)
	b.ok(approval(run))
	b.ok(decide.Resolve{InterruptID: "i", Decision: "approve"})
	at := b.owner.Last() - 1
	for decision, want := range map[string]decide.Status{"approve": decide.AlreadyApplied, "deny": decide.Conflict} {
		a := b.refuses(decide.Resolve{InterruptID: "i", Decision: decision}, want)
		if a.Decision != "approve" || a.SessionSequence != at || a.RequestID != "i" {
			t.Errorf("%s: got %+v, want approve at %d", decision, a, at)
		}
	}
	b.refuses(decide.Resolve{InterruptID: "nothing", Decision: "approve"}, decide.NotFound)
}

// Field case 27: only what was offered is decided, and only the host lets things expire.
func TestDecisionNotOffered(t *testing.T) {
	b, run := running(t)
	b.ok(approval(run))
	for _, decision := range []string{"approve_always", "", "APPROVE", "expired", "stop"} {
		b.refuses(decide.Resolve{InterruptID: "i", Decision: decision}, decide.Rejected)
	}
	if a := b.refuses(decide.Resolve{InterruptID: "i", Decision: "perhaps"}, decide.Rejected); !strings.HasSuffix(a.Detail, ": approve, deny") {
		t.Errorf("got %q, want it to name what is offered", a.Detail)
	}
	b.refuses(decide.Resolve{InterruptID: "i", Decision: "approve", Members: []string{"a"}}, decide.Rejected)
	b.refuses(decide.Resolve{InterruptID: "i", Decision: "approve", Answers: []decide.QuestionAnswer{{Text: "x"}}}, decide.Rejected)
	b.ok(decide.Resolve{InterruptID: "i", Decision: "approve"})
}

// R22: expectedRevision is a revision of the session since the request.
func TestExpectedRevision(t *testing.T) {
	b, run := running(t)
	b.ok(approval(run))
	asked := b.owner.Last() - 1
	head := b.owner.Last()
	b.refuses(decide.Resolve{InterruptID: "i", Decision: "approve", ExpectedRevision: asked - 1}, decide.Conflict)
	b.refuses(decide.Resolve{InterruptID: "i", Decision: "approve", ExpectedRevision: head + 1}, decide.Conflict)
	b.ok(decide.Resolve{InterruptID: "i", Decision: "approve", ExpectedRevision: asked})
}

// Field case 24: one answer decides one question.
func TestOneAnswerDecidesOne(t *testing.T) {
	b, run := running(t)
	for _, id := range []string{"1", "2", "3"} {
		b.ok(decide.StartTool{RunID: run, ToolCallID: "call-" + id, Name: "x", Args: narad.Raw("{}")})
		b.ok(permit(run, "call-"+id, "gate-"+id, "i-"+id))
	}
	b.ok(decide.Resolve{InterruptID: "i-2", Decision: "deny"})
	open := b.owner.OpenInterrupts()
	if len(open) != 2 || open[0].InterruptID != "i-1" || open[1].InterruptID != "i-3" {
		t.Errorf("open: got %+v, want i-1 and i-3", open)
	}
	b.ok(decide.Resolve{InterruptID: "i-3", Decision: "approve"})
	b.ok(decide.Resolve{InterruptID: "i-1", Decision: "approve"})
}

// R12: the first vote of a member stands, the last member's settles the pack, and each
// member keeps its own decision.
func TestPack(t *testing.T) {
	b, run := running(t)
	ask := approval(run)
	ask.Actions = []string{"approve", "approve_always", "deny", "stop"}
	ask.Members = members("a", "b", "c")
	ask.Input = narad.Raw(`{"own":1}`)
	b.ok(ask)
	b.story()
	vote := func(decision string, members ...string) decide.Resolve {
		return decide.Resolve{InterruptID: "i", Decision: decision, Members: members}
	}
	b.ok(vote("approve", "a", "a"))
	b.refuses(vote("approve", "a"), decide.AlreadyApplied)
	if a := b.refuses(vote("deny", "a", "b"), decide.Conflict); a.Decision != "approve" {
		t.Errorf("got %+v, want the first vote", a)
	}
	b.refuses(vote("deny", "x"), decide.Rejected)
	b.tells(`mahati.decision run-1 i a:approve`)
	b.ok(vote("approve_always", "b"))
	b.ok(vote("approve")) // for those still open
	b.tells(`
		mahati.decision run-1 i b:approve_always
		mahati.decision run-1 i c:approve
		interrupt.resolved run-1 i approve a:approve b:approve_always c:approve
		run.resumed run-1`)
	b.refuses(vote("approve_always", "b"), decide.AlreadyApplied)
	b.refuses(vote("approve"), decide.AlreadyApplied)
	if a := b.refuses(vote("deny", "b"), decide.Conflict); a.Decision != "approve_always" {
		t.Errorf("got %+v, want what was decided for b", a)
	}
}

func TestFoldOfAPack(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"approve", "approve", "approve"},
		{"approve_always", "approve_always", "approve"},
		{"approve", "deny", "deny"},
		{"deny_always", "deny_always", "deny"},
		{"approve", "stop", "stop"},
	} {
		b, run := running(t)
		ask := approval(run)
		ask.Actions = []string{"approve", "approve_always", "deny", "deny_always", "stop"}
		ask.Members = members("a", "b")
		b.ok(ask)
		b.ok(decide.Resolve{InterruptID: "i", Decision: tt.a, Members: []string{"a"}})
		b.ok(decide.Resolve{InterruptID: "i", Decision: tt.b, Members: []string{"b"}})
		if was, _ := b.closed("i"); was.Decision != tt.want {
			t.Errorf("%s and %s: got %s, want %s", tt.a, tt.b, was.Decision, tt.want)
		}
	}
}

// Field case 33: a deadline counts when it has come, whoever comes first.
func TestDeadline(t *testing.T) {
	for _, tt := range []struct {
		name string
		by   decide.Command
		want decide.Status
	}{
		{"the timer", decide.Expire{InterruptID: "i"}, decide.Accepted},
		{"a decider who is late", decide.Resolve{InterruptID: "i", Decision: "approve"}, decide.Expired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, run := running(t)
			ask := approval(run)
			ask.ExpiresIn = 5 * time.Second
			b.ok(ask)
			b.story()
			b.refuses(decide.Expire{InterruptID: "i"}, decide.AlreadyApplied)
			b.env.Now = b.env.Now.Add(-time.Hour) // the clock jumps back: too early still
			b.refuses(decide.Expire{InterruptID: "i"}, decide.AlreadyApplied)
			b.env.Now = b.env.Now.Add(time.Hour + 5*time.Second)
			if a := b.do(tt.by); a.Status != tt.want || a.Decision != "expired" {
				t.Errorf("got %+v, want %s", a, tt.want)
			}
			b.tells(`
				interrupt.resolved run-1 i expired expired
				run.resumed run-1`)
			b.refuses(decide.Expire{InterruptID: "i"}, decide.AlreadyApplied)
			b.refuses(decide.Resolve{InterruptID: "i", Decision: "approve"}, decide.Expired)
		})
	}
}

// R12: each member's decision governs that member. An expired pack expires for those that
// nobody has decided, and for nobody else.
func TestDeadlineOfAPackAndAQuestion(t *testing.T) {
	b, run := running(t)
	ask := approval(run)
	ask.Members, ask.ExpiresIn = members("a", "b"), time.Second
	b.ok(ask)
	b.ok(decide.Resolve{InterruptID: "i", Decision: "approve", Members: []string{"a"}})
	b.env.Now = b.env.Now.Add(time.Second)
	b.story()
	b.ok(decide.Expire{InterruptID: "i"})
	b.ok(decide.Ask{RunID: run, InterruptID: "q", WaitID: "w", ToolCallID: "call", ExpiresIn: time.Second, Questions: []decide.Question{{Text: "?"}}})
	b.env.Now = b.env.Now.Add(time.Second)
	b.ok(decide.Expire{InterruptID: "q"})
	b.tells(`
		interrupt.resolved run-1 i deny expired a:approve b:expired
		run.resumed run-1
		tool.call.started run-1 call ask_user
		interrupt.requested run-1 q question answer,dismiss
		run.paused run-1
		interrupt.resolved run-1 q expired expired
		run.resumed run-1
		tool.call.finished run-1 call cancelled expired`)
}

// R12: whatever closes a pack, its agent is told of each member what was decided for it,
// and so is whoever decides later.
func TestMembersDecidedBeforeTheirPackIsClosed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		close  func(run string) decide.Command
		reason string
	}{
		{"its time is over", func(string) decide.Command { return decide.Expire{InterruptID: "i"} }, "expired"},
		{"a stop", func(run string) decide.Command { return decide.Stop{RootRunID: run} }, "stopped"},
		{"withdrawn by its agent", func(run string) decide.Command { return decide.Retract{RunID: run, InterruptID: "i"} }, "withdrawn"},
		{"the end of its run", func(run string) decide.Command {
			return decide.Ended{RunID: run, Ending: decide.Ending{State: session.Failed}}
		}, "ended"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, run := running(t)
			ask := approval(run)
			ask.Members, ask.ExpiresIn = members("a", "b", "c"), time.Minute
			b.ok(ask)
			vote := func(decision string, members ...string) decide.Resolve {
				return decide.Resolve{InterruptID: "i", Decision: decision, Members: members}
			}
			b.ok(vote("approve", "a"))
			b.ok(vote("deny", "b"))
			b.env.Now = b.env.Now.Add(time.Minute)
			b.refuses(vote("approve", "a"), decide.AlreadyApplied) // its time is over for what is open
			b.ok(tt.close(run))
			told := tell(b.resolved("i"))
			if want := "interrupt.resolved " + run + " i deny " + tt.reason + " a:approve b:deny c:expired"; told != want {
				t.Errorf("got %s\nwant %s", told, want)
			}
			b.refuses(vote("approve", "a"), decide.AlreadyApplied)
			b.refuses(vote("deny", "a"), decide.Conflict)
			b.refuses(vote("deny", "b"), decide.AlreadyApplied)
			for _, late := range []decide.Resolve{vote("approve", "c"), vote("deny", "c"), vote("approve"), vote("deny"), vote("approve", "a", "c")} {
				b.refuses(late, decide.Expired)
			}
		})
	}
}

func TestAwait(t *testing.T) {
	b, run := running(t)
	b.ok(approval(run))
	b.ok(decide.Await{RunID: run, InterruptID: "i"})
	b.ok(decide.Resolve{InterruptID: "i", Decision: "deny"})
	b.refuses(decide.Await{RunID: run, InterruptID: "i"}, decide.AlreadyApplied)
	b.ok(decide.Ended{RunID: run})
	b.bars(decide.Await{RunID: run, InterruptID: "i"}, decide.RefusedEnded)
}
