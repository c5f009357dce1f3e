package host

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// write appends what a command leads to. A value that no fact may hold refuses the
// command: the outcome then has no facts, and nothing has happened.
func (o *owner) write(ctx context.Context, t *task, outcome *decide.Outcome) error {
	if len(outcome.Facts) == 0 {
		return nil
	}
	if err := o.host.journal.Admit(outcome.Closing); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	batch := o.newBatch(t, outcome.Closing)
	if err := o.encode(&batch, outcome.Facts); err != nil {
		answer, err := o.unwritable(t, err)
		*outcome = decide.Outcome{Answer: answer}
		return err
	}
	outcome.Answer.SessionSequence = o.control.Session.Last() + 1 + int64(outcome.About)
	tokens, err := o.settling(ctx, outcome.Facts, t.claim)
	if err != nil {
		return err
	}
	if err := o.apply(&batch, outcome.Facts); err != nil {
		return err
	}
	if err := o.issue(ctx, &tokens, outcome); err != nil {
		o.failure = err // the state is ahead of the disk
		return err
	}
	batch.Changes = append(batch.Changes, tokens.rows...)
	if err := o.append(ctx, batch, t, outcome.Answer); err != nil {
		return err
	}
	o.handOut(tokens)
	return nil
}

func (o *owner) newBatch(t *task, closing bool) journal.Batch {
	return journal.Batch{
		Session: o.id, ExpectHead: uint64(o.control.Session.Last()), ExpectTerm: o.term,
		Time: o.host.opt.Now().UTC(), Closing: closing,
	}
}

// encode gives the facts their places and makes them bytes, before any is applied: what
// cannot be encoded has changed nothing.
func (o *owner) encode(batch *journal.Batch, list []narad.Authority) error {
	timestamp := narad.Timestamp(batch.Time)
	batch.Facts = make([]journal.Fact, 0, len(list))
	for i, fact := range list {
		o.number(list, i)
		e := fact.Envelope()
		e.EventID = strconv.FormatInt(e.SessionSequence, 10) + "." + rand.Text()[:8] // R3
		e.Timestamp = timestamp
		data, err := narad.Encode(fact)
		if err != nil {
			return fmt.Errorf("encode %s: %w", fact.Type(), err)
		}
		batch.Facts = append(batch.Facts, journal.Fact{
			EventID: e.EventID, Bytes: data, RootRunID: e.RootRunID, RunSequence: uint64(e.Sequence),
			WorkflowID: e.WorkflowID, WorkflowSequence: uint64(e.WorkflowSequence),
		})
	}
	return nil
}

// number gives a fact the places that follow those of the facts before it in the list,
// and of the state.
func (o *owner) number(list []narad.Authority, i int) {
	o.control.Session.Number(list[i])
	e := list[i].Envelope()
	e.SessionSequence += int64(i)
	inTree, inWorkflow := e.RootRunID != "", e.WorkflowID != ""
	for j := i - 1; j >= 0 && (inTree || inWorkflow); j-- {
		before := list[j].Envelope()
		if inTree && before.RootRunID == e.RootRunID {
			e.Sequence, inTree = before.Sequence+1, false
		}
		if inWorkflow && before.WorkflowID == e.WorkflowID {
			e.WorkflowSequence, inWorkflow = before.WorkflowSequence+1, false
		}
	}
}

// apply judges the facts one after another and applies them. If the guard refuses the
// first, nothing has happened; after that the owner ends, since its state is ahead of
// the disk.
func (o *owner) apply(batch *journal.Batch, list []narad.Authority) error {
	s, d := o.control.Session, o.control.Desk
	for i, fact := range list {
		changes := index.Changes(s, d, fact)
		batch.Facts[i].Take(o.host.opt.Numbers(s, d, fact))
		if r := s.Admit(fact); r.Kind != session.Applied {
			err := fmt.Errorf("%w: the guard refuses %s: %s", ErrInternal, fact.Type(), r.Code)
			o.log.Error("refuse a fact of our own", "type", string(fact.Type()), "code", string(r.Code))
			if i > 0 {
				o.failure = err
			}
			return err
		}
		d.Apply(fact)
		batch.Changes = append(batch.Changes, changes...)
		batch.Conditions = append(batch.Conditions, unique(o.id, fact)...)
	}
	return nil
}

// append writes the batch, with the command's answer. If that fails the owner ends.
func (o *owner) append(ctx context.Context, batch journal.Batch, t *task, answer decide.Answer) error {
	err := carryAnswer(&batch, t, answer)
	if err == nil {
		_, err = o.host.journal.Append(ctx, batch)
	}
	if err != nil {
		o.failure = fmt.Errorf("append: %w", err)
		return o.failure
	}
	o.host.replay.Save(ctx, o.id, o.control)
	if slices.ContainsFunc(batch.Changes, setsTimer) {
		o.host.timers.Changed()
	}
	return nil
}

func setsTimer(c journal.Change) bool {
	put, ok := c.(journal.Put)
	return ok && put.Row.Key().Kind == journal.KindTimer
}

// unwritable answers for a value that no fact may hold. An agent may give such a value,
// and a client one that is too large; all else is a fault of ours.
func (o *owner) unwritable(t *task, err error) (decide.Answer, error) {
	var refusal *narad.Error
	large := errors.As(err, &refusal) && (refusal.Code == narad.CodeTooLarge || refusal.Code == narad.CodeTooDeep)
	switch {
	case large:
		detail := "a value is larger than an event may be"
		return decide.Answer{Status: decide.Rejected, Detail: detail, Err: decide.RefusedTooLarge}, nil
	case t.agent && refusal != nil:
		return decide.Answer{Status: decide.Rejected, Detail: refusal.Error(), Err: decide.RefusedInvalid}, nil
	}
	o.log.Error("a fact of our own cannot be written", "error", err)
	return decide.Answer{}, fmt.Errorf("%w: %w", ErrInternal, err)
}

// stored is how a command's first answer is kept.
type stored struct {
	Status          decide.Status `json:"status"`
	Decision        string        `json:"decision,omitzero"`
	RequestID       string        `json:"requestId,omitzero"`
	SessionSequence int64         `json:"sessionSequence,omitzero"`
	RunID           string        `json:"runId,omitzero"`
	WorkflowID      string        `json:"workflowId,omitzero"`
	Detail          string        `json:"detail,omitzero"`
	MessageID       string        `json:"messageId,omitzero"`
	Queued          bool          `json:"queued,omitzero"`
}

// carryAnswer keeps the answer with the facts, under each key of the command. Only
// accepted results are kept (R21).
func carryAnswer(batch *journal.Batch, t *task, a decide.Answer) error {
	if len(t.keys) == 0 || !a.Status.Accepted() {
		return nil
	}
	value, err := json.Marshal(stored{a.Status, a.Decision, a.RequestID, a.SessionSequence, a.RunID, a.WorkflowID, a.Detail, a.MessageID, a.Queued})
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	keys := t.keys
	if _, starts := t.command.(decide.StartRootRun); starts && t.inputID != "" {
		// The start is the first input of its run.
		keys = append(keys[:len(keys):len(keys)], journal.CommandKey(batch.Session, inputSpace(a.RunID), t.inputID))
	}
	for _, key := range keys {
		batch.Changes = append(batch.Changes, journal.Put{Row: journal.CommandRow{
			Session: key.Session, Space: key.Space, ID: key.ID, Hash: t.hash, Value: value,
		}})
		batch.Conditions = append(batch.Conditions, journal.IfAbsent{Key: key})
	}
	return nil
}

// firstAnswer returns the answer that a command was given before. Other content under
// the same key is a conflict that names the first effect (R21).
func (o *owner) firstAnswer(ctx context.Context, t *task) (decide.Answer, bool, error) {
	for _, key := range t.keys {
		row, err := journal.Get[journal.CommandRow](ctx, o.host.journal, key)
		if errors.Is(err, journal.ErrNotFound) {
			continue
		}
		if err != nil {
			return decide.Answer{}, false, fmt.Errorf("look for the command's answer: %w", err)
		}
		var s stored
		if err := json.Unmarshal(row.Value, &s); err != nil {
			return decide.Answer{}, false, fmt.Errorf("read the command's answer: %w", err)
		}
		a := decide.Answer{
			Status: s.Status, Decision: s.Decision, RequestID: s.RequestID,
			SessionSequence: s.SessionSequence, RunID: s.RunID, WorkflowID: s.WorkflowID, Detail: s.Detail,
			MessageID: s.MessageID, Queued: s.Queued,
			Repeated: true,
		}
		if !bytes.Equal(row.Hash, t.hash) {
			a.Status, a.Detail, a.Err = decide.Conflict, "the id was used for another command", decide.RefusedReused
		}
		return a, true, nil
	}
	return decide.Answer{}, false, nil
}
