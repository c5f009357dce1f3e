package agenttest

import (
	"context"
	"fmt"
	"slices"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Run is a top-level run that an agent performs.
type Run struct {
	RunID  string
	s      *Session
	done   chan struct{}
	ending agent.Ending
}

// Start begins a run.
func (s *Session) Start(a agent.Agent, text string) *Run {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.id("run")
	message := agent.Message{MessageID: s.id("message"), Content: text, Attachments: s.opt.Attachments, From: s.opt.From}
	e := narad.Event{RootRunID: id, RunID: id}
	err := s.record(&narad.RunStarted{Event: e, ClientExecutorID: s.executor()}, prompt(e, narad.ScopeSession, message)) // R9
	if err != nil && !s.dead {
		s.t.Fatalf("start a run: %v", err)
	}
	return s.perform(a, agent.Info{RunID: id, RootRunID: id, Prompt: message, Chosen: s.opt.Chosen, Before: s.opt.Before})
}

// Do performs a whole run and returns what the agent said of its ending.
func (s *Session) Do(a agent.Agent, text string) agent.Ending {
	s.t.Helper()
	return s.Start(a, text).Wait()
}

// perform lets the agent run, and closes the run when it returns.
func (s *Session) perform(a agent.Agent, info agent.Info) *Run {
	info.SessionID, info.Cwd = s.state.SessionID(), s.opt.Cwd
	r := &Run{RunID: info.RunID, s: s, done: make(chan struct{})}
	if s.dead {
		close(r.done)
		return r
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	h := &handle{s, s.life, info}
	go func() {
		defer close(r.done)
		defer cancel()
		r.ending = a.Run(ctx, h)
		s.conclude(info.RunID, r.ending)
	}()
	return r
}

// Wait returns what the agent said of the run's ending, when the run is closed or cut.
func (r *Run) Wait() agent.Ending {
	<-r.done
	return r.ending
}

// Done is closed when the run is closed or cut.
func (r *Run) Done() <-chan struct{} { return r.done }

// Stop requests a stop of the run and of all below it, closes at once what somebody was
// asked, and cancels the run (R14).
func (r *Run) Stop() {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	root := r.s.book(r.RunID)
	if root == nil || root.stopping {
		return
	}
	var batch []narad.Authority
	for _, b := range r.s.open {
		batch = append(batch, &narad.RunStopRequested{Event: root.event(), TargetRunID: b.runID})
	}
	for _, b := range slices.Backward(r.s.open) {
		batch = append(batch, r.s.unasked(b)...)
	}
	_ = r.s.record(batch...) // a cut is no fault
	r.s.cancel()
}

// Steer records a message to the run under way and hands it to the agent.
func (r *Run) Steer(a agent.Agent, text string) error {
	message, err := r.said(text)
	if err != nil {
		return err
	}
	if err := a.Steer(context.Background(), message); err != nil {
		return fmt.Errorf("steer the run: %w", err)
	}
	return nil
}

func (r *Run) said(text string) (agent.Message, error) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	b := r.s.book(r.RunID)
	if b == nil {
		return agent.Message{}, agent.ErrEnded
	}
	message := agent.Message{MessageID: r.s.id("message"), Content: text}
	return message, r.s.record(prompt(b.event(), narad.ScopeSession, message))
}

// conclude closes a run whose agent has returned.
func (s *Session) conclude(runID string, e agent.Ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.book(runID); b != nil && !s.dead {
		_ = s.record(s.closing(b, e)...) // a cut is no fault; a refusal is kept
	}
}

// closing returns the facts that end a run and everything open below it, in the one
// order of R14 and R15: leaves first.
func (s *Session) closing(b *book, e agent.Ending) []narad.Authority {
	below := map[string]bool{b.runID: true}
	var open []*book
	for _, child := range s.open {
		if below[child.parentID] {
			below[child.runID] = true
			open = append(open, child)
		}
	}
	var list []narad.Authority
	for _, child := range slices.Backward(open) {
		list = append(list, s.closingOne(child, agent.Ending{Outcome: agent.Cancelled})...)
	}
	return append(list, s.closingOne(b, e)...)
}

func (s *Session) closingOne(b *book, e agent.Ending) []narad.Authority {
	if b.stopping {
		e = agent.Ending{Outcome: agent.Cancelled, Usage: e.Usage}
	}
	list := s.pending(b, false)
	if i, open := s.asked(b); open {
		list = append(list, resolution(b, i, Decision{Decision: narad.DecisionExpired, Reason: "stopped"})...)
	}
	for _, c := range s.ofRun(b) {
		list = append(list, s.outputs(c, true)...)
		list = append(list, s.toolFinish(c, agent.ToolResult{Outcome: narad.OutcomeCancelled}))
	}
	list = append(list, s.ends(b)...)
	return append(list, terminal(b, e))
}

// asked returns the open interrupt of a run.
func (s *Session) asked(b *book) (session.Interrupt, bool) {
	run, _ := s.state.Run(b.runID)
	i, known := s.state.Interrupt(run.OpenInterruptID)
	return i, known && i.Open
}

// unasked closes what a stopped run has asked, and what is there only to ask.
func (s *Session) unasked(b *book) []narad.Authority {
	i, open := s.asked(b)
	if !open {
		return nil
	}
	list := resolution(b, i, Decision{Decision: narad.DecisionExpired, Reason: "stopped"})
	if b.gateOf != "" {
		return append(list, &narad.RunCancelled{Event: b.event()})
	}
	for _, c := range s.ofRun(b) {
		if c.question {
			list = append(list, s.toolFinish(c, agent.ToolResult{Outcome: narad.OutcomeCancelled}))
		}
	}
	return list
}

// ofRun returns the open calls of a run, the oldest first.
func (s *Session) ofRun(b *book) []*call {
	var list []*call
	for _, c := range s.calls {
		if c.runID == b.runID {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(x, y *call) int {
		if n := len(x.id) - len(y.id); n != 0 {
			return n
		}
		return slices.Compare([]byte(x.id), []byte(y.id))
	})
	return list
}

// ends completes the messages and ends the activities of a run (R15).
func (s *Session) ends(b *book) []narad.Authority {
	list := append(s.thoughts(b, true), s.texts(b, true)...)
	for _, a := range b.activities {
		a.Event, a.Status = b.event(), narad.ProgressCancelled
		list = append(list, &a)
	}
	return list
}

// terminal returns the last fact of a run.
func terminal(b *book, e agent.Ending) narad.Authority {
	switch e.Outcome {
	case agent.Failed:
		if e.Code == "" {
			e.Code = "agent_error"
		}
		return &narad.RunError{Event: b.event(), Code: e.Code, Message: e.Message, Usage: e.Usage}
	case agent.Cancelled:
		return &narad.RunCancelled{Event: b.event(), Code: e.Code, Message: e.Message, Usage: e.Usage}
	}
	end := &narad.RunFinished{Event: b.event(), Usage: e.Usage}
	facts.SetStopReason(&end.Event, e.StopReason)
	return end
}
