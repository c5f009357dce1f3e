package host_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// assigned binds runs to desk, and gives one tool to a phone.
func assigned(_, tool string) string {
	switch tool {
	case "":
		return "desk"
	case "call.number":
		return "phone"
	}
	return ""
}

// R34: a run is bound to one executor at its start, by configuration where the session
// names none. A tool of another executor runs in a run below that is bound to it, also
// over a restart.
func TestToolOfAnotherExecutor(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%v", restart), func(t *testing.T) {
			inHost(t, func(t *testing.T, j journal.Journal) {
				agent, o := calls("open.file", "call.number", "close.file"), host.Options{Assign: assigned}
				s := open(t, j, agent, o)
				s.create("s")
				desk, phone := s.attach(), s.attachAs("phone")
				s.say("s", "go")
				s.finish(ended(desk.one(), `1`), decide.Accepted)
				if got := desk.take(); len(got) != 0 {
					t.Errorf("the desk gets the tool of the phone: %+v", got[0])
				}
				e := phone.one()
				if restart {
					s.close()
					s = open(t, j, agent, o)
					desk = s.attach()
				}
				defer s.close()
				s.finish(ended(e, `2`), decide.Accepted)
				s.finish(ended(desk.one(), `3`), decide.Accepted)

				var story []string
				names := map[string]string{}
				for _, f := range s.facts("s") {
					switch f := f.(type) {
					case *narad.RunStarted:
						names[f.RunID] = f.ClientExecutorID
						story = append(story, "run of "+f.ClientExecutorID)
					case *narad.ToolCallStarted:
						story = append(story, f.ToolName+" of "+names[f.RunID])
					case *narad.ToolCallFinished:
						story = append(story, string(f.Response))
					case *narad.RunFinished:
						story = append(story, "end of "+names[f.RunID])
					case *narad.RunPaused:
						story = append(story, "pause of "+names[f.RunID])
					}
				}
				want := "run of desk, open.file of desk, 1, run of phone, call.number of phone, 2, end of phone, close.file of desk, 3, end of desk"
				if got := strings.Join(story, ", "); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		})
	}
}

// While the other executor is away, the run below waits for it and not the one above; a
// stop ends both.
func TestOtherExecutorIsAway(t *testing.T) {
	inHost(t, func(t *testing.T, j journal.Journal) {
		s := open(t, j, calls("call.number"), host.Options{Assign: assigned})
		defer s.close()
		s.create("s")
		s.attach()
		s.say("s", "go")
		synctest.Wait()
		if got, want := s.story("s"), strings.Join([]string{created, begun, "run.started", away}, " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if sum := s.summary("s"); sum.State != "running" {
			t.Errorf("the session is %s, want running", sum.State)
		}
		s.do(access.StopRun, "s", decide.Stop{}, "")
		synctest.Wait()
		if sum := s.summary("s"); sum.State != "idle" {
			t.Errorf("the session is %s: %s", sum.State, s.story("s"))
		}
	})
}

// What a session names goes before what is configured.
func TestSessionNamesItsExecutor(t *testing.T) {
	inHost(t, func(t *testing.T, j journal.Journal) {
		s := open(t, j, calls("open.file"), host.Options{Assign: func(_, tool string) string {
			if tool == "" {
				return "other"
			}
			return ""
		}})
		defer s.close()
		s.bound("s")
		d := s.attach()
		s.say("s", "go")
		s.finish(ended(d.one(), `1`), decide.Accepted)
	})
}

// The run of a workflow's step is bound by the agent that performs it, and each parallel
// branch by its own, also over a restart (R34).
func TestStepIsBoundByItsAgent(t *testing.T) {
	const definition = `
workflow: 1
name: bound
nodes:
  one:
    agent: walker
    prompt: go
    next: two
  two:
    parallel:
      left: {agent: walker, prompt: go}
      right: {agent: sitter, prompt: go}
    next: done
  done:
    end: completed
`
	assign := func(agent, tool string) string {
		if tool != "" {
			return ""
		}
		return map[string]string{"walker": "phone", "sitter": "desk"}[agent]
	}
	inHost(t, func(t *testing.T, j journal.Journal) {
		s := open(t, j, calls("open.file"), host.Options{Assign: assign})
		s.create("s1")
		desk, phone := s.attach(), s.attachAs("phone")
		s.start(definition)
		s.finish(ended(phone.one(), `1`), decide.Accepted)
		left, right := phone.one(), desk.one()
		s.close()
		s = open(t, j, calls("open.file"), host.Options{Assign: assign})
		defer s.close()
		s.finish(ended(left, `2`), decide.Accepted)
		s.finish(ended(right, `3`), decide.Accepted)
		synctest.Wait()
		bound := []string{}
		for _, f := range s.facts("s1") {
			if f, ok := f.(*narad.RunStarted); ok {
				bound = append(bound, facts.AgentID(&f.Event)+" "+f.ClientExecutorID)
			}
		}
		slices.Sort(bound)
		if got, want := strings.Join(bound, ", "), " ,  phone, left phone, right desk"; got != want {
			t.Errorf("the runs are bound to %q, want %q", got, want)
		}
		if sum := s.summary("s1"); sum.State != "idle" {
			t.Errorf("the session is %s, want idle: %s", sum.State, s.story("s1"))
		}
	})
}
