package numbers

import (
	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
	"github.com/mahati-host/mahati/narya"
)

// Of returns the numbers that a fact takes. The states are those before it.
func Of(_ *session.State, before *desk.State, fact narad.Authority) journal.Numbers {
	run, logs := harness.Count(standing(before, fact.Envelope().RootRunID), fact)
	events := narya.MappingOf(fact, before.Created.Mappings.Narya).Count(fact)
	return journal.Numbers{Events: uint32(events), LogRun: run, Logs: uint32(logs)}
}

// standing is how the log of a root run stands.
func standing(d *desk.State, root string) harness.Standing {
	if root == "" || d.Log.RootRunID != root {
		return harness.Standing{}
	}
	return harness.Standing{Mapping: d.Log.Mapping, Stopped: d.Stopping == root}
}
