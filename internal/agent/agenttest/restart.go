package agenttest

import (
	"slices"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// Resume restarts the host after a cut: it reads the recorded facts, closes what
// recovery closes (R17) and lets the agent, a new one, go on with the run. The run
// whose host died must have been waited for. It returns nil where no run was open, or
// where a stop had been requested of it: that is then closed (R14). The next life is
// cut where cut says.
func (s *Session) Resume(a agent.Agent, cut Cut) *Run {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reload()
	if len(s.open) == 0 {
		return nil
	}
	root := s.open[0]
	if err := s.record(s.unknown()...); err != nil {
		s.t.Fatalf("close the open tool calls: %v", err)
	}
	if root.stopping {
		if err := s.record(s.closing(root, agent.Ending{Outcome: agent.Cancelled})...); err != nil {
			s.t.Fatalf("close the stopped run: %v", err)
		}
		return nil
	}
	s.opt.Cut = cut
	info := agent.Info{
		RunID: root.runID, RootRunID: root.runID, Past: s.past(root.runID), Chosen: s.opt.Chosen, Before: s.opt.Before,
	}
	info.Prompt = promptOf(info.Past, root.runID)
	return s.perform(a, info)
}

// reload builds everything again from the recorded bytes.
func (s *Session) reload() {
	log := s.log
	s.log = nil
	s.forget()
	s.life++
	s.dead, s.opt.Cut = false, Cut{}
	for _, data := range log {
		s.take(s.decode(data), data)
	}
}

// unknown returns the finishes of the open calls whose outcome nobody knows. A question
// has not been performed by anybody, nor has a call whose gate is open, and the work of
// a call with an open nested run goes on there.
func (s *Session) unknown() []narad.Authority {
	var list []narad.Authority
	for _, b := range s.open {
		for _, c := range s.ofRun(b) {
			if !c.question && !s.goesOn(c) {
				list = append(list, s.toolFinish(c, agent.ToolResult{
					Outcome: narad.OutcomeError, Code: "outcome_unknown", Message: "The host ended during the call.",
				}))
			}
		}
	}
	return list
}

func (s *Session) goesOn(c *call) bool {
	return slices.ContainsFunc(s.open, func(b *book) bool {
		run, _ := s.state.Run(b.runID)
		return run.ParentToolCallID == c.id
	})
}

// past returns the facts of the tree below a run, and of the run itself.
func (s *Session) past(runID string) []narad.Authority {
	below := map[string]bool{runID: true}
	var list []narad.Authority
	for _, rec := range s.factsLocked() {
		e := rec.Envelope()
		if start, ok := rec.(*narad.RunStarted); ok && below[start.ParentRunID] {
			below[e.RunID] = true
		}
		if below[e.RunID] {
			list = append(list, rec)
		}
	}
	return list
}
