package session

// Kind is what became of a record.
type Kind uint8

// The kinds of results.
const (
	// Applied: the cursor and, unless Code says otherwise, the state have moved.
	Applied Kind = iota
	// Duplicate: the very same record was applied before.
	Duplicate
	// Ignored: the record is sound and not for this state.
	Ignored
	// Gap: something before the record is missing, or its id has other content.
	Gap
	// Rejected: the record must not stand where it stands. Nothing has moved.
	Rejected
	// Control: a control message, which concerns no state.
	Control
	// Buffered: a graph record waits, for the authority that it was derived from or for
	// a snapshot (§9.7).
	Buffered
)

// Kinds is how many kinds of results there are.
const Kinds = int(Buffered) + 1

var kindNames = [Kinds]string{"applied", "duplicate", "ignored", "gap", "rejected", "control", "buffered"}

// String returns the kind's name in lower case.
func (k Kind) String() string { return kindNames[k] }

// Result is the answer to one record.
type Result struct {
	Kind Kind
	// Code says why, from a closed set: a code of this package, or one of package
	// narad for a malformed record, or one of package narad/graph for a graph record. It is empty for what was simply applied. An
	// applied record with a code moved the cursor alone: it tells of a nested run
	// what cannot be (R20).
	Code Code
	// Detail is a sentence for people. It names rules and fields, never values.
	Detail string
}

// Refused reports whether a careful host must not have sent the record.
func (r Result) Refused() bool { return r.Kind == Rejected || r.Kind == Gap }

// Code names a reason. The set is closed; [Codes] lists it.
type Code string

// Why a record is ignored.
const (
	OtherSession      Code = "other_session"
	SequencePassed    Code = "sequence_passed"
	ProfileNotClaimed Code = "profile_not_negotiated"
	WatchRegressed    Code = "watch_regressed"
	SnapshotUnchanged Code = "snapshot_unchanged"
)

// Why there is a gap.
const (
	GapActive     Code = "gap_active"
	SessionGap    Code = "session_gap"
	WorkflowGap   Code = "workflow_gap"
	EventConflict Code = "event_conflict"
)

// Why a record is rejected.
const (
	RunAlreadyStarted         Code = "run_already_started"
	RunNotStarted             Code = "run_not_started"
	RunEnded                  Code = "run_ended"
	RunNotRunning             Code = "run_not_running"
	RunNotPaused              Code = "run_not_paused"
	RunPaused                 Code = "run_paused"
	RunStopped                Code = "run_stopped"
	RunSequence               Code = "run_sequence"
	RootMismatch              Code = "root_mismatch"
	WorkflowMismatch          Code = "workflow_mismatch"
	ParentNotStarted          Code = "parent_not_started"
	ParentMismatch            Code = "parent_mismatch"
	ExecutionActive           Code = "execution_active"
	WaitMismatch              Code = "wait_mismatch"
	PauseMustFollow           Code = "pause_must_follow"
	PauseMismatch             Code = "pause_mismatch"
	OpenChild                 Code = "open_child"
	OpenTool                  Code = "open_tool"
	OpenInterrupt             Code = "open_interrupt"
	OpenRun                   Code = "open_run"
	InterruptAlreadyRequested Code = "interrupt_already_requested"
	InterruptOpen             Code = "interrupt_open"
	InterruptNotOpen          Code = "interrupt_not_open"
	InterruptMismatch         Code = "interrupt_mismatch"
	DecisionNotOffered        Code = "decision_not_offered"
	MemberMismatch            Code = "member_mismatch"
	FoldMismatch              Code = "fold_mismatch"
	ToolAlreadyStarted        Code = "tool_already_started"
	ToolNotOpen               Code = "tool_not_open"
	ToolRunMismatch           Code = "tool_run_mismatch"
	ClientExecutorMissing     Code = "client_executor_missing"
	MessageExists             Code = "message_exists"
	MessageNotFound           Code = "message_not_found"
	MessageCompleted          Code = "message_completed"
	MessageRunMismatch        Code = "message_run_mismatch"
	ReasoningExists           Code = "reasoning_exists"
	ReasoningNotFound         Code = "reasoning_not_found"
	ReasoningCompleted        Code = "reasoning_completed"
	AttachmentOrder           Code = "attachment_order"
	ArtifactOrder             Code = "artifact_order"
	StateNotFound             Code = "state_not_found"
	StateRevision             Code = "state_revision"
	ViewOpen                  Code = "view_open"
	ViewNotOpen               Code = "view_not_open"
	WorkflowAlreadyStarted    Code = "workflow_already_started"
	WorkflowNotStarted        Code = "workflow_not_started"
	WorkflowEnded             Code = "workflow_ended"
	WorkflowNotRunning        Code = "workflow_not_running"
	WorkflowNotPaused         Code = "workflow_not_paused"
	WorkflowEdgeSource        Code = "workflow_edge_source"
	StepAlreadyStarted        Code = "step_already_started"
	StepNotStarted            Code = "step_not_started"
)

// details holds a sentence for each code of this package.
var details = map[Code]string{
	OtherSession:      "the record belongs to another session",
	SequencePassed:    "the cursor is already past this sequence",
	ProfileNotClaimed: "the event belongs to a profile that was not negotiated",
	WatchRegressed:    "a watch revision must be above the last one of its key",
	SnapshotUnchanged: "the snapshot tells nothing new",

	GapActive:     "records before this one are missing",
	SessionGap:    "sessionSequence is not the next of the session",
	WorkflowGap:   "workflowSequence is not the next of the workflow",
	EventConflict: "the same event id came before with other content",

	RunAlreadyStarted:         "a run starts once",
	RunNotStarted:             "the run has not started",
	RunEnded:                  "the run has ended",
	RunNotRunning:             "the run must be running",
	RunNotPaused:              "the run must be paused",
	RunPaused:                 "a paused run resumes before it ends",
	RunStopped:                "nothing starts below a run whose stop was requested",
	RunSequence:               "sequence is not the next of the run tree",
	RootMismatch:              "the run belongs to another run tree",
	WorkflowMismatch:          "the run belongs to another workflow, or to none",
	ParentNotStarted:          "the parent run has not started",
	ParentMismatch:            "the parent run belongs to another run tree",
	ExecutionActive:           "a session has at most one top-level execution at a time",
	WaitMismatch:              "waitId is not the one that is waited for",
	PauseMustFollow:           "an interrupt is followed at once by its pause",
	PauseMismatch:             "the pause does not directly follow an interrupt with its ids",
	OpenChild:                 "a run of the run is open",
	OpenTool:                  "a tool call of the run is open",
	OpenInterrupt:             "an interrupt is open",
	OpenRun:                   "a run of the workflow is open",
	InterruptAlreadyRequested: "an interrupt is requested once",
	InterruptOpen:             "another interrupt is open",
	InterruptNotOpen:          "no such interrupt is open",
	InterruptMismatch:         "the interrupt belongs to another run or workflow",
	DecisionNotOffered:        "the decision is not one of the interrupt's actions",
	MemberMismatch:            "the members are not those of the request",
	FoldMismatch:              "the decision is not the fold of the members' decisions",
	ToolAlreadyStarted:        "a tool call starts once",
	ToolNotOpen:               "no such tool call is open",
	ToolRunMismatch:           "the tool call belongs to another run",
	ClientExecutorMissing:     "the run has no client executor",
	MessageExists:             "a message begins once",
	MessageNotFound:           "the message has not begun",
	MessageCompleted:          "the message is complete",
	MessageRunMismatch:        "the message belongs to another run",
	ReasoningExists:           "a stretch of reasoning begins once",
	ReasoningNotFound:         "the stretch of reasoning has not begun",
	ReasoningCompleted:        "the stretch of reasoning is complete",
	AttachmentOrder:           "an attachment is added, then ready or failed, then removed",
	ArtifactOrder:             "an artifact is added, then ready or failed",
	StateNotFound:             "the scope has no state yet",
	StateRevision:             "the revision does not follow the present one",
	ViewOpen:                  "the view is open already",
	ViewNotOpen:               "the view is not open",
	WorkflowAlreadyStarted:    "a workflow starts once",
	WorkflowNotStarted:        "the workflow has not started",
	WorkflowEnded:             "the workflow has ended",
	WorkflowNotRunning:        "the workflow must be running",
	WorkflowNotPaused:         "the workflow must be paused",
	WorkflowEdgeSource:        "the edge does not start at the current node",
	StepAlreadyStarted:        "the step is running already",
	StepNotStarted:            "the step is not running",
}

// Codes returns every code of this package, in no particular order. Malformed
// records have the codes of package narad.
func Codes() []Code {
	codes := make([]Code, 0, len(details))
	for c := range details {
		codes = append(codes, c)
	}
	return codes
}

func result(k Kind, c Code) Result { return Result{k, c, details[c]} }
