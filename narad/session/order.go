package session

import (
	"strings"

	"github.com/mahati-host/mahati/narad"
)

// memory remembers the contents of event ids: all of them, the last few, or none.
type memory struct {
	limit  int
	prints map[string]uint64
	ring   []string
	next   int
}

func newMemory(limit int) memory {
	m := memory{limit: limit}
	if limit != 0 {
		m.prints = map[string]uint64{}
	}
	return m
}

// known says whether an id was seen, and whether with the same content.
func (m *memory) known(id string, print uint64) (seen, same bool) {
	old, seen := m.prints[id]
	return seen, old == print
}

func (m *memory) add(id string, print uint64) {
	if m.limit == 0 {
		return
	}
	id = strings.Clone(id) // do not hold on to the whole record
	m.prints[id] = print
	if m.limit < 0 {
		return
	}
	if len(m.ring) < m.limit {
		m.ring = append(m.ring, id)
		return
	}
	delete(m.prints, m.ring[m.next])
	m.ring[m.next] = id
	m.next = (m.next + 1) % m.limit
}

// place says where an event stands in the orderings: Applied means that it is the
// next one.
func (s *State) place(rec narad.Authority) Result {
	e := rec.Envelope()
	if s.gap {
		return result(Gap, GapActive)
	}
	if s.sessionID != "" && e.SessionID != s.sessionID {
		return result(Ignored, OtherSession)
	}
	if s.opt.Remember != 0 {
		if seen, same := s.seen.known(e.EventID, printOf(rec)); seen && same {
			return Result{Kind: Duplicate}
		} else if seen {
			return result(Gap, EventConflict)
		}
	}
	switch {
	case e.SessionSequence <= s.last:
		return result(Ignored, SequencePassed)
	case e.SessionSequence == s.last+1:
	case s.last == 0 && s.covers > 0 && e.SessionSequence == s.covers+1:
	default:
		return result(Gap, SessionGap)
	}
	if !s.nextOfWorkflow(e) {
		return result(Gap, WorkflowGap)
	}
	return Result{}
}

// nextOfWorkflow reports whether an event takes the next place of its workflow. A
// state that began after a snapshot meets workflows in their middle.
func (s *State) nextOfWorkflow(e *narad.Event) bool {
	if e.WorkflowID == "" || e.WorkflowSequence == 0 {
		return true
	}
	last, known := s.workflowLast[e.WorkflowID]
	return e.WorkflowSequence == last+1 || !known && s.joins(e)
}

// joins reports whether an event belongs to a state that began after a snapshot.
func (s *State) joins(e *narad.Event) bool {
	return s.joined || s.last == 0 && e.SessionSequence > 1
}

// printOf returns a record's fingerprint, also of one that was never decoded.
func printOf(rec narad.Authority) uint64 {
	if print := rec.Envelope().Fingerprint(); print != 0 {
		return print
	}
	data, err := narad.Encode(rec)
	if err != nil {
		return 0
	}
	again, err := narad.Decode(data)
	if err != nil {
		return 0
	}
	return again.(narad.Authority).Envelope().Fingerprint()
}

// commit moves the cursors past an event.
func (s *State) commit(rec narad.Authority) {
	e := rec.Envelope()
	if s.sessionID == "" {
		s.sessionID = strings.Clone(e.SessionID) // do not hold on to the whole record
	}
	s.joined = s.joins(e)
	s.last = e.SessionSequence
	if s.opt.Graphs != nil {
		s.opt.Graphs.Apply(rec)
	}
	if s.opt.Remember != 0 {
		s.seen.add(e.EventID, printOf(rec))
	}
	switch _, ended := rec.(*narad.WorkflowEnded); {
	case e.WorkflowID == "" || e.WorkflowSequence == 0:
	case ended && s.opt.NoDisplay:
		delete(s.workflowLast, e.WorkflowID) // nothing can follow a workflow's terminal
	default:
		s.workflowLast[e.WorkflowID] = e.WorkflowSequence
	}
	if e.RootRunID == "" || e.Sequence == 0 {
		return
	}
	if s.trees[e.RootRunID] == nil && s.opt.NoDisplay {
		return // a run tree that has ended is forgotten
	}
	t := s.tree(e.RootRunID)
	t.last = max(t.last, e.Sequence)
}

// Number gives an event its places: the session and, where its envelope names a
// workflow or a run tree, the next sequences of those.
func (s *State) Number(rec narad.Authority) {
	e := rec.Envelope()
	e.SessionID = s.sessionID
	e.SessionSequence = s.last + 1
	if e.WorkflowID != "" {
		e.WorkflowSequence = s.workflowLast[e.WorkflowID] + 1
	}
	if e.RootRunID == "" {
		return
	}
	e.Sequence = 1
	if t := s.trees[e.RootRunID]; t != nil {
		e.Sequence = t.last + 1
	}
}
