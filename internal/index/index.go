package index

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// The states of a session by which lists are filtered.
const (
	Idle     = "idle"
	Running  = "running"
	Waiting  = "waiting"
	Archived = "archived"
)

// Session is the value of a catalogue row.
type Session struct {
	Cwd              string   `json:"cwd,omitzero"`
	Title            string   `json:"title,omitzero"`
	Agent            string   `json:"agent,omitzero"`
	ClientKind       string   `json:"clientKind,omitzero"`
	RequiredProfiles []string `json:"requiredProfiles,omitempty"`
	CreatedAt        string   `json:"createdAt"`
	UpdatedAt        string   `json:"updatedAt"`
}

// Interrupt is the value of an interrupt's row: what the inbox shows while it is open,
// and how it was closed.
type Interrupt struct {
	RunID           string    `json:"runId,omitzero"`
	RootRunID       string    `json:"rootRunId,omitzero"`
	WaitID          string    `json:"waitId"`
	Kind            string    `json:"kind"`
	Actions         []string  `json:"actions,omitempty"`
	Title           string    `json:"title,omitzero"`
	Message         string    `json:"message,omitzero"`
	Input           narad.Raw `json:"input,omitzero"`
	ExpiresAt       string    `json:"expiresAt,omitzero"`
	RequestedAt     string    `json:"requestedAt,omitzero"`
	Decision        string    `json:"decision,omitzero"`
	SessionSequence int64     `json:"sessionSequence,omitzero"`
}

// Open is the value of an open-work row: the active top-level execution.
type Open struct {
	RootRunID  string `json:"rootRunId,omitzero"`
	WorkflowID string `json:"workflowId,omitzero"`
}

// TimerID names the timer that lets an interrupt expire.
func TimerID(interruptID string) string { return "expire:" + interruptID }

// Changes returns what a fact changes, given what was before it. The fact has its
// places.
func Changes(before *session.State, d *desk.State, fact narad.Authority) []journal.Change {
	c := &changes{before: before, desk: d, fact: fact, e: fact.Envelope()}
	switch f := fact.(type) {
	case *narad.Custom:
		c.custom(f)
	case *narad.RunStarted:
		c.runStarted(f)
	case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		c.runEnded()
	case *narad.InterruptRequested:
		c.interruptRequested(f)
	case *narad.InterruptResolved:
		c.interruptResolved(f)
	case *narad.WorkflowStarted:
		c.workflowStarted()
	case *narad.WorkflowEnded:
		c.workflowEnded(f)
	}
	return c.list
}

// changes collects the changes of one fact.
type changes struct {
	before *session.State
	desk   *desk.State
	fact   narad.Authority
	e      *narad.Event
	list   []journal.Change
}

// after is the desk after the fact.
func (c *changes) after() *desk.State {
	after := *c.desk
	after.Queue = slices.Clone(c.desk.Queue)
	after.Votes, after.Gates = nil, nil // no row depends on them
	after.Apply(c.fact)
	return &after
}

func (c *changes) put(row journal.Row) { c.list = append(c.list, journal.Put{Row: row}) }

func (c *changes) remove(key journal.Key) { c.list = append(c.list, journal.Remove{Key: key}) }

func (c *changes) custom(f *narad.Custom) {
	switch f.Name {
	case facts.SessionCreated, facts.SessionArchived, facts.SessionRestored:
		c.catalogue(c.rest())
	case facts.InputQueued, facts.InputWithdrawn, facts.QueueReleased:
		c.openWork(c.before.ActiveRootRunID())
		if c.before.ActiveRootRunID() == "" {
			c.catalogue(c.rest())
		}
	}
}

// rest is the session's state while no run is active.
func (c *changes) rest() string {
	switch after := c.after(); {
	case after.Archived:
		return Archived
	case len(after.Queue) > 0:
		return Waiting
	}
	return Idle
}

// catalogue writes the session's row.
func (c *changes) catalogue(state string) {
	after := c.after()
	created := after.Created
	c.put(journal.SessionRow{
		Session: c.e.SessionID, Workspace: created.WorkspaceID, State: state,
		Value: value(Session{
			Cwd: created.Cwd, Title: created.Title, Agent: created.Agent, ClientKind: created.ClientKind,
			RequiredProfiles: created.RequiredProfiles, CreatedAt: after.CreatedAt, UpdatedAt: c.e.Timestamp,
		}),
	})
}

// openWork marks the session while something is active or waits in it.
func (c *changes) openWork(root string) {
	if root == "" && len(c.after().Queue) == 0 {
		c.remove(journal.OpenWorkKey(c.e.SessionID))
		return
	}
	c.put(journal.OpenWorkRow{
		Session: c.e.SessionID, Value: value(Open{RootRunID: root, WorkflowID: c.before.ActiveWorkflowID()}),
	})
}

func (c *changes) runStarted(f *narad.RunStarted) {
	c.put(journal.RunRow{
		ID: f.RunID, Session: f.SessionID, Root: f.RootRunID, First: uint64(f.SessionSequence),
		State: string(session.Running),
	})
	if f.RunID == f.RootRunID {
		c.catalogue(Running)
		c.openWork(f.RunID)
	}
}

func (c *changes) runEnded() {
	state := map[narad.Type]session.RunState{
		narad.TypeRunFinished: session.Finished, narad.TypeRunError: session.Failed,
		narad.TypeRunCancelled: session.Cancelled,
	}[c.fact.Type()]
	run, _ := c.before.Run(c.e.RunID)
	c.put(journal.RunRow{
		ID: c.e.RunID, Session: c.e.SessionID, Root: c.e.RootRunID, First: uint64(run.StartedSequence),
		Last: uint64(c.e.SessionSequence), State: string(state),
	})
	if c.e.RunID == c.e.RootRunID {
		c.catalogue(c.rest())
		c.openWork("")
	}
}

func (c *changes) interruptRequested(f *narad.InterruptRequested) {
	c.put(journal.InterruptRow{
		ID: f.InterruptID, Session: f.SessionID, Sequence: uint64(f.SessionSequence), Open: true,
		Value: value(Interrupt{
			RunID: f.RunID, RootRunID: f.RootRunID, WaitID: f.WaitID, Kind: f.Kind, Actions: f.Actions,
			Title: f.Title, Message: f.Message, Input: f.Input, ExpiresAt: f.ExpiresAt, RequestedAt: f.Timestamp,
		}),
	})
	if due, err := time.Parse(time.RFC3339Nano, f.ExpiresAt); err == nil {
		c.put(journal.TimerRow{
			Session: f.SessionID, ID: TimerID(f.InterruptID), Due: due, Value: []byte(f.InterruptID),
		})
	}
}

func (c *changes) interruptResolved(f *narad.InterruptResolved) {
	asked, _ := c.before.Interrupt(f.InterruptID)
	c.put(journal.InterruptRow{
		ID: f.InterruptID, Session: f.SessionID, Sequence: uint64(asked.RequestedSequence),
		Value: value(Interrupt{
			RunID: f.RunID, RootRunID: f.RootRunID, WaitID: f.WaitID, Kind: asked.Kind,
			Decision: f.Decision, SessionSequence: f.SessionSequence,
		}),
	})
	if asked.ExpiresAt != "" {
		c.remove(journal.TimerKey(f.SessionID, TimerID(f.InterruptID)))
	}
}

func (c *changes) workflowStarted() {
	c.put(journal.WorkflowRow{
		ID: c.e.WorkflowID, Session: c.e.SessionID, First: uint64(c.e.SessionSequence), State: string(session.Running),
	})
}

func (c *changes) workflowEnded(f *narad.WorkflowEnded) {
	c.put(journal.WorkflowRow{
		ID: f.WorkflowID, Session: f.SessionID, Last: uint64(f.SessionSequence), State: string(f.Kind),
	})
}

func value(v any) []byte {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic("index: a row's value is always JSON: " + err.Error())
	}
	return data
}

// Read reads a row's value; a value that does not fit gives the zero value.
func Read[T any](data []byte) T {
	var v T
	_ = json.Unmarshal(data, &v) // rows are derived: verify finds one that does not fit
	return v
}
