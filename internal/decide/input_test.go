package decide_test

import (
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
)

// refusesInput is do for an input that must be refused for a reason.
func (b *bed) refusesInput(c decide.Command, status decide.Status, why decide.Refusal) decide.Answer {
	b.t.Helper()
	a := b.refuses(c, status)
	if a.Err != why {
		b.t.Fatalf("%#v: refused as %q (%s), want %q", c, a.Err, a.Detail, why)
	}
	return a
}

// R38: a message steers the run that it names while that runs, and no other.
func TestSubmitMessage(t *testing.T) {
	b, run := running(t)
	say := func(id string) decide.SubmitMessage { return decide.SubmitMessage{RunID: id, Text: "more"} }
	b.refusesInput(say(run), decide.Unsupported, decide.RefusedUnsteerable)
	b.env.CanSteer, b.env.InputID = true, "in"
	b.ok(say(run))
	last := b.list[len(b.list)-1]
	if m, ok := last.(*narad.MessageUserRecorded); !ok || m.Content != "more" || m.RunID != run || facts.InputID(&m.Event) != "in" {
		t.Errorf("got %+v, want the message in its run, with its input", last)
	}
	for class, want := range map[string]bool{"": false, "public": false, "private": false, "secret": true, "TOP": true} {
		b.ok(decide.SubmitMessage{RunID: run, Text: "more", Sensitivity: class})
		if got := facts.Secret(b.list[len(b.list)-1].Envelope()); got != want {
			t.Errorf("a message of class %q is secret: %v", class, got)
		}
	}
	waiting := b.ok(decide.Message{Content: "next"}).RunID
	b.refusesInput(say(waiting), decide.Conflict, decide.RefusedWaiting)
	b.refusesInput(say("none"), decide.NotFound, "")
	b.refusesInput(decide.SubmitMessage{RunID: run}, decide.Rejected, "")
	b.ok(decide.CancelRun{RunID: run, Reason: "enough"})
	b.refusesInput(say(run), decide.Conflict, decide.RefusedStopped)
	b.ok(decide.Ended{RunID: run})
	b.refusesInput(say(run), decide.Conflict, decide.RefusedStopped)
	b.ok(decide.CancelRun{RunID: waiting, Reason: "enough"})
	b.refusesInput(say(waiting), decide.Conflict, decide.RefusedStopped)
	done := b.ok(decide.Message{Content: "again"}).RunID
	b.ok(decide.Ended{RunID: done})
	b.refusesInput(say(done), decide.Conflict, decide.RefusedEnded)
}

// R14: a cancel hits the run that it names: one that has ended otherwise is told so.
func TestCancelRun(t *testing.T) {
	b, run := running(t)
	b.env.InputID = "in"
	cancel := decide.CancelRun{RunID: run, Reason: "enough"}
	b.ok(cancel)
	stop, ok := b.list[len(b.list)-1].(*narad.RunStopRequested)
	reason, _ := narad.Raw(stop.Optional("reason")).IsString()
	if !ok || reason != "enough" || facts.InputID(&stop.Event) != "in" {
		t.Errorf("got %+v, want the stop with its reason and input", stop)
	}
	b.refuses(cancel, decide.AlreadyApplied)
	b.ok(decide.Ended{RunID: run})
	b.refuses(cancel, decide.AlreadyApplied)
	done := b.ok(decide.Message{Content: "again"}).RunID
	b.ok(decide.Ended{RunID: done})
	b.refusesInput(decide.CancelRun{RunID: done, Reason: "late"}, decide.Conflict, decide.RefusedEnded)
	b.refuses(decide.CancelRun{RunID: "none", Reason: "x"}, decide.NotFound)
}

func resolves(run, approval, decision string) decide.ResolveApproval {
	return decide.ResolveApproval{RunID: run, ApprovalID: approval, Decision: decision}
}

// An approval is one of the run's own tree, gates included, decided once by one of two words.
func TestResolveApproval(t *testing.T) {
	b, run := running(t)
	b.ok(decide.StartTool{RunID: run, ToolCallID: "call", Name: "x", Args: narad.Raw("{}")})
	gate := permit(run, "call", "gate", "i")
	gate.Input = narad.Raw(`{"toolCallId":"call","action":"edit","resource":"/a"}`)
	b.ok(gate)
	b.story()
	b.refusesInput(resolves("other", "i", "approve"), decide.NotFound, decide.RefusedApproval)
	b.refusesInput(resolves(run, "none", "approve"), decide.NotFound, decide.RefusedApproval)
	wide := resolves(run, "i", "approve")
	wide.Scope = "edit /"
	b.refusesInput(wide, decide.Rejected, decide.RefusedScope)
	right := resolves(run, "i", "approve")
	right.Scope = "edit /a"
	if a := b.ok(right); a.Decision != "approve" {
		t.Errorf("got %+v, want approve", a)
	}
	b.tells(`
		interrupt.resolved gate i approve
		run.resumed gate
		run.finished gate`)
	b.refuses(resolves(run, "i", "approve"), decide.AlreadyApplied)
	if a := b.refusesInput(resolves(run, "i", "deny"), decide.Conflict, decide.RefusedApproval); a.Decision != "approve" {
		t.Errorf("got %+v, want the winner's decision", a)
	}
	b.refusesInput(resolves("other", "i", "approve"), decide.NotFound, decide.RefusedApproval)
}

// R11: approve means once; where that is not offered the word is refused.
func TestApproveThatIsNotOffered(t *testing.T) {
	b, run := running(t)
	ask := approval(run)
	ask.Actions = []string{"approve_always", "deny"}
	b.ok(ask)
	b.refusesInput(resolves(run, "i", "approve"), decide.Rejected, decide.RefusedNotOffered)
	b.ok(resolves(run, "i", "deny"))
}

// R12: a decision by input is a vote where several must decide.
func TestApprovalOfSeveral(t *testing.T) {
	b, run := running(t)
	ask := approval(run)
	ask.Input = narad.Raw(`{"quorum":2}`)
	b.ok(ask)
	if a := b.ok(resolves(run, "i", "approve")); a.Decision != "" || a.Detail != "1 of 2 approvals" {
		t.Errorf("got %+v, want a vote", a)
	}
	b.env.Actor = facts.Actor{ID: "bob"}
	if a := b.ok(resolves(run, "i", "approve")); a.Decision != "approve" {
		t.Errorf("got %+v, want the decision", a)
	}
}

// R13: approve is the one option that a single question recommends, deny dismisses it.
func TestQuestionByTwoWords(t *testing.T) {
	one := func(i int) *int { return &i }
	for name, tt := range map[string]struct {
		questions []decide.Question
		decision  string // "" if approve is refused
	}{
		"single":          {[]decide.Question{{Text: "?", Options: []string{"a", "b"}, Recommended: one(1)}}, "1"},
		"single, free":    {[]decide.Question{{Text: "?", Options: []string{"a", "b"}, Free: true, Recommended: one(0)}}, "answer"},
		"none is better":  {[]decide.Question{{Text: "?", Options: []string{"a", "b"}}}, ""},
		"no such option":  {[]decide.Question{{Text: "?", Options: []string{"a"}, Recommended: one(7)}}, ""},
		"several":         {[]decide.Question{{Text: "?", Options: []string{"a"}, Recommended: one(0)}, {Text: "?"}}, ""},
		"nothing offered": {[]decide.Question{{Text: "?"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, run := running(t)
			b.ok(decide.Ask{RunID: run, InterruptID: "i", WaitID: "w", ToolCallID: "q", Questions: tt.questions})
			if tt.decision == "" {
				b.refusesInput(resolves(run, "i", "approve"), decide.Rejected, decide.RefusedNotOffered)
			} else if a := b.ok(resolves(run, "i", "approve")); a.Decision != tt.decision {
				t.Errorf("got %+v, want %s", a, tt.decision)
			}
			b, run = running(t)
			b.ok(decide.Ask{RunID: run, InterruptID: "i", WaitID: "w", ToolCallID: "q", Questions: tt.questions})
			if a := b.ok(resolves(run, "i", "deny")); a.Decision != "dismiss" {
				t.Errorf("got %+v, want dismiss", a)
			}
			b.refuses(resolves(run, "i", "deny"), decide.AlreadyApplied)
		})
	}
}

// R16: a start waits its turn, or is refused, as it wants.
func TestStartRootRun(t *testing.T) {
	b := open(t)
	b.env.InputID = "in"
	run := b.ok(decide.StartRootRun{Text: "go", WorkspaceID: "default"}).RunID
	start, ok := b.list[len(b.list)-2].(*narad.RunStarted)
	if !ok || start.RunID != run || facts.InputID(&start.Event) != "in" {
		t.Errorf("got %+v, want the start with its input", start)
	}
	b.refuses(decide.StartRootRun{Text: "go", WhenBusy: decide.WhenBusyReject}, decide.Conflict)
	b.refuses(decide.StartRootRun{Text: "go", WorkspaceID: "other"}, decide.Conflict)
	b.refuses(decide.StartRootRun{}, decide.Rejected)
	if next := b.ok(decide.StartRootRun{Text: "then"}).RunID; next == run || len(b.desk.Queue) != 1 || b.desk.Queue[0].InputID != "in" {
		t.Errorf("got run %s and queue %+v, want a run of its own that waits", next, b.desk.Queue)
	}
	newBed(t).refuses(decide.StartRootRun{Text: "go"}, decide.NotFound)
}
