package script_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// TestStopAnywhere stops a run after every batch of every scenario: it ends cancelled
// and at once, with nothing open and nothing begun after the stop, and all facts are
// such as a host may append (R14).
func TestStopAnywhere(t *testing.T) {
	for _, s := range scenarios(t) {
		batches := 0
		synctest.Test(t, func(t *testing.T) { batches = s.play(t, agenttest.Options{}, never).Batches() })
		for n := 1; n < batches; n++ {
			t.Run(fmt.Sprintf("%s/%d", s.name, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { s.stopAfter(t, n) })
			})
		}
	}
}

func (s *scenario) stopAfter(t *testing.T, batches int) {
	host := agenttest.New(t, agenttest.Options{Answer: s.answer})
	for i, text := range s.prompts {
		a := host.Open(s.kind)
		run := host.Start(a, text)
		s.act(t, host, run, a, i+1)
		if !host.Reach(batches, run.Done()) {
			closeTwice(t, a)
			continue
		}
		stopped := time.Now()
		run.Stop()
		ending := run.Wait()
		if ending.Outcome != agent.Cancelled && host.Snapshot().Runs[run.RunID].State != session.Cancelled {
			closeTwice(t, a) // it had ended before
			continue
		}
		if took := time.Since(stopped); took > 0 {
			t.Errorf("the stopped run ended after %s, want at once", took)
		}
		nothingBegins(t, host)
		closeTwice(t, a)
	}
	closed(t, host)
}

// nothingBegins fails if a tool, a run or a question begins after a stop.
func nothingBegins(t *testing.T, host *agenttest.Session) {
	t.Helper()
	stopped := map[string]bool{}
	for _, rec := range host.Facts() {
		root := rec.Envelope().RootRunID
		switch rec.(type) {
		case *narad.RunStopRequested:
			stopped[root] = true
		case *narad.ToolCallStarted, *narad.RunStarted, *narad.InterruptRequested:
			if stopped[root] {
				t.Errorf("%s after the stop; facts:\n%s", rec.Type(), host.Story())
			}
		}
	}
}
