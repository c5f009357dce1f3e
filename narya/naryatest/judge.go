package naryatest

import (
	"fmt"
	"slices"

	"github.com/mahati-host/mahati/narya"
)

// Judge follows a stream from its beginning.
type Judge struct {
	last     int64
	sessions map[string]*session
	types    map[narya.Type]int
}

// NewJudge returns a judge of a stream that begins with the first event of each session.
func NewJudge() *Judge {
	return &Judge{sessions: map[string]*session{}, types: map[narya.Type]int{}}
}

// session is what a client knows of one.
type session struct {
	before     narya.Event // the event before, of this session
	status     narya.Status
	posture    narya.Posture
	repository string
	provider   string
	model      string
	turns      map[string]*turn
	lanes      map[string]*lane
	calls      map[string]mark
	asks       map[string]mark
	entries    map[string]entry
	withdrawn  map[string]bool
	flows      map[string]narya.WorkflowStatus
}

// mark is where something that begins and ends stands.
type mark int

const (
	never mark = iota
	open
	closed
)

type turn struct {
	is   mark
	lane string
}

type lane struct {
	is   mark
	kind narya.LaneKind
	turn string
}

type entry struct {
	kind narya.EntryKind
	turn string
}

// Types returns how many events of each type were seen.
func (j *Judge) Types() map[narya.Type]int { return j.types }

// See judges the next event. An error names the promise that it breaks.
func (j *Judge) See(e narya.Event) error {
	if j.last != 0 && e.ID <= j.last {
		return broken(e, "numbers rise", "the number before is %d", j.last)
	}
	gap := e.ID != j.last+1
	j.last = e.ID
	j.types[e.Type()]++
	if e.SessionID == "" {
		if e.Type() != narya.TypeExtension {
			return broken(e, "only extensions speak for the host", "no session")
		}
		return nil
	}
	s := j.sessions[e.SessionID]
	if s == nil {
		created, ok := e.Payload.(*narya.SessionCreated)
		if !ok {
			return broken(e, "session-created is the first event of its session", "it is not")
		}
		j.sessions[e.SessionID] = begin(e, created.Session)
		return nil
	}
	err := s.see(e, gap)
	s.before = e
	return err
}

func begin(e narya.Event, is narya.Session) *session {
	return &session{
		before: e, status: is.Status, posture: is.Posture, repository: is.Repository, provider: is.Provider, model: is.Model,
		turns: map[string]*turn{}, lanes: map[string]*lane{}, calls: map[string]mark{}, asks: map[string]mark{},
		entries: map[string]entry{}, withdrawn: map[string]bool{}, flows: map[string]narya.WorkflowStatus{},
	}
}

func broken(e narya.Event, promise, format string, args ...any) error {
	return fmt.Errorf("%s: event %d %s %+v: %s", promise, e.ID, e.Type(), e.Payload, fmt.Sprintf(format, args...))
}

// see judges an event of a session; gap says that it does not follow the event before it in
// the stream.
func (s *session) see(e narya.Event, gap bool) error {
	if s.before.Type() == narya.TypeSessionCreated {
		if l, ok := e.Payload.(*narya.LaneStarted); !ok || l.Kind != narya.LaneMain || gap {
			return broken(e, "lane-started of the main lane is the second event of a session", "it is not")
		}
	}
	if err := s.pairs(e, gap); err != nil {
		return err
	}
	switch p := e.Payload.(type) {
	case *narya.SessionCreated:
		return broken(e, "a session is created once", "again")
	case *narya.SessionStatusChanged:
		return s.statusChanged(e, p)
	case *narya.SessionPostureChanged:
		if p.Posture == s.posture {
			return broken(e, "a posture event only when it moved", "it was %s", s.posture)
		}
		s.posture = p.Posture
	case *narya.SessionMoved:
		if p.Repository == p.PreviousRepository || p.PreviousRepository != s.repository {
			return broken(e, "session-moved only if the path changed", "it was %q", s.repository)
		}
		s.repository = p.Repository
	case *narya.ModelSwitch:
		if p.Provider == s.provider && p.Model == s.model {
			return broken(e, "model-switch only if one of them changed", "it was so")
		}
		s.provider, s.model = p.Provider, p.Model
	case *narya.LaneStarted, *narya.LaneFinished:
		return s.ofLane(e)
	case *narya.TurnStarted:
		return s.turnStarted(e, p)
	case *narya.TurnFinished:
		return s.turnFinished(e, p)
	case *narya.MessageStart:
		return s.inTurn(e, p.TurnID)
	case *narya.MessageDelta:
		return s.inTurn(e, p.TurnID)
	case *narya.MessageEnd:
		return s.inTurn(e, p.TurnID)
	case *narya.EntryAppended:
		return s.entryAppended(e, p)
	case *narya.ToolCallStarted, *narya.ToolCallUpdate, *narya.ToolCallFinished:
		return s.ofCall(e)
	case *narya.PermissionAsked:
		return s.asked(e, p.PermissionID, p.ToolCallID)
	case *narya.PermissionDecided:
		if s.asks[p.PermissionID] != open {
			return broken(e, "one permission-decided for each permission-asked", "it is not open")
		}
		s.asks[p.PermissionID] = closed
	case *narya.QuestionAsked:
		if err := s.asked(e, p.QuestionID, p.ToolCallID); err != nil {
			return err
		}
		s.asks[p.QuestionID] = closed // no event answers it
	case *narya.QueuedInputWithdrawn:
		return s.inputWithdrawn(e, p)
	case *narya.WorkflowProgress:
		return s.progressed(e, p)
	}
	return nil
}

// pairs demands what stands right behind another event.
func (s *session) pairs(e narya.Event, gap bool) error {
	follows := func(promise string, ok bool) error {
		if !ok || gap {
			return broken(e, promise, "behind %s %+v", s.before.Type(), s.before.Payload)
		}
		return nil
	}
	now, _ := e.Payload.(*narya.EntryAppended)
	switch was := s.before.Payload.(type) {
	case *narya.ToolCallStarted:
		return follows("tool-call-started stands right before its entry", now != nil && now.Kind == narya.EntryToolCall)
	case *narya.ToolCallFinished:
		return follows("tool-call-finished stands right before its entry", now != nil && now.Kind == narya.EntryToolResult)
	case *narya.EntryAppended:
		switch was.Kind {
		case narya.EntryAssistantMessage:
			end, ok := e.Payload.(*narya.MessageEnd)
			return follows("message-end stands right after its entry", ok && end.EntryID == was.EntryID)
		case narya.EntryIntercom:
			_, ok := e.Payload.(*narya.IntercomMessage)
			return follows("intercom-message stands right after its entry", ok)
		}
	}
	was, _ := s.before.Payload.(*narya.EntryAppended)
	switch e.Payload.(type) {
	case *narya.MessageEnd:
		return follows("message-end stands right after its entry", was != nil && was.Kind == narya.EntryAssistantMessage)
	case *narya.IntercomMessage:
		return follows("intercom-message stands right after its entry", was != nil && was.Kind == narya.EntryIntercom)
	}
	return nil
}

func (s *session) statusChanged(e narya.Event, p *narya.SessionStatusChanged) error {
	if p.Status == s.status || p.PreviousStatus != s.status {
		return broken(e, "a status event only on a change", "it was %s", s.status)
	}
	if p.Status != narya.Running && s.working() {
		return broken(e, "every status but running stands after what ended", "something is open")
	}
	s.status = p.Status
	return nil
}

// working reports whether a turn or a workflow is under way.
func (s *session) working() bool {
	for _, t := range s.turns {
		if t.is == open {
			return true
		}
	}
	for _, status := range s.flows {
		if status == narya.WorkflowRunning {
			return true
		}
	}
	return false
}

func (s *session) ofLane(e narya.Event) error {
	l := s.lanes[e.LaneID]
	switch p := e.Payload.(type) {
	case *narya.LaneStarted:
		if l != nil {
			return broken(e, "a lane opens once", "again")
		}
		s.lanes[e.LaneID] = &lane{is: open, kind: p.Kind}
	case *narya.LaneFinished:
		switch {
		case l == nil || l.is != open || l.kind == narya.LaneMain:
			return broken(e, "a lane that is not the main one closes once", "it is not open")
		case l.turn == "" || s.turns[l.turn].is != closed:
			return broken(e, "lane-finished stands after the turn of the lane", "its turn is open")
		}
		l.is = closed
	}
	return nil
}

func (s *session) turnStarted(e narya.Event, p *narya.TurnStarted) error {
	l := s.lanes[e.LaneID]
	switch {
	case s.turns[p.TurnID] != nil:
		return broken(e, "a turn starts once", "again")
	case l == nil || l.is != open:
		return broken(e, "lane-started stands before the turn of the lane", "no such lane is open")
	case l.turn != "" && (l.kind != narya.LaneMain || s.turns[l.turn].is == open):
		return broken(e, "a lane has one turn, and the main lane one at a time", "it has %s", l.turn)
	case s.status != narya.Running:
		return broken(e, "running stands before what begins", "the session is %s", s.status)
	}
	l.turn = p.TurnID
	s.turns[p.TurnID] = &turn{open, e.LaneID}
	return nil
}

func (s *session) turnFinished(e narya.Event, p *narya.TurnFinished) error {
	if err := s.inTurn(e, p.TurnID); err != nil {
		return err
	}
	s.turns[p.TurnID].is = closed
	return nil
}

// inTurn demands that a turn is open on the lane of the event.
func (s *session) inTurn(e narya.Event, id string) error {
	t := s.turns[id]
	switch {
	case t == nil || t.is != open:
		return broken(e, "all of a turn stands between its start and its one end", "it is not open")
	case t.lane != e.LaneID:
		return broken(e, "what belongs to a turn is on its lane", "the turn is on %s", t.lane)
	}
	return nil
}

func (s *session) entryAppended(e narya.Event, p *narya.EntryAppended) error {
	if _, known := s.entries[p.EntryID]; known {
		return broken(e, "an entry is appended once", "again")
	}
	s.entries[p.EntryID] = entry{p.Kind, p.TurnID}
	waits := (p.Kind == narya.EntryUserMessage || p.Kind == narya.EntryIntercom) && s.turns[p.TurnID] == nil
	if p.TurnID == "" || waits {
		return nil
	}
	return s.inTurn(e, p.TurnID)
}

func (s *session) ofCall(e narya.Event) error {
	var id, turn string
	want, next := open, open
	switch p := e.Payload.(type) {
	case *narya.ToolCallStarted:
		id, turn, want = p.ToolCallID, p.TurnID, never
	case *narya.ToolCallUpdate:
		id, turn = p.ToolCallID, p.TurnID
	case *narya.ToolCallFinished:
		id, turn, next = p.ToolCallID, p.TurnID, closed
	}
	if s.calls[id] != want {
		return broken(e, "a call starts once, has its output while it is open, and ends once", "it stands at %d", s.calls[id])
	}
	s.calls[id] = next
	return s.inTurn(e, turn)
}

func (s *session) asked(e narya.Event, id, call string) error {
	switch {
	case s.asks[id] != never:
		return broken(e, "a permission or question is asked once", "again")
	case call != "" && s.calls[call] != open:
		return broken(e, "what is asked stands after the start of the call that it names", "no such call is open")
	}
	s.asks[id] = open
	return nil
}

func (s *session) inputWithdrawn(e narya.Event, p *narya.QueuedInputWithdrawn) error {
	is, known := s.entries[p.EntryID]
	if !known || s.withdrawn[p.EntryID] || s.turns[is.turn] != nil {
		return broken(e, "a message is taken back once, and never after its turn began", "it does not wait")
	}
	s.withdrawn[p.EntryID] = true
	return nil
}

func (s *session) progressed(e narya.Event, p *narya.WorkflowProgress) error {
	was, known := s.flows[p.RunID]
	if known && was != narya.WorkflowRunning {
		return broken(e, "the end of a workflow is its last event", "it is %s", was)
	}
	if !known && s.status != narya.Running {
		return broken(e, "running stands before what begins", "the session is %s", s.status)
	}
	s.flows[p.RunID] = p.Status
	return nil
}

// Rest judges a stream whose sessions are all at rest: whatever began has ended.
func (j *Judge) Rest() error {
	for id, s := range j.sessions {
		if s.working() || s.status == narya.Running {
			return fmt.Errorf("session %s is at rest: it is %s, and something is open", id, s.status)
		}
		for name, marks := range map[string]map[string]mark{"call": s.calls, "permission": s.asks} {
			for what, is := range marks {
				if is == open {
					return fmt.Errorf("session %s is at rest: the %s %s is open", id, name, what)
				}
			}
		}
		for lane, is := range s.lanes {
			if is.is == open && is.kind != narya.LaneMain {
				return fmt.Errorf("session %s is at rest: the lane %s is open", id, lane)
			}
		}
	}
	return nil
}

// Seen reports whether each of some types was seen, and which was not.
func (j *Judge) Seen(types ...narya.Type) (missing []narya.Type) {
	return slices.DeleteFunc(slices.Clone(types), func(t narya.Type) bool { return j.types[t] > 0 })
}
