// Package bindingtest runs a host with its HTTP edge and one binding, for the tests of that binding.
//
// It promises that everything which [Begin] began ends with the test, or with Close, in the order in
// which a host ends, and works inside a testing/synctest bubble: the network is in memory. A Bed
// belongs to its test; what it holds may be used as its own packages say. It is not a host as users
// start one, which package daemon makes: nothing is configured, and no binding is there but the test's.
package bindingtest

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/server/servertest"
)

// Options are what a bed is made of. Register and Agents are needed.
type Options struct {
	// Agents are those that sessions can have.
	Agents Cast
	// Register adds the routes of the binding to a mux, once the host is there, and to the options
	// of the edge what that must know of the binding.
	Register func(*Bed, *http.ServeMux, *server.Options)
	// Journal and Tokens are used, and left open; new ones where they are nil.
	Journal journal.Journal
	Tokens  *access.Store
	// Read is the journal by which streams are read. Nil: the same.
	Read func(journal.Journal) journal.Journal
	// Host, Streams and Edge are the options of the parts, but for their loggers.
	Host    host.Options
	Streams server.StreamOptions
	Edge    server.Options
	// Unstarted leaves the host as it is before it has recovered; Owner serves as on the socket
	// of the owner.
	Unstarted, Owner bool
}

// Bed is a host with its edge.
type Bed struct {
	Journal journal.Journal
	Host    *host.Host
	Tokens  *access.Store
	Streams *server.Streams
	Server  *server.Server
	HTTP    *http.Client // all of whose requests go to the edge
	Log     *servertest.Log
	Close   func() // may be called twice
}

// Begin runs a host and its edge. They end with the test, or with Close.
func Begin(t *testing.T, o Options) *Bed {
	t.Helper()
	b := &Bed{Journal: o.Journal, Tokens: o.Tokens, Log: &servertest.Log{}}
	if b.Journal == nil {
		b.Journal = Memory(t, journal.Options{})
	}
	if b.Tokens == nil {
		b.Tokens = tokens(t)
	}
	logger := slog.New(slog.NewJSONHandler(b.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.Host.Logger, o.Edge.Logger = logger, logger
	reads := b.Journal
	if o.Read != nil {
		reads = o.Read(reads)
	}
	f := feed.New(reads, feed.Options{Logger: logger})
	b.Host = host.New(b.Journal, f, o.Agents, o.Host)
	if !o.Unstarted {
		if err := b.Host.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	served := b.serve(t, o)
	b.Close = sync.OnceFunc(func() { b.end(t, f, served) })
	t.Cleanup(b.Close)
	return b
}

// Memory is a journal in memory, which is closed with the test.
func Memory(t *testing.T, o journal.Options) journal.Journal {
	t.Helper()
	j, err := journal.NewMemory(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func tokens(t *testing.T) *access.Store {
	t.Helper()
	store, err := access.Open(t.TempDir(), access.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func (b *Bed) serve(t *testing.T, o Options) <-chan error {
	t.Helper()
	listener := servertest.NewListener()
	b.HTTP = listener.Client()
	b.Streams = server.NewStreams(b.Tokens, o.Streams)
	mux := http.NewServeMux()
	o.Register(b, mux, &o.Edge)
	var err error
	b.Server, err = server.New(server.Routes(mux), b.Tokens, access.NewCookies(b.Tokens, access.CookieOptions{}), b.Streams, o.Edge)
	if err != nil {
		t.Fatal(err)
	}
	serve := b.Server.Serve
	if o.Owner {
		serve = b.Server.ServeOwner
	}
	served := make(chan error, 1)
	go func() { served <- serve(listener) }()
	return served
}

func (b *Bed) end(t *testing.T, f *feed.Feed, served <-chan error) {
	b.HTTP.CloseIdleConnections()
	if err := b.Server.Shutdown(context.Background()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if err := b.Host.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	f.Close()
}

// NewToken makes one, and returns its secret and its id.
func (b *Bed) NewToken(t *testing.T, name string, g access.Grant) (secret, id string) {
	t.Helper()
	token, made, err := b.Tokens.Create(access.TokenRequest{Name: name, Grant: g}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return made.Reveal(), token.ID
}
