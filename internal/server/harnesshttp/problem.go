package harnesshttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
)

// problemOf translates errors for clients. What is not listed is the edge's to translate, or
// internal.
func problemOf(err error) error {
	var p *server.Problem
	if errors.As(err, &p) {
		return p
	}
	for _, known := range problems {
		if errors.Is(err, known.err) {
			p := known.problem
			return &p
		}
	}
	return err
}

// conflict is a request that does not fit how things stand.
func conflict(code, detail string) *server.Problem {
	return &server.Problem{HTTPStatus: http.StatusConflict, Code: code, Detail: detail}
}

var problems = []struct {
	err     error
	problem server.Problem
}{
	{host.ErrGone, server.Problem{HTTPStatus: http.StatusGone, Code: "session_deleted", Detail: "the session of the run was deleted"}},
	{host.ErrNotFound, server.Problem{HTTPStatus: http.StatusNotFound, Code: server.CodeNotFound, Detail: "no such run"}},
	{host.ErrOverloaded, server.Problem{
		HTTPStatus: http.StatusServiceUnavailable, Code: "overloaded", Detail: "too many commands wait for the session",
		RetryAfter: time.Second,
	}},
	{host.ErrRecovering, server.Problem{
		HTTPStatus: http.StatusServiceUnavailable, Code: server.CodeRecovering, Detail: "the host is recovering", RetryAfter: time.Second,
	}},
	{host.ErrClosed, server.Problem{
		HTTPStatus: http.StatusServiceUnavailable, Code: server.CodeDraining, Detail: "the host is shutting down", RetryAfter: time.Second,
	}},
	{host.ErrStorageFull, server.Problem{
		HTTPStatus: http.StatusInsufficientStorage, Code: "storage_full", Detail: "too little space is left",
	}},
	{host.ErrDamaged, server.Problem{
		HTTPStatus: http.StatusInternalServerError, Code: "session_damaged", Detail: "stored data of the session is damaged",
	}},
	{context.Canceled, server.Problem{ // nobody reads it, but it is no error of ours to be logged
		HTTPStatus: http.StatusInternalServerError, Code: "canceled", Detail: "the request ended before its answer",
	}},

	{harness.ErrCursorMalformed, server.Problem{HTTPStatus: http.StatusBadRequest, Code: "cursor_malformed", Detail: "cursor is none that this host writes"}},
	{harness.ErrCursorVersion, server.Problem{HTTPStatus: http.StatusConflict, Code: "cursor_version", Detail: "the cursor is of another version"}},
	{harness.ErrCursorRun, server.Problem{HTTPStatus: http.StatusConflict, Code: "cursor_run", Detail: "the cursor belongs to another run"}},
	{harness.ErrCursorForged, server.Problem{HTTPStatus: http.StatusConflict, Code: "cursor_checkpoint", Detail: "the cursor's checkpoint is not one of this store"}},
	{harness.ErrCursorAhead, server.Problem{HTTPStatus: http.StatusConflict, Code: "cursor_ahead", Detail: "the cursor is beyond the end of the log"}},

	{errNoSubscriber, server.Problem{HTTPStatus: http.StatusConflict, Code: "no_subscriber", Detail: "no stream of that subscriber is open: credit is for an open stream"}},
	{errAmbiguous, server.Problem{HTTPStatus: http.StatusConflict, Code: "subscriber_ambiguous", Detail: "several streams are open: name the subscriber in correlation_id"}},
	{errCreditExceeded, server.Problem{HTTPStatus: http.StatusUnprocessableEntity, Code: "credit_exceeded", Detail: "with it the subscriber would have more credit than it can"}},
	{errGrantConflict, server.Problem{HTTPStatus: http.StatusConflict, Code: codeReused, Detail: "the input granted another credit"}},
	{errUsedForCredit, server.Problem{HTTPStatus: http.StatusConflict, Code: codeReused, Detail: "the input granted credit"}},
}

// codeReused is for an input id that was used for something else (R21).
const codeReused = "input_conflict"
