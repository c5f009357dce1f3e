package clienttest

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"
)

// Wrap puts a handler around all others.
func (h *Host) Wrap(wrap func(http.Handler) http.Handler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrap = append(h.wrap, wrap)
}

// times wraps the next n requests whose path ends in suffix.
func (h *Host) times(n int64, suffix string, do func(next http.Handler, w http.ResponseWriter, r *http.Request)) {
	var left atomic.Int64
	left.Store(n)
	h.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !hasSuffix(r.URL.Path, suffix) || left.Add(-1) < 0 {
				next.ServeHTTP(w, r)
				return
			}
			do(next, w, r)
		})
	})
}

// Refuse answers the next n requests whose path ends in suffix with a problem
// document. A retryAfter that is not empty goes out as that header.
func (h *Host) Refuse(n int64, suffix string, status int, code, retryAfter string) {
	h.times(n, suffix, func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		problem(w, status, code, "refused for the test")
	})
}

// DropAnswers serves the next n requests whose path ends in suffix, and breaks the
// connection in place of the answer.
func (h *Host) DropAnswers(n int64, suffix string) {
	h.times(n, suffix, func(next http.Handler, _ http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&httptest.ResponseRecorder{Body: new(bytes.Buffer)}, r)
		panic(http.ErrAbortHandler)
	})
}

// Delay holds back the answers to all requests whose path ends in suffix: the answer
// is what it was before the delay.
func (h *Host) Delay(suffix string, by func() time.Duration) {
	h.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !hasSuffix(r.URL.Path, suffix) {
				next.ServeHTTP(w, r)
				return
			}
			answer := httptest.NewRecorder()
			next.ServeHTTP(answer, r)
			pause(r, by())
			for name, values := range answer.Header() {
				w.Header()[name] = values
			}
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes())
		})
	})
}

func pause(r *http.Request, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}

// DelayFrames holds each stream back between its header and its first frame.
func (h *Host) DelayFrames(by func() time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.before = by
}

// CutStreams ends all open streams at a frame boundary.
func (h *Host) CutStreams() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.cut)
	h.cut = make(chan struct{})
}

// Freeze makes streams send nothing, heartbeats included, until it is taken back.
func (h *Host) Freeze(frozen bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.frozen = frozen
	for _, s := range h.sessions {
		s.wakeLocked()
	}
}
