package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// Start repairs what a dead host left open, and then serves (R17). It may be given
// again after it was interrupted. Sessions without open work are not read.
func (h *Host) Start(ctx context.Context) error {
	if err := h.endLeft(ctx); err != nil {
		return err
	}
	if err := h.executors.Load(ctx); err != nil {
		return fmt.Errorf("take up executors: %w", err)
	}
	if err := h.loadRetention(ctx); err != nil {
		return err
	}
	if _, err := h.timers.FireOverdue(ctx); err != nil {
		return fmt.Errorf("fire overdue timers: %w", err)
	}
	open, err := h.withOpenWork(ctx)
	if err != nil {
		return fmt.Errorf("list open work: %w", err)
	}
	for _, session := range open {
		if err := h.recover(ctx, session); err != nil {
			return fmt.Errorf("recover session %s: %w", session, err)
		}
	}
	h.timers.Start()
	h.sweepSoon()
	return h.serve()
}

// withOpenWork lists the sessions that have open work. Of one whose row is damaged its facts
// tell: it is among them.
func (h *Host) withOpenWork(ctx context.Context) (list []string, err error) {
	damaged := func(d journal.Damage) {
		h.damaged(d)
		if d.Session != "" {
			list = append(list, d.Session)
		}
	}
	for row, err := range journal.Each[journal.OpenWorkRow](ctx, h.journal, journal.OpenWork{}, damaged) {
		if err != nil {
			return nil, err
		}
		list = append(list, row.Session)
	}
	return list, nil
}

// recover loads a session, which repairs it. What is wrong with one session keeps no
// other from being served: it is told, and left as it is.
func (h *Host) recover(ctx context.Context, id string) error {
	_, err := h.owner(ctx, id)
	switch {
	case errors.Is(err, journal.ErrConflict):
		return nil // another owner was faster, and repairs it
	case errors.Is(err, journal.ErrNotFound), errors.Is(err, journal.ErrDeleted):
		return nil // it was listed for damage, and has nothing
	case errors.Is(err, journal.ErrDamaged), errors.Is(err, ErrInternal):
		h.opt.Logger.Error("leave a session as it is that cannot be repaired", "session", id, "error", err)
		return nil
	}
	return err
}

// endLeft ends the processes that a dead host left running. The name of a record tells
// which process it is as well as what it holds: one that is damaged loses nothing.
func (h *Host) endLeft(ctx context.Context) error {
	var left []string
	damaged := func(d journal.Damage) {
		h.damaged(d)
		left = append(left, d.Key.ID)
	}
	for row, err := range journal.Each[journal.AgentRow](ctx, h.journal, journal.Agents{}, damaged) {
		if err != nil {
			return fmt.Errorf("list agents' processes: %w", err)
		}
		left = append(left, row.ID)
	}
	for _, id := range left {
		p, ok := processOf(id)
		if !ok {
			h.opt.Logger.Error("a process that was left running cannot be told: end it by hand", "record", id)
			continue
		}
		if h.opt.EndLeft != nil {
			if err := h.opt.EndLeft(ctx, p); err != nil {
				return fmt.Errorf("end process %d: %w", p.PID, err)
			}
		}
		switch err := h.carry(ctx, journal.Remove{Key: journal.AgentKey(id)}); {
		case errors.Is(err, journal.ErrDamaged): // the record stays: its process is looked for again
			h.damaged(journal.Damage{Session: journal.RowStream, Key: journal.AgentKey(id), Cause: err})
		case err != nil:
			return fmt.Errorf("forget process: %w", err)
		}
	}
	return nil
}

// repair goes on with what a dead host, or an owner that failed, has left open: what
// waits too long expires, then the agent goes on with the run if it can, and the run is
// closed if not (R17).
func (o *owner) repair(ctx context.Context) error {
	var commands []decide.Command
	for _, i := range o.control.Session.OpenInterrupts() {
		commands = append(commands, decide.Expire{InterruptID: i.InterruptID})
	}
	if o.control.Session.ActiveRootRunID() != "" {
		p := o.performer()
		commands = append(commands, decide.Recover{Resumes: p.kind != nil && p.kind.Resumes()})
	}
	if o.control.Desk.Exists() {
		commands = append(commands, decide.StartNext{})
	}
	for _, c := range commands {
		if _, err := o.answer(&task{command: c, actor: hostActor}); err != nil {
			return err
		}
	}
	o.noteAwaited()
	if o.active == nil && o.control.Session.ActiveRootRunID() != "" {
		return o.resume(ctx)
	}
	return nil
}

// resume lets the agent go on with the active run.
func (o *owner) resume(ctx context.Context) error {
	root := o.control.Session.ActiveRootRunID()
	past, err := o.past(ctx, root)
	if err != nil {
		return err
	}
	if !o.place {
		o.place = true
		o.host.places.force()
	}
	o.begin(root, o.promptOf(past), past)
	return nil
}

// past returns the facts of a run tree, the oldest first.
func (o *owner) past(ctx context.Context, root string) ([]narad.Authority, error) {
	var past []narad.Authority
	after := uint64(0)
	for {
		chunk, err := o.host.journal.Read(ctx, journal.ByRun{Session: o.id, RootRunID: root, After: after}, journal.Page{})
		if err != nil {
			return nil, fmt.Errorf("read the run's past: %w", err)
		}
		for _, record := range chunk.Records {
			rec, err := narad.Decode(record.Bytes)
			fact, ok := rec.(narad.Authority)
			if err != nil || !ok {
				return nil, fmt.Errorf("read the run's past: fact %d: %w", record.Sequence, errors.Join(err, journal.ErrDamaged))
			}
			past = append(past, fact)
			after = record.RunSequence
		}
		if !chunk.More {
			return past, nil
		}
	}
}
