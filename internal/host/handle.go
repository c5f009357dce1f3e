package host

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// How long something may wait for more (DESIGN §7, R43).
const (
	textPatience   = 40 * time.Millisecond
	outputPatience = 100 * time.Millisecond
)

// handle records the facts of one run for its agent. One record is in flight at a time;
// text and output that come meanwhile wait in the pending list, in their order, and go
// before anything else.
type handle struct {
	o         *owner
	above     *handle // of the run above
	info      agent.Info
	agentName string
	branches  map[string]string // the agents of runs right below, by their AgentID
	forgets   bool              // its agent is for this run alone: nothing is remembered of it
	turn      chan struct{}     // held while a record is in flight
	over      context.Context   // ends when the run does: nobody waits for anything then
	end       context.CancelFunc
	late      sync.WaitGroup // timers that were set and have not come to their end

	mu        sync.Mutex
	closed    bool                 // guarded by mu: nothing is added any more
	fault     error                // guarded by mu: why something pending was not recorded
	pending   pending              // guarded by mu
	timer     *time.Timer          // guarded by mu: set while something is pending
	messageID string               // guarded by mu: of the open message, or the next one
	tools     map[string]knownTool // guarded by mu: the open ones
	below     []*handle            // guarded by mu: of the open nested runs
}

// knownTool is an open tool call.
type knownTool struct {
	agent.Tool
	// past says that it began before a restart: what the policy must know is not known.
	past bool
}

func newHandle(o *owner, info agent.Info, agentName string) *handle {
	over, end := context.WithCancel(context.WithoutCancel(o.host.life))
	return &handle{
		o: o, info: info, agentName: agentName, turn: make(chan struct{}, 1), over: over, end: end,
		tools: pastTools(info),
	}
}

// pastTools returns the calls of a run that goes on which are still open.
func pastTools(info agent.Info) map[string]knownTool {
	tools := map[string]knownTool{}
	for _, fact := range info.Past {
		if fact.Envelope().RunID != info.RunID {
			continue
		}
		switch f := fact.(type) {
		case *narad.ToolCallStarted:
			tools[f.ToolCallID] = knownTool{agent.Tool{
				AgentID: facts.AgentID(&f.Event), Name: f.ToolName, Kind: facts.ToolKind(&f.Event), Args: f.Args,
			}, true}
		case *narad.ToolCallFinished:
			delete(tools, f.ToolCallID)
		}
	}
	return tools
}

// Info implements agent.Handle; so do the methods below, and those in tell.go, nest.go
// and ask.go.
func (h *handle) Info() agent.Info { return h.info }

func (h *handle) Text(ctx context.Context, text string) error {
	return h.add(ctx, stream{kind: streamText}, text)
}

func (h *handle) Thought(ctx context.Context, text string) error {
	return h.add(ctx, stream{kind: streamThought}, text)
}

func (h *handle) ToolOutput(ctx context.Context, toolCallID, text string) error {
	return h.add(ctx, stream{streamOutput, toolCallID}, text)
}

// add puts something into the pending list, and records the list when it is long. An
// agent that tells more than can be recorded waits before more is taken.
func (h *handle) add(ctx context.Context, s stream, text string) error {
	for {
		taken, long, err := h.put(ctx, s, text)
		if err != nil || taken && !long {
			return err
		}
		if err := h.flush(ctx); err != nil || taken {
			return err
		}
	}
}

// put takes something into the pending list if there is room. long says that the list
// shall be recorded.
func (h *handle) put(ctx context.Context, s stream, text string) (taken, long bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.takesLocked(s); err != nil {
		return false, false, err
	}
	if err := ctx.Err(); err != nil {
		return false, false, err
	}
	if h.pending.size >= pendingMost {
		return false, true, nil
	}
	long = h.pending.add(s, text)
	if len(h.pending.list) > 0 && !long {
		h.flushSoonLocked(s)
	}
	return true, long, nil
}

func (h *handle) takesLocked(s stream) error {
	switch _, open := h.tools[s.tool]; {
	case h.closed:
		return agent.ErrEnded
	case h.fault != nil:
		return h.fault
	case s.kind == streamOutput && !open:
		return invalid("no such tool call is open in the run")
	}
	return nil
}

// flushSoonLocked sees to it that what is pending is recorded before long.
func (h *handle) flushSoonLocked(s stream) {
	if h.timer != nil {
		return
	}
	patience := textPatience
	if s.kind == streamOutput {
		patience = outputPatience
	}
	h.late.Add(1)
	h.timer = time.AfterFunc(patience, h.flushLate)
}

// stopTimerLocked takes the timer back; one that has fired comes to its own end.
func (h *handle) stopTimerLocked() {
	if h.timer != nil && h.timer.Stop() {
		h.late.Done()
	}
	h.timer = nil
}

// flushLate records what has waited long enough.
func (h *handle) flushLate() {
	defer h.late.Done()
	if err := h.flush(h.over); err != nil && h.over.Err() == nil {
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
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case h.turn <- struct{}{}:
		return func() { <-h.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// flushHeld records what is pending, in order, while the turn is held. last says that
// the run ends with it.
func (h *handle) flushHeld(ctx context.Context, last bool) error {
	for {
		h.mu.Lock()
		h.stopTimerLocked()
		s, ok := h.pending.next()
		command := h.commandLocked(s, last)
		h.mu.Unlock()
		if !ok {
			return nil
		}
		_, err := h.tell(ctx, &task{command: command}, last)
		if err != nil && ctx.Err() != nil {
			return err // it was not recorded, and may be later
		}
		h.mu.Lock()
		h.pending.drop(s)
		h.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// commandLocked makes a stretch a command.
func (h *handle) commandLocked(s stretch, last bool) decide.Command {
	switch s.kind {
	case streamText:
		return decide.Say{RunID: h.info.RunID, MessageID: h.messageLocked(), Text: s.text, Last: last}
	case streamThought:
		return decide.Think{RunID: h.info.RunID, MessageID: h.messageLocked(), Text: s.text, Last: last}
	}
	return decide.ToolOutput{
		RunID: h.info.RunID, Output: facts.Output{ToolCallID: s.tool, Text: s.text, Truncated: s.truncated}, Last: last,
	}
}

func (h *handle) messageLocked() string {
	if h.messageID == "" {
		h.messageID = h.o.host.opt.NewID()
	}
	return h.messageID
}

// do records what is pending and then the command, with nothing in between. What a pause
// of the run forbids is tried again when the run goes on.
func (h *handle) do(ctx context.Context, t *task) (decide.Answer, error) {
	for {
		t.resumed = make(chan struct{})
		answer, err := h.once(ctx, t)
		if !errors.Is(err, errPaused) {
			return answer, err
		}
		select {
		case <-t.resumed:
		case <-ctx.Done():
			return decide.Answer{}, ctx.Err()
		case <-h.o.ended:
			return decide.Answer{}, agent.ErrEnded
		}
	}
}

// errPaused says that the run is paused, and begins nothing.
var errPaused = errors.New("the run is paused")

func (h *handle) once(ctx context.Context, t *task) (decide.Answer, error) {
	release, err := h.take(ctx)
	if err != nil {
		return decide.Answer{}, err
	}
	defer release()
	h.endStreams(t.command)
	if err := h.flushHeld(ctx, false); err != nil {
		return decide.Answer{}, err
	}
	answer, err := h.tell(ctx, t, false)
	if err == nil && completes(t.command) {
		h.mu.Lock()
		h.messageID = "" // the next text begins a new message
		h.mu.Unlock()
	}
	return answer, err
}

// endStreams gives up what is not whole in streams that the command ends.
func (h *handle) endStreams(c decide.Command) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if completes(c) {
		h.pending.endText()
	}
	if f, ok := c.(decide.FinishTool); ok {
		h.pending.end(stream{streamOutput, f.ToolCallID})
	}
}

// completes reports whether a command completes the run's open message.
func completes(c decide.Command) bool {
	switch c.(type) {
	case decide.StartTool, decide.StartClientTool, decide.Ask, decide.EndMessage:
		return true
	}
	return false
}

// close records what is pending here and below; nothing is added after it. It may be
// called twice.
func (h *handle) close() {
	h.mu.Lock()
	h.closed = true
	below := slices.Clone(h.below)
	h.mu.Unlock()
	h.end()
	for _, b := range below {
		b.close()
	}
	h.flushLast(context.WithoutCancel(h.o.host.life))
	h.late.Wait()
}

func (h *handle) flushLast(ctx context.Context) {
	release, err := h.take(ctx)
	if err != nil {
		return
	}
	defer release()
	h.mu.Lock()
	h.pending.endAll()
	h.mu.Unlock()
	if err := h.flushHeld(ctx, true); err != nil && !errors.Is(err, agent.ErrEnded) {
		h.o.log.Warn("record the last text of a run", "run", h.info.RunID, "error", err)
	}
}

// tell records something for the agent. last says that the handle itself ends with it.
func (h *handle) tell(ctx context.Context, t *task, last bool) (decide.Answer, error) {
	t.actor, t.agent = hostActor, true
	if last {
		return h.o.tell(ctx, nil, t)
	}
	return h.o.tell(ctx, h.over.Done(), t)
}

// tell records something and waits while space is short, as long as nobody gives it up.
func (o *owner) tell(ctx context.Context, giveUp <-chan struct{}, t *task) (decide.Answer, error) {
	for {
		t.reply = make(chan reply, 1)
		answer, err := o.record(ctx, t)
		if !errors.Is(err, journal.ErrStorageFull) {
			return answer, refusalOf(answer, err)
		}
		pause := time.NewTimer(retryPause)
		select {
		case <-pause.C:
			continue
		case <-ctx.Done():
			err = ctx.Err()
		case <-giveUp:
			err = agent.ErrEnded
		case <-o.ended:
			err = agent.ErrEnded
		}
		pause.Stop()
		return decide.Answer{}, err
	}
}

// refusalOf says what a refused record means to an agent.
func refusalOf(a decide.Answer, err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case err != nil: // the owner has ended, or ends with it
		return agent.ErrEnded
	}
	switch a.Err {
	case decide.RefusedStopped:
		return agent.ErrStopped
	case decide.RefusedEnded:
		return agent.ErrEnded
	case decide.RefusedPaused:
		return errPaused
	case decide.RefusedConflict:
		return agent.ErrConflict
	case decide.RefusedTooLarge:
		return agent.ErrTooLarge
	case decide.RefusedInvalid:
		return invalid(a.Detail)
	}
	return nil
}
