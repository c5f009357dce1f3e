package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mahati-host/mahati/internal/access"
)

const (
	defaultWriteTimeout           = 30 * time.Second
	defaultHeartbeat              = 15 * time.Second
	defaultMaxStreams             = 4096
	defaultMaxStreamsPerPrincipal = 256
)

// StreamOptions are the optional parts of a Streams.
type StreamOptions struct {
	// Heartbeat is the longest silence on a stream. Zero: 15 seconds.
	Heartbeat time.Duration
	// Max is how many streams may be open, MaxPerPrincipal how many of one
	// principal but for the owner of the home, who is all clients of the socket.
	// Zero: 4,096 and 256.
	Max, MaxPerPrincipal int
}

// HeaderHeartbeat is on each stream the longest silence that it will have, in milliseconds: whoever
// reads it may take one of several times that for the loss of the connection.
const HeaderHeartbeat = "Heartbeat-Interval-Ms"

// ErrDraining is why a stream ends when the server shuts down.
var ErrDraining = errors.New("server is draining")

// Streams is the event streams that are open.
type Streams struct {
	tokens  *access.Store
	options StreamOptions

	opened, refused, stalled, revoked atomic.Uint64

	mu           sync.Mutex
	open         map[*Stream]struct{}
	perPrincipal map[string]int
	draining     bool
}

// NewStreams returns a Streams that ends each stream when the token behind it
// does.
func NewStreams(tokens *access.Store, o StreamOptions) *Streams {
	if o.Heartbeat <= 0 {
		o.Heartbeat = defaultHeartbeat
	}
	if o.Max <= 0 {
		o.Max = defaultMaxStreams
	}
	if o.MaxPerPrincipal <= 0 {
		o.MaxPerPrincipal = defaultMaxStreamsPerPrincipal
	}
	return &Streams{tokens: tokens, options: o, open: make(map[*Stream]struct{}), perPrincipal: make(map[string]int)}
}

// Open begins the answer to a request as an event stream: the header, with what
// the handler has set in it, is sent at once. The stream ends with the handler.
// An error is a Problem, and nothing has been written.
func (s *Streams) Open(w http.ResponseWriter, r *http.Request) (*Stream, error) {
	st, err := s.Hold(w, r)
	if err != nil {
		return nil, err
	}
	st.Begin()
	return st, nil
}

// Hold counts a request that waits before it is answered among the streams: it is held to
// the same bounds, and its end comes for the same reasons. The handler begins the stream, or
// answers without it once [Stream.Alive] says that it may. An error is a Problem, and
// nothing has been written.
func (s *Streams) Hold(w http.ResponseWriter, r *http.Request) (*Stream, error) {
	state := stateOf(r.Context())
	if state.response == nil || state.stream != nil {
		return nil, errors.New("a request is held once, and comes through the edge")
	}
	st := newStream(s, w, r, state)
	if err := s.add(st); err != nil {
		st.cancel(err)
		return nil, err
	}
	state.stream = st
	return st, nil
}

// Counters returns the present values.
func (s *Streams) Counters() StreamCounters {
	s.mu.Lock()
	open := len(s.open)
	s.mu.Unlock()
	return StreamCounters{
		Open:    uint64(open),
		Opened:  s.opened.Load(),
		Refused: s.refused.Load(),
		Stalled: s.stalled.Load(),
		Revoked: s.revoked.Load(),
	}
}

// add and remove are the only doors to the set of open streams, add holds it to
// its bounds.
func (s *Streams) add(st *Stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := st.principal.ID()
	switch {
	case s.draining:
		return draining()
	case len(s.open) >= s.options.Max:
		s.refused.Add(1)
		return &Problem{
			HTTPStatus: http.StatusServiceUnavailable, Code: CodeTooManyStreams,
			Detail: "the host has as many open streams as it allows", RetryAfter: s.options.Heartbeat,
		}
	case s.perPrincipal[id] >= s.options.MaxPerPrincipal && !st.principal.IsOwner():
		s.refused.Add(1)
		return &Problem{
			HTTPStatus: http.StatusTooManyRequests, Code: CodeTooManyStreams,
			Detail: "this token has as many open streams as it may", RetryAfter: s.options.Heartbeat,
		}
	}
	s.open[st] = struct{}{}
	s.perPrincipal[id]++
	s.opened.Add(1)
	return nil
}

func (s *Streams) remove(st *Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.open[st]; !ok {
		return
	}
	delete(s.open, st)
	id := st.principal.ID()
	if s.perPrincipal[id]--; s.perPrincipal[id] == 0 {
		delete(s.perPrincipal, id)
	}
}

// drain tells all streams to end. One that is blocked in a write hears of it when
// its connection is cut.
func (s *Streams) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for st := range s.open {
		st.cancel(ErrDraining)
	}
}

// A Stream is one event stream, in the hands of its handler.
type Stream struct {
	owner     *Streams
	w         http.ResponseWriter
	control   *http.ResponseController
	principal access.Principal
	ctx       context.Context // the life of the stream
	cancel    context.CancelCauseFunc
	timer     *time.Timer
	lastWrite time.Time
	lastCheck time.Time
}

func newStream(owner *Streams, w http.ResponseWriter, r *http.Request, state *requestState) *Stream {
	ctx, cancel := context.WithCancelCause(r.Context())
	now := time.Now()
	return &Stream{
		owner: owner, w: w, control: http.NewResponseController(w),
		principal: state.principal, ctx: ctx, cancel: cancel,
		timer: time.NewTimer(owner.options.Heartbeat), lastWrite: now, lastCheck: now,
	}
}

// Begin sends the header of a stream that was held. A failure shows in the first write.
func (st *Stream) Begin() {
	header := st.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // proxies hold answers back otherwise
	header.Set(HeaderHeartbeat, strconv.FormatInt(st.owner.options.Heartbeat.Milliseconds(), 10))
	st.w.WriteHeader(http.StatusOK)
	_ = st.control.Flush()
}

// Context ends when the client leaves, when the server drains (its cause is then
// ErrDraining), when somebody ends the stream and when it has failed.
func (st *Stream) Context() context.Context { return st.ctx }

// End ends the stream for a reason of the binding's, after the frames that are being
// written. Any goroutine may call it.
func (st *Stream) End(why error) { st.cancel(why) }

// Write sends whole frames, as many as there are: one call is one flush. An
// error is final, and nothing is written after it, so that what a client has of
// the stream ends with a whole frame and at most the cut beginning of another,
// which the format has it drop.
func (st *Stream) Write(frames []byte) error {
	if err := st.Alive(); err != nil {
		return err
	}
	_, err := st.w.Write(frames)
	if err == nil {
		err = st.control.Flush()
	}
	if err != nil {
		return st.fail(fmt.Errorf("write to the stream: %w", err), &st.owner.stalled)
	}
	st.lastWrite = time.Now()
	return nil
}

// Wait waits until wake gives something (beat is false), or until the stream has
// been silent for the heartbeat interval (beat is true: write a heartbeat), or
// until its end. An error is final.
func (st *Stream) Wait(wake <-chan struct{}) (beat bool, err error) {
	for {
		if err := st.Alive(); err != nil {
			return false, err
		}
		select {
		case <-st.ctx.Done():
			return false, context.Cause(st.ctx)
		case <-wake:
			return false, nil
		case <-st.timer.C:
		}
		// The timer is not set anew at each write, only when it fires too early.
		silence := time.Since(st.lastWrite)
		if silence < st.owner.options.Heartbeat {
			st.timer.Reset(st.owner.options.Heartbeat - silence)
			continue
		}
		st.timer.Reset(st.owner.options.Heartbeat)
		return true, nil
	}
}

// Alive returns why the stream is over, or nil. A token is looked at once in a
// heartbeat interval: a stream may outlive it by that much.
func (st *Stream) Alive() error {
	if st.ctx.Err() != nil {
		return context.Cause(st.ctx)
	}
	now := time.Now()
	if now.Sub(st.lastCheck) < st.owner.options.Heartbeat {
		return nil
	}
	st.lastCheck = now
	if err := st.owner.tokens.Check(st.principal, now); err != nil {
		return st.fail(fmt.Errorf("check who reads the stream: %w", err), &st.owner.revoked)
	}
	return nil
}

func (st *Stream) fail(err error, counter *atomic.Uint64) error {
	counter.Add(1)
	st.cancel(err)
	return err
}

// close is called by the edge when the handler has returned.
func (st *Stream) close() {
	st.cancel(context.Canceled)
	st.timer.Stop()
	st.owner.remove(st)
}
