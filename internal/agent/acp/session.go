package acp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mahati-host/mahati/internal/agent"
)

// session is the agent of one session. Its process starts with the first run, and again
// with the next run after it has ended.
type session struct {
	opt   *Options
	about agent.Session
	life  context.Context // until Close
	end   context.CancelFunc

	mu     sync.Mutex
	peer   *peer  // guarded by mu
	closed bool   // guarded by mu
	ref    string // of the run under way alone
}

func newSession(opt *Options, about agent.Session) *session {
	s := &session{opt: opt, about: about, ref: about.Ref}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// Run performs one run as one prompt.
func (s *session) Run(ctx context.Context, h agent.Handle) agent.Ending {
	p, err := s.ready(ctx, h)
	if err != nil {
		return s.notReady(ctx, err)
	}
	return p.prompt(ctx, s.life, h)
}

// notReady says why there was no prompt.
func (s *session) notReady(ctx context.Context, err error) agent.Ending {
	if ctx.Err() != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	f := unavailable("The agent cannot be started.", err)
	errors.As(err, &f)
	s.opt.Logger.Warn("agent is not ready", "session", s.about.ID, "code", f.code, "error", f)
	return f.ending()
}

var errClosed = errors.New("the agent is closed")

// ready returns a process that waits for a prompt.
func (s *session) ready(ctx context.Context, h agent.Handle) (*peer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opt.StartTimeout)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	s.mu.Lock()
	p := s.peer
	s.mu.Unlock()
	if p != nil && p.conn.why() == nil {
		return p, nil
	}
	if p != nil {
		p.close()
	}
	p, err := s.start()
	if err != nil {
		return nil, err
	}
	if err := s.greet(ctx, h, p); err != nil {
		p.close()
		return nil, p.explain(err)
	}
	return p, nil
}

// start starts a process that Close finds.
func (s *session) start() (*peer, error) {
	c, err := startChild(s.opt, s.about)
	if err != nil {
		return nil, err
	}
	p := newPeer(s.opt, s.about, c)
	s.mu.Lock()
	closed := s.closed
	s.peer = p
	s.mu.Unlock()
	if closed {
		return nil, errors.Join(errClosed, p.close())
	}
	return p, nil
}

// greet records the process, and agrees with it on the session.
func (s *session) greet(ctx context.Context, h agent.Handle, p *peer) error {
	if err := p.own(ctx); err != nil {
		return err
	}
	if err := p.initialize(ctx); err != nil {
		return err
	}
	lost, err := p.enter(ctx, s.ref)
	if err != nil {
		return err
	}
	if lost != "" {
		// The conversation goes on, but the agent knows nothing of it.
		if err := h.Custom(ctx, "acp.session.fresh", encode(map[string]string{"reason": lost})); err != nil {
			return fmt.Errorf("record a fresh session: %w", err)
		}
	}
	if p.sessionID == s.ref {
		return nil
	}
	s.ref = p.sessionID
	if err := h.Remember(ctx, s.ref); err != nil {
		return fmt.Errorf("record the agent's session: %w", err)
	}
	return nil
}

// Steer refuses: the protocol has no message to a turn under way.
func (s *session) Steer(context.Context, agent.Message) error { return errors.ErrUnsupported }

// Close ends the process and everything that it started.
func (s *session) Close() error {
	s.end()
	s.mu.Lock()
	s.closed = true
	p := s.peer
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.close()
}
