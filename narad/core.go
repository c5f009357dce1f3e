package narad

// RunStarted begins a run (specification §7.1). A nested run names its parent.
type RunStarted struct {
	Event
	ParentRunID      string
	ParentToolCallID string
	// ClientExecutorID is the run's immutable binding; empty means no client
	// executor, also for a nested run (§3.3).
	ClientExecutorID string
}

// Type returns run.started.
func (*RunStarted) Type() Type { return TypeRunStarted }

func (r *RunStarted) fields(c *coder) {
	r.envelope(c, laneRun)
	c.id("parentRunId", &r.ParentRunID, optional)
	c.id("parentToolCallId", &r.ParentToolCallID, optional)
	c.id("clientExecutorId", &r.ClientExecutorID, optional)
}

// ResumeMode says what ends a pause (§6.4).
type ResumeMode string

// The resume modes.
const (
	ResumeAutomatic ResumeMode = "automatic"
	ResumeCommand   ResumeMode = "command"
)

var resumeModes = []ResumeMode{ResumeAutomatic, ResumeCommand}

// RunPaused suspends a run until its wait ends (§7.2).
type RunPaused struct {
	Event
	WaitID      string
	Reason      string
	ResumeMode  ResumeMode
	InterruptID string
	RetryAt     string
	Message     string
}

// Type returns run.paused.
func (*RunPaused) Type() Type { return TypeRunPaused }

func (r *RunPaused) fields(c *coder) {
	r.envelope(c, laneRun)
	c.id("waitId", &r.WaitID, required)
	c.id("reason", &r.Reason, required)
	word(c, "resumeMode", &r.ResumeMode, resumeModes, required)
	c.id("interruptId", &r.InterruptID, optional)
	timestamp(c, "retryAt", &r.RetryAt, optional)
	c.text("message", &r.Message, optional)
}

// RunResumed ends a pause (§7.3).
type RunResumed struct {
	Event
	WaitID string
}

// Type returns run.resumed.
func (*RunResumed) Type() Type { return TypeRunResumed }

func (r *RunResumed) fields(c *coder) {
	r.envelope(c, laneRun)
	c.id("waitId", &r.WaitID, required)
}

// RunStopRequested records the wish to stop a run (§7.4).
type RunStopRequested struct {
	Event
	TargetRunID string
}

// Type returns run.stop.requested.
func (*RunStopRequested) Type() Type { return TypeRunStopRequested }

func (r *RunStopRequested) fields(c *coder) {
	r.envelope(c, laneRun)
	c.id("targetRunId", &r.TargetRunID, required)
}

// RunFinished ends a run well (§7.5).
type RunFinished struct {
	Event
	ArtifactIDs []string
	Usage       *Usage
}

// Type returns run.finished.
func (*RunFinished) Type() Type { return TypeRunFinished }

func (r *RunFinished) fields(c *coder) {
	r.envelope(c, laneRun)
	c.words("artifactIds", &r.ArtifactIDs, words{unique: true})
	usage(c, "usage", &r.Usage)
}

// RunError ends a run with a fault (§7.5). Message is user-safe and may be empty.
type RunError struct {
	Event
	Code    string
	Message string
	Usage   *Usage
}

// Type returns run.error.
func (*RunError) Type() Type { return TypeRunError }

func (r *RunError) fields(c *coder) {
	r.envelope(c, laneRun)
	c.id("code", &r.Code, required)
	c.text("message", &r.Message, required)
	usage(c, "usage", &r.Usage)
}

// RunCancelled ends a run that was stopped (§7.5).
type RunCancelled struct {
	Event
	Code    string
	Message string
	Usage   *Usage
}

// Type returns run.cancelled.
func (*RunCancelled) Type() Type { return TypeRunCancelled }

func (r *RunCancelled) fields(c *coder) {
	r.envelope(c, laneRun)
	c.text("code", &r.Code, optional)
	c.text("message", &r.Message, optional)
	usage(c, "usage", &r.Usage)
}

// DecisionExpired is the decision that only a host can give (§7.7).
const DecisionExpired = "expired"

// InterruptRequested asks somebody outside for a decision (§7.6). An empty Scope
// means run.
type InterruptRequested struct {
	Event
	InterruptID string
	WaitID      string
	Kind        string
	Actions     []string
	Scope       Scope
	ExpiresAt   string
	Title       string
	Message     string
	Input       Raw
}

// Type returns interrupt.requested.
func (*InterruptRequested) Type() Type { return TypeInterruptRequested }

var interruptScopes = []Scope{ScopeRun, ScopeWorkflow}

func (i *InterruptRequested) fields(c *coder) {
	i.envelope(c, interruptLane(c, i.Scope))
	c.id("interruptId", &i.InterruptID, required)
	c.id("waitId", &i.WaitID, required)
	c.id("kind", &i.Kind, required)
	word(c, "scope", &i.Scope, interruptScopes, need(c.mode == decoding && c.has("scope") || c.tells(i.Scope == ScopeWorkflow)))
	c.words("actions", &i.Actions, words{required: true, unique: true})
	timestamp(c, "expiresAt", &i.ExpiresAt, optional)
	c.text("title", &i.Title, optional)
	c.text("message", &i.Message, optional)
	c.value("input", &i.Input, optional)
}

// interruptLane returns the lane of an interrupt, which depends on its scope.
func interruptLane(c *coder, s Scope) lane {
	if c.mode == decoding && is(c.take("scope"), string(ScopeWorkflow)) || c.mode != decoding && s == ScopeWorkflow {
		return laneWorkflowOnly
	}
	return laneRun
}

// InterruptResolved records the one decision of an interrupt (§7.7).
type InterruptResolved struct {
	Event
	InterruptID string
	WaitID      string
	Decision    string
	// Scope repeats the request's where that was workflow (R19); empty means run.
	Scope  Scope
	Reason string
	// Actor says who decided: an opaque provenance (R6).
	Actor Raw
	// Members holds the decision of each member of a pack (R12).
	Members []MemberDecision
}

// MemberDecision is the decision of one member of a pack.
type MemberDecision struct {
	RequestID  string
	ToolCallID string
	ToolName   string
	ToolType   string
	Decision   string
	// Extra holds the fields that this package does not know.
	Extra []Member
}

// Type returns interrupt.resolved.
func (*InterruptResolved) Type() Type { return TypeInterruptResolved }

func (i *InterruptResolved) fields(c *coder) {
	i.envelope(c, interruptLane(c, i.Scope))
	c.id("interruptId", &i.InterruptID, required)
	c.id("waitId", &i.WaitID, required)
	c.id("decision", &i.Decision, required)
	word(c, "scope", &i.Scope, interruptScopes, need(c.tells(i.Scope == ScopeWorkflow)))
	c.text("reason", &i.Reason, optional)
	c.value("actor", &i.Actor, optional)
	memberDecisions(c, "members", &i.Members)
}

// memberDecisions visits the members of a pack. A client skips members that it
// cannot read; a host must write each with an id and a decision.
func memberDecisions(c *coder, name string, p *[]MemberDecision) {
	if c.writes(name) {
		if !c.describes(name, formMembers, optional) {
			c.putDecisions(name, *p)
		}
		return
	}
	value := c.take(name)
	if value == "" {
		return
	}
	items, ok := elements(value)
	if !ok {
		c.unusable(name, "an array of members is required", optional)
		return
	}
	for i, value := range items {
		var m MemberDecision
		inner, _ := c.inside(item(c.path, name, i), value)
		m.fields(inner)
		if inner.err == nil && m.RequestID != "" {
			*p = append(*p, m)
		} else if c.strict && c.err == nil {
			c.err = inner.err
		}
	}
}

func (c *coder) putDecisions(name string, list []MemberDecision) {
	if len(list) == 0 {
		return
	}
	c.put(name)
	c.out = append(c.out, '[')
	for i := range list {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		inner := c.brace(item(c.path, name, i), list[i].Extra)
		list[i].fields(inner)
		c.close(inner)
	}
	c.out = append(c.out, ']')
}

func (m *MemberDecision) fields(c *coder) {
	c.id("requestId", &m.RequestID, required)
	c.id("toolCallId", &m.ToolCallID, optional)
	c.id("toolName", &m.ToolName, optional)
	c.id("toolType", &m.ToolType, optional)
	c.id("decision", &m.Decision, need(c.host()))
	if c.mode == decoding {
		m.Extra = c.rest()
	}
}

// Executor says who performs a tool call (§3.5).
type Executor string

// The executors.
const (
	ExecutorBackend Executor = "backend"
	ExecutorClient  Executor = "client"
)

var executors = []Executor{ExecutorBackend, ExecutorClient}

// ToolCallStarted records that a tool is called (§7.8). Nobody executes a tool
// because of it.
type ToolCallStarted struct {
	Event
	ToolCallID       string
	ToolName         string
	Executor         Executor
	Args             Raw
	ParentToolCallID string
}

// Type returns tool.call.started.
func (*ToolCallStarted) Type() Type { return TypeToolCallStarted }

func (t *ToolCallStarted) fields(c *coder) {
	t.envelope(c, laneRun)
	c.id("toolCallId", &t.ToolCallID, required)
	c.id("toolName", &t.ToolName, required)
	word(c, "executor", &t.Executor, executors, required)
	c.value("args", &t.Args, required)
	c.id("parentToolCallId", &t.ParentToolCallID, optional)
}

// Outcome is how a tool call ended (§7.9).
type Outcome string

// The outcomes.
const (
	OutcomeSuccess   Outcome = "success"
	OutcomeError     Outcome = "error"
	OutcomeCancelled Outcome = "cancelled"
)

var outcomes = []Outcome{OutcomeSuccess, OutcomeError, OutcomeCancelled}

// ToolCallFinished ends a tool call (§7.9).
type ToolCallFinished struct {
	Event
	ToolCallID string
	Outcome    Outcome
	Response   Raw
	Code       string
	Message    string
}

// Type returns tool.call.finished.
func (*ToolCallFinished) Type() Type { return TypeToolCallFinished }

func (t *ToolCallFinished) fields(c *coder) {
	t.envelope(c, laneRun)
	c.id("toolCallId", &t.ToolCallID, required)
	word(c, "outcome", &t.Outcome, outcomes, required)
	c.value("response", &t.Response, required)
	c.text("code", &t.Code, optional)
	c.text("message", &t.Message, optional)
}
