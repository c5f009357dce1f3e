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
	// Field names the field of a request that is at fault, Rule what holds for it, for the
	// contracts that tell them apart. Detail says both.
	Field, Rule string
}

// A Form is how one contract writes refusals: those of the edge too, on its paths.
type Form struct {
	// Prefix is what the paths of the contract begin with.
	Prefix string
	// Encode returns the answer of a problem. RetryAfter and what a status demands are set
	// by the edge.
	Encode func(*Problem) (status int, mediaType string, body []byte)
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
	CodeHeaderTooLarge   = "header_too_large"
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

// WriteProblem answers a request with the problem document of an error, or in the form of
// the contract whose path it is. An error that has no problem of its own is kept for the
// request's log line.
func WriteProblem(w http.ResponseWriter, r *http.Request, err error) {
	problem := ProblemOf(err)
	state := stateOf(r.Context())
	if problem.Code == CodeInternal {
		state.failure = err
	}
	status, mediaType, body := problem.HTTPStatus, "application/problem+json", []byte(nil)
	if state.form != nil {
		status, mediaType, body = state.form.Encode(problem)
	} else {
		body = document(problem, state)
	}
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Cache-Control", "no-store")
	header.Del("Content-Length")
	if problem.RetryAfter > 0 {
		seconds := (problem.RetryAfter + time.Second - 1) / time.Second
		header.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	if status == http.StatusUnauthorized && header.Get("WWW-Authenticate") == "" {
		header.Set("WWW-Authenticate", `Bearer realm="mahati"`)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// document writes a problem document (RFC 9457).
func document(problem *Problem, state *requestState) []byte {
	members := maps.Clone(problem.Members)
	if members == nil {
		members = make(map[string]any)
	}
	delete(members, "status")
	members["title"] = http.StatusText(problem.HTTPStatus)
	members["code"] = problem.Code
	if problem.Detail != "" {
		members["detail"] = problem.Detail
	}
	if state.id != "" {
		members["requestId"] = state.id
	}
	body, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		// A further member that cannot be encoded is our own mistake; the client
		// still learns the code.
		state.failure = err
		body = []byte(`{"code":` + strconv.Quote(problem.Code) + `}`)
	}
	return body
}
