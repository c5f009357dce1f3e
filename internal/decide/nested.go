package decide

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// StartRun begins a run below another.
type StartRun struct {
	ParentRunID      string
	ParentToolCallID string
	RunID            string
	AgentID          string
	Name             string
	// Prompt is what the nested run was told; MessageID its message's id.
	Prompt    string
	MessageID string
	// ClientExecutorID is bound to the run; "" is that of the run above (R34).
	ClientExecutorID string
}

func (s StartRun) propose(d *draft) Answer {
	parent, answer, ok := d.starting(s.ParentRunID)
	if !ok {
		return answer
	}
	if refusal, ok := d.mayStartRun(); !ok {
		return refusal
	}
	if s.ParentToolCallID != "" {
		if _, refusal, ok := d.tool(s.ParentToolCallID, s.ParentRunID); !ok {
			return refusal
		}
	}
	start := &narad.RunStarted{
		ParentRunID: parent.RunID, ParentToolCallID: s.ParentToolCallID,
		ClientExecutorID: orElse(s.ClientExecutorID, parent.ClientExecutorID), // recorded explicitly (§3.3)
	}
	facts.SetAgentID(&start.Event, s.AgentID)
	facts.SetAgentName(&start.Event, s.Name)
	child := parent
	child.RunID = s.RunID
	d.in(child, start)
	if s.Prompt != "" {
		d.in(child, &narad.MessageUserRecorded{MessageID: s.MessageID, MessageScope: narad.ScopeRun, Content: s.Prompt})
	}
	return Answer{Status: Accepted, RunID: s.RunID}
}

// EndRun ends a run below another as its agent says, or as a stop demands.
type EndRun struct {
	RunID  string
	Ending Ending
}

func (e EndRun) propose(d *draft) Answer {
	run, answer, ok := d.open(e.RunID)
	if !ok {
		return answer
	}
	if run.ParentRunID == "" {
		return refuseRecord(RefusedInvalid, "a top-level run ends when its agent returns")
	}
	d.closing = true
	how, terminal := e.Ending.of(run)
	d.closeTree(run, how, terminal)
	return answer
}
