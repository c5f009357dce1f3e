package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/replay"
)

// owner is the one goroutine that writes a session. Everything below ended belongs to
// it alone.
type owner struct {
	host    *Host
	id      string
	mailbox chan *task    // commands
	records chan *task    // agents' records, taken when no command waits
	loaded  chan struct{} // closed when loadErr is set
	loadErr error
	ended   chan struct{} // closed when the owner takes nothing more

	log     *slog.Logger
	control *replay.Control
	term    journal.Term
	place   bool // holds a place among the running agents
	active  *activeRun
	keeper  *keeper
	asked   map[string][]chan answered // who waits for an interrupt
	failure error                      // why the owner must end
}

func newOwner(h *Host, id string) *owner {
	o := &owner{
		host: h, id: id, mailbox: make(chan *task, h.opt.Mailbox), records: make(chan *task),
		loaded: make(chan struct{}), ended: make(chan struct{}),
		log: h.opt.Logger.With("session", id), asked: map[string][]chan answered{},
	}
	o.keeper = newKeeper(o)
	return o
}

// live loads the session and serves it until it is idle, the host ends, or an append
// fails.
func (o *owner) live() {
	defer o.host.work.Done()
	o.loadErr = o.load(o.host.life)
	close(o.loaded)
	if o.loadErr == nil {
		o.serve()
	}
	o.leave()
}

// load becomes the session's owner and reads its state.
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
	return nil
}

// serve takes tasks, commands before records, until there is a reason to end.
func (o *owner) serve() {
	idle := time.NewTimer(o.idleAfter())
	defer idle.Stop()
	for o.failure == nil {
		select {
		case t := <-o.mailbox:
			o.perform(t)
			idle.Reset(o.idleAfter())
			continue
		default:
		}
		select {
		case t := <-o.mailbox:
			o.perform(t)
		case t := <-o.records:
			o.perform(t)
		case <-o.host.life.Done():
			return
		case <-idle.C:
			if o.active == nil && o.retire() {
				return
			}
		}
		idle.Reset(o.idleAfter())
	}
}

// idleAfter is shorter for a session that has no agent to keep.
func (o *owner) idleAfter() time.Duration {
	if o.keeper.held() == nil {
		return min(o.host.opt.IdleAfter, time.Minute)
	}
	return o.host.opt.IdleAfter
}

// retire makes an idle owner unreachable, unless a command came in between.
func (o *owner) retire() bool {
	o.host.mu.Lock()
	defer o.host.mu.Unlock()
	if len(o.mailbox) > 0 {
		return false
	}
	delete(o.host.owners, o.id)
	return true
}

// leave ends what the owner holds. A task that was not taken is answered by its caller,
// which finds the next owner.
func (o *owner) leave() {
	o.host.gone(o)
	close(o.ended)
	o.endAgents()
	if o.control != nil && o.failure == nil {
		o.host.replay.Leave(context.WithoutCancel(o.host.life), o.id, o.control)
	}
	if o.place {
		o.place = false
		o.host.places.give()
	}
	if o.term != 0 {
		o.host.journal.ReleaseTerm(o.id, o.term)
	}
}

// perform takes one task through decide, guard and journal, and answers it.
func (o *owner) perform(t *task) {
	answer, err := o.answer(t)
	t.reply <- reply{answer, err}
}

func (o *owner) answer(t *task) (decide.Answer, error) {
	ctx := context.WithoutCancel(o.host.life)
	switch {
	case t.remove:
		return o.remove(ctx)
	case t.recover:
		return o.recover(ctx)
	}
	if first, known, err := o.firstAnswer(ctx, t); known || err != nil {
		return first, err
	}
	outcome := o.decide(ctx, t)
	defer o.settlePlace()
	if t.wait != nil && outcome.Answer.Status == decide.Accepted {
		o.asked[t.interrupt] = append(o.asked[t.interrupt], t.wait)
	}
	if len(outcome.Facts) == 0 {
		return outcome.Answer, nil
	}
	if err := o.host.journal.Admit(outcome.Closing); err != nil {
		return decide.Answer{}, fmt.Errorf("append: %w", err)
	}
	before := o.control.Session.Last()
	outcome.Answer.SessionSequence = before + 1 + int64(outcome.About)
	if err := o.append(ctx, t, outcome); err != nil {
		return decide.Answer{}, err
	}
	o.react(outcome.Facts)
	return outcome.Answer, nil
}

// decide asks what the command leads to. A place is taken for the time being.
func (o *owner) decide(ctx context.Context, t *task) decide.Outcome {
	if !o.place {
		o.place = o.host.places.take(o.id)
	}
	return decide.Decide(t.command, o.control.Session, o.control.Desk, decide.Env{
		Now: o.host.opt.Now(), NewID: o.host.opt.NewID, Actor: t.actor, CommandID: t.commandID,
		MayStart: o.place, CanSteer: o.keeper.steers(), QueueLimit: o.host.opt.QueueLimit,
		Run: o.host.endedRun(ctx, o.id), Interrupt: o.host.closedInterrupt(ctx, o.id),
		Message: o.recorded(ctx),
	})
}

// settlePlace gives the place back where no run is active, and stands in line for one
// where a message waits.
func (o *owner) settlePlace() {
	if o.failure != nil || o.control.Session.ActiveRootRunID() != "" {
		return
	}
	if o.place {
		o.place = false
		o.host.places.give()
	}
	if len(o.control.Desk.Queue) > 0 && !o.control.Desk.Parked {
		o.host.places.wait(o.id)
		return
	}
	o.host.places.leave(o.id)
}

// recorded tells whether a message was recorded in the session.
func (o *owner) recorded(ctx context.Context) func(string) bool {
	return func(id string) bool {
		found := false
		err := o.host.replay.Display(ctx, o.id, func(s replay.State) error {
			for _, m := range s.Session.Messages() {
				found = found || m.MessageID == id
			}
			return nil
		})
		if err != nil {
			o.log.Error("look for message", "error", err)
		}
		return found
	}
}

// remove deletes the session, which must be idle.
func (o *owner) remove(ctx context.Context) (decide.Answer, error) {
	d := o.control.Desk
	switch {
	case !d.Exists():
		return decide.Answer{Status: decide.NotFound, Detail: "no such session"}, nil
	case o.control.Session.HasOpenWork(), len(d.Queue) > 0:
		return decide.Answer{Status: decide.Conflict, Detail: "a run is active or a message is waiting"}, nil
	}
	err := o.host.journal.Delete(ctx, journal.Deletion{
		Session: o.id, ExpectHead: uint64(o.control.Session.Last()), ExpectTerm: o.term,
	})
	o.failure = errSessionDeleted // nothing that was loaded is true any more
	if err != nil {
		return decide.Answer{}, fmt.Errorf("delete session: %w", err)
	}
	o.host.feed.Deleted(o.id)
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
	id := string(row.Value)
	return decide.Expire{InterruptID: id}, row.ID == index.TimerID(id)
}

// hostActor is who commands what no client has.
var hostActor = facts.Actor{ID: "host"}
