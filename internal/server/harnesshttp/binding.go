package harnesshttp

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
)

// Prefix is the path under which all routes stand.
const Prefix = "/api/harness/v1"

// Options are the optional parts of a Binding. Zero values have the defaults given.
type Options struct {
	// Version is the program's, shown in the contract.
	Version string
	// Heartbeat is the longest silence on a stream, told to clients; 15 s.
	Heartbeat time.Duration
	// MaxLag is how many facts of the session a reader may be behind that has credit and comes
	// no nearer to the end; 65,536.
	MaxLag uint64
	// Now is the clock of streams; time.Now.
	Now func() time.Time
}

// Binding is the routes of the contract. New makes one.
type Binding struct {
	host        *host.Host
	streams     *server.Streams
	signer      *harness.Signer
	subscribers *subscribers
	opt         Options
}

// New returns the binding of a host, whose cursors the signer makes and judges.
func New(h *host.Host, streams *server.Streams, signer *harness.Signer, o Options) *Binding {
	if o.Heartbeat == 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.MaxLag == 0 {
		o.MaxLag = 65_536
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Binding{host: h, streams: streams, signer: signer, subscribers: newSubscribers(), opt: o}
}

// handler answers a request, or says why it cannot, before it has written anything.
type handler func(http.ResponseWriter, *request) error

// Register adds the routes to a mux.
func (b *Binding) Register(mux *http.ServeMux) {
	for pattern, handle := range map[string]handler{
		"GET /contract":           b.contract,
		"POST /runs":              b.start,
		"GET /runs/{run}/events":  b.events,
		"GET /runs/{run}/stream":  b.stream,
		"POST /runs/{run}/inputs": b.input,
	} {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+Prefix+path, func(w http.ResponseWriter, r *http.Request) {
			asked, err := newRequest(r)
			if err == nil {
				err = handle(w, asked)
			}
			if err != nil {
				server.WriteProblem(w, r, problemOf(err))
			}
		})
	}
}

// write answers with a JSON document, a line.
func write(w http.ResponseWriter, status int, v any) error {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	writeJSON(w, status, append(data, '\n'))
	return nil
}

func writeJSON(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set(headerVersion, harness.Version)
	server.WriteJSON(w, status, data)
}

// headerVersion names the contract in every answer that keeps it, headerSubscriber the name
// under which a stream takes credit.
const (
	headerVersion    = "Harness-Version"
	headerSubscriber = "Harness-Subscriber"
)
