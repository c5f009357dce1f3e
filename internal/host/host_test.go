package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// acts is an agent that a test writes as a function.
type acts struct {
	run     func(context.Context, agent.Handle) agent.Ending
	resumes bool
	closed  chan struct{} // closed with the agent, if not nil
}

func (a acts) Open(context.Context, agent.Session) (agent.Agent, error) { return a, nil }
func (a acts) Resumes() bool                                            { return a.resumes }
func (a acts) Steers() bool                                             { return false }
func (a acts) Run(ctx context.Context, h agent.Handle) agent.Ending     { return a.run(ctx, h) }
func (a acts) Steer(context.Context, agent.Message) error               { return errors.ErrUnsupported }
func (a acts) Close() error {
	if a.closed != nil {
		close(a.closed)
	}
	return nil
}

// cast names one agent.
type cast struct{ kind agent.Kind }

func (c cast) Kind(string) (agent.Kind, bool) { return c.kind, c.kind != nil }
func (cast) Default() string                  { return "test" }

// stage is a host over a journal in memory.
type stage struct {
	t       *testing.T
	journal journal.Journal
	feed    *feed.Feed
	host    *host.Host
}

// open starts a host. The journal may have seen another one before.
func open(t *testing.T, j journal.Journal, kind agent.Kind, o host.Options) *stage {
	t.Helper()
	s := &stage{t: t, journal: j, feed: feed.New(j, feed.Options{})}
	s.host = host.New(j, s.feed, cast{kind}, o)
	if err := s.host.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// close ends the host as an orderly stop does; the journal goes on.
func (s *stage) close() {
	s.t.Helper()
	if err := s.host.Close(); err != nil {
		s.t.Error(err)
	}
	s.feed.Close()
}

func memory(t *testing.T, o journal.Options) journal.Journal {
	t.Helper()
	j, err := journal.NewMemory(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func (s *stage) do(action access.Action, id string, c decide.Command, commandID string) host.Answer {
	s.t.Helper()
	a, err := s.host.Do(s.t.Context(), access.Owner(), host.Request{Action: action, Session: id, Command: c, CommandID: commandID})
	if err != nil {
		s.t.Fatalf("%T: %v", c, err)
	}
	return a
}

func (s *stage) create(id string) {
	s.t.Helper()
	s.do(access.CreateSession, id, decide.Create{Payload: facts.Created{
		WorkspaceID: "default", RequiredProfiles: []string{"narad.conversation/v1"},
	}}, "")
}

func (s *stage) say(id, content string) host.Answer {
	s.t.Helper()
	return s.do(access.SendMessage, id, decide.Message{Content: content}, "")
}

// facts returns a session's facts, each judged as strictly as a host must be.
func (s *stage) facts(id string) []narad.Authority {
	s.t.Helper()
	state := session.New(session.Options{Remember: session.RememberAll})
	var list []narad.Authority
	for record, err := range journal.All(s.t.Context(), s.journal, id, 0) {
		if err != nil {
			s.t.Fatal(err)
		}
		if r := state.ApplyJSON(record.Bytes, true); r.Kind != session.Applied {
			s.t.Fatalf("fact %d: %v %s\n%s", record.Sequence, r.Kind, r.Code, record.Bytes)
		}
		rec, err := narad.Decode(record.Bytes)
		if err != nil {
			s.t.Fatal(err)
		}
		list = append(list, rec.(narad.Authority))
	}
	return list
}

// story is the types of a session's facts, without the prefix that many share.
func (s *stage) story(id string) string {
	s.t.Helper()
	var types []string
	for _, f := range s.facts(id) {
		types = append(types, string(f.Type()))
	}
	return strings.Join(types, " ")
}

func (s *stage) inbox() []host.Asked {
	s.t.Helper()
	list, _, err := s.host.Inbox(s.t.Context(), access.Owner(), "", "", 100)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

func (s *stage) resolve(interrupt, decision string) host.Answer {
	s.t.Helper()
	return s.do(access.ResolveInterrupt, "", decide.Resolve{InterruptID: interrupt, Decision: decision}, "")
}

// asks calls a tool and asks for its permission.
func asks(ctx context.Context, h agent.Handle) agent.Ending {
	id, err := h.StartTool(ctx, agent.Tool{AgentID: "call_1", Name: "write", Kind: "edit", Args: narad.Raw(`{"n":1.10}`)})
	if err != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	a, err := h.Permit(ctx, agent.Permission{ToolCallID: id, Title: "Write?", Options: []agent.Option{
		{ID: "y", Action: "approve"}, {ID: "n", Action: "deny"},
	}})
	if err != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	_ = h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Quote(a.Decision)})
	return agent.Ending{StopReason: "completed"}
}

func speaks(ctx context.Context, h agent.Handle) agent.Ending {
	_ = h.Text(ctx, "Hello, ")
	_ = h.Text(ctx, "world.")
	return agent.Ending{StopReason: "completed"}
}

func waits(ctx context.Context, h agent.Handle) agent.Ending {
	<-ctx.Done()
	return agent.Ending{Outcome: agent.Cancelled}
}

const (
	created = "session.custom"
	begun   = "run.started message.user.recorded"
	gated   = "tool.call.started run.started interrupt.requested run.paused"
	decided = "interrupt.resolved run.resumed run.finished"
)

func TestMessageRunsToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory(t, journal.Options{}), acts{run: speaks}, host.Options{})
		defer s.close()
		s.create("s1")
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
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory(t, journal.Options{}), acts{run: asks}, host.Options{})
		defer s.close()
		s.create("s1")
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
		if a := again.do(access.SendMessage, "s1", decide.Message{Content: "hi"}, "c1"); a != first {
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
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory(t, journal.Options{}), acts{run: waits}, host.Options{})
		defer s.close()
		s.create("s1")
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
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory(t, journal.Options{}), acts{run: speaks}, host.Options{})
		defer s.close()
		s.create("s1")
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
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory(t, journal.Options{}), acts{run: waits}, host.Options{MaxRunning: 1})
		defer s.close()
		s.create("s1")
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

func TestUnknownAndForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory(t, journal.Options{}), acts{run: speaks}, host.Options{})
		defer s.close()
		s.create("s1")
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
