package narad

import "reflect"

// spec is what the package knows of a type.
type spec struct {
	class   Class
	profile Profile
	make    func() Record
	form    reflect.Type // of what make returns
}

// registry holds every type of narad/v1.
var registry = newRegistry()

func newRegistry() map[Type]spec {
	r := make(map[Type]spec, 80)
	authority := func(p Profile, make func() Record) {
		r[make().Type()] = spec{class: ClassAuthority, profile: p, make: make}
	}
	kinds := func(p Profile, make func(Type) Record, types ...Type) {
		for _, t := range types {
			r[t] = spec{class: ClassAuthority, profile: p, make: func() Record { return make(t) }}
		}
	}
	authority(Core, func() Record { return new(RunStarted) })
	authority(Core, func() Record { return new(RunPaused) })
	authority(Core, func() Record { return new(RunResumed) })
	authority(Core, func() Record { return new(RunStopRequested) })
	authority(Core, func() Record { return new(RunFinished) })
	authority(Core, func() Record { return new(RunError) })
	authority(Core, func() Record { return new(RunCancelled) })
	authority(Core, func() Record { return new(InterruptRequested) })
	authority(Core, func() Record { return new(InterruptResolved) })
	authority(Core, func() Record { return new(ToolCallStarted) })
	authority(Core, func() Record { return new(ToolCallFinished) })

	authority(Workflow, func() Record { return new(WorkflowStarted) })
	authority(Workflow, func() Record { return new(WorkflowPaused) })
	authority(Workflow, func() Record { return new(WorkflowResumed) })
	authority(Workflow, func() Record { return new(WorkflowStopRequested) })
	authority(Workflow, func() Record { return new(WorkflowEdgeTaken) })
	kinds(Workflow, func(t Type) Record { return &WorkflowEnded{Kind: t} },
		TypeWorkflowFinished, TypeWorkflowError, TypeWorkflowCancelled)
	kinds(Workflow, func(t Type) Record { return &WorkflowStep{Kind: t} },
		TypeWorkflowStepStarted, TypeWorkflowStepFinished, TypeWorkflowStepFailed)

	authority(Conversation, func() Record { return new(MessageUserRecorded) })
	authority(Conversation, func() Record { return new(MessageTextStarted) })
	authority(Conversation, func() Record { return new(MessageTextDelta) })
	authority(Conversation, func() Record { return new(MessageTextCompleted) })
	authority(Conversation, func() Record { return new(MessageRedacted) })
	authority(Conversation, func() Record { return new(ReasoningStarted) })
	authority(Conversation, func() Record { return new(ReasoningDelta) })
	authority(Conversation, func() Record { return new(ReasoningCompleted) })

	kinds(Attachments, func(t Type) Record { return &Attachment{Kind: t} },
		TypeAttachmentAdded, TypeAttachmentReady, TypeAttachmentFailed, TypeAttachmentRemoved)
	kinds(Artifacts, func(t Type) Record { return &Artifact{Kind: t} },
		TypeArtifactAdded, TypeArtifactReady, TypeArtifactFailed)

	kinds(StateProfile, func(t Type) Record { return &StateSnapshot{Kind: t} }, TypeStateSnapshot)
	kinds(StateProfile, func(t Type) Record { return &StateDelta{Kind: t} }, TypeStateDelta)
	authority(StateProfile, func() Record { return new(StateCompacted) })
	kinds(UI, func(t Type) Record { return &StateSnapshot{Kind: t} }, TypeUIStateSnapshot)
	kinds(UI, func(t Type) Record { return &StateDelta{Kind: t} }, TypeUIStateDelta)
	authority(UI, func() Record { return new(ViewOpened) })
	authority(UI, func() Record { return new(ViewUpdated) })
	authority(UI, func() Record { return new(ViewClosed) })
	authority(Progress, func() Record { return new(ProgressRecorded) })

	// The public client reads workflow.custom and workflow.raw as the workflow's;
	// the specification lists them under extensions, and so do we.
	kinds(Extensions, func(t Type) Record { return &Custom{Kind: t} },
		TypeSessionCustom, TypeWorkflowCustom, TypeRunCustom, TypeNodeCustom)
	kinds(Extensions, func(t Type) Record { return &Opaque{Kind: t} },
		TypeSessionRaw, TypeWorkflowRaw, TypeRunRaw, TypeNodeRaw)
	kinds(Trace, func(t Type) Record { return &Tracing{Kind: t} },
		TypeTraceSpanStarted, TypeTraceSpanCompleted, TypeTraceEvent)
	kinds(Debug, func(t Type) Record { return &Tracing{Kind: t} }, TypeDebugLog, TypeDebugSnapshot)

	addWatch(r)
	addHydrate(r)
	addControl(r)
	for t, s := range r {
		s.form = reflect.TypeOf(s.make())
		r[t] = s
	}
	return r
}

func addWatch(r map[Type]spec) {
	for t, p := range map[Type]Profile{
		TypeSessionRevision: Core, TypeRunRevision: Core,
		TypeWorkflowRevision: Workflow, TypeNodeRevision: Graph,
		TypeWorkspaceRevision: Workspace, TypeSessionCreated: Workspace,
		TypeSessionUpdated: Workspace, TypeSessionArchived: Workspace,
	} {
		r[t] = spec{class: ClassWatch, profile: p, make: func() Record { return &Revision{Kind: t} }}
	}
}

func addHydrate(r map[Type]spec) {
	r[TypeMessagesSnapshot] = spec{class: ClassHydrate, profile: Conversation, make: func() Record { return new(MessagesSnapshot) }}
	r[TypeGraphSnapshot] = spec{class: ClassHydrate, profile: Graph, make: func() Record { return new(GraphSnapshot) }}
	r[TypeGraphDelta] = spec{class: ClassHydrate, profile: Graph, make: func() Record { return new(GraphDelta) }}
}

func addControl(r map[Type]spec) {
	r[TypeClientAttached] = spec{class: ClassControl, profile: Core, make: func() Record { return new(ClientAttached) }}
	r[TypeClientHeartbeat] = spec{class: ClassControl, profile: Core, make: func() Record { return new(ClientHeartbeat) }}
	r[TypeClientToolExecute] = spec{class: ClassControl, profile: Core, make: func() Record { return new(ClientToolExecute) }}
	r[TypeClientToolFinish] = spec{class: ClassControl, profile: Core, make: func() Record { return new(ClientToolFinish) }}
	r[TypeServerHeartbeat] = spec{class: ClassControl, profile: Core, make: func() Record { return new(ServerHeartbeat) }}
}

// Types returns every type of narad/v1, in no particular order.
func Types() []Type {
	types := make([]Type, 0, len(registry))
	for t := range registry {
		types = append(types, t)
	}
	return types
}
