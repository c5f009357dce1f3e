package facts

import (
	"cmp"

	"github.com/mahati-host/mahati/narad"
)

// The names of facts by which sessions speak to each other, beside Intercom.
const (
	IntercomSent      = "mahati.intercom.sent"
	IntercomDelivered = "mahati.intercom.delivered"
	IntercomClosed    = "mahati.intercom.closed"
	IntercomRedacted  = "mahati.intercom.redacted"
)

// The kinds of what sessions say.
const (
	Said     = "message"
	Ask      = "ask"
	Answered = "answer"
)

// Sent is the payload of IntercomSent, in the session that speaks: what is to be delivered
// to another one.
type Sent struct {
	MessageID string `json:"messageId"`
	// To is the name of the other session, From that of this one.
	To          string `json:"to"`
	ToSessionID string `json:"toSessionId"`
	From        string `json:"from"`
	Content     string `json:"content"`
	Kind        string `json:"kind"`
	AskID       string `json:"askId,omitzero"`
	// RunID is the turn with whose end an ask ends, "" for an ask of no turn.
	RunID string `json:"runId,omitzero"`
}

// Delivered is the payload of IntercomDelivered, in the session that spoke: the other one
// has it, or will not have it, for the reason in Code.
type Delivered struct {
	// MessageID is that of what was sent; of the end of an ask, the ask's.
	MessageID string `json:"messageId"`
	Code      string `json:"code,omitzero"`
}

// AskClosed is the payload of IntercomClosed: nobody can answer the ask any more, and nobody
// waits for it. The session that ends it names the other one, which is to be told: ToSessionID
// where it had asked, FromSessionID where it was asked. What it is told names none.
type AskClosed struct {
	AskID         string `json:"askId"`
	Reason        string `json:"reason"`
	ToSessionID   string `json:"toSessionId,omitzero"`
	FromSessionID string `json:"fromSessionId,omitzero"`
}

// Tell returns the session that is to be told of the end, "" for none.
func (c AskClosed) Tell() string { return cmp.Or(c.ToSessionID, c.FromSessionID) }

// Redacted is the payload of IntercomRedacted: something else stands in the place of an answer
// of another session. Of what is a message of the conversation message.redacted tells.
type Redacted struct {
	MessageID string `json:"messageId"`
	Reason    string `json:"reason"`
	// DisplayReplacement is shown instead; nil shows nothing.
	DisplayReplacement *string `json:"displayReplacement,omitzero"`
}

// Shown is what stands in the place.
func (r Redacted) Shown() string {
	if r.DisplayReplacement == nil {
		return ""
	}
	return *r.DisplayReplacement
}

// RedactedBy reads what a fact redacts, if it does.
func RedactedBy(fact narad.Record) (Redacted, bool) {
	switch f := fact.(type) {
	case *narad.MessageRedacted:
		return Redacted{f.MessageID, f.Reason, f.DisplayReplacement}, true
	case *narad.Custom:
		return Read[Redacted](f, IntercomRedacted)
	}
	return Redacted{}, false
}

// Speaker is the session that a message came from, by its name.
type Speaker struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	AskID string `json:"askId,omitzero"`
}

const fieldSpeaker = "intercom"

// SetSpeaker records on a message that another session said it.
func SetSpeaker(e *narad.Event, s *Speaker) {
	if s != nil {
		e.SetOptional(fieldSpeaker, value(*s))
	}
}

// SpeakerOf returns the session that said a message, nil for one that a person said.
func SpeakerOf(e *narad.Event) *Speaker {
	s, told := optional[Speaker](e, fieldSpeaker)
	if !told {
		return nil
	}
	return &s
}
