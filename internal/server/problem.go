package server

import (
	"errors"
	"maps"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/internal/access"
)

// A Problem is a refusal as a client sees it: an RFC 9457 problem document. As
// an error it can travel from where a request is refused to WriteProblem.
type Problem struct {
	// HTTPStatus is the status of the response. It is not in the document: the
	// public client would take it for a command's status (R23).
	HTTPStatus int
	// Code is what programs look at.
	Code string
	// Detail is for people. It says nothing that the caller may not know.
	Detail string
	// RetryAfter, if not zero, is when to try again.
	RetryAfter time.Duration
	// Members are further members of the document.
	Members map[string]any
}

// Error is the code and the detail.
func (p *Problem) Error() string {
	if p.Detail == "" {
		return p.Code
	}
	return p.Code + ": " + p.Detail
}

// The codes that the edge itself gives.
const (
	CodeInternal         = "internal"
	CodeUnauthenticated  = "unauthenticated"
	CodeForbidden        = "forbidden"
	CodeNotFound         = "not_found"
	CodeMethodNotAllowed = "method_not_allowed"
	CodeBadRequest       = "bad_request"
	CodeBodyTooLarge     = "body_too_large"
	CodeBodyTimeout      = "body_timeout"
	CodeHostNotAllowed   = "host_not_allowed"
	CodeOriginNotAllowed = "origin_not_allowed"
	CodeRecovering       = "recovering"
	CodeDraining         = "draining"
	CodeNotReady         = "not_ready"
	CodeTooManyStreams   = "too_many_streams"
)

const retrySoon = time.Second

// ProblemOf translates an error for clients. A Problem is itself, the errors of
// access and of body limits have theirs, and every other error is internal and
// shows nothing.
func ProblemOf(err error) *Problem {
	var problem *Problem
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.Is(err, access.ErrUnauthenticated):
		return &Problem{HTTPStatus: http.StatusUnauthorized, Code: CodeUnauthenticated, Detail: "a valid token is needed"}
	case errors.Is(err, access.ErrForbidden):
		return &Problem{HTTPStatus: http.StatusForbidden, Code: CodeForbidden, Detail: "the token does not allow this"}
	case errors.As(err, &tooLarge):
		return bodyTooLarge(tooLarge.Limit)
	}
	return &Problem{HTTPStatus: http.StatusInternalServerError, Code: CodeInternal}
}

// WriteProblem answers a request with the problem document of an error. An error
// that has no problem of its own is kept for the request's log line.
func WriteProblem(w http.ResponseWriter, r *http.Request, err error) {
	problem := ProblemOf(err)
	state := stateOf(r.Context())
	if problem.Code == CodeInternal {
		state.failure = err
	}
	document := maps.Clone(problem.Members)
	if document == nil {
		document = make(map[string]any)
	}
	delete(document, "status")
	document["title"] = http.StatusText(problem.HTTPStatus)
	document["code"] = problem.Code
	if problem.Detail != "" {
		document["detail"] = problem.Detail
	}
	if state.id != "" {
		document["requestId"] = state.id
	}
	body, err := json.Marshal(document, json.Deterministic(true))
	if err != nil {
		// A further member that cannot be encoded is our own mistake; the client
		// still learns the code.
		state.failure = err
		body = []byte(`{"code":` + strconv.Quote(problem.Code) + `}`)
	}
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	header.Del("Content-Length")
	if problem.RetryAfter > 0 {
		seconds := (problem.RetryAfter + time.Second - 1) / time.Second
		header.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	if problem.HTTPStatus == http.StatusUnauthorized && header.Get("WWW-Authenticate") == "" {
		header.Set("WWW-Authenticate", `Bearer realm="mahati"`)
	}
	w.WriteHeader(problem.HTTPStatus)
	_, _ = w.Write(body)
}
