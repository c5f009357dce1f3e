package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// decoder reads envelopes and payloads as encoding/json does (R38): the scanner first, and
// encoding/json itself for all that the scanner declines.
type decoder struct {
	scan scanner
	env  envelope
	seen uint32 // the fields of the last text, where the scanner took it
	slow bool   // whether it was left to encoding/json
}

// Decode reads one record from its JSON text and changes nothing of it: fields are neither
// demanded nor compared. The payload is a copy. Errors are of the classes CodeSyntax and
// CodeType.
func Decode(line []byte) (Event, error) {
	var d decoder
	event, err := d.event(line)
	if err != nil {
		return Event{}, err
	}
	event.Payload = bytes.Clone(event.Payload)
	return *event, nil
}

// event reads an envelope. It is valid until the next one; its payload is part of line.
func (d *decoder) event(line []byte) (*Event, *Error) {
	d.env.Event = Event{}
	if d.scanned(line, &d.env) {
		d.env.eventID = d.env.EventID
		return &d.env.Event, nil
	}
	d.env.Event = Event{}
	if err := json.Unmarshal(line, &d.env.Event); err != nil {
		return nil, decodeError(err)
	}
	return &d.env.Event, nil
}

// decodePayload reads a payload into a zero value; an absent one leaves it so.
func decodePayload[T any, P interface {
	*T
	target
}](d *decoder, event *Event, to P) *Error {
	if len(event.Payload) == 0 || d.scanned(event.Payload, to) {
		return nil
	}
	*to = *new(T)
	err := json.Unmarshal(event.Payload, to)
	if err == nil {
		return nil
	}
	refusal := decodeError(err)
	if refusal.Field != "" {
		refusal.Field = "payload." + refusal.Field
	}
	refusal.Code, refusal.Rule = CodePayload, "this is no payload of "+string(event.Type)
	return refusal.of(event)
}

// scanned reports whether the scanner took the text.
func (d *decoder) scanned(text []byte, to target) bool {
	const most = 64 << 10 // one large text must not hold its memory for the rest of the log
	if cap(d.scan.scratch) > most {
		d.scan.scratch = nil
	}
	d.scan.text, d.scan.scratch = text, d.scan.scratch[:0]
	seen, ok := d.scan.document(to)
	d.seen, d.slow = seen, !ok
	return ok
}

// decodeError says what encoding/json found, without showing what it found.
func decodeError(err error) *Error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return &Error{Code: CodeSyntax, Rule: "a line is one JSON object: " + syntaxRule(err)}
	}
	kind, _, _ := strings.Cut(wrong.Value, " ") // a number comes with its digits
	if wrong.Field == "" {
		return &Error{Code: CodeType, Rule: "a record is a JSON object, not " + article(kind)}
	}
	return &Error{Code: CodeType, Field: wrong.Field, Rule: article(kind) + " cannot stand here"}
}

func article(kind string) string {
	switch kind {
	case "array", "object":
		return "an " + kind
	case "bool":
		return "a boolean"
	}
	return "a " + kind
}

// syntaxRule names the kind of a syntax error.
func syntaxRule(err error) string {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return "it cannot be read"
	}
	return "the text is malformed or ends early"
}
