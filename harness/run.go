package harness

import (
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// Run is what applies to all of a run's log, as the start of the run recorded it (R35).
type Run struct {
	ID      string
	Mapping int
	Policy  Policy
	// Agent is the name of the session's agent.
	Agent string
}

// RunOf reads a run from the first fact of its log: its run.started, or, where the run was
// withdrawn before it began, the withdrawal. Mapping is 0 for a run that has no log.
func RunOf(first narad.Authority) (Run, error) {
	run := runOfLog(first)
	if run == "" || !begins(first, run) {
		return Run{}, fmt.Errorf("%s begins no run: %w", first.Type(), ErrNotOfRun)
	}
	e := first.Envelope()
	policy, err := ParsePolicy(facts.HarnessPolicy(e))
	if err != nil {
		return Run{}, fmt.Errorf("the policy that run %s recorded: %w", run, err)
	}
	return Run{ID: run, Mapping: facts.Harness(e), Policy: policy, Agent: facts.Agent(e)}, nil
}

// Errors of projecting. They tell of a caller that mixed things up, never of a fact.
var (
	ErrNotOfRun = errors.New("the fact is not of this run's log")
	ErrMapping  = errors.New("unknown mapping version")
	ErrCount    = errors.New("the fact has another number of records")
)

// Project returns the n records of a fact, the first with the sequence first, from the
// fact alone: the same whenever and from wherever a log is derived (R35). n is what
// [Count] said when the fact was appended, 0 gives nothing. sign makes the cursor that a
// checkpoint names, for the sequence before it; nil leaves its token empty.
func (r Run) Project(fact narad.Authority, first uint64, n int, sign func(sequence uint64) Cursor) ([]Event, error) {
	if n == 0 {
		return nil, nil
	}
	kinds := kindsOf(fact)
	switch {
	case r.Mapping != Mapping:
		return nil, fmt.Errorf("%w %d", ErrMapping, r.Mapping)
	case runOfLog(fact) != r.ID:
		return nil, fmt.Errorf("%s: %w", fact.Type(), ErrNotOfRun)
	case len(kinds) != n:
		return nil, fmt.Errorf("%s: %d records, not %d: %w", fact.Type(), len(kinds), n, ErrCount)
	}
	events := make([]Event, n)
	for i, kind := range kinds {
		p := projection{run: r, fact: fact, in: attribute(fact, r.ID), event: &events[i], sign: sign}
		events[i] = Event{Version: Version, RunID: r.ID, Sequence: first + uint64(i), Type: kind}
		if err := p.fill(); err != nil {
			return nil, fmt.Errorf("%s of %s: %w", kind, fact.Type(), err)
		}
	}
	return events, nil
}

// attribute tells the nested run that a fact is of. What a gate run asks is asked for the
// run above it (R10).
func attribute(fact narad.Authority, root string) In {
	e := fact.Envelope()
	run := e.RunID
	if above := facts.GateOf(e); above != "" {
		run = above
	}
	if run == root {
		run = ""
	}
	return In{SubrunID: run}
}
