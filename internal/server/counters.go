package server

import (
	"net/http"
	"sync/atomic"
	"time"
)

type counters struct {
	requests, unauthenticated, foreign, panics atomic.Uint64
}

// Counters say what the edge has done since its start.
type Counters struct {
	Requests        uint64 // all, probes and refusals too
	Unauthenticated uint64 // refused for want of a valid token or cookie
	Foreign         uint64 // refused for their Host or Origin
	Panics          uint64 // handlers that panicked
	Streams         StreamCounters
}

// StreamCounters say what has become of event streams.
type StreamCounters struct {
	Open    uint64 // now
	Opened  uint64
	Refused uint64 // for the bounds on their number
	Stalled uint64 // ended because a write failed: most often nothing was taken
	Revoked uint64 // ended because the token behind them was
}

// Counters returns the present values. They are read one after the other.
func (s *Server) Counters() Counters {
	return Counters{
		Requests:        s.counters.requests.Load(),
		Unauthenticated: s.counters.unauthenticated.Load(),
		Foreign:         s.counters.foreign.Load(),
		Panics:          s.counters.panics.Load(),
		Streams:         s.streams.Counters(),
	}
}

// An Exchange is one request and its answer, without anything that a client chose.
type Exchange struct {
	// Route is the pattern that matched; empty where nothing did, or where the edge
	// refused before it looked.
	Route string
	// Status of the answer; 0 when its connection was cut before there was one.
	Status int
	// Took is the time until the answer was written.
	Took time.Duration
	// Streamed says that the answer was an event stream, which takes as long as
	// somebody listens.
	Streamed bool
	// Ended is why the binding ended the stream, one of its few words, or "" where the client
	// or the edge did.
	Ended string
}

func exchangeOf(r *http.Request, state *requestState, took time.Duration, answered bool) Exchange {
	e := Exchange{Route: r.Pattern, Status: state.response.status, Took: took, Streamed: state.stream != nil}
	if e.Status == 0 && answered {
		e.Status = http.StatusOK // net/http says so for a handler that says nothing
	}
	for _, attr := range state.attrs {
		if e.Streamed && attr.Key == KeyEnded {
			e.Ended = attr.Value.String()
		}
	}
	return e
}
