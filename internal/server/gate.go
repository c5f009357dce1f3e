package server

import (
	"net/http"
	"sync"
)

// A gate counts the requests inside, and once it is closed says when the last
// one has left. Requests still enter a closed gate, to be refused.
type gate struct {
	mu     sync.Mutex
	inside int
	shut   bool
	empty  chan struct{} // closed when the gate is shut and nobody is inside
}

func newGate() gate { return gate{empty: make(chan struct{})} }

func (g *gate) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside++
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.signalLocked()
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	g.signalLocked()
}

func (g *gate) isClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut
}

func (g *gate) signalLocked() {
	if !g.shut || g.inside > 0 {
		return
	}
	select {
	case <-g.empty:
	default:
		close(g.empty)
	}
}

// closed returns why no request is served now, or nil.
func (s *Server) closed() *Problem {
	switch {
	case s.inFlight.isClosed():
		return draining()
	case s.options.Recovering():
		return &Problem{
			HTTPStatus: http.StatusServiceUnavailable, Code: CodeRecovering,
			Detail: "the host is recovering", RetryAfter: retrySoon,
		}
	}
	return nil
}

func draining() *Problem {
	return &Problem{
		HTTPStatus: http.StatusServiceUnavailable, Code: CodeDraining,
		Detail: "the host is shutting down", RetryAfter: retrySoon,
	}
}

// healthz says that the process lives, whatever else is going on.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) { writeLine(w, "ok\n") }

// readyz says whether the host wants work. Not ready and not serving are two
// things: a host whose disk is nearly full still answers reads.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if problem := s.closed(); problem != nil {
		WriteProblem(w, r, problem)
		return
	}
	if reason := s.options.Ready(); reason != "" {
		WriteProblem(w, r, &Problem{
			HTTPStatus: http.StatusServiceUnavailable, Code: CodeNotReady,
			Detail: reason, RetryAfter: retrySoon,
		})
		return
	}
	writeLine(w, "ready\n")
}

func writeLine(w http.ResponseWriter, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write([]byte(line))
}
