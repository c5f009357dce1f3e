package cli

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// A point is one point of a run that every contract tells of, in words that are of none.
type point struct {
	what happening
	// about is what all contracts must agree on: an id and an outcome, or a text.
	about string
	// words are for people, "" where the contract has none.
	words string
	// as is the contract's own type and number.
	as string
}

type happening string

const (
	runBegins         happening = "the run begins"
	promptGiven       happening = "the prompt"
	agentSays         happening = "says"
	toolCalled        happening = "calls"
	permissionAsked   happening = "asks"
	permissionDecided happening = "decided"
	toolEnded         happening = "ended"
	runEnds           happening = "the run ends"
)

// The words for what all contracts name differently.
const (
	wordOK, wordFailed, wordCanceled = "ok", "failed", "canceled"
	wordApprove, wordDeny, wordGone  = "approve", "deny", "expired"
	wordCompleted                    = "completed"
)

// texts puts the pieces of messages together.
type texts map[string]string

func (t texts) add(id, piece string) { t[id] += piece }

// take returns a whole message, and forgets it.
func (t texts) take(id string) string {
	defer delete(t, id)
	return strings.TrimSpace(t[id])
}

// naradColumn finds the points of a run in the facts of its session.
type naradColumn struct {
	run   string
	said  texts
	tools map[string]string // the names of calls
}

// point returns that of a fact, false where it has none.
func (c *naradColumn) point(record narad.Record) (point, bool) {
	fact, ok := record.(narad.Authority)
	if !ok {
		return point{}, false
	}
	m := point{as: string(fact.Type()) + " " + strconv.FormatInt(fact.Envelope().SessionSequence, 10)}
	root := fact.Envelope().RunID == c.run
	switch f := fact.(type) {
	case *narad.MessageTextDelta:
		c.said.add(f.MessageID, f.Delta)
	case *narad.MessageTextCompleted:
		m.what, m.about = agentSays, c.said.take(f.MessageID)
		m.words = m.about
	case *narad.MessageUserRecorded:
		m.what, m.words = promptGiven, f.Content
	case *narad.ToolCallStarted:
		c.tools[f.ToolCallID] = f.ToolName
		m.what, m.about, m.words = toolCalled, f.ToolCallID+" "+f.ToolName, f.ToolName
	case *narad.ToolCallFinished:
		outcome := map[narad.Outcome]string{narad.OutcomeSuccess: wordOK, narad.OutcomeCancelled: wordCanceled}[f.Outcome]
		m.what, m.about, m.words = toolEnded, f.ToolCallID+" "+cmp.Or(outcome, wordFailed), c.tools[f.ToolCallID]+": "+cmp.Or(outcome, wordFailed)
	case *narad.InterruptRequested:
		m.what, m.about, m.words = permissionAsked, f.InterruptID, f.Title
	case *narad.InterruptResolved:
		m.what, m.about, m.words = permissionDecided, f.InterruptID+" "+f.Decision, f.Decision
	case *narad.RunStarted:
		if root {
			m.what = runBegins
		}
	case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		if root {
			m.what, m.about = runEnds, map[narad.Type]string{narad.TypeRunFinished: wordCompleted, narad.TypeRunError: wordFailed, narad.TypeRunCancelled: wordCanceled}[f.Type()]
			m.words = m.about
		}
	}
	return m, m.what != ""
}

// logColumn finds the points in the records of a run's log.
type logColumn struct {
	said  texts
	users map[string]bool // the messages that are not the agent's
}

func (c *logColumn) point(e harness.Event) (point, bool) {
	m := point{as: string(e.Type) + " " + strconv.FormatUint(e.Sequence, 10)}
	var p struct {
		harness.Message
		harness.Tool
		Status string `json:"status"`
	}
	if json.Unmarshal(e.Payload, &p) != nil {
		return m, false
	}
	switch e.Type {
	case harness.RunStarted:
		m.what = runBegins
	case harness.MessageStarted, harness.MessageDelta, harness.MessageCompleted:
		return c.message(m, e.Type, p.Message)
	case harness.ToolStarted:
		m.what, m.about = toolCalled, p.CallID+" "+p.Name
	case harness.ToolCompleted:
		m.what, m.about = toolEnded, p.CallID+" "+map[string]string{"completed": wordOK, "canceled": wordCanceled}[p.Status]
	case harness.ApprovalRequested:
		m.what, m.about = permissionAsked, e.CorrelationID
	case harness.ApprovalResolved:
		m.what, m.about = permissionDecided, e.CorrelationID+" "+map[string]string{"approved": wordApprove, "denied": wordDeny}[p.Status]
	case harness.RunCompleted, harness.RunCanceled:
		m.what, m.about = runEnds, p.Status
	}
	return m, m.what != ""
}

func (c *logColumn) message(m point, kind harness.Type, p harness.Message) (point, bool) {
	if p.Role == "user" {
		c.users[p.MessageID] = true
	}
	c.said.add(p.MessageID, p.Text)
	if kind != harness.MessageCompleted {
		return m, false
	}
	text := c.said.take(p.MessageID)
	if c.users[p.MessageID] {
		m.what = promptGiven
		return m, true
	}
	m.what, m.about = agentSays, text
	return m, true
}

// eventColumn finds the points of a turn in the events of its session.
type eventColumn struct{ said texts }

func (c *eventColumn) point(e event) (point, bool) {
	m := point{as: e.kind + " " + narya.FormatID(e.ID)}
	switch p := e.Payload.(type) {
	case *narya.TurnStarted:
		m.what = runBegins
	case *narya.EntryAppended:
		if p.Kind == narya.EntryUserMessage {
			m.what = promptGiven // its words are in the transcript
		}
	case *narya.MessageDelta:
		if p.Channel == "" {
			c.said.add(p.TurnID, p.Delta)
		}
	case *narya.MessageEnd:
		m.what, m.about = agentSays, c.said.take(p.TurnID)
	case *narya.ToolCallStarted:
		m.what, m.about = toolCalled, p.ToolCallID+" "+p.Tool
	case *narya.ToolCallFinished:
		m.what, m.about = toolEnded, p.ToolCallID+" "+map[narya.ToolStatus]string{
			narya.ToolOK: wordOK, narya.ToolDenied: wordCanceled, narya.ToolCancelled: wordCanceled, narya.ToolError: wordFailed,
		}[p.Status]
	case *narya.PermissionAsked:
		m.what, m.about = permissionAsked, p.PermissionID
	case *narya.PermissionDecided:
		m.what, m.about = permissionDecided, p.PermissionID+" "+map[narya.Decision]string{
			narya.Allow: wordApprove, narya.Deny: wordDeny, narya.Expired: wordGone,
		}[p.Decision]
	case *narya.TurnFinished:
		m.what, m.about = runEnds, map[narya.StopReason]string{
			narya.StopCompleted: wordCompleted, narya.StopInterrupted: wordCanceled, narya.StopError: wordFailed,
		}[p.StopReason]
	}
	return m, m.what != ""
}
