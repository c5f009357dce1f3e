package index

import (
	"cmp"
	"slices"
	"strconv"
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
	ClientExecutorID string   `json:"clientExecutorId,omitzero"`
	RequiredProfiles []string `json:"requiredProfiles,omitempty"`
	// Spent is what its runs took; it is kept for sessions of Narya alone.
	Spent desk.Spent `json:"spent,omitzero"`
	// Narya is the version of Narya's mapping: a session of 0 is none of that contract (R1).
	Narya int `json:"narya,omitzero"`
	// IntercomName is how other sessions call it (R44).
	IntercomName string `json:"intercomName,omitzero"`
	CreatedAt    string `json:"createdAt"`
	UpdatedAt    string `json:"updatedAt"`

	Provider        string        `json:"provider,omitzero"`
	Model           string        `json:"model,omitzero"`
	Variant         string        `json:"variant,omitzero"`
	Style           string        `json:"style,omitzero"`
	Posture         string        `json:"posture,omitzero"`
	Warming         *facts.Warmed `json:"warming,omitzero"`
	ViewedAt        string        `json:"viewedAt,omitzero"`
	ParentSessionID string        `json:"parentSessionId,omitzero"`
}

// Interrupt is the value of an interrupt's row: what the inbox shows while it is open,
// and how it was closed.
type Interrupt struct {
	RunID       string    `json:"runId,omitzero"`
	RootRunID   string    `json:"rootRunId,omitzero"`
	WorkflowID  string    `json:"workflowId,omitzero"` // of one that the workflow itself asks
	WaitID      string    `json:"waitId"`
	Kind        string    `json:"kind"`
	Actions     []string  `json:"actions,omitempty"`
	Title       string    `json:"title,omitzero"`
	Message     string    `json:"message,omitzero"`
	Input       narad.Raw `json:"input,omitzero"`
	ExpiresAt   string    `json:"expiresAt,omitzero"`
	RequestedAt string    `json:"requestedAt,omitzero"`
	Decision    string    `json:"decision,omitzero"`
	// Members holds what was decided for each member of a pack, by its request id.
	Members         map[string]string `json:"members,omitempty"`
	SessionSequence int64             `json:"sessionSequence,omitzero"`
}

// Open is the value of an open-work row: the active top-level execution.
type Open struct {
	RootRunID  string `json:"rootRunId,omitzero"`
	WorkflowID string `json:"workflowId,omitzero"`
}

// Withdrawn is the state in the row of a run that was withdrawn before it started: no
// fact tells of the run itself, and yet its id is known (R16).
const Withdrawn = "withdrawn"

// Queued is the state, in its row, of a run that waits. One that a host before the
// headless contract queued has no row until it starts.
const Queued = "queued"

// Recorded names the row that a message of a session has once it is recorded, whoever
// chose its id: an id is given once in a session, and only what is recorded is redacted.
func Recorded(session, messageID string) journal.Key {
	return journal.AliasKey(spaceMessage, session+" "+messageID)
}

const spaceMessage = "message"

// Tasks names the row that says where the session's list of tasks stands: its id is the
// sequence of the fact.
func Tasks(session string) journal.Key { return journal.AliasKey("tasks", session) }

// RetryTimerID names the timer at whose time a workflow tries a failed step again.
func RetryTimerID(workflowID string) string { return "retry:" + workflowID }

// TimerID names the timer that lets an interrupt expire.
func TimerID(interruptID string) string { return "expire:" + interruptID }

// Changes returns what a fact changes, given what was before it. The fact has its
// places.
func Changes(before *session.State, d *desk.State, fact narad.Authority) []journal.Change {
	c := &changes{before: before, desk: d, fact: fact, e: fact.Envelope()}
	c.aliases()
	switch f := fact.(type) {
	case *narad.Custom:
		c.custom(f)
	case *narad.MessageUserRecorded:
		c.recorded(f.MessageID)
	case *narad.MessageTextStarted:
		c.recorded(f.MessageID)
	case *narad.Attachment:
		c.attachment(f)
	case *narad.Artifact:
		c.artifact(f)
	case *narad.RunStarted:
		c.runStarted(f)
	case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		c.runEnded()
	case *narad.InterruptRequested:
		c.interruptRequested(f)
		c.catalogue(c.state())
	case *narad.InterruptResolved:
		c.interruptResolved(f)
		c.decisions(f.InterruptID)
		c.catalogue(c.state())
	case *narad.WorkflowStarted:
		c.workflowStarted(f)
	case *narad.WorkflowStep:
		c.workflowStep(f)
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
	after.Queue, after.Intercom = slices.Clone(c.desk.Queue), c.desk.CloneIntercom()
	after.Said, after.Votes, after.Ballots, after.Rules, after.Gates, after.Making, after.Made = nil, nil, nil, nil, nil, nil, nil // no row depends on them
	after.Apply(c.fact)
	return &after
}

func (c *changes) put(row journal.Row) { c.list = append(c.list, journal.Put{Row: row}) }

func (c *changes) remove(key journal.Key) { c.list = append(c.list, journal.Remove{Key: key}) }

func (c *changes) custom(f *narad.Custom) {
	switch f.Name {
	case facts.SessionCreated, facts.SessionArchived, facts.SessionRestored:
		c.catalogue(c.rest())
		if f.Name == facts.SessionCreated {
			c.named(f)
		}
	case facts.SessionTitled, facts.SessionMoved, facts.SessionModel, facts.SessionVariant, facts.SessionStyle,
		facts.SessionWarming, facts.Posture, facts.SessionViewed:
		c.catalogue(c.state())
	case facts.InputQueued:
		if q, _ := facts.Read[facts.Queued](f, f.Name); facts.Harness(&f.Event) > 0 {
			c.put(journal.RunRow{ID: q.RunID, Session: f.SessionID, Root: q.RunID, First: uint64(f.SessionSequence), State: Queued})
		}
		c.queue()
	case facts.Decision:
		c.memberDecisions(f)
	case facts.InputWithdrawn:
		w, _ := facts.Read[facts.Withdrawn](f, f.Name)
		at := uint64(f.SessionSequence)
		c.put(journal.RunRow{
			ID: w.RunID, Session: f.SessionID, Root: w.RunID, First: at, Last: at, State: Withdrawn,
		})
		c.queue()
	case facts.IntercomSent, facts.Intercom, facts.IntercomClosed, facts.IntercomDelivered:
		c.intercom(f)
		if f.Name == facts.Intercom {
			c.catalogue(c.state())
		}
	case facts.PermissionRemembered:
		r, _ := facts.Read[facts.PermissionRule](f, f.Name)
		c.place(Remembered(r.InterruptID, r.RequestID))
	case facts.IntercomRedacted:
		redacted, _ := facts.Read[facts.Redacted](f, f.Name)
		c.place(Redaction(f.SessionID, redacted.MessageID))
	case facts.TaskList:
		c.place(Tasks(f.SessionID))
	}
}

// place says that what a row names stands in this fact.
func (c *changes) place(key journal.Key) {
	at := strconv.FormatInt(c.e.SessionSequence, 10)
	c.put(journal.AliasRow{Space: key.Space, Alias: key.ID, Session: c.e.SessionID, ID: at})
}

// queue shows a change of the queue. What is active is shown as such.
func (c *changes) queue() {
	if c.before.ActiveRootRunID() == "" && c.before.ActiveWorkflowID() == "" {
		c.openWork("", "")
	}
	c.catalogue(c.state())
}

func (c *changes) recorded(messageID string) {
	key := Recorded(c.e.SessionID, messageID)
	c.put(journal.AliasRow{Space: key.Space, Alias: key.ID, Session: c.e.SessionID, ID: messageID})
}

// state is the session's state after a fact that does not change it.
func (c *changes) state() string {
	if c.before.ActiveRootRunID() != "" || c.before.ActiveWorkflowID() != "" {
		return Running
	}
	return c.rest()
}

// rest is the session's state while no run is active.
func (c *changes) rest() string {
	return atRest(c.after())
}

func atRest(d *desk.State) string {
	switch {
	case d.Archived:
		return Archived
	case len(d.Queue) > 0:
		return Waiting
	}
	return Idle
}

// catalogue writes the session's row.
func (c *changes) catalogue(state string) {
	c.put(sessionRow(c.e.SessionID, state, c.after()))
}

func sessionRow(id, state string, d *desk.State) journal.SessionRow {
	created := d.Created
	is := Session{
		Cwd: d.Cwd, Title: d.Title, Agent: created.Agent, ClientKind: created.ClientKind,
		ClientExecutorID: created.ClientExecutorID, RequiredProfiles: created.RequiredProfiles,
		IntercomName: created.IntercomName,
		Narya:        created.Mappings.Narya, CreatedAt: d.CreatedAt, UpdatedAt: d.UpdatedAt,
		Provider: d.Provider, Model: d.Model, Variant: d.Variant, Style: d.Style, Posture: d.Posture,
		Warming: d.Warming, ViewedAt: d.ViewedAt, ParentSessionID: created.ParentSessionID,
	}
	if is.Narya > 0 {
		is.Spent = d.Spent
	}
	return journal.SessionRow{Session: id, Workspace: created.WorkspaceID, State: state, Value: value(is)}
}

// openWork marks the session while something is active or waits in it.
func (c *changes) openWork(root, workflow string) {
	if root == "" && workflow == "" && len(c.after().Queue) == 0 {
		c.remove(journal.OpenWorkKey(c.e.SessionID))
		return
	}
	c.put(journal.OpenWorkRow{Session: c.e.SessionID, Value: value(Open{RootRunID: root, WorkflowID: workflow})})
}

func (c *changes) runStarted(f *narad.RunStarted) {
	c.put(journal.RunRow{
		ID: f.RunID, Session: f.SessionID, Root: f.RootRunID, First: uint64(f.SessionSequence),
		State: string(session.Running),
	})
	if f.RunID == f.RootRunID {
		c.catalogue(Running)
		c.openWork(f.RunID, f.WorkflowID)
	}
}

func (c *changes) runEnded() {
	run, _ := c.before.Run(c.e.RunID)
	c.put(journal.RunRow{
		ID: c.e.RunID, Session: c.e.SessionID, Root: c.e.RootRunID, First: uint64(run.StartedSequence),
		Last: uint64(c.e.SessionSequence), State: string(ending(c.fact.Type())),
	})
	if c.e.RunID == c.e.RootRunID {
		c.atRest(run.WorkflowID)
	}
}

// atRest shows that a top-level execution has ended. One that runs on, the workflow of
// a run, keeps the session running.
func (c *changes) atRest(workflow string) {
	c.openWork("", workflow)
	if workflow != "" {
		c.catalogue(Running)
		return
	}
	c.catalogue(c.rest())
}

// ending is the state in which a terminal leaves a run or workflow.
func ending(t narad.Type) session.RunState {
	switch t {
	case narad.TypeRunError, narad.TypeWorkflowError:
		return session.Failed
	case narad.TypeRunCancelled, narad.TypeWorkflowCancelled:
		return session.Cancelled
	}
	return session.Finished
}

func (c *changes) interruptRequested(f *narad.InterruptRequested) {
	c.put(Requested(f))
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
			RunID: f.RunID, RootRunID: f.RootRunID, WorkflowID: asker(f.Scope, f.WorkflowID),
			WaitID: f.WaitID, Kind: asked.Kind,
			Decision: f.Decision, Members: decided(f.Members, c.desk.Votes[f.InterruptID]), SessionSequence: f.SessionSequence,
		}),
	})
	if asked.ExpiresAt != "" {
		c.remove(journal.TimerKey(f.SessionID, TimerID(f.InterruptID)))
	}
}

// asker is the workflow that asks, "" where it is one of its runs that does.
func asker(scope narad.Scope, workflowID string) string {
	if scope != narad.ScopeWorkflow {
		return ""
	}
	return workflowID
}

// decided is what became of each member: what was decided before stays, whatever became of
// the rest of the pack.
func decided(members []narad.MemberDecision, before map[string]string) map[string]string {
	if len(members) == 0 {
		return nil
	}
	decisions := make(map[string]string, len(members))
	for _, m := range members {
		decisions[m.RequestID] = cmp.Or(before[m.RequestID], m.Decision)
	}
	return decisions
}

func (c *changes) workflowStarted(f *narad.WorkflowStarted) {
	c.put(journal.WorkflowRow{
		ID: f.WorkflowID, Session: f.SessionID, First: uint64(f.SessionSequence), State: string(session.Running),
	})
	c.catalogue(Running)
	c.openWork("", f.WorkflowID)
}

// workflowStep sets the timer of the next attempt, and removes it when that starts.
func (c *changes) workflowStep(f *narad.WorkflowStep) {
	if f.Kind == narad.TypeWorkflowStepStarted {
		c.settleRetry(f.WorkflowID)
		return
	}
	if due, err := time.Parse(time.RFC3339Nano, facts.RetryAt(&f.Event)); err == nil {
		c.put(journal.TimerRow{
			Session: f.SessionID, ID: RetryTimerID(f.WorkflowID), Due: due, Value: []byte(f.WorkflowID),
		})
	}
}

// settleRetry removes the timer of a workflow whose last step failed: it may have one.
func (c *changes) settleRetry(workflowID string) {
	if w, _ := c.before.Workflow(workflowID); w.Steps[w.CurrentNodeID].Failed() {
		c.remove(journal.TimerKey(c.e.SessionID, RetryTimerID(workflowID)))
	}
}

// The row of an ended workflow keeps its beginning, which the journal knows: the state
// does not.
func (c *changes) workflowEnded(f *narad.WorkflowEnded) {
	c.settleRetry(f.WorkflowID)
	c.put(journal.WorkflowRow{
		ID: f.WorkflowID, Session: f.SessionID, Last: uint64(f.SessionSequence), State: string(ending(f.Type())),
	})
	c.atRest("")
}

// Value is what stands in a row for a value of this package.
func Value[T Session | Interrupt | Open | Material](v T) []byte { return value(v) }

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
