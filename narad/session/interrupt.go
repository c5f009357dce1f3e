package session

import (
	"slices"

	"github.com/mahati-host/mahati/narad"
)

// Interrupt is one question to somebody outside, as the facts tell it.
type Interrupt struct {
	InterruptID string      `json:"interruptId"`
	RunID       string      `json:"runId,omitzero"`
	RootRunID   string      `json:"rootRunId,omitzero"`
	WorkflowID  string      `json:"workflowId,omitzero"`
	Scope       narad.Scope `json:"scope"`
	WaitID      string      `json:"waitId"`
	Kind        string      `json:"kind"`
	Actions     []string    `json:"actions"`
	Open        bool        `json:"open"`
	Decision    string      `json:"decision,omitzero"`
	Members     []Member    `json:"members,omitempty"`
	ExpiresAt   string      `json:"expiresAt,omitzero"`
	Title       string      `json:"title,omitzero"`
	Message     string      `json:"message,omitzero"`
	Input       narad.Raw   `json:"input,omitzero"`
	Reason      string      `json:"reason,omitzero"`
	RequestedAt string      `json:"requestedAt,omitzero"`
	ResolvedAt  string      `json:"resolvedAt,omitzero"`
	// RequestedSequence is the sessionSequence of the request.
	RequestedSequence int64 `json:"-"`
}

// Member is the decision of one member of a pack.
type Member struct {
	RequestID  string `json:"requestId"`
	ToolCallID string `json:"toolCallId,omitzero"`
	ToolName   string `json:"toolName,omitzero"`
	ToolType   string `json:"toolType,omitzero"`
	Decision   string `json:"decision,omitzero"`
}

// Interrupt returns an interrupt that the state still knows.
func (s *State) Interrupt(id string) (Interrupt, bool) {
	if i := s.interrupts[id]; i != nil {
		return *i, true
	}
	return Interrupt{}, false
}

func (s *State) guardInterruptRequested(i *narad.InterruptRequested, strict bool) Code {
	open, code := s.openInterrupt(i)
	if code != "" {
		return code
	}
	if old := s.interrupts[i.InterruptID]; old != nil && (old.Open || strict) {
		return InterruptAlreadyRequested
	}
	if open != "" {
		return InterruptOpen
	}
	return ""
}

// openInterrupt returns the open interrupt of the run or workflow that asks, or the
// code that says why it cannot ask.
func (s *State) openInterrupt(i *narad.InterruptRequested) (string, Code) {
	if i.Scope == narad.ScopeWorkflow {
		switch w := s.workflows[i.WorkflowID]; {
		case !s.knowsWorkflows():
			return s.workflowAsks[i.WorkflowID], ""
		case w == nil:
			return "", WorkflowNotStarted
		case w.State != Running:
			return "", WorkflowNotRunning
		default:
			return s.workflowAsks[i.WorkflowID], ""
		}
	}
	switch run := s.runs[i.RunID]; {
	case run == nil:
		return "", RunNotStarted
	case run.State != Running:
		return "", RunNotRunning
	default:
		return run.interrupt, ""
	}
}

func (s *State) interruptRequested(i *narad.InterruptRequested) {
	scope := narad.ScopeRun
	if i.Scope == narad.ScopeWorkflow {
		scope = narad.ScopeWorkflow
	}
	asked := &Interrupt{
		InterruptID: i.InterruptID, RunID: i.RunID, RootRunID: i.RootRunID, WorkflowID: i.WorkflowID,
		Scope: scope, WaitID: i.WaitID, Kind: i.Kind, Actions: i.Actions, Open: true,
		ExpiresAt: i.ExpiresAt, Title: i.Title, Message: i.Message, Input: i.Input,
		RequestedAt: i.Timestamp, RequestedSequence: i.SessionSequence,
	}
	s.interrupts[i.InterruptID] = asked
	if scope == narad.ScopeWorkflow {
		s.workflowAsks[i.WorkflowID] = i.InterruptID
		if w := s.workflows[i.WorkflowID]; w != nil {
			w.awaiting = asked
		}
		return
	}
	run := s.runs[i.RunID]
	run.interrupt = i.InterruptID
	if !i.Projection() { // nobody promises a pause after a copied row
		run.awaiting = true
		s.tree(i.RootRunID).awaiting = asked
	}
}

func (s *State) guardInterruptResolved(i *narad.InterruptResolved, strict bool) Code {
	asked := s.interrupts[i.InterruptID]
	switch {
	case asked == nil || !asked.Open:
		return InterruptNotOpen
	case asked.WaitID != i.WaitID:
		return WaitMismatch
	case strict && (asked.RunID != i.RunID || asked.WorkflowID != i.WorkflowID || (asked.Scope == narad.ScopeWorkflow) != (i.Scope == narad.ScopeWorkflow)):
		return InterruptMismatch
	case !asked.offers(i.Decision):
		return DecisionNotOffered
	}
	for _, m := range i.Members {
		if m.Decision != "" && !asked.offers(m.Decision) {
			return DecisionNotOffered
		}
	}
	if strict && len(i.Members) > 0 {
		return asked.guardMembers(i)
	}
	return ""
}

// offers reports whether a decision may be given: an action of the request, or the
// host's own "expired".
func (i *Interrupt) offers(decision string) bool {
	return decision == narad.DecisionExpired || slices.Contains(i.Actions, decision)
}

// guardMembers demands one decision for each member that the request listed, and
// their fold as the decision of the whole (§7.7, R12).
func (i *Interrupt) guardMembers(r *narad.InterruptResolved) Code {
	if asked := requestIDs(i.Input); asked != nil {
		given := make([]string, len(r.Members))
		for n, m := range r.Members {
			given[n] = m.RequestID
		}
		slices.Sort(asked)
		slices.Sort(given)
		if !slices.Equal(asked, given) {
			return MemberMismatch
		}
	}
	if fold := Fold(r.Members); i.offers(fold) && fold != r.Decision {
		return FoldMismatch
	}
	return ""
}

// requestIDs returns the ids of the members that a request's input lists, nil where
// it lists none.
func requestIDs(input narad.Raw) []string {
	members, _ := input.Field("members").Elements()
	var ids []string
	for _, m := range members {
		id, ok := m.Field("requestId").IsString()
		if !ok {
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

// Fold returns the decision that the members' decisions make together: stop if any
// stops, approve if all approve, expired if all expired, otherwise deny (§7.7). The
// words approve_always and deny_always count as their plain ones (R12).
func Fold(members []narad.MemberDecision) string {
	approved, expired := 0, 0
	for _, m := range members {
		switch m.Decision {
		case "stop":
			return "stop"
		case "approve", "approve_always":
			approved++
		case narad.DecisionExpired:
			expired++
		}
	}
	switch len(members) {
	case approved:
		return "approve"
	case expired:
		return narad.DecisionExpired
	}
	return "deny"
}

func (s *State) interruptResolved(i *narad.InterruptResolved) {
	asked := s.interrupts[i.InterruptID]
	asked.Open, asked.Decision, asked.Reason, asked.ResolvedAt = false, i.Decision, i.Reason, i.Timestamp
	for _, m := range i.Members {
		asked.Members = append(asked.Members, Member{m.RequestID, m.ToolCallID, m.ToolName, m.ToolType, m.Decision})
	}
	if run := s.runs[asked.RunID]; run != nil && run.interrupt == asked.InterruptID {
		run.interrupt = ""
	}
	if s.workflowAsks[asked.WorkflowID] == asked.InterruptID {
		delete(s.workflowAsks, asked.WorkflowID)
	}
	if s.opt.NoDisplay {
		delete(s.interrupts, i.InterruptID)
	}
}
