package journal

import (
	"errors"
	"fmt"
	"time"
)

// Refusals before writing. Nothing changed, the store goes on.
var (
	// ErrClosed says that Close was called.
	ErrClosed = errors.New("journal is closed")
	// ErrConflict says that head or term are not those expected: [ConflictError].
	ErrConflict = errors.New("head or term is not the expected one")
	// ErrCondition says that a condition does not hold: [ConditionError].
	ErrCondition = errors.New("condition does not hold")
	// ErrStorageFull says that too little space is left: [StorageFullError].
	ErrStorageFull = errors.New("storage is full")
	// ErrTooLarge says that a fixed size is exceeded.
	ErrTooLarge = errors.New("too large")
	// ErrInvalid says that a batch or query contradicts the rules of the port:
	// an error of the caller.
	ErrInvalid = errors.New("invalid")
	// ErrRefused says that a fault hook refused the group before it was written.
	ErrRefused = errors.New("refused before writing")
	// ErrNotFound says that there is no such session, record or row.
	ErrNotFound = errors.New("not found")
	// ErrDeleted says that the session was deleted; its id is never given again.
	ErrDeleted = errors.New("session was deleted")
	// ErrLocked says that another process holds the directory.
	ErrLocked = errors.New("in use by another process")
	// ErrNewerFormat says that a newer program wrote the store.
	ErrNewerFormat = errors.New("store has a newer format")
)

var (
	// ErrBroken says that a write or sync failed. It is final: what was being
	// written may or may not be there after the next open.
	ErrBroken = errors.New("journal is broken")
	// ErrDamaged says that stored bytes are not what was written: [DamagedError].
	ErrDamaged = errors.New("stored data is damaged")
)

// ConflictError is an [ErrConflict] with what was expected and what is.
type ConflictError struct {
	Session                string
	ExpectHead, Head       uint64
	ExpectTerm, NewestTerm Term
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("session %q: expected head %d of term %d, is head %d of term %d",
		e.Session, e.ExpectHead, e.ExpectTerm, e.Head, e.NewestTerm)
}

// Is makes the error an ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// ConditionError is an [ErrCondition] with the row that decided it.
type ConditionError struct {
	// Index is the place of the condition in Batch.Conditions.
	Index int
	Key   Key
	// Row is the row that is there, nil when there is none.
	Row Row
}

func (e *ConditionError) Error() string {
	return fmt.Sprintf("condition %d on %s does not hold", e.Index, e.Key)
}

// Is makes the error an ErrCondition.
func (e *ConditionError) Is(target error) bool { return target == ErrCondition }

// StorageFullError is an [ErrStorageFull] with the figures an operator needs.
type StorageFullError struct {
	Path         string
	Free, Needed uint64
}

func (e *StorageFullError) Error() string {
	return fmt.Sprintf("%s: %d bytes free, %d needed", e.Path, e.Free, e.Needed)
}

// Is makes the error an ErrStorageFull.
func (e *StorageFullError) Is(target error) bool { return target == ErrStorageFull }

// DamagedError is an [ErrDamaged] that names what is lost and where a reader
// that wants to go on, having told somebody, can do so.
type DamagedError struct {
	// Session is the damaged session, "" when it is not known.
	Session string
	// Sequence is the first sequence of the damaged batch, 0 when the damage is
	// not in a batch.
	Sequence uint64
	// ResumeOffset and ResumeEvent are positions just behind the damaged batch,
	// for readers in the order of the whole store; 0 when not known.
	ResumeOffset, ResumeEvent uint64
	// ResumeSequence is the same for readers of the session; 0 when nothing of it is there
	// behind the damage.
	ResumeSequence uint64
	// Cause says what was found.
	Cause error
}

func (e *DamagedError) Error() string {
	where := ""
	switch {
	case e.Sequence != 0:
		where = fmt.Sprintf("session %q at sequence %d: ", e.Session, e.Sequence)
	case e.Session != "":
		where = fmt.Sprintf("session %q: ", e.Session)
	}
	return fmt.Sprintf("%sstored data is damaged: %v", where, e.Cause)
}

// Is makes the error an ErrDamaged.
func (e *DamagedError) Is(target error) bool { return target == ErrDamaged }

// Unwrap gives the cause.
func (e *DamagedError) Unwrap() error { return e.Cause }

// Damage is a row of a list that cannot be given: its stored form cannot be read, is that
// of another row, or is not there though the list leads to it. A list with a condition on
// what rows hold has it too, since nobody knows whether it meets the condition.
type Damage struct {
	// Session is the session that it touches; "" where the list does not tell, and for a
	// row of no session.
	Session string
	// Key names the row, of whose parts the list may not tell all. Its Kind is always there.
	Key Key
	// Due is when a timer is due whose row is lost and of which the list tells as much as
	// who is to be told: its session, its id and this. Else it is zero.
	Due time.Time
	// Cause says what was found.
	Cause error
}

// Err is the damage as an error, for who cannot go on without the row.
func (d Damage) Err() error {
	return &DamagedError{Session: d.Session, Cause: fmt.Errorf("%s: %w", d.Key, d.Cause)}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

func tooLarge(what string, got, limit int) error {
	return fmt.Errorf("%w: %s: %d, at most %d", ErrTooLarge, what, got, limit)
}
