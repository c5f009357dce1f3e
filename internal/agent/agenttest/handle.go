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

// begin is enter for what no stopped run may begin. What waits is recorded first.
func (h *handle) begin(ctx context.Context) (*book, error) {
	b, err := h.enter(ctx)
	if err != nil {
		return nil, err
	}
	if b.stopping {
		return nil, agent.ErrStopped
	}
	return b, h.s.flush(b)
}

// Text implements agent.Handle.
func (h *handle) Text(ctx context.Context, text string) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	b, err := h.enter(ctx)
	if err != nil {
		return err
	}
	if err := h.s.record(h.s.thoughts(b, false)...); err != nil {
		return err
	}
	b.text.held = append(b.text.held, text...)
	return h.s.later(b, len(b.text.held))
}

// Thought implements agent.Handle.
func (h *handle) Thought(ctx context.Context, text string) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	b, err := h.enter(ctx)
	if err != nil {
		return err
	}
	if err := h.s.record(h.s.texts(b, false)...); err != nil {
		return err
	}
	b.thought.held = append(b.thought.held, text...)
	return h.s.later(b, len(b.thought.held))
}

// EndMessage implements agent.Handle.
func (h *handle) EndMessage(ctx context.Context) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	b, err := h.enter(ctx)
	if err != nil {
		return err
	}
	return h.s.record(h.s.pending(b, true)...)
}

// StartTool implements agent.Handle.
func (h *handle) StartTool(ctx context.Context, t agent.Tool) (string, error) {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	b, err := h.begin(ctx)
	if err != nil {
		return "", err
	}
	start := h.s.toolStart(b, t)
	return start.ToolCallID, h.s.recordAfterText(b, start)
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
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	b, c, err := h.call(ctx, toolCallID)
	if err != nil {
		return err
	}
	c.output.held = append(c.output.held, text...)
	return h.s.later(b, len(c.output.held))
}

// call returns an open tool call of the run.
func (h *handle) call(ctx context.Context, id string) (*book, *call, error) {
	b, err := h.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	c := h.s.calls[id]
	if c == nil || c.runID != b.runID {
		h.s.refused = append(h.s.refused, "no open tool call "+id)
		return nil, nil, fmt.Errorf("%w: no open tool call %s", agent.ErrInvalid, id)
	}
	return b, c, nil
}

// FinishTool implements agent.Handle.
func (h *handle) FinishTool(ctx context.Context, toolCallID string, r agent.ToolResult) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	b, c, err := h.call(ctx, toolCallID)
	if err != nil {
		return err
	}
	if err := h.s.record(append(h.s.pending(b, false), h.s.outputs(c, true)...)...); err != nil {
		return err
	}
	return h.s.record(h.s.toolFinish(c, r))
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
	return finish
}

// StartRun implements agent.Handle.
func (h *handle) StartRun(ctx context.Context, n agent.Nested) (agent.Handle, error) {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	b, err := h.begin(ctx)
	if err != nil {
		return nil, err
	}
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
		return nil, err
	}
	return &handle{h.s, h.life, info}, nil
}

// runStart returns the start of a run below that of b.
func (s *Session) runStart(b *book, toolCallID string) *narad.RunStarted {
	e := b.event()
	e.RunID = s.id("run")
	return &narad.RunStarted{Event: e, ParentRunID: b.runID, ParentToolCallID: toolCallID}
}

func prompt(e narad.Event, scope narad.Scope, m agent.Message) *narad.MessageUserRecorded {
	return &narad.MessageUserRecorded{
		Event:     narad.Event{RootRunID: e.RootRunID, RunID: e.RunID},
		MessageID: m.MessageID, MessageScope: scope, Content: m.Content,
	}
}

// End implements agent.Handle.
func (h *handle) End(ctx context.Context, e agent.Ending) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	b, err := h.enter(ctx)
	if err != nil {
		return err
	}
	if b.runID == b.rootID {
		h.s.refused = append(h.s.refused, "End of a top-level run")
		return fmt.Errorf("%w: a top-level run ends when Run returns", agent.ErrInvalid)
	}
	return h.s.record(h.s.closing(b, e)...)
}

// Resume implements agent.Handle.
func (h *handle) Resume(ctx context.Context, runID string) (agent.Handle, error) {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if _, err := h.enter(ctx); err != nil {
		return nil, err
	}
	if b := h.s.book(runID); b == nil || b.gateOf != "" || b.runID == b.rootID {
		h.s.refused = append(h.s.refused, "Resume of "+runID)
		return nil, fmt.Errorf("%w: no open nested run %s", agent.ErrInvalid, runID)
	}
	info := h.info
	info.RunID, info.Prompt, info.Past = runID, agent.Message{}, h.s.past(runID)
	for _, rec := range info.Past {
		if m, ok := rec.(*narad.MessageUserRecorded); ok {
			info.Prompt = agent.Message{MessageID: m.MessageID, Content: m.Content}
			break
		}
	}
	return &handle{h.s, h.life, info}, nil
}

// Progress implements agent.Handle.
func (h *handle) Progress(ctx context.Context, p agent.Progress) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	b, err := h.enter(ctx)
	if err != nil {
		return err
	}
	if err := h.s.flush(b); err != nil {
		return err
	}
	return h.s.record(&narad.ProgressRecorded{
		Event: b.event(), ProgressID: p.ID, Category: p.Category, Label: p.Label,
		Detail: p.Detail, Status: p.Status, Privacy: p.Privacy,
	})
}

// Custom implements agent.Handle.
func (h *handle) Custom(ctx context.Context, name string, value narad.Raw) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	b, err := h.enter(ctx)
	if err != nil {
		return err
	}
	if strings.HasPrefix(name, facts.Prefix) {
		h.s.refused = append(h.s.refused, "Custom "+name)
		return fmt.Errorf("%w: %s is a name of the host", agent.ErrInvalid, name)
	}
	if err := h.s.flush(b); err != nil {
		return err
	}
	return h.s.record(&narad.Custom{Event: b.event(), Kind: narad.TypeRunCustom, Name: name, Value: value})
}

// Remember implements agent.Handle.
func (h *handle) Remember(ctx context.Context, ref string) error {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	b, err := h.enter(ctx)
	if err != nil {
		return err
	}
	if err := h.s.flush(b); err != nil {
		return err
	}
	return h.s.record(facts.Session(facts.AgentRemembered, facts.Remembered{Agent: "test", Ref: ref}))
}
