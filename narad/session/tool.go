package session

import "github.com/mahati-host/mahati/narad"

// Tool is one tool call as the facts tell it.
type Tool struct {
	ToolCallID       string         `json:"toolCallId"`
	RunID            string         `json:"runId"`
	RootRunID        string         `json:"rootRunId"`
	ToolName         string         `json:"toolName"`
	Executor         narad.Executor `json:"executor"`
	Args             narad.Raw      `json:"args"`
	ParentToolCallID string         `json:"parentToolCallId,omitzero"`
	Open             bool           `json:"open"`
	Outcome          narad.Outcome  `json:"outcome,omitzero"`
	Response         narad.Raw      `json:"response,omitzero"`
	Code             string         `json:"code,omitzero"`
	Message          string         `json:"message,omitzero"`
	StartedAt        string         `json:"startedAt,omitzero"`
	CompletedAt      string         `json:"completedAt,omitzero"`
	// StartedSequence is the sessionSequence of the start.
	StartedSequence int64 `json:"-"`
}

// Tool returns a tool call that the state still knows.
func (s *State) Tool(id string) (Tool, bool) {
	if t := s.tools[id]; t != nil {
		return *t, true
	}
	return Tool{}, false
}

func (s *State) guardToolCallStarted(t *narad.ToolCallStarted, strict bool) Code {
	run := s.runs[t.RunID]
	switch {
	case run == nil:
		return RunNotStarted
	case run.State != Running:
		return RunNotRunning
	case s.tools[t.ToolCallID] != nil:
		return ToolAlreadyStarted
	case strict && s.stopped(run):
		return RunStopped
	case strict && t.Executor == narad.ExecutorClient && run.ClientExecutorID == "":
		return ClientExecutorMissing
	}
	return ""
}

func (s *State) toolCallStarted(t *narad.ToolCallStarted) {
	s.tools[t.ToolCallID] = &Tool{
		ToolCallID: t.ToolCallID, RunID: t.RunID, RootRunID: t.RootRunID, ToolName: t.ToolName,
		Executor: t.Executor, Args: t.Args, ParentToolCallID: t.ParentToolCallID, Open: true,
		StartedAt: t.Timestamp, StartedSequence: t.SessionSequence,
	}
	s.runs[t.RunID].tools++
}

func (s *State) guardToolCallFinished(t *narad.ToolCallFinished) Code {
	switch tool := s.tools[t.ToolCallID]; {
	case tool == nil || !tool.Open:
		return ToolNotOpen
	case tool.RunID != t.RunID:
		return ToolRunMismatch
	}
	return ""
}

func (s *State) toolCallFinished(t *narad.ToolCallFinished) {
	tool := s.tools[t.ToolCallID]
	tool.Open, tool.Outcome, tool.Response = false, t.Outcome, t.Response
	tool.Code, tool.Message, tool.CompletedAt = t.Code, t.Message, t.Timestamp
	if run := s.runs[t.RunID]; run != nil {
		run.tools--
	}
	if s.opt.NoDisplay {
		delete(s.tools, t.ToolCallID)
	}
}
