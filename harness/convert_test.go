package harness_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/harness/harnesstest"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session/sessiontest"
)

// convert makes the logs of a trace, by their runs, and tells which runs have ended.
func convert(lines [][]byte) (logs map[string][]harness.Event, ended map[string]bool, err error) {
	c := harness.NewConverter()
	logs, ended = map[string][]harness.Event{}, map[string]bool{}
	for i, line := range lines {
		rec, err := narad.Decode(line)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		events, err := c.Add(rec)
		if err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		for _, e := range events {
			logs[e.RunID] = append(logs[e.RunID], e)
			if e.Type == harness.RunCompleted || e.Type == harness.RunCanceled {
				ended[e.RunID] = true
			}
		}
	}
	return logs, ended, nil
}

// Whatever a legal trace of any host holds, the logs of its runs are sound (R35, R36).
func TestLogsOfRandomTraces(t *testing.T) {
	records := 0
	for seed := range int64(300) {
		trace := sessiontest.Trace(rand.New(rand.NewSource(seed)), 150)
		logs, ended, err := convert(trace)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for run, log := range logs {
			records += len(log)
			if faults := harnesstest.Faults(run, log, ended[run]); len(faults) > 0 {
				t.Fatalf("seed %d, run %s:\n%s", seed, run, strings.Join(faults, "\n"))
			}
		}
	}
	if records < 10_000 {
		t.Errorf("only %d records were looked at", records)
	}
}
