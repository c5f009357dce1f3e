package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/mahati-host/mahati/internal/access"
)

// MaxBody is the largest request body, but for those of Options.LongBody.
const MaxBody = 1 << 20

// bodyTimeout is how long a client may take to send a body.
const bodyTimeout = 30 * time.Second

// requestState is what the edge knows of a request. It belongs to the goroutine
// of its handler.
type requestState struct {
	id        string
	principal access.Principal
	response  *response
	stream    *Stream
	failure   error // to be logged, never to be shown
	attrs     []slog.Attr
	form      *Form // of refusals; nil: a problem document
}

type stateKey struct{}

// stateOf returns the state of a request, or an empty one outside the edge.
func stateOf(ctx context.Context) *requestState {
	if state, ok := ctx.Value(stateKey{}).(*requestState); ok {
		return state
	}
	return &requestState{}
}

// PrincipalOf returns who makes the request: nobody, outside the edge.
func PrincipalOf(ctx context.Context) access.Principal { return stateOf(ctx).principal }

// RequestID returns the id under which the request is logged.
func RequestID(ctx context.Context) string { return stateOf(ctx).id }

// KeyEnded is the key under which a binding annotates why it ended a stream, with one of a few
// words: these are counted, too.
const KeyEnded = "ended"

// Annotate adds to the log line of the request, once it ends. The value is an
// identifier, such as that of a session; never content.
func Annotate(ctx context.Context, key, value string) {
	state := stateOf(ctx)
	state.attrs = append(state.attrs, slog.String(key, value))
}

// ReadBody reads the whole body of a request. Its errors are problems.
func ReadBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	switch known := BodyError(err); {
	case known != err:
		return nil, known
	case err != nil:
		return nil, &Problem{HTTPStatus: http.StatusBadRequest, Code: CodeBadRequest, Detail: "the body did not arrive whole"}
	}
	return body, nil
}

// BodyError returns the problem of an error that reading a body had; any other error is
// itself.
func BodyError(err error) error {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return bodyTooLarge(tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Problem{HTTPStatus: http.StatusRequestTimeout, Code: CodeBodyTimeout, Detail: "the body did not arrive in time"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Problem{HTTPStatus: http.StatusBadRequest, Code: CodeBadRequest, Detail: "the body did not arrive whole"}
	}
	return err
}

// NoteFailure keeps an error for the request's log line, where no answer can tell it any
// more.
func NoteFailure(ctx context.Context, err error) { stateOf(ctx).failure = err }

// patientBody is a long body: what counts is that it comes on.
type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
}

// Read gives each piece its time.
func (b patientBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(bodyTimeout))
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && BodyError(err) == err {
		err = io.ErrUnexpectedEOF // the client's own framing is broken
	}
	return n, err
}

func bodyTooLarge(limit int64) *Problem {
	return &Problem{
		HTTPStatus: http.StatusRequestEntityTooLarge, Code: CodeBodyTooLarge,
		Detail: fmt.Sprintf("the body may have at most %d bytes", limit), Members: map[string]any{"limit": limit},
	}
}
