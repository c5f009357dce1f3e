package harness

import (
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// Mapping is the version of the mapping from facts to records that runs get which start
// now (R1). What is here for it is never changed: other records are another version.
const Mapping = 1

// Standing is what counting needs beyond a fact: how the log of its root run stands
// before it. The zero value is that of a run without a log.
type Standing struct {
	// Mapping is the version that the start of the root run recorded.
	Mapping int
	// Stopped says that the stop of the root run was requested: its log is silent until
	// its end (R36).
	Stopped bool
}

// Count returns the log that a fact belongs to, named by its root run, and how many
// records it is there. A fact that is in no log, or that none can express, counts 0 and
// names none. It is a pure function: who appends a fact numbers its records by it (R39),
// and whoever derives the log later comes to the same numbers.
func Count(before Standing, fact narad.Authority) (run string, n int) {
	run, mapping := runOfLog(fact), before.Mapping
	if begins(fact, run) {
		mapping = facts.Harness(fact.Envelope())
	}
	if run == "" || mapping != Mapping || before.Stopped && !ends(fact, run) {
		return "", 0
	}
	if n = len(kindsOf(fact)); n == 0 {
		return "", 0
	}
	return run, n
}

// runOfLog returns the root run whose log a fact may be in, "" for none.
func runOfLog(fact narad.Authority) string {
	if w, ok := facts.Read[facts.Withdrawn](fact, facts.InputWithdrawn); ok {
		return w.RunID
	}
	if e := fact.Envelope(); !e.Projection() {
		return e.RootRunID
	}
	return ""
}

// begins reports whether a fact is the first of a log: it says which mapping applies.
func begins(fact narad.Authority, run string) bool {
	switch f := fact.(type) {
	case *narad.RunStarted:
		return f.RunID == run
	case *narad.Custom:
		return f.Name == facts.InputWithdrawn
	}
	return false
}

// ends reports whether a fact is the last of a log.
func ends(fact narad.Authority, run string) bool {
	switch f := fact.(type) {
	case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		return f.Envelope().RunID == run
	}
	return false
}

// Standings follows how the logs of a session stand, for who derives them from facts
// alone. The zero value is that of a session without facts.
type Standings struct {
	root string
	now  Standing
}

// Before returns how the log of a fact's root run stands. The fact is the next one: a
// session has one root run at a time.
func (s *Standings) Before(fact narad.Authority) Standing {
	if run := runOfLog(fact); run == "" || run != s.root {
		return Standing{}
	}
	return s.now
}

// Apply adds the fact.
func (s *Standings) Apply(fact narad.Authority) {
	run := runOfLog(fact)
	switch f := fact.(type) {
	case *narad.RunStarted:
		if f.RunID == run {
			s.root, s.now = run, Standing{Mapping: facts.Harness(&f.Event)}
		}
	case *narad.RunStopRequested:
		if run == s.root && f.TargetRunID == run {
			s.now.Stopped = true
		}
	default:
		if run == s.root && ends(fact, run) {
			*s = Standings{}
		}
	}
}
