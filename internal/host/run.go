package host

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// activeRun is the run that an agent performs now.
type activeRun struct {
	id string
	performer
	handle   *handle
	from     facts.Created   // of the session
	fresh    bool            // the agent knows nothing of the session
	ctx      context.Context // ends with a stop, or with the owner
	cancel   context.CancelFunc
	opened   chan struct{} // closed when there is an agent, or will be none
	done     chan struct{} // closed when the agent has returned and its ending is recorded
	stopping bool          // the owner's own

	mu       sync.Mutex
	steers   []agent.Message // guarded by mu: not yet handed to the agent
	steering bool            // guarded by mu: a goroutine hands them over
}

// begin lets the agent perform a root run that has started. past is empty for a new one.
func (o *owner) begin(runID string, prompt agent.Message, past []narad.Authority) {
	ctx, cancel := context.WithCancel(o.host.life)
	run, _ := o.control.Session.Run(runID)
	d := o.startedWith(run, past)
	r := &activeRun{
		id: runID, performer: o.performer(), from: o.control.Desk.Created, ctx: ctx, cancel: cancel,
		opened: make(chan struct{}), done: make(chan struct{}),
	}
	r.handle = newHandle(o, agent.Info{
		SessionID: o.id, RunID: runID, RootRunID: runID, Cwd: d.Cwd, Executor: run.ClientExecutorID, Prompt: prompt, Past: past,
	}, r.agent)
	if !r.alone {
		r.handle.info.Chosen = o.host.chosen(d.Setup)
		r.fresh = d.Ref == ""
	}
	r.handle.branches = r.branches
	s := agent.Session{ID: o.id, Cwd: d.Cwd, Ref: o.control.Desk.Ref}
	if r.alone { // it begins with nothing but its prompt
		r.handle.forgets, s.Ref = true, ""
	}
	o.active = r
	o.keeper.work.Go(func() {
		defer close(r.done)
		defer cancel()
		e := o.run(r, s)
		if r.alone {
			o.keeper.abandon(r)
		}
		o.finish(r, e)
	})
}

// startedWith is the desk with which a run started: as it is, or as it was for one that
// goes on after a restart.
func (o *owner) startedWith(run session.Run, past []narad.Authority) *desk.State {
	if len(past) == 0 {
		return o.control.Desk
	}
	then, err := o.host.replay.At(context.WithoutCancel(o.host.life), o.id, uint64(run.StartedSequence))
	if err != nil {
		o.log.Warn("find what a run started with", "run", run.RunID, "error", err)
		return o.control.Desk
	}
	return then.Desk
}

// run lets the agent perform the run and returns how it ended. While the host recovers
// it waits (R16).
func (o *owner) run(r *activeRun, s agent.Session) (e agent.Ending) {
	opened := sync.OnceFunc(func() { close(r.opened) })
	defer opened()
	defer o.keeper.guard("run", func() {
		e = agent.Ending{Outcome: agent.Failed, Code: "agent_failed", Message: "The agent failed."}
	})
	if err := waitUntil(r.ctx, o.host.served); err != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	if o.lacksModel(r) {
		return agent.Ending{Outcome: agent.Failed, Code: agent.CodeNoModel, Message: "The agent " + r.name + " offers no model any more, and the session has one. " +
			"Configure models of the agent again, or begin another session."}
	}
	a, err := o.keeper.open(r.ctx, r, s)
	if err != nil {
		o.log.Warn("agent is not available", "agent", r.name, "error", err)
		why := "The agent " + r.name + " cannot be started; the host's log says more."
		if r.kind == nil {
			why = "No agent has the name " + r.name + " in the configuration of the host any more."
		}
		return agent.Ending{Outcome: agent.Failed, Code: "agent_unavailable", Message: why}
	}
	opened()
	if r.fresh {
		r.handle.info.Before = o.before(r.ctx, r.from)
	}
	return a.Run(r.ctx, r.handle)
}

// finish records how a run ended. When the host ends, the run has not: the next start
// finds it open and recovers it.
func (o *owner) finish(r *activeRun, e agent.Ending) {
	ctx := context.WithoutCancel(o.host.life)
	r.handle.close()
	if o.host.life.Err() != nil {
		return
	}
	err := o.recordEnd(ctx, r.id, endingOf(e))
	if errors.Is(err, agent.ErrInvalid) || errors.Is(err, agent.ErrTooLarge) {
		// Whatever the agent says of its end, there is one.
		o.log.Warn("leave out what an agent says of its end", "run", r.id, "error", err)
		err = o.recordEnd(ctx, r.id, decide.Ending{State: endingOf(e).State})
	}
	if err != nil && !errors.Is(err, agent.ErrEnded) {
		o.log.Error("record the end of a run", "run", r.id, "error", err)
	}
}

func (o *owner) recordEnd(ctx context.Context, runID string, e decide.Ending) error {
	_, err := o.tell(ctx, nil, &task{command: decide.Ended{RunID: runID, Ending: e}, actor: hostActor, agent: true})
	return err
}

// maxMessage bounds what an agent says of an end, for people.
const maxMessage = 8 << 10

func endingOf(e agent.Ending) decide.Ending {
	state := session.Finished
	switch e.Outcome {
	case agent.Failed:
		state = session.Failed
	case agent.Cancelled:
		state = session.Cancelled
	}
	return decide.Ending{
		State: state, Code: shorten(e.Code), Message: shorten(e.Message), StopReason: shorten(e.StopReason), Usage: e.Usage, Turn: e.Turn,
	}
}

// shorten makes a text of an agent's one that a fact can hold.
func shorten(text string) string {
	if len(text) > maxMessage {
		text = text[:completeRunes([]byte(text[:maxMessage]))]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// steers reports whether the agent of the active run takes messages during it.
func (o *owner) steers() bool {
	return o.active.kind != nil && o.active.kind.Steers()
}

// steer hands a message to the agent that runs, behind those before it.
func (o *owner) steer(m agent.Message) {
	r := o.active
	if r == nil {
		return // the run goes on after a restart: its past holds the message
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steers = append(r.steers, m)
	if !r.steering {
		r.steering = true
		o.keeper.work.Go(func() { o.handOver(r) })
	}
}

// handOver gives an agent the messages that steer it, one after another.
func (o *owner) handOver(r *activeRun) {
	if waitUntil(r.ctx, r.opened) != nil {
		return
	}
	for {
		m, ok := r.nextSteer()
		if !ok {
			return
		}
		o.handOne(r, m)
	}
}

func (r *activeRun) nextSteer() (agent.Message, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.steers) == 0 {
		r.steering = false
		return agent.Message{}, false
	}
	m := r.steers[0]
	r.steers = r.steers[1:]
	return m, true
}

func (o *owner) handOne(r *activeRun, m agent.Message) {
	defer o.keeper.guard("steer", func() {})
	a := o.keeper.of(r)
	if a == nil {
		return
	}
	if err := a.Steer(r.ctx, m); err != nil && r.ctx.Err() == nil {
		o.log.Warn("steer agent", "run", r.id, "error", err)
	}
}

// cancel asks the agent to stop. One that does not within the grace is ended, and if
// even that does not help its run is ended without it (R14).
func (o *owner) cancel(runID string) {
	r := o.active
	if r == nil || r.id != runID || r.stopping {
		return
	}
	r.stopping = true
	r.cancel()
	o.keeper.work.Go(func() { o.insist(r) })
}

func (o *owner) insist(r *activeRun) {
	grace := o.host.opt.CancelGrace
	if o.waitForRun(r, grace) {
		return
	}
	o.log.Warn("end an agent that does not stop", "run", r.id)
	o.keeper.abandon(r)
	if o.waitForRun(r, grace) {
		return
	}
	o.log.Warn("end a run without its agent", "run", r.id)
	o.finish(r, agent.Ending{Outcome: agent.Cancelled})
}

// waitForRun waits for a run to end, at most for a while, and reports whether nothing
// is left to wait for.
func (o *owner) waitForRun(r *activeRun, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-r.done:
	case <-o.ended:
	case <-t.C:
		return false
	}
	return true
}

// waitFor waits for done or the end of life, at most for a while, and reports whether
// one of them came.
func waitFor(life context.Context, done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-life.Done():
		return true
	case <-t.C:
		return false
	}
}
