package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/blob"
	"github.com/mahati-host/mahati/internal/config"
	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/pebble"
	"github.com/mahati-host/mahati/internal/numbers"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/server/harnesshttp"
	"github.com/mahati-host/mahati/internal/server/metrics"
	"github.com/mahati-host/mahati/internal/server/naradhttp"
	"github.com/mahati-host/mahati/internal/server/naryahttp"
)

// ErrBroken says that the store failed in writing: the process must end, and the next
// start recovers.
var ErrBroken = journal.ErrBroken

// AddressFile is the file of a home that holds the URL of the host that runs there.
const AddressFile = "address"

// Options are the optional parts of a daemon. The zero value is for production.
type Options struct {
	// Version is shown in capabilities.
	Version string
	// Logger gets what the parts tell; nothing is logged when nil.
	Logger *slog.Logger
	// Listener is used instead of the configured address and of the socket of the home.
	Listener net.Listener
	// Store changes how the store is opened: a disk that is full, or one that fails.
	Store func(*journal.Options)
	// Crash is what a script's crash step calls. Nil refuses scripts that have one.
	Crash func()
}

// Daemon is a host that serves. [Start] makes one.
type Daemon struct {
	cfg      config.Config
	log      *slog.Logger
	url      string
	socket   string
	parts    closers
	started  time.Time
	agents   agents
	metrics  *metrics.Metrics
	journal  *pebble.Journal
	feed     *feed.Feed
	host     *host.Host
	server   *server.Server
	serving  sync.WaitGroup
	done     chan struct{}
	doneOnce sync.Once

	mu     sync.Mutex
	err    error // guarded by mu: why it cannot go on
	closed bool  // guarded by mu
}

// closers ends the parts in the opposite order of their beginning.
type closers []func() error

func (c closers) close() error {
	var errs []error
	for i := len(c) - 1; i >= 0; i-- {
		errs = append(errs, c[i]())
	}
	return errors.Join(errs...)
}

// Start opens a home and serves it. When it fails nothing is left open.
func Start(ctx context.Context, cfg config.Config, o Options) (*Daemon, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Daemon{cfg: cfg, log: o.Logger, started: time.Now(), metrics: metrics.New(o.Version), done: make(chan struct{})}
	if err := d.start(ctx, o); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Daemon) start(ctx context.Context, o Options) error {
	if o.Listener == nil {
		if _, err := SocketPath(d.cfg.Home); err != nil {
			return err // before anything is made there
		}
	}
	if err := d.openHome(o); err != nil {
		return err
	}
	tokens, err := d.openTokens()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(scratchDir(d.cfg)); err != nil {
		return fmt.Errorf("remove what a dead host left: %w", err)
	}
	if d.agents, err = newAgents(d.cfg, o); err != nil {
		return err
	}
	if err := logPolicy(d.cfg).Validate(); err != nil {
		return fmt.Errorf("harness.classify: %w", err)
	}
	blobs, err := blob.Open(blobDir(d.cfg))
	if err != nil {
		return err
	}
	d.parts = append(d.parts, blobs.Close)
	d.feed = feed.New(d.journal, feed.Options{Logger: o.Logger})
	d.parts = append(d.parts, func() error { d.feed.Close(); return nil })
	d.host = host.New(d.metrics.Journal(d.journal), d.feed, d.agents, hostOptions(d.cfg, o.Logger, blobs))
	d.parts = append(d.parts, d.host.Close)
	if err := d.listen(o, tokens); err != nil {
		return err
	}
	d.serving.Go(d.watch)
	begun := time.Now()
	if err := d.host.Start(ctx); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	d.metrics.ObserveRecovery(time.Since(begun))
	return nil
}

// openHome makes the home, owner-only, and opens the store in it, which takes the
// home's lock.
func (d *Daemon) openHome(o Options) error {
	if err := os.MkdirAll(d.cfg.Home, 0o700); err != nil {
		return fmt.Errorf("make home: %w", err)
	}
	lock, err := pebble.Lock(d.cfg.Home)
	if err != nil {
		return fmt.Errorf("lock %s: %w", d.cfg.Home, err)
	}
	d.parts = append(d.parts, lock.Close)
	if err := os.Chmod(d.cfg.Home, 0o700); err != nil {
		return fmt.Errorf("make home owner-only: %w", err)
	}
	options := journalOptions(d.cfg, d.log)
	options.Observe = d.metrics.ObserveGroup
	if o.Store != nil {
		o.Store(&options)
	}
	d.journal, err = pebble.Open(storeDir(d.cfg), pebble.Options{Options: options})
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	d.parts = append(d.parts, d.journal.Close)
	return nil
}

func storeDir(cfg config.Config) string { return filepath.Join(cfg.Home, "store") }

// scratchDir is where agents get copies of attachments. Nothing in it outlives the host.
func scratchDir(cfg config.Config) string { return filepath.Join(cfg.Home, "scratch") }

// blobDir is where the bytes of attachments and artifacts lie.
func blobDir(cfg config.Config) string { return filepath.Join(cfg.Home, "blobs") }

func journalOptions(cfg config.Config, log *slog.Logger) journal.Options {
	return journal.Options{Logger: log, Reserve: uint64(cfg.Storage.Reserve)}
}

func (d *Daemon) openTokens() (*access.Store, error) {
	tokens, err := access.Open(d.cfg.Home, access.StoreOptions{})
	if err != nil {
		return nil, fmt.Errorf("open tokens: %w", err)
	}
	if _, err := tokens.EnsureFirst(time.Now()); err != nil {
		return nil, fmt.Errorf("make first token: %w", err)
	}
	return tokens, nil
}

// listen serves from now on; until the host has recovered every request gets 503.
func (d *Daemon) listen(o Options, tokens *access.Store) error {
	streams := server.NewStreams(tokens, server.StreamOptions{
		Heartbeat: d.cfg.Streams.Heartbeat, Max: d.cfg.Streams.Max, MaxPerPrincipal: d.cfg.Streams.MaxPerPrincipal,
	})
	tcp, owner, longBody := d.routes(o, tokens, streams)
	edge, err := server.New(tcp, tokens, access.NewCookies(tokens, access.CookieOptions{}), streams, server.Options{
		Recovering: func() bool { return !d.host.Ready() && d.Err() == nil }, Ready: d.notReady, Logger: d.log,
		AllowedHosts: d.cfg.AllowedHosts, CORSOrigins: d.cfg.CORSOrigins, BehindProxy: d.cfg.BehindProxy,
		WriteTimeout: d.cfg.Streams.WriteTimeout, Store: d.Epoch(),
		LongBody: longBody, Owner: owner, Forms: []server.Form{naryahttp.Form()},
		Metrics: d.metrics.Handler(), Observe: d.metrics.ObserveExchange,
	})
	if err != nil {
		return fmt.Errorf("make server: %w", err)
	}
	d.metrics.Watch(metrics.Sources{Journal: d.journal, Feed: d.feed, Host: d.host, Server: edge})
	if err := d.serve(o, edge); err != nil {
		return err
	}
	return d.writeAddress()
}

// serve opens the listeners, and answers what comes from them until stopServing.
func (d *Daemon) serve(o Options, edge *server.Server) error {
	listener, scheme, err := d.listener(o)
	if err != nil {
		return err
	}
	if o.Listener == nil {
		owner, err := listenSocket(d.cfg.Home)
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		d.socket = owner.path
		d.serveUntilShutdown(edge.ServeOwner, owner)
	}
	d.serveUntilShutdown(edge.Serve, listener)
	d.server = edge
	d.url = scheme + "://" + listener.Addr().String()
	d.parts = append(d.parts, d.stopServing)
	return nil
}

func (d *Daemon) serveUntilShutdown(serve func(net.Listener) error, listener net.Listener) {
	d.serving.Go(func() {
		if err := serve(listener); err != nil {
			d.fail(fmt.Errorf("serve: %w", err))
		}
	})
}

// routes makes the three bindings, and what is reached of them over TCP and by the owner of
// the home: the Narya host API is on TCP only where the configuration says so.
func (d *Daemon) routes(
	o Options, tokens *access.Store, streams *server.Streams,
) (tcp, owner http.Handler, longBody func(*http.Request) (int64, bool)) {
	identity := d.journal.Identity()
	actorName := func(id string) (string, bool) {
		if owner := access.Owner(); id == owner.ID() {
			return owner.Name(), true
		}
		t, err := tokens.Lookup(id)
		return t.Name, err == nil
	}
	narad := naradhttp.New(d.host, streams, naradhttp.Options{
		Version: o.Version, Heartbeat: d.cfg.Streams.Heartbeat, MaxLag: uint64(d.cfg.Streams.MaxLag),
		Page:      d.cfg.History.Page,
		ActorName: actorName,
	})
	headless := harnesshttp.New(d.host, streams, harness.NewSigner(identity.Key, identity.Epoch), harnesshttp.Options{
		Version: o.Version, Heartbeat: d.cfg.Streams.Heartbeat, MaxLag: uint64(d.cfg.Streams.MaxLag),
	})
	narya := naryahttp.New(d.host, streams, naryahttp.Options{
		Version: o.Version, Started: d.started, Agents: d.agents.names(), Heartbeat: d.cfg.Streams.Heartbeat,
		MaxLag: uint64(d.cfg.Streams.MaxLag), ActorName: actorName,
	})
	onTCP, onSocket := http.NewServeMux(), http.NewServeMux()
	for _, mux := range []*http.ServeMux{onTCP, onSocket} {
		narad.Register(mux)
		headless.Register(mux)
	}
	narya.Register(onSocket)
	if d.cfg.Narya.TCP {
		narya.Register(onTCP)
	}
	return server.Routes(onTCP), server.Routes(onSocket), narad.LongBody
}

// notReady says why the host should get no new work.
func (d *Daemon) notReady() string {
	switch {
	case d.journal.Err() != nil:
		return "store_broken"
	case d.journal.Space().Level != journal.SpaceOpen:
		return "storage_full"
	}
	return ""
}

func (d *Daemon) stopServing() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return d.server.Shutdown(ctx)
}

// writeAddress tells clients of the same user where the host is.
func (d *Daemon) writeAddress() error {
	path := filepath.Join(d.cfg.Home, AddressFile)
	if err := os.WriteFile(path, []byte(d.url+"\n"), 0o600); err != nil {
		return fmt.Errorf("write address: %w", err)
	}
	d.parts = append(d.parts, func() error {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove address: %w", err)
		}
		return nil
	})
	return nil
}

// watch waits for the store to break.
func (d *Daemon) watch() {
	select {
	case <-d.journal.Broken():
		d.fail(fmt.Errorf("store: %w", d.journal.Err()))
	case <-d.done:
	}
}

func (d *Daemon) fail(err error) {
	d.mu.Lock()
	if d.err == nil && !d.closed {
		d.err = err
	}
	d.mu.Unlock()
	d.doneOnce.Do(func() { close(d.done) })
}

// URL returns where the host is, without the path of a binding.
func (d *Daemon) URL() string { return d.url }

// Socket returns the path of the owner's socket, "" where Options.Listener took its place.
func (d *Daemon) Socket() string { return d.socket }

// Home returns the home.
func (d *Daemon) Home() string { return d.cfg.Home }

// Epoch identifies the store.
func (d *Daemon) Epoch() string { return d.journal.Identity().Epoch }

// Done is closed when the daemon cannot go on; Err then says why.
func (d *Daemon) Done() <-chan struct{} { return d.done }

// Err returns why the daemon cannot go on, or nil.
func (d *Daemon) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// Close drains and ends the daemon. Runs are not cancelled by it.
func (d *Daemon) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	d.mu.Unlock()
	d.doneOnce.Do(func() { close(d.done) })
	err := d.parts.close()
	d.serving.Wait()
	return err
}

// Verify walks the store of a home that no host uses, and derives its index rows again.
func Verify(ctx context.Context, cfg config.Config, progress func(journal.VerifyProgress)) (report journal.Report, err error) {
	lock, err := pebble.Lock(cfg.Home)
	if err != nil {
		return report, fmt.Errorf("lock %s: %w", cfg.Home, err)
	}
	defer closeInto(&err, lock)
	j, err := pebble.Open(storeDir(cfg), pebble.Options{Options: journalOptions(cfg, nil)})
	if err != nil {
		return report, fmt.Errorf("open store: %w", err)
	}
	defer closeInto(&err, j)
	report, err = j.Verify(ctx, journal.VerifyOptions{Progress: progress, Derive: index.Deriver(numbers.Of)})
	if err != nil {
		return report, err
	}
	return report, verifyBlobs(ctx, cfg, j, &report)
}

func closeInto(err *error, c io.Closer) { *err = errors.Join(*err, c.Close()) }
