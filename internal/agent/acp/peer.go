package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/coder/acp-go-sdk"
	"github.com/mahati-host/mahati/internal/agent"
)

// peer is a running agent: its process, the connection to it, and the session that it
// knows.
type peer struct {
	opt   *Options
	about agent.Session
	child *child
	conn  *conn
	quit  chan struct{} // closed to end it
	once  sync.Once
	gone  chan struct{} // closed when nothing is left of it
	err   error         // of its end, readable when it is gone
	exit  string        // how it ended by itself, readable when it is gone

	aside     atomic.Int64 // how many messages came outside of a turn
	loads     bool         // it can load sessions
	accepts   accepts      // in prompts
	methods   []string     // its ways to sign in
	sessionID string
	spent     *float64 // in US dollars by the session so far, nil if that is not known; the run's own
	settings  settings // of the session

	mu    sync.Mutex
	turn  *turn // guarded by mu: that updates belong to, nil between prompts
	owned bool  // guarded by mu: the process is recorded
}

func newPeer(opt *Options, about agent.Session, c *child) *peer {
	p := &peer{opt: opt, about: about, child: c, quit: make(chan struct{}), gone: make(chan struct{})}
	log := opt.Logger.With("session", about.ID)
	p.conn = newConn(p, c.out, c.in, opt.WriteTimeout, log)
	p.conn.start()
	go p.watch()
	return p
}

// watch waits for a reason to end, and cleans up.
func (p *peer) watch() {
	defer close(p.gone)
	select {
	case <-p.quit:
	case <-p.child.group.Exited():
	case <-p.conn.broken:
		if errors.Is(p.conn.why(), errEnd) {
			p.child.await() // its status says more than the end of its output
		}
	}
	p.exit = p.child.status()
	p.err = p.child.end()
	<-p.conn.ended
	<-p.conn.wrote
	p.child.out.Close()
	<-p.child.logged
	p.sweepScratch()
	p.disown()
}

// close ends the process and returns when it is gone.
func (p *peer) close() error {
	p.once.Do(func() { close(p.quit) })
	<-p.gone
	return p.err
}

// own records that the process belongs to the session.
func (p *peer) own(ctx context.Context) error {
	if p.about.Own == nil {
		return nil
	}
	if err := p.about.Own(ctx, p.child.group.ID); err != nil {
		return fmt.Errorf("record the agent's process: %w", err)
	}
	p.mu.Lock()
	p.owned = true
	p.mu.Unlock()
	return nil
}

// disown takes the record back, unless the process could not be ended.
func (p *peer) disown() {
	p.mu.Lock()
	owned := p.owned
	p.mu.Unlock()
	if !owned || p.err != nil || p.about.Disown == nil {
		return
	}
	if err := p.about.Disown(context.Background(), p.child.group.ID); err != nil {
		p.opt.Logger.Warn("forget the agent's process", "session", p.about.ID, "error", err)
	}
}

// explain says why an agent that is gone was not ready.
func (p *peer) explain(err error) error {
	var refused *callError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return unavailable("The agent did not get ready in time.", err)
	case errors.Is(err, errEnd):
		return unavailable("The agent ended before it was ready ("+p.exit+").", err)
	case errors.Is(err, errGarbage), errors.Is(err, errDeaf), errors.As(err, &refused):
		return p.failureOf(err, "")
	}
	return err
}

// initialize agrees on the version and on what both can do.
func (p *peer) initialize(ctx context.Context) error {
	hello := wire.InitializeRequest{
		ProtocolVersion:    wire.ProtocolVersionNumber,
		ClientInfo:         &wire.Implementation{Name: "mahati", Version: p.opt.Version},
		ClientCapabilities: p.opt.capabilities(),
	}
	var answer struct {
		ProtocolVersion int `json:"protocolVersion"`
		Capabilities    struct {
			LoadSession bool       `json:"loadSession"`
			Prompt      accepts    `json:"promptCapabilities"`
			MCP         transports `json:"mcpCapabilities"`
		} `json:"agentCapabilities"`
		AuthMethods []struct {
			ID string `json:"id"`
		} `json:"authMethods"`
	}
	if err := p.conn.ask(ctx, wire.AgentMethodInitialize, hello, &answer); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if answer.ProtocolVersion != wire.ProtocolVersionNumber {
		return unavailable(fmt.Sprintf("The agent speaks version %d of the protocol, not %d.",
			answer.ProtocolVersion, wire.ProtocolVersionNumber), nil)
	}
	if !answer.Capabilities.MCP.reach(p.opt.MCPServers) {
		return unavailable("The agent cannot connect to an MCP server by its URL.", nil)
	}
	p.loads, p.accepts = answer.Capabilities.LoadSession, answer.Capabilities.Prompt
	for _, m := range answer.AuthMethods {
		p.methods = append(p.methods, m.ID)
	}
	return nil
}

// Why an agent knows nothing of its earlier session.
const (
	cannotLoad  = "unsupported"
	refusedLoad = "refused"
)

// enter loads the session that ref names, or makes a new one. lost says why an earlier
// one was not loaded. What comes meanwhile belongs to no turn (R17).
func (p *peer) enter(ctx context.Context, ref string) (lost string, err error) {
	switch {
	case ref == "":
	case !p.loads:
		lost = cannotLoad
	default:
		err := p.load(ctx, ref)
		var refused *callError
		if !errors.As(err, &refused) || refused.Code == codeSignIn {
			return "", err
		}
		lost = refusedLoad
	}
	return lost, p.create(ctx)
}

func (p *peer) load(ctx context.Context, ref string) error {
	ask := wire.LoadSessionRequest{SessionId: wire.SessionId(ref), Cwd: p.child.dir, McpServers: p.opt.MCPServers}
	var answer settings
	err := p.signedIn(ctx, func() error {
		return p.conn.ask(ctx, wire.AgentMethodSessionLoad, ask, &answer)
	})
	if err != nil {
		return fmt.Errorf("load a session: %w", err)
	}
	p.sessionID = ref
	p.learn(answer)
	return p.settle(ctx)
}

const (
	replayPause = 500 * time.Millisecond // without a message: the history is told
	replayTime  = 10 * time.Second       // an agent that never pauses is prompted all the same
)

// settle waits until an agent has told the history of a session that it loaded. By the
// protocol it has when it answers; gemini-cli begins then, and what it tells would be
// taken for the next turn (R17).
func (p *peer) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, replayTime, errSettled)
	defer cancel()
	ticker := time.NewTicker(replayPause)
	defer ticker.Stop()
	for before := int64(-1); before != p.aside.Load(); {
		before = p.aside.Load()
		select {
		case <-ticker.C:
		case <-p.conn.broken:
			return p.conn.why()
		case <-ctx.Done():
			if err := context.Cause(ctx); !errors.Is(err, errSettled) {
				return err
			}
			return nil
		}
	}
	return nil
}

var errSettled = errors.New("the history is told for long enough")

func (p *peer) create(ctx context.Context) error {
	ask := wire.NewSessionRequest{Cwd: p.child.dir, McpServers: p.opt.MCPServers}
	var answer struct {
		SessionID string `json:"sessionId"`
		settings
	}
	err := p.signedIn(ctx, func() error {
		return p.conn.ask(ctx, wire.AgentMethodSessionNew, ask, &answer)
	})
	if err != nil {
		return fmt.Errorf("make a session: %w", err)
	}
	const longest = 1 << 10
	if answer.SessionID == "" || len(answer.SessionID) > longest {
		return fmt.Errorf("make a session: %w", errGarbage)
	}
	p.sessionID, p.spent = answer.SessionID, new(float64)
	p.learn(answer.settings)
	return nil
}

// learn notes what can be chosen in the session.
func (p *peer) learn(s settings) {
	p.settings = s
	p.opt.catalogue.learn(&s)
}

// signedIn does what may need somebody to be signed in, and signs in if it does.
func (p *peer) signedIn(ctx context.Context, do func() error) error {
	err := do()
	var refused *callError
	if !errors.As(err, &refused) || refused.Code != codeSignIn || p.opt.AuthMethod == "" {
		return err
	}
	ask := wire.AuthenticateRequest{MethodId: p.opt.AuthMethod}
	if err := p.conn.ask(ctx, wire.AgentMethodAuthenticate, ask, new(json.RawMessage)); err != nil {
		if errors.As(err, &refused) {
			return errSignIn
		}
		return fmt.Errorf("sign in: %w", err)
	}
	return do()
}

// prompt performs one turn.
func (p *peer) prompt(ctx, life context.Context, h agent.Handle) agent.Ending {
	if err := p.choose(ctx, h.Info().Chosen); err != nil {
		return p.notChosen(ctx, err)
	}
	blocks, err := p.promptOf(h.Info().Prompt)
	if err != nil {
		f := p.failureOf(err, "")
		p.opt.Logger.Warn("hand on an attachment", "session", p.about.ID, "error", f)
		return f.ending()
	}
	t := newTurn(ctx, life, p, h)
	defer t.release()
	first := t.round(t.root)
	p.enterTurn(t)
	ask := wire.PromptRequest{SessionId: wire.SessionId(p.sessionID), Prompt: append(preface(h.Info()), blocks...)}
	t.took(t.root, h.Round(t.record, first))
	answered := make(chan reply, 1)
	err = p.conn.call(wire.AgentMethodSessionPrompt, ask, func(r reply) {
		p.enterTurn(nil) // nothing after the answer belongs to the turn
		answered <- r
	})
	if err != nil {
		_ = p.close() // nobody reads for the turn any more
		answered <- reply{err: err}
	}
	return t.end(p.answer(ctx, t, answered))
}

// notChosen ends a run whose agent does not run on what was chosen.
func (p *peer) notChosen(ctx context.Context, err error) agent.Ending {
	if ctx.Err() != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	f := p.failureOf(err, "")
	errors.As(err, &f)
	p.opt.Logger.Warn("choose a model", "session", p.about.ID, "code", f.code, "error", f)
	return f.ending()
}

// answer waits for the end of a turn. When ctx is done the agent is asked to stop; the
// host's patience with it ends with Close.
func (p *peer) answer(ctx context.Context, t *turn, answered <-chan reply) reply {
	stop := ctx.Done()
	for {
		select {
		case r := <-answered:
			return r
		case <-stop:
			stop = nil
			// An agent that does not read is found out by the writer.
			_ = p.conn.notify(wire.AgentMethodSessionCancel, wire.CancelNotification{SessionId: wire.SessionId(p.sessionID)})
		case <-t.lost:
			// What cannot be recorded must not go on.
			_ = p.close()
			return <-answered
		}
	}
}

func (p *peer) enterTurn(t *turn) {
	p.mu.Lock()
	p.turn = t
	p.mu.Unlock()
}

func (p *peer) currentTurn() *turn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn
}

// notification implements handler; so does request.
func (p *peer) notification(method string, params json.RawMessage) error {
	t := p.currentTurn()
	switch {
	case t == nil:
		p.aside.Add(1)
		return nil
	case method == methodCancelRequest:
		return t.cancelled(params)
	case method != wire.ClientMethodSessionUpdate:
		return nil
	}
	var n notice
	if err := json.Unmarshal(params, &n); err != nil {
		return err
	}
	if n.SessionID != p.sessionID {
		return nil
	}
	return t.update(&n.Update)
}

// methodCancelRequest takes a request back. The protocol's first version does not list
// it yet; agents send it.
const methodCancelRequest = "$/cancel_request"

// An answer that cannot be sent breaks the connection, and whoever waits for the agent
// learns of that.
func (p *peer) request(id json.RawMessage, method string, params json.RawMessage) error {
	if p.opt.offers(method) {
		return p.clientRequest(id, method, params)
	}
	if method != wire.ClientMethodSessionRequestPermission {
		_ = p.conn.refuse(id, codeNoMethod, "method not found")
		return nil
	}
	var r request
	if err := json.Unmarshal(params, &r); err != nil || r.ToolCall.ToolCallID == "" {
		_ = p.conn.refuse(id, codeBadParams, "invalid params")
		return errNoPermission
	}
	t := p.currentTurn()
	if t == nil || r.SessionID != p.sessionID {
		_ = p.conn.answer(id, outcomeOf(""))
		return nil
	}
	t.permit(id, &r)
	return nil
}

var errNoPermission = errors.New("a request for permission cannot be read")
