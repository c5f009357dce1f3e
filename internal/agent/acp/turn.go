package acp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"

	wire "github.com/coder/acp-go-sdk"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

const (
	// maxOpen bounds the open tool calls and the open permissions of a turn.
	maxOpen = 256
	// maxClosed is how many closed calls are known, so that what comes late is no new
	// call.
	maxClosed = 10_000
)

// turn is one prompt and what the agent tells until its answer. It belongs to the
// connection's reader until that has seen the answer, and then to the run; what open
// permissions share with them is guarded.
type turn struct {
	peer  *peer
	log   *slog.Logger
	root  *voice
	plan  plan
	tally tally

	wanted context.Context // the run's own
	asking context.Context // of open permissions: until the run is stopped or ends
	cancel context.CancelFunc
	record context.Context // of records: also while the run is being stopped
	stop   context.CancelFunc
	unlink func() bool
	asks   sync.WaitGroup
	lost   chan struct{} // closed when nothing can be recorded any more
	once   sync.Once

	mu     sync.Mutex
	open   []*tool             // guarded by mu: in the order of their starts
	closed map[string]struct{} // guarded by mu: ids of the calls that have ended
	asked  []*asking           // guarded by mu: open permissions
	calls  int                 // guarded by mu: of the executor, that are open
	over   string              // guarded by mu: why nobody waits for these any more
	denied bool                // guarded by mu: something was
}

func newTurn(ctx, life context.Context, p *peer, h agent.Handle) *turn {
	t := &turn{
		wanted: ctx, peer: p, root: &voice{h: h}, lost: make(chan struct{}), closed: map[string]struct{}{},
		tally: tally{before: p.spent},
		log:   p.opt.Logger.With("session", p.about.ID, "run", h.Info().RunID),
	}
	t.asking, t.cancel = context.WithCancel(ctx)
	t.record, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	t.unlink = context.AfterFunc(life, t.stop)
	return t
}

// release ends what the turn waits for.
func (t *turn) release() {
	t.cancel()
	t.stop()
	t.unlink()
}

// update records one update. An error says that it cannot be read.
func (t *turn) update(u *update) error {
	switch u.Kind {
	case kindMessage, kindThought:
		return t.chunk(u)
	case kindTool, kindToolUpdate:
		if u.ToolCallID == "" {
			return errNoID
		}
		return t.toolCall(u, u.Kind == kindTool)
	case kindPlan:
		t.showPlan(u.Entries)
	case kindUsage:
		t.tally.learn(u)
	case kindSettings:
		return t.resettle(u.ConfigOptions)
	}
	return nil // commands, modes, the echo of the prompt, and what is yet to be invented
}

var errNoID = errors.New("a tool call has no id")

// took looks at how a record of a run went. It reports whether it was taken.
func (t *turn) took(v *voice, err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, agent.ErrStopped), errors.Is(err, agent.ErrEnded) && v != t.root:
	case errors.Is(err, agent.ErrInvalid), errors.Is(err, agent.ErrTooLarge):
		// Not the error itself: it may tell what the agent said.
		t.log.Warn("a record of the agent was refused", "too large", errors.Is(err, agent.ErrTooLarge))
	default:
		t.once.Do(func() { close(t.lost) })
	}
	return false
}

// end ends a turn that the reader has left, and says how the run ends.
func (t *turn) end(r reply) agent.Ending {
	var refused *callError
	t.mu.Lock()
	t.over = turnOver
	if r.err != nil && !errors.As(r.err, &refused) {
		t.over = agentGone
	}
	t.mu.Unlock()
	t.cancel()
	t.asks.Wait()
	e := t.ending(r)
	e.Turn = t.tally.turn()
	t.peer.spent = t.tally.after()
	t.hush(t.root)
	for _, tool := range t.openOf(t.root) {
		t.finish(tool, leftOpen(e))
	}
	if e.Outcome == agent.Finished {
		t.answerAsk()
	}
	return e
}

// answerAsk answers the session whose ask began the turn with the turn's last message: the
// protocol gives an agent no other way to do so.
func (t *turn) answerAsk() {
	from, said := t.root.h.Info().Prompt.From, strings.TrimSpace(strings.ToValidUTF8(string(t.root.said), ""))
	if from == nil || from.AskID == "" || said == "" {
		return
	}
	err := t.root.h.AnswerAsk(t.record, from.AskID, said, "")
	if errors.Is(err, agent.ErrConflict) {
		return // somebody has answered, or nobody waits any more
	}
	t.took(t.root, err)
}

// leftOpen is the end of a call that was open at the end of the turn.
func leftOpen(e agent.Ending) agent.ToolResult {
	if e.Outcome == agent.Failed {
		return agent.ToolResult{Outcome: narad.OutcomeError, Code: e.Code, Message: e.Message}
	}
	return agent.ToolResult{Outcome: narad.OutcomeCancelled, Code: "unfinished"}
}

// ending reads the answer to the prompt (R42).
func (t *turn) ending(r reply) agent.Ending {
	if t.stopped() {
		return agent.Ending{Outcome: agent.Cancelled, Usage: usageOf(r.result)}
	}
	if r.err != nil {
		f := t.peer.failureOf(r.err, t.status(r.err))
		t.log.Warn("agent's turn failed", "code", f.code, "error", f)
		return f.ending()
	}
	var answer struct {
		StopReason wire.StopReason `json:"stopReason"`
	}
	if err := json.Unmarshal(r.result, &answer); err != nil {
		return t.peer.failureOf(errGarbage, "").ending()
	}
	e := agent.Ending{Usage: usageOf(r.result)}
	switch answer.StopReason {
	case wire.StopReasonEndTurn:
		e.StopReason = "completed"
	case wire.StopReasonMaxTokens:
		e.StopReason = "max-tokens"
	case wire.StopReasonRefusal:
		e.StopReason = "content-filter"
	case wire.StopReasonMaxTurnRequests:
		e.Outcome, e.Code = agent.Failed, codeMaxRequests
		e.Message = "The agent reached its limit of requests to the model in one turn."
	case wire.StopReasonCancelled:
		e.Outcome, e.Code = agent.Cancelled, t.whyCancelled()
	default:
		e.StopReason = "unknown"
	}
	return e
}

// stopped reports whether the run was to stop.
func (t *turn) stopped() bool { return t.wanted.Err() != nil }

// whyCancelled tells why an agent ended its turn that nobody stopped.
func (t *turn) whyCancelled() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.denied {
		return codeDenied
	}
	return "agent_cancelled"
}

// status says how the process ended, if it is why there is no answer.
func (t *turn) status(err error) string {
	if !errors.Is(err, errEnd) {
		return ""
	}
	<-t.peer.gone
	return t.peer.exit
}
