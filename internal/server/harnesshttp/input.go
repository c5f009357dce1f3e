package harnesshttp

import (
	"errors"
	"net/http"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
)

// input is one input of a client to a run.
func (b *Binding) input(w http.ResponseWriter, r *request) error {
	run, err := r.run()
	if err != nil {
		return err
	}
	body, err := server.ReadBody(r.Request)
	if err != nil {
		return err
	}
	in, err := harness.DecodeInput(body)
	if err != nil {
		return invalidInput(err)
	}
	if in.RunID != run {
		return server.Conflict("run_mismatch", "the input is for another run than the address")
	}
	server.Annotate(r.Context(), "input", string(in.Type))
	if in.Type == harness.FlowCredit {
		return b.credit(w, r, in)
	}
	return b.command(w, r, in)
}

// invalidInput says which field cannot be used, and nothing that the client sent.
func invalidInput(err error) error {
	var wrong *harness.Error
	if !errors.As(err, &wrong) {
		return err
	}
	p := server.Bad("invalid_input", wrong.Rule)
	if wrong.Field != "" {
		p.Members = map[string]any{"field": wrong.Field}
	}
	return p
}

// told is the answer to an input.
type told struct {
	Status    decide.Status `json:"status"`
	RunID     string        `json:"run_id"`
	InputID   string        `json:"input_id"`
	Duplicate bool          `json:"duplicate,omitzero"`
	// Of an approval:
	ApprovalID string `json:"approval_id,omitzero"`
	Decision   string `json:"decision,omitzero"`
	// Of a grant; a credit of 0 is told, too.
	Subscriber string  `json:"subscriber,omitzero"`
	Credit     *uint64 `json:"credit,omitzero"`

	SessionSequence int64  `json:"session_sequence,omitzero"`
	Detail          string `json:"detail,omitzero"`
}

// command performs an input that is kept with the run.
func (b *Binding) command(w http.ResponseWriter, r *request, in harness.Input) error {
	action, command, err := commandOf(in)
	if err != nil {
		return err
	}
	l, err := b.host.Log(r.Context(), r.principal(), action, in.RunID)
	if err != nil {
		return err
	}
	server.Annotate(r.Context(), "session", l.Session())
	if b.subscribers.granted(follower{in.RunID, r.principal().ID()}, in.InputID) {
		return errUsedForCredit
	}
	answer, err := b.host.Do(r.Context(), r.principal(), host.Request{
		Action: action, Session: l.Session(), RunID: in.RunID, InputID: in.InputID, Command: command,
	})
	if err != nil {
		return err
	}
	return answerInput(w, in, answer)
}

// commandOf is what an input asks of the host, and the right that this takes.
func commandOf(in harness.Input) (access.Action, decide.Command, error) {
	switch in.Type {
	case harness.MessageSubmit:
		return access.SendMessage, decide.SubmitMessage{
			RunID: in.RunID, Text: in.Message.Text, Sensitivity: string(in.Message.Sensitivity),
		}, checkText(in.Message.Text)
	case harness.RunCancel:
		return access.StopRun, decide.CancelRun{RunID: in.RunID, Reason: in.Reason},
			server.CheckText("reason", in.Reason, maxReason, true)
	}
	return access.ResolveInterrupt, decide.ResolveApproval{
		RunID: in.RunID, ApprovalID: in.Approval.ApprovalID, Decision: in.Approval.Decision, Scope: in.Approval.Scope,
	}, nil
}

func answerInput(w http.ResponseWriter, in harness.Input, a host.Answer) error {
	answer := told{
		Status: a.Status, RunID: in.RunID, InputID: in.InputID, Duplicate: a.Repeated, ApprovalID: a.RequestID,
		Decision: a.Decision, SessionSequence: a.SessionSequence, Detail: a.Detail,
	}
	switch {
	case a.Status == decide.Accepted && !a.Repeated:
		return write(w, http.StatusAccepted, answer)
	case a.Status == decide.Accepted, a.Status == decide.AlreadyApplied:
		return write(w, http.StatusOK, answer)
	}
	return refused(in, a)
}

// refusals are the codes of inputs that have no effect, by the reason; where there is none
// the status is the code.
var refusals = map[decide.Refusal]struct {
	status int
	code   string
}{
	decide.RefusedReused:      {http.StatusConflict, codeReused},
	decide.RefusedStopped:     {http.StatusConflict, "run_canceled"},
	decide.RefusedEnded:       {http.StatusConflict, "run_ended"},
	decide.RefusedWaiting:     {http.StatusConflict, "run_not_started"},
	decide.RefusedUnsteerable: {http.StatusNotImplemented, "unsupported"},
	decide.RefusedApproval:    {http.StatusConflict, "approval_boundary"},
	decide.RefusedScope:       {http.StatusUnprocessableEntity, "scope_exceeded"},
	decide.RefusedNotOffered:  {http.StatusUnprocessableEntity, "decision_not_offered"},
}

// statuses are the codes of the words that refuse.
var statuses = map[decide.Status]int{
	decide.NotFound: http.StatusNotFound, decide.Forbidden: http.StatusForbidden, decide.Expired: http.StatusGone,
	decide.Conflict: http.StatusConflict, decide.Rejected: http.StatusUnprocessableEntity,
	decide.Unsupported: http.StatusNotImplemented,
}

// refused says why an input has no effect. One that lost a race learns what was decided, and
// one whose id was used for something else what came of that.
func refused(in harness.Input, a host.Answer) error {
	p := &server.Problem{HTTPStatus: statuses[a.Status], Code: string(a.Status), Detail: a.Detail}
	known, typed := refusals[a.Err]
	if typed && a.Status != decide.Expired {
		p.HTTPStatus, p.Code = known.status, known.code
	}
	if a.Err == decide.RefusedApproval && a.Status == decide.NotFound {
		p.HTTPStatus = http.StatusNotFound
	}
	first := told{
		Status: decide.Accepted, RunID: in.RunID, InputID: in.InputID, ApprovalID: a.RequestID, Decision: a.Decision,
		SessionSequence: a.SessionSequence,
	}
	switch {
	case a.Err == decide.RefusedReused:
		p.Members = map[string]any{"first": first}
	case a.Decision != "":
		p.Members = map[string]any{"approval_id": a.RequestID, "decision": a.Decision, "session_sequence": a.SessionSequence}
	}
	return p
}

// credit grants a stream of the caller's own more records (R38). Grants are not stored: they
// live as long as the stream.
func (b *Binding) credit(w http.ResponseWriter, r *request, in harness.Input) error {
	l, err := b.host.Log(r.Context(), r.principal(), access.ReadLog, in.RunID)
	if err != nil {
		return err
	}
	used, err := l.Told(r.Context(), in.InputID)
	if err != nil {
		return err
	}
	if used {
		return server.Conflict(codeReused, "the input told the run something else")
	}
	name, left, repeated, err := b.subscribers.grant(follower{in.RunID, r.principal().ID()}, in)
	if err != nil {
		return err
	}
	status := http.StatusAccepted
	if repeated {
		status = http.StatusOK
	}
	return write(w, status, told{
		Status: decide.Accepted, RunID: in.RunID, InputID: in.InputID, Duplicate: repeated, Subscriber: name, Credit: &left,
	})
}
