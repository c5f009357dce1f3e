package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// handle records the facts of one run for its agent. One record is in flight at a time;
// text and output that come meanwhile wait in the pending list, in their order, and go
// before anything else.
type handle struct {
	o    *owner
	info agent.Info
	turn chan struct{} // held while a record is in flight

	mu        sync.Mutex
	pending   pending               // guarded by mu
	messageID string                // guarded by mu: of the open message, or the next one
	timer     *time.Timer           // guarded by mu: set while something is pending
	fault     error                 // guarded by mu: why something pending was not recorded
	tools     map[string]agent.Tool // guarded by mu: for the policy
}

func newHandle(o *owner, info agent.Info) *handle {
	return &handle{o: o, info: info, turn: make(chan struct{}, 1), tools: map[string]agent.Tool{}}
}

// Info implements agent.Handle; so do the methods below.
func (h *handle) Info() agent.Info { return h.info }

func (h *handle) Text(ctx context.Context, text string) error {
	return h.add(ctx, piece{kind: pieceText}, text)
}

func (h *handle) Thought(ctx context.Context, text string) error {
	return h.add(ctx, piece{kind: pieceThought}, text)
}

func (h *handle) ToolOutput(ctx context.Context, toolCallID, text string) error {
	return h.add(ctx, piece{kind: pieceOutput, tool: toolCallID}, text)
}

// add puts something into the pending list, and records the list when it is long.
func (h *handle) add(ctx context.Context, p piece, text string) error {
	h.mu.Lock()
	if err := h.fault; err != nil {
		h.mu.Unlock()
		return err
	}
	long := h.pending.add(p, text)
	if h.timer == nil && !h.pending.empty() {
		h.timer = time.AfterFunc(p.patience(), h.flushLate)
	}
	h.mu.Unlock()
	if long {
		return h.flush(ctx)
	}
	return nil
}

// flushLate records what has waited long enough.
func (h *handle) flushLate() {
	if err := h.flush(h.o.host.life); err != nil {
		h.mu.Lock()
		h.fault = err
		h.mu.Unlock()
	}
}

// flush records everything pending.
func (h *handle) flush(ctx context.Context) error {
	release, err := h.take(ctx)
	if err != nil {
		return err
	}
	defer release()
	return h.flushHeld(ctx, false)
}

// take waits for the handle's turn.
func (h *handle) take(ctx context.Context) (release func(), err error) {
	select {
	case h.turn <- struct{}{}:
		return func() { <-h.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// flushHeld records what is pending, in order. last says that nothing more comes, so
// that a cut character is given up.
func (h *handle) flushHeld(ctx context.Context, last bool) error {
	for {
		h.mu.Lock()
		if h.timer != nil {
			h.timer.Stop()
			h.timer = nil
		}
		p, text, ok := h.pending.take(last)
		command := h.commandLocked(p, text)
		h.mu.Unlock()
		if !ok {
			return nil
		}
		if command == nil {
			continue
		}
		if _, err := h.o.tell(ctx, &task{command: command, actor: hostActor}); err != nil {
			return err
		}
	}
}

// commandLocked makes a pending piece a command.
func (h *handle) commandLocked(p piece, text string) decide.Command {
	if text == "" && !p.truncated {
		return nil
	}
	switch p.kind {
	case pieceText:
		return decide.Say{RunID: h.info.RunID, MessageID: h.messageLocked(), Text: text}
	case pieceThought:
		return decide.Think{RunID: h.info.RunID, MessageID: h.messageLocked(), Text: text}
	}
	return decide.ToolOutput{RunID: h.info.RunID, Output: facts.Output{ToolCallID: p.tool, Text: text, Truncated: p.truncated}}
}

func (h *handle) messageLocked() string {
	if h.messageID == "" {
		h.messageID = h.o.host.opt.NewID()
	}
	return h.messageID
}

// do records what is pending and then the command, with nothing in between.
func (h *handle) do(ctx context.Context, c decide.Command, also ...func(*task)) (decide.Answer, error) {
	release, err := h.take(ctx)
	if err != nil {
		return decide.Answer{}, err
	}
	defer release()
	if err := h.flushHeld(ctx, true); err != nil {
		return decide.Answer{}, err
	}
	t := &task{command: c, actor: hostActor}
	for _, f := range also {
		f(t)
	}
	return h.o.tell(ctx, t)
}

// newMessage lets the next text begin a new message: the open one is complete.
func (h *handle) newMessage() {
	h.mu.Lock()
	h.messageID = ""
	h.mu.Unlock()
}

func (h *handle) EndMessage(ctx context.Context) error {
	_, err := h.do(ctx, decide.EndMessage{RunID: h.info.RunID})
	h.newMessage()
	return err
}

// close records what is pending; nothing is added after it.
func (h *handle) close() {
	ctx := context.WithoutCancel(h.o.host.life)
	release, err := h.take(ctx)
	if err != nil {
		return
	}
	defer release()
	if err := h.flushHeld(ctx, true); err != nil && !errors.Is(err, agent.ErrEnded) {
		h.o.log.Warn("record the last text of a run", "run", h.info.RunID, "error", err)
	}
}

// maxResponse is where a tool's response is cut, so that its fact stays below the size
// of an event (R7).
const maxResponse = 480_000

func (h *handle) StartTool(ctx context.Context, t agent.Tool) (string, error) {
	id := h.o.host.opt.NewID()
	_, err := h.do(ctx, decide.StartTool{
		RunID: h.info.RunID, ToolCallID: id, AgentID: t.AgentID, Name: t.Name, Kind: t.Kind, Title: t.Title, Args: t.Args,
	})
	h.newMessage()
	if err != nil {
		return "", err
	}
	h.mu.Lock()
	h.tools[id] = t
	h.mu.Unlock()
	return id, nil
}

func (h *handle) FinishTool(ctx context.Context, toolCallID string, r agent.ToolResult) error {
	response := r.Response
	if len(response) > maxResponse {
		response = cut(response)
	}
	if response == nil {
		response = narad.Raw("null")
	}
	_, err := h.do(ctx, decide.FinishTool{
		RunID: h.info.RunID, ToolCallID: toolCallID, Outcome: r.Outcome, Response: response, Code: r.Code, Message: r.Message,
	})
	h.mu.Lock()
	delete(h.tools, toolCallID)
	h.mu.Unlock()
	return err
}

// cut replaces a value that is too large by its size and its beginning.
func cut(value narad.Raw) narad.Raw {
	const preview = 4 << 10
	text := strings.ToValidUTF8(string(value[:preview]), "")
	small, err := facts.Value(struct {
		Truncated bool   `json:"truncated"`
		Bytes     int    `json:"bytes"`
		Preview   string `json:"preview"`
	}{true, len(value), text})
	if err != nil {
		return narad.Raw(`{"truncated":true}`)
	}
	return small
}

func (h *handle) StartRun(ctx context.Context, n agent.Nested) (agent.Handle, error) {
	id := h.o.host.opt.NewID()
	info := agent.Info{SessionID: h.info.SessionID, RunID: id, RootRunID: h.info.RootRunID, Cwd: h.info.Cwd}
	info.Prompt = agent.Message{MessageID: h.o.host.opt.NewID(), Content: n.Prompt}
	_, err := h.do(ctx, decide.StartRun{
		ParentRunID: h.info.RunID, ParentToolCallID: n.ParentToolCallID, RunID: id, AgentID: n.AgentID,
		Name: n.Name, Prompt: n.Prompt, MessageID: info.Prompt.MessageID,
	})
	if err != nil {
		return nil, err
	}
	return newHandle(h.o, info), nil
}

func (h *handle) Resume(_ context.Context, runID string) (agent.Handle, error) {
	info := h.info
	info.RunID, info.Prompt, info.Past = runID, agent.Message{}, nil
	for _, fact := range h.info.Past {
		if m, ok := fact.(*narad.MessageUserRecorded); ok && m.RunID == runID {
			info.Prompt = agent.Message{MessageID: m.MessageID, Content: m.Content}
		}
	}
	return newHandle(h.o, info), nil
}

func (h *handle) End(ctx context.Context, e agent.Ending) error {
	_, err := h.do(ctx, decide.EndRun{RunID: h.info.RunID, Ending: endingOf(e)})
	return err
}

func (h *handle) Progress(ctx context.Context, p agent.Progress) error {
	_, err := h.do(ctx, decide.Progress{
		RunID: h.info.RunID, ProgressID: p.ID, Category: p.Category, Label: p.Label, Detail: p.Detail,
		Status: p.Status, Privacy: p.Privacy,
	})
	return err
}

func (h *handle) Custom(ctx context.Context, name string, value narad.Raw) error {
	if strings.HasPrefix(name, facts.Prefix) {
		return fmt.Errorf("%w: names under %s are the host's", agent.ErrInvalid, facts.Prefix)
	}
	_, err := h.do(ctx, decide.Custom{RunID: h.info.RunID, Name: name, Value: value})
	return err
}

func (h *handle) Remember(ctx context.Context, ref string) error {
	_, err := h.do(ctx, decide.Remember{Agent: "", Ref: ref})
	return err
}

// storagePause is how long an agent's record waits before it asks for space again.
const storagePause = time.Second

// tell records something for an agent. While space is short it waits.
func (o *owner) tell(ctx context.Context, t *task) (decide.Answer, error) {
	for {
		t.reply = make(chan reply, 1)
		answer, err := o.record(ctx, t)
		if !errors.Is(err, journal.ErrStorageFull) {
			return answer, refusalOf(answer, err)
		}
		if waitFor(ctx, o.ended, storagePause) {
			return answer, agent.ErrEnded
		}
	}
}

// refusalOf says what a refused record means to an agent.
func refusalOf(a decide.Answer, err error) error {
	var refusal *narad.Error
	switch {
	case errors.Is(err, errOwnerEnded), errors.Is(err, journal.ErrBroken), errors.Is(err, journal.ErrClosed):
		return agent.ErrEnded
	case errors.As(err, &refusal) && refusal.Code == narad.CodeTooLarge:
		return agent.ErrTooLarge
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", agent.ErrInvalid, err)
	}
	switch a.Err {
	case decide.RefusedStopped:
		return agent.ErrStopped
	case decide.RefusedEnded:
		return agent.ErrEnded
	case decide.RefusedInvalid:
		return fmt.Errorf("%w: %s", agent.ErrInvalid, a.Detail)
	}
	return nil
}
