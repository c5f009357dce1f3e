package decide

import (
	"slices"
	"strconv"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// The commands of this file are what the headless contract tells a run (R21, R38). Each is
// hashed as it was told, so that an input id stands for one content whatever its type.

// StartRootRun says something to a session in a run of its own, now or when its turn comes.
type StartRootRun struct {
	Text string
	// WhenBusy is queue or reject: a start steers no other run.
	WhenBusy WhenBusy
	// WorkspaceID, if there, must be that of the session. With the fields after it, it is
	// what the session was asked to be made with, which the same start says again.
	WorkspaceID      string
	Cwd              string
	Title            string
	Agent            string
	ClientExecutorID string
}

func (s StartRootRun) propose(d *draft) Answer {
	switch {
	case !d.desk.Exists():
		return refuse(NotFound, "no such session")
	case s.WorkspaceID != "" && s.WorkspaceID != d.desk.Created.WorkspaceID:
		return refuse(Conflict, "the session is in another workspace")
	}
	return Message{Content: s.Text, WhenBusy: s.WhenBusy}.propose(d)
}

// SubmitMessage says something to a run while it runs.
type SubmitMessage struct {
	RunID string
	Text  string
	// Sensitivity is the class that the text was told with; it may be empty.
	Sensitivity string
}

func (m SubmitMessage) propose(d *draft) Answer {
	if answer, ok := d.inputRun(m.RunID); !ok {
		return answer
	}
	say := Message{Content: m.Text, MessageID: d.env.NewID()}
	if answer, ok := say.check(d); !ok {
		return answer
	}
	answer := say.steer(d, m.RunID)
	switch m.Sensitivity {
	case "", "public", "private": // no more open than the host's policy has it
	default: // what is unknown is secret, too (R37)
		for _, f := range d.facts {
			facts.SetSecret(f.Envelope())
		}
	}
	return answer
}

// inputRun demands a run that runs, and says what an input cannot do to any other.
func (d *draft) inputRun(id string) (Answer, bool) {
	if !d.desk.Exists() {
		return refuse(NotFound, "no such session"), false
	}
	if run, open := d.run(id); open && run.RunID == run.RootRunID {
		if run.StopRequested {
			return Answer{Status: Conflict, RunID: id, Detail: "the run was canceled", Err: RefusedStopped}, false
		}
		return Answer{}, true
	}
	if _, waiting := d.desk.Queued(id); waiting {
		return Answer{Status: Conflict, RunID: id, Detail: "the run has not started yet", Err: RefusedWaiting}, false
	}
	state, known := d.endedRun(id)
	switch {
	case !known:
		return refuse(NotFound, "no such run in this session"), false
	case state == session.Cancelled, state == Withdrawn:
		return Answer{Status: Conflict, RunID: id, Detail: "the run was canceled", Err: RefusedStopped}, false
	}
	return Answer{Status: Conflict, RunID: id, Detail: "the run " + terminalWord(state), Err: RefusedEnded}, false
}

// CancelRun asks for the end of a run (R14, R16).
type CancelRun struct {
	RunID  string
	Reason string
}

func (c CancelRun) propose(d *draft) Answer {
	answer := Stop{RootRunID: c.RunID, Reason: c.Reason}.propose(d)
	if answer.Status == Conflict {
		answer.Err = RefusedEnded
	}
	return answer
}

// ResolveApproval decides an approval of a run by one of two words, approve and deny. An
// approval is an open interrupt of the run or of one below it, gates included.
type ResolveApproval struct {
	RunID      string
	ApprovalID string
	Decision   string
	// Scope is empty, or what the approval declared.
	Scope string
}

func (r ResolveApproval) propose(d *draft) Answer {
	i, open := d.state.Interrupt(r.ApprovalID)
	if !open || !i.Open {
		return r.closed(d)
	}
	if i.RootRunID != r.RunID {
		return noApproval()
	}
	if r.Scope != "" && r.Scope != facts.Scope(i.Kind, i.Input) {
		return Answer{Status: Rejected, RequestID: i.InterruptID, Detail: "the scope is not the one that was declared", Err: RefusedScope}
	}
	command, offered := r.onto(i)
	if !offered {
		return Answer{
			Status: Rejected, RequestID: i.InterruptID, Detail: "what is asked cannot be answered with " + r.Decision,
			Err: RefusedNotOffered,
		}
	}
	return command.propose(d)
}

// noApproval is the answer for what is no approval of the run, whatever else it is.
func noApproval() Answer {
	return Answer{Status: NotFound, Detail: "no approval of that id is pending in this run", Err: RefusedApproval}
}

// closed answers a decision that comes too late: one-shot, so a decision for what was
// decided otherwise, or by somebody else's word, has no effect (R22).
func (r ResolveApproval) closed(d *draft) Answer {
	if d.env.Interrupt == nil {
		return noApproval()
	}
	was, known := d.env.Interrupt(r.ApprovalID)
	if !known || was.RootRunID != r.RunID {
		return noApproval()
	}
	answer := Answer{
		Status: Conflict, Decision: was.late(), RequestID: r.ApprovalID, SessionSequence: was.SessionSequence,
		Detail: "the approval was decided before", Err: RefusedApproval,
	}
	switch {
	case answer.Decision == narad.DecisionExpired:
		answer.Status, answer.Detail = Expired, was.lapsed("nobody decided the approval")
	case plainWord(answer.Decision) == r.Decision:
		answer.Status, answer.Detail, answer.Err = AlreadyApplied, "", ""
	}
	return answer
}

// plainWord is which of the two words a decision comes to, "" for neither (R11).
func plainWord(decision string) string {
	switch decision {
	case actionApprove, "approve_always":
		return actionApprove
	case actionDeny, "deny_always", "stop", actionDismiss:
		return actionDeny
	}
	return ""
}

// onto says a word as the decision that an interrupt offers for it: the word itself for a
// permission (R11), for a question the one option that it recommends or its dismissal (R13).
func (r ResolveApproval) onto(i session.Interrupt) (Resolve, bool) {
	command := Resolve{InterruptID: i.InterruptID, Decision: r.Decision}
	switch {
	case i.Kind == kindQuestion && r.Decision == actionDeny:
		command.Decision = actionDismiss
	case i.Kind == kindQuestion:
		option, one := recommended(i.Input)
		if !one {
			return Resolve{}, false
		}
		command.Decision = strconv.Itoa(option)
		if !slices.Contains(i.Actions, command.Decision) {
			command.Decision, command.Answers = actionAnswer, []QuestionAnswer{{Options: []int{option}}}
		}
	}
	return command, slices.Contains(i.Actions, command.Decision)
}

// recommended returns the recommended option of a single question.
func recommended(input narad.Raw) (option int, one bool) {
	questions, _ := input.Field("questions").Elements()
	if len(questions) != 1 {
		return 0, false
	}
	option, err := strconv.Atoi(string(questions[0].Field("recommended")))
	return option, err == nil
}

func (StartRootRun) word() string    { return "start-run" }
func (SubmitMessage) word() string   { return "message.submit" }
func (CancelRun) word() string       { return "run.cancel" }
func (ResolveApproval) word() string { return "approval.resolve" }

func (s StartRootRun) tell(to *content) {
	to.text("text", s.Text)
	if s.WhenBusy != WhenBusyQueue {
		to.text("whenBusy", string(s.WhenBusy))
	}
	to.text("workspaceId", s.WorkspaceID)
	to.text("cwd", s.Cwd)
	to.text("title", s.Title)
	to.text("agent", s.Agent)
	to.text("clientExecutorId", s.ClientExecutorID)
}

func (m SubmitMessage) tell(to *content) {
	to.text("runId", m.RunID)
	to.text("text", m.Text)
	to.text("sensitivity", m.Sensitivity)
}

func (c CancelRun) tell(to *content) {
	to.text("runId", c.RunID)
	to.text("reason", c.Reason)
}

func (r ResolveApproval) tell(to *content) {
	to.text("runId", r.RunID)
	to.text("approvalId", r.ApprovalID)
	to.text("decision", r.Decision)
	to.text("scope", r.Scope)
}
