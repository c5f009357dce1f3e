package narya

import "strconv"

// Event is one event of the host's stream.
type Event struct {
	// ID is the event number, which is also the id of its frame and what a client resumes
	// after. 0 says that the journal has given none yet.
	ID int64
	// SessionID is the session's UUID, "" for what belongs to no session; LaneID is that of
	// the lane, "" for what belongs to none.
	SessionID string
	LaneID    string
	// Timestamp is RFC 3339. It orders nothing.
	Timestamp string
	// Payload says the type.
	Payload Payload
}

// Type returns the event's type, "" for an event without a payload.
func (e Event) Type() Type {
	if e.Payload == nil {
		return ""
	}
	return e.Payload.Type()
}

// Payload is what an event of one type tells. Its types are those of this package.
type Payload interface {
	// Type returns the event's type.
	Type() Type
	object
}

// Type names what an event tells.
type Type string

// The types of v1.
const (
	TypeSessionCreated        Type = "session-created"
	TypeSessionStatusChanged  Type = "session-status-changed"
	TypeSessionPostureChanged Type = "session-posture-changed"
	TypeModelSwitch           Type = "model-switch"
	TypeTurnStarted           Type = "turn-started"
	TypeMessageDelta          Type = "message-delta"
	TypeMessageStart          Type = "message-start"
	TypeMessageEnd            Type = "message-end"
	TypeCompaction            Type = "compaction"
	TypeContextPruned         Type = "context-pruned"
	TypeEntryAppended         Type = "entry-appended"
	TypeToolCallStarted       Type = "tool-call-started"
	TypeToolCallUpdate        Type = "tool-call-update"
	TypeToolCallFinished      Type = "tool-call-finished"
	TypeToolCallReceipt       Type = "tool-call-receipt"
	TypePermissionAsked       Type = "permission-asked"
	TypePermissionDecided     Type = "permission-decided"
	TypeLaneStarted           Type = "lane-started"
	TypeLaneFinished          Type = "lane-finished"
	TypeTurnFinished          Type = "turn-finished"
	TypeIntercomMessage       Type = "intercom-message"
	TypeWorkflowProgress      Type = "workflow-progress"
	TypeLadderChanged         Type = "ladder-changed"
	TypeCheckpointCreated     Type = "checkpoint-created"
	TypeExtension             Type = "extension"
	TypeMonitorEvent          Type = "monitor-event"
	TypeMonitorList           Type = "monitor-list"
	TypeQueuedInputWithdrawn  Type = "queued-input-withdrawn"
	TypeScheduleFired         Type = "schedule-fired"
	TypeTaskList              Type = "task-list"
	TypeQuestionAsked         Type = "question-asked"
	TypeSessionMoved          Type = "session-moved"
	TypeCompactionStarted     Type = "compaction-started"
)

// payloads makes an empty payload of each type, in the order of the contract.
var payloads = []func() Payload{
	func() Payload { return new(SessionCreated) },
	func() Payload { return new(SessionStatusChanged) },
	func() Payload { return new(SessionPostureChanged) },
	func() Payload { return new(ModelSwitch) },
	func() Payload { return new(TurnStarted) },
	func() Payload { return new(MessageDelta) },
	func() Payload { return new(MessageStart) },
	func() Payload { return new(MessageEnd) },
	func() Payload { return new(Compaction) },
	func() Payload { return new(ContextPruned) },
	func() Payload { return new(EntryAppended) },
	func() Payload { return new(ToolCallStarted) },
	func() Payload { return new(ToolCallUpdate) },
	func() Payload { return new(ToolCallFinished) },
	func() Payload { return new(ToolCallReceipt) },
	func() Payload { return new(PermissionAsked) },
	func() Payload { return new(PermissionDecided) },
	func() Payload { return new(LaneStarted) },
	func() Payload { return new(LaneFinished) },
	func() Payload { return new(TurnFinished) },
	func() Payload { return new(IntercomMessage) },
	func() Payload { return new(WorkflowProgress) },
	func() Payload { return new(LadderChanged) },
	func() Payload { return new(CheckpointCreated) },
	func() Payload { return new(Extension) },
	func() Payload { return new(MonitorEvent) },
	func() Payload { return new(MonitorList) },
	func() Payload { return new(QueuedInputWithdrawn) },
	func() Payload { return new(ScheduleFired) },
	func() Payload { return new(TaskList) },
	func() Payload { return new(QuestionAsked) },
	func() Payload { return new(SessionMoved) },
	func() Payload { return new(CompactionStarted) },
}

var registry = func() map[Type]func() Payload {
	m := make(map[Type]func() Payload, len(payloads))
	for _, empty := range payloads {
		m[empty().Type()] = empty
	}
	return m
}()

// Types returns every type, in the order of the contract.
func Types() []Type {
	types := make([]Type, len(payloads))
	for i, empty := range payloads {
		types[i] = empty().Type()
	}
	return types
}

// ofSession and ofLane hold the types whose envelope must name a session, and a lane.
var (
	ofSession = map[Type]bool{
		TypeContextPruned: true, TypeEntryAppended: true, TypeMonitorEvent: true,
		TypeMonitorList: true, TypeQueuedInputWithdrawn: true, TypeTaskList: true,
	}
	ofLane = map[Type]bool{TypeContextPruned: true, TypeEntryAppended: true}
)

// ParseID reads an event id as it stands in a frame or a Last-Event-ID: a positive
// decimal number in its one canonical spelling.
func ParseID(text string) (int64, bool) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || text != strconv.FormatInt(id, 10) {
		return 0, false
	}
	return id, true
}

// FormatID writes an event id.
func FormatID(id int64) string { return strconv.FormatInt(id, 10) }
