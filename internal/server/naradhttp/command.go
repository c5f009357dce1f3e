package naradhttp

import (
	"net/http"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
)

// statusCodes are the HTTP codes of the eight words (DESIGN §6).
var statusCodes = map[decide.Status]int{
	decide.Accepted: http.StatusAccepted, decide.AlreadyApplied: http.StatusOK,
	decide.NotFound: http.StatusNotFound, decide.Forbidden: http.StatusForbidden,
	decide.Expired: http.StatusGone, decide.Conflict: http.StatusConflict,
	decide.Rejected: http.StatusUnprocessableEntity, decide.Unsupported: http.StatusNotImplemented,
}

// do performs a command and answers it. A refusal that has one of the eight words has
// the shape of a command's answer (R23).
func (b *Binding) do(w http.ResponseWriter, r *http.Request, q host.Request) error {
	if err := checkIDs(named{"commandId", q.CommandID}); err != nil {
		return err
	}
	server.Annotate(r.Context(), "session", q.Session)
	answer, err := b.host.Do(r.Context(), server.PrincipalOf(r.Context()), q)
	if err != nil {
		var known bool
		if answer, known = wordOf(err); !known {
			return err
		}
	}
	return write(w, statusCodes[answer.Status], answered{
		answer.Status, answer.Decision, answer.RequestID, answer.Detail, answer.SessionSequence, answer.RunID,
	})
}

// wordOf says an error as an answer to a command, if one of the eight words fits. What
// was deleted is not_found here: 410 is the code of expired.
func wordOf(err error) (host.Answer, bool) {
	switch p := server.ProblemOf(problemOf(err)); p.HTTPStatus {
	case http.StatusForbidden:
		return host.Answer{Status: decide.Forbidden, Detail: p.Detail}, true
	case http.StatusNotFound, http.StatusGone:
		return host.Answer{Status: decide.NotFound, Detail: p.Detail}, true
	}
	return host.Answer{}, false
}

// answered is a command's answer on the wire.
type answered struct {
	Status          decide.Status `json:"status"`
	Decision        string        `json:"decision,omitzero"`
	RequestID       string        `json:"requestId,omitzero"`
	Detail          string        `json:"detail,omitzero"`
	SessionSequence int64         `json:"sessionSequence,omitzero"`
	RunID           string        `json:"runId,omitzero"`
}

func (b *Binding) message(w http.ResponseWriter, r *http.Request) error {
	var m struct {
		SessionID     string   `json:"sessionId"`
		Content       string   `json:"content"`
		MessageID     string   `json:"messageId"`
		AttachmentIDs []string `json:"attachmentIds"`
		WhenBusy      string   `json:"whenBusy"`
		CommandID     string   `json:"commandId"`
	}
	if err := decode(r, &m); err != nil {
		return err
	}
	if err := checkID("sessionId", m.SessionID); err != nil {
		return err
	}
	if err := checkIDs(named{"messageId", m.MessageID}); err != nil {
		return err
	}
	if len(m.Content) > maxMessage {
		return badField("content", "may have at most 262144 bytes")
	}
	switch decide.WhenBusy(m.WhenBusy) {
	case "", decide.WhenBusyQueue, decide.WhenBusyReject, decide.WhenBusySteer:
	default:
		return badField("whenBusy", "must be queue, reject or steer")
	}
	return b.do(w, r, host.Request{
		Action: access.SendMessage, Session: m.SessionID, CommandID: m.CommandID,
		Command: decide.Message{
			MessageID: m.MessageID, Content: m.Content, WhenBusy: decide.WhenBusy(m.WhenBusy), Attachments: len(m.AttachmentIDs),
		},
	})
}

func (b *Binding) stop(w http.ResponseWriter, r *http.Request) error {
	var s struct {
		SessionID string `json:"sessionId"`
		RootRunID string `json:"rootRunId"`
		Reason    string `json:"reason"`
		CommandID string `json:"commandId"`
	}
	if err := decode(r, &s); err != nil {
		return err
	}
	if err := checkID("sessionId", s.SessionID); err != nil {
		return err
	}
	if err := checkIDs(named{"rootRunId", s.RootRunID}); err != nil {
		return err
	}
	if err := checkText("reason", s.Reason, maxReason, anyLines); err != nil {
		return err
	}
	return b.do(w, r, host.Request{
		Action: access.StopRun, Session: s.SessionID, CommandID: s.CommandID,
		Command: decide.Stop{RootRunID: s.RootRunID, Reason: s.Reason},
	})
}

func (b *Binding) queue(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		SessionID string `json:"sessionId"`
		Action    string `json:"action"`
		RunID     string `json:"runId"`
		CommandID string `json:"commandId"`
	}
	if err := decode(r, &q); err != nil {
		return err
	}
	if err := checkID("sessionId", q.SessionID); err != nil {
		return err
	}
	var command decide.Command
	switch q.Action {
	case "release":
		command = decide.Release{}
	case "withdraw":
		if err := checkID("runId", q.RunID); err != nil {
			return err
		}
		command = decide.Withdraw{RunID: q.RunID}
	default:
		return badField("action", "must be release or withdraw")
	}
	return b.do(w, r, host.Request{Action: access.ChangeQueue, Session: q.SessionID, CommandID: q.CommandID, Command: command})
}

func (b *Binding) redact(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		SessionID          string  `json:"sessionId"`
		MessageID          string  `json:"messageId"`
		Reason             string  `json:"reason"`
		DisplayReplacement *string `json:"displayReplacement"`
		CommandID          string  `json:"commandId"`
	}
	if err := decode(r, &q); err != nil {
		return err
	}
	if err := checkID("sessionId", q.SessionID); err != nil {
		return err
	}
	if err := checkID("messageId", q.MessageID); err != nil {
		return err
	}
	if err := checkText("reason", q.Reason, maxReason, anyLines); err != nil {
		return err
	}
	if q.DisplayReplacement != nil && len(*q.DisplayReplacement) > maxMessage {
		return badField("displayReplacement", "may have at most 262144 bytes")
	}
	return b.do(w, r, host.Request{
		Action: access.RedactMessage, Session: q.SessionID, CommandID: q.CommandID,
		Command: decide.Redact{MessageID: q.MessageID, Reason: q.Reason, DisplayReplacement: q.DisplayReplacement},
	})
}

// startWorkflow is a command of the protocol that this host does not perform.
func (b *Binding) startWorkflow(w http.ResponseWriter, _ *http.Request) error {
	return write(w, http.StatusNotImplemented, answered{Status: decide.Unsupported, Detail: "this host runs no workflows"})
}
