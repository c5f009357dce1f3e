package harness

import (
	"bytes"
	"errors"
	"io"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Bounds of an input that comes from outside.
const (
	// MaxInputBytes bounds the JSON text of an input.
	MaxInputBytes = 1 << 20
	// MaxIDBytes bounds the ids that an input names or brings.
	MaxIDBytes = 128
	// MaxReasonBytes bounds the reason of a cancel and the scope of a decision.
	MaxReasonBytes = 4 << 10
)

// The words that approval.resolve may decide.
const (
	Approve = "approve"
	Deny    = "deny"
)

// Validate reports what makes the input one that no run takes. Bodies of another type are
// not looked at.
func (in Input) Validate() error {
	switch {
	case in.Version != Version:
		return badInput("version", Version, "the protocol's version is compared whole")
	case in.RunID == "":
		return badInput("run_id", "", "an input names its run")
	case in.InputID == "":
		return badInput("input_id", "", "an input has an id")
	}
	switch in.Type {
	case MessageSubmit:
		if in.Message == nil || in.Message.Text == "" {
			return badInput("message.text", "", "a message has a text")
		}
	case ApprovalResolve:
		return in.Approval.validate()
	case RunCancel:
		if in.Reason == "" {
			return badInput("reason", "", "a cancel has a reason")
		}
	case FlowCredit:
		if in.Credit == 0 {
			return badInput("credit", "", "a credit is from 1 to 4294967295")
		}
	default:
		return badInput("type", "", "an input is message.submit, approval.resolve, run.cancel or flow.credit")
	}
	return nil
}

func (r *Resolution) validate() error {
	switch {
	case r == nil || r.ApprovalID == "":
		return badInput("approval.approval_id", "", "a decision names its approval")
	case r.Decision != Approve && r.Decision != Deny:
		return badInput("approval.decision", "", "a decision is approve or deny")
	}
	return nil
}

func badInput(field, expected, rule string) error {
	return &Error{Code: CodeInput, Field: field, Expected: expected, Rule: rule}
}

// DecodeInput reads an input from outside: one JSON object in UTF-8 without repeated keys,
// of bounded size, with exact field names, unknown fields ignored, and valid as
// [Input.Validate] says. The input_id is of the form that clients may choose (R4).
func DecodeInput(data []byte) (Input, error) {
	if len(data) > MaxInputBytes {
		return Input{}, badInput("", "", "an input is at most 1 MiB long")
	}
	var in Input
	if err := jsonv2.Unmarshal(data, &in); err != nil {
		return Input{}, inputError(err)
	}
	if bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("null")) {
		return Input{}, badInput("", "", "an input is a JSON object")
	}
	if err := in.Validate(); err != nil {
		return Input{}, err
	}
	if err := in.bounded(); err != nil {
		return Input{}, err
	}
	return in, nil
}

// inputError says what is wrong with a text, without showing any of it.
func inputError(err error) error {
	var wrong *jsonv2.SemanticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return badInput("", "", "a key may stand only once in an object")
	case errors.As(err, &wrong):
		return badInput(declared(string(wrong.JSONPointer)), "", "a field has another JSON type, or a number is out of range")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return badInput("", "", "the JSON text ends early")
	}
	return badInput("", "", "an input is one JSON object in UTF-8")
}

// declared turns the pointer of a field that was decoded, which is one of ours, into its
// path.
func declared(pointer string) string {
	return strings.ReplaceAll(strings.TrimPrefix(pointer, "/"), "/", ".")
}

// bounded holds what Validate leaves open to the limits of a boundary.
func (in Input) bounded() error {
	switch {
	case !chosenID(in.InputID):
		return badInput("input_id", "", "an input_id is 1 to 128 of A-Z a-z 0-9 . _ : -")
	case len(in.RunID) > MaxIDBytes:
		return badInput("run_id", "", "a run_id is at most 128 bytes long")
	case len(in.CorrelationID) > MaxIDBytes:
		return badInput("correlation_id", "", "a correlation_id is at most 128 bytes long")
	case in.Type == RunCancel && len(in.Reason) > MaxReasonBytes:
		return badInput("reason", "", "a reason is at most 4096 bytes long")
	case in.Type == ApprovalResolve && len(in.Approval.ApprovalID) > MaxIDBytes:
		return badInput("approval.approval_id", "", "an approval_id is at most 128 bytes long")
	case in.Type == ApprovalResolve && len(in.Approval.Scope) > MaxReasonBytes:
		return badInput("approval.scope", "", "a scope is at most 4096 bytes long")
	}
	return nil
}

// chosenID reports whether an id has the form that clients may choose (R4).
func chosenID(id string) bool {
	return id != "" && len(id) <= MaxIDBytes && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-") == ""
}

// envelopeRule is what a field of every record must be.
type envelopeRule struct {
	field, expected, rule string
	broken                func(*Event) bool
}

var envelopeRules = []envelopeRule{
	{"version", Version, "the protocol's version is compared whole", func(e *Event) bool { return e.Version != Version }},
	{"run_id", "", "a record names its run", func(e *Event) bool { return e.RunID == "" }},
	{"sequence", "", "a record has a sequence, from 1", func(e *Event) bool { return e.Sequence == 0 }},
	{"event_id", "", "a record has an id", func(e *Event) bool { return e.EventID == "" }},
	{"type", "", "a record has a type", func(e *Event) bool { return e.Type == "" }},
}

func (r *envelopeRule) refusal(e *Event) *Error {
	return (&Error{Code: CodeEnvelope, Field: r.field, Expected: r.expected, Rule: r.rule}).of(e)
}

// validate reports what makes a record one that no consumer takes.
func (e *Event) validate() *Error {
	for i := range envelopeRules {
		if rule := &envelopeRules[i]; rule.broken(e) {
			return rule.refusal(e)
		}
	}
	return nil
}
