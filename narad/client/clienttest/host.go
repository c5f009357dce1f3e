package clienttest

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/server/servertest"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Options are the optional parts of a Host.
type Options struct {
	// Token is what requests must bring. Empty: nothing.
	Token string
	// Heartbeat is the longest silence of a stream. Zero: 15 seconds.
	Heartbeat time.Duration
	// Profiles are those advertised. Nil: all.
	Profiles []string
	// PageSize bounds a page of history. Zero: 1,000.
	PageSize int
}

const prefix = "/api/narad/v1"

// A Host serves sessions over an in-memory network.
type Host struct {
	t        testing.TB
	options  Options
	listener *servertest.Listener
	server   *http.Server
	client   *http.Client

	mu       sync.Mutex
	epoch    string
	sessions map[string]*hosted
	wrap     []func(http.Handler) http.Handler
	requests []Request
	answers  map[string]string // by command id
	decided  map[string]string // by interrupt id
	frozen   bool
	cut      chan struct{}        // closed to end all streams
	before   func() time.Duration // how long a stream waits between its header and its first frame
}

type hosted struct {
	facts    []fact
	state    *session.State
	archived bool
	wakes    map[chan struct{}]struct{}
}

// A fact is a record and its place.
type fact struct {
	raw      narad.Raw
	sequence int64
}

// A Request is one request that the host has seen.
type Request struct {
	Method, Path, Query, Body string
	Header                    http.Header
}

// New starts a host that ends with the test.
func New(t testing.TB, o Options) *Host {
	t.Helper()
	if o.Heartbeat == 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.Profiles == nil {
		o.Profiles = narad.AllProfiles.IDs()
	}
	if o.PageSize == 0 {
		o.PageSize = 1000
	}
	h := &Host{
		t: t, options: o, epoch: "epoch-1", listener: servertest.NewListener(), sessions: map[string]*hosted{},
		answers: map[string]string{}, decided: map[string]string{}, cut: make(chan struct{}),
	}
	h.server = &http.Server{Handler: h}
	h.client = h.listener.Client()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.server.Serve(h.listener)
	}()
	t.Cleanup(func() {
		h.CutStreams()
		_ = h.server.Close()
		h.client.CloseIdleConnections()
		<-done
	})
	return h
}

// HTTP returns a client all of whose requests go to the host, and URL an address for
// it.
func (h *Host) HTTP() *http.Client { return h.client }

// URL is the host's address.
func (h *Host) URL() string { return "http://host.test" }

// ServeHTTP records the request and serves it through all that Wrap has put around.
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	h.requests = append(h.requests, Request{r.Method, r.URL.Path, r.URL.RawQuery, string(body), r.Header.Clone()})
	handler := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.serve(w, r, body) }))
	for _, wrap := range h.wrap {
		handler = wrap(handler)
	}
	h.mu.Unlock()
	handler.ServeHTTP(w, r)
}

// Requests returns those seen so far whose path ends in suffix.
func (h *Host) Requests(suffix string) []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.requests), func(r Request) bool { return !hasSuffix(r.Path, suffix) })
}

func hasSuffix(path, suffix string) bool {
	return len(path) >= len(suffix) && path[len(path)-len(suffix):] == suffix
}

// SetEpoch makes the host look like one with another store.
func (h *Host) SetEpoch(epoch string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.epoch = epoch
}

// Append numbers, judges and encodes facts, and serves them. A fact that no host may
// append fails the test.
func (h *Host) Append(sessionID string, facts ...narad.Authority) {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.hostedLocked(sessionID)
	for _, next := range facts {
		s.state.Number(next)
		e := next.Envelope()
		e.SessionID = sessionID
		e.EventID = fmt.Sprintf("%d.%08x", e.SessionSequence, e.SessionSequence*2654435761%0xffffffff)
		e.Timestamp = "2026-08-05T00:00:00Z"
		raw, err := narad.Encode(next)
		if err != nil {
			h.t.Errorf("encode %s: %v", next.Type(), err)
			return
		}
		if r := s.state.Admit(next); r.Kind != session.Applied {
			h.t.Errorf("append %s: %s %s: %s", next.Type(), r.Kind, r.Code, r.Detail)
			return
		}
		s.facts = append(s.facts, fact{raw, e.SessionSequence})
	}
	s.wakeLocked()
}

// Put serves records as they are: for history that no host may have. The place of
// each is its sessionSequence, whatever stands before it.
func (h *Host) Put(sessionID string, records ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.hostedLocked(sessionID)
	for _, record := range records {
		s.facts = append(s.facts, fact{narad.Raw(record), sequence(narad.Raw(record))})
	}
	s.wakeLocked()
}

// Drop forgets a session's facts, as a host does that was restored from an old copy.
func (h *Host) Drop(sessionID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.sessions, sessionID)
}

// Facts returns what the host has of a session, one record after the other.
func (h *Host) Facts(sessionID string) []narad.Raw {
	h.mu.Lock()
	defer h.mu.Unlock()
	var raws []narad.Raw
	for _, f := range h.hostedLocked(sessionID).facts {
		raws = append(raws, f.raw)
	}
	return raws
}

// Snapshot returns the host's own state of a session as JSON.
func (h *Host) Snapshot(sessionID string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.hostedLocked(sessionID).state.SnapshotJSON())
}

func (h *Host) hostedLocked(id string) *hosted {
	s := h.sessions[id]
	if s == nil {
		s = &hosted{
			state: session.New(session.Options{SessionID: id, Remember: session.RememberAll}),
			wakes: map[chan struct{}]struct{}{},
		}
		h.sessions[id] = s
	}
	return s
}

func (s *hosted) wakeLocked() {
	for wake := range s.wakes {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// sequence reads the place of a record; 0 if it has none.
func sequence(raw narad.Raw) int64 {
	var n int64
	_ = json.Unmarshal(raw.Field("sessionSequence"), &n)
	return n
}

func (h *Host) authorized(r *http.Request) bool {
	want := "Bearer " + h.options.Token
	got := r.Header.Get("Authorization")
	return h.options.Token == "" || subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}
