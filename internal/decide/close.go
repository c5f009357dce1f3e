package decide

import (
	"slices"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// closing says how what is open in a run tree is brought to its end.
type closing struct {
	// reason stands on interrupts that expire.
	reason string
	// outcome, code and message end open tool calls.
	outcome narad.Outcome
	code    string
	message string
	// nested ends the runs below.
	nested func() narad.Authority
}

// The ways to close.
func stoppedClosing() closing {
	return closing{
		reason: ReasonStopped, outcome: narad.OutcomeCancelled, code: "stopped",
		nested: func() narad.Authority { return &narad.RunCancelled{Code: "stopped"} },
	}
}

func endedClosing() closing {
	return closing{
		reason: reasonEnded, outcome: narad.OutcomeCancelled, code: "run_ended",
		nested: func() narad.Authority { return &narad.RunCancelled{Code: "parent_ended"} },
	}
}

func restartedClosing() closing {
	return closing{
		reason: hostRestarted, outcome: narad.OutcomeError, code: outcomeUnknown,
		message: "The host was restarted; nobody knows whether the call took effect.",
		nested: func() narad.Authority {
			return &narad.RunError{Code: hostRestarted, Message: hostRestartedText}
		},
	}
}

// ReasonStopped is the reason of an interrupt that expired because its run was stopped.
const ReasonStopped = "stopped"

// reasonEnded is that of one whose run ended without waiting for it.
const reasonEnded = "ended"

const (
	outcomeUnknown    = "outcome_unknown"
	hostRestarted     = "host_restarted"
	hostRestartedText = "The host was restarted during the run."
)

// closeTree closes everything that is open below a run and in it, leaves first, and
// then ends the run with the terminal (R14, R15).
func (d *draft) closeTree(run session.Run, how closing, terminal narad.Authority) {
	for _, below := range slices.Backward(d.state.OpenRuns()) {
		if below.RunID == run.RunID || !d.below(below, run.RunID) {
			continue
		}
		d.closeRun(below, how, d.nestedTerminal(below, how))
	}
	d.markStopped(run, terminal)
	d.closeRun(run, how, terminal)
}

// nestedTerminal ends a run below the one that ends. A run whose stop was requested is
// cancelled; a gate that nobody stopped has done its work.
func (d *draft) nestedTerminal(run session.Run, how closing) narad.Authority {
	switch {
	case run.StopRequested:
		return &narad.RunCancelled{Code: "stopped"}
	case d.gate(run):
		return &narad.RunFinished{}
	}
	return how.nested()
}

// below reports whether a run stands below another.
func (d *draft) below(run session.Run, above string) bool {
	for run.ParentRunID != "" {
		if run.ParentRunID == above {
			return true
		}
		parent, ok := d.state.Run(run.ParentRunID)
		if !ok {
			return false
		}
		run = parent
	}
	return false
}

// closeRun closes what is open in one run, in the one order of R14 and R15.
func (d *draft) closeRun(run session.Run, how closing, terminal narad.Authority) {
	d.closePause(run, how)
	for _, t := range d.state.OpenTools(run.RunID) {
		d.in(run, d.finish(t, how.outcome, narad.Raw("null"), how.code, how.message))
	}
	d.closeText(run)
	d.failArtifacts(run, how.code)
	d.endProgress(run)
	d.endAsks(run.RunID)
	if f, finished := terminal.(*narad.RunFinished); finished {
		f.ArtifactIDs = d.desk.Made[run.RunID]
	}
	d.in(run, terminal)
}

// closePause lets what the run waits for expire, and resumes it.
func (d *draft) closePause(run session.Run, how closing) {
	if i, open := d.state.OpenInterrupt(run.RunID); open {
		who, _ := facts.Value(hostActor)
		decision, members := d.lapsed(i)
		d.in(run, &narad.InterruptResolved{
			InterruptID: i.InterruptID, WaitID: i.WaitID, Decision: decision, Reason: how.reason,
			Members: members, Actor: who,
		})
	}
	if run.State == session.Paused {
		d.in(run, &narad.RunResumed{WaitID: run.OpenWaitID})
	}
}

// closeQuestion closes what a run has asked, and what is there only to ask: its gate,
// or the call of a question. The run itself goes on to its end.
func (d *draft) closeQuestion(run session.Run, how closing) {
	i, open := d.state.OpenInterrupt(run.RunID)
	if !open {
		return
	}
	d.closePause(run, how)
	if d.gate(run) {
		d.in(run, how.nested())
		return
	}
	if t, asked := d.askedBy(i); asked {
		d.in(run, d.finish(t, how.outcome, narad.Raw("null"), how.code, how.message))
	}
}

// closeText completes a run's messages and reasoning.
func (d *draft) closeText(run session.Run) {
	for _, id := range d.state.OpenReasoning(run.RunID) {
		d.in(run, &narad.ReasoningCompleted{ReasoningID: id})
	}
	for _, id := range d.state.OpenMessages(run.RunID) {
		d.in(run, &narad.MessageTextCompleted{MessageID: id})
	}
}

// planCategory is that of the steps of plans.
const planCategory = "plan"

// endProgress ends a run's activities that are under way.
func (d *draft) endProgress(run session.Run) {
	for _, a := range d.state.ActiveProgress(run.RunID) {
		f := &narad.ProgressRecorded{
			ProgressID: a.ProgressID, Category: a.Category, Label: a.Label,
			Status: narad.ProgressCancelled, Privacy: a.Privacy,
		}
		if a.Category == planCategory { // the end of its run says it of the whole plan
			facts.SetOfPlan(&f.Event)
		}
		d.in(run, f)
	}
}

// maxFailure bounds why a call failed, in bytes.
const maxFailure = 5 << 10

// finish ends a tool call, and repeats its name for views (R1).
func (d *draft) finish(t session.Tool, o narad.Outcome, response narad.Raw, code, message string) *narad.ToolCallFinished {
	f := &narad.ToolCallFinished{ToolCallID: t.ToolCallID, Outcome: o, Response: response, Code: code, Message: message}
	facts.SetToolFinish(&f.Event, t.ToolName, since(t.StartedAt, d.env.Now))
	if o != narad.OutcomeSuccess {
		facts.SetFailure(&f.Event, cut(message, maxFailure))
	}
	return f
}

// gate reports whether a run is a gate run (R10).
func (d *draft) gate(run session.Run) bool {
	return d.desk.Gates[run.RunID] || d.opening != "" && d.opening == run.RunID
}

// Ended ends a root run as its agent says, or as the facts demand, and lets the next
// message start in the same batch (R14-R16).
type Ended struct {
	RunID  string
	Ending Ending
}

// Ending is how an agent says that a run ended.
type Ending struct {
	State      session.RunState
	Code       string
	Message    string
	StopReason string
	Usage      *narad.Usage
	// Turn is what the run took, as far as its agent knows (R42).
	Turn facts.Turn
}

func (e Ended) propose(d *draft) Answer {
	run, open := d.run(e.RunID)
	switch {
	case !open:
		return refuseRecord(RefusedEnded, "the run has ended")
	case run.ParentRunID != "":
		return refuseRecord(RefusedInvalid, "a nested run does not end the one above it")
	}
	d.closing = true
	how, terminal := e.Ending.of(run)
	d.endRoot(run, how, terminal)
	return Answer{Status: Accepted, RunID: e.RunID}
}

// endRoot ends a root run and starts the next message, unless the stop parks it. The
// next run keeps the place of this one; where there is none it waits for one.
func (d *draft) endRoot(run session.Run, how closing, terminal narad.Authority) {
	if run.WorkflowID != "" { // the workflow goes on, and the session with it
		d.closeTree(run, how, terminal)
		return
	}
	next := !run.StopRequested && len(d.desk.Queue) > 0 && d.env.MayStart
	if !next {
		facts.SetStatus(terminal.Envelope(), facts.Running, d.restStatus())
	}
	d.closeTree(run, how, terminal)
	if next {
		d.closing = false
		d.startNext(true)
	}
}

// of is how a run ends: as its agent says, unless it was stopped.
func (e Ending) of(run session.Run) (closing, narad.Authority) {
	how, terminal := endedClosing(), e.terminal()
	if run.StopRequested {
		how, terminal = stoppedClosing(), &narad.RunCancelled{Code: "stopped", Usage: e.Usage}
	}
	if e.Turn != (facts.Turn{}) {
		facts.SetTurn(terminal.Envelope(), e.Turn)
	}
	return how, terminal
}

func (e Ending) terminal() narad.Authority {
	switch e.State {
	case session.Failed:
		return &narad.RunError{Code: orElse(e.Code, "agent_failed"), Message: e.Message, Usage: e.Usage}
	case session.Cancelled:
		return &narad.RunCancelled{Code: e.Code, Message: e.Message, Usage: e.Usage}
	}
	f := &narad.RunFinished{Usage: e.Usage}
	facts.SetStopReason(&f.Event, e.StopReason)
	return f
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
