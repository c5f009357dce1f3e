package script

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
)

// player is the agent of one session.
type player struct {
	script  *script
	opt     Options
	session agent.Session

	mu     sync.Mutex
	turn   int // the number of the last run, where the script counts them
	run    string
	mail   *mailbox           // of the run under way, if it can be steered
	cancel context.CancelFunc // of the run under way
	done   chan struct{}      // closed when it has returned
	closed bool
}

func newPlayer(s *script, opt Options, about agent.Session) *player {
	p := &player{script: s, opt: opt, session: about}
	turn, run, _ := strings.Cut(about.Ref, " ")
	p.turn, _ = strconv.Atoi(turn) // a reference of another agent counts as none
	p.run = run
	return p
}

// play is one run being performed: what its scenes share.
type play struct {
	opt       Options
	session   agent.Session
	turn      int
	past      *past
	vars      *results
	mail      *mailbox
	chose     agent.Chosen
	cwd       string
	before    []agent.Said
	from      *facts.Speaker // whose message the run began with, nil for a person's
	views     sync.Map       // ids by the script's names
	performed atomic.Int64
}

// scene is one run of the tree: the top-level one or a nested one.
type scene struct {
	play   *play
	h      agent.Handle
	speech *speech
}

// Run performs the scenario that the prompt picks.
func (p *player) Run(ctx context.Context, h agent.Handle) agent.Ending {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	if !p.begin(cancel, done) {
		return agent.Ending{Outcome: agent.Cancelled, Code: "closed"}
	}
	defer p.end()
	return endingOf(ctx, p.perform(ctx, h))
}

// begin notes the run under way; false when the agent is closed.
func (p *player) begin(cancel context.CancelFunc, done chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel, p.done = cancel, done
	return !p.closed
}

func (p *player) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mail = nil
}

func (p *player) perform(ctx context.Context, h agent.Handle) error {
	info := h.Info()
	turn, err := p.count(ctx, h)
	if err != nil {
		return err
	}
	s := p.script.pick(info.Prompt.Content, turn)
	if s == nil {
		return failure("no_scenario", "No rule of the script holds for this message.")
	}
	pl := &play{
		opt: p.opt, session: p.session, turn: turn, past: readPast(info), vars: newResults(), mail: newMailbox(),
		chose: info.Chosen, cwd: info.Cwd, before: info.Before, from: info.Prompt.From,
	}
	pl.mail.add(pl.past.untaken()...)
	if s.steerable {
		p.mu.Lock()
		p.mail = pl.mail
		p.mu.Unlock()
	}
	return pl.perform(ctx, h, s.steps, spot{})
}

// perform performs the steps of a run and completes what it was saying.
func (pl *play) perform(ctx context.Context, h agent.Handle, steps sequence, at spot) error {
	h, err := pl.rounds(ctx, h)
	if err != nil {
		return err
	}
	sc := &scene{pl, h, pl.past.speech(h.Info().RunID)}
	if err := steps.perform(ctx, sc, at); err != nil {
		return err
	}
	return ended{agent.Ending{Outcome: agent.Finished, StopReason: "completed"}}
}

// count returns the number of the run's turn, and remembers it with the run, so that
// the run keeps its number when it is performed again.
func (p *player) count(ctx context.Context, h agent.Handle) (int, error) {
	if !p.script.counts {
		return 0, nil
	}
	p.mu.Lock()
	turn, run := p.turn, p.run
	p.mu.Unlock()
	id := h.Info().RunID
	if run == id {
		return turn, nil
	}
	turn++
	if err := h.Remember(ctx, fmt.Sprintf("%d %s", turn, id)); err != nil {
		return 0, err
	}
	p.mu.Lock()
	p.turn, p.run = turn, id
	p.mu.Unlock()
	return turn, nil
}

// Steer hands a message to the next steered step of the run under way. A scenario
// without such a step cannot be steered.
func (p *player) Steer(_ context.Context, m agent.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mail == nil {
		return fmt.Errorf("steer the script: %w", errors.ErrUnsupported)
	}
	p.mail.add(m)
	return nil
}

// Close ends the run under way, if there is one, with its commands.
func (p *player) Close() error {
	p.mu.Lock()
	p.closed = true
	cancel, done := p.cancel, p.done
	p.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
	return nil
}
