package narya

import (
	"regexp"
	"unicode/utf8"

	"github.com/mahati-host/mahati/narad"
)

// IntercomMessage is what another session sent to this one.
type IntercomMessage struct {
	// From is the sender's name.
	From    string
	Content string
	Kind    IntercomKind
	AskID   string // joins a question and its answer
}

// Type returns intercom-message.
func (*IntercomMessage) Type() Type { return TypeIntercomMessage }

func (p *IntercomMessage) fields(c *coder) {
	c.text("from", &p.From, required)
	c.text("content", &p.Content, required)
	word(c, "kind", &p.Kind, intercomKinds, required)
	c.uuid("askId", &p.AskID, optional)
}

// IntercomKind is what a message between sessions wants.
type IntercomKind string

// The kinds of messages between sessions.
const (
	IntercomTold   IntercomKind = "message"
	IntercomAsk    IntercomKind = "ask"
	IntercomAnswer IntercomKind = "answer"
)

var intercomKinds = []IntercomKind{IntercomTold, IntercomAsk, IntercomAnswer}

// WorkflowProgress tells that a workflow, or one of its steps, changed its state.
type WorkflowProgress struct {
	RunID string
	// Status is the workflow's after the change; Step is the step that changed, if one did.
	Status         WorkflowStatus
	Step           *WorkflowStep
	CompletedSteps *int64
	TotalSteps     *int64
}

// Type returns workflow-progress.
func (*WorkflowProgress) Type() Type { return TypeWorkflowProgress }

func (p *WorkflowProgress) fields(c *coder) {
	c.uuid("runId", &p.RunID, required)
	word(c, "status", &p.Status, workflowStatuses, required)
	maybe(c, "step", &p.Step)
	c.maybeInteger("completedSteps", &p.CompletedSteps, 0)
	c.maybeInteger("totalSteps", &p.TotalSteps, 0)
}

// WorkflowStatus is where a workflow or one of its steps stands.
type WorkflowStatus string

// The statuses. Only a step is skipped.
const (
	WorkflowPending   WorkflowStatus = "pending"
	WorkflowRunning   WorkflowStatus = "running"
	WorkflowCompleted WorkflowStatus = "completed"
	WorkflowFailed    WorkflowStatus = "failed"
	WorkflowStopped   WorkflowStatus = "stopped"
	WorkflowSkipped   WorkflowStatus = "skipped"
)

var (
	workflowStatuses = []WorkflowStatus{WorkflowPending, WorkflowRunning, WorkflowCompleted, WorkflowFailed, WorkflowStopped}
	stepStatuses     = append(workflowStatuses[:len(workflowStatuses):len(workflowStatuses)], WorkflowSkipped)
)

// WorkflowStep is one step of a workflow.
type WorkflowStep struct {
	Name       string
	Status     WorkflowStatus
	Output     string
	StartedAt  string
	FinishedAt string
}

func (s *WorkflowStep) fields(c *coder) {
	c.text("name", &s.Name, required, atMost(maxStepName))
	word(c, "status", &s.Status, stepStatuses, required)
	c.text("output", &s.Output, optional)
	c.time("startedAt", &s.StartedAt, optional)
	c.time("finishedAt", &s.FinishedAt, optional)
}

const maxStepName = 256

// Extension is an event of an extension, whose meaning is the extension's own.
type Extension struct {
	// Extension is the publisher, "namespace/name".
	Extension string
	// Name is the extension's own name of the event.
	Name string
	// Payload is an object of free form, or nil.
	Payload narad.Raw
}

// Type returns extension.
func (*Extension) Type() Type { return TypeExtension }

func (p *Extension) fields(c *coder) {
	c.text("extension", &p.Extension, required, anExtension)
	c.text("name", &p.Name, required, atMost(MaxExtensionEvent))
	c.free("payload", &p.Payload)
}

// MaxExtensionEvent bounds the name of an extension's event, in characters.
const MaxExtensionEvent = 128

// CheckExtension says what is wrong with the names of an extension and of its event, by
// field; it is empty for names that may stand on the stream.
func CheckExtension(extension, name string) map[string]string {
	wrong := map[string]string{}
	if rule := anExtension(extension); rule != "" {
		wrong["extension"] = rule
	} else if len(extension) > maxExtension {
		wrong["extension"] = "may have at most 256 bytes"
	}
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		wrong["name"] = "is required"
	case n > MaxExtensionEvent:
		wrong["name"] = "may have at most 128 characters"
	}
	return wrong
}

const maxExtension = 256

var extensionName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9-]*$`)

func anExtension(s string) string {
	if !extensionName.MatchString(s) {
		return "a namespace and a name of lower-case letters, digits and hyphens, joined by a slash, are required"
	}
	return ""
}

// LadderChanged tells that what a person can type has changed on this machine.
type LadderChanged struct {
	// Notices say what changed, for people; they may be empty.
	Notices []string
}

// Type returns ladder-changed.
func (*LadderChanged) Type() Type { return TypeLadderChanged }

func (p *LadderChanged) fields(c *coder) { c.texts("notices", &p.Notices) }

// ScheduleFired tells that a schedule made a session, which is at work already.
type ScheduleFired struct {
	ScheduleID string
	SessionID  string
}

// Type returns schedule-fired.
func (*ScheduleFired) Type() Type { return TypeScheduleFired }

func (p *ScheduleFired) fields(c *coder) {
	c.uuid("scheduleId", &p.ScheduleID, required)
	c.uuid("sessionId", &p.SessionID, required)
}

// MonitorEvent is what a monitor of a session said, ready to be shown.
type MonitorEvent struct {
	Monitor string
	Notice  MonitorNotice
	Text    string
	Exit    *int64 // of the process, where the notice tells of its end
	// Running are the session's monitors after the event.
	Running []string
}

// Type returns monitor-event.
func (*MonitorEvent) Type() Type { return TypeMonitorEvent }

func (p *MonitorEvent) fields(c *coder) {
	c.text("monitor", &p.Monitor, required)
	word(c, "notice", &p.Notice, monitorNotices, required)
	c.text("text", &p.Text, required)
	c.maybeInteger("exit", &p.Exit, anyInteger)
	c.texts("running", &p.Running)
}

// MonitorNotice is what happened to a monitor.
type MonitorNotice string

// The notices.
const (
	MonitorStarted   MonitorNotice = "started"
	MonitorOutput    MonitorNotice = "output"
	MonitorThrottled MonitorNotice = "throttled"
	MonitorExited    MonitorNotice = "exited"
	MonitorStopped   MonitorNotice = "stopped"
)

var monitorNotices = []MonitorNotice{MonitorStarted, MonitorOutput, MonitorThrottled, MonitorExited, MonitorStopped}

// MonitorList names the monitors that a session runs, in the order of their starts.
type MonitorList struct{ Running []string }

// Type returns monitor-list.
func (*MonitorList) Type() Type { return TypeMonitorList }

func (p *MonitorList) fields(c *coder) { c.texts("running", &p.Running) }
