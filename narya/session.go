package narya

import "slices"

// Session is a durable conversation, as lists, reads and session-created show it.
type Session struct {
	ID    string
	Title string
	// Repository is the absolute path of the directory in which the session works.
	Repository string
	Status     Status
	Provider   string
	Model      string
	Variant    string
	Style      string
	ClientKind ClientKind
	// ModelNotice stands on the answers to creating a session and choosing its model alone.
	ModelNotice string
	// Usage is the total of all turns, LastTurnUsage what the newest round of the main lane
	// sent and produced.
	Usage         *TokenUsage
	LastTurnUsage *TokenUsage
	// PendingInputs are the messages that wait, in their order.
	PendingInputs   []PendingInput
	ParentSessionID string
	Summary         string
	SummaryAt       string
	// Posture is "" where nobody ever said anything, which reads as attended.
	Posture     Posture
	Warming     *Warming
	ViewedAt    string
	LastOutcome Outcome
	CacheSpend  *CacheSpend
	// Tasks are never an empty list: absent means that there are none.
	Tasks     []Task
	CreatedAt string
	UpdatedAt string
}

// Fit makes values that other contracts recorded ones that a session can have: a text that
// is too long is clipped, and a word that is none of the contract's means that nothing was
// recorded.
func (s *Session) Fit() {
	s.Title, s.Repository, s.Style = clip(s.Title, 512), clip(s.Repository, 4096), clip(s.Style, 64)
	s.ModelNotice = clip(s.ModelNotice, 1024)
	if !slices.Contains(clientKinds, s.ClientKind) {
		s.ClientKind = ClientUnknown
	}
	if !slices.Contains(postures, s.Posture) {
		s.Posture = ""
	}
}

func (s *Session) fields(c *coder) {
	c.uuid("id", &s.ID, required)
	c.text("title", &s.Title, optional, atMost(512))
	c.text("repository", &s.Repository, required, atMost(4096))
	word(c, "status", &s.Status, statuses, required)
	c.text("provider", &s.Provider, optional)
	c.text("model", &s.Model, optional)
	c.text("variant", &s.Variant, optional)
	c.text("style", &s.Style, optional, atMost(64))
	word(c, "clientKind", &s.ClientKind, clientKinds, required)
	c.text("modelNotice", &s.ModelNotice, optional, atMost(1024))
	maybe(c, "usage", &s.Usage)
	maybe(c, "lastTurnUsage", &s.LastTurnUsage)
	list(c, "pendingInputs", &s.PendingInputs, optional, 0)
	c.uuid("parentSessionId", &s.ParentSessionID, optional)
	c.text("summary", &s.Summary, optional, atMost(4096))
	c.time("summaryAt", &s.SummaryAt, optional)
	word(c, "posture", &s.Posture, postures, optional)
	maybe(c, "warming", &s.Warming)
	c.time("viewedAt", &s.ViewedAt, optional)
	word(c, "lastOutcome", &s.LastOutcome, outcomes, optional)
	maybe(c, "cacheSpend", &s.CacheSpend)
	list(c, "tasks", &s.Tasks, optional, 0)
	c.time("createdAt", &s.CreatedAt, required)
	c.time("updatedAt", &s.UpdatedAt, required)
}

// Status is where a session stands.
type Status string

// The statuses. A session is waiting when a stop has left messages in its queue.
const (
	Idle     Status = "idle"
	Running  Status = "running"
	Waiting  Status = "waiting"
	Archived Status = "archived"
)

var statuses = []Status{Idle, Running, Waiting, Archived}

// ClientKind is what kind of client opened a session. Nothing depends on it.
type ClientKind string

// The kinds. Unknown is one that was never recorded.
const (
	ClientInline  ClientKind = "inline"
	ClientTUI     ClientKind = "tui"
	ClientOneshot ClientKind = "oneshot"
	ClientAPI     ClientKind = "api"
	ClientUnknown ClientKind = "unknown"
)

var clientKinds = []ClientKind{ClientInline, ClientTUI, ClientOneshot, ClientAPI, ClientUnknown}

// Posture says whether somebody is there to answer what a session asks (R18).
type Posture string

// The postures.
const (
	Attended Posture = "attended"
	Detached Posture = "detached"
)

var postures = []Posture{Attended, Detached}

// Outcome is how the last turn of a session ended.
type Outcome string

// The outcomes. An interrupted turn has none.
const (
	OutcomeFinished Outcome = "finished"
	OutcomeFailed   Outcome = "failed"
)

var outcomes = []Outcome{OutcomeFinished, OutcomeFailed}

// PendingInput names a message that waits, without its content.
type PendingInput struct {
	EntryID string
	TurnID  string
	Kind    InputKind
	// Sequence orders the operations that made messages wait, from 1.
	Sequence   int64
	EnqueuedAt string
}

func (p *PendingInput) fields(c *coder) {
	c.uuid("entryId", &p.EntryID, required)
	c.uuid("turnId", &p.TurnID, required)
	word(c, "kind", &p.Kind, inputKinds, required)
	c.integer("sequence", &p.Sequence, 1)
	c.time("enqueuedAt", &p.EnqueuedAt, required)
}

// InputKind says what a waiting message does when its time comes.
type InputKind string

// The kinds.
const (
	InputSteer    InputKind = "steer"
	InputFollowUp InputKind = "follow-up"
)

var inputKinds = []InputKind{InputSteer, InputFollowUp}

// Warming says whether a session pays to keep its provider's cache, and how much at most
// in its whole life.
type Warming struct {
	Enabled bool
	// CeilingUSD is in US dollars; 0 means the same as off.
	CeilingUSD float64
}

func (w *Warming) fields(c *coder) {
	c.toggle("enabled", &w.Enabled)
	c.amount("ceilingUsd", &w.CeilingUSD)
}

// CacheSpend is what a session's cache has cost: letting it expire, and keeping it.
type CacheSpend struct {
	RebilledRounds int64
	RebilledTokens int64
	// RebilledUSD is a part of what the usage costs already.
	RebilledUSD float64
	// RebilledUSDComplete is nil for true; false makes RebilledUSD a floor.
	RebilledUSDComplete *bool
	WarmingUSD          float64
}

func (s *CacheSpend) fields(c *coder) {
	c.integer("rebilledRounds", &s.RebilledRounds, 0)
	c.integer("rebilledTokens", &s.RebilledTokens, 0)
	c.amount("rebilledUsd", &s.RebilledUSD)
	c.maybeFlag("rebilledUsdComplete", &s.RebilledUSDComplete)
	c.amount("warmingUsd", &s.WarmingUSD)
}

// SessionCreated tells that a session came into existence.
type SessionCreated struct{ Session Session }

// Type returns session-created.
func (*SessionCreated) Type() Type { return TypeSessionCreated }

func (p *SessionCreated) fields(c *coder) { c.part("session", &p.Session) }

// SessionStatusChanged tells that a session's status changed.
type SessionStatusChanged struct {
	Status         Status
	PreviousStatus Status // "" if it is not told
}

// Type returns session-status-changed.
func (*SessionStatusChanged) Type() Type { return TypeSessionStatusChanged }

func (p *SessionStatusChanged) fields(c *coder) {
	word(c, "status", &p.Status, statuses, required)
	word(c, "previousStatus", &p.PreviousStatus, statuses, optional)
}

// SessionPostureChanged tells that somebody said whether anybody is watching, and that
// this was news.
type SessionPostureChanged struct {
	Posture         Posture
	PreviousPosture Posture // "" if nobody had said anything
}

// Type returns session-posture-changed.
func (*SessionPostureChanged) Type() Type { return TypeSessionPostureChanged }

func (p *SessionPostureChanged) fields(c *coder) {
	word(c, "posture", &p.Posture, postures, required)
	word(c, "previousPosture", &p.PreviousPosture, postures, optional)
}

// SessionMoved tells that a session works in another directory from its next turn on.
type SessionMoved struct {
	Repository         string
	PreviousRepository string
}

// Type returns session-moved.
func (*SessionMoved) Type() Type { return TypeSessionMoved }

func (p *SessionMoved) fields(c *coder) {
	c.text("repository", &p.Repository, required)
	c.text("previousRepository", &p.PreviousRepository, required)
}

// ModelSwitch names the provider and model of the session's next turn.
type ModelSwitch struct {
	Provider string
	Model    string
}

// Type returns model-switch.
func (*ModelSwitch) Type() Type { return TypeModelSwitch }

func (p *ModelSwitch) fields(c *coder) {
	c.text("provider", &p.Provider, required)
	c.text("model", &p.Model, required)
}

// TaskList is the agent's list of tasks, whole, after each change; empty after one that
// cleared it.
type TaskList struct{ Tasks []Task }

// Type returns task-list.
func (*TaskList) Type() Type { return TypeTaskList }

func (p *TaskList) fields(c *coder) { list(c, "tasks", &p.Tasks, required, 0) }

// Task is one item of the list. Its place is its only identity.
type Task struct {
	Content string
	Status  TaskStatus
}

func (t *Task) fields(c *coder) {
	c.text("content", &t.Content, required)
	word(c, "status", &t.Status, taskStatuses, required)
}

// TaskStatus is how a task stands.
type TaskStatus string

// The statuses of a task.
const (
	TaskPending    TaskStatus = "pending"
	TaskInProgress TaskStatus = "in_progress"
	TaskCompleted  TaskStatus = "completed"
	TaskCancelled  TaskStatus = "cancelled"
)

var taskStatuses = []TaskStatus{TaskPending, TaskInProgress, TaskCompleted, TaskCancelled}
