package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent/flow"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/replay"
	"github.com/mahati-host/mahati/narad"
)

// owner is the one goroutine that writes a session. Everything below left belongs to
// it alone.
type owner struct {
	host    *Host
	id      string
	log     *slog.Logger
	mailbox chan *task    // commands
	records chan *task    // agents' records, taken when no command waits
	change  chan struct{} // held by who changes a state or a view
	loaded  chan struct{} // closed when loadErr is set
	loadErr error
	ended   chan struct{} // closed when the owner takes nothing more
	left    chan struct{} // closed when nothing of it runs any more
	keeper  *keeper

	// workspace is that of the session, once the session is durably there; it never
	// changes. Any goroutine may read it.
	workspace atomic.Pointer[string]

	control *replay.Control
	term    journal.Term
	place   bool // holds a place among the running agents
	active  *activeRun
	asked   map[string][]waiter                       // who waits for an interrupt
	called  map[string][]chan *narad.ToolCallFinished // who waits for a client tool call
	paused  map[string][]chan struct{}                // who waits for a run to go on
	awaits  []string                                  // the executors that runs wait for
	flow    *flow.Progress                            // of the active workflow, nil for none
	stall   <-chan time.Time                          // set while the workflow rests
	failure error                                     // why the owner must end
	unread  error                                     // why a decision does not know what it must
	began   map[string]time.Time                      // when the open runs did that began under this owner
	env     decide.Env                                // what is the same for every decision
}

func newOwner(h *Host, id string) *owner {
	o := &owner{
		host: h, id: id, log: h.opt.Logger.With("session", id),
		mailbox: make(chan *task, h.opt.Mailbox), records: make(chan *task), change: make(chan struct{}, 1),
		loaded: make(chan struct{}), ended: make(chan struct{}), left: make(chan struct{}),
		asked: map[string][]waiter{}, called: map[string][]chan *narad.ToolCallFinished{},
		paused: map[string][]chan struct{}{}, began: map[string]time.Time{},
	}
	o.keeper = newKeeper(o)
	ctx := context.WithoutCancel(h.life)
	o.env = decide.Env{
		ExecutorPresent: o.present, AwaitExecutor: !h.opt.FailAbsent,
		NewID: h.opt.NewID, QueueLimit: h.opt.QueueLimit,
		Elapsed: o.elapsed, Run: o.endedRun(ctx), Workflow: o.endedWorkflow(ctx), Interrupt: o.closedInterrupt(ctx),
		Remembered: o.remembered(ctx), Message: o.recorded(ctx), Answer: o.heard(ctx),
		Attachment: o.readyAttachment(ctx), Removed: o.removedAttachment(ctx),
		Log: decide.Log{Mapping: h.opt.LogMapping, Policy: h.opt.LogPolicy},
	}
	return o
}

// elapsed is how long a run has been under way by the monotonic clock (R42); false for one
// that began under another owner.
func (o *owner) elapsed(runID string) (milliseconds int64, known bool) {
	began, known := o.began[runID]
	return time.Since(began).Milliseconds(), known
}

// live loads the session and serves it until it is idle, the host ends, or an append
// fails.
func (o *owner) live() {
	o.loadErr = o.load(o.host.life)
	close(o.loaded)
	if o.loadErr == nil {
		o.serve()
	}
	o.leave()
}

// load becomes the session's owner, reads its state, and repairs what an owner before
// it has left open.
func (o *owner) load(ctx context.Context) error {
	term, err := o.host.journal.AcquireTerm(ctx, o.id)
	if err != nil {
		return fmt.Errorf("own session: %w", err)
	}
	o.term = term
	o.control, err = o.host.replay.Open(ctx, o.id)
	if errors.Is(err, journal.ErrNotFound) {
		o.control, err = replay.Empty(o.id), nil
	}
	if err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	if err := o.loadFlow(ctx); err != nil {
		return fmt.Errorf("load session: %w", err)
	}
	if err := o.repair(ctx); err != nil {
		return fmt.Errorf("repair session: %w", err)
	}
	o.noteWorkspace()
	return nil
}

// noteWorkspace tells others the session's workspace, as soon as the session is durable.
func (o *owner) noteWorkspace() {
	if d := o.control.Desk; d.Exists() && o.workspace.Load() == nil {
		workspace := d.Created.WorkspaceID
		o.workspace.Store(&workspace)
	}
}

// serve takes tasks until there is a reason to end.
func (o *owner) serve() {
	idle := time.NewTimer(o.idleAfter())
	defer idle.Stop()
	for o.failure == nil {
		t, own := o.next(idle.C)
		switch {
		case t == nil:
			return
		case own:
			o.takeOn(t)
		default:
			o.perform(t)
		}
		idle.Reset(o.idleAfter())
	}
}

// next returns the next task, commands before what the workflow does of its own, and that
// before records; nil when the owner is idle or the host ends.
func (o *owner) next(idle <-chan time.Time) (t *task, own bool) {
	for {
		if o.host.life.Err() != nil {
			return nil, false
		}
		select {
		case t := <-o.mailbox:
			return t, false
		default:
		}
		if t := o.advance(); t != nil {
			return t, true
		}
		select {
		case t := <-o.mailbox:
			return t, false
		case t := <-o.records:
			return t, false
		case <-o.stall:
			o.stall = nil
		case <-o.host.life.Done():
			return nil, false
		case <-idle:
			if o.active == nil && o.stall == nil && len(o.mailbox) == 0 {
				return nil, false
			}
		}
	}
}

// idleAfter is shorter for a session that has no agent to keep.
func (o *owner) idleAfter() time.Duration {
	if !o.keeper.holds() {
		return min(o.host.opt.IdleAfter, time.Minute)
	}
	return o.host.opt.IdleAfter
}

// leave ends what the owner holds. A task that was not taken is handed over again by
// who waits for it, to the next owner, which begins when this one has left.
func (o *owner) leave() {
	close(o.ended)
	o.endAgents()
	if o.control != nil && o.failure == nil && o.loadErr == nil {
		o.host.replay.Leave(context.WithoutCancel(o.host.life), o.id, o.control)
	}
	if o.place {
		o.place = false
		o.host.places.give()
	}
	if o.term != 0 {
		o.host.journal.ReleaseTerm(o.id, o.term)
	}
	o.host.forget(o)
	close(o.left)
	if o.mustReload() {
		o.host.reload(o.id)
	}
}

// mustReload reports whether somebody must see to what the owner leaves open. One that
// has a newer term does so.
func (o *owner) mustReload() bool {
	return o.failure != nil && !errors.Is(o.failure, errSessionDeleted) && !errors.Is(o.failure, journal.ErrConflict) &&
		o.host.journal.Err() == nil
}

// perform takes one task through decide, guard and journal, and answers it.
func (o *owner) perform(t *task) {
	answer, err := o.answer(t)
	t.reply <- reply{answer, err}
}

func (o *owner) answer(t *task) (decide.Answer, error) {
	ctx := context.WithoutCancel(o.host.life)
	if t.remove {
		return o.remove(ctx, t.shut)
	}
	if first, known, err := o.firstAnswer(ctx, t); known || err != nil {
		return first, err
	}
	if t.refusal.Status != "" {
		return t.refusal, nil
	}
	if t.claim != nil {
		if answer, done, err := o.judge(ctx, t.claim); done {
			return answer, err
		}
	}
	outcome := o.decide(t)
	defer o.settlePlace()
	if o.unread != nil {
		return decide.Answer{}, fmt.Errorf("decide: %w", o.unread)
	}
	if err := o.write(ctx, t, &outcome); err != nil {
		return decide.Answer{}, err
	}
	if t.interrupt != "" && outcome.Answer.Status.Accepted() {
		o.expect(t.interrupt, t.wait)
	}
	if t.finished != nil && outcome.Answer.Status.Accepted() {
		o.called[t.toolCall] = append(o.called[t.toolCall], t.finished)
	}
	if t.resumed != nil && outcome.Answer.Err == decide.RefusedPaused {
		o.paused[outcome.Answer.RunID] = append(o.paused[outcome.Answer.RunID], t.resumed)
	}
	o.noteWorkspace()
	o.follow(outcome.Facts)
	o.react(outcome.Facts)
	if _, arrived := t.command.(decide.ExecutorArrived); arrived || len(outcome.Await) > 0 || len(o.awaits) > 0 {
		o.noteAwaited()
	}
	return outcome.Answer, nil
}

// maySteer reports whether a command can be a message to a running agent.
func maySteer(c decide.Command) bool {
	switch c := c.(type) {
	case decide.Message:
		return c.WhenBusy == decide.WhenBusySteer
	case decide.SubmitMessage:
		return true
	}
	return false
}

// decide asks what the command leads to. For one that may start a run a place is taken;
// settlePlace gives it back if none was started.
func (o *owner) decide(t *task) decide.Outcome {
	o.unread = nil
	env := o.env
	env.Now, env.Actor, env.CommandID, env.InputID = o.host.opt.Now(), t.actor, t.commandID, t.inputID
	if mayStart(t.command) {
		if !o.place {
			o.place = o.host.places.take(o.id)
		}
		env.Executor = o.host.opt.Assign(o.agentName(), "")
		env.Log.Agent = o.agentName()
		env.Models = o.offered()
		env.MayStart = o.place && o.host.journal.Admit(false) == nil
	}
	if maySteer(t.command) {
		env.CanSteer = o.active != nil && o.steers()
	}
	return decide.Decide(t.command, o.control.Session, o.control.Desk, env)
}

// mayStart reports whether a command can start a top-level run.
func mayStart(c decide.Command) bool {
	switch c := c.(type) {
	case decide.Message, decide.Receive, decide.StartRootRun, decide.Release, decide.StartNext, decide.Ended, decide.Recover:
		return true
	case decide.Advance:
		return c.End != nil || c.Begin != nil && c.Begin.RunID != ""
	}
	return false
}

// settlePlace gives the place back where no run is active, and stands in line for one
// where a message waits. A workflow that goes on keeps its place.
func (o *owner) settlePlace() {
	ready, run := o.moves()
	switch {
	case o.failure != nil, o.control.Session.ActiveRootRunID() != "", ready && o.place:
		o.host.places.leave(o.id)
		return
	case run, o.flow == nil && len(o.control.Desk.Queue) > 0 && !o.control.Desk.Parked:
		o.host.places.wait(o.id)
	default:
		o.host.places.leave(o.id)
	}
	if o.place {
		o.place = false
		o.host.places.give()
	}
}

// remove deletes the session, which must be idle, and have told all others that take something
// what they are to know: the ends of the asks that it was part of above all.
func (o *owner) remove(ctx context.Context, shut []string) (decide.Answer, error) {
	d := o.control.Desk
	_, side := traceOf(o.id)
	_, untold := d.Next(shut)
	switch {
	case !d.Exists() && !side:
		return decide.Answer{Status: decide.NotFound, Detail: "no such session"}, nil
	case o.control.Session.HasOpenWork(), len(d.Queue) > 0:
		return decide.RefuseBusy(), nil
	case untold, len(d.Asking) > 0, len(d.Asked) > 0:
		return decide.Answer{Status: decide.Conflict, Detail: "others are to be told of something", Err: decide.RefusedUntold}, nil
	}
	if err := o.host.keepName(ctx, o.id, d.Created.IntercomName); err != nil {
		return decide.Answer{}, err
	}
	if err := o.host.removeTrace(ctx, o.id); err != nil {
		return decide.Answer{}, err
	}
	err := o.host.journal.Delete(ctx, journal.Deletion{
		Session: o.id, ExpectHead: uint64(o.control.Session.Last()), ExpectTerm: o.term,
	})
	o.failure = errSessionDeleted // nothing that was loaded is true any more
	if err != nil {
		return decide.Answer{}, fmt.Errorf("delete session: %w", err)
	}
	o.open()
	o.host.feed.Deleted(o.id)
	o.host.sweepSoon()
	return decide.Answer{Status: decide.Accepted}, nil
}

var errSessionDeleted = errors.New("the session was deleted")

// agentName is the name of the session's agent.
func (o *owner) agentName() string {
	if name := o.control.Desk.Created.Agent; name != "" {
		return name
	}
	return o.host.agents.Default()
}

// expiry is the command of an interrupt's timer.
func expiry(row journal.TimerRow) (decide.Command, bool) {
	id, ok := strings.CutPrefix(row.ID, index.TimerID(""))
	return decide.Expire{InterruptID: id}, ok
}

// hostActor is who commands what no client has.
var hostActor = facts.Actor{ID: "host"}
