package session

import "github.com/mahati-host/mahati/narad"

// message is one message of the transcript.
type message struct {
	MessageID       string
	Role            narad.Role
	Scope           narad.Scope
	RootRunID       string
	RunID           string
	Timestamp       string
	SessionSequence int64
	AttachmentIDs   []string
	content         []byte
	streaming       bool
	redacted        bool
	replacement     *string
}

// transcript is the messages in the order in which they first appeared.
type transcript struct {
	byID  map[string]*message
	order []*message
}

func newTranscript() transcript { return transcript{byID: map[string]*message{}} }

// put adds a message, or replaces the one of that id at its place.
func (t *transcript) put(m *message) {
	if old := t.byID[m.MessageID]; old != nil {
		*old = *m
		return
	}
	t.byID[m.MessageID] = m
	t.order = append(t.order, m)
}

// drop forgets a message of a state that keeps open work alone.
func (t *transcript) drop(id string) {
	delete(t.byID, id)
	for i, m := range t.order {
		if m.MessageID == id {
			t.order = append(t.order[:i], t.order[i+1:]...)
			return
		}
	}
}

// thought is one stretch of reasoning.
type thought struct {
	ReasoningID string
	MessageID   string
	RunID       string
	Timestamp   string
	content     []byte
	completed   bool
}

// thoughts is the reasoning in the order in which it first appeared.
type thoughts struct {
	byID  map[string]*thought
	order []*thought
}

func newThoughts() thoughts { return thoughts{byID: map[string]*thought{}} }

func (t *thoughts) put(r *thought) {
	if old := t.byID[r.ReasoningID]; old != nil {
		*old = *r
		return
	}
	t.byID[r.ReasoningID] = r
	t.order = append(t.order, r)
}

func (t *thoughts) drop(id string) {
	delete(t.byID, id)
	for i, r := range t.order {
		if r.ReasoningID == id {
			t.order = append(t.order[:i], t.order[i+1:]...)
			return
		}
	}
}

// guardConversation applies the rules of messages and reasoning. The second result
// is false for an event of another profile.
func (s *State) guardConversation(rec narad.Authority, strict bool) (Code, bool) {
	switch r := rec.(type) {
	case *narad.MessageUserRecorded:
		return s.guardFresh(r.MessageID, strict), true
	case *narad.MessageTextStarted:
		return s.guardFresh(r.MessageID, strict), true
	case *narad.MessageTextDelta:
		return s.guardStream(r.MessageID, r.RunID, strict), true
	case *narad.MessageTextCompleted:
		return s.guardStream(r.MessageID, r.RunID, strict), true
	case *narad.MessageRedacted:
		if s.messages.byID[r.MessageID] == nil && !s.opt.NoDisplay {
			return MessageNotFound, true
		}
		return "", true
	case *narad.ReasoningStarted:
		if strict && s.reasoning.byID[r.ReasoningID] != nil {
			return ReasoningExists, true
		}
		return "", true
	case *narad.ReasoningDelta:
		return s.guardReasoning(r.ReasoningID, strict), true
	case *narad.ReasoningCompleted:
		return s.guardReasoning(r.ReasoningID, strict), true
	}
	return "", false
}

func (s *State) guardFresh(messageID string, strict bool) Code {
	if strict && s.messages.byID[messageID] != nil {
		return MessageExists
	}
	return ""
}

func (s *State) guardStream(messageID, runID string, strict bool) Code {
	m := s.messages.byID[messageID]
	switch {
	case m == nil:
		return MessageNotFound
	case strict && !m.streaming:
		return MessageCompleted
	case strict && m.RunID != "" && runID != "" && m.RunID != runID:
		return MessageRunMismatch
	}
	return ""
}

func (s *State) guardReasoning(id string, strict bool) Code {
	switch r := s.reasoning.byID[id]; {
	case r == nil:
		return ReasoningNotFound
	case strict && r.completed:
		return ReasoningCompleted
	}
	return ""
}

func (s *State) changeConversation(rec narad.Authority) {
	switch r := rec.(type) {
	case *narad.MessageUserRecorded:
		if s.opt.NoDisplay {
			return
		}
		m := s.newMessage(&r.Event, r.MessageID, narad.RoleUser, r.MessageScope)
		m.content, m.AttachmentIDs = []byte(r.Content), r.AttachmentIDs
		s.messages.put(m)
	case *narad.MessageTextStarted:
		m := s.newMessage(&r.Event, r.MessageID, r.Role, r.MessageScope)
		m.streaming = true
		s.messages.put(m)
	case *narad.MessageTextDelta:
		m := s.messages.byID[r.MessageID]
		m.streaming = true
		if !s.opt.NoDisplay {
			m.content = append(m.content, r.Delta...)
		}
	case *narad.MessageTextCompleted:
		s.messages.byID[r.MessageID].streaming = false
		if s.opt.NoDisplay {
			s.messages.drop(r.MessageID)
		}
	case *narad.MessageRedacted:
		if m := s.messages.byID[r.MessageID]; m != nil {
			m.redacted, m.replacement = true, r.DisplayReplacement
		}
	default:
		s.changeReasoning(rec)
	}
}

func (s *State) newMessage(e *narad.Event, id string, role narad.Role, scope narad.Scope) *message {
	return &message{
		MessageID: id, Role: role, Scope: scope, RootRunID: s.rootOf(e), RunID: e.RunID,
		Timestamp: e.Timestamp, SessionSequence: e.SessionSequence,
	}
}

// rootOf returns the run tree that a message belongs to: its own, or the one that
// is active when it comes.
func (s *State) rootOf(e *narad.Event) string {
	if e.RootRunID != "" {
		return e.RootRunID
	}
	if r := s.runs[e.RunID]; r != nil {
		return r.RootRunID
	}
	return s.activeRoot
}

func (s *State) changeReasoning(rec narad.Authority) {
	switch r := rec.(type) {
	case *narad.ReasoningStarted:
		s.reasoning.put(&thought{
			ReasoningID: r.ReasoningID, MessageID: r.MessageID, RunID: r.RunID, Timestamp: r.Timestamp,
		})
	case *narad.ReasoningDelta:
		if t := s.reasoning.byID[r.ReasoningID]; !s.opt.NoDisplay {
			t.content = append(t.content, r.Delta...)
		}
	case *narad.ReasoningCompleted:
		s.reasoning.byID[r.ReasoningID].completed = true
		if s.opt.NoDisplay {
			s.reasoning.drop(r.ReasoningID)
		}
	}
}
