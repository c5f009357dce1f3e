package numbers

import (
	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Of returns the numbers that a fact takes. The states are those before it.
func Of(_ *session.State, before *desk.State, fact narad.Authority) journal.Numbers {
	run, n := harness.Count(standing(before, fact.Envelope().RootRunID), fact)
	return journal.Numbers{LogRun: run, Logs: uint32(n)}
}

// standing is how the log of a root run stands.
func standing(d *desk.State, root string) harness.Standing {
	if root == "" || d.Log.RootRunID != root {
		return harness.Standing{}
	}
	return harness.Standing{Mapping: d.Log.Mapping, Stopped: d.Stopping == root}
}
