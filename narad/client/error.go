package client

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
)

// Action is what to do about an error.
type Action uint8

// The actions.
const (
	// GiveUp: the same call will fail again.
	GiveUp Action = iota
	// Retry: the same call may succeed later, after RetryAfter if that is given.
	Retry
	// Resync: what the caller holds of a session no longer fits the host. Drop the
	// state and follow from the beginning.
	Resync
)

// String returns the action's name in lower case.
func (a Action) String() string { return [...]string{"give up", "retry", "resync"}[a] }

// Code says what is wrong. A host's own codes pass through unchanged; the constants
// are those that this package gives or knows.
type Code string

// Codes of this package.
const (
	CodeInvalidRequest  Code = "invalid_request"   // the caller left out what is required
	CodeCanceled        Code = "canceled"          // the caller's context ended
	CodeTimeout         Code = "timeout"           // no answer in time
	CodeUnreachable     Code = "unreachable"       // no connection, or it broke
	CodeUntrusted       Code = "untrusted"         // the host's certificate does not hold
	CodeInvalidAnswer   Code = "invalid_answer"    // not what a Narad host answers
	CodeStreamEnded     Code = "stream_ended"      // the host ended the stream
	CodeStreamSilent    Code = "stream_silent"     // no byte for three heartbeats
	CodeInvalidFrame    Code = "invalid_frame"     // a frame without its id or its data
	CodeFrameIDMismatch Code = "frame_id_mismatch" // a frame whose id is not its eventId
	CodeFrameTooLarge   Code = "frame_too_large"   // above Options.MaxFrame
	CodeRecordRefused   Code = "record_refused"    // a fact that cannot follow those before
	CodePendingOverflow Code = "pending_overflow"  // too much waits behind a hole
	CodeGap             Code = "session_gap"       // a hole that history does not fill
	CodeEventConflict   Code = "event_conflict"    // one event id, two contents
	CodeEpochChanged    Code = "epoch_changed"     // the host has another store than before
	CodeInternal        Code = "internal_error"    // an error of another kind, hidden by Public
)

// Codes of hosts that decide what to do.
const (
	CodeCursorAhead    Code = "cursor_ahead"    // R26: the host has less than the caller
	CodeCursorUnknown  Code = "cursor_unknown"  // R27
	CodeCursorConflict Code = "cursor_conflict" // R26
)

// An Error is a call or a stream that failed. Its text never holds a token, and no
// words of the network's.
type Error struct {
	// Op is what was being done.
	Op string
	// Code says what is wrong.
	Code Code
	// Status is the HTTP status, 0 if there was no answer.
	Status int
	// Detail is for people.
	Detail string
	// RetryAfter is how long the host asks to wait; 0 if it does not say.
	RetryAfter time.Duration
	// RequestID is the host's name for the request, for its logs.
	RequestID string
	// Action is what to do about it.
	Action Action
	// Redacted says that there was more, which was not fit to be shown.
	Redacted bool

	cause error // one of those that safe knows
}

// Error is one line: what was being done, the code and the detail.
func (e *Error) Error() string {
	text := e.Op
	if text != "" {
		text += ": "
	}
	text += string(e.Code)
	if e.Status != 0 {
		text += " (HTTP " + strconv.Itoa(e.Status) + ")"
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Unwrap returns the cause where its text tells nothing that is not public: the error
// of a context, of the end of a stream, of the system, of a record.
func (e *Error) Unwrap() error { return e.cause }

// Public returns an error that may be shown to anybody: the [*Error] in the chain of
// err, or one that says nothing but that something failed (specification §12).
func Public(err error) *Error {
	var known *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	}
	return &Error{Code: CodeInternal, Detail: "an internal error", Redacted: true, cause: safe(err)}
}

// safe returns the innermost cause that is worth telling and public, or nil.
func safe(err error) error {
	for _, known := range []error{
		context.Canceled, context.DeadlineExceeded, io.ErrUnexpectedEOF, io.EOF, net.ErrClosed, sse.ErrFrameTooLarge,
	} {
		if errors.Is(err, known) {
			return known
		}
	}
	var number syscall.Errno
	if errors.As(err, &number) {
		return number
	}
	var refusal *narad.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return nil
}

// fail makes an error of this package's own.
func fail(op string, code Code, detail string) *Error {
	return &Error{Op: op, Code: code, Detail: detail, Action: actionOf(code, 0)}
}

// actionOf is the one table of what to do.
func actionOf(code Code, status int) Action {
	switch code {
	case CodeUnreachable, CodeTimeout, CodeStreamEnded, CodeStreamSilent, CodeFrameTooLarge:
		return Retry
	case CodePendingOverflow, CodeGap, CodeEventConflict, CodeEpochChanged, CodeCursorAhead, CodeCursorUnknown:
		return Resync
	}
	switch status {
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return GiveUp
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return Retry
	}
	if status >= http.StatusInternalServerError {
		return Retry
	}
	return GiveUp
}

// readError is the one place where a host's refusal becomes an Error: a problem
// document (R23), or whatever stands in its place.
func (c *Client) readError(op string, r response) *Error {
	e := &Error{Op: op, Status: r.status, RetryAfter: retryAfter(r.header)}
	if body := narad.Raw(r.body); jsontext.Value(body).IsValid() {
		e.Code = Code(c.word(body, "code"))
		e.Detail = c.text(body, "detail")
		e.RequestID = c.word(body, "requestId")
	}
	if e.Code == "" {
		e.Code = codeOfStatus(r.status)
	}
	e.Action = actionOf(e.Code, r.status)
	return e
}

func codeOfStatus(status int) Code {
	name := strings.ToLower(http.StatusText(status))
	if name == "" || status < http.StatusBadRequest {
		return CodeInvalidAnswer
	}
	return Code(strings.NewReplacer(" ", "_", "-", "_", "'", "").Replace(name))
}

func retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

const (
	maxWord   = 128
	maxDetail = 1024
)

// word reads a field that is a name; a value that is none is absent.
func (c *Client) word(body narad.Raw, name string) string {
	value := c.text(body, name)
	if len(value) > maxWord || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return value
}

// text reads a field that is for people, fit to be shown in one line.
func (c *Client) text(body narad.Raw, name string) string {
	value, _ := body.Field(name).IsString()
	value = strings.Map(func(r rune) rune {
		if control(r) {
			return ' '
		}
		return r
	}, c.scrub(value))
	if len(value) <= maxDetail {
		return value
	}
	end := maxDetail
	for !utf8.RuneStart(value[end]) {
		end--
	}
	return value[:end] + "..."
}

// transportError words a fault of the network. What the network itself says may name
// addresses, proxies and headers, so it is not repeated.
func transportError(ctx context.Context, op string, err error) *Error {
	e := &Error{Op: op, Redacted: true, cause: safe(err)}
	var number syscall.Errno
	switch {
	case ctx.Err() != nil:
		e.Code, e.cause, e.Redacted = CodeCanceled, ctx.Err(), false
		e.Detail = "the caller's context ended"
	case errors.Is(err, errSilent):
		e.Code, e.Detail, e.Redacted = CodeStreamSilent, "no byte for longer than three heartbeats", false
	case isTimeout(err):
		e.Code, e.Detail = CodeTimeout, "no answer in time"
	case isUntrusted(err):
		e.Code, e.Detail = CodeUntrusted, "the host's certificate does not hold"
	case errors.As(err, &number):
		e.Code, e.Detail = CodeUnreachable, number.Error()
	default:
		e.Code, e.Detail = CodeUnreachable, "no connection, or it broke"
	}
	e.Action = actionOf(e.Code, 0)
	return e
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, errNoAnswer) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
}

func isUntrusted(err error) bool {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var certificate x509.CertificateInvalidError
	return errors.As(err, &authority) || errors.As(err, &name) || errors.As(err, &certificate)
}

// invalidAnswer says that a host does not speak the protocol.
func invalidAnswer(op, detail string) *Error { return fail(op, CodeInvalidAnswer, detail) }

// missing says that the caller left out what is required.
func missing(op, what string) *Error { return fail(op, CodeInvalidRequest, what+" is required") }

// badID says that the caller gave no id, or what cannot be one.
func badID(op, what string) *Error {
	return fail(op, CodeInvalidRequest, fmt.Sprintf("%s is required, of at most %d bytes and without control characters", what, maxID))
}
