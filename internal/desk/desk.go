package desk

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// State is the desk of one session. The zero value is that of a session without facts.
type State struct {
	// Created is what the session was created with; CreatedAt is "" before that.
	Created   facts.Created
	CreatedAt string
	Archived  bool
	// Queue holds the messages that wait, in their order (R16). Parked says that they
	// wait for a person, since a stop.
	Queue  []Waiting
	Parked bool
	// Posture is attended until somebody says otherwise (R18).
	Posture string
	// Setup is how the session is set up now.
	Setup
	// UpdatedAt is when the session last changed as a whole, ViewedAt when somebody last
	// saw it; Seen says that nothing has changed since then.
	UpdatedAt string
	ViewedAt  string
	Seen      bool
	// Ref is how the agent finds its session again.
	Ref string
	// Votes holds the decisions of single members, by interrupt and request id (R12).
	Votes map[string]map[string]string
	// Ballots holds the votes that decide nothing yet, by interrupt, request id and actor.
	Ballots map[string]map[string]map[string]string

	// Rules are the decisions that are remembered, the oldest first. Those of a lane go with
	// its run.
	Rules []facts.PermissionRule

	// Gates holds the open gate runs (R10).
	Gates map[string]bool
	// Making holds the artifacts that are announced and neither ready nor failed, by id.
	Making map[string]Making
	// Made holds the artifacts of each open run that are ready, the first of them.
	Made map[string][]string
	// Stopping is the root run whose stop was requested, StoppedBy what a client did that
	// requested it.
	Stopping  string
	StoppedBy facts.Cause
	// Said tells of each message of an agent that is not complete where it began.
	Said map[string]int64
	// Spent is what its runs took.
	Spent Spent
	// Intercom is what the session has to do with others.
	Intercom
	// Log is the active root run's place in the headless contract.
	Log Log
}

// Setup is what of a session can be changed for its next run.
type Setup struct {
	Cwd      string
	Title    string
	Provider string
	Model    string
	Variant  string
	Style    string
	Warming  *facts.Warmed
}

// Log is the mapping version that a root run recorded (R1), 0 for a run without a log.
type Log struct {
	RootRunID string
	Mapping   int
}

// Making is an artifact that is not there yet.
type Making struct {
	RunID string
	facts.Material
}

// maxMade bounds what is remembered of a run's artifacts.
const maxMade = 256

// Waiting is a message of the queue, with the command and the headless input that
// brought it: the facts of its run name these, whoever moves the queue (R1).
type Waiting struct {
	facts.Queued
	// Sequence is that of the fact that made it wait, EnqueuedAt its time.
	Sequence   int64
	EnqueuedAt string
	CommandID  string
	InputID    string
}

// Detached reports whether nobody is there to ask (R18).
func (s *State) Detached() bool { return s.Posture == facts.Detached }

// Exists reports whether the session was created.
func (s *State) Exists() bool { return s.CreatedAt != "" }

// Queued returns a waiting message by its run.
func (s *State) Queued(runID string) (Waiting, bool) {
	i := slices.IndexFunc(s.Queue, func(q Waiting) bool { return q.RunID == runID })
	if i < 0 {
		return Waiting{}, false
	}
	return s.Queue[i], true
}

// Apply adds a fact.
func (s *State) Apply(rec narad.Authority) {
	if changesWhole(rec) {
		s.UpdatedAt, s.Seen = rec.Envelope().Timestamp, false
	}
	switch r := rec.(type) {
	case *narad.Custom:
		s.custom(r)
	case *narad.RunStarted:
		s.started(r)
	case *narad.MessageTextStarted:
		if s.Said == nil {
			s.Said = map[string]int64{}
		}
		s.Said[r.MessageID] = r.SessionSequence
	case *narad.MessageTextCompleted:
		delete(s.Said, r.MessageID)
	case *narad.RunStopRequested:
		if r.TargetRunID == r.RootRunID {
			s.Stopping = r.RootRunID
			s.StoppedBy = facts.Cause{CommandID: facts.Caused(&r.Event), InputID: facts.InputID(&r.Event)}
		}
	case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		s.ended(rec.Envelope())
		s.Spent.add(rec)
	case *narad.WorkflowEnded: // one is cancelled by a stop alone
		s.Parked = r.Kind == narad.TypeWorkflowCancelled && len(s.Queue) > 0
		s.Spent.endWorkflow(r.Kind)
	case *narad.InterruptResolved:
		delete(s.Votes, r.InterruptID)
		delete(s.Ballots, r.InterruptID)
	case *narad.Artifact:
		s.artifact(r)
	}
}

// changesWhole reports whether a fact changes the session as a whole: its setup, what is
// executed at its top level, what waits, what somebody is asked, or what another session
// says.
func changesWhole(rec narad.Authority) bool {
	switch r := rec.(type) {
	case *narad.RunStarted, *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		return rec.Envelope().RunID == rec.Envelope().RootRunID
	case *narad.WorkflowStarted, *narad.WorkflowEnded, *narad.InterruptRequested, *narad.InterruptResolved:
		return true
	case *narad.Custom:
		return slices.Contains(wholeSession, r.Name)
	}
	return false
}

var wholeSession = []string{
	facts.SessionCreated, facts.SessionArchived, facts.SessionRestored, facts.InputQueued, facts.InputWithdrawn,
	facts.SessionMoved, facts.SessionTitled, facts.SessionModel, facts.SessionVariant, facts.SessionStyle,
	facts.SessionWarming, facts.Posture, facts.Intercom,
}

// artifact follows the artifacts of open runs.
func (s *State) artifact(r *narad.Artifact) {
	if r.Kind == narad.TypeArtifactAdded {
		if s.Making == nil {
			s.Making = map[string]Making{}
		}
		s.Making[r.ArtifactID] = Making{r.RunID, facts.MaterialOf(&r.Event)}
		return
	}
	delete(s.Making, r.ArtifactID)
	if r.Kind != narad.TypeArtifactReady || len(s.Made[r.RunID]) >= maxMade {
		return
	}
	if s.Made == nil {
		s.Made = map[string][]string{}
	}
	s.Made[r.RunID] = append(s.Made[r.RunID], r.ArtifactID)
}

// started takes the run's message out of the queue. The first run after a stop moves
// what waited.
func (s *State) started(r *narad.RunStarted) {
	if r.RunID == r.RootRunID {
		s.dequeue(r.RunID)
		s.Parked = false
		if mapping := facts.Harness(&r.Event); mapping > 0 {
			s.Log = Log{r.RunID, mapping}
		}
	}
	if facts.Gate(&r.Event) {
		s.openGate(r.RunID)
	}
}

// dequeue removes a message that has started, or was withdrawn.
func (s *State) dequeue(runID string) {
	s.Queue = slices.DeleteFunc(s.Queue, func(q Waiting) bool { return q.RunID == runID })
	if len(s.Queue) == 0 {
		s.Parked = false
	}
}

func (s *State) openGate(runID string) {
	if s.Gates == nil {
		s.Gates = map[string]bool{}
	}
	s.Gates[runID] = true
}

// ended parks the queue behind a run that was stopped.
func (s *State) ended(e *narad.Event) {
	delete(s.Gates, e.RunID)
	delete(s.Made, e.RunID)
	s.Rules = slices.DeleteFunc(s.Rules, func(r facts.PermissionRule) bool { return r.RunID == e.RunID })
	if e.RunID != e.RootRunID {
		return
	}
	s.Parked = s.Stopping == e.RunID && len(s.Queue) > 0
	s.Stopping, s.StoppedBy, s.Log = "", facts.Cause{}, Log{}
}

func (s *State) custom(c *narad.Custom) {
	switch c.Name {
	case facts.SessionCreated:
		s.Created, _ = facts.Read[facts.Created](c, c.Name)
		s.CreatedAt, s.Posture = c.Timestamp, s.Created.Posture
		s.Setup = Setup{
			Cwd: s.Created.Cwd, Title: s.Created.Title, Provider: s.Created.Provider, Model: s.Created.Model,
			Variant: s.Created.Variant, Style: s.Created.Style,
		}
	case facts.SessionArchived:
		s.Archived = true
	case facts.SessionRestored:
		s.Archived = false
	case facts.Posture:
		p, _ := facts.Read[facts.Postured](c, c.Name)
		s.Posture = p.Posture
	case facts.InputQueued:
		q, _ := facts.Read[facts.Queued](c, c.Name)
		s.Queue = append(s.Queue, Waiting{q, c.SessionSequence, c.Timestamp, facts.Caused(&c.Event), facts.InputID(&c.Event)})
		s.Parked = false // a new message moves what a stop has parked (R16)
	case facts.InputWithdrawn:
		w, _ := facts.Read[facts.Withdrawn](c, c.Name)
		s.dequeue(w.RunID)
	case facts.QueueReleased:
		s.Parked = false
	case facts.AgentRemembered:
		r, _ := facts.Read[facts.Remembered](c, c.Name)
		s.Ref = r.Ref
	case facts.IntercomSent, facts.Intercom, facts.IntercomClosed, facts.IntercomDelivered:
		s.Intercom.apply(c)
	case facts.Decision:
		s.voted(c)
	case facts.PermissionRemembered:
		if r, ok := facts.Read[facts.PermissionRule](c, c.Name); ok {
			s.Rules = append(slices.DeleteFunc(s.Rules, r.Same), r)
		}
	case facts.PermissionForgotten:
		f, _ := facts.Read[facts.Forgotten](c, c.Name)
		s.Rules = slices.DeleteFunc(s.Rules, func(r facts.PermissionRule) bool { return r.Rule == f.Rule })
	case facts.SessionViewed:
		s.ViewedAt, s.Seen = c.Timestamp, true
	default:
		s.setUp(c)
	}
}

func (s *State) voted(c *narad.Custom) {
	d, ok := facts.Read[facts.Decided](c, c.Name)
	if !ok {
		return
	}
	for _, m := range d.Members {
		if m.Vote {
			of := inner(&s.Ballots, d.InterruptID)
			inner(&of, m.RequestID)[d.Actor.ID] = m.Decision
			continue
		}
		votes := inner(&s.Votes, d.InterruptID)
		if votes[m.RequestID] == "" { // the first decision stands
			votes[m.RequestID] = m.Decision
		}
	}
}

// inner returns the map under a key, and makes it if it is missing.
func inner[V any](m *map[string]map[string]V, key string) map[string]V {
	if *m == nil {
		*m = map[string]map[string]V{}
	}
	if (*m)[key] == nil {
		(*m)[key] = map[string]V{}
	}
	return (*m)[key]
}

// version changes when the meaning of an encoded desk does: one of another version is
// made again from its facts.
const version = 8

type encoded struct {
	Version int
	State   State
}

// Encode writes the desk so that Decode reads it back. Equal desks give equal bytes.
func (s *State) Encode() []byte {
	data, err := json.Marshal(encoded{version, *s}, json.Deterministic(true))
	if err != nil {
		panic("desk: a desk is always JSON: " + err.Error())
	}
	return data
}

// Decode reads what Encode wrote. An error means that the desk must be made from its
// facts.
func Decode(data []byte) (*State, error) {
	var e encoded
	if err := json.Unmarshal(data, &e, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("decode a desk: %w", err)
	}
	if e.Version != version {
		return nil, fmt.Errorf("decode a desk: version %d, not %d", e.Version, version)
	}
	return &e.State, nil
}
