package naradhttp

import (
	"cmp"
	"net/http"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narad"
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
func (b *Binding) do(w http.ResponseWriter, r *request, q host.Request) error {
	if err := checkIDs(named{"commandId", q.CommandID}); err != nil {
		return err
	}
	server.Annotate(r.Context(), "session", q.Session)
	answer, err := b.host.Do(r.Context(), r.principal(), q)
	if err != nil {
		var known bool
		if answer, known = wordOf(err); !known {
			return err
		}
	}
	return write(w, statusCodes[answer.Status], answered{
		answer.Status, answer.Decision, answer.RequestID, answer.Detail, answer.SessionSequence, answer.RunID,
		answer.WorkflowID,
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
	WorkflowID      string        `json:"workflowId,omitzero"`
}

// body is that of a command: it says itself to the host, or why it cannot be.
type body interface {
	request() (host.Request, error)
}

// perform is the route of a command.
func perform[B body](b *Binding) handler {
	return func(w http.ResponseWriter, r *request) error {
		var command B
		if err := decode(r, &command); err != nil {
			return err
		}
		asked, err := command.request()
		if err != nil {
			return err
		}
		return b.do(w, r, asked)
	}
}

type message struct {
	SessionID     string          `json:"sessionId"`
	Content       string          `json:"content"`
	MessageID     string          `json:"messageId"`
	AttachmentIDs []string        `json:"attachmentIds"`
	WhenBusy      decide.WhenBusy `json:"whenBusy"`
	CommandID     string          `json:"commandId"`
}

func (m message) request() (host.Request, error) {
	return host.Request{
			Action: access.SendMessage, Session: m.SessionID, CommandID: m.CommandID,
			Command: decide.Message{
				MessageID: m.MessageID, Content: m.Content, WhenBusy: m.WhenBusy, AttachmentIDs: m.AttachmentIDs,
			},
		}, cmp.Or(
			checkID("sessionId", m.SessionID),
			checkIDs(named{"messageId", m.MessageID}),
			checkContent("content", m.Content),
			checkAttachments(m.AttachmentIDs),
			checkWhenBusy(m.WhenBusy),
		)
}

func checkAttachments(ids []string) error {
	if err := checkCount("attachmentIds", len(ids)); err != nil {
		return err
	}
	for i, id := range ids {
		if err := checkID(server.Item("attachmentIds", i), id); err != nil {
			return err
		}
	}
	return nil
}

func checkWhenBusy(word decide.WhenBusy) error {
	switch word {
	case "", decide.WhenBusyQueue, decide.WhenBusyReject, decide.WhenBusySteer:
		return nil
	}
	return badField("whenBusy", "must be queue, reject or steer")
}

type stop struct {
	SessionID  string `json:"sessionId"`
	RootRunID  string `json:"rootRunId"`
	WorkflowID string `json:"workflowId"`
	Reason     string `json:"reason"`
	CommandID  string `json:"commandId"`
}

func (s stop) request() (host.Request, error) {
	return host.Request{
			Action: access.StopRun, Session: s.SessionID, CommandID: s.CommandID,
			Command: decide.Stop{RootRunID: s.RootRunID, WorkflowID: s.WorkflowID, Reason: s.Reason},
		}, cmp.Or(
			checkID("sessionId", s.SessionID),
			checkIDs(named{"rootRunId", s.RootRunID}, named{"workflowId", s.WorkflowID}),
			s.checkOne(),
			checkText("reason", s.Reason, maxReason, anyLines),
		)
}

// checkOne refuses a stop that means two things.
func (s stop) checkOne() error {
	if s.RootRunID != "" && s.WorkflowID != "" {
		return badField("workflowId", "must not stand beside rootRunId")
	}
	return nil
}

type queue struct {
	SessionID string `json:"sessionId"`
	Action    string `json:"action"`
	RunID     string `json:"runId"`
	CommandID string `json:"commandId"`
}

func (q queue) request() (host.Request, error) {
	command, err := q.command()
	return host.Request{
		Action: access.ChangeQueue, Session: q.SessionID, CommandID: q.CommandID, Command: command,
	}, cmp.Or(checkID("sessionId", q.SessionID), err)
}

func (q queue) command() (decide.Command, error) {
	switch q.Action {
	case "release":
		return decide.Release{}, nil
	case "withdraw":
		return decide.Withdraw{RunID: q.RunID}, checkID("runId", q.RunID)
	}
	return nil, badField("action", "must be release or withdraw")
}

type redaction struct {
	SessionID          string  `json:"sessionId"`
	MessageID          string  `json:"messageId"`
	Reason             string  `json:"reason"`
	DisplayReplacement *string `json:"displayReplacement"`
	CommandID          string  `json:"commandId"`
}

func (q redaction) request() (host.Request, error) {
	var shown string
	if q.DisplayReplacement != nil {
		shown = *q.DisplayReplacement
	}
	return host.Request{
			Action: access.RedactMessage, Session: q.SessionID, CommandID: q.CommandID,
			Command: decide.Redact{MessageID: q.MessageID, Reason: q.Reason, DisplayReplacement: q.DisplayReplacement},
		}, cmp.Or(
			checkID("sessionId", q.SessionID),
			checkID("messageId", q.MessageID),
			checkText("reason", q.Reason, maxReason, anyLines),
			checkContent("displayReplacement", shown),
		)
}

// workflow is the body of start-workflow (R19). Its definition is the text of the file, or
// the file as a JSON object.
type workflow struct {
	SessionID  string    `json:"sessionId"`
	Definition narad.Raw `json:"definition"`
	Input      narad.Raw `json:"input"`
	CommandID  string    `json:"commandId"`
}

func (w workflow) request() (host.Request, error) {
	text, ok := w.Definition.IsString()
	if !ok {
		text = string(w.Definition)
	}
	var form error
	if !ok && (len(w.Definition) == 0 || w.Definition[0] != '{') {
		form = badField("definition", "must be the text of a workflow file, or the file as an object")
	}
	input := w.Input
	if string(input) == "null" { // an optional field that is left out
		input = nil
	}
	return host.Request{
		Action: access.StartWorkflow, Session: w.SessionID, CommandID: w.CommandID,
		Command: decide.StartWorkflow{Definition: text, Input: input},
	}, cmp.Or(checkID("sessionId", w.SessionID), form)
}
