package decide_test

import (
	"strings"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/harness/harnesstest"
	"github.com/mahati-host/mahati/narad"
)

// checkLogs derives the headless logs of the facts so far and judges each (R35, R36): the
// log of every root run, and of every message that was withdrawn.
func (b *bed) checkLogs() {
	b.t.Helper()
	logs, err := harnesstest.Derive(b.list, nil)
	if err != nil {
		b.t.Fatalf("derive logs: %v\nof\n%s", err, tellAll(b.list))
	}
	for run, whole := range b.logged() {
		if faults := harnesstest.Faults(run, logs[run], whole); len(faults) > 0 {
			b.t.Fatalf("the log of %s:\n%s\n%s\nof\n%s", run, strings.Join(faults, "\n"), tellLog(logs[run]), tellAll(b.list))
		}
		delete(logs, run)
	}
	b.checkSilence()
	for run := range logs {
		b.t.Fatalf("a log of %s, which is no root run", run)
	}
}

// checkSilence demands that a log says nothing from the stop of its run to its end, and
// then that it was canceled (R36).
func (b *bed) checkSilence() {
	b.t.Helper()
	logs, _ := harnesstest.Derive(b.list, nil)
	for i, f := range b.list {
		stop, ok := f.(*narad.RunStopRequested)
		if !ok || stop.TargetRunID != stop.RootRunID {
			continue
		}
		before, _ := harnesstest.Derive(b.list[:i], nil)
		run := stop.RootRunID
		var types []string
		for _, e := range logs[run][len(before[run]):] {
			types = append(types, string(e.Type))
		}
		want := ""
		if b.logged()[run] {
			want = "run.canceled checkpoint"
		}
		if got := strings.Join(types, " "); got != want {
			b.t.Fatalf("after the stop of %s: got %q, want %q\nof\n%s", run, got, want, tellAll(b.list))
		}
	}
}

// logged are the runs that have a log, and whether they are over.
func (b *bed) logged() map[string]bool {
	runs := map[string]bool{}
	for _, f := range b.list {
		if start, ok := f.(*narad.RunStarted); ok && start.RunID == start.RootRunID {
			r, _ := b.whole.Run(start.RunID)
			runs[start.RunID] = r.State.Ended()
		}
		if w, ok := facts.Read[facts.Withdrawn](f, facts.InputWithdrawn); ok {
			runs[w.RunID] = true
		}
	}
	return runs
}

func tellLog(log []harness.Event) string {
	var lines []string
	for _, e := range log {
		lines = append(lines, string(e.Type)+" "+e.EventID+" <- "+e.CausationID+" "+string(e.Payload))
	}
	return strings.Join(lines, "\n")
}
