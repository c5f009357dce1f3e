package naradhttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
)

// problemOf translates the host's errors for clients. What is not listed is the edge's
// to translate, or internal.
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
	{host.ErrGone, server.Problem{HTTPStatus: http.StatusGone, Code: "session_deleted", Detail: "the session was deleted"}},
	{host.ErrNotFound, server.Problem{HTTPStatus: http.StatusNotFound, Code: server.CodeNotFound, Detail: "no such session"}},
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
	{host.ErrWrongLease, server.Problem{
		HTTPStatus: http.StatusForbidden, Code: "wrong_lease", Detail: "this is not the executor's lease: a newer attach has superseded it",
	}},
	{host.ErrLeaseExpired, server.Problem{
		HTTPStatus: http.StatusGone, Code: "lease_expired", Detail: "the lease has expired, or was never given: attach again",
	}},
	{host.ErrTooManyExecutors, server.Problem{
		HTTPStatus: http.StatusServiceUnavailable, Code: "too_many_executors", Detail: "as many executors are attached as the host allows",
		RetryAfter: 15 * time.Second,
	}},
	{host.ErrDigestMismatch, server.Problem{
		HTTPStatus: http.StatusUnprocessableEntity, Code: "digest_mismatch", Detail: "the bytes do not have the announced digest",
	}},
	{host.ErrNoMaterials, server.Problem{
		HTTPStatus: http.StatusNotImplemented, Code: "unsupported", Detail: "this host keeps no attachments and artifacts",
	}},
	{host.ErrContentDamaged, server.Problem{
		HTTPStatus: http.StatusInternalServerError, Code: "content_damaged", Detail: "the stored bytes are damaged",
	}},
	{host.ErrContentMissing, server.Problem{
		HTTPStatus: http.StatusInternalServerError, Code: "content_damaged", Detail: "the stored bytes are missing",
	}},
	{context.Canceled, server.Problem{ // nobody reads it, but it is no error of ours to be logged
		HTTPStatus: http.StatusInternalServerError, Code: "canceled", Detail: "the request ended before its answer",
	}},
	{host.ErrDamaged, server.Problem{
		HTTPStatus: http.StatusInternalServerError, Code: "session_damaged", Detail: "stored data of the session is damaged",
	}},
}
