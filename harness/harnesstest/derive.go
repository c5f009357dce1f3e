package harnesstest

import (
	"fmt"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/narad"
)

// Derive makes the logs of a session's facts from the first one on, by their runs, each as
// long as it is now.
func Derive(list []narad.Authority, sign func(run string, sequence uint64) harness.Cursor) (map[string][]harness.Event, error) {
	logs, runs := map[string][]harness.Event{}, map[string]harness.Run{}
	var standings harness.Standings
	for _, fact := range list {
		id, n := harness.Count(standings.Before(fact), fact)
		standings.Apply(fact)
		if n == 0 {
			continue
		}
		run, known := runs[id]
		if !known {
			var err error
			if run, err = harness.RunOf(fact); err != nil {
				return nil, fmt.Errorf("fact %d begins a log: %w", fact.Envelope().SessionSequence, err)
			}
			runs[id] = run
		}
		var at func(uint64) harness.Cursor
		if sign != nil {
			at = func(sequence uint64) harness.Cursor { return sign(id, sequence) }
		}
		events, err := run.Project(fact, uint64(len(logs[id]))+1, n, at)
		if err != nil {
			return nil, fmt.Errorf("fact %d: %w", fact.Envelope().SessionSequence, err)
		}
		logs[id] = append(logs[id], events...)
	}
	return logs, nil
}
