package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/internal/agent"
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
	if _, err := h.timers.FireOverdue(ctx); err != nil {
		return fmt.Errorf("fire overdue timers: %w", err)
	}
	for row, err := range journal.Each[journal.OpenWorkRow](ctx, h.journal, journal.OpenWork{}) {
		if err != nil {
			return fmt.Errorf("list open work: %w", err)
		}
		if err := h.recover(ctx, row.Session); err != nil {
			if errors.Is(err, journal.ErrDamaged) {
				h.opt.Logger.Error("leave a damaged session as it is", "session", row.Session, "error", err)
				continue
			}
			return fmt.Errorf("recover session %s: %w", row.Session, err)
		}
	}
	h.timers.Start()
	h.ready.Store(true)
	return nil
}

// endLeft ends the processes that a dead host left running.
func (h *Host) endLeft(ctx context.Context) error {
	for row, err := range journal.Each[journal.AgentRow](ctx, h.journal, journal.Agents{}) {
		if err != nil {
			return fmt.Errorf("list agents' processes: %w", err)
		}
		var p agent.Process
		if err := json.Unmarshal(row.Value, &p); err == nil && h.opt.EndLeft != nil {
			if err := h.opt.EndLeft(ctx, p); err != nil {
				return fmt.Errorf("end process %d: %w", p.PID, err)
			}
		}
		_, err := h.journal.Append(ctx, journal.Batch{
			Session: journal.HostStream, Changes: []journal.Change{journal.Remove{Key: row.Key()}},
			Time: h.opt.Now().UTC(), Closing: true,
		})
		if err != nil {
			return fmt.Errorf("forget process: %w", err)
		}
	}
	return nil
}

// recover repairs one session.
func (h *Host) recover(ctx context.Context, id string) error {
	t := &task{recover: true, reply: make(chan reply, 1)}
	_, err := h.hand(ctx, id, t)
	return err
}

// recover closes what the dead host left open, or lets the agent go on.
func (o *owner) recover(ctx context.Context) (decide.Answer, error) {
	if o.active != nil {
		return decide.Answer{Status: decide.AlreadyApplied}, nil
	}
	kind, known := o.host.agents.Kind(o.agentName())
	resumes := known && kind.Resumes()
	answer, err := o.answer(&task{command: decide.Recover{Resumes: resumes}, actor: hostActor})
	if err != nil {
		return answer, err
	}
	if o.active == nil && o.control.Session.ActiveRootRunID() != "" {
		return answer, o.resume(ctx)
	}
	if o.active == nil {
		return o.answer(&task{command: decide.StartNext{}, actor: hostActor})
	}
	return answer, nil
}

// resume lets the agent go on with the active run.
func (o *owner) resume(ctx context.Context) error {
	run, _ := o.control.Session.Run(o.control.Session.ActiveRootRunID())
	past, err := o.past(ctx, run.RunID)
	if err != nil {
		return err
	}
	if !o.place {
		o.place = true
		o.host.places.force()
	}
	var prompt agent.Message
	if len(past) > 1 {
		prompt = promptAfter(past[1:])
	}
	o.begin(run, prompt, past)
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
