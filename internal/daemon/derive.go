package daemon

import (
	"fmt"

	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// derive judges the facts of one session as its owner did, and returns the rows that
// each of them changes.
func derive(id string) func(journal.Record) ([]journal.Change, error) {
	state := session.New(session.Options{SessionID: id, NoDisplay: true})
	d := &desk.State{}
	return func(r journal.Record) ([]journal.Change, error) {
		rec, err := narad.DecodeStrict(r.Bytes)
		if err != nil {
			return nil, fmt.Errorf("decode: %w", err)
		}
		fact, ok := rec.(narad.Authority)
		if !ok {
			return nil, fmt.Errorf("decode: %s is no authority event", rec.Type())
		}
		if res := state.Check(fact); res.Refused() {
			return nil, fmt.Errorf("%s: %s", res.Code, res.Detail)
		}
		changes := index.Changes(state, d, fact)
		state.Admit(fact)
		d.Apply(fact)
		return changes, nil
	}
}
