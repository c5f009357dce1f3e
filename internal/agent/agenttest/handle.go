package agenttest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// handle is the [agent.Handle] of one run.
type handle struct {
	s    *Session
	life int
	info agent.Info
}

var _ agent.Handle = (*handle)(nil)

// Info returns what the run is about.
func (h *handle) Info() agent.Info { return h.info }

// enter returns the run's book for a record. It is called with the lock held.
func (h *handle) enter(ctx context.Context) (*book, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b := h.s.book(h.info.RunID)
	if h.s.dead || h.life != h.s.life || b == nil {
		return nil, agent.ErrEnded
	}
	return b, nil
}

// in lets f record something in the run.
func (h *handle) in(ctx context.Context, f func(*book) error) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	b, err := h.enter(ctx)
	if err != nil {
		return err
	}
	return f(b)
}

// tell records a fact of the run, behind what waits.
func (h *handle) tell(ctx context.Context, fact func(*book) narad.Authority) error {
	return h.in(ctx, func(b *book) error {
		if err := h.s.flush(b); err != nil {
			return err
		}
		return h.s.record(fact(b))
	})
}

// starts is in for what no stopped run may begin. What waits is recorded first.
func (h *handle) starts(ctx context.Context, f func(*book) error) error {
	return h.in(ctx, func(b *book) error {
		if b.stopping {
			return agent.ErrStopped
		}
		if err := h.s.flush(b); err != nil {
			return err
		}
		return f(b)
	})
}

// refuse refuses a record that makes no sense. It is called with the lock held.
func (s *Session) refuse(why string) error {
	s.refused = append(s.refused, why)
	return fmt.Errorf("%w: %s", agent.ErrInvalid, why)
}

// Text implements agent.Handle.
func (h *handle) Text(ctx context.Context, text string) error {
	return h.in(ctx, func(b *book) error {
		if err := h.s.record(h.s.thoughts(b, false)...); err != nil {
			return err
		}
		b.text.held = append(b.text.held, text...)
		return h.s.later(b, len(b.text.held))
	})
}

// Thought implements agent.Handle.
func (h *handle) Thought(ctx context.Context, text string) error {
	return h.in(ctx, func(b *book) error {
		if err := h.s.record(h.s.texts(b, false)...); err != nil {
			return err
		}
		b.thought.held = append(b.thought.held, text...)
		return h.s.later(b, len(b.thought.held))
	})
}

// EndMessage implements agent.Handle.
func (h *handle) EndMessage(ctx context.Context) error {
	return h.in(ctx, func(b *book) error { return h.s.record(h.s.pending(b, true)...) })
}

// StartTool implements agent.Handle.
func (h *handle) StartTool(ctx context.Context, t agent.Tool) (id string, err error) {
	err = h.starts(ctx, func(b *book) error {
		start := h.s.toolStart(b, t)
		id = start.ToolCallID
		return h.s.recordAfterText(b, start)
	})
	return id, err
}

// recordAfterText completes what the run says and then records a batch: what was said
// before a call or a question stands before it.
func (s *Session) recordAfterText(b *book, batch ...narad.Authority) error {
	if err := s.record(s.pending(b, true)...); err != nil {
		return err
	}
	return s.record(batch...)
}

func (s *Session) toolStart(b *book, t agent.Tool) *narad.ToolCallStarted {
	args := t.Args
	if args == nil {
		args = narad.Raw("{}")
	}
	start := &narad.ToolCallStarted{
		Event: b.event(), ToolCallID: s.id("call"), ToolName: t.Name, Executor: narad.ExecutorBackend, Args: args,
	}
	facts.SetToolStart(&start.Event, t.Kind, t.Title)
	facts.SetAgentID(&start.Event, t.AgentID)
	return start
}

// ToolOutput implements agent.Handle.
func (h *handle) ToolOutput(ctx context.Context, toolCallID, text string) error {
	return h.in(ctx, func(b *book) error {
		c, err := h.s.call(b, toolCallID)
		if err != nil {
			return err
		}
		c.output.held = append(c.output.held, text...)
		return h.s.later(b, len(c.output.held))
	})
}

// call returns an open tool call of a run.
func (s *Session) call(b *book, id string) (*call, error) {
	if c := s.calls[id]; c != nil && c.runID == b.runID {
		return c, nil
	}
	return nil, s.refuse("no open tool call " + id)
}

// FinishTool implements agent.Handle.
func (h *handle) FinishTool(ctx context.Context, toolCallID string, r agent.ToolResult) error {
	return h.in(ctx, func(b *book) error {
		c, err := h.s.call(b, toolCallID)
		if err != nil {
			return err
		}
		if err := h.s.record(append(h.s.pending(b, false), h.s.outputs(c, true)...)...); err != nil {
			return err
		}
		for _, i := range h.s.state.OpenInterrupts() {
			if h.s.book(i.RunID).gateOf != toolCallID {
				continue
			}
			if err := h.s.resolve(i.InterruptID, Decision{Decision: narad.DecisionExpired, Reason: "call_ended"}); err != nil {
				return err
			}
		}
		return h.s.record(h.s.toolFinish(c, r))
	})
}

// maxResponse is the size from which a response is recorded as a preview (R7).
const maxResponse = 500_000

func (s *Session) toolFinish(c *call, r agent.ToolResult) *narad.ToolCallFinished {
	response := r.Response
	switch {
	case response == nil:
		response = narad.Raw("null")
	case len(response) > maxResponse:
		preview := narad.Quote(strings.ToValidUTF8(string(response[:256]), ""))
		response = narad.Raw(fmt.Sprintf(`{"truncated":true,"bytes":%d,"preview":%s}`, len(response), preview))
	}
	finish := &narad.ToolCallFinished{
		Event: s.book(c.runID).event(), ToolCallID: c.id, Outcome: r.Outcome,
		Response: response, Code: r.Code, Message: r.Message,
	}
	facts.SetToolFinish(&finish.Event, c.name, time.Since(c.started).Milliseconds())
	facts.SetFileTouches(&finish.Event, r.Touches)
	return finish
}

// StartRun implements agent.Handle.
func (h *handle) StartRun(ctx context.Context, n agent.Nested) (nested agent.Handle, err error) {
	err = h.starts(ctx, func(b *book) error {
		start := h.s.runStart(b, n.ParentToolCallID)
		facts.SetAgentID(&start.Event, n.AgentID)
		facts.SetAgentName(&start.Event, n.Name)
		batch := []narad.Authority{start}
		info := h.info
		info.RunID, info.Past, info.Prompt = start.RunID, nil, agent.Message{}
		if n.Prompt != "" {
			info.Prompt = agent.Message{MessageID: h.s.id("message"), Content: n.Prompt}
			batch = append(batch, prompt(start.Event, narad.ScopeRun, info.Prompt))
		}
		if err := h.s.record(batch...); err != nil {
			return err
		}
		nested = &handle{h.s, h.life, info}
		return nil
	})
	return nested, err
}

// runStart returns the start of a run below that of b.
func (s *Session) runStart(b *book, toolCallID string) *narad.RunStarted {
	e := b.event()
	e.RunID = s.id("run")
	return &narad.RunStarted{
		Event: e, ParentRunID: b.runID, ParentToolCallID: toolCallID, ClientExecutorID: s.executor(),
	}
}

func prompt(e narad.Event, scope narad.Scope, m agent.Message) *narad.MessageUserRecorded {
	return &narad.MessageUserRecorded{
		Event:     narad.Event{RootRunID: e.RootRunID, RunID: e.RunID},
		MessageID: m.MessageID, MessageScope: scope, Content: m.Content,
	}
}

// End implements agent.Handle.
func (h *handle) End(ctx context.Context, e agent.Ending) error {
	return h.in(ctx, func(b *book) error {
		if b.runID == b.rootID {
			return h.s.refuse("End of a top-level run, which ends when Run returns")
		}
		return h.s.record(h.s.closing(b, e)...)
	})
}

// Resume implements agent.Handle.
func (h *handle) Resume(ctx context.Context, runID string) (resumed agent.Handle, err error) {
	err = h.in(ctx, func(*book) error {
		if b := h.s.book(runID); b == nil || b.gateOf != "" || b.runID == b.rootID {
			return h.s.refuse("Resume of " + runID + ", which is no open nested run")
		}
		info := h.info
		info.RunID, info.Past = runID, h.s.past(runID)
		info.Prompt = promptOf(info.Past, runID)
		resumed = &handle{h.s, h.life, info}
		return nil
	})
	return resumed, err
}

// promptOf returns what a run was told at first.
func promptOf(past []narad.Authority, runID string) agent.Message {
	for _, rec := range past {
		if m, ok := rec.(*narad.MessageUserRecorded); ok && m.RunID == runID {
			return agent.Message{MessageID: m.MessageID, Content: m.Content}
		}
	}
	return agent.Message{}
}

// Progress implements agent.Handle.
func (h *handle) Progress(ctx context.Context, p agent.Progress) error {
	return h.tell(ctx, func(b *book) narad.Authority {
		f := &narad.ProgressRecorded{
			Event: b.event(), ProgressID: p.ID, Category: p.Category, Label: p.Label,
			Detail: p.Detail, Status: p.Status, Privacy: p.Privacy,
		}
		if p.Plan != nil && !p.Plan.Later {
			facts.SetPlan(&f.Event, p.Plan.Steps)
		}
		return f
	})
}

// Tasks implements agent.Handle.
func (h *handle) Tasks(ctx context.Context, agentID string, plan []facts.Planned) error {
	return h.tell(ctx, func(b *book) narad.Authority {
		f := facts.Run(b.rootID, b.runID, facts.TaskList, facts.TasksOf(plan))
		facts.SetAgentID(&f.Event, agentID)
		return f
	})
}

// Tell implements agent.Handle. Nobody is there to be told: an ask ends unanswered.
func (h *handle) Tell(ctx context.Context, t agent.Telling) (askID string, err error) {
	sent := facts.Sent{MessageID: "told", To: t.To, ToSessionID: "other", From: "self", Content: t.Content, Kind: facts.Said}
	if t.Ask {
		sent.Kind, sent.AskID = facts.Ask, "ask:"+t.AgentID
	}
	return sent.AskID, h.tell(ctx, func(b *book) narad.Authority {
		f := facts.Run(b.rootID, b.runID, facts.IntercomSent, sent)
		facts.SetAgentID(&f.Event, t.AgentID)
		return f
	})
}

// AwaitAnswer implements agent.Handle.
func (h *handle) AwaitAnswer(context.Context, string) (content string, answered bool, err error) {
	return "", false, nil
}

// AnswerAsk implements agent.Handle. Whoever says the messages waits for each answer.
func (h *handle) AnswerAsk(ctx context.Context, askID, content, agentID string) error {
	from := h.info.Prompt.From
	if from == nil || from.AskID != askID {
		return agent.ErrConflict
	}
	sent := facts.Sent{
		MessageID: "told", To: from.Name, ToSessionID: "other", From: "self", Content: content, Kind: facts.Answered, AskID: askID,
	}
	return h.tell(ctx, func(b *book) narad.Authority {
		f := facts.Run(b.rootID, b.runID, facts.IntercomSent, sent)
		facts.SetAgentID(&f.Event, agentID)
		return f
	})
}

// Round implements agent.Handle.
func (h *handle) Round(ctx context.Context, r agent.Round) error {
	if r.Provider == "" || r.Model == "" {
		return h.in(ctx, func(*book) error { return h.s.refuse("Round without its provider or model") })
	}
	return h.tell(ctx, func(b *book) narad.Authority {
		return facts.Run(b.rootID, b.runID, facts.Round, facts.Rounded{Provider: r.Provider, Model: r.Model})
	})
}

// Custom implements agent.Handle.
func (h *handle) Custom(ctx context.Context, name string, value narad.Raw) error {
	if strings.HasPrefix(name, facts.Prefix) {
		return h.in(ctx, func(*book) error { return h.s.refuse("Custom " + name + ", which is a name of the host") })
	}
	return h.tell(ctx, func(b *book) narad.Authority {
		return &narad.Custom{Event: b.event(), Kind: narad.TypeRunCustom, Name: name, Value: value}
	})
}

// Remember implements agent.Handle.
func (h *handle) Remember(ctx context.Context, ref string) error {
	return h.tell(ctx, func(*book) narad.Authority {
		return facts.Session(facts.AgentRemembered, facts.Remembered{Agent: "test", Ref: ref})
	})
}
