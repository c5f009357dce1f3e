package host_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// flowPlay is the story of a workflow with a message behind it.
type flowPlay struct {
	t          *testing.T
	j          journal.Journal
	w          *power
	kind       agent.Kind
	definition string
}

// live starts a host, commands what is to be done, and reports whether it comes to the
// end. A client repeats its commands in every life.
func (p *flowPlay) live(ctx context.Context) bool {
	f := newFeed(p.j)
	h := host.New(p.j, f, cast{p.kind}, host.Options{})
	defer f.Close()
	defer h.Close()
	if h.Start(ctx) != nil {
		return false
	}
	do := func(a access.Action, session, id string, c decide.Command) bool {
		answer, err := h.Do(ctx, access.Owner(), host.Request{Action: a, Session: session, CommandID: id, Command: c})
		if err == nil && !slices.Contains([]decide.Status{decide.Accepted, decide.AlreadyApplied, decide.Expired}, answer.Status) {
			p.t.Errorf("%#v: %+v", c, answer)
		}
		return err == nil
	}
	if !do(access.CreateSession, "s1", "", create()) ||
		!do(access.StartWorkflow, "s1", "start", start(p.definition)) ||
		!do(access.SendMessage, "s1", "after", decide.Message{MessageID: "m1", Content: "after"}) {
		return false
	}
	for range 100 {
		if p.w.left.Load() < 0 {
			return false // the clients of a dead host notice
		}
		<-time.After(700 * time.Millisecond)
		open, _, _, err := h.Inbox(ctx, access.Owner(), "", "", 10)
		if err != nil {
			return false
		}
		for _, i := range open {
			do(access.ResolveInterrupt, "", "r-"+i.InterruptID, decide.Resolve{InterruptID: i.InterruptID, Decision: i.Actions[0]})
		}
		if v, err := h.Attach(ctx, access.Owner(), access.ReadSession, "s1"); err == nil {
			if s, err := v.Summary(ctx); err == nil && s.State == "idle" {
				return true
			}
		}
	}
	return false
}

// flowCuts plays the story once for every commit after which its host can die, and again
// with a second death in the middle of what follows.
func flowCuts(t *testing.T, kind agent.Kind, definition string, judge func(t *testing.T, s *stage, lives string)) {
	for first := int64(0); first < 300; first++ {
		done := false
		for _, second := range []int64{plenty, first % 4} {
			synctest.Test(t, func(t *testing.T) {
				var w power
				j := memory(t, journal.Options{Fault: w.fault})
				p := &flowPlay{t: t, j: j, w: &w, kind: kind, definition: definition}
				lives := fmt.Sprintf("died after %d and %d commits", first, second)
				w.left.Store(first)
				done = p.live(t.Context()) && w.left.Load() >= 0
				w.left.Store(second)
				p.live(t.Context())
				w.left.Store(plenty)
				if !p.live(t.Context()) {
					t.Errorf("%s: the story has no end", lives)
				}
				s := &stage{t: t, journal: j}
				judge(t, s, lives)
				for row, err := range journal.Each[journal.OpenWorkRow](t.Context(), j, journal.OpenWork{}, noDamage(t)) {
					t.Errorf("%s: open work %+v, %v", lives, row, err)
				}
			})
			if t.Failed() {
				return
			}
		}
		if done {
			t.Logf("up to %d commits", first)
			if first < 20 {
				t.Errorf("the story has only %d commits", first)
			}
			return
		}
	}
	t.Error("the story does not end")
}

// Field cases 48, 51, 56: wherever the host dies, a workflow whose agents resume has the
// same outcome; each step, each tool and each question comes once, and then the message
// that waited gets its turn.
func TestWorkflowDeathAnywhere(t *testing.T) {
	flowCuts(t, acts{run: speaks, resumes: true}, whole, func(t *testing.T, s *stage, lives string) {
		if got := sorted(s.steps()); got != wholeStory+"\nrun.finished" {
			t.Errorf("%s: got:\n%s\nwant:\n%s\nrun.finished", lives, got, wholeStory)
		}
		asked := map[string]int{}
		for _, f := range s.facts("s1") {
			if r, ok := f.(*narad.InterruptRequested); ok {
				asked[r.Title]++
			}
		}
		for title, n := range asked {
			if n != 1 {
				t.Errorf("%s: %q was asked %d times", lives, title, n)
			}
		}
	})
}

const hopeful = `
workflow: 1
nodes:
  one: {agent: x, prompt: one, attempts: 9, next: two}
  two: {agent: x, prompt: two, attempts: 9, next: many}
  many:
    parallel:
      a: {agent: x, prompt: a}
      b: {agent: x, prompt: b}
    attempts: 9
    next: end
  end: {end: completed, output: "{{/one}}"}
`

// An agent that cannot go on ends with the host; that was one attempt of its step, and
// no step that has finished is done again.
func TestWorkflowDeathOfAgents(t *testing.T) {
	flowCuts(t, acts{run: speaks}, hopeful, func(t *testing.T, s *stage, lives string) {
		finished := map[string]int{}
		for _, f := range s.facts("s1") {
			switch f := f.(type) {
			case *narad.WorkflowStep:
				code, _ := facts.StepFailure(&f.Event)
				switch {
				case f.Kind == narad.TypeWorkflowStepFinished:
					finished[f.NodeID]++
				case f.Kind == narad.TypeWorkflowStepFailed && code != "host_restarted":
					t.Errorf("%s: %s failed: %s", lives, f.NodeID, code)
				case f.Kind == narad.TypeWorkflowStepStarted && finished[f.NodeID] > 0:
					t.Errorf("%s: %s was started again", lives, f.NodeID)
				}
			case *narad.WorkflowEnded:
				finished["workflow"]++
				if got := string(facts.WorkflowOutput(&f.Event)); got != `"Hello, world."` {
					t.Errorf("%s: the output is %s", lives, got)
				}
			}
		}
		for _, what := range []string{"one", "two", "many", "workflow"} {
			if finished[what] != 1 {
				t.Errorf("%s: %s finished %d times:\n%s", lives, what, finished[what], s.steps())
			}
		}
	})
}

// A stop is kept wherever the host dies: nothing starts after it.
func TestWorkflowStopDeathAnywhere(t *testing.T) {
	for commits := int64(0); commits < 12; commits++ {
		synctest.Test(t, func(t *testing.T) {
			var w power
			w.left.Store(plenty)
			j := memory(t, journal.Options{Fault: w.fault})
			s := open(t, j, acts{run: waits}, host.Options{})
			s.create("s1")
			s.start(hopeful)
			synctest.Wait()
			w.left.Store(commits)
			_, err := s.host.Do(t.Context(), access.Owner(), host.Request{Action: access.StopRun, Session: "s1", Command: decide.Stop{}})
			stopped := err == nil
			synctest.Wait()
			s.end()
			w.left.Store(plenty)
			s = open(t, j, acts{run: speaks}, host.Options{})
			defer s.close()
			s.idle(first)
			got := s.steps()
			if stopped != strings.HasSuffix(got, "failed one 1 stopped\nworkflow.cancelled stopped") {
				t.Errorf("after %d commits, stop accepted %v: got\n%s", commits, stopped, got)
			}
		})
	}
}
