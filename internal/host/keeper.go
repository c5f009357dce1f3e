package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// keeper holds the agent of a session: made for its first run, kept between runs, and
// ended with the owner.
type keeper struct {
	o    *owner
	work sync.WaitGroup // runs, and what waits for them

	mu    sync.Mutex
	agent agent.Agent // guarded by mu
}

func newKeeper(o *owner) *keeper { return &keeper{o: o} }

// steers reports whether the session's agent takes messages during a run.
func (k *keeper) steers() bool {
	kind, ok := k.o.host.agents.Kind(k.o.agentName())
	return ok && k.o.active != nil && kind.Steers()
}

// held returns the session's agent, nil while there is none.
func (k *keeper) held() agent.Agent {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.agent
}

// open returns the session's agent. It is called by one run at a time.
func (k *keeper) open(ctx context.Context, s agent.Session, name string) (agent.Agent, error) {
	if a := k.held(); a != nil {
		return a, nil
	}
	kind, ok := k.o.host.agents.Kind(name)
	if !ok {
		return nil, fmt.Errorf("no agent is configured under the name %q", name)
	}
	a, err := kind.Open(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("open agent: %w", err)
	}
	k.mu.Lock()
	k.agent = a
	k.mu.Unlock()
	return a, nil
}

// close ends the agent and its processes. The next run gets a new one.
func (k *keeper) close() {
	k.mu.Lock()
	a := k.agent
	k.agent = nil
	k.mu.Unlock()
	if a == nil {
		return
	}
	if err := a.Close(); err != nil {
		k.o.log.Warn("close agent", "error", err)
	}
}

// activeRun is the run that an agent performs now. Its fields belong to the owner.
type activeRun struct {
	id       string
	cancel   context.CancelFunc
	done     chan struct{} // closed when the agent has returned and its ending is recorded
	stopping bool
}

// begin lets the agent perform a root run that has started. past is empty for a new one.
func (o *owner) begin(run session.Run, prompt agent.Message, past []narad.Authority) {
	ctx, cancel := context.WithCancel(o.host.life)
	r := &activeRun{id: run.RunID, cancel: cancel, done: make(chan struct{})}
	o.active = r
	created := o.control.Desk.Created
	info := agent.Info{
		SessionID: o.id, RunID: run.RunID, RootRunID: run.RunID, Cwd: created.Cwd, Prompt: prompt, Past: past,
	}
	s := agent.Session{ID: o.id, Cwd: created.Cwd, Ref: o.control.Desk.Ref, Own: o.own, Disown: o.disown}
	name := o.agentName()
	h := newHandle(o, info)
	o.keeper.work.Add(1)
	go func() {
		defer o.keeper.work.Done()
		defer close(r.done)
		defer cancel()
		o.finish(r.id, h, o.run(ctx, h, s, name))
	}()
}

// run lets the agent perform the run and returns how it ended.
func (o *owner) run(ctx context.Context, h *handle, s agent.Session, name string) (e agent.Ending) {
	defer func() {
		if p := recover(); p != nil { // an agent of ours is no reason to end every session
			o.log.Error("agent panicked", "panic", fmt.Sprint(p))
			e = agent.Ending{Outcome: agent.Failed, Code: "agent_failed", Message: "The agent failed."}
		}
	}()
	a, err := o.keeper.open(ctx, s, name)
	if err != nil {
		o.log.Warn("agent is not available", "agent", name, "error", err)
		return agent.Ending{
			Outcome: agent.Failed, Code: "agent_unavailable", Message: "The agent cannot be started.",
		}
	}
	return a.Run(ctx, h)
}

// finish records how a run ended, unless the owner has ended: then the next start of
// the host finds the run open and recovers it.
func (o *owner) finish(runID string, h *handle, e agent.Ending) {
	h.close()
	cmd := decide.Ended{RunID: runID, Ending: endingOf(e)}
	_, err := o.tell(context.WithoutCancel(o.host.life), &task{command: cmd, actor: hostActor})
	if err != nil && !errors.Is(err, agent.ErrEnded) {
		o.log.Error("record the end of a run", "run", runID, "error", err)
	}
}

func endingOf(e agent.Ending) decide.Ending {
	state := session.Finished
	switch e.Outcome {
	case agent.Failed:
		state = session.Failed
	case agent.Cancelled:
		state = session.Cancelled
	}
	return decide.Ending{State: state, Code: e.Code, Message: e.Message, StopReason: e.StopReason, Usage: e.Usage}
}

// react does what durable facts ask for.
func (o *owner) react(list []narad.Authority) {
	for i, fact := range list {
		switch f := fact.(type) {
		case *narad.RunStarted:
			if f.RunID == f.RootRunID {
				run, _ := o.control.Session.Run(f.RunID)
				o.begin(run, promptAfter(list[i+1:]), nil)
			}
		case *narad.MessageUserRecorded:
			if i == 0 && f.RunID != "" {
				o.steer(agent.Message{MessageID: f.MessageID, Content: f.Content})
			}
		case *narad.RunStopRequested:
			if f.TargetRunID == f.RootRunID {
				o.cancel(f.RootRunID)
			}
		case *narad.InterruptResolved:
			o.deliver(f)
		case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
			if o.active != nil && f.Envelope().RunID == o.active.id {
				o.active = nil
			}
		}
	}
}

// promptAfter returns the prompt that stands right after the start of a run (R9).
func promptAfter(list []narad.Authority) agent.Message {
	if len(list) > 0 {
		if m, ok := list[0].(*narad.MessageUserRecorded); ok {
			return agent.Message{MessageID: m.MessageID, Content: m.Content}
		}
	}
	return agent.Message{}
}

// steer hands a message to the agent that runs.
func (o *owner) steer(m agent.Message) {
	a := o.keeper.held()
	if a == nil {
		return
	}
	o.keeper.work.Add(1)
	go func() {
		defer o.keeper.work.Done()
		if err := a.Steer(o.host.life, m); err != nil {
			o.log.Warn("steer agent", "error", err)
		}
	}()
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
	o.keeper.work.Add(1)
	go func() {
		defer o.keeper.work.Done()
		if waitFor(o.host.life, r.done, o.host.opt.CancelGrace) {
			return
		}
		o.log.Warn("end an agent that does not stop", "run", r.id)
		o.keeper.close()
		if waitFor(o.host.life, r.done, o.host.opt.CancelGrace) {
			return
		}
		cmd := decide.Ended{RunID: r.id, Ending: decide.Ending{State: session.Cancelled}}
		if _, err := o.tell(o.host.life, &task{command: cmd, actor: hostActor}); err != nil && !errors.Is(err, agent.ErrEnded) {
			o.log.Error("end a run without its agent", "run", r.id, "error", err)
		}
	}()
}

// waitFor waits for done, at most for a while, and reports whether nothing is left to
// wait for.
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

// answered is the decision of an interrupt, for who asked.
type answered struct{ fact *narad.InterruptResolved }

// deliver gives a decision to whoever waits for it.
func (o *owner) deliver(f *narad.InterruptResolved) {
	for _, c := range o.asked[f.InterruptID] {
		c <- answered{f} // each has room for its one answer
	}
	delete(o.asked, f.InterruptID)
}

// endAgents ends the agent and waits for everything that runs for it.
func (o *owner) endAgents() {
	if o.active != nil {
		o.active.cancel()
	}
	o.keeper.close()
	o.keeper.work.Wait()
}

// own records durably that a process belongs to the session.
func (o *owner) own(ctx context.Context, p agent.Process) error {
	value, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode process: %w", err)
	}
	return o.carry(ctx, journal.Put{Row: journal.AgentRow{ID: processID(p), Session: o.id, Value: value}})
}

// disown takes the record back.
func (o *owner) disown(ctx context.Context, p agent.Process) error {
	return o.carry(ctx, journal.Remove{Key: journal.AgentKey(processID(p))})
}

func processID(p agent.Process) string {
	return fmt.Sprintf("%s/%d/%d", p.BootID, p.PID, p.StartTime)
}

// carry appends a change of rows that no fact causes. It moves no head, and may come
// from any goroutine.
func (o *owner) carry(ctx context.Context, change journal.Change) error {
	_, err := o.host.journal.Append(ctx, journal.Batch{
		Session: journal.HostStream, Changes: []journal.Change{change}, Time: o.host.opt.Now().UTC(), Closing: true,
	})
	if err != nil {
		return fmt.Errorf("record process: %w", err)
	}
	return nil
}

// fire performs a due timer.
func (h *Host) fire(ctx context.Context, row journal.TimerRow) error {
	cmd, ok := expiry(row)
	if !ok {
		return nil
	}
	_, err := h.hand(ctx, row.Session, &task{command: cmd, actor: hostActor, reply: make(chan reply, 1)})
	return err
}

// wakeWaiting tells a session that a place is free for its first waiting message.
func (h *Host) wakeWaiting(id string) {
	h.work.Add(1)
	go func() {
		defer h.work.Done()
		t := &task{command: decide.StartNext{}, actor: hostActor, reply: make(chan reply, 1)}
		if _, err := h.hand(h.life, id, t); err != nil && h.life.Err() == nil {
			h.places.leave(id)
			h.opt.Logger.Error("start a waiting message", "session", id, "error", err)
		}
	}()
}
