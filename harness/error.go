package harness

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Code is the class of a refusal. It is an error itself, so that errors.Is(err, CodeOrder)
// asks for the class. The set is closed.
type Code string

// The classes that end a projection.
const (
	CodeIO       Code = "io"           // the log could not be read
	CodeLength   Code = "line-length"  // a line is longer than MaxLineBytes
	CodeSyntax   Code = "json-syntax"  // a line is not one JSON value
	CodeType     Code = "json-type"    // a field of the envelope has another JSON type
	CodeEnvelope Code = "envelope"     // a field of the envelope is missing or has a wrong value
	CodeOrder    Code = "order"        // not the next record of this run
	CodePayload  Code = "payload"      // the payload of a known type is none of that type
	CodeCanceled Code = "after-cancel" // ordinary output after run.canceled
	CodeInput    Code = "input"        // an input that no run takes
)

// The classes that only a strict reading refuses, or that are noted.
const (
	CodeUTF8        Code = "utf8"         // bytes or escapes that are no UTF-8
	CodeRepeated    Code = "repeated-key" // a key stands twice in one object
	CodeFolded      Code = "folded-key"   // a key is a field's name but for its case
	CodeEventID     Code = "event-id"     // an event_id stood before in this run
	CodeSensitivity Code = "sensitivity"  // not public, private or secret
	CodeField       Code = "field"        // a payload lacks a field of its type
	CodeApproval    Code = "approval"     // a resolution that resolves nothing, or more than was asked
	CodeCheckpoint  Code = "checkpoint"   // a checkpoint that cannot be resumed from
	CodeTerminal    Code = "terminal"     // how the log ends
	CodeLifecycle   Code = "lifecycle"    // a record that cannot stand where it stands
	CodeUsage       Code = "usage"        // sums above what 64 bits hold
)

// Error returns the name of the class.
func (c Code) Error() string { return string(c) }

// Error is the refusal of one record, line or input. Its text holds no payload, and of ids
// only a short, quoted part.
type Error struct {
	Code Code `json:"code"`
	// Line is counted from 1; 0 where the record came from no file.
	Line int `json:"line,omitzero"`
	// Sequence and EventID are the record's own, empty where they could not be read.
	Sequence uint64 `json:"sequence,omitzero"`
	EventID  string `json:"event_id,omitzero"`
	// Field is what is wrong within the record, "" for the record itself.
	Field string `json:"field,omitzero"`
	// Expected is what had to stand there, "" where it is not one value.
	Expected string `json:"expected,omitzero"`
	// Rule says what was demanded, as a phrase.
	Rule string `json:"rule"`

	cause error
}

// Error returns all of it in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	separator := ": "
	say := func(format string, value any) {
		b.WriteString(separator)
		fmt.Fprintf(&b, format, value)
		separator = ", "
	}
	if e.Line > 0 {
		say("line %d", e.Line)
	}
	if e.Sequence > 0 {
		say("sequence %d", e.Sequence)
	}
	if e.EventID != "" {
		say("event %s", quoted(e.EventID))
	}
	if e.Field != "" {
		say("%s", e.Field)
	}
	b.WriteString(": " + e.Rule)
	if e.Expected != "" {
		b.WriteString(" (expected " + quoted(e.Expected) + ")")
	}
	return b.String()
}

// Unwrap lets errors.Is find the class, and the error of a reader that failed.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.cause}
}

// CodeOf returns the class of an error of this package, "" for another.
func CodeOf(err error) Code {
	var refusal *Error
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}

// quoted shows a short part of a text that somebody else wrote.
func quoted(text string) string {
	const most = 80
	if len(text) > most {
		return strconv.QuoteToASCII(strings.ToValidUTF8(text[:most], "")) + "..."
	}
	return strconv.QuoteToASCII(text)
}

// of names the record that an error is about.
func (e *Error) of(event *Event) *Error {
	e.Sequence, e.EventID = event.Sequence, event.EventID
	return e
}
