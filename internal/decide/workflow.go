package decide

import (
	"slices"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// StartWorkflow begins a workflow (R19). What its file says was read by whoever hands the
// command over. Another top-level execution is a conflict (§3.1).
type StartWorkflow struct {
	// Definition is the file as the client gave it, Input what it is started with: nil
	// for nothing.
	Definition string
	Input      narad.Raw
	// Name and Start are what the file says of itself.
	Name  string
	Start string
	// Steps is how many steps the workflow takes, nil where that depends.
	Steps *int64
}

func (w StartWorkflow) propose(d *draft) Answer {
	switch {
	case !d.desk.Exists():
		return refuse(NotFound, "no such session")
	case d.desk.Archived:
		return refuseArchived()
	case d.executing():
		return Answer{
			Status: Conflict, Detail: "a run or a workflow is active",
			RunID: d.state.ActiveRootRunID(), WorkflowID: d.state.ActiveWorkflowID(),
		}
	case d.busy():
		return refuse(Conflict, "messages are waiting")
	}
	id, input := d.env.NewID(), w.Input
	if input == nil {
		input = narad.Raw("null")
	}
	started := &narad.WorkflowStarted{NodeID: w.Start, DefaultClientExecutorID: d.desk.Created.ClientExecutorID}
	facts.SetStatus(&started.Event, d.restStatus(), facts.Running)
	none := int64(0)
	facts.SetSteps(&started.Event, facts.Steps{Completed: &none, Total: w.Steps})
	d.of(id, started)
	d.of(id, facts.Workflow(id, facts.WorkflowDefined, facts.Defined{
		Name: w.Name, Definition: w.Definition, Input: input,
	}))
	return Answer{Status: Accepted, WorkflowID: id}
}

// of gives a fact its workflow.
func (d *draft) of(workflowID string, f narad.Authority) {
	f.Envelope().WorkflowID = workflowID
	d.add(f)
}

// Advance does what comes next in a workflow: in their order those of its parts that are
// set. Each part is told once: what comes next is read from the facts.
type Advance struct {
	WorkflowID string
	// Completed is how many different steps were finished before, Total how many the workflow
	// takes, nil where that depends.
	Completed int64
	Total     *int64
	// Unstarted names the steps that have never started: with the end they are skipped.
	Unstarted []string
	Finish    *FinishStep
	Edge      *Edge
	Begin     *BeginStep
	End       *EndWorkflow
}

// FinishStep ends the step under way.
type FinishStep struct {
	NodeID  string
	Attempt int64
	RunID   string
	Data    narad.Raw
	// Again says that the step was finished before, too.
	Again   bool
	Failed  bool
	Code    string
	Message string
	// StartedAt is when the step began, Output what it came to, for people.
	StartedAt string
	Output    string
	// Retry is when the next attempt may start; zero if there is none.
	Retry time.Time
}

// Edge is a path that was chosen (§6.6). Case is below 0 where no condition was asked.
type Edge struct {
	From, To string
	Case     int64
	Pointer  string
	Op       string
}

// BeginStep starts a step: one with a run, one that asks, or else one that only sets data
// and is finished at once.
type BeginStep struct {
	NodeID  string
	Attempt int64
	// Again says that the step was finished before.
	Again bool
	// RunID is the run of the step's agent, "" for none. Prompt may be empty.
	RunID  string
	Prompt string
	// Agent is the name of that agent, "" where several work or a script of the file does.
	Agent string
	// Executor is bound to the run where the session names none (R34).
	Executor string
	Ask      *Ask
	Data     narad.Raw
}

// EndWorkflow ends the workflow, and lets the next message start (R16).
type EndWorkflow struct {
	Kind    narad.Type
	Code    string
	Message string
	Output  narad.Raw
}

// TooLarge is the advance in the place of one that no fact can hold: the step that ends
// fails, or the workflow, where none does.
func (a Advance) TooLarge() Advance {
	const code, why = "data_too_large", "What was to be recorded is larger, or nests deeper, than a fact may."
	if f := a.Finish; f != nil {
		return Advance{WorkflowID: a.WorkflowID, Completed: a.Completed, Total: a.Total, Finish: &FinishStep{
			NodeID: f.NodeID, Attempt: f.Attempt, RunID: f.RunID, Failed: true, Code: code, Message: why, StartedAt: f.StartedAt,
		}}
	}
	return Advance{WorkflowID: a.WorkflowID, Completed: a.Completed, Total: a.Total, Unstarted: a.Unstarted, End: &EndWorkflow{Kind: narad.TypeWorkflowError, Code: code, Message: why}}
}

func (a Advance) propose(d *draft) Answer {
	id := d.state.ActiveWorkflowID()
	answer := Answer{Status: Accepted, WorkflowID: id}
	switch {
	case id == "" || id != a.WorkflowID:
		return refuseRecord(RefusedEnded, "the workflow has ended")
	case d.state.ActiveRootRunID() != "":
		return refuseRecord(RefusedInvalid, "a run of the workflow is active")
	case a.Begin != nil && d.stoppingWorkflow(id):
		return refuseRecord(RefusedStopped, "a stop was requested")
	case a.Begin != nil && a.Begin.RunID != "" && !d.env.MayStart:
		return refuseRecord(RefusedInvalid, "no place is free")
	}
	d.closing = a.Begin == nil
	far := facts.Steps{Completed: &a.Completed, Total: a.Total}
	if a.Finish != nil {
		a.Finish.add(d, id, &far)
	}
	if a.Edge != nil {
		d.of(id, a.Edge.fact())
	}
	if a.Begin != nil {
		a.Begin.add(d, id, &far)
	}
	if a.End != nil {
		far.Skipped = a.Unstarted
		a.End.add(d, id, far)
	}
	return answer
}

// stoppingWorkflow reports whether the stop of a workflow was requested.
func (d *draft) stoppingWorkflow(id string) bool {
	w, known := d.state.Workflow(id)
	return known && w.StopRequested
}

// add ends the step; far is how far the workflow is, before and then after it.
func (f FinishStep) add(d *draft, workflow string, far *facts.Steps) {
	if f.Data != nil {
		d.of(workflow, facts.Workflow(workflow, facts.WorkflowData, facts.Noted{NodeID: f.NodeID, Set: f.Data}))
	}
	step := &narad.WorkflowStep{Kind: narad.TypeWorkflowStepFinished, NodeID: f.NodeID, StepAttempt: f.Attempt}
	if f.RunID != "" {
		step.AgentRunID, step.AgentSessionID = f.RunID, d.state.SessionID()
	}
	if f.Failed {
		step.Kind = narad.TypeWorkflowStepFailed
		retry := ""
		if !f.Retry.IsZero() {
			retry = narad.Timestamp(f.Retry)
		}
		facts.SetStepFailure(&step.Event, f.Code, f.Message, retry)
	} else if !f.Again {
		completed := *far.Completed + 1
		far.Completed = &completed
	}
	told := *far
	told.StartedAt, told.Output = f.StartedAt, f.Output
	facts.SetSteps(&step.Event, told)
	d.of(workflow, step)
}

func (e Edge) fact() *narad.WorkflowEdgeTaken {
	f := &narad.WorkflowEdgeTaken{From: e.From, To: e.To, Op: e.Op, Pointer: &e.Pointer}
	if e.Case >= 0 {
		f.CaseIndex = &e.Case
	}
	return f
}

func (b BeginStep) add(d *draft, workflow string, far *facts.Steps) {
	start := &narad.WorkflowStep{Kind: narad.TypeWorkflowStepStarted, NodeID: b.NodeID, StepAttempt: b.Attempt}
	if b.RunID != "" {
		start.AgentRunID, start.AgentSessionID = b.RunID, d.state.SessionID()
	}
	facts.SetSteps(&start.Event, *far)
	d.of(workflow, start)
	switch {
	case b.RunID != "":
		b.run(d, workflow)
	case b.Ask != nil:
		b.ask(d, workflow)
	default:
		now := narad.Timestamp(d.env.Now)
		FinishStep{NodeID: b.NodeID, Attempt: b.Attempt, Again: b.Again, Data: b.Data, StartedAt: now}.add(d, workflow, far)
	}
}

// run starts the run of a step: the prompt stands right after the start (R9). The session
// is running already.
func (b BeginStep) run(d *draft, workflow string) {
	run := &narad.RunStarted{ClientExecutorID: orElse(d.desk.Created.ClientExecutorID, b.Executor)}
	run.RootRunID, run.RunID = b.RunID, b.RunID
	d.markStart(run)
	facts.SetAgentName(&run.Event, b.Agent)
	d.of(workflow, run)
	if b.Prompt == "" {
		return
	}
	prompt := &narad.MessageUserRecorded{MessageID: d.env.NewID(), MessageScope: narad.ScopeSession, Content: b.Prompt}
	prompt.RootRunID, prompt.RunID = b.RunID, b.RunID
	d.of(workflow, prompt)
}

// ask asks for the workflow itself (§7.6). Where nobody is there to ask it is decided in
// the same batch (R18).
func (b BeginStep) ask(d *draft, workflow string) {
	a := *b.Ask
	if len(a.Questions) > 0 {
		a = a.question()
	} else {
		a.Kind, a.Actions = kindApproval, []string{actionApprove, actionDeny}
	}
	asked := &narad.InterruptRequested{
		Scope: narad.ScopeWorkflow, InterruptID: a.InterruptID, WaitID: a.WaitID, Kind: a.Kind, Actions: a.Actions,
		Title: a.Title, Message: a.Message, Input: a.Input,
	}
	if a.ExpiresIn > 0 {
		asked.ExpiresAt = narad.Timestamp(d.env.Now.Add(a.ExpiresIn))
	}
	d.of(workflow, asked)
	d.of(workflow, &narad.WorkflowPaused{WaitID: a.WaitID, InterruptID: a.InterruptID, NodeID: b.NodeID})
	if by, decision := d.atOnce(a.Kind, a.Actions, nil); by != nil {
		i := session.Interrupt{InterruptID: a.InterruptID, WaitID: a.WaitID, WorkflowID: workflow, Scope: narad.ScopeWorkflow}
		d.resolve(i, resolution{decision: decision, reason: by.reason, actor: &by.actor})
	}
}

func (e EndWorkflow) add(d *draft, workflow string, far facts.Steps) {
	end := &narad.WorkflowEnded{Kind: e.Kind, Code: e.Code, Message: e.Message}
	facts.SetWorkflowOutput(&end.Event, e.Output)
	facts.SetSteps(&end.Event, far)
	next := e.Kind != narad.TypeWorkflowCancelled && len(d.desk.Queue) > 0 && d.env.MayStart
	if !next {
		facts.SetStatus(&end.Event, facts.Running, d.restStatus())
	}
	d.of(workflow, end)
	if next {
		d.closing = false
		d.startNext(true)
	}
}

// resolveWorkflow closes an interrupt of workflow scope, and lets the workflow go on. The
// scope is repeated (R19).
func (d *draft) resolveWorkflow(i session.Interrupt, resolved *narad.InterruptResolved) {
	resolved.Scope = narad.ScopeWorkflow
	d.of(i.WorkflowID, resolved)
	d.of(i.WorkflowID, &narad.WorkflowResumed{WaitID: i.WaitID})
}

// stopWorkflow requests the stop of the active workflow: of it, of its run and of all
// below. What somebody was asked is closed at once (R14).
func (s Stop) stopWorkflow(d *draft, id string) Answer {
	active := d.state.ActiveRootRunID()
	answer := Answer{Status: AlreadyApplied, RunID: active, WorkflowID: id}
	if d.stoppingWorkflow(id) {
		return answer
	}
	d.closing = true
	stop := &narad.WorkflowStopRequested{}
	if s.Reason != "" {
		stop.SetOptional("reason", narad.Quote(s.Reason))
	}
	d.of(id, stop)
	if active != "" {
		s.stop(d, active)
	}
	asked := slices.DeleteFunc(d.state.OpenInterrupts(), func(i session.Interrupt) bool {
		return i.Scope != narad.ScopeWorkflow || i.WorkflowID != id
	})
	for _, i := range asked {
		d.lapse(i, ReasonStopped)
	}
	answer.Status = Accepted
	return answer
}

// endedWorkflow answers the stop of a workflow that is not active.
func (s Stop) endedWorkflow(d *draft) Answer {
	answer := Answer{Status: AlreadyApplied, WorkflowID: s.WorkflowID}
	if d.env.Workflow == nil {
		return refuse(NotFound, "no such workflow in this session")
	}
	switch state, known := d.env.Workflow(s.WorkflowID); {
	case !known:
		return refuse(NotFound, "no such workflow in this session")
	case state != session.Cancelled:
		answer.Status, answer.Detail = Conflict, "the workflow "+terminalWord(state)
	}
	return answer
}

// Wake tells the owner of a session that the time has come to see what its workflow does
// next. It changes nothing itself.
type Wake struct{}

func (Wake) propose(*draft) Answer { return Answer{Status: AlreadyApplied} }
