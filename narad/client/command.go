package client

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mahati-host/mahati/narad"
)

// Status is a host's word on a command.
type Status string

// The eight words. Accepted and AlreadyApplied are success; each other one is also
// the Code of the error that comes with it.
const (
	Accepted       Status = "accepted"
	AlreadyApplied Status = "already_applied"
	NotFound       Status = "not_found"
	Forbidden      Status = "forbidden"
	Expired        Status = "expired"
	Conflict       Status = "conflict"
	Rejected       Status = "rejected"
	Unsupported    Status = "unsupported"
)

// OK reports whether what was commanded holds.
func (s Status) OK() bool { return s == Accepted || s == AlreadyApplied }

// An Answer is what a host says to a command. A refused command has one too, beside
// its error: the loser of a race learns the winner's decision from it.
type Answer struct {
	Status Status
	// CommandID is the id under which the command was sent.
	CommandID string
	// Decision is an interrupt's, also one that somebody else made.
	Decision string
	// RequestID names what was answered, such as the interrupt.
	RequestID string
	// Detail is for people.
	Detail string
	// SessionSequence is where the effect, or what stands against it, is recorded; 0
	// if the host does not say.
	SessionSequence int64
	// RunID is the run that the command started, queued or stopped, or that stands
	// against it.
	RunID string
	// WorkflowID is the workflow in the same way.
	WorkflowID string
}

// WhenBusy says what becomes of a message to a session with an active run (R16).
type WhenBusy string

// What a busy session does with a message.
const (
	QueueMessage  WhenBusy = "queue"  // start when the run has ended; the default
	RejectMessage WhenBusy = "reject" // answer Conflict
	SteerMessage  WhenBusy = "steer"  // hand it to the running agent, if it can take it
)

// Message is the command that says something to the agent of a session. A CommandID,
// here and in the other commands, makes a repetition harmless (R21); left empty, the
// client makes one.
type Message struct {
	SessionID     string   `json:"sessionId"`
	Content       string   `json:"content"`
	MessageID     string   `json:"messageId,omitzero"`
	AttachmentIDs []string `json:"attachmentIds,omitempty"`
	WhenBusy      WhenBusy `json:"whenBusy,omitzero"`
	CommandID     string   `json:"commandId,omitzero"`
}

// StopActiveRoot is the command that stops a session's active run and all below it.
// A RootRunID names the run that is meant, so that a late stop never hits the next
// one (R14).
type StopActiveRoot struct {
	SessionID string `json:"sessionId"`
	RootRunID string `json:"rootRunId,omitzero"`
	// WorkflowID names the workflow that is meant instead. The run of a workflow is
	// stopped with its workflow, however it is named.
	WorkflowID string `json:"workflowId,omitzero"`
	Reason     string `json:"reason,omitzero"`
	CommandID  string `json:"commandId,omitzero"`
}

// StartWorkflow is the command that starts a workflow in a session (R19).
type StartWorkflow struct {
	SessionID string `json:"sessionId"`
	// Definition is what the host follows. A Mahati host takes the text of a workflow file
	// as a string, or the file as an object.
	Definition narad.Raw `json:"definition"`
	// Input is what it is started with: any JSON value, or nil.
	Input     narad.Raw `json:"input,omitzero"`
	CommandID string    `json:"commandId,omitzero"`
}

// ResolveInterrupt is the command that decides an interrupt. The host finds the
// session by the interrupt.
type ResolveInterrupt struct {
	InterruptID string `json:"interruptId"`
	// Decision is one of the actions that the interrupt offers.
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitzero"`
	// ExpectedRevision is the session revision that the decision is based on (R22).
	ExpectedRevision *int64 `json:"expectedRevision,omitzero"`
	// Members decides some or all members of a pack (R12).
	Members []MemberDecision `json:"members,omitempty"`
	// Answers answers the questions of an interrupt of that kind, by position (R13).
	Answers   []QuestionAnswer `json:"answers,omitempty"`
	CommandID string           `json:"commandId,omitzero"`
}

// MemberDecision decides one member of a pack.
type MemberDecision struct {
	RequestID string `json:"requestId"`
	Decision  string `json:"decision"`
}

// QuestionAnswer answers one question: the options chosen, and a text if it takes
// one.
type QuestionAnswer struct {
	Options []string `json:"options"`
	Text    string   `json:"text,omitzero"`
}

// QueueAction is what to do with a session's queue.
type QueueAction string

// The actions on a queue.
const (
	Release  QueueAction = "release"  // start what a stop has parked
	Withdraw QueueAction = "withdraw" // take a queued run out
)

// Queue is the command that moves a session's queue (R16). Withdraw names the run.
type Queue struct {
	SessionID string      `json:"sessionId"`
	Action    QueueAction `json:"action"`
	RunID     string      `json:"runId,omitzero"`
	CommandID string      `json:"commandId,omitzero"`
}

// Redact is the command that takes a message's content out of every display (R24). A
// nil DisplayReplacement shows nothing in its place.
type Redact struct {
	SessionID          string  `json:"sessionId"`
	MessageID          string  `json:"messageId"`
	Reason             string  `json:"reason"`
	DisplayReplacement *string `json:"displayReplacement,omitzero"`
	CommandID          string  `json:"commandId,omitzero"`
}

// Message sends the command. The Answer's RunID is the run that takes the message: one
// that starts now, later, or, when it was steered, the active one. A refusal is an
// [*Error] whose Code is the Answer's status, and the Answer comes with it: so it is for
// every command here. A command is sent again, under its id, when its answer is lost, at
// most Options.Attempts times.
func (c *Client) Message(ctx context.Context, m Message) (Answer, error) {
	if m.SessionID == "" || m.Content == "" {
		return Answer{}, missing("send message", "a session id and a content")
	}
	return c.command(ctx, "send message", "message", &m, &m.CommandID)
}

// StopActiveRoot sends the command. Accepted means that the stop is a fact; the run ends
// when its agent has, which a follower sees.
func (c *Client) StopActiveRoot(ctx context.Context, s StopActiveRoot) (Answer, error) {
	if s.SessionID == "" {
		return Answer{}, missing("stop run", "a session id")
	}
	return c.command(ctx, "stop run", "stop-active-root", &s, &s.CommandID)
}

// StartWorkflow sends the command. The Answer's WorkflowID is the new workflow. Conflict
// means that another run or workflow is active, which the Answer names.
func (c *Client) StartWorkflow(ctx context.Context, w StartWorkflow) (Answer, error) {
	if w.SessionID == "" || len(w.Definition) == 0 {
		return Answer{}, missing("start workflow", "a session id and a definition")
	}
	return c.command(ctx, "start workflow", "start-workflow", &w, &w.CommandID)
}

// ResolveInterrupt sends the command. AlreadyApplied means that the same was decided
// before; Conflict that something else was, which is the Answer's Decision (R22).
func (c *Client) ResolveInterrupt(ctx context.Context, r ResolveInterrupt) (Answer, error) {
	if r.InterruptID == "" || r.Decision == "" {
		return Answer{}, missing("resolve interrupt", "an interrupt id and a decision")
	}
	return c.command(ctx, "resolve interrupt", "resolve-interrupt", &r, &r.CommandID)
}

// Queue sends the command: it starts what a stop has parked, or takes a queued run out.
func (c *Client) Queue(ctx context.Context, q Queue) (Answer, error) {
	if q.SessionID == "" || q.Action == "" {
		return Answer{}, missing("move queue", "a session id and an action")
	}
	return c.command(ctx, "move queue", "queue", &q, &q.CommandID)
}

// Redact sends the command. It needs the role admin.
func (c *Client) Redact(ctx context.Context, r Redact) (Answer, error) {
	if r.SessionID == "" || r.MessageID == "" {
		return Answer{}, missing("redact message", "a session id and a message id")
	}
	return c.command(ctx, "redact message", "redact", &r, &r.CommandID)
}

// command sends a command under an id, which stays the same when it is sent again.
func (c *Client) command(ctx context.Context, op, name string, body any, id *string) (Answer, error) {
	if *id == "" {
		*id = c.newID()
	}
	var answer Answer
	err := c.do(ctx, call{
		op: op, method: http.MethodPost, path: "/commands/" + name, body: body, once: *id == "",
		read: func(r response) (err error) {
			answer, err = c.readAnswer(op, r)
			return err
		},
	})
	answer.CommandID = *id
	return answer, err
}

// readAnswer reads a command's answer by its status word and, where it has none, as
// any other answer. A host may say more than is read here.
func (c *Client) readAnswer(op string, r response) (Answer, error) {
	body := narad.Raw(r.body)
	if !jsontext.Value(body).IsValid() {
		return Answer{}, c.answerless(op, r)
	}
	answer := Answer{
		Status: Status(c.word(body, "status")), Decision: c.text(body, "decision"),
		RequestID: c.word(body, "requestId"), Detail: c.text(body, "detail"), RunID: c.word(body, "runId"),
		WorkflowID:      c.word(body, "workflowId"),
		SessionSequence: number(body.Field("sessionSequence")),
	}
	switch {
	case answer.Status == "":
		return Answer{}, c.answerless(op, r)
	case answer.Status.OK():
		return answer, nil
	}
	e := fail(op, Code(answer.Status), answer.Detail)
	e.Status = r.status
	e.RetryAfter = retryAfter(r.header)
	return answer, e
}

func (c *Client) answerless(op string, r response) *Error {
	if !r.ok() {
		return c.readError(op, r)
	}
	return invalidAnswer(op, "the answer has no status")
}
