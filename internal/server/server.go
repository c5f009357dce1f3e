package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mahati-host/mahati/internal/access"
)

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute

	// maxHeader is the largest header of a request. What is larger than parsedHeader net/http
	// refuses by itself, and in its own form, so that is more.
	maxHeader    = 64 << 10
	parsedHeader = 4 * maxHeader

	// shutdownGrace is how long requests may go on in a shutdown. With what it
	// takes to cut them it fits in two seconds.
	shutdownGrace = 1500 * time.Millisecond
)

// Options are the optional parts of a Server.
type Options struct {
	// Recovering says that no request can be served yet (R17). Nil: it never is.
	Recovering func() bool
	// Ready returns why the host should get no new work, as a short code, or "".
	// Nil: always ready.
	Ready func() string
	// Logger gets one line a request. Nil: none.
	Logger *slog.Logger
	// AllowedHosts are the names this host may be called by besides those of
	// loopback, each "name" or "name:port".
	AllowedHosts []string
	// CORSOrigins are the origins whose pages may use this host from a browser.
	CORSOrigins []string
	// BehindProxy says that a proxy in front ends TLS.
	BehindProxy bool
	// WriteTimeout is how long a client may take nothing of what is written to it.
	// Zero: 30 seconds.
	WriteTimeout time.Duration
	// Store names the store behind this host, in letters and digits: it makes the name
	// of the host's cookie its own. Empty: a name that all such hosts share.
	Store string
	// LongBody tells how large the body of a request may be that may be larger than
	// MaxBody; it may take any time that it comes on. Nil: there is none.
	LongBody func(*http.Request) (limit int64, long bool)
	// Forms are how contracts write refusals that do so in a way of their own.
	Forms []Form
	// Owner gets the requests that come over a listener of the owner's. Nil: the handler of
	// all others.
	Owner http.Handler
	// Metrics answers GET /metrics, for those who may read it. Nil: nothing is there.
	Metrics http.Handler
	// Observe is told of each request once it has ended. Nil: nobody is.
	Observe func(Exchange)
	// Random is what request ids begin with. Nil: crypto/rand.
	Random io.Reader
}

// A Server is the HTTP edge in front of the bindings.
type Server struct {
	handler  http.Handler
	tokens   *access.Store
	cookies  *access.Cookies
	streams  *Streams
	options  Options
	origins  *origins
	logger   *slog.Logger
	http     *http.Server
	ids      *requestIDs
	inFlight gate
	counters counters
}

// New returns a server whose requests go to handler once they are admitted.
func New(handler http.Handler, tokens *access.Store, cookies *access.Cookies, streams *Streams, o Options) (*Server, error) {
	o = o.withDefaults()
	if o.Owner == nil {
		o.Owner = handler
	}
	origins, err := newOrigins(o.AllowedHosts, o.CORSOrigins, o.BehindProxy)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(o.Store, func(c rune) bool { return !isAlphanumeric(c) }) {
		return nil, fmt.Errorf("store %q: must be letters and digits", o.Store)
	}
	ids, err := newRequestIDs(o.Random)
	if err != nil {
		return nil, err
	}
	s := &Server{
		handler: handler, tokens: tokens, cookies: cookies, streams: streams,
		options: o, origins: origins, logger: o.Logger, ids: ids, inFlight: newGate(),
	}
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		WriteTimeout:      o.WriteTimeout, // until the first write of a response extends it
		MaxHeaderBytes:    parsedHeader,
		// OPTIONS * goes through the edge, as all else does.
		DisableGeneralOptionsHandler: true,
		BaseContext:                  baseContext,
		ErrorLog:                     slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.Recovering == nil {
		o.Recovering = func() bool { return false }
	}
	if o.Ready == nil {
		o.Ready = func() string { return "" }
	}
	if o.LongBody == nil {
		o.LongBody = func(*http.Request) (int64, bool) { return 0, false }
	}
	if o.Metrics == nil {
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { WriteProblem(w, r, nothingHere()) })
	}
	if o.Observe == nil {
		o.Observe = func(Exchange) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = defaultWriteTimeout
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	return o
}

func isAlphanumeric(c rune) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// Serve answers the connections of a listener until Shutdown, then returns nil.
// It closes the listener.
func (s *Server) Serve(listener net.Listener) error {
	if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	}
	return nil
}

// ServeOwner is Serve for a listener that only the owner of the home can reach,
// such as a Unix socket in a directory of mode 0700: requests without a token
// are the owner's, and no browser can have sent them.
func (s *Server) ServeOwner(listener net.Listener) error {
	return s.Serve(ownerListener{listener})
}

type ownerListener struct{ net.Listener }

type ownerKey struct{}

func baseContext(listener net.Listener) context.Context {
	_, owner := listener.(ownerListener)
	return context.WithValue(context.Background(), ownerKey{}, owner)
}

func fromOwner(ctx context.Context) bool {
	owner, _ := ctx.Value(ownerKey{}).(bool)
	return owner
}

// Shutdown ends everything: requests are refused from now on, streams end at a
// frame boundary, and what then still runs has its connection cut within two
// seconds. It returns when all handlers have, or with the error of ctx. It may be
// called twice.
func (s *Server) Shutdown(ctx context.Context) error {
	s.inFlight.close()
	s.streams.drain()
	graceful, cancel := context.WithTimeout(ctx, shutdownGrace)
	defer cancel()
	if err := s.http.Shutdown(graceful); err != nil {
		_ = s.http.Close() // its error is that of a listener that was closed already
	}
	select {
	case <-s.inFlight.empty:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for requests to end: %w", ctx.Err())
	}
}

// requestIDs are unique in a log: a random beginning for each start of the
// host, and a number.
type requestIDs struct {
	prefix string
	last   atomic.Uint64
}

func newRequestIDs(random io.Reader) (*requestIDs, error) {
	var bits [6]byte
	if _, err := io.ReadFull(random, bits[:]); err != nil {
		return nil, fmt.Errorf("draw the beginning of request ids: %w", err)
	}
	return &requestIDs{prefix: hex.EncodeToString(bits[:])}, nil
}

func (ids *requestIDs) next() string {
	return ids.prefix + "-" + strconv.FormatUint(ids.last.Add(1), 10)
}
