package facts

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/narad"
)

// The names of Mahati's facts (R6).
const (
	SessionCreated  = "mahati.session.created"
	SessionArchived = "mahati.session.archived"
	SessionRestored = "mahati.session.restored"
	Posture         = "mahati.posture"
	InputQueued     = "mahati.input.queued"
	InputWithdrawn  = "mahati.input.withdrawn"
	QueueReleased   = "mahati.queue.released"
	AgentRemembered = "mahati.agent.remembered"
	Decision        = "mahati.decision"
	ToolOutput      = "mahati.tool.output"
	Round           = "mahati.round"
	WorkflowDefined = "mahati.workflow.defined"
	WorkflowData    = "mahati.workflow.data"
)

// Prefix is what every name of Mahati's facts begins with. No agent may use it.
const Prefix = "mahati."

// Created is the payload of SessionCreated, a session's first fact (R8).
type Created struct {
	WorkspaceID      string   `json:"workspaceId"`
	Cwd              string   `json:"cwd,omitzero"`
	ClientKind       string   `json:"clientKind,omitzero"`
	Title            string   `json:"title,omitzero"`
	Agent            string   `json:"agent,omitzero"`
	ClientExecutorID string   `json:"clientExecutorId,omitzero"`
	RequiredProfiles []string `json:"requiredProfiles"`
	Mappings         Mappings `json:"mappings"`
	ParentSessionID  string   `json:"parentSessionId,omitzero"`
	// IntercomName is how other sessions call it, for ever (R44).
	IntercomName string `json:"intercomName,omitzero"`
	// Branch says where the session left its parent.
	Branch *Branched `json:"branch,omitzero"`
	// Provider and Model are those on which the first run works, Variant and Style its
	// preset and its style; all may be empty.
	Provider string `json:"provider,omitzero"`
	Model    string `json:"model,omitzero"`
	Variant  string `json:"variant,omitzero"`
	Style    string `json:"style,omitzero"`
	// Posture is "" where nobody said anything (R18).
	Posture string `json:"posture,omitzero"`
}

// Mappings are the versions of the projections that apply to a session (R1). Version
// 0 yields nothing.
type Mappings struct {
	Narya int `json:"narya"`
}

// Archived is the payload of SessionArchived and SessionRestored.
type Archived struct{}

// Postured is the payload of Posture (R18).
type Postured struct {
	Posture string `json:"posture"`
	Was     string `json:"was,omitzero"` // "" where nobody had said anything
}

// The postures.
const (
	Attended = "attended"
	Detached = "detached"
)

// Queued is the payload of InputQueued: a message that waits for its run (R16).
type Queued struct {
	MessageID string `json:"messageId"`
	RunID     string `json:"runId"`
	Kind      string `json:"kind"`
	Content   string `json:"content"`
	// AttachmentIDs are the message's.
	AttachmentIDs []string `json:"attachmentIds,omitempty"`
	// Intercom is the session that said it, nil for a person. Such a message is an entry of
	// the transcript already, from its Intercom fact on.
	Intercom *Speaker `json:"intercom,omitzero"`
}

// The kinds of queued input.
const (
	// Start is a message that waits for a place among the running agents.
	Start = "start"
	// FollowUp is a message that waits for the run before it.
	FollowUp = "follow-up"
)

// Withdrawn is the payload of InputWithdrawn.
type Withdrawn struct {
	MessageID string `json:"messageId"`
	RunID     string `json:"runId"`
}

// Released is the payload of QueueReleased: a parked queue moves again.
type Released struct{}

// Remembered is the payload of AgentRemembered: how the agent finds its session again.
type Remembered struct {
	Agent string `json:"agent"`
	Ref   string `json:"ref"`
}

// Decided is the payload of Decision: the decision of some members of a pack (R12).
type Decided struct {
	InterruptID string          `json:"interruptId"`
	Members     []MemberDecided `json:"members"`
	Actor       Actor           `json:"actor"`
	Reason      string          `json:"reason,omitzero"`
}

// Names reports whether the decision is for a member.
func (d Decided) Names(requestID string) bool {
	return slices.ContainsFunc(d.Members, func(m MemberDecided) bool { return m.RequestID == requestID })
}

// MemberDecided is the decision of one member.
type MemberDecided struct {
	RequestID string `json:"requestId"`
	Decision  string `json:"decision"`
	// Vote says that it is an approval of several that are needed: the member is not
	// decided by it. A member is named by the interrupt where that is no pack.
	Vote bool `json:"vote,omitzero"`
}

// Actor says who decided: an opaque id (R6), and for a decision by rule its name.
type Actor struct {
	ID   string `json:"id"`
	Rule string `json:"rule,omitzero"`
}

// SaidBy returns what the person who closed an interrupt gave as the reason, "" where a rule,
// the posture or time closed it: their reasons are the host's words.
func SaidBy(f *narad.InterruptResolved) string {
	var by Actor
	if json.Unmarshal(f.Actor, &by) != nil || by.Rule != "" || by.ID == "" || by.ID == "host" || by.ID == "policy" {
		return ""
	}
	return f.Reason
}

// Output is the payload of ToolOutput (R43).
type Output struct {
	ToolCallID string `json:"toolCallId"`
	Text       string `json:"text,omitzero"`
	// Truncated marks the last output of a call that had more than is kept.
	Truncated bool `json:"truncated,omitzero"`
}

// Rounded is the payload of Round: a round of a model begins (R42).
type Rounded struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// Defined is the payload of WorkflowDefined: the file that a workflow follows, as it was
// given, and what it was started with.
type Defined struct {
	Name       string    `json:"name,omitzero"`
	Definition string    `json:"definition"`
	Input      narad.Raw `json:"input"`
}

// Noted is the payload of WorkflowData: values of the working data that a step has set,
// an object by their names.
type Noted struct {
	NodeID string    `json:"nodeId"`
	Set    narad.Raw `json:"set"`
}

// Workflow returns a workflow.custom fact of a workflow.
func Workflow(workflowID, name string, payload any) *narad.Custom {
	c := &narad.Custom{Kind: narad.TypeWorkflowCustom, Name: name, Value: value(payload)}
	c.WorkflowID = workflowID
	return c
}

// Session returns a session.custom fact.
func Session(name string, payload any) *narad.Custom {
	return &narad.Custom{Kind: narad.TypeSessionCustom, Name: name, Value: value(payload)}
}

// Run returns a run.custom fact of a run. The sequences are the caller's to give.
func Run(rootRunID, runID, name string, payload any) *narad.Custom {
	c := &narad.Custom{Kind: narad.TypeRunCustom, Name: name, Value: value(payload)}
	c.RootRunID, c.RunID = rootRunID, runID
	return c
}

func value(payload any) narad.Raw {
	data, err := Value(payload)
	if err != nil {
		panic("facts: a payload of this package is always JSON: " + err.Error())
	}
	return data
}

// Read reads the payload of a fact with the given name; false if the record is
// another fact, or its payload does not fit, which no host of ours wrote.
func Read[T any](rec narad.Record, name string) (T, bool) {
	var payload T
	c, ok := rec.(*narad.Custom)
	if !ok || c.Name != name {
		return payload, false
	}
	if err := json.Unmarshal(c.Value, &payload); err != nil {
		return payload, false
	}
	return payload, true
}

// Value returns a payload as it stands in a fact. Bytes that are no text, which an
// agent may have given, are replaced.
func Value(payload any) (narad.Raw, error) {
	data, err := json.Marshal(payload, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("encode a payload: %w", err)
	}
	return data, nil
}
