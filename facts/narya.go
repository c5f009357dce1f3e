package facts

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/narad"
)

// The names of facts that the operations of the Narya contract record.
const (
	SessionMoved = "mahati.session.moved"
	SessionModel = "mahati.session.model"
	TaskList     = "mahati.tasks"
	Intercom     = "mahati.intercom"
	Extension    = "mahati.extension"
)

// Moved is the payload of SessionMoved: the session works in another directory.
type Moved struct {
	Cwd string `json:"cwd"`
	Was string `json:"was"`
}

// Modelled is the payload of SessionModel: which provider and model the next turn runs
// on, and which it would have run on.
type Modelled struct {
	Provider    string `json:"provider"`
	Model       string `json:"model"`
	WasProvider string `json:"wasProvider,omitzero"`
	WasModel    string `json:"wasModel,omitzero"`
	// Variant is the preset of the new model: one of another model means nothing to it.
	Variant string `json:"variant,omitzero"`
	// Reason is "substituted" where the host chose, since the agent no longer offers what
	// was chosen; empty where somebody did.
	Reason string `json:"reason,omitzero"`
}

// Substituted is the reason of a model that the host chose in the place of another.
const Substituted = "substituted"

// Tasked is the payload of TaskList: the agent's list of tasks, whole.
type Tasked struct {
	Tasks []Task `json:"tasks"`
}

// Task is one item of the list.
type Task struct {
	Content string `json:"content"`
	// Status is one of pending, in_progress, completed and cancelled.
	Status string `json:"status"`
}

// TasksOf is a plan as the list of tasks that it is.
func TasksOf(plan []Planned) Tasked {
	list := make([]Task, len(plan))
	for i, step := range plan {
		list[i] = Task{Content: step.Text, Status: taskStatus(step.Status)}
	}
	return Tasked{Tasks: list}
}

// taskStatus is where a task stands, by what plans call it.
func taskStatus(planned string) string {
	switch planned {
	case "active", "in_progress":
		return "in_progress"
	case "completed":
		return "completed"
	case "failed", "cancelled":
		return "cancelled"
	}
	return "pending"
}

// Told is the payload of Intercom, in the session that is spoken to (R44). Its content is
// an entry of the transcript as it comes: a run that it starts records the message of
// that id with `queued`.
type Told struct {
	MessageID string `json:"messageId"`
	// From is the sender's name, FromSessionID its session.
	From          string `json:"from"`
	FromSessionID string `json:"fromSessionId,omitzero"`
	Content       string `json:"content"`
	// Kind is one of message, ask and answer. AskID joins the last two.
	Kind  string `json:"kind"`
	AskID string `json:"askId,omitzero"`
	// RunID is the run that it begins, or for which it waits, "" for an answer.
	RunID string `json:"runId,omitzero"`
}

// Published is the payload of Extension (R44).
type Published struct {
	// Extension is "namespace/name", Name the extension's own word for the event.
	Extension string `json:"extension"`
	Name      string `json:"name"`
	// Payload is an object of free form, or absent.
	Payload narad.Raw `json:"payload,omitzero"`
}

// More optional fields (R1).
const (
	fieldAsks    = "asks"
	fieldSettles = "settles"
	fieldTurn    = "turn"
	fieldTouches = "fileTouches"
	fieldFailure = "failure"
	fieldSteps   = "progress"
)

// What an interrupt asks for.
const (
	AsksPermission = "permission"
	AsksQuestion   = "question"
)

// AsksFor says what an interrupt asks for: a permission if it offers the words of
// permissions alone, else a question (R11).
func AsksFor(kind string, actions []string) string {
	words := []string{"approve", "approve_always", "deny", "deny_always", "stop"}
	other := func(action string) bool { return !slices.Contains(words, action) }
	if kind == AsksQuestion || slices.ContainsFunc(actions, other) {
		return AsksQuestion
	}
	return AsksPermission
}

// SetAsks repeats on an interrupt.resolved what the interrupt asked for.
func SetAsks(e *narad.Event, what string) { setText(e, fieldAsks, what) }

// Asks returns what the interrupt of an interrupt.resolved asked for.
func Asks(e *narad.Event) string { return text(e, fieldAsks) }

// SetSettles names on an interrupt.resolved the members that no Decision before it
// decided: none for an empty list.
func SetSettles(e *narad.Event, requestIDs []string) {
	e.SetOptional(fieldSettles, value(slices.Concat([]string{}, requestIDs)))
}

// Settles returns the members that an interrupt.resolved decides itself; false if it does
// not tell.
func Settles(e *narad.Event) (requestIDs []string, told bool) {
	return optional[[]string](e, fieldSettles)
}

// Turn is what the end of a run tells of what it took (R42). Absent is unknown.
type Turn struct {
	// LastRound is what the last round used, and CostUSD what all of them cost.
	LastRound *Tokens  `json:"lastRound,omitzero"`
	CostUSD   *float64 `json:"costUsd,omitzero"`
	// ElapsedMs is measured by a monotonic clock, over a restart of the host by the times of
	// facts.
	ElapsedMs *int64 `json:"elapsedMs,omitzero"`
	// ContextWindow is that of the model, in tokens.
	ContextWindow *int64 `json:"contextWindow,omitzero"`
}

// Tokens are what a round used.
type Tokens struct {
	Input      int64    `json:"inputTokens"`
	Output     int64    `json:"outputTokens"`
	CacheRead  *int64   `json:"cacheReadTokens,omitzero"`
	CacheWrite *int64   `json:"cacheWriteTokens,omitzero"`
	CostUSD    *float64 `json:"costUsd,omitzero"`
}

// SetTurn records on the end of a run what it took.
func SetTurn(e *narad.Event, t Turn) { e.SetOptional(fieldTurn, value(t)) }

// TurnOf returns what a run took, as far as its end tells.
func TurnOf(e *narad.Event) Turn {
	t, _ := optional[Turn](e, fieldTurn)
	return t
}

// FileTouch is a file that a call read or changed. Op is one of read, write, edit and
// delete.
type FileTouch struct {
	Path string `json:"path"`
	Op   string `json:"op"`
}

// SetFileTouches records on a tool.call.finished which files the call touched.
func SetFileTouches(e *narad.Event, touches []FileTouch) {
	if len(touches) > 0 {
		e.SetOptional(fieldTouches, value(touches))
	}
}

// FileTouches returns the files that a call touched.
func FileTouches(e *narad.Event) []FileTouch {
	touches, _ := optional[[]FileTouch](e, fieldTouches)
	return touches
}

// SetFailure records on a tool.call.finished why the call failed, in the words that whoever
// called was given; "" where nobody said anything.
func SetFailure(e *narad.Event, words string) { e.SetOptional(fieldFailure, narad.Quote(words)) }

// Failure returns why a call failed. Facts of before this was recorded do not tell.
func Failure(e *narad.Event) (words string, told bool) { return optional[string](e, fieldFailure) }

// Steps is what a fact of a workflow tells of how far the workflow is. Absent is unknown.
type Steps struct {
	Completed *int64 `json:"completedSteps,omitzero"`
	Total     *int64 `json:"totalSteps,omitzero"`
	// StartedAt is when the step began that ends, Output what it came to.
	StartedAt string `json:"startedAt,omitzero"`
	Output    string `json:"output,omitzero"`
	// Skipped names the steps that have not started when the workflow ends.
	Skipped []string `json:"skipped,omitempty"`
}

// SetSteps records how far a workflow is.
func SetSteps(e *narad.Event, s Steps) { e.SetOptional(fieldSteps, value(s)) }

// StepsOf returns what a fact tells of how far its workflow is.
func StepsOf(e *narad.Event) Steps {
	s, _ := optional[Steps](e, fieldSteps)
	return s
}

// Status returns the session's status before and after a fact that changes it.
func Status(e *narad.Event) (was, now string, changes bool) {
	s, told := optional[status](e, fieldStatus)
	return s.Was, s.Now, told && s.Was != s.Now
}

// optional reads a field; false if it is absent, or does not fit, which no host of ours
// wrote.
func optional[T any](e *narad.Event, name string) (T, bool) {
	var v T
	raw := e.Optional(name)
	if raw == nil || json.Unmarshal(raw, &v) != nil {
		var none T
		return none, false
	}
	return v, true
}
