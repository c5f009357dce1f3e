package server

import "sync/atomic"

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
