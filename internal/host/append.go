package host

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// append checks, numbers, encodes and applies the facts one after another, and writes
// them as one batch. If the guard refuses the first, nothing has happened; after that,
// and if the journal fails, the owner ends: its state is ahead of the disk.
func (o *owner) append(ctx context.Context, t *task, outcome decide.Outcome) error {
	now := o.host.opt.Now().UTC()
	batch := journal.Batch{
		Session: o.id, ExpectHead: uint64(o.control.Session.Last()), ExpectTerm: o.term, Time: now,
		Closing: outcome.Closing, Changes: t.changes,
	}
	for i, fact := range outcome.Facts {
		encoded, changes, err := o.prepare(fact, narad.Timestamp(now))
		if err != nil {
			if i > 0 {
				o.failure = err
			}
			return o.refused(fact, err)
		}
		batch.Facts = append(batch.Facts, encoded)
		batch.Changes = append(batch.Changes, changes...)
	}
	if err := o.carryAnswer(&batch, t, outcome.Answer); err != nil {
		o.failure = err
		return err
	}
	if _, err := o.host.journal.Append(ctx, batch); err != nil {
		o.failure = err
		return fmt.Errorf("append: %w", err)
	}
	o.host.replay.Save(ctx, o.id, o.control)
	for _, c := range batch.Changes {
		if put, ok := c.(journal.Put); ok && put.Row.Key().Kind == journal.KindTimer {
			o.host.timers.Changed()
			break
		}
	}
	return nil
}

// prepare gives a fact its places, checks and encodes it, and applies it.
func (o *owner) prepare(fact narad.Authority, timestamp string) (journal.Fact, []journal.Change, error) {
	s := o.control.Session
	s.Number(fact)
	e := fact.Envelope()
	e.EventID = strconv.FormatInt(e.SessionSequence, 10) + "." + rand.Text()[:8] // R3
	e.Timestamp = timestamp
	data, err := narad.Encode(fact)
	if err != nil {
		return journal.Fact{}, nil, fmt.Errorf("encode %s: %w", fact.Type(), err)
	}
	if r := s.Check(fact); r.Refused() {
		return journal.Fact{}, nil, &illegal{fact.Type(), string(r.Code)}
	}
	changes := index.Changes(s, o.control.Desk, fact)
	s.Admit(fact)
	o.control.Desk.Apply(fact)
	return journal.Fact{
		EventID: e.EventID, Bytes: data, RootRunID: e.RootRunID, RunSequence: uint64(e.Sequence),
		WorkflowID: e.WorkflowID, WorkflowSequence: uint64(e.WorkflowSequence),
	}, changes, nil
}

// illegal is a fact that the guard refuses.
type illegal struct {
	kind narad.Type
	code string
}

func (e *illegal) Error() string { return "the guard refuses " + string(e.kind) + ": " + e.code }

// refused says what a refused fact means to who caused it: a value too large for an
// event is theirs, all else is a fault of ours.
func (o *owner) refused(fact narad.Authority, err error) error {
	var refusal *narad.Error
	if errors.As(err, &refusal) && (refusal.Code == narad.CodeTooLarge || refusal.Code == narad.CodeTooDeep) {
		return err
	}
	o.log.Error("refuse a fact of our own", "type", fact.Type(), "error", err)
	return fmt.Errorf("%w: %w", ErrInternal, err)
}

// stored is how a command's first answer is kept.
type stored struct {
	Status          decide.Status `json:"status"`
	Decision        string        `json:"decision,omitzero"`
	RequestID       string        `json:"requestId,omitzero"`
	SessionSequence int64         `json:"sessionSequence,omitzero"`
	RunID           string        `json:"runId,omitzero"`
}

// carryAnswer keeps the answer with the facts, under each key of the command. Only
// accepted results are kept (R21).
func (o *owner) carryAnswer(batch *journal.Batch, t *task, a decide.Answer) error {
	if a.Status != decide.Accepted {
		return nil
	}
	for _, key := range t.keys {
		value, err := json.Marshal(stored{a.Status, a.Decision, a.RequestID, a.SessionSequence, a.RunID})
		if err != nil {
			return fmt.Errorf("encode answer: %w", err)
		}
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
			SessionSequence: s.SessionSequence, RunID: s.RunID,
		}
		if !bytes.Equal(row.Hash, t.hash) {
			a.Status, a.Detail = decide.Conflict, "the id was used for another command"
		}
		return a, true, nil
	}
	return decide.Answer{}, false, nil
}
