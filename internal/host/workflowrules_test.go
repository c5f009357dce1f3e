package host_test

import (
	"context"
	"strings"
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

const single = `
workflow: 1
nodes:
  one: {agent: x, prompt: go, next: end}
  end: {end: completed}
`

const asking = `
workflow: 1
nodes:
  sure: {approval: {title: "Sure?", expires: 1h}, next: end, on_failure: no}
  end: {end: completed}
  no: {end: failed, code: refused, message: "{{/sure/decision}}"}
`

func (s *stage) stop(c decide.Stop) host.Answer {
	s.t.Helper()
	return s.do(access.StopRun, "s1", c, "")
}

// §3.1: a workflow and a run share the one slot; a second start is refused and says what
// holds it, a message waits, and gets its turn when the workflow has ended.
func TestWorkflowHoldsTheSlot(t *testing.T) {
	a := acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
		_ = waitUntil(ctx, time.Minute)
		return agent.Ending{}
	}}
	alone(t, a, host.Options{}, func(t *testing.T, s *stage) {
		started := s.start(single)
		synctest.Wait()
		again := s.do(access.StartWorkflow, "s1", start(single), "")
		if again.Status != decide.Conflict || again.WorkflowID != started.WorkflowID || again.RunID == "" {
			t.Errorf("a second start: got %+v, want a conflict that names %s", again, started.WorkflowID)
		}
		refused := s.do(access.SendMessage, "s1", decide.Message{Content: "x", WhenBusy: decide.WhenBusyReject}, "")
		if refused.Status != decide.Conflict || refused.WorkflowID != started.WorkflowID {
			t.Errorf("a message that does not wait: got %+v", refused)
		}
		queued := s.say("s1", "after")
		s.idle(first)
		got := s.story("s1")
		if want := "workflow.step.finished workflow.finished " + begun + " run.finished"; !strings.HasSuffix(got, want) {
			t.Errorf("got %s\nwant it to end with %s", got, want)
		}
		for _, f := range s.facts("s1") {
			if e := f.Envelope(); e.RunID == queued.RunID && e.WorkflowID != "" {
				t.Errorf("%s of the message belongs to the workflow", f.Type())
			}
		}
		if a := s.do(access.ArchiveSession, "s1", decide.Archive{}, ""); a.Status != decide.Accepted {
			t.Errorf("archive: %+v", a)
		}
		if a := s.do(access.StartWorkflow, "s1", start(single), ""); a.Status != decide.Conflict {
			t.Errorf("a start in an archived session: %+v", a)
		}
	})
}

// waitUntil lets an agent work for a while.
func waitUntil(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// R21: the same command again is the same workflow, also when its agent is gone.
func TestWorkflowStartIsIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		s := open(t, j, acts{run: speaks}, host.Options{})
		s.create("s1")
		one := s.do(access.StartWorkflow, "s1", start(single), "c1")
		s.idle(first)
		two := s.do(access.StartWorkflow, "s1", start(single), "c1")
		if two != repeated(one) || one.WorkflowID == "" {
			t.Errorf("got %+v and %+v", one, two)
		}
		if other := s.do(access.StartWorkflow, "s1", start(asking), "c1"); other.Status != decide.Conflict || other.WorkflowID != one.WorkflowID {
			t.Errorf("another workflow under the same id: %+v", other)
		}
		if n := strings.Count(s.story("s1"), "workflow.started"); n != 1 {
			t.Errorf("%d workflows", n)
		}
		s.close()
		s = open(t, j, nil, host.Options{})
		defer s.close()
		if three := s.do(access.StartWorkflow, "s1", start(single), "c1"); three != repeated(one) {
			t.Errorf("after a restart without the agent: got %+v, want %+v", three, one)
		}
		if a := s.do(access.StartWorkflow, "s1", start(single), "c2"); a.Status != decide.Rejected || a.Detail == "" {
			t.Errorf("a workflow of an agent that is not there: %+v", a)
		}
	})
}

// R14, field case 59: a stop names the run, the workflow or neither; the workflow ends
// cancelled once, and a second stop is no second effect.
func TestWorkflowStop(t *testing.T) {
	alone(t, acts{run: waits}, host.Options{}, func(t *testing.T, s *stage) {
		started := s.start(single)
		synctest.Wait()
		queued := s.say("s1", "after")
		root := s.stop(decide.Stop{Reason: "enough"})
		if root.Status != decide.Accepted || root.WorkflowID != started.WorkflowID || root.RunID == "" {
			t.Errorf("stop: %+v", root)
		}
		synctest.Wait()
		want := "workflow.stop.requested run.stop.requested run.cancelled workflow.step.failed workflow.cancelled"
		if got := s.story("s1"); !strings.HasSuffix(got, want) {
			t.Errorf("got %s\nwant it to end with %s", got, want)
		}
		for _, c := range []decide.Stop{{}, {RootRunID: root.RunID}, {WorkflowID: started.WorkflowID}} {
			if a := s.stop(c); a.Status != decide.AlreadyApplied {
				t.Errorf("%+v again: %+v", c, a)
			}
		}
		if a := s.stop(decide.Stop{WorkflowID: "other"}); a.Status != decide.NotFound {
			t.Errorf("stop of a workflow that is not there: %+v", a)
		}
		// A stop parks the queue (R16).
		if a := s.do(access.ChangeQueue, "s1", decide.Release{}, ""); a.Status != decide.Accepted || a.RunID != queued.RunID {
			t.Errorf("release: %+v", a)
		}
		s.stop(decide.Stop{})
	})
}

// A workflow that waits for a person has no run: its stop closes the question.
func TestWorkflowStopWhileItAsks(t *testing.T) {
	alone(t, acts{run: waits}, host.Options{}, func(t *testing.T, s *stage) {
		started := s.start(asking)
		synctest.Wait()
		ask := s.inbox()[0]
		if ask.WorkflowID != started.WorkflowID || ask.RunID != "" {
			t.Errorf("the inbox shows %+v", ask)
		}
		if a := s.stop(decide.Stop{WorkflowID: started.WorkflowID}); a.Status != decide.Accepted {
			t.Errorf("stop: %+v", a)
		}
		synctest.Wait()
		want := "workflow.stop.requested interrupt.resolved workflow.resumed workflow.custom workflow.step.failed workflow.cancelled"
		want = strings.Replace(want, "workflow.custom ", "", 1) // what nobody decided is no data
		if got := s.story("s1"); !strings.HasSuffix(got, want) {
			t.Errorf("got %s\nwant it to end with %s", got, want)
		}
		if a := s.resolve(ask.InterruptID, "approve"); a.Status != decide.Expired {
			t.Errorf("a late decision: %+v", a)
		}
	})
}

// What nobody approved does not go on: denied, expired, or nobody there to ask (R18).
func TestWorkflowGoesOnOnlyIfApproved(t *testing.T) {
	for name, c := range map[string]struct {
		decide   func(*stage)
		detached bool
		want     string
	}{
		"approved": {decide: func(s *stage) { s.resolve(s.inbox()[0].InterruptID, "approve") }, want: "workflow.finished"},
		"denied":   {decide: func(s *stage) { s.resolve(s.inbox()[0].InterruptID, "deny") }, want: "workflow.error refused deny"},
		"expired":  {decide: func(*stage) { pass(2 * time.Hour) }, want: "workflow.error refused expired"},
		"detached": {decide: func(*stage) {}, detached: true, want: "workflow.error refused deny"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := memory(t, journal.Options{})
				s := open(t, j, acts{run: waits}, host.Options{})
				s.create("s1")
				if c.detached {
					s.close()
					detach(t, j)
					s = open(t, j, acts{run: waits}, host.Options{})
				}
				defer s.close()
				s.start(asking)
				synctest.Wait()
				c.decide(s)
				s.idle(func(host.Asked) string { return "" })
				if got := s.steps(); !strings.HasSuffix(got, "\n"+c.want) {
					t.Errorf("got\n%s\nwant it to end with %s", got, c.want)
				}
				for _, f := range s.facts("s1") {
					if r, ok := f.(*narad.InterruptResolved); ok && r.Scope != narad.ScopeWorkflow {
						t.Errorf("the decision has scope %q", r.Scope)
					}
				}
			})
		})
	}
}

// The time until the next attempt is kept by the journal: a host that was away for it
// tries at once, and one that comes back earlier waits for the rest.
func TestWorkflowRetryOverRestart(t *testing.T) {
	const retrying = `
workflow: 1
nodes:
  one: {agent: x, prompt: go, attempts: 2, backoff: 1h, next: end}
  end: {end: completed}
`
	for _, away := range []time.Duration{time.Minute, 2 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			j := memory(t, journal.Options{})
			fails := acts{run: func(context.Context, agent.Handle) agent.Ending {
				return agent.Ending{Outcome: agent.Failed, Code: "no"}
			}}
			s := open(t, j, fails, host.Options{})
			s.create("s1")
			began := time.Now()
			s.start(retrying)
			synctest.Wait()
			s.close()
			pass(away)
			s = open(t, j, acts{run: speaks}, host.Options{})
			defer s.close()
			s.idle(first)
			if got := s.steps(); !strings.HasSuffix(got, "started one 2\nrun.finished\nfinished one 2\nworkflow.finished") {
				t.Errorf("away for %s: got\n%s", away, got)
			}
			if took, least := time.Since(began), max(away, time.Hour); took < least || took > least+5*time.Minute {
				t.Errorf("away for %s: it took %s, want about %s", away, took, least)
			}
		})
	}
}

// Steps take a place among the running agents like any run, and keep no place while a
// person is asked.
func TestWorkflowsTakePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory(t, journal.Options{}), acts{run: waits}, host.Options{MaxRunning: 1})
		defer s.close()
		s.create("s1")
		s.create("s2")
		s.start(asking)
		synctest.Wait()
		run := s.say("s2", "work")
		synctest.Wait()
		if got := s.story("s2"); !strings.HasSuffix(got, begun) {
			t.Fatalf("a workflow that asks holds a place: %s", got)
		}
		s.stop(decide.Stop{})
		synctest.Wait()
		s.start(single)
		synctest.Wait()
		if got := s.story("s1"); strings.Contains(got, "run.started") {
			t.Fatalf("two agents run in one place: %s", got)
		}
		if a := s.do(access.StopRun, "s2", decide.Stop{RootRunID: run.RunID}, ""); a.Status != decide.Accepted {
			t.Fatal(a)
		}
		pass(5 * time.Second)
		if got := s.story("s1"); !strings.HasSuffix(got, "workflow.step.started "+begun) {
			t.Errorf("the step did not get the place: %s", got)
		}
		s.stop(decide.Stop{})
		synctest.Wait()
	})
}

// The agent of a session keeps its own memory: what a step remembers is not the session's.
func TestWorkflowAgentsBeginAnew(t *testing.T) {
	var refs []string
	remembers := kindFunc(func(s agent.Session) agent.Agent {
		refs = append(refs, s.Ref)
		return acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
			if err := h.Remember(ctx, "ref of "+h.Info().Prompt.Content); err != nil {
				return agent.Ending{Outcome: agent.Failed}
			}
			return agent.Ending{}
		}}
	})
	alone(t, remembers, host.Options{}, func(t *testing.T, s *stage) {
		s.say("s1", "hello")
		s.idle(first)
		s.start(single)
		s.idle(first)
		s.say("s1", "again")
		s.idle(first)
		if got, want := strings.Join(refs, "|"), "||ref of hello"; got != want {
			t.Errorf("agents were opened with the references %q, want %q", got, want)
		}
	})
}

// kindFunc is an agent that a test makes for each session.
type kindFunc func(agent.Session) agent.Agent

func (k kindFunc) Open(_ context.Context, s agent.Session) (agent.Agent, error) { return k(s), nil }
func (kindFunc) Resumes() bool                                                  { return false }
func (kindFunc) Steers() bool                                                   { return false }
