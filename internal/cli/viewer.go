package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/session"
)

// viewer follows a session in the terminal, and asks what is to be decided of whoever
// sits there.
type viewer struct {
	client   *client.Client
	follower *client.Follower
	teller   *teller
	keys     *keyboard // nil where nobody is to be asked
	// leave is called after each turn; true leaves the session.
	leave func(client.Update) bool
	// after is the place up to which facts are not shown, but known.
	after int64
	// json gets the facts as they came, instead of the teller.
	json func(narad.Raw) error

	back bool       // it has caught up once
	open []*inquiry // what waits for a decision, the oldest first
	sent bool       // the first of open was decided here: its fact is on the way
}

// errLeft says that a viewer was left before leave said so.
var errLeft = errors.New("left")

// turn is one turn of a follower's loop. The loop stands still until seen is called, so
// that what the follower tells of the session is the state right after the update.
type turn struct {
	update client.Update
	err    error
	seen   func()
}

// follow follows until leave says so (nil), the context ends (errLeft), or following
// fails.
func (v *viewer) follow(ctx context.Context) error {
	turns, stop := v.turns(ctx)
	defer stop()
	defer v.teller.screen.finish()
	defer v.teller.screen.ask("")
	for {
		select {
		case t, ok := <-turns:
			switch {
			case ctx.Err() != nil || !ok:
				return errLeft
			case t.err != nil:
				return t.err
			}
			if err := v.take(t.update); err != nil {
				return err
			}
			if v.leave(t.update) {
				return nil
			}
			t.seen()
		case line, ok := <-v.typed():
			if !ok {
				v.keys, v.open = nil, nil // nobody is there any more
				v.teller.screen.ask("")
				continue
			}
			v.decide(ctx, line)
		}
	}
}

// turns runs the follower's loop beside the keyboard. Stop ends it and waits.
func (v *viewer) turns(ctx context.Context) (_ <-chan turn, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	turns, next := make(chan turn), make(chan struct{}, 1)
	seen := func() { next <- struct{}{} }
	go func() {
		defer close(turns)
		for update, err := range v.follower.Updates(ctx) {
			select {
			case turns <- turn{update, err, seen}:
			case <-ctx.Done():
				return
			}
			select {
			case <-next:
			case <-ctx.Done():
				return
			}
		}
	}()
	return turns, func() {
		cancel()
		for range turns {
		}
	}
}

// typed is where lines come from. They are taken also while nothing is asked, and then
// dropped: what was typed before a question is no answer to it.
func (v *viewer) typed() <-chan string {
	if v.keys == nil {
		return nil
	}
	return v.keys.lines
}

// take tells a turn and sees what there is to ask.
func (v *viewer) take(u client.Update) error {
	if u.Record == nil {
		v.phase(u)
		return nil
	}
	fact, ok := u.Record.(narad.Authority)
	switch {
	case !ok:
		return nil
	case fact.Envelope().SessionSequence <= v.after:
		v.teller.learn(fact)
		return nil
	case v.json != nil:
		return v.json(u.Raw)
	}
	v.teller.tell(fact)
	v.waiting(u)
	return nil
}

// waiting sees what a fact changes of what is to be asked.
func (v *viewer) waiting(u client.Update) {
	switch f := u.Record.(type) {
	case *narad.InterruptRequested:
		if i, ok := v.follower.Interrupt(f.InterruptID); ok && i.Open && u.Phase == client.Live {
			v.inquire(i)
		}
	case *narad.InterruptResolved:
		v.forget(f.InterruptID)
	case *narad.Custom:
		if votes, ok := facts.Read[facts.Decided](f, facts.Decision); ok && v.sent && v.open[0].id == votes.InterruptID {
			v.sent = false // the rest of the pack is still open
		}
	}
	v.prompt()
}

// phase tells breaks, and asks what was open before the viewer came.
func (v *viewer) phase(u client.Update) {
	screen := v.teller.screen
	switch {
	case u.Phase == client.Waiting && u.Err != nil && v.json == nil:
		screen.line("", screen.dim(fmt.Sprintf("(no connection: %s; again in %s)", oneLine(u.Err.Detail), u.Wait.Round(10*time.Millisecond))))
	case u.Phase == client.Live && v.json == nil && (v.keys != nil || v.after > 0):
		open := openInterrupts(v.follower.Snapshot())
		v.cameBack(open)
		for _, i := range open {
			v.inquire(i)
		}
		v.prompt()
	}
}

// cameBack tells, the first time, what still waits of what is not shown again, and
// whoever sits there that there is nothing new.
func (v *viewer) cameBack(open []session.Interrupt) {
	if v.back || v.after == 0 {
		return
	}
	v.back = true
	for _, i := range open {
		if i.RequestedSequence <= v.after {
			v.teller.waits(i)
		}
	}
	if at := v.follower.Position(); at.Sequence == v.after && len(open) == 0 && v.keys != nil {
		v.teller.screen.line("", v.teller.screen.dim("(nothing new since you left; Ctrl-C leaves again. All of it: mahati attach --from 0 "+oneLine(at.SessionID)+")"))
	}
}

// openInterrupts returns what waits for a decision in a session.
func openInterrupts(s session.Snapshot) []session.Interrupt {
	var list []session.Interrupt
	for _, i := range s.Interrupts {
		if i.Open {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b session.Interrupt) int { return cmp.Compare(a.RequestedSequence, b.RequestedSequence) })
	return list
}

// inquire puts an interrupt among those to ask, once.
func (v *viewer) inquire(i session.Interrupt) {
	if v.keys == nil {
		return
	}
	for _, q := range v.open {
		if q.id == i.InterruptID {
			return
		}
	}
	v.open = append(v.open, newInquiry(i))
}

// forget takes an interrupt away that was decided, here or elsewhere.
func (v *viewer) forget(id string) {
	for n, q := range v.open {
		if q.id == id {
			v.open = append(v.open[:n], v.open[n+1:]...)
			if n == 0 {
				v.sent = false
			}
			return
		}
	}
}

func (v *viewer) prompt() {
	if v.keys == nil {
		return
	}
	if len(v.open) == 0 || v.sent {
		v.teller.screen.ask("")
		return
	}
	v.teller.screen.ask(v.open[0].prompt())
}

// decide takes a typed line for the first of what is open. A refusal is told: whoever
// lost a race learns what was decided.
func (v *viewer) decide(ctx context.Context, line string) {
	if len(v.open) == 0 || v.sent {
		return
	}
	v.teller.screen.answered()
	command, err := v.open[0].take(line)
	if command != nil && err == nil {
		v.sent = true
		if _, err = v.client.ResolveInterrupt(ctx, *command); err != nil {
			v.refused(command.InterruptID, err)
		}
	}
	if err != nil && ctx.Err() == nil {
		v.teller.screen.line("", v.teller.screen.red("  "+oneLine(err.Error())))
	}
	v.prompt()
}

// refused sees whether a decision that was refused can be made again.
func (v *viewer) refused(id string, err error) {
	v.sent = false
	var e *client.Error
	if !errors.As(err, &e) {
		return
	}
	switch e.Code {
	case client.Code(client.Conflict), client.Code(client.Expired), client.Code(client.NotFound), client.Code(client.Forbidden):
		v.forget(id)
	}
}
