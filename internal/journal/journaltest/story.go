package journaltest

import (
	"fmt"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/journal"
)

// Story writes the batches of one session with right numbers: it is the naive
// owner that tests need. Its counters move when a fact is written, so a test
// whose batch is refused starts a new story or writes the same facts again.
type Story struct {
	Session string
	Term    journal.Term
	// Head is the last sequence written.
	Head uint64

	runs, workflows map[string]uint64
}

// NewStory starts a session.
func NewStory(session string) *Story {
	return &Story{Session: session, runs: map[string]uint64{}, workflows: map[string]uint64{}}
}

// Place says where a fact is to stand beside its session.
type Place struct {
	Run, Workflow, Log string
	Events, Logs       uint32
	// Size pads the bytes to this size.
	Size int
}

// Fact writes the next fact.
func (s *Story) Fact(place Place) journal.Fact {
	s.Head++
	fact := journal.Fact{
		EventID:    fmt.Sprintf("%d.%08x", s.Head, uint32(s.Head*2654435761)),
		RootRunID:  place.Run,
		WorkflowID: place.Workflow,
		EventCount: place.Events,
		LogRun:     place.Log,
		LogCount:   place.Logs,
	}
	if place.Run != "" {
		s.runs[place.Run]++
		fact.RunSequence = s.runs[place.Run]
	}
	if place.Workflow != "" {
		s.workflows[place.Workflow]++
		fact.WorkflowSequence = s.workflows[place.Workflow]
	}
	text := fmt.Sprintf(`{"session":%q,"sequence":%d,"run":%q}`, s.Session, s.Head, place.Run)
	fact.Bytes = []byte(text + strings.Repeat(" ", max(0, place.Size-len(text))))
	return fact
}

// Facts writes n plain facts, each with one event.
func (s *Story) Facts(n int) []journal.Fact {
	facts := make([]journal.Fact, n)
	for i := range facts {
		facts[i] = s.Fact(Place{Events: 1})
	}
	return facts
}

// Batch makes a batch of facts that the story has just written.
func (s *Story) Batch(facts ...journal.Fact) journal.Batch {
	return journal.Batch{
		Session:    s.Session,
		ExpectHead: s.Head - uint64(len(facts)),
		ExpectTerm: s.Term,
		Time:       Start.Add(time.Duration(s.Head) * time.Millisecond),
		Facts:      facts,
	}
}

// Rows makes a batch that only changes rows.
func (s *Story) Rows(changes ...journal.Change) journal.Batch {
	batch := s.Batch()
	batch.Changes = changes
	return batch
}

// Start is the time at which stories begin.
var Start = time.Date(2026, 3, 1, 12, 0, 0, 123_000, time.UTC)

// Probes are the names that Everything asks for.
type Probes struct {
	sessions, executors seen[string]
	spans               seen[span]
	events              seen[event]
	keys                seen[journal.Key]
}

type span struct{ session, kind, id string }

type event struct{ session, id string }

// seen is a set in the order of arrival.
type seen[K comparable] struct {
	order []K
	index map[K]bool
}

func (s *seen[K]) add(key K) {
	if s.index == nil {
		s.index = map[K]bool{}
	}
	if !s.index[key] {
		s.index[key] = true
		s.order = append(s.order, key)
	}
}

// Add notes every name in a batch, whatever becomes of it.
func (p *Probes) Add(batch journal.Batch) {
	p.sessions.add(batch.Session)
	for _, fact := range batch.Facts {
		p.events.add(event{batch.Session, fact.EventID})
		for kind, id := range map[string]string{"run": fact.RootRunID, "workflow": fact.WorkflowID, "log": fact.LogRun} {
			if id != "" {
				p.spans.add(span{batch.Session, kind, id})
			}
		}
	}
	for _, change := range batch.Changes {
		switch change := change.(type) {
		case journal.Put:
			p.addKey(change.Row.Key())
		case journal.Remove:
			p.addKey(change.Key)
		}
	}
}

func (p *Probes) addKey(key journal.Key) {
	p.keys.add(key)
	switch key.Kind {
	case journal.KindToken:
		p.executors.add(key.Space)
	case journal.KindLease:
		p.executors.add(key.ID)
	}
}
