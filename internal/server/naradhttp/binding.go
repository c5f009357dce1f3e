package naradhttp

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narad"
)

// Prefix is the path under which all routes stand.
const Prefix = "/api/narad/v1"

// Options are the optional parts of a Binding. Zero values have the defaults given.
type Options struct {
	// Version is the program's, shown in capabilities.
	Version string
	// Heartbeat is the longest silence on a stream, told to clients; 15 s.
	Heartbeat time.Duration
	// MaxLag is how many facts a reader may be behind that comes no nearer to the head;
	// 65,536.
	MaxLag uint64
	// Page is the largest page of history; 1,000.
	Page int
	// Now is the clock of streams; time.Now.
	Now func() time.Time
	// ActorName tells the name behind an actor's id, for the audit of an administrator
	// (R6). Nil: no id has a name.
	ActorName func(id string) (name string, known bool)
}

// Binding is the routes of the protocol. New makes one.
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
	if o.Page <= 0 || o.Page > maxPage {
		o.Page = maxPage
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.ActorName == nil {
		o.ActorName = func(string) (string, bool) { return "", false }
	}
	return &Binding{host: h, streams: streams, framer: h.NewFramer(frame), opt: o}
}

// frame is one fact as a client of the stream gets it.
func frame(r host.Record) []byte { return appendFrame(nil, r.EventID, r.Bytes) }

// handler answers a request, or says why it cannot, before it has written anything.
type handler func(http.ResponseWriter, *request) error

// Register adds the routes to a mux.
func (b *Binding) Register(mux *http.ServeMux) {
	for pattern, handle := range map[string]handler{
		"GET /capabilities":               b.capabilities,
		"POST /sessions":                  b.create,
		"GET /sessions":                   b.list,
		"GET /sessions/{id}":              b.summary,
		"DELETE /sessions/{id}":           b.remove,
		"POST /sessions/{id}/archive":     b.archive,
		"POST /sessions/{id}/restore":     b.restore,
		"GET /sessions/{id}/attach":       b.attach,
		"GET /sessions/{id}/events":       b.events,
		"GET /sessions/{id}/stream":       b.stream,
		"GET /sessions/{id}/messages":     b.messages,
		"GET /sessions/{id}/graph":        b.graph,
		"GET /sessions/{id}/audit":        b.audit,
		"GET /workspaces/{id}/stream":     b.workspaceStream,
		"POST /sessions/{id}/attachments": b.upload,
		"GET /sessions/{id}/attachments":  b.materials(host.Attachments),
		"GET /sessions/{id}/artifacts":    b.materials(host.Artifacts),

		"GET /sessions/{id}/attachments/{material}":    b.content(host.Attachments),
		"DELETE /sessions/{id}/attachments/{material}": b.removeAttachment,
		"GET /sessions/{id}/artifacts/{material}":      b.content(host.Artifacts),

		"POST /executors/{id}/attach":      b.attachExecutor,
		"GET /executors/{id}/stream":       b.executorStream,
		"POST /executors/{id}/controls":    b.control,
		"GET /interrupts":                  b.inbox,
		"POST /commands/message":           perform[message](b),
		"POST /commands/stop-active-root":  perform[stop](b),
		"POST /commands/queue":             perform[queue](b),
		"POST /commands/redact":            perform[redaction](b),
		"POST /commands/resolve-interrupt": perform[resolution](b),
		"POST /commands/start-workflow":    perform[workflow](b),
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

// LongBody is the largest body of a request, where that is another than the edge's: an
// attachment's.
func (b *Binding) LongBody(r *http.Request) (limit int64, long bool) {
	path, ours := strings.CutPrefix(r.URL.Path, Prefix+"/sessions/")
	id, rest, _ := strings.Cut(path, "/")
	// One more, so that the host itself finds that it is too much, and records it.
	return b.host.MaxAttachment() + 1, ours && id != "" && rest == "attachments" && r.Method == http.MethodPost
}

// write answers with a JSON document.
func write(w http.ResponseWriter, status int, v any) error {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	writeJSON(w, status, append(data, '\n'))
	return nil
}

// writeJSON answers with a document that is encoded already, a line.
func writeJSON(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Narad-Version", narad.Version)
	server.WriteJSON(w, status, data)
}
