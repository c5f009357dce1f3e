package index

import (
	"fmt"

	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Deriver follows the facts of a session from its first one, judges each as the owner
// did before it was appended, and returns the rows that it changes. It is what
// journal.VerifyOptions asks for. An error is damage.
func Deriver(sessionID string) func(journal.Record) ([]journal.Change, error) {
	state := session.New(session.Options{SessionID: sessionID, NoDisplay: true})
	d := &desk.State{}
	return func(record journal.Record) ([]journal.Change, error) {
		fact, err := decode(record)
		if err != nil {
			return nil, err
		}
		changes := Changes(state, d, fact)
		if r := state.Admit(fact); r.Kind != session.Applied {
			return nil, fmt.Errorf("judge %s: %s: %s: %s", fact.Type(), r.Kind, r.Code, r.Detail)
		}
		d.Apply(fact)
		return changes, nil
	}
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
