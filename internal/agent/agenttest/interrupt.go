package agenttest

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Decision is an answer to an interrupt. Members that it does not name are decided
// like the whole.
type Decision struct {
	Decision string
	Reason   string
	Members  map[string]string
	Answers  narad.Raw
}

// input is the content of an interrupt that this package writes and reads.
type input struct {
	ToolCallID string           `json:"toolCallId,omitzero"`
	Action     string           `json:"action,omitzero"`
	Resource   string           `json:"resource,omitzero"`
	Detail     string           `json:"detail,omitzero"`
	Options    []agent.Option   `json:"options,omitzero"`
	Members    []member         `json:"members,omitzero"`
	Questions  []agent.Question `json:"questions,omitzero"`
	Own        narad.Raw        `json:"own,omitzero"`
}

type member struct {
	RequestID  string `json:"requestId"`
	ToolCallID string `json:"toolCallId,omitzero"`
	ToolName   string `json:"toolName,omitzero"`
	ToolType   string `json:"toolType,omitzero"`
	Action     string `json:"action,omitzero"`
	Resource   string `json:"resource,omitzero"`
	Detail     string `json:"detail,omitzero"`
}

// Permit implements agent.Handle.
func (h *handle) Permit(ctx context.Context, p agent.Permission) (agent.Answer, error) {
	id, err := h.OpenGate(ctx, p)
	if err != nil {
		return agent.Answer{}, err
	}
	return h.Await(ctx, id)
}

// OpenGate implements agent.Handle: it asks in a gate run (R10).
func (h *handle) OpenGate(ctx context.Context, p agent.Permission) (id string, err error) {
	err = h.starts(ctx, func(b *book) error {
		if _, err := h.s.call(b, p.ToolCallID); err != nil {
			return err
		}
		start := h.s.runStart(b, p.ToolCallID)
		facts.SetGate(&start.Event)
		actions := make([]string, len(p.Options))
		for i, o := range p.Options {
			actions[i] = o.Action
		}
		asked := h.s.request(&book{rootID: b.rootID, runID: start.RunID}, "approval", actions)
		asked.Title, asked.Message = p.Title, p.Message
		asked.Input = raw(input{ToolCallID: p.ToolCallID, Resource: p.Resource, Detail: p.Detail, Options: p.Options})
		id = asked.InterruptID
		return h.s.record(start, asked, pause(asked))
	})
	return id, err
}

func (s *Session) request(b *book, kind string, actions []string) *narad.InterruptRequested {
	return &narad.InterruptRequested{
		Event: b.event(), InterruptID: s.id("interrupt"), WaitID: s.id("wait"), Kind: kind, Actions: actions,
	}
}

func pause(asked *narad.InterruptRequested) *narad.RunPaused {
	return &narad.RunPaused{
		Event:  narad.Event{RootRunID: asked.RootRunID, RunID: asked.RunID},
		WaitID: asked.WaitID, InterruptID: asked.InterruptID, Reason: "interrupt", ResumeMode: narad.ResumeCommand,
	}
}

func raw(v any) narad.Raw {
	data, err := json.Marshal(v)
	if err != nil {
		panic("agenttest: a value of this package is always JSON: " + err.Error())
	}
	return data
}

// Ask implements agent.Handle.
func (h *handle) Ask(ctx context.Context, a agent.Ask) (agent.Answer, error) {
	var id string
	err := h.starts(ctx, func(b *book) (err error) {
		id, err = h.s.ask(b, a)
		return err
	})
	if err != nil {
		return agent.Answer{}, err
	}
	return h.Await(ctx, id)
}

// ask records a question and returns its id.
func (s *Session) ask(b *book, a agent.Ask) (string, error) {
	if len(a.Members) > 32 {
		return "", s.refuse("a pack of more than 32 members")
	}
	kind, actions, in := a.Kind, a.Actions, input{Own: a.Input}
	for _, m := range a.Members {
		in.Members = append(in.Members, member(m))
	}
	var batch []narad.Authority
	if len(a.Questions) > 0 {
		kind, actions, in.Questions = "question", questionActions(a.Questions), a.Questions
		start := s.toolStart(b, agent.Tool{AgentID: a.AgentID, Name: askUser, Kind: "other", Args: raw(in)})
		in.ToolCallID = start.ToolCallID
		batch = append(batch, start)
	}
	asked := s.request(b, kind, actions)
	asked.Title, asked.Message, asked.Input = a.Title, a.Message, raw(in)
	if a.ExpiresIn > 0 {
		asked.ExpiresAt = narad.Timestamp(time.Now().Add(a.ExpiresIn))
	}
	facts.SetAgentID(&asked.Event, a.AgentID)
	return asked.InterruptID, s.recordAfterText(b, append(batch, asked, pause(asked))...)
}

// questionActions returns the actions of a question (R13).
func questionActions(questions []agent.Question) []string {
	if q := questions[0]; len(questions) > 1 || q.Multiple || q.Free || len(q.Options) == 0 {
		return []string{"answer", "dismiss"}
	}
	var actions []string
	for i := range questions[0].Options {
		actions = append(actions, strconv.Itoa(i))
	}
	return append(actions, "dismiss")
}

// Await implements agent.Handle.
func (h *handle) Await(ctx context.Context, id string) (agent.Answer, error) {
	h.s.answer(id)
	for {
		answer, wake, err := h.look(ctx, id)
		if err != nil || wake == nil {
			return answer, err
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return agent.Answer{}, ctx.Err()
		}
	}
}

// answer decides an interrupt as the test's function says, or arms its expiry.
func (s *Session) answer(id string) {
	s.mu.Lock()
	i, known := s.state.Interrupt(id)
	s.mu.Unlock()
	if !known || !i.Open {
		return
	}
	if s.opt.Answer != nil {
		if d, ok := s.opt.Answer(i); ok {
			_ = s.Resolve(id, d) // somebody else may have been first
			return
		}
	}
	if at, err := time.Parse(time.RFC3339Nano, i.ExpiresAt); err == nil {
		time.AfterFunc(time.Until(at), func() {
			_ = s.Resolve(id, Decision{Decision: narad.DecisionExpired, Reason: "expired"})
		})
	}
}

// look returns the answer to an interrupt, or what to wait for.
func (h *handle) look(ctx context.Context, id string) (agent.Answer, chan struct{}, error) {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	b, err := h.enter(ctx)
	if err != nil {
		return agent.Answer{}, nil, err
	}
	i, known := h.s.state.Interrupt(id)
	switch {
	case !known:
		return agent.Answer{}, nil, fmt.Errorf("%w: no interrupt %s", agent.ErrInvalid, id)
	case b.stopping:
		return agent.Answer{}, nil, agent.ErrStopped
	case i.Open:
		return agent.Answer{}, h.s.changed, nil
	}
	answer := agent.Answer{InterruptID: id, Decision: i.Decision, Reason: i.Reason, Said: i.Reason, Answers: h.s.answers[id]}
	for _, m := range i.Members {
		if answer.Members == nil {
			answer.Members = map[string]string{}
		}
		answer.Members[m.RequestID] = m.Decision
	}
	return answer, nil, nil
}

// Retract implements agent.Handle.
func (h *handle) Retract(ctx context.Context, interruptID, reason string) error {
	return h.in(ctx, func(b *book) error {
		i, known := h.s.state.Interrupt(interruptID)
		if !known || !i.Open {
			return nil
		}
		if asks := h.s.book(i.RunID); asks != b && (asks.gateOf == "" || asks.parentID != b.runID) {
			return h.s.refuse("Retract of " + interruptID + ", which is another run's")
		}
		return h.s.resolve(interruptID, Decision{Decision: narad.DecisionExpired, Reason: reason})
	})
}

// Resolve decides an open interrupt.
func (s *Session) Resolve(interruptID string, d Decision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resolve(interruptID, d)
}

func (s *Session) resolve(interruptID string, d Decision) error {
	i, known := s.state.Interrupt(interruptID)
	if s.dead || !known || !i.Open {
		return fmt.Errorf("%w: no open interrupt %s", agent.ErrInvalid, interruptID)
	}
	b := s.book(i.RunID)
	batch := resolution(b, i, d)
	if b.gateOf != "" {
		batch = append(batch, &narad.RunFinished{Event: b.event()})
	}
	for _, c := range s.calls {
		if c.question && c.runID == i.RunID {
			batch = append(batch, s.toolFinish(c, questionResult(d)))
		}
	}
	return s.record(batch...)
}

// resolution returns the facts that decide an interrupt and end its pause.
func resolution(b *book, i session.Interrupt, d Decision) []narad.Authority {
	resolved := &narad.InterruptResolved{
		Event: b.event(), InterruptID: i.InterruptID, WaitID: i.WaitID, Decision: d.Decision, Reason: d.Reason,
	}
	members, _ := i.Input.Field("members").Elements()
	for _, m := range members {
		var one member
		_ = json.Unmarshal(m, &one) // written above
		decision, ok := d.Members[one.RequestID]
		if !ok {
			decision = d.Decision
		}
		resolved.Members = append(resolved.Members, narad.MemberDecision{
			RequestID: one.RequestID, ToolCallID: one.ToolCallID, ToolName: one.ToolName,
			ToolType: one.ToolType, Decision: decision,
		})
	}
	if len(resolved.Members) > 0 {
		resolved.Decision = session.Fold(resolved.Members)
	}
	facts.SetAnswers(&resolved.Event, d.Answers)
	return []narad.Authority{resolved, &narad.RunResumed{Event: b.event(), WaitID: i.WaitID}}
}

// questionResult is the end of the tool call by which a question was asked.
func questionResult(d Decision) agent.ToolResult {
	if d.Decision == "dismiss" || d.Decision == narad.DecisionExpired {
		return agent.ToolResult{Outcome: narad.OutcomeCancelled, Code: d.Decision}
	}
	response := d.Answers
	if response == nil {
		response = narad.Quote(d.Decision)
	}
	return agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: response}
}
