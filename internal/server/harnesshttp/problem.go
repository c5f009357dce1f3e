package harnesshttp

import (
	"net/http"
	"slices"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/server/refusal"
)

// problemOf translates errors for clients.
func problemOf(err error) error { return problems.ProblemOf(err) }

var problems = slices.Concat(refusal.Table{
	refusal.As(host.ErrGone, http.StatusGone, "session_deleted", "the session of the run was deleted"),
	refusal.As(host.ErrNotFound, http.StatusNotFound, server.CodeNotFound, "no such run"),

	refusal.As(harness.ErrCursorMalformed, http.StatusBadRequest, "cursor_malformed", "cursor is none that this host writes"),
	refusal.As(harness.ErrCursorVersion, http.StatusConflict, "cursor_version", "the cursor is of another version"),
	refusal.As(harness.ErrCursorRun, http.StatusConflict, "cursor_run", "the cursor belongs to another run"),
	refusal.As(harness.ErrCursorForged, http.StatusConflict, "cursor_checkpoint", "the cursor's checkpoint is not one of this store"),
	refusal.As(harness.ErrCursorAhead, http.StatusConflict, "cursor_ahead", "the cursor is beyond the end of the log"),

	refusal.As(errNoSubscriber, http.StatusConflict, "no_subscriber", "no stream of that subscriber is open: credit is for an open stream"),
	refusal.As(errAmbiguous, http.StatusConflict, "subscriber_ambiguous", "several streams are open: name the subscriber in correlation_id"),
	refusal.As(errCreditExceeded, http.StatusUnprocessableEntity, "credit_exceeded", "with it the subscriber would have more credit than it can"),
	refusal.As(errGrantConflict, http.StatusConflict, codeReused, "the input granted another credit"),
	refusal.As(errUsedForCredit, http.StatusConflict, codeReused, "the input granted credit"),
}, refusal.Kernel)

// codeReused is for an input id that was used for something else (R21).
const codeReused = "input_conflict"
