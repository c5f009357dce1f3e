package decide

import (
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Command is something that a session's owner is told to do. Its types are those of
// this package.
type Command interface {
	// propose adds facts to the draft and returns the answer.
	propose(d *draft) Answer
}

// Env is what a decision needs and cannot be computed.
type Env struct {
	Now time.Time
	// NewID returns an id that is unique in the store (R4).
	NewID func() string
	// Actor is who commands: opaque to clients (R6).
	Actor facts.Actor
	// CommandID and InputID are recorded on every fact that the command causes (R1). The
	// facts of a run that waited name those of its own message instead.
	CommandID string
	InputID   string
	// MayStart says that a run may start now: the session has a place among the running
	// agents, and there is room to write.
	MayStart bool
	// CanSteer says that the running agent takes messages during a run.
	CanSteer bool
	// QueueLimit bounds the waiting messages of a session.
	QueueLimit int
	// ExecutorPresent tells whether an executor can take a call now; nil: none can.
	// AwaitExecutor says that a run waits for one that cannot (R32).
	ExecutorPresent func(executor string) bool
	AwaitExecutor   bool
	// Executor is bound to the runs of a session that names none (R34).
	Executor string
	// Models are those that the session's agent offers, the first of them in the place of
	// one that it does not; none where it tells of none.
	Models []Model
	// Log is what root runs record of their headless log (R35).
	Log Log
	// Elapsed tells how long an open run has been under way, in milliseconds of a steady
	// clock; false for one that began before the host did, which is judged by the times of
	// its facts. Nil knows of none.
	Elapsed func(runID string) (milliseconds int64, known bool)
	// Run tells the state of a run that is no longer open, and Interrupt how an
	// interrupt was closed. They may be nil for commands that need neither.
	Run       func(runID string) (session.RunState, bool)
	Interrupt func(interruptID string) (Closed, bool)
	// Remembered tells what a decision of an interrupt, or of a member of it, was to have
	// remembered, whatever became of that since. It may be nil.
	Remembered func(interruptID, requestID string) (facts.PermissionRule, bool)
	// Workflow tells the state of a workflow that is no longer active.
	Workflow func(workflowID string) (session.RunState, bool)
	// Message tells whether a message with that id was recorded.
	Message func(messageID string) bool
	// Answer tells whether another session gave an answer with that id. It may be nil.
	Answer func(messageID string) bool
	// Attachment returns an attachment that is ready. It may be nil: there is none.
	Attachment func(attachmentID string) (facts.Material, bool)
	// Removed tells whether an attachment was removed. It may be nil.
	Removed func(attachmentID string) bool
}

// Withdrawn is the state of a run that was withdrawn before it started. No fact has
// it: a run that did not start is in no state.
const Withdrawn session.RunState = "withdrawn"

// Closed is how an interrupt was closed.
type Closed struct {
	RootRunID       string
	Kind            string
	Decision        string
	SessionSequence int64
	// Members holds the decision of each member of a pack.
	Members map[string]string
	// Facts reads what asked and what decided, nil where that cannot be read.
	Facts func() (*narad.InterruptRequested, *narad.InterruptResolved)
}

// Outcome is what a command leads to.
type Outcome struct {
	Answer Answer
	// Facts are complete but for their places and times.
	Facts []narad.Authority
	// Closing says that the facts only close what is open, so that they may use the
	// last of the space.
	Closing bool
	// About is the index of the fact that the answer is about.
	About int
	// Issue names the client tool calls that get their token in this batch, Await those
	// that wait for their executor from now on.
	Issue, Await []string
}

// Decide returns what a command leads to.
func Decide(c Command, state *session.State, d *desk.State, env Env) Outcome {
	draft := &draft{state: state, desk: d, env: env, cause: cause{env.CommandID, env.InputID}}
	answer := c.propose(draft)
	if !answer.Status.Accepted() && !answer.keep {
		return Outcome{Answer: answer}
	}
	return Outcome{
		Answer: answer, Facts: draft.facts, Closing: draft.closing, About: draft.about,
		Issue: draft.issue, Await: draft.await,
	}
}

// draft collects what a command proposes.
type draft struct {
	state   *session.State
	desk    *desk.State
	env     Env
	cause   cause // of the facts that are added
	facts   []narad.Authority
	closing bool
	about   int
	issue   []string
	await   []string
	opening string // the gate run that this draft begins
}

// cause is what a client did that led to a fact (R1).
type cause struct{ commandID, inputID string }

func (d *draft) add(list ...narad.Authority) {
	for _, f := range list {
		e := f.Envelope()
		if resolved, ok := f.(*narad.InterruptResolved); ok {
			d.markResolved(resolved)
		}
		facts.SetCaused(e, d.cause.commandID)
		facts.SetInputID(e, d.cause.inputID)
	}
	d.facts = append(d.facts, list...)
}

// subject makes the next fact the one that the answer is about.
func (d *draft) subject() { d.about = len(d.facts) }

// in adds facts of a run.
func (d *draft) in(r session.Run, list ...narad.Authority) {
	for _, f := range list {
		e := f.Envelope()
		e.RootRunID, e.RunID, e.WorkflowID = r.RootRunID, r.RunID, r.WorkflowID
		d.markAsked(r, f)
		d.add(f)
	}
}

// run returns an open run.
func (d *draft) run(id string) (session.Run, bool) {
	r, ok := d.state.Run(id)
	return r, ok && !r.State.Ended()
}
