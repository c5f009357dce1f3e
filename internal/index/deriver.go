package index

import (
	"fmt"

	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Deriver follows the facts of a session from its first one, judges each as the owner
// did before it was appended, and returns the rows that it changes and the numbers that it
// takes, where numbers says them. It is what journal.VerifyOptions asks for. An error is
// damage.
func Deriver(numbers func(*session.State, *desk.State, narad.Authority) journal.Numbers) func(string) func(journal.Record) (journal.Derived, error) {
	return func(sessionID string) func(journal.Record) (journal.Derived, error) {
		f := &follower{
			state: session.New(session.Options{SessionID: sessionID, NoDisplay: true}), desk: &desk.State{}, numbers: numbers,
		}
		return f.derive
	}
}

// follower is at one fact of a session after another.
type follower struct {
	state   *session.State
	desk    *desk.State
	numbers func(*session.State, *desk.State, narad.Authority) journal.Numbers
}

func (f *follower) derive(record journal.Record) (derived journal.Derived, err error) {
	fact, err := decode(record)
	if err != nil {
		return derived, err
	}
	derived.Changes = Changes(f.state, f.desk, fact)
	if f.numbers != nil {
		n := f.numbers(f.state, f.desk, fact)
		derived.Numbers = &n
	}
	if r := f.state.Admit(fact); r.Kind != session.Applied {
		return derived, fmt.Errorf("judge %s: %s: %s: %s", fact.Type(), r.Kind, r.Code, r.Detail)
	}
	f.desk.Apply(fact)
	return derived, nil
}

func decode(record journal.Record) (narad.Authority, error) {
	rec, err := narad.DecodeStrict(record.Bytes)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	fact, ok := rec.(narad.Authority)
	if !ok {
		return nil, fmt.Errorf("decode: %s is no fact", rec.Type())
	}
	return fact, nil
}
