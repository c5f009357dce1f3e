package naryahttp

import (
	"maps"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narya"
)

// Prefix is what the paths of all routes begin with.
const Prefix = "/v1/"

// Options are the optional parts of a Binding. Zero values have the defaults given.
type Options struct {
	// Version is the program's, Started when the process started, and Agents the names of the
	// agents that sessions can have, the default one first: GET /v1/host shows them. Without
	// Started it is when the binding was made.
	Version string
	Started time.Time
	Agents  []string
	// ActorName tells the name behind an actor's id, for the audit of an administrator (R6).
	// Nil knows none.
	ActorName func(id string) (name string, known bool)
	// Heartbeat is the longest silence on a stream; 15 s.
	Heartbeat time.Duration
	// MaxLag is how many events a live stream may be behind before it is dropped; 65,536.
	MaxLag uint64
	// Block is how many frames of the past one connection is given (R40); 4,096.
	Block int
	// PageFacts is how many facts are looked at for one page of a list that is made of facts;
	// 100,000.
	PageFacts uint64
	// Now is the clock; time.Now.
	Now func() time.Time
}

// Binding is the routes of the contract. New makes one.
type Binding struct {
	host    *host.Host
	streams *server.Streams
	framer  *host.Framer
	opt     Options
}

// New returns the binding of a host.
func New(h *host.Host, streams *server.Streams, o Options) *Binding {
	if o.Heartbeat == 0 {
		o.Heartbeat = 15 * time.Second
	}
	if o.MaxLag == 0 {
		o.MaxLag = 65_536
	}
	if o.Block == 0 {
		o.Block = 4096
	}
	if o.PageFacts == 0 {
		o.PageFacts = 100_000
	}
	if o.ActorName == nil {
		o.ActorName = func(string) (string, bool) { return "", false }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Started.IsZero() {
		o.Started = o.Now()
	}
	return &Binding{host: h, streams: streams, framer: h.NewFramer(frames), opt: o}
}

// handler answers a request, or says why it cannot, before it has written anything.
type handler func(http.ResponseWriter, *request) error

// routes are operations by method and path, such as "GET /v1/host".
type routes map[string]handler

// routes are those of all tags.
func (b *Binding) routes() routes {
	all := routes{}
	for _, of := range []routes{
		b.hostRoutes(), b.sessionRoutes(), b.messageRoutes(), b.permissionRoutes(), b.transcriptRoutes(), b.eventRoutes(),
		b.workflowRoutes(), b.extensionRoutes(), b.intercomRoutes(),
	} {
		maps.Copy(all, of)
	}
	return all
}

// Register adds the routes to a mux.
func (b *Binding) Register(mux *http.ServeMux) {
	for pattern, handle := range b.routes() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
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

// write answers with a JSON document: a value of package narya that encodes itself as it
// was encoded, any other in the form of its Go type.
func write(w http.ResponseWriter, status int, v any) error {
	data, err := encode(v)
	if err != nil {
		return err
	}
	server.WriteJSON(w, status, append(data, '\n'))
	return nil
}

// encode writes a value of an answer. Values of package narya, inside of others too, are
// written by its coder.
func encode(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), json.WithMarshalers(json.JoinMarshalers(
		json.MarshalFunc(narya.EncodeSession),
		json.MarshalFunc(narya.EncodeError),
	)))
}
