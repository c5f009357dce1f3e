package host_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

func TestMessageRunsToItsEnd(t *testing.T) {
	alone(t, acts{run: speaks}, host.Options{}, func(t *testing.T, s *stage) {
		if a := s.say("s1", "hi"); a.Status != decide.Accepted || a.RunID == "" || a.SessionSequence != 2 {
			t.Fatalf("got %+v, want accepted at 2 with a run", a)
		}
		synctest.Wait()
		want := created + " " + begun + " message.text.started message.text.delta message.text.completed run.finished"
		if got := s.story("s1"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

func TestPermissionGoesThroughAGate(t *testing.T) {
	alone(t, acts{run: asks}, host.Options{}, func(t *testing.T, s *stage) {
		s.say("s1", "write it")
		synctest.Wait()
		open := s.inbox()
		if len(open) != 1 || open[0].SessionID != "s1" || open[0].Kind != "approval" {
			t.Fatalf("inbox: got %+v, want one approval of s1", open)
		}
		if a := s.resolve(open[0].InterruptID, "APPROVE"); a.Status != decide.Rejected {
			t.Errorf("a decision that was not offered: got %+v, want rejected", a)
		}
		if a := s.resolve(open[0].InterruptID, "approve"); a.Status != decide.Accepted {
			t.Fatalf("got %+v, want accepted", a)
		}
		synctest.Wait()
		want := strings.Join([]string{created, begun, gated, decided, "tool.call.finished run.finished"}, " ")
		if got := s.story("s1"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if a := s.resolve(open[0].InterruptID, "approve"); a.Status != decide.AlreadyApplied || a.Decision != "approve" {
			t.Errorf("the same decision again: got %+v, want already_applied approve", a)
		}
		if a := s.resolve(open[0].InterruptID, "deny"); a.Status != decide.Conflict || a.Decision != "approve" || a.SessionSequence == 0 {
			t.Errorf("another decision: got %+v, want a conflict that names approve and its sequence", a)
		}
	})
}

// Field case 21: of many deciders one wins, and every other learns what was decided.
func TestFiftyDecideAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		s := open(t, j, acts{run: asks}, host.Options{})
		s.create("s1")
		s.say("s1", "write it")
		synctest.Wait()
		id := s.inbox()[0].InterruptID
		answers := make([]host.Answer, 50)
		words := []string{"approve", "deny"}
		var all sync.WaitGroup
		for i := range answers {
			all.Go(func() {
				a, err := s.host.Do(t.Context(), access.Owner(), host.Request{
					Action: access.ResolveInterrupt, CommandID: fmt.Sprint("c", i),
					Command: decide.Resolve{InterruptID: id, Decision: words[i%2]},
				})
				if err != nil {
					t.Error(err)
				}
				answers[i] = a
			})
		}
		all.Wait()
		winner := -1
		for i, a := range answers {
			if a.Status == decide.Accepted {
				if winner >= 0 {
					t.Fatalf("%d and %d were both accepted", winner, i)
				}
				winner = i
			}
		}
		if winner < 0 {
			t.Fatalf("nobody was accepted: %+v", answers)
		}
		for i, a := range answers {
			if a.Decision != words[winner%2] {
				t.Errorf("decider %d: got %+v, want the winner's %s", i, a, words[winner%2])
			}
		}
		synctest.Wait()
		if n := strings.Count(s.story("s1"), "interrupt.resolved"); n != 1 {
			t.Errorf("got %d decisions, want one", n)
		}
		s.close()
		again := open(t, j, acts{run: asks}, host.Options{}) // the winner's answer was lost, and the host too
		defer again.close()
		a := again.do(access.ResolveInterrupt, "", decide.Resolve{InterruptID: id, Decision: words[winner%2]}, fmt.Sprint("c", winner))
		if a.Status != decide.Accepted || a.SessionSequence != answers[winner].SessionSequence {
			t.Errorf("the winner again: got %+v, want its first answer %+v", a, answers[winner])
		}
	})
}

// Field case 45: a command whose answer was lost has one effect, also after a restart.
func TestCommandIDHasOneEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		s := open(t, j, acts{run: speaks}, host.Options{})
		s.create("s1")
		first := s.do(access.SendMessage, "s1", decide.Message{Content: "hi"}, "c1")
		synctest.Wait()
		s.close()
		again := open(t, j, acts{run: speaks}, host.Options{})
		defer again.close()
		if a := again.do(access.SendMessage, "s1", decide.Message{Content: "hi"}, "c1"); a != repeated(first) {
			t.Errorf("again: got %+v, want %+v", a, first)
		}
		if a := again.do(access.SendMessage, "s1", decide.Message{Content: "other"}, "c1"); a.Status != decide.Conflict || a.RunID != first.RunID {
			t.Errorf("other content: got %+v, want a conflict naming %s", a, first.RunID)
		}
		synctest.Wait()
		if n := strings.Count(again.story("s1"), "run.started"); n != 1 {
			t.Errorf("got %d runs, want one", n)
		}
	})
}

func TestStopEndsTheRunAndParksTheQueue(t *testing.T) {
	alone(t, acts{run: waits}, host.Options{}, func(t *testing.T, s *stage) {
		run := s.say("s1", "work").RunID
		waiting := s.say("s1", "and then this").RunID
		stop := decide.Stop{RootRunID: run}
		if a := s.do(access.StopRun, "s1", stop, ""); a.Status != decide.Accepted {
			t.Fatalf("got %+v, want accepted", a)
		}
		synctest.Wait()
		if a := s.do(access.StopRun, "s1", stop, ""); a.Status != decide.AlreadyApplied {
			t.Errorf("stop again: got %+v, want already_applied", a)
		}
		want := created + " " + begun + " session.custom run.stop.requested run.cancelled"
		if got := s.story("s1"); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
		if a := s.do(access.ChangeQueue, "s1", decide.Release{}, ""); a.Status != decide.Accepted || a.RunID != waiting {
			t.Errorf("release: got %+v, want accepted for %s", a, waiting)
		}
		synctest.Wait()
		if got := s.story("s1"); got != want+" session.custom "+begun {
			t.Errorf("after release: got %s", got)
		}
	})
}

// An agent that does not stop is ended after the grace, and the facts are the same.
func TestStopOfAHangingAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		hangs := func(context.Context, agent.Handle) agent.Ending {
			<-gone
			return agent.Ending{Outcome: agent.Failed, Code: "agent_exited"}
		}
		s := open(t, memory(t, journal.Options{}), acts{run: hangs, closed: gone}, host.Options{})
		defer s.close()
		s.create("s1")
		run := s.say("s1", "work").RunID
		synctest.Wait()
		s.do(access.StopRun, "s1", decide.Stop{RootRunID: run}, "")
		synctest.Wait()
		if got := s.story("s1"); strings.Contains(got, "run.cancelled") {
			t.Fatalf("the run ended before the grace did: %s", got)
		}
		<-time.After(11 * time.Second)
		synctest.Wait()
		if got := s.story("s1"); !strings.HasSuffix(got, "run.stop.requested run.cancelled") {
			t.Errorf("got %s, want it to end cancelled", got)
		}
	})
}

func TestQueueKeepsItsOrder(t *testing.T) {
	alone(t, acts{run: speaks}, host.Options{}, func(t *testing.T, s *stage) {
		for _, text := range []string{"one", "two", "three"} {
			s.say("s1", text)
		}
		synctest.Wait()
		var said []string
		for _, f := range s.facts("s1") {
			if m, ok := f.(*narad.MessageUserRecorded); ok {
				said = append(said, m.Content)
			}
		}
		if got := strings.Join(said, " "); got != "one two three" {
			t.Errorf("got %s, want one two three", got)
		}
	})
}

// A start beyond the places waits, and is taken up when one is free.
func TestPlacesAreBounded(t *testing.T) {
	alone(t, acts{run: waits}, host.Options{MaxRunning: 1}, func(t *testing.T, s *stage) {
		s.create("s2")
		first := s.say("s1", "work").RunID
		s.say("s2", "work")
		synctest.Wait()
		if got := s.story("s2"); got != "session.custom session.custom" {
			t.Fatalf("s2 while no place is free: got %s", got)
		}
		s.do(access.StopRun, "s1", decide.Stop{RootRunID: first}, "")
		synctest.Wait()
		if got := s.story("s2"); !strings.HasSuffix(got, begun) {
			t.Errorf("s2 after a place is free: got %s", got)
		}
	})
}

// Field case 51: whatever was open when the host died is closed in legal order before
// the next command, once, however often recovery is tried.
func TestRestartClosesWhatIsOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := func(ctx context.Context, h agent.Handle) agent.Ending {
			_ = h.Text(ctx, "I begin.")
			_, _ = h.StartTool(ctx, agent.Tool{AgentID: "a", Name: "shell", Kind: "execute", Args: narad.Raw(`{}`)})
			n, err := h.StartRun(ctx, agent.Nested{Name: "helper", Prompt: "help"})
			if err == nil {
				_ = n.Text(ctx, "Helping.")
				_ = n.Progress(ctx, agent.Progress{ID: "p", Category: "phase", Label: "Looking", Status: narad.ProgressActive, Privacy: narad.PrivacyPublic})
			}
			<-ctx.Done()
			return agent.Ending{}
		}
		j := memory(t, journal.Options{})
		s := open(t, j, acts{run: busy}, host.Options{})
		s.create("s1")
		s.say("s1", "work")
		s.say("s1", "then this")
		synctest.Wait()
		s.close()
		for range 2 { // the second recovery finds nothing to do
			s = open(t, j, acts{run: speaks}, host.Options{})
			synctest.Wait()
			s.close()
		}
		story := s.story("s1")
		for _, want := range []string{"run.error run.started message.user.recorded", "run.finished"} {
			if !strings.Contains(story, want) {
				t.Errorf("got %s, want %s in it", story, want)
			}
		}
		ended := 0
		for _, f := range s.facts("s1") {
			switch f := f.(type) {
			case *narad.ToolCallFinished:
				if f.Code != "outcome_unknown" || f.Outcome != narad.OutcomeError {
					t.Errorf("tool: got %s %s, want error outcome_unknown", f.Outcome, f.Code)
				}
			case *narad.RunError:
				ended++
				if f.Code != "host_restarted" {
					t.Errorf("run: got %s, want host_restarted", f.Code)
				}
			}
		}
		if ended != 2 {
			t.Errorf("got %d runs ended by the restart, want 2", ended)
		}
	})
}

// Field case 31: an open question of an agent that can resume is still open, and its
// decision lets the run go on.
func TestRestartKeepsAnOpenQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asker := func(ctx context.Context, h agent.Handle) agent.Ending {
			var a agent.Answer
			var err error
			if open := lastQuestion(h.Info().Past); open != "" {
				a, err = h.Await(ctx, open)
			} else {
				a, err = h.Ask(ctx, agent.Ask{Kind: "approval", Actions: []string{"approve", "deny"}})
			}
			if err != nil {
				return agent.Ending{Outcome: agent.Cancelled}
			}
			_ = h.Text(ctx, "You said "+a.Decision)
			return agent.Ending{}
		}
		j := memory(t, journal.Options{})
		s := open(t, j, acts{run: asker, resumes: true}, host.Options{})
		s.create("s1")
		s.say("s1", "ask me")
		synctest.Wait()
		before := s.inbox()
		s.close()
		s = open(t, j, acts{run: asker, resumes: true}, host.Options{})
		defer s.close()
		synctest.Wait()
		after := s.inbox()
		if len(before) != 1 || len(after) != 1 || before[0].InterruptID != after[0].InterruptID {
			t.Fatalf("inbox: got %+v after the restart, want %+v", after, before)
		}
		s.resolve(after[0].InterruptID, "deny")
		synctest.Wait()
		want := strings.Join([]string{
			created, begun, "interrupt.requested run.paused interrupt.resolved run.resumed",
			"message.text.started message.text.delta message.text.completed run.finished",
		}, " ")
		if got := s.story("s1"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

func lastQuestion(past []narad.Authority) string {
	id := ""
	for _, f := range past {
		if i, ok := f.(*narad.InterruptRequested); ok {
			id = i.InterruptID
		}
	}
	return id
}

// Field case 33: a deadline that passed while the host was down has passed.
func TestDeadlineWhileTheHostIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asker := func(ctx context.Context, h agent.Handle) agent.Ending {
			if len(h.Info().Past) == 0 {
				_, _ = h.Ask(ctx, agent.Ask{Kind: "approval", Actions: []string{"approve", "deny"}, ExpiresIn: 5 * time.Second})
			}
			<-ctx.Done()
			return agent.Ending{Outcome: agent.Cancelled}
		}
		j := memory(t, journal.Options{})
		s := open(t, j, acts{run: asker, resumes: true}, host.Options{})
		s.create("s1")
		s.say("s1", "ask me")
		synctest.Wait()
		id := s.inbox()[0].InterruptID
		s.close()
		<-time.After(10 * time.Second)
		s = open(t, j, acts{run: asker, resumes: true}, host.Options{})
		defer s.close()
		if a := s.resolve(id, "approve"); a.Status != decide.Expired {
			t.Errorf("got %+v, want expired", a)
		}
		if n := strings.Count(s.story("s1"), "interrupt.resolved"); n != 1 {
			t.Errorf("got %d resolutions, want one", n)
		}
	})
}

// Field case 89: a commit that fails shows nothing, and the session goes on from what
// is there.
func TestRefusedCommitChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := false
		j := memory(t, journal.Options{Fault: func(stage journal.Stage, _ journal.Group) error {
			if refuse && stage == journal.StageBuilt {
				return errors.New("no")
			}
			return nil
		}})
		s := open(t, j, acts{run: waits}, host.Options{})
		defer s.close()
		s.create("s1")
		refuse = true
		if _, err := s.host.Do(t.Context(), access.Owner(), host.Request{
			Action: access.SendMessage, Session: "s1", Command: decide.Message{Content: "hi"},
		}); err == nil {
			t.Fatal("the message was accepted although nothing was written")
		}
		refuse = false
		if got := s.story("s1"); got != created {
			t.Fatalf("got %s, want %s alone", got, created)
		}
		if a := s.say("s1", "hi"); a.Status != decide.Accepted || a.SessionSequence != 2 {
			t.Errorf("after that: got %+v, want accepted at 2", a)
		}
		synctest.Wait()
	})
}

// R18: where nobody is there to ask, an ask is denied in the batch that asks it.
func TestRuleAndPostureDecideAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory(t, journal.Options{}), acts{run: asks}, host.Options{
			Rules: []host.Rule{{Name: "edits", Effect: host.Allow, Kinds: []string{"edit"}}},
		})
		defer s.close()
		s.create("s1")
		s.say("s1", "write it")
		synctest.Wait()
		for _, f := range s.facts("s1") {
			if r, ok := f.(*narad.InterruptResolved); ok {
				if rule, _ := r.Actor.Field("rule").IsString(); r.Decision != "approve" || rule != "edits" {
					t.Errorf("got %s by %s, want approve by the rule edits", r.Decision, r.Actor)
				}
			}
		}
		if got := s.story("s1"); !strings.HasSuffix(got, "tool.call.finished run.finished") {
			t.Errorf("got %s", got)
		}
	})
}

// The policy goes by what the call is when the permission is asked: what it was at its start
// may have been nothing yet.
func TestRuleForACallThatIsToldLater(t *testing.T) {
	rules := []host.Rule{
		{Name: "keys", Effect: host.Deny, Kinds: []string{"edit"}, Path: "/keys/**"},
		{Name: "all else", Effect: host.Allow},
	}
	alone(t, acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
		options := []agent.Option{{ID: "y", Action: "approve"}, {ID: "n", Action: "deny"}}
		for _, now := range []agent.Permission{{}, {Kind: "edit", Paths: []string{"/keys/a"}}, {Kind: "edit", Paths: []string{"/src/a"}}} {
			call, _ := h.StartTool(ctx, agent.Tool{Name: "write", Kind: "other", Paths: []string{"/src"}})
			now.ToolCallID, now.Options = call, options
			a, err := h.Permit(ctx, now)
			if err != nil {
				t.Error(err)
			}
			_ = h.Text(ctx, a.Decision+" ")
			_ = h.FinishTool(ctx, call, agent.ToolResult{Outcome: narad.OutcomeSuccess})
		}
		return agent.Ending{}
	}}, host.Options{Rules: rules}, func(t *testing.T, s *stage) {
		s.say("s1", "go")
		synctest.Wait()
		said := ""
		for _, f := range s.facts("s1") {
			if d, ok := f.(*narad.MessageTextDelta); ok {
				said += d.Delta
			}
		}
		if said != "approve deny approve " {
			t.Errorf("got %q, want the call that turned out to be about a key denied", said)
		}
	})
}

func TestUnknownAndForbidden(t *testing.T) {
	alone(t, acts{run: speaks}, host.Options{}, func(t *testing.T, s *stage) {
		if a := s.say("nowhere", "hi"); a.Status != decide.NotFound {
			t.Errorf("unknown session: got %+v, want not_found", a)
		}
		if a := s.resolve("nothing", "approve"); a.Status != decide.NotFound {
			t.Errorf("unknown interrupt: got %+v, want not_found", a)
		}
		reader, err := access.NewPrincipal("p", "reader", access.Grant{Roles: []access.Role{access.Observe}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.host.Do(t.Context(), reader, host.Request{
			Action: access.SendMessage, Session: "s1", Command: decide.Message{Content: "hi"},
		})
		if !errors.Is(err, access.ErrForbidden) {
			t.Errorf("a reader who sends: got %v, want forbidden", err)
		}
		if got := s.story("s1"); got != created {
			t.Errorf("got %s, want nothing but %s", got, created)
		}
	})
}
