package journal

import (
	"fmt"
	"time"
)

// Kind is the kind of an index row.
type Kind uint8

// The kinds of rows. Their numbers are stored.
const (
	KindSession Kind = iota + 1
	KindInterrupt
	KindRun
	KindWorkflow
	KindOpenWork
	KindTimer
	KindCommand
	KindAlias
	KindLease
	KindToken
	KindAgent
	KindMaterial
	KindDecision
)

// Kinds are all kinds of rows.
var Kinds = []Kind{
	KindSession, KindInterrupt, KindRun, KindWorkflow, KindOpenWork, KindTimer,
	KindCommand, KindAlias, KindLease, KindToken, KindAgent, KindMaterial, KindDecision,
}

func (k Kind) String() string {
	names := [...]string{
		"session", "interrupt", "run", "workflow", "open work", "timer",
		"command", "alias", "lease", "token", "agent", "material", "decision",
	}
	if k == 0 || int(k) > len(names) {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return names[k-1]
}

// Key names a row. It is comparable; the functions below make keys.
type Key struct {
	Kind Kind
	// Session is the owning session where that is part of the name.
	Session string
	// Space separates ids of different origin.
	Space string
	ID    string
}

// SessionKey names the catalogue row of a session.
func SessionKey(session string) Key { return Key{Kind: KindSession, Session: session} }

// InterruptKey names an interrupt.
func InterruptKey(id string) Key { return Key{Kind: KindInterrupt, ID: id} }

// RunKey names a run, nested ones too.
func RunKey(id string) Key { return Key{Kind: KindRun, ID: id} }

// WorkflowKey names a workflow.
func WorkflowKey(id string) Key { return Key{Kind: KindWorkflow, ID: id} }

// OpenWorkKey names the mark that a session has open work.
func OpenWorkKey(session string) Key { return Key{Kind: KindOpenWork, Session: session} }

// TimerKey names a timer of a session, or of none.
func TimerKey(session, id string) Key { return Key{Kind: KindTimer, Session: session, ID: id} }

// CommandKey names a command by its idempotency key (R21): the session or
// none, the space (whose ids they are) and the id.
func CommandKey(session, space, id string) Key {
	return Key{Kind: KindCommand, Session: session, Space: space, ID: id}
}

// AliasKey names an alias.
func AliasKey(space, alias string) Key { return Key{Kind: KindAlias, Space: space, ID: alias} }

// LeaseKey names the lease of an executor.
func LeaseKey(executor string) Key { return Key{Kind: KindLease, ID: executor} }

// TokenKey names a token of an executor.
func TokenKey(executor, id string) Key { return Key{Kind: KindToken, Space: executor, ID: id} }

// MaterialKey names an attachment or an artifact of a session; the space says which.
func MaterialKey(session, space, id string) Key {
	return Key{Kind: KindMaterial, Session: session, Space: space, ID: id}
}

// DecisionKey names a row of a list of decisions: that of a session, or, for "", of all.
func DecisionKey(of, id string) Key { return Key{Kind: KindDecision, Space: of, ID: id} }

// AgentKey names the owner record of an agent process.
func AgentKey(id string) Key { return Key{Kind: KindAgent, ID: id} }

func (k Key) String() string {
	text := k.Kind.String()
	for _, part := range []string{k.Session, k.Space, k.ID} {
		if part != "" {
			text += fmt.Sprintf(" %q", part)
		}
	}
	return text
}

// shape says which parts of a key are never empty.
type shape struct{ known, session, space, id bool }

var shapes = [...]shape{
	KindSession:   {known: true, session: true},
	KindInterrupt: {known: true, id: true},
	KindRun:       {known: true, id: true},
	KindWorkflow:  {known: true, id: true},
	KindOpenWork:  {known: true, session: true},
	KindTimer:     {known: true, id: true},
	KindCommand:   {known: true, id: true},
	KindAlias:     {known: true, space: true, id: true},
	KindLease:     {known: true, id: true},
	KindToken:     {known: true, space: true, id: true},
	KindAgent:     {known: true, id: true},
	KindMaterial:  {known: true, session: true, space: true, id: true},
	KindDecision:  {known: true, id: true},
}

// Validate holds a key to the parts that its kind has.
func (k Key) Validate() error {
	if int(k.Kind) >= len(shapes) || !shapes[k.Kind].known {
		return invalid("unknown kind of row %d", k.Kind)
	}
	needs := shapes[k.Kind]
	if needs.session && k.Session == "" || needs.space && k.Space == "" || needs.id && k.ID == "" {
		return invalid("incomplete key of a %s", k.Kind)
	}
	for _, part := range []string{k.Session, k.Space, k.ID} {
		if err := validPart(part); err != nil {
			return fmt.Errorf("key of a %s: %w", k.Kind, err)
		}
	}
	return nil
}

// Row is one index row: one of the row types of this package, by value. A row
// is derived (a function of the facts before it, which verify computes again)
// or carried (an own truth of its batch).
type Row interface {
	// Key names the row.
	Key() Key
	// Derived says that the facts alone determine the row.
	Derived() bool
	// owner is the session whose batches alone may write the row and with which
	// it is deleted; empty for rows of no session.
	owner() string
	// fields visits the stored fields in their stored order.
	fields(*fieldVisitor)
}

// SessionRow is the catalogue row of a session. Derived.
type SessionRow struct {
	Session   string
	Workspace string
	// State is what lists are filtered by.
	State string
	// Value is the rest, opaque here.
	Value []byte
}

// InterruptRow is an interrupt, open or closed. Derived.
type InterruptRow struct {
	ID      string
	Session string
	// Sequence is the session sequence of the request.
	Sequence uint64
	Open     bool
	Value    []byte
	// Offset is the host offset of the request, which orders the inbox. The
	// engine sets it when it stores the row and ignores what it is given.
	Offset uint64
}

// RunRow is a run, nested runs too. Derived.
type RunRow struct {
	ID      string
	Session string
	// Root is the run's root run, itself for a root run.
	Root string
	// First is the session sequence of its start, Last of its end or 0.
	First, Last uint64
	State       string
	Value       []byte
}

// WorkflowRow is a workflow. Derived.
type WorkflowRow struct {
	ID      string
	Session string
	// First is the session sequence of its start, Last of its end or 0. A row that
	// leaves First at 0 keeps that of the row in whose place it is put.
	First, Last uint64
	State       string
	Value       []byte
}

// OpenWorkRow marks a session that has open work. Derived.
type OpenWorkRow struct {
	Session string
	Value   []byte
}

// TimerRow is a durable timer. One with the same session and id is replaced.
type TimerRow struct {
	// Session owns the timer; it is empty for timers of no session.
	Session string
	ID      string
	// Due is kept to the microsecond.
	Due time.Time
	// Carried says that the timer does not follow from facts.
	Carried bool
	Value   []byte
}

// CommandRow is the first answer to a command (R21). Carried.
type CommandRow struct {
	Session string
	Space   string
	ID      string
	// Hash is the hash of the command's content.
	Hash []byte
	// Value is the answer.
	Value []byte
}

// AliasRow leads from an id shown elsewhere back to ours. Derived.
type AliasRow struct {
	Space string
	Alias string
	// Session owns the alias; it is empty for aliases of no session.
	Session string
	// ID is what the alias stands for.
	ID string
}

// LeaseRow is the newest lease of an executor. Carried.
type LeaseRow struct {
	Executor string
	Value    []byte
}

// TokenRow is an execution token, by its hash. Carried.
type TokenRow struct {
	Executor string
	ID       string
	// Session owns the token; it may be empty.
	Session string
	Value   []byte
}

// AgentRow is the owner record of an agent process. Carried. Its session is
// information only: the record outlives it until the process is gone.
type AgentRow struct {
	ID      string
	Session string
	Value   []byte
}

// MaterialRow is an attachment or an artifact of a session. Derived.
type MaterialRow struct {
	Session string
	// Space says what it is, ID names it there.
	Space string
	ID    string
	// Digest names the bytes that are kept for it; empty where there are none.
	Digest string
	Value  []byte
}

// DecisionRow tells how something that was asked for was settled. It stands in two lists:
// that of its session, and that of all. Derived.
type DecisionRow struct {
	// Of is the session whose list it is, "" for the list of all.
	Of string
	// ID is its place in the lists, which are sorted by it.
	ID      string
	Session string
	// Decision is what lists are filtered by.
	Decision string
	Value    []byte
}

// Key implements Row; so do the methods below.
func (r SessionRow) Key() Key   { return SessionKey(r.Session) }
func (r InterruptRow) Key() Key { return InterruptKey(r.ID) }
func (r RunRow) Key() Key       { return RunKey(r.ID) }
func (r WorkflowRow) Key() Key  { return WorkflowKey(r.ID) }
func (r OpenWorkRow) Key() Key  { return OpenWorkKey(r.Session) }
func (r TimerRow) Key() Key     { return TimerKey(r.Session, r.ID) }
func (r CommandRow) Key() Key   { return CommandKey(r.Session, r.Space, r.ID) }
func (r AliasRow) Key() Key     { return AliasKey(r.Space, r.Alias) }
func (r LeaseRow) Key() Key     { return LeaseKey(r.Executor) }
func (r TokenRow) Key() Key     { return TokenKey(r.Executor, r.ID) }
func (r AgentRow) Key() Key     { return AgentKey(r.ID) }
func (r MaterialRow) Key() Key  { return MaterialKey(r.Session, r.Space, r.ID) }
func (r DecisionRow) Key() Key  { return DecisionKey(r.Of, r.ID) }

// Derived implements Row; so do the methods below.
func (r SessionRow) Derived() bool   { return true }
func (r InterruptRow) Derived() bool { return true }
func (r RunRow) Derived() bool       { return true }
func (r WorkflowRow) Derived() bool  { return true }
func (r OpenWorkRow) Derived() bool  { return true }
func (r TimerRow) Derived() bool     { return !r.Carried }
func (r CommandRow) Derived() bool   { return false }
func (r AliasRow) Derived() bool     { return true }
func (r LeaseRow) Derived() bool     { return false }
func (r TokenRow) Derived() bool     { return false }
func (r AgentRow) Derived() bool     { return false }
func (r MaterialRow) Derived() bool  { return true }
func (r DecisionRow) Derived() bool  { return true }

func (r SessionRow) owner() string   { return r.Session }
func (r InterruptRow) owner() string { return r.Session }
func (r RunRow) owner() string       { return r.Session }
func (r WorkflowRow) owner() string  { return r.Session }
func (r OpenWorkRow) owner() string  { return r.Session }
func (r TimerRow) owner() string     { return r.Session }
func (r CommandRow) owner() string   { return r.Session }
func (r AliasRow) owner() string     { return r.Session }
func (r LeaseRow) owner() string     { return "" }
func (r TokenRow) owner() string     { return r.Session }
func (r AgentRow) owner() string     { return "" }
func (r MaterialRow) owner() string  { return r.Session }
func (r DecisionRow) owner() string  { return r.Session }

// Owner is the session with which a row is deleted, "" for a row of none.
func Owner(row Row) string { return row.owner() }
