package decide

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// StartTool records that a run calls a tool.
type StartTool struct {
	RunID      string
	ToolCallID string
	AgentID    string
	Name       string
	Kind       string
	Title      string
	Args       narad.Raw
}

func (t StartTool) propose(d *draft) Answer {
	run, answer, ok := d.starting(t.RunID)
	switch {
	case !ok:
		return answer
	case len(d.state.OpenTools(t.RunID)) >= maxOpenTools:
		return refuseRecord(RefusedInvalid, "too many tool calls are open")
	}
	d.call(run, t, narad.ExecutorBackend)
	answer.ID = t.ToolCallID
	return answer
}

// call begins a tool call: what was said before it stands before it.
func (d *draft) call(run session.Run, t StartTool, by narad.Executor) {
	d.closeText(run)
	start := &narad.ToolCallStarted{ToolCallID: t.ToolCallID, ToolName: t.Name, Executor: by, Args: t.Args}
	facts.SetAgentID(&start.Event, t.AgentID)
	facts.SetToolStart(&start.Event, t.Kind, t.Title)
	d.subject()
	d.in(run, start)
}

// FinishTool records the end of a tool call of a run. What still asks for the call is
// closed before it.
type FinishTool struct {
	RunID      string
	ToolCallID string
	Outcome    narad.Outcome
	Response   narad.Raw
	Code       string
	Message    string
	// Touches are the files that the call read or changed.
	Touches []facts.FileTouch
	// Artifacts are what the call brought besides its response (R7).
	Artifacts []Artifact
}

func (t FinishTool) propose(d *draft) Answer {
	run, answer, ok := d.open(t.RunID)
	if !ok {
		return answer
	}
	tool, refusal, ok := d.tool(t.ToolCallID, t.RunID)
	if !ok {
		return refusal
	}
	d.closing = len(t.Artifacts) == 0
	for _, i := range d.state.OpenInterrupts() {
		if asks, _ := d.run(i.RunID); d.gate(asks) && asks.ParentToolCallID == t.ToolCallID {
			d.lapse(i, reasonCallEnded)
		}
	}
	for _, a := range t.Artifacts {
		d.produced(run, a)
	}
	d.subject()
	finish := d.finish(tool, t.Outcome, t.Response, t.Code, t.Message)
	facts.SetFileTouches(&finish.Event, t.Touches)
	d.in(run, finish)
	return answer
}

// reasonCallEnded is the reason of a permission that expired with its call (R10).
const reasonCallEnded = "call_ended"

// ToolOutput records output of an open tool call as it comes (R43).
type ToolOutput struct {
	RunID  string
	Output facts.Output
	Last   bool // as in Say
}

func (t ToolOutput) propose(d *draft) Answer {
	run, answer, ok := d.open(t.RunID)
	if !ok {
		return answer
	}
	if _, refusal, ok := d.tool(t.Output.ToolCallID, t.RunID); !ok {
		return refusal
	}
	d.closing = t.Last
	d.in(run, facts.Run(run.RootRunID, run.RunID, facts.ToolOutput, t.Output))
	return answer
}
