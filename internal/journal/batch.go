package journal

import (
	"fmt"
	"time"
)

// Sizes that every engine holds to. They are part of the contract, not a
// configuration.
const (
	// MaxFactBytes is the largest fact (R7).
	MaxFactBytes = 512_000
	// MaxBatchFacts is the largest number of facts in a batch.
	MaxBatchFacts = 1_000
	// MaxBatchChanges is the largest number of index changes in a batch, and of
	// conditions.
	MaxBatchChanges = 4_096
	// MaxBatchBytes bounds the facts and rows of a batch together.
	MaxBatchBytes = 8 << 20
	// MaxID bounds every id and name in facts, rows and conditions.
	MaxID = 512
	// MaxEventCount bounds the event numbers and the log numbers of one fact.
	MaxEventCount = 1 << 16
)

// Batch is the facts of one accepted command in one session with the index
// rows they change: appended whole or not at all. A batch without facts only
// changes rows and moves no head.
type Batch struct {
	// Session is the stream to append to; the first batch creates it.
	Session string
	// ExpectHead is the last sequence that the owner knows, 0 for a new session.
	ExpectHead uint64
	// ExpectTerm is the term that AcquireTerm gave the owner. A session of
	// which no term is held expects 0.
	ExpectTerm Term
	// Time is stored with the batch, to the microsecond.
	Time time.Time
	// Facts follow ExpectHead in order.
	Facts []Fact
	// Changes are applied in order: the last one to a row wins.
	Changes []Change
	// Conditions are checked against the rows before the batch.
	Conditions []Condition
	// Closing says that the batch only closes what is open. Such batches are
	// still accepted in the last part of the reserve.
	Closing bool
}

// Term numbers the owners of a session: of two terms the higher is the newer
// owner, whose arrival fences the older one.
type Term uint64

// Deletion names a session to be deleted and what its owner knows of it.
type Deletion struct {
	Session    string
	ExpectHead uint64
	ExpectTerm Term
}

// Change is one change of an index row: [Put] or [Remove].
type Change interface{ change() }

// Put writes a row, in the place of the row with the same key.
type Put struct{ Row Row }

// Remove removes a row. Removing what is not there is allowed.
type Remove struct{ Key Key }

// Condition is checked before a batch is written: [IfAbsent] or [IfEqual].
type Condition interface{ condition() }

// IfAbsent holds while no row has the key.
type IfAbsent struct{ Key Key }

// IfEqual holds while the row with the same key has exactly this content.
type IfEqual struct{ Row Row }

func (Put) change()         {}
func (Remove) change()      {}
func (IfAbsent) condition() {}
func (IfEqual) condition()  {}

// Size is what a batch counts for in groups and limits: the bytes of its facts
// and rows and a little for each.
func (b Batch) Size() int {
	const each = 64
	size := each
	for i := range b.Facts {
		size += len(b.Facts[i].Bytes) + each
	}
	for _, c := range b.Changes {
		size += each
		if put, ok := c.(Put); ok && put.Row != nil {
			size += sizeOf(put.Row)
		}
	}
	return size
}

// Validate checks everything about a batch that can be said without a store, and
// gives its Size. Engines call it before they queue a batch.
func (b Batch) Validate() (size int, err error) {
	if err := b.validate(); err != nil {
		return 0, err
	}
	if size = b.Size(); size > MaxBatchBytes {
		return 0, tooLarge("bytes in a batch", size, MaxBatchBytes)
	}
	return size, nil
}

func (b Batch) validate() error {
	if err := validSession(b.Session); err != nil {
		return err
	}
	if len(b.Facts) > MaxBatchFacts {
		return tooLarge("facts in a batch", len(b.Facts), MaxBatchFacts)
	}
	if n := max(len(b.Changes), len(b.Conditions)); n > MaxBatchChanges {
		return tooLarge("changes in a batch", n, MaxBatchChanges)
	}
	if len(b.Facts) == 0 && len(b.Changes) == 0 {
		return invalid("a batch needs a fact or a change")
	}
	for i := range b.Facts {
		if err := b.Facts[i].validate(b.ExpectHead + uint64(i) + 1); err != nil {
			return fmt.Errorf("fact %d: %w", i, err)
		}
	}
	for i, c := range b.Changes {
		if err := b.validChange(c); err != nil {
			return fmt.Errorf("change %d: %w", i, err)
		}
	}
	for i, c := range b.Conditions {
		if err := validCondition(c); err != nil {
			return fmt.Errorf("condition %d: %w", i, err)
		}
	}
	return nil
}

func (f *Fact) validate(sequence uint64) error {
	switch named, ok := SequenceOfEventID(f.EventID); {
	case !ok:
		return invalid("event id %q is not <sequence>.<suffix>", f.EventID)
	case named != sequence:
		return invalid("event id %q stands at sequence %d", f.EventID, sequence)
	case len(f.Bytes) == 0:
		return invalid("no bytes")
	case len(f.Bytes) > MaxFactBytes:
		return tooLarge("bytes in a fact", len(f.Bytes), MaxFactBytes)
	case (f.RootRunID == "") != (f.RunSequence == 0):
		return invalid("root run id and run sequence go together")
	case (f.WorkflowID == "") != (f.WorkflowSequence == 0):
		return invalid("workflow id and workflow sequence go together")
	case (f.LogRun == "") != (f.LogCount == 0):
		return invalid("log run and log count go together")
	case max(f.EventCount, f.LogCount) > MaxEventCount:
		return tooLarge("numbers of one fact", int(max(f.EventCount, f.LogCount)), MaxEventCount)
	}
	for _, id := range []string{f.RootRunID, f.WorkflowID, f.LogRun} {
		if id == "" {
			continue
		}
		if err := validID(id); err != nil {
			return err
		}
	}
	return nil
}

func (b Batch) validChange(c Change) error {
	switch c := c.(type) {
	case Put:
		if c.Row == nil {
			return invalid("put without a row")
		}
		key := c.Row.Key()
		if owner := c.Row.owner(); owner != "" && owner != b.Session {
			return invalid("row %s belongs to %q, the batch to %q", key, owner, b.Session)
		}
		return key.Validate()
	case Remove:
		if key := c.Key; key.Session != "" && key.Session != b.Session {
			return invalid("row %s belongs to %q, the batch to %q", key, key.Session, b.Session)
		}
		return c.Key.Validate()
	default:
		return invalid("unknown change %T", c)
	}
}

func validCondition(c Condition) error {
	switch c := c.(type) {
	case IfAbsent:
		return c.Key.Validate()
	case IfEqual:
		if c.Row == nil {
			return invalid("IfEqual without a row")
		}
		return c.Row.Key().Validate()
	default:
		return invalid("unknown condition %T", c)
	}
}

// validSession accepts what a key can be made of. Which ids a client may
// choose is decided at the edge.
func validSession(session string) error {
	if err := validID(session); err != nil {
		return fmt.Errorf("session: %w", err)
	}
	return nil
}

func validID(id string) error {
	if id == "" {
		return invalid("empty id")
	}
	return validPart(id)
}

func validPart(id string) error {
	if len(id) > MaxID {
		return tooLarge("bytes in an id", len(id), MaxID)
	}
	for i := range len(id) {
		if id[i] < 0x20 || id[i] == 0x7f {
			return invalid("control character in id %q", id)
		}
	}
	return nil
}
