package field_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/mahati-host/mahati/narad"
)

// oneNode is a workflow with one run.
const oneNode = "workflow: 1\nnodes: {one: {script: [{say: hi}], prompt: flow, next: end}, end: {end: completed}}"

// Case 109. Of many starts at once one begins; each of the others gets a definite answer, to
// wait or to be refused, and is held to it. At no place in the journal are two top-level
// executions active, also where a start meets the end of a run.
func TestCase109StartsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps: [{delay: 2ms}, {say: \"{{prompt}}\"}]\n")
	b.session("s1")
	const starts = 100
	answers := make([]answer, starts)
	var all sync.WaitGroup
	for i := range starts {
		all.Go(func() {
			path, body := "/commands/message", object{"sessionId": "s1", "content": fmt.Sprint("at once ", i), "commandId": fmt.Sprint("c", i)}
			switch i % 4 {
			case 0:
				body["whenBusy"] = "reject"
			case 1:
				path, body = "/commands/start-workflow", object{"sessionId": "s1", "definition": oneNode, "commandId": fmt.Sprint("c", i)}
			}
			answers[i] = b.try(http.MethodPost, path, body)
		})
	}
	all.Wait()
	promised := map[string]bool{}
	counts := map[string]int{}
	for i, a := range answers {
		word := a.field("status")
		if word == "" {
			word = a.field("code")
		}
		counts[word]++
		switch {
		case a.status == http.StatusAccepted && a.field("runId") != "":
			promised[a.field("runId")] = true
		case a.status == http.StatusConflict && i%4 == 0 && a.field("runId")+a.field("workflowId") != "": // refused, naming what is active
		case a.status == http.StatusConflict && i%4 == 1: // a run or a message holds the slot
		case a.status == http.StatusAccepted && a.field("workflowId") != "":
		case a.status == http.StatusServiceUnavailable && word == "overloaded" && a.header.Get("Retry-After") != "": // nothing was done
		default:
			t.Errorf("start %d: got %v, want a definite answer", i, a)
		}
	}
	t.Logf("answers: %v", counts)
	if len(promised) < 2 {
		t.Fatalf("%d were accepted", len(promised))
	}

	// Starts in the moment a run ends: as soon as its terminal is seen.
	live := b.stream("s1", "?afterSessionSequence=0", "")
	ended := map[string]bool{}
	for extra := sized(30, 300); len(ended) < len(promised); {
		_, e := live.fact()
		if !terminal(e) || e.Envelope().RunID != e.Envelope().RootRunID || e.Envelope().WorkflowID != "" {
			continue
		}
		ended[e.Envelope().RunID] = true
		if extra--; extra < 0 {
			continue
		}
		when := []string{"reject", "queue"}[extra%2]
		a := b.post("/commands/message", object{"sessionId": "s1", "content": "at an end", "whenBusy": when})
		switch {
		case a.status == http.StatusAccepted:
			promised[a.field("runId")] = true
		case a.status != http.StatusConflict || when != "reject":
			t.Errorf("a start at an end: got %v", a)
		}
	}

	active, started := "", map[string]int{}
	for _, e := range decode(t, b.facts("s1")) {
		run := e.Envelope().RunID
		switch {
		case e.Type() == narad.TypeRunStarted:
			if active != "" {
				t.Errorf("at %d run %s began while %s was active", e.Envelope().SessionSequence, run, active)
			}
			active = run
			if e.Envelope().WorkflowID == "" { // that of a workflow was promised with it
				started[run]++
			}
		case terminal(e):
			if active != run {
				t.Errorf("at %d run %s ended while %s was active", e.Envelope().SessionSequence, run, active)
			}
			active = ""
		}
	}
	for run := range promised {
		if started[run] != 1 || !ended[run] {
			t.Errorf("run %s was promised and began %d times, ended: %v", run, started[run], ended[run])
		}
	}
	if len(started) != len(promised) {
		t.Errorf("%d runs began, %d were promised", len(started), len(promised))
	}
	b.state("s1")
}
