package facts

import (
	"strconv"

	"github.com/mahati-host/mahati/narad"
)

// The optional fields that Mahati adds to Narad's facts (R1). Every client ignores
// what it does not know.
const (
	fieldCommand      = "commandId"
	fieldInput        = "input_id"
	fieldSensitivity  = "sensitivity"
	fieldAgent        = "agentId"
	fieldGate         = "gate"
	fieldQueued       = "queued"
	fieldToolName     = "toolName"
	fieldToolKind     = "toolKind"
	fieldTitle        = "title"
	fieldDuration     = "durationMs"
	fieldStopReason   = "stopReason"
	fieldAnswers      = "answers"
	fieldName         = "agentName"
	fieldHarness      = "harness"
	fieldPolicy       = "harnessPolicy"
	fieldSessionAgent = "agent"
	fieldGateOf       = "gateOf"
	fieldStoppedBy    = "stoppedBy"
	fieldPlan         = "plan"
	fieldOfPlan       = "ofPlan"
	fieldStatus       = "status"
	fieldCode         = "code"
	fieldMessage      = "message"
	fieldRetryAt      = "retryAt"
	fieldOutput       = "output"
	fieldMediaType    = "mediaType"
	fieldFileName     = "name"
	fieldBytes        = "bytes"
	fieldDigest       = "digest"
	fieldToolCall     = "toolCallId"
)

func text(e *narad.Event, name string) string {
	s, _ := e.Optional(name).IsString()
	return s
}

func setText(e *narad.Event, name, s string) {
	if s != "" {
		e.SetOptional(name, narad.Quote(s))
	}
}

// Caused returns the id of the command that caused a fact, "" for none.
func Caused(e *narad.Event) string { return text(e, fieldCommand) }

// SetCaused records the command that caused a fact.
func SetCaused(e *narad.Event, commandID string) { setText(e, fieldCommand, commandID) }

// InputID returns the id of the headless input that caused a fact, "" for none.
func InputID(e *narad.Event) string { return text(e, fieldInput) }

// SetInputID records the headless input that caused a fact.
func SetInputID(e *narad.Event, id string) { setText(e, fieldInput, id) }

// Secret reports whether who brought a message called it secret: its text is redacted in the
// headless log.
func Secret(e *narad.Event) bool { return text(e, fieldSensitivity) == secret }

// SetSecret records that a message is secret.
func SetSecret(e *narad.Event) { setText(e, fieldSensitivity, secret) }

const secret = "secret"

// AgentID returns the agent's own id of what a fact is about (R4).
func AgentID(e *narad.Event) string { return text(e, fieldAgent) }

// SetAgentID records the agent's own id.
func SetAgentID(e *narad.Event, id string) { setText(e, fieldAgent, id) }

// Gate reports whether a run.started begins a gate run (R10), or a terminal ends one.
func Gate(e *narad.Event) bool { return string(e.Optional(fieldGate)) == "true" }

// SetGate marks the start, or the end, of a gate run.
func SetGate(e *narad.Event) { e.SetOptional(fieldGate, narad.Raw("true")) }

// WasQueued reports whether a message waited in the queue before its run (R9).
func WasQueued(e *narad.Event) bool { return string(e.Optional(fieldQueued)) == "true" }

// SetQueued marks a message that waited.
func SetQueued(e *narad.Event) { e.SetOptional(fieldQueued, narad.Raw("true")) }

// ToolName returns the name of the tool that a finish is about.
func ToolName(e *narad.Event) string { return text(e, fieldToolName) }

// SetToolName records the tool that a fact is about.
func SetToolName(e *narad.Event, name string) { setText(e, fieldToolName, name) }

// SetToolFinish records a tool's name and how long it took, in milliseconds, on its
// finish.
func SetToolFinish(e *narad.Event, name string, milliseconds int64) {
	setText(e, fieldToolName, name)
	e.SetOptional(fieldDuration, narad.Raw(strconv.FormatInt(max(milliseconds, 0), 10)))
}

// Duration returns how long a tool call took, in milliseconds; nil if that is not told.
func Duration(e *narad.Event) narad.Raw { return e.Optional(fieldDuration) }

// Title returns how to call a tool call for people.
func Title(e *narad.Event) string { return text(e, fieldTitle) }

// SetToolStart records a tool's kind and title on its start.
func SetToolStart(e *narad.Event, kind, title string) {
	setText(e, fieldToolKind, kind)
	setText(e, fieldTitle, title)
}

// ToolKind returns the kind of the tool that a start is about.
func ToolKind(e *narad.Event) string { return text(e, fieldToolKind) }

// StopReason returns why a finished run stopped (R42).
func StopReason(e *narad.Event) string { return text(e, fieldStopReason) }

// SetStopReason records why a finished run stopped.
func SetStopReason(e *narad.Event, reason string) { setText(e, fieldStopReason, reason) }

// SetAgentName records who works in a nested run.
func SetAgentName(e *narad.Event, name string) { setText(e, fieldName, name) }

// AgentName returns who works in a nested run.
func AgentName(e *narad.Event) string { return text(e, fieldName) }

// Answers returns the answers to questions of an interrupt.resolved (R13).
func Answers(e *narad.Event) narad.Raw { return e.Optional(fieldAnswers) }

// SetAnswers records the answers to questions.
func SetAnswers(e *narad.Event, answers narad.Raw) {
	if answers != nil {
		e.SetOptional(fieldAnswers, answers)
	}
}

// SetHarness records the version of the headless log's mapping for a root run (R1).
func SetHarness(e *narad.Event, version int) {
	e.SetOptional(fieldHarness, narad.Raw(strconv.Itoa(version)))
}

// StepFailure returns why a step of a workflow failed.
func StepFailure(e *narad.Event) (code, message string) {
	return text(e, fieldCode), text(e, fieldMessage)
}

// SetStepFailure records why a step failed, and when it is tried again: "" for never.
func SetStepFailure(e *narad.Event, code, message, retryAt string) {
	setText(e, fieldCode, code)
	setText(e, fieldMessage, message)
	setText(e, fieldRetryAt, retryAt)
}

// RetryAt returns when a step that failed is tried again, "" for never.
func RetryAt(e *narad.Event) string { return text(e, fieldRetryAt) }

// WorkflowOutput returns the result of a workflow, nil for none.
func WorkflowOutput(e *narad.Event) narad.Raw { return e.Optional(fieldOutput) }

// SetWorkflowOutput records the result of a workflow.
func SetWorkflowOutput(e *narad.Event, output narad.Raw) {
	if output != nil {
		e.SetOptional(fieldOutput, output)
	}
}

// Material is what is known of an attachment or artifact without reading it.
type Material struct {
	// Name is what people call it, such as that of a file; it may be empty.
	Name      string
	MediaType string
	// Bytes is its size, Digest names its content ("sha256:..."): both are known once it
	// is ready.
	Bytes  int64
	Digest string
	// ToolCallID is the call that an artifact came of, if it was one, and ToolName its tool;
	// AgentID is the agent's own id of the artifact (R4).
	ToolCallID string
	ToolName   string
	AgentID    string
}

// SetMaterial records what is known of an attachment or artifact on each fact of it, so
// that every one says what it is about (R1).
func SetMaterial(e *narad.Event, m Material) {
	setText(e, fieldFileName, m.Name)
	setText(e, fieldMediaType, m.MediaType)
	setText(e, fieldToolCall, m.ToolCallID)
	setText(e, fieldToolName, m.ToolName)
	setText(e, fieldAgent, m.AgentID)
	if m.Digest != "" {
		setText(e, fieldDigest, m.Digest)
		e.SetOptional(fieldBytes, narad.Raw(strconv.FormatInt(m.Bytes, 10)))
	}
}

// MaterialOf returns what a fact tells of an attachment or artifact.
func MaterialOf(e *narad.Event) Material {
	size, _ := strconv.ParseInt(string(e.Optional(fieldBytes)), 10, 64)
	return Material{
		Name: text(e, fieldFileName), MediaType: text(e, fieldMediaType), Bytes: size,
		Digest: text(e, fieldDigest), ToolCallID: text(e, fieldToolCall), ToolName: text(e, fieldToolName),
		AgentID: text(e, fieldAgent),
	}
}

// The statuses of a session, as Narya shows them.
const (
	Idle    = "idle"
	Running = "running"
	Waiting = "waiting"
)

// SetStatus records the session's status before and after a fact that changes it.
func SetStatus(e *narad.Event, was, now string) {
	if was != now {
		e.SetOptional(fieldStatus, value(status{was, now}))
	}
}

type status struct {
	Was string `json:"was"`
	Now string `json:"now"`
}

// Harness returns the version of the headless log's mapping that a root run records, or
// the withdrawal of one that did not start; 0 for none.
func Harness(e *narad.Event) int {
	version, _ := strconv.Atoi(string(e.Optional(fieldHarness)))
	return version
}

// SetAgent records the session's agent on the start of a root run.
func SetAgent(e *narad.Event, name string) { setText(e, fieldSessionAgent, name) }

// Agent returns the session's agent, as the start of a root run records it.
func Agent(e *narad.Event) string { return text(e, fieldSessionAgent) }

// HarnessPolicy returns the classification of a root run's log, nil for none.
func HarnessPolicy(e *narad.Event) narad.Raw { return e.Optional(fieldPolicy) }

// SetHarnessPolicy records the classification of a root run's log.
func SetHarnessPolicy(e *narad.Event, policy narad.Raw) {
	if policy != nil {
		e.SetOptional(fieldPolicy, policy)
	}
}

// SetAskedFor records what an interrupt is about: a tool call, and the call's tool (R10,
// R13).
func SetAskedFor(e *narad.Event, toolCallID, toolName string) {
	setText(e, fieldToolCall, toolCallID)
	setText(e, fieldToolName, toolName)
}

// SetGateOf records, on an interrupt of a gate run, the run above it, for which it asks.
func SetGateOf(e *narad.Event, runID string) { setText(e, fieldGateOf, runID) }

// GateOf returns the run for which a gate run asks, "" for an interrupt of no gate.
func GateOf(e *narad.Event) string { return text(e, fieldGateOf) }

// ToolCall returns the call that an interrupt, or an artifact, is about.
func ToolCall(e *narad.Event) string { return text(e, fieldToolCall) }

// Cause is what a client did that led to a fact.
type Cause struct {
	CommandID string `json:"commandId,omitzero"`
	InputID   string `json:"input_id,omitzero"`
}

// SetStoppedBy records, on the terminal of a root run, that its stop was requested, and by
// what: nothing where the request named nothing.
func SetStoppedBy(e *narad.Event, by Cause) { e.SetOptional(fieldStoppedBy, value(by)) }

// StoppedBy returns what requested the stop of a root run; false on the terminal of a run
// that nobody stopped.
func StoppedBy(e *narad.Event) (by Cause, stopped bool) {
	raw := e.Optional(fieldStoppedBy)
	return Cause{CommandID: field(raw, fieldCommand), InputID: field(raw, fieldInput)}, raw != nil
}

func field(object narad.Raw, name string) string {
	if object == nil {
		return ""
	}
	s, _ := object.Field(name).IsString()
	return s
}

// Planned is one step of a plan.
type Planned struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Status string `json:"status"`
}

// SetPlan records the whole plan on the last fact of a change of it.
func SetPlan(e *narad.Event, steps []Planned) {
	if steps == nil {
		steps = []Planned{}
	}
	e.SetOptional(fieldPlan, value(steps))
}

// Plan returns the whole plan, an array of steps; nil for none.
func Plan(e *narad.Event) narad.Raw { return e.Optional(fieldPlan) }

// SetOfPlan marks a fact of a change of a plan that is told with a later fact.
func SetOfPlan(e *narad.Event) { e.SetOptional(fieldOfPlan, narad.Raw("true")) }

// OfPlan reports whether a later fact tells the plan.
func OfPlan(e *narad.Event) bool { return string(e.Optional(fieldOfPlan)) == "true" }
