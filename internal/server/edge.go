package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/access"
)

// ServeHTTP takes one request through the edge.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	state := &requestState{id: s.ids.next(), response: newResponse(w, s.options.WriteTimeout), form: s.formOf(r.URL.Path)}
	state.response.Header().Set("Request-Id", state.id)
	r = r.WithContext(context.WithValue(r.Context(), stateKey{}, state))

	s.inFlight.enter()
	defer s.inFlight.leave()
	s.counters.requests.Add(1)
	defer func() { s.finish(r, state, begun, recover()) }()
	s.admit(state.response, r, w)
}

// formOf is how refusals of a path are written, nil for problem documents. A path that is not clean is
// refused in the form of the contract that was meant.
func (s *Server) formOf(of string) *Form {
	meant := path.Clean(of) + "/"
	for i := range s.options.Forms {
		if strings.HasPrefix(meant, s.options.Forms[i].Prefix) {
			return &s.options.Forms[i]
		}
	}
	return nil
}

// admit does everything that comes before a binding, in the order in which
// nothing is told to somebody who may not know it. Probes come first: they say
// nothing secret, and whoever sends them knows an address, not a name.
func (s *Server) admit(w *response, r *http.Request, raw http.ResponseWriter) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if headerBytes(r) > maxHeader {
		WriteProblem(w, r, &Problem{
			HTTPStatus: http.StatusRequestHeaderFieldsTooLarge, Code: CodeHeaderTooLarge,
			Detail: fmt.Sprintf("the header may have at most %d bytes", maxHeader), Members: map[string]any{"limit": maxHeader},
		})
		return
	}
	switch r.URL.Path {
	case pathHealth:
		s.only(w, r, http.MethodGet, s.healthz)
		return
	case pathReady:
		s.only(w, r, http.MethodGet, s.readyz)
		return
	}
	if !fromOwner(r.Context()) && !s.fromHere(w, r) {
		return
	}
	if problem := s.closed(); problem != nil {
		WriteProblem(w, r, problem)
		return
	}
	if !s.limitBody(w, r, raw) {
		return
	}
	switch r.URL.Path {
	case pathLogin:
		s.only(w, r, http.MethodPost, s.login)
		return
	case pathLogout:
		s.only(w, r, http.MethodPost, s.logout)
		return
	}
	principal, err := s.authenticate(r)
	if err != nil {
		s.counters.unauthenticated.Add(1)
		WriteProblem(w, r, err)
		return
	}
	stateOf(r.Context()).principal = principal
	if r.URL.Path == pathMetrics {
		s.only(w, r, http.MethodGet, s.metrics)
		return
	}
	if fromOwner(r.Context()) {
		s.options.Owner.ServeHTTP(w, r)
		return
	}
	s.handler.ServeHTTP(w, r)
}

// headerBytes is how large the header of a request is, with its first line.
func headerBytes(r *http.Request) int {
	const separators = len(": ") + len("\r\n")
	n := len(r.Method) + len(r.RequestURI) + len(r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			n += len(name) + len(value) + separators
		}
	}
	return n
}

// The addresses that the edge itself answers.
const (
	pathHealth  = "/healthz"
	pathReady   = "/readyz"
	pathLogin   = "/login"
	pathLogout  = "/logout"
	pathMetrics = "/metrics"
)

// metrics serves the figures of the whole host, to who may see all of it.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if err := access.Authorize(PrincipalOf(r.Context()), access.ReadMetrics, ""); err != nil {
		WriteProblem(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	s.options.Metrics.ServeHTTP(w, r)
}

// finish ends a request, with what its handler panicked with, if it did.
func (s *Server) finish(r *http.Request, state *requestState, begun time.Time, caught any) {
	if state.stream != nil {
		state.stream.close()
	}
	answered := caught == nil || s.recovered(r, state, caught)
	took := time.Since(begun)
	s.log(r, state, took)
	s.options.Observe(exchangeOf(r, state, took, answered))
	if !answered {
		panic(http.ErrAbortHandler) // net/http hangs up, and the client sees a cut
	}
	// What is still buffered is written after this.
	state.response.extend()
}

// fromHere checks Host and Origin. When it returns false it has answered.
func (s *Server) fromHere(w http.ResponseWriter, r *http.Request) bool {
	if !s.origins.allowsHost(r.Host) {
		s.counters.foreign.Add(1)
		WriteProblem(w, r, &Problem{
			HTTPStatus: http.StatusForbidden, Code: CodeHostNotAllowed,
			Detail: "the Host header names none of this host's allowed names",
		})
		return false
	}
	w.Header().Add("Vary", "Origin")
	switch s.origins.judge(r) {
	case foreign:
		s.counters.foreign.Add(1)
		WriteProblem(w, r, &Problem{
			HTTPStatus: http.StatusForbidden, Code: CodeOriginNotAllowed,
			Detail: "the request comes from a page of another origin",
		})
		return false
	case corsGrant:
		grantCORS(w, r)
		if isPreflight(r) {
			w.WriteHeader(http.StatusNoContent)
			return false
		}
	}
	return true
}

// limitBody bounds size and time of the body, and takes none that would grow. When it returns false it has
// answered.
func (s *Server) limitBody(w *response, r *http.Request, raw http.ResponseWriter) bool {
	most := int64(MaxBody)
	limit, long := s.options.LongBody(r)
	if long {
		most = limit
	}
	if r.ContentLength > most {
		hearOut(w, r)
		WriteProblem(w, r, bodyTooLarge(most))
		return false
	}
	if r.ContentLength == 0 {
		return true
	}
	if coding := r.Header.Values("Content-Encoding"); len(coding) > 0 {
		WriteProblem(w, r, &Problem{
			HTTPStatus: http.StatusUnsupportedMediaType, Code: CodeBadRequest, Detail: "send the body without a Content-Encoding",
		})
		return false
	}
	// The raw writer, because only it can tell net/http to hang up on a client
	// that sends too much.
	r.Body = http.MaxBytesReader(raw, r.Body, most)
	if long {
		r.Body = patientBody{r.Body, w.control}
		return true
	}
	// net/http takes the deadline away at the end of the body.
	_ = w.control.SetReadDeadline(time.Now().Add(bodyTimeout))
	return true
}

// hearingTime bounds how long a body is read that is refused.
const hearingTime = 5 * time.Second

// hearOut reads a body that is refused, if it is not much larger than allowed: most clients
// that still send when the answer comes see a broken connection, and not the answer.
func hearOut(w *response, r *http.Request) {
	if r.ContentLength > 4*MaxBody || r.Header.Get("Expect") != "" {
		return
	}
	_ = w.control.SetReadDeadline(time.Now().Add(hearingTime))
	_, _ = io.Copy(io.Discard, r.Body)
}

func (s *Server) only(w http.ResponseWriter, r *http.Request, method string, handle http.HandlerFunc) {
	if r.Method == method || method == http.MethodGet && r.Method == http.MethodHead {
		r.Pattern = method + " " + r.URL.Path // one of ours
		handle(w, r)
		return
	}
	allowed := method
	if method == http.MethodGet {
		allowed += ", " + http.MethodHead
	}
	refuseMethod(w, r, allowed)
}

// recovered deals with a panic: an answer where none has begun, which it reports.
// The value of a panic may hold anything, a message of a user too, so only what
// the runtime itself says is logged, and the stack.
func (s *Server) recovered(r *http.Request, state *requestState, caught any) (answered bool) {
	if caught == http.ErrAbortHandler {
		return false
	}
	s.counters.panics.Add(1)
	what := fmt.Sprintf("%T", caught)
	if err, ok := caught.(runtime.Error); ok {
		what = err.Error()
	}
	s.logger.LogAttrs(r.Context(), slog.LevelError, "handler panicked",
		slog.String(logRequest, state.id), slog.String(logError, what), slog.String("stack", string(debug.Stack())))
	if state.response.status != 0 {
		return false
	}
	WriteProblem(state.response, r, &Problem{HTTPStatus: http.StatusInternalServerError, Code: CodeInternal})
	return true
}

// Keys of log attributes.
const (
	logRequest   = "request"
	logError     = "error"
	logMethod    = "method"
	logRoute     = "route"
	logStatus    = "status"
	logBytes     = "bytes"
	logDuration  = "duration"
	logPrincipal = "principal"
)

// log writes the one line of a request. The route is the pattern that matched:
// the path itself may hold anything.
func (s *Server) log(r *http.Request, state *requestState, took time.Duration) {
	level := slog.LevelDebug
	attrs := []slog.Attr{
		slog.String(logRequest, state.id),
		slog.String(logMethod, methodOf(r)),
		slog.String(logRoute, r.Pattern),
		slog.Int(logStatus, state.response.status),
		slog.Int64(logBytes, state.response.bytes),
		slog.Duration(logDuration, took),
	}
	if !state.principal.IsZero() {
		attrs = append(attrs, slog.String(logPrincipal, state.principal.ID()))
	}
	attrs = append(attrs, state.attrs...)
	if state.failure != nil {
		level = slog.LevelError
		attrs = append(attrs, slog.String(logError, state.failure.Error()))
	}
	s.logger.LogAttrs(r.Context(), level, "request", attrs...)
}

// methodOf keeps what a client makes up out of the log.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "other"
}
