package narad

import "strings"

// Version is the protocol's id, the only accepted value of protocolVersion.
const Version = "narad/v1"

// Type is the dotted name of a record's kind, such as "run.started".
type Type string

// Authority events of the core (specification §7).
const (
	TypeRunStarted         Type = "run.started"
	TypeRunPaused          Type = "run.paused"
	TypeRunResumed         Type = "run.resumed"
	TypeRunStopRequested   Type = "run.stop.requested"
	TypeRunFinished        Type = "run.finished"
	TypeRunError           Type = "run.error"
	TypeRunCancelled       Type = "run.cancelled"
	TypeInterruptRequested Type = "interrupt.requested"
	TypeInterruptResolved  Type = "interrupt.resolved"
	TypeToolCallStarted    Type = "tool.call.started"
	TypeToolCallFinished   Type = "tool.call.finished"
)

// Authority events of the profiles (specification §9; R19 for the workflow types
// that its prose names only in passing).
const (
	TypeWorkflowStarted       Type = "workflow.started"
	TypeWorkflowPaused        Type = "workflow.paused"
	TypeWorkflowResumed       Type = "workflow.resumed"
	TypeWorkflowStopRequested Type = "workflow.stop.requested"
	TypeWorkflowFinished      Type = "workflow.finished"
	TypeWorkflowError         Type = "workflow.error"
	TypeWorkflowCancelled     Type = "workflow.cancelled"
	TypeWorkflowStepStarted   Type = "workflow.step.started"
	TypeWorkflowStepFinished  Type = "workflow.step.finished"
	TypeWorkflowStepFailed    Type = "workflow.step.failed"
	TypeWorkflowEdgeTaken     Type = "workflow.edge.taken"

	TypeMessageUserRecorded  Type = "message.user.recorded"
	TypeMessageTextStarted   Type = "message.text.started"
	TypeMessageTextDelta     Type = "message.text.delta"
	TypeMessageTextCompleted Type = "message.text.completed"
	TypeMessageRedacted      Type = "message.redacted"
	TypeReasoningStarted     Type = "reasoning.started"
	TypeReasoningDelta       Type = "reasoning.delta"
	TypeReasoningCompleted   Type = "reasoning.completed"

	TypeAttachmentAdded   Type = "attachment.added"
	TypeAttachmentReady   Type = "attachment.ready"
	TypeAttachmentFailed  Type = "attachment.failed"
	TypeAttachmentRemoved Type = "attachment.removed"
	TypeArtifactAdded     Type = "artifact.added"
	TypeArtifactReady     Type = "artifact.ready"
	TypeArtifactFailed    Type = "artifact.failed"

	TypeStateSnapshot   Type = "state.snapshot"
	TypeStateDelta      Type = "state.delta"
	TypeStateCompacted  Type = "state.compacted"
	TypeUIStateSnapshot Type = "ui.state.snapshot"
	TypeUIStateDelta    Type = "ui.state.delta"
	TypeViewOpened      Type = "view.opened"
	TypeViewUpdated     Type = "view.updated"
	TypeViewClosed      Type = "view.closed"

	TypeProgressRecorded Type = "progress.recorded"

	TypeSessionCustom  Type = "session.custom"
	TypeWorkflowCustom Type = "workflow.custom"
	TypeRunCustom      Type = "run.custom"
	TypeNodeCustom     Type = "node.custom"
	TypeSessionRaw     Type = "session.raw"
	TypeWorkflowRaw    Type = "workflow.raw"
	TypeRunRaw         Type = "run.raw"
	TypeNodeRaw        Type = "node.raw"

	TypeTraceSpanStarted   Type = "trace.span.started"
	TypeTraceSpanCompleted Type = "trace.span.completed"
	TypeTraceEvent         Type = "trace.event"
	TypeDebugLog           Type = "debug.log"
	TypeDebugSnapshot      Type = "debug.snapshot"
)

// Watch events (specification §8).
const (
	TypeSessionRevision   Type = "session.revision"
	TypeRunRevision       Type = "run.revision"
	TypeWorkflowRevision  Type = "workflow.revision"
	TypeNodeRevision      Type = "node.revision"
	TypeWorkspaceRevision Type = "workspace.revision"
	TypeSessionCreated    Type = "session.created"
	TypeSessionUpdated    Type = "session.updated"
	TypeSessionArchived   Type = "session.archived"
)

// Hydrate records (specification §9.3 and §9.7).
const (
	TypeMessagesSnapshot Type = "messages.snapshot"
	TypeGraphSnapshot    Type = "graph.snapshot"
	TypeGraphDelta       Type = "graph.delta"
)

// Control messages (specification §11).
const (
	TypeClientAttached    Type = "client.attached"
	TypeClientHeartbeat   Type = "client.heartbeat"
	TypeClientToolExecute Type = "client.tool.execute"
	TypeClientToolFinish  Type = "client.tool.finish"
	TypeServerHeartbeat   Type = "server.heartbeat"
)

// Class is one of the four kinds of wire data (specification §2).
type Class uint8

// The classes. ClassUnknown is what fits none of them.
const (
	ClassUnknown Class = iota
	ClassAuthority
	ClassWatch
	ClassHydrate
	ClassControl
)

var classNames = [...]string{"unknown", "authority", "watch", "hydrate", "control"}

// String returns the class's name in lower case.
func (c Class) String() string { return classNames[c] }

// Profile is one of the twelve optional parts of the protocol (§2.1), as a bit so
// that a negotiated set is one word. The zero value stands for the core.
type Profile uint16

// The profiles, in the specification's order.
const (
	Workflow Profile = 1 << iota
	Conversation
	Attachments
	Artifacts
	StateProfile
	UI
	Graph
	Progress
	Workspace
	Extensions
	Trace
	Debug
)

// Core is the set that every client has negotiated: no profile at all.
const Core Profile = 0

// AllProfiles is the set of every profile of narad/v1.
const AllProfiles Profile = 1<<12 - 1

var profileNames = [...]string{
	"workflow", "conversation", "attachments", "artifacts", "state", "ui",
	"graph", "progress", "workspace", "extensions", "trace", "debug",
}

// Has reports whether every profile of q is in p. The core is in every set.
func (p Profile) Has(q Profile) bool { return p&q == q }

// IDs returns the wire ids of the set, such as "narad.conversation/v1", in the
// specification's order.
func (p Profile) IDs() []string {
	var ids []string
	for i, name := range profileNames {
		if p.Has(1 << i) {
			ids = append(ids, "narad."+name+"/v1")
		}
	}
	return ids
}

// ParseProfile reads a profile's wire id, or its short name such as
// "conversation". The second result is false for an id that narad/v1 lacks.
func ParseProfile(id string) (Profile, bool) {
	name := strings.TrimSuffix(strings.TrimPrefix(id, "narad."), "/v1")
	for i, known := range profileNames {
		if name == known {
			return 1 << i, true
		}
	}
	return 0, false
}

// Class returns the class of a type that narad/v1 defines, and ClassUnknown for
// any other.
func (t Type) Class() Class { return registry[t].class }

// Profile returns the profile that a type belongs to. A type that narad/v1 does
// not define belongs to the profile that owns its prefix, if there is one, so
// that an unknown type of an active profile can be told from one of a profile
// nobody claimed.
func (t Type) Profile() Profile {
	if s, ok := registry[t]; ok {
		return s.profile
	}
	for _, p := range prefixes {
		if strings.HasPrefix(string(t), p.prefix) {
			return p.profile
		}
	}
	if strings.HasSuffix(string(t), ".custom") || strings.HasSuffix(string(t), ".raw") {
		return Extensions
	}
	return Core
}

var prefixes = []struct {
	prefix  string
	profile Profile
}{
	{"workflow.", Workflow}, {"message.", Conversation}, {"messages.", Conversation},
	{"reasoning.", Conversation}, {"attachment.", Attachments}, {"artifact.", Artifacts},
	{"state.", StateProfile}, {"ui.", UI}, {"view.", UI}, {"graph.", Graph},
	{"progress.", Progress}, {"workspace.", Workspace}, {"trace.", Trace}, {"debug.", Debug},
}
