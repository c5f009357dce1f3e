package index_test

import (
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// The row of a workflow that has ended still says where it began: it is an interval.
func TestWorkflowThatEndedKeepsItsBeginning(t *testing.T) {
	s := newShelf(t)
	in := narad.Event{WorkflowID: "w"}
	s.must(
		facts.Session(facts.SessionCreated, facts.Created{WorkspaceID: "default"}),
		&narad.WorkflowStarted{Event: in},
		&narad.WorkflowEnded{Event: in, Kind: narad.TypeWorkflowFinished},
	)
	got, _ := row[journal.WorkflowRow](s, journal.WorkflowKey("w"))
	if got.First != 2 || got.Last != 3 {
		t.Errorf("got %+v, want the interval from 2 to 3", got)
	}
	s.verify()
}
