package naradhttp

import (
	"net/http"
	"slices"
	"time"

	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/server/refusal"
)

// problemOf translates errors for clients.
func problemOf(err error) error { return problems.ProblemOf(err) }

var problems = slices.Concat(refusal.Table{
	refusal.As(host.ErrGone, http.StatusGone, "session_deleted", "the session was deleted"),
	refusal.As(host.ErrNotFound, http.StatusNotFound, server.CodeNotFound, "no such session"),
	refusal.As(host.ErrWrongLease, http.StatusForbidden, "wrong_lease", "this is not the executor's lease: a newer attach has superseded it"),
	refusal.As(host.ErrLeaseExpired, http.StatusGone, "lease_expired", "the lease has expired, or was never given: attach again"),
	refusal.As(host.ErrTooManyExecutors, http.StatusServiceUnavailable, "too_many_executors", "as many executors are attached as the host allows").After(15 * time.Second),
	refusal.As(host.ErrDigestMismatch, http.StatusUnprocessableEntity, "digest_mismatch", "the bytes do not have the announced digest"),
	refusal.As(host.ErrNoMaterials, http.StatusNotImplemented, "unsupported", "this host keeps no attachments and artifacts"),
	refusal.As(host.ErrContentDamaged, http.StatusInternalServerError, "content_damaged", "the stored bytes are damaged"),
	refusal.As(host.ErrContentMissing, http.StatusInternalServerError, "content_damaged", "the stored bytes are missing"),
}, refusal.Kernel)
