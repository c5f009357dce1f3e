package script_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
	"github.com/mahati-host/mahati/narad"
)

// outline is what must be the same wherever the host died: what was said in each run,
// which tools were called, what was asked and decided, how each run ended. Runs and
// calls are named by the agent's own ids, which stand for steps.
type outline struct {
	Texts, Thoughts map[string][]string
	Calls           map[string][]string // names, one for each start
	Outcomes        map[string]string
	Decisions       map[string]string
	Runs            map[string]string // terminals
	Told            map[string][]string
}

func outlineOf(list []narad.Authority) outline {
	o := outline{
		map[string][]string{}, map[string][]string{}, map[string][]string{}, map[string]string{},
		map[string]string{}, map[string]string{}, map[string][]string{},
	}
	w := writer{o, map[string]string{}, map[string]string{}, map[string]string{}, map[string]int{}, new(int)}
	for _, rec := range list {
		w.write(rec)
	}
	return o
}

type writer struct {
	outline
	runs, calls, waits map[string]string // ids of facts to names
	places             map[string]int    // of texts, from 1
	roots              *int              // top-level runs so far
}

func (w writer) write(rec narad.Authority) {
	e := rec.Envelope()
	run := w.runs[e.RunID]
	switch r := rec.(type) {
	case *narad.RunStarted:
		name := facts.AgentID(e)
		switch {
		case facts.Gate(e):
			name = "gate of " + w.calls[r.ParentToolCallID]
		case e.RunID == e.RootRunID:
			*w.roots++
			name = fmt.Sprintf("root %d", *w.roots)
		}
		w.runs[e.RunID] = name
	case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		w.Runs[run] += string(rec.Type()) + " "
	case *narad.ToolCallStarted:
		w.calls[r.ToolCallID] = facts.AgentID(e)
		w.Calls[facts.AgentID(e)] = append(w.Calls[facts.AgentID(e)], r.ToolName)
	case *narad.ToolCallFinished:
		w.Outcomes[w.calls[r.ToolCallID]] += string(r.Outcome) + r.Code + " "
	case *narad.InterruptRequested:
		w.waits[r.InterruptID] = run + " " + facts.AgentID(e)
	case *narad.InterruptResolved:
		w.Decisions[w.waits[r.InterruptID]] += r.Decision + " "
	case *narad.ProgressRecorded:
		w.tell(run, facts.AgentID(e), string(r.Status), r.Label)
	case *narad.Custom:
		if r.Name != facts.ToolOutput && r.Name != facts.AgentRemembered && r.Name != "script.step" {
			w.tell(run, r.Name, r.Value.String())
		}
	default:
		w.text(rec, run)
	}
}

func (w writer) tell(run string, words ...any) {
	w.Told[run] = append(w.Told[run], fmt.Sprintln(words...))
}

func (w writer) text(rec narad.Authority, run string) {
	switch r := rec.(type) {
	case *narad.MessageTextDelta:
		w.add(w.Texts, run, r.MessageID, r.Delta)
	case *narad.ReasoningDelta:
		w.add(w.Thoughts, run, r.ReasoningID, r.Delta)
	}
}

// add joins the parts of a text under its place among the texts of its run.
func (w writer) add(to map[string][]string, run, id, part string) {
	if w.places[id] == 0 {
		to[run] = append(to[run], "")
		w.places[id] = len(to[run])
	}
	to[run][w.places[id]-1] += part
}

// same compares outlines. A call may have become unknown where the host died in it;
// then it was perhaps never asked for, either.
func (s *scenario) same(t *testing.T, host *agenttest.Session, want outline) {
	t.Helper()
	got := outlineOf(host.Facts())
	for path, names := range got.Calls {
		if len(names) != 1 {
			t.Errorf("the call at %s began %d times; facts:\n%s", path, len(names), host.Story())
		}
	}
	closed(t, host)
	if s.varies {
		return
	}
	for path, outcome := range got.Outcomes {
		if outcome == "erroroutcome_unknown " {
			got.Outcomes[path] = want.Outcomes[path]
			if gate := "gate of " + path; got.Runs[gate] == "" {
				got.Runs[gate], got.Decisions[gate+" "] = want.Runs[gate], want.Decisions[gate+" "]
			}
		}
	}
	if diff := cmp.Diff(want, got, ignoreEmpty); diff != "" {
		t.Errorf("outline (-uncut +cut):\n%s\nfacts:\n%s", diff, host.Story())
	}
}

// ignoreEmpty drops entries that say nothing.
var ignoreEmpty = cmpopts.IgnoreMapEntries(func(_, v string) bool { return v == "" })

// TestCutAnywhere kills the host at every place of every scenario: after a batch that
// was recorded, and before one that was not, with all its agent did before. The run
// goes on and ends as if nothing had happened (field cases 39, 48).
func TestCutAnywhere(t *testing.T) {
	for _, s := range scenarios(t) {
		if s.uncut {
			continue
		}
		var want outline
		batches := 0
		synctest.Test(t, func(t *testing.T) {
			host := s.play(t, agenttest.Options{}, never)
			want, batches = outlineOf(host.Facts()), host.Batches()
		})
		for n := 1; n <= batches; n++ {
			for _, cut := range []agenttest.Cut{{After: n}, {Before: n}} {
				if cut.Before == 1 {
					continue // nothing was ever recorded
				}
				t.Run(fmt.Sprintf("%s/%+v", s.name, cut), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						host := s.play(t, agenttest.Options{Cut: cut}, never)
						s.same(t, host, want)
					})
				})
			}
		}
	}
}

// TestCutAgainAndAgain kills every life of the host after a few batches.
func TestCutAgainAndAgain(t *testing.T) {
	for _, s := range scenarios(t) {
		if s.uncut {
			continue
		}
		var want outline
		synctest.Test(t, func(t *testing.T) {
			want = outlineOf(s.play(t, agenttest.Options{}, never).Facts())
		})
		for every := 2; every <= 5; every++ {
			t.Run(fmt.Sprintf("%s/every %d", s.name, every), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					opt := agenttest.Options{Cut: agenttest.Cut{After: every}}
					host := s.play(t, opt, func(batches int) agenttest.Cut { return agenttest.Cut{After: batches + every} })
					s.same(t, host, want)
				})
			})
		}
	}
}
