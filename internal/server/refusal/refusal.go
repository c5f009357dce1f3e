package refusal

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
)

// A Row is how one error is told.
type Row struct {
	Err     error
	Problem server.Problem
}

// As is a row of an error that is told by a status, a code and a detail.
func As(err error, status int, code, detail string) Row {
	return Row{Err: err, Problem: server.Problem{HTTPStatus: status, Code: code, Detail: detail}}
}

// After is the row of what may be tried again then.
func (r Row) After(wait time.Duration) Row {
	r.Problem.RetryAfter = wait
	return r
}

// A Table is looked through from its beginning.
type Table []Row

// ProblemOf translates an error for clients.
func (t Table) ProblemOf(err error) error {
	var p *server.Problem
	if errors.As(err, &p) {
		return p
	}
	for _, known := range t {
		if errors.Is(err, known.Err) {
			p := known.Problem
			return &p
		}
	}
	return err
}

// Soon is when to try again what is refused for the moment.
const Soon = time.Second

// Kernel is what the kernel refuses whatever was asked of it.
var Kernel = Table{
	As(host.ErrOverloaded, http.StatusServiceUnavailable, "overloaded", "too many commands wait for the session").After(Soon),
	As(host.ErrRecovering, http.StatusServiceUnavailable, server.CodeRecovering, "the host is recovering").After(Soon),
	As(host.ErrClosed, http.StatusServiceUnavailable, server.CodeDraining, "the host is shutting down").After(Soon),
	As(host.ErrStorageFull, http.StatusInsufficientStorage, "storage_full", "too little space is left"),
	As(context.Canceled, http.StatusInternalServerError, "canceled", "the request ended before its answer"), // nobody reads it, but it is no error of ours to be logged
	As(host.ErrDamaged, http.StatusInternalServerError, "session_damaged", "stored data of the session is damaged"),
}
