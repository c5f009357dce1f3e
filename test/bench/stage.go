package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/pebble"
	"github.com/mahati-host/mahati/internal/replay"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/server/naradhttp"
	"github.com/mahati-host/mahati/internal/server/naryahttp"
)

// What is fanned out: rounds of facts in groups, as DESIGN §12 has them.
const (
	roundFacts   = 66
	groupFacts   = 3
	stageSession = "stage"
	// eventsSession is shown as it is called.
	eventsSession = "0f9c1d52-7c1e-4b0a-9f0e-3a5b7c9d1e2f"
)

// serveStage serves a host as package daemon wires it, to whose journal more can be told:
// POST /frames appends a round of ready facts to one session, POST /events one of facts with an
// event each to another. No agent makes facts as
// fast as a thousand readers can be given them.
func serveStage(home string) (err error) {
	j, err := pebble.Open(home+"/stage", pebble.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	f := feed.New(j, feed.Options{})
	defer f.Close()
	h := host.New(j, f, noAgents{}, host.Options{})
	defer h.Close()
	rounds := map[string]func(context.Context) error{}
	for path, of := range map[string]struct {
		session, fact string
		events        uint32
	}{"/frames": {stageSession, stagedFact, 0}, "/events": {eventsSession, stagedEvent, 1}} {
		w := &writer{sower: &sower{journal: j, replay: replay.New(j, replay.Options{})}, id: of.session, most: 1}
		if w.begin(); w.err != nil {
			return w.err
		}
		rounds[path] = w.ready(of.fact, of.events)
	}
	edge, err := newEdge(home, h)
	if err != nil {
		return err
	}
	if err := h.Start(context.Background()); err != nil {
		return err
	}
	return serveUntilEnd(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		round := rounds[r.URL.Path]
		if round == nil {
			edge.ServeHTTP(answer, r)
			return
		}
		if err := round(r.Context()); err != nil {
			http.Error(answer, err.Error(), http.StatusInternalServerError)
		}
	}))
}

// noAgents is a host that runs nothing.
type noAgents struct{}

func (noAgents) Kind(string) (agent.Kind, bool) { return nil, false }
func (noAgents) Default() string                { return "none" }

func newEdge(home string, h *host.Host) (*server.Server, error) {
	tokens, err := access.Open(home, access.StoreOptions{})
	if err != nil {
		return nil, err
	}
	if _, err := tokens.EnsureFirst(time.Now()); err != nil {
		return nil, err
	}
	streams := server.NewStreams(tokens, server.StreamOptions{Max: 2 * fanOutReaders, MaxPerPrincipal: 2 * fanOutReaders})
	mux := http.NewServeMux()
	naradhttp.New(h, streams, naradhttp.Options{}).Register(mux)
	naryahttp.New(h, streams, naryahttp.Options{}).Register(mux)
	return server.New(server.Routes(mux), tokens, access.NewCookies(tokens, access.CookieOptions{}), streams, server.Options{})
}

// ready gives a function that appends the facts of a round, in groups, as fast as the
// journal takes them. Their bytes are those of one fact, but for the sequences.
func (w *writer) ready(fact string, events uint32) func(context.Context) error {
	head := uint64(w.control.Session.Last())
	return func(ctx context.Context) error {
		for range roundFacts / groupFacts {
			batch := journal.Batch{Session: w.id, ExpectHead: head, Time: time.Now()}
			for range groupFacts {
				head++
				id := strconv.FormatUint(head, 10) + ".abcdefgh"
				bytes := fmt.Appendf(nil, fact, id, w.id, head, strings.Repeat("x", 240))
				batch.Facts = append(batch.Facts, journal.Fact{EventID: id, Bytes: bytes, EventCount: events})
			}
			if _, err := w.sower.journal.Append(ctx, batch); err != nil {
				return err
			}
		}
		return nil
	}
}

const stagedFact = `{"type":"session.custom","protocolVersion":"narad/v1","eventId":%q,"timestamp":"2026-08-05T00:00:00.000Z",` +
	`"sessionId":%q,"sessionSequence":%d,"name":"bench.fact","value":%q}`

const stagedEvent = `{"type":"session.custom","protocolVersion":"narad/v1","eventId":%q,"timestamp":"2026-08-05T00:00:00.000Z",` +
	`"sessionId":%q,"sessionSequence":%d,"name":"mahati.extension","value":{"extension":"lab/bench","name":"tick","payload":{"text":%q}}}`

// serveUntilEnd serves on loopback until standard input ends.
func serveUntilEnd(handler http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = web.Serve(listener) }()
	fmt.Printf("{\"url\":\"http://%s\"}\n", listener.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return web.Close()
}
