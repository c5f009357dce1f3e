package naradhttp

import (
	"encoding/json"
	"net/http"
	"strconv"

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
	for field, id := range map[string]string{"commandId": q.CommandID, "sessionId": q.Session} {
		if id == "" {
			continue
		}
		if err := checkID(field, id); err != nil {
			return err
		}
	}
	server.Annotate(r.Context(), "session", q.Session)
	answer, err := b.host.Do(r.Context(), server.PrincipalOf(r.Context()), q)
	switch p := server.ProblemOf(problemOf(err)); {
	case err == nil:
	case p.HTTPStatus == http.StatusForbidden:
		answer = host.Answer{Status: decide.Forbidden, Detail: p.Detail}
	case p.HTTPStatus == http.StatusNotFound || p.HTTPStatus == http.StatusGone:
		answer = host.Answer{Status: decide.NotFound, Detail: p.Detail}
	default:
		return err
	}
	return write(w, statusCodes[answer.Status], answered{
		answer.Status, answer.Decision, answer.RequestID, answer.Detail, answer.SessionSequence, answer.RunID,
	})
}

// answered is a command's answer on the wire.
type answered struct {
	Status          decide.Status `json:"status"`
	Decision        string        `json:"decision,omitempty"`
	RequestID       string        `json:"requestId,omitempty"`
	Detail          string        `json:"detail,omitempty"`
	SessionSequence int64         `json:"sessionSequence,omitempty"`
	RunID           string        `json:"runId,omitempty"`
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
	if m.MessageID != "" {
		if err := checkID("messageId", m.MessageID); err != nil {
			return err
		}
	}
	if len(m.Content) > maxMessage {
		return bad("invalid_field", "content has at most 262144 bytes")
	}
	switch decide.WhenBusy(m.WhenBusy) {
	case "", decide.WhenBusyQueue, decide.WhenBusyReject, decide.WhenBusySteer:
	default:
		return bad("invalid_field", "whenBusy must be queue, reject or steer")
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
	if err := checkText("reason", s.Reason, maxReason, true); err != nil {
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
		return bad("invalid_field", "action must be release or withdraw")
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
	for field, id := range map[string]string{"sessionId": q.SessionID, "messageId": q.MessageID} {
		if err := checkID(field, id); err != nil {
			return err
		}
	}
	if err := checkText("reason", q.Reason, maxReason, true); err != nil {
		return err
	}
	return b.do(w, r, host.Request{
		Action: access.RedactMessage, Session: q.SessionID, CommandID: q.CommandID,
		Command: decide.Redact{MessageID: q.MessageID, Reason: q.Reason, DisplayReplacement: q.DisplayReplacement},
	})
}

func (b *Binding) resolve(w http.ResponseWriter, r *http.Request) error {
	var q struct {
		InterruptID      string       `json:"interruptId"`
		Decision         string       `json:"decision"`
		Reason           string       `json:"reason"`
		ExpectedRevision int64        `json:"expectedRevision"`
		Members          []memberName `json:"members"`
		Answers          []answer     `json:"answers"`
		CommandID        string       `json:"commandId"`
	}
	if err := decode(r, &q); err != nil {
		return err
	}
	if q.InterruptID == "" || len(q.InterruptID) > maxID || q.Decision == "" || len(q.Decision) > maxName {
		return bad("invalid_field", "interruptId and decision are required")
	}
	if err := checkText("reason", q.Reason, maxReason, true); err != nil {
		return err
	}
	command := decide.Resolve{
		InterruptID: q.InterruptID, Decision: q.Decision, Reason: q.Reason, ExpectedRevision: q.ExpectedRevision,
	}
	if len(q.Members) > maxMembers || len(q.Answers) > maxMembers {
		return bad("invalid_field", "there are at most 32 members and answers")
	}
	for _, m := range q.Members {
		if m.decision != "" && m.decision != q.Decision {
			return bad("invalid_field", "one command gives one decision: name the members that it is for")
		}
		command.Members = append(command.Members, m.id)
	}
	for _, a := range q.Answers {
		command.Answers = append(command.Answers, decide.QuestionAnswer{Options: a.options, Text: a.text})
	}
	return b.do(w, r, host.Request{Action: access.ResolveInterrupt, CommandID: q.CommandID, Command: command})
}

// memberName names a member of a pack: by its id, or as an object with its id and the
// command's decision.
type memberName struct{ id, decision string }

// UnmarshalJSON reads either form.
func (m *memberName) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &m.id) == nil {
		return nil
	}
	var object struct {
		RequestID string `json:"requestId"`
		Decision  string `json:"decision"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	m.id, m.decision = object.RequestID, object.Decision
	return nil
}

// answer is the answer to one question: indexes of options, as numbers or as the
// action words of a single question, and a text.
type answer struct {
	options []int
	text    string
}

// UnmarshalJSON reads indexes in either form.
func (a *answer) UnmarshalJSON(data []byte) error {
	var object struct {
		Options []json.RawMessage `json:"options"`
		Text    string            `json:"text"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	a.text = object.Text
	for _, raw := range object.Options {
		text := string(raw)
		var quoted string
		if json.Unmarshal(raw, &quoted) == nil {
			text = quoted
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return &json.UnmarshalTypeError{Value: "option", Field: "answers.options"}
		}
		a.options = append(a.options, n)
	}
	return nil
}

// startWorkflow is a command of the protocol that this host does not perform.
func (b *Binding) startWorkflow(w http.ResponseWriter, _ *http.Request) error {
	return write(w, http.StatusNotImplemented, answered{Status: decide.Unsupported, Detail: "this host runs no workflows"})
}
