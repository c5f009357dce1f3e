package naryahttp

import (
	"net/http"

	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narya"
)

func (b *Binding) eventRoutes() routes {
	return routes{"GET /v1/events": b.events}
}

// events is the stream of the host, or of one session. Everything that can be refused is
// before its first byte.
func (b *Binding) events(w http.ResponseWriter, r *request) error {
	which, err := readFilter(r)
	if err != nil {
		return err
	}
	kept := b.host.Events()
	after, err := beginning(r, kept)
	if err != nil {
		return err
	}
	from, err := b.source(r, which, after)
	if err != nil {
		return err
	}
	defer from.Close()
	if r.Method == http.MethodHead {
		return nil // a HEAD has no body, and must not wait for one to end
	}
	st, err := b.streams.Open(w, r.Request)
	if err != nil {
		return err
	}
	d := &delivery{binding: b, stream: st, source: from, after: after}
	if why := d.run(); why != "" {
		server.Annotate(r.Context(), server.KeyEnded, why)
	}
	return nil
}

// filter is which events a stream has: all, or those of one session, and beside these, where
// asked for, those that belong to none.
type filter struct {
	session    string // a UUID
	hostEvents bool
}

func readFilter(r *request) (f filter, err error) {
	if f.session, err = r.uuid("sessionId"); err != nil {
		return f, err
	}
	f.hostEvents, err = r.flag("hostEvents")
	return f, err
}

// beginning is the number behind which a stream begins. A cursor that is older than what is
// kept begins live, as none does (R39).
func beginning(r *request, kept host.EventRange) (uint64, error) {
	values := r.Header.Values("Last-Event-ID")
	if len(values) > 1 {
		return 0, malformed("Last-Event-ID is given more than once")
	}
	if len(values) == 0 || values[0] == "" {
		return kept.Newest, nil
	}
	id, ok := narya.ParseID(values[0])
	if !ok {
		return 0, malformed("Last-Event-ID is no id of an event")
	}
	switch after := uint64(id); {
	case after > kept.Newest:
		return 0, refuse(narya.CodeCursorAhead, "")
	case after+1 < kept.Oldest:
		return kept.Newest, nil
	default:
		return after, nil
	}
}
