package agent

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// Refusals of a [Handle].
var (
	// ErrStopped says that a stop was requested: no tool, run or question starts.
	ErrStopped = errors.New("the run is being stopped")
	// ErrEnded says that the run has ended.
	ErrEnded = errors.New("the run has ended")
	// ErrTooLarge says that a value is above the size of an event (R7).
	ErrTooLarge = errors.New("the value is larger than an event may be")
	// ErrConflict says that a state has another revision than the change is based on.
	ErrConflict = errors.New("the state has another revision")
	// ErrInvalid says that a record makes no sense: an error of the agent.
	ErrInvalid = errors.New("the record is not allowed here")
)

// Agent performs the runs of one session. The host makes one when the session's first
// run starts, and closes it when the session has been idle for long.
type Agent interface {
	// Run performs one run and returns how it ended. When ctx is cancelled it was
	// stopped, or the host ends: it must return soon; what it then says of its ending
	// is used unless the facts say otherwise.
	Run(ctx context.Context, h Handle) Ending
	// Steer hands a message to the run under way, or returns errors.ErrUnsupported.
	Steer(ctx context.Context, message Message) error
	// Close ends what the agent holds, processes included, and returns when it is
	// gone. It may be called twice.
	Close() error
}

// Kind is a configured agent: it makes an [Agent] for each session.
type Kind interface {
	// Open returns an agent for a session. Starting a process may wait until the
	// first run.
	Open(ctx context.Context, s Session) (Agent, error)
	// Resumes reports whether a run goes on after a restart of the host: Run is then
	// called again with the run's past (R17).
	Resumes() bool
	// Steers reports whether its agents take messages during a run.
	Steers() bool
}

// Offers is implemented by kinds that know on which models their agents can run.
type Offers interface {
	// Models lists them; known is false where that cannot be told yet. DefaultModel is the
	// one that a session gets which names none; false where it is given none, and so runs on
	// whatever its agent has. Both may be called from any goroutine.
	Models() (list []Model, known bool)
	DefaultModel() (Model, bool)
}

// Model is one on which an agent can run.
type Model struct {
	Provider string
	// ID is what the provider calls it.
	ID string
	// Variants are the presets of options that it can run under; none: it has no such
	// choice.
	Variants []string
}

// CodeNoModel is the code of a run that failed since its agent cannot run on the model that
// was chosen.
const CodeNoModel = "no_usable_model"

// Chosen is what somebody has chosen for the runs of a session. Each may be empty: the
// agent's own.
type Chosen struct {
	Provider string
	Model    string
	Variant  string
	// Style is what the agent is to be told of how to answer.
	Style string
}

// Said is one message of a conversation that came before.
type Said struct {
	// Role is user or assistant.
	Role    string
	Content string
}

// Session is what an agent may know of its session. One that moves to another directory
// gets another agent with its next run.
type Session struct {
	ID  string
	Cwd string
	// Ref is what the agent last gave to Handle.Remember, "" at first.
	Ref string
	// Own records durably that a process belongs to the session, before its first
	// prompt, so that a later host can end what a dead one left running. Disown takes
	// the record back when the process is gone.
	Own    func(context.Context, Process) error
	Disown func(context.Context, Process) error
}

// Process identifies a process group across restarts of host and machine.
type Process struct {
	PID int `json:"pid"`
	// StartTime is the kernel's start time of the process in clock ticks, so that a
	// reused pid is not mistaken for it.
	StartTime uint64 `json:"startTime"`
	// BootID is the machine's boot.
	BootID string `json:"bootId"`
}

// Message is what a person said.
type Message struct {
	MessageID string
	Content   string
	// Attachments are what came with it, in its order.
	Attachments []Attachment
	// From is the session that said it, nil for a person.
	From *facts.Speaker
}

// Attachment is a file that a person gave.
type Attachment struct {
	ID string
	// Name is a file name, and may be empty.
	Name      string
	MediaType string
	Bytes     int64
	// Open reads it from its beginning. It fails where the attachment was removed, or is
	// damaged; of large content damage may show only at its end.
	Open func() (io.ReadCloser, error)
}

// Artifact is an output of a run that no event holds.
type Artifact struct {
	// AgentID finds the artifact again after a restart.
	AgentID string
	// Name is a file name, and may be empty.
	Name      string
	MediaType string
	// ToolCallID is the open call of the run that it comes of, if it is one.
	ToolCallID string
}

// Info is what a run is about.
type Info struct {
	SessionID string
	RunID     string
	RootRunID string
	Cwd       string
	// Executor is bound to the run (R34), "" for none.
	Executor string
	Chosen   Chosen
	Prompt   Message
	// Before is the conversation that the session goes on from and its agent does not know,
	// the newest part of it, the oldest first.
	Before []Said
	// Past holds the facts of the run's tree, the oldest first, when the run goes on
	// after a restart; it is empty for a new run.
	Past []narad.Authority
}

// Ending is how a run ended.
type Ending struct {
	Outcome Outcome
	// Code and Message tell of a fault or of a cancellation. The message must be fit
	// for users.
	Code    string
	Message string
	// StopReason is why a finished run stopped (R42): "completed", "max-tokens",
	// "content-filter", ...
	StopReason string
	Usage      *narad.Usage
	// Turn is what else the run took, as far as the agent knows (R42). How long it took is
	// the host's to tell.
	Turn facts.Turn
}

// Outcome is one of the three ways to end.
type Outcome uint8

// The outcomes.
const (
	Finished Outcome = iota
	Failed
	Cancelled
)

// Handle records the facts of one run. Ctx of each call bounds the waiting only: a
// record that was taken is recorded.
type Handle interface {
	Info() Info

	// Text adds to the run's assistant message, and begins one if none is open. What
	// comes within a short while is recorded together, so it returns before the text
	// is durable; the next call of any other method records it first.
	Text(ctx context.Context, text string) error
	// Thought adds to the run's reasoning, in the same way.
	Thought(ctx context.Context, text string) error
	// EndMessage completes the open message and the open reasoning: the next text
	// begins new ones.
	EndMessage(ctx context.Context) error

	// StartTool records that a tool is called and returns the host's id for it.
	StartTool(ctx context.Context, t Tool) (toolCallID string, err error)
	// ToolOutput records output of an open tool call as it comes (R43).
	ToolOutput(ctx context.Context, toolCallID, text string) error
	// FinishTool records the end of a tool call. What still asks for it expires.
	FinishTool(ctx context.Context, toolCallID string, r ToolResult) error
	// CallClient calls a tool of the run's executor, which runs it elsewhere, and waits
	// for its end; meanwhile the run may be paused until the executor is there. Started
	// is told the host's id of the call when it is recorded, and may be nil. A tool that is
	// assigned to another executor is called in a nested run bound to that (R34).
	CallClient(ctx context.Context, t Tool, started func(toolCallID string)) (ToolResult, error)
	// AwaitClient waits for a call of the executor that was open before a restart.
	AwaitClient(ctx context.Context, toolCallID string) (ToolResult, error)
	// OpenGate asks whether an open tool call may go on, while the run works on: in a
	// gate run of its own (R10). It returns when the question is recorded, so that what
	// is told after it stands after it; Await waits for the answer. A denied call is
	// finished by the agent, as cancelled with the code "denied".
	OpenGate(ctx context.Context, p Permission) (interruptID string, err error)
	// Permit is OpenGate and Await.
	Permit(ctx context.Context, p Permission) (Answer, error)

	// Ask pauses the run until the question is decided.
	Ask(ctx context.Context, a Ask) (Answer, error)
	// Await waits for the decision of an interrupt: of a gate, or one that was asked
	// before a restart. It may have come already. When ctx is done the question stays
	// open; Retract closes it.
	Await(ctx context.Context, interruptID string) (Answer, error)
	// Retract closes a question of this run, or of one of its gates, that needs no answer
	// any more: it has expired, for the reason given, a word such as "withdrawn". It
	// does nothing to one that is closed.
	Retract(ctx context.Context, interruptID, reason string) error

	// StartRun begins a nested run. Its handle's End must be called.
	StartRun(ctx context.Context, n Nested) (Handle, error)
	// End ends a nested run; the top-level run ends when Agent.Run returns.
	End(ctx context.Context, e Ending) error
	// Resume returns the handle of a nested run that was open before a restart.
	Resume(ctx context.Context, runID string) (Handle, error)

	// AddArtifact keeps an output of the run and returns the host's id for it. Content is
	// read to its end. What cannot be kept is recorded as a failed one, and the error is
	// ErrTooLarge or that of the disk or the reader; errors.ErrUnsupported where the host
	// keeps nothing.
	AddArtifact(ctx context.Context, a Artifact, content io.Reader) (artifactID string, err error)
	// AnnounceArtifact records an output that is being made; CompleteArtifact or
	// FailArtifact end that. What is left at the end of the run has failed.
	AnnounceArtifact(ctx context.Context, a Artifact) (artifactID string, err error)
	// CompleteArtifact gives an announced output its content. An output whose content
	// cannot be kept has failed.
	CompleteArtifact(ctx context.Context, artifactID string, content io.Reader) error
	// FailArtifact says that an announced output will not come. Code is a word, message
	// is for people.
	FailArtifact(ctx context.Context, artifactID, code, message string) error

	// State returns a state of the session or of the run, and its revision: 0 and no value
	// where there is none yet.
	State(ctx context.Context, s StateScope) (value narad.Raw, revision int64, err error)
	// SetState replaces a state and returns its new revision.
	SetState(ctx context.Context, s StateScope, value narad.Raw) (revision int64, err error)
	// PatchState changes a state by a patch (RFC 6902) that is based on a revision, and
	// returns the new one; ErrConflict where the state has another one by now.
	PatchState(ctx context.Context, s StateScope, base int64, patch narad.Raw) (revision int64, err error)
	// CompactState records that all changes of a state so far stand in one snapshot. A UI
	// state is not compacted: the protocol has no fact for that.
	CompactState(ctx context.Context, s StateScope) (revision int64, err error)
	// OpenView shows something to people, and returns the host's id of it; at most 64 are
	// open in a session. UpdateView replaces its model, or patches it; CloseView ends it.
	// A view outlives its run.
	OpenView(ctx context.Context, v View) (viewID string, err error)
	UpdateView(ctx context.Context, viewID string, u ViewUpdate) error
	CloseView(ctx context.Context, viewID, agentID string) error
	// Trace records a fact of the trace or debug profile, in the session's side session:
	// never in its own journal (R6).
	Trace(ctx context.Context, t Trace) error

	// Progress records an activity.
	Progress(ctx context.Context, p Progress) error
	// Tasks records the agent's plan as the session's list of tasks, whole, where no activity
	// of it has changed: an empty one, or one that was written again. Progress with a plan
	// records it of itself. AgentID finds the record again after a restart; it may be empty.
	Tasks(ctx context.Context, agentID string, plan []facts.Planned) error
	// Tell says something to another session of the workspace, by its name (R44). An ask has
	// an id, by which its answer is awaited; it ends with the run.
	Tell(ctx context.Context, t Telling) (askID string, err error)
	// AwaitAnswer waits for the answer to an ask. Answered is false where nobody will answer
	// any more.
	AwaitAnswer(ctx context.Context, askID string) (content string, answered bool, err error)
	// AnswerAsk answers an ask that another session put to this one. ErrConflict says that
	// nobody waits for it any more. AgentID finds the answer again after a restart.
	AnswerAsk(ctx context.Context, askID, content, agentID string) error
	// Round records that a round of a model begins, where the agent knows of which
	// (R42). Both names are required and at most 256 bytes long.
	Round(ctx context.Context, r Round) error
	// Custom records a run.custom fact. Names under "mahati." are the host's.
	Custom(ctx context.Context, name string, value narad.Raw) error
	// Raw records a run.raw fact: an encoded payload with its content type.
	Raw(ctx context.Context, contentType, payload, agentID string) error
	// Remember records a reference by which the agent finds its session again.
	Remember(ctx context.Context, ref string) error
}

// Tool is a tool call that begins.
type Tool struct {
	// AgentID is the agent's own id of the call, which may repeat over time (R4).
	AgentID string
	Name    string
	// Kind is what the tool does: read, edit, delete, move, search, execute, think,
	// fetch, or other. The policy knows it by this word.
	Kind  string
	Title string
	// Paths are the files that the call is about, for the policy; absolute where the agent
	// can tell.
	Paths []string
	Args  narad.Raw
}

// ToolResult is how a tool call ended.
type ToolResult struct {
	Outcome  narad.Outcome
	Response narad.Raw
	Code     string
	Message  string
	// Touches are the files that the call read or, as one that succeeded, changed. The first
	// 128 of them are recorded.
	Touches []facts.FileTouch
}

// ResultOf is how a client tool call ended. An executor tells the code and the message of
// an error in its response: the protocol has no other place for them.
func ResultOf(f *narad.ToolCallFinished) ToolResult {
	r := ToolResult{Outcome: f.Outcome, Response: f.Response, Code: f.Code, Message: f.Message}
	if f.Outcome == narad.OutcomeError && r.Code == "" {
		r.Code, _ = f.Response.Field("code").IsString()
		r.Message, _ = f.Response.Field("message").IsString()
	}
	return r
}

// Permission asks for one open tool call (R11).
type Permission struct {
	ToolCallID string
	Title      string
	Message    string
	// Kind and Paths are those of the call as its agent tells them now, for the policy.
	// What is empty is as it was at the start.
	Kind  string
	Paths []string
	// Resource and Detail say what the call touches.
	Resource string
	Detail   string
	Options  []Option
}

// Option is one answer that the agent understands.
type Option struct {
	// ID is the agent's own id of it.
	ID   string
	Name string
	// Action is the word under which it is offered: approve, approve_always, deny,
	// deny_always, stop.
	Action string
}

// Ask is a question that pauses the run.
type Ask struct {
	// AgentID finds the question again after a restart.
	AgentID string
	// Kind is "approval", "question", or a namespaced word.
	Kind    string
	Title   string
	Message string
	Actions []string
	// Input is the kind's own content; Members and Questions are added to it.
	Input narad.Raw
	// Members make a pack: each is decided on its own (R12). At most 32.
	Members []Member
	// Questions make it a question: it is asked through a tool call ask_user (R13).
	Questions []Question
	// ExpiresIn is how long it may stay open; 0 is for ever.
	ExpiresIn time.Duration
}

// Member is one of several things that are asked together.
type Member struct {
	RequestID  string
	ToolCallID string
	ToolName   string
	ToolType   string
	Action     string
	Resource   string
	Detail     string
}

// Question is one question to a person.
type Question struct {
	Text string
	// Options are the offered answers; none means free text.
	Options []string
	// Recommended is the index of an option, or -1.
	Recommended int
	// Multiple allows several options, Free a text of one's own.
	Multiple bool
	Free     bool
}

// Answer is what was decided.
type Answer struct {
	InterruptID string
	Decision    string
	Reason      string
	// Said is the reason that a person gave, "" where a rule, the posture or time decided.
	Said string
	// Members holds the decision of each member of a pack, by its RequestID.
	Members map[string]string
	// Answers holds the answers to questions, as they stand in the fact.
	Answers narad.Raw
}

// Nested is a run below the present one.
type Nested struct {
	// AgentID finds the run again after a restart.
	AgentID string
	// Name says who works there.
	Name string
	// ParentToolCallID is the open tool call of the present run that started it.
	ParentToolCallID string
	// Prompt is what the nested run was told, "" for none.
	Prompt string
	// Executor runs the client tools of the run; "" is that of the run above (R34).
	Executor string
}

// Telling is what a run says to another session.
type Telling struct {
	// AgentID finds it again after a restart.
	AgentID string
	// To is the name of the other session.
	To      string
	Content string
	// Ask wants an answer.
	Ask bool
}

// Round is one request to a model with what follows from it.
type Round struct {
	// Provider says who runs the model, and Model what it is called there.
	Provider string
	Model    string
}

// StateScope says which state is meant.
type StateScope struct {
	// Scope is the session, or the run, or the workflow that the run is of.
	Scope narad.Scope
	// UI says that it is the state of the UI.
	UI bool
	// AgentID finds the change again after a restart; it may be empty.
	AgentID string
}

// View is something that is shown to people. Its model is the agent's own.
type View struct {
	AgentID string
	Model   narad.Raw
}

// ViewUpdate is a new model, or a patch of it (RFC 6902): exactly one of them.
type ViewUpdate struct {
	AgentID string
	Model   narad.Raw
	Patch   narad.Raw
}

// Trace is one fact of the trace or debug profile.
type Trace struct {
	// Type is trace.span.started, trace.span.completed, trace.event, debug.log or
	// debug.snapshot.
	Type narad.Type
	// Value is an object; its members become fields of the fact, under the run's ids. None
	// may be a field of the envelope.
	Value narad.Raw
}

// Progress is one activity.
type Progress struct {
	// ID is the agent's own; the same id again changes the activity.
	ID       string
	Category string
	Label    string
	Detail   string
	Status   narad.ProgressStatus
	Privacy  narad.Privacy
	// Plan is the whole plan that the activity is a step of; nil for one of none.
	Plan *Plan
}

// Plan is a plan as it stands with the activities that are recorded for it.
type Plan struct {
	Steps []facts.Planned
	// Later says that another activity follows for the same change: that one tells it.
	Later bool
}
