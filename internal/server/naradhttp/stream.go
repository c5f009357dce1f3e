package naradhttp

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/narad"
)

// setHeaders tells what a reader of a session can know before its facts (R25).
func setHeaders(h http.Header, s host.Summary) {
	h.Set("Narad-Version", narad.Version)
	h.Set("Narad-Profiles", strings.Join(offered(s.RequiredProfiles), ","))
	h.Set("Narad-Session-Sequence", strconv.FormatUint(s.Last, 10))
	if s.ActiveRoot != "" {
		h.Set("Narad-Active-Root", s.ActiveRoot)
	}
}

// stream follows a session: everything after the cursor, and then what comes.
func (b *Binding) stream(w http.ResponseWriter, r *request) error {
	v, s, err := b.view(r, access.ReadSession)
	if err != nil {
		return err
	}
	x, err := readExtras(r)
	if err != nil {
		return err
	}
	at, err := cursor(r, v, s.Last)
	if err != nil {
		return err
	}
	if x.messages && at.after > 0 && r.Header.Get("Last-Event-ID") == "" {
		return bad("hydrate_cursor", "hydrate=messages is for a stream from the beginning: it covers what came before")
	}
	setHeaders(w.Header(), s)
	if r.Method == http.MethodHead {
		return nil // a HEAD has no body, and must not wait for one to end
	}
	st, err := b.streams.Open(w, r.Request)
	if err != nil {
		return err
	}
	frames := b.reader(v, x, at)
	defer frames.Close()
	if why := b.follow(st, frames); why != "" {
		server.Annotate(r.Context(), server.KeyEnded, why)
	}
	return nil
}

// reader is one who reads frames; host.Frames is one.
type reader interface {
	Poll(context.Context) ([]byte, error)
	Wake() <-chan struct{}
	Lag(context.Context) (uint64, error)
	Close()
}

// reader follows a session. Authority alone comes as frames that all its readers share.
func (b *Binding) reader(v *host.View, x extras, at beginning) reader {
	if x == (extras{}) {
		return v.Follow(b.framer, at.after)
	}
	return newHydrated(v, x, at)
}

// cursor is where a stream begins. An event id that the client saw last is believed
// only if the fact at its place has exactly this id, or yields the watch event of this id;
// it beats the query, since a browser reconnects with both (R3, R27, R28).
func cursor(r *request, v *host.View, head uint64) (beginning, error) {
	after, err := number(r, "afterSessionSequence")
	if err != nil {
		return beginning{}, err
	}
	id, err := lastEventID(r)
	if err != nil {
		return beginning{}, err
	}
	if id != "" {
		at, ok, err := behind(r.Context(), v, id)
		if err != nil || ok {
			return at, err
		}
		if !r.query.Has("afterSessionSequence") {
			return beginning{}, server.Conflict("cursor_unknown", "Last-Event-ID is no event of the session")
		}
	}
	if after > head {
		return beginning{}, cursorAhead()
	}
	return beginning{after: after}, nil
}

// behind is where a stream goes on after the event of an id, false for no event of the
// session.
func behind(ctx context.Context, v *host.View, id string) (beginning, bool, error) {
	record, err := v.Find(ctx, id)
	if err == nil {
		return beginning{after: record.Sequence}, true, nil
	}
	if !errors.Is(err, host.ErrNotFound) {
		return beginning{}, false, err
	}
	return owedAfter(ctx, v, id)
}

// follow writes frames until the client leaves, the server drains or the session ends.
// An end of a stream means nothing about the session; why is for the log, where the end
// is not the client's or the edge's doing.
func (b *Binding) follow(st *server.Stream, frames reader) (why string) {
	chase := chase{since: b.opt.Now()}
	for {
		data, err := frames.Poll(st.Context())
		if err != nil && st.Context().Err() == nil {
			return server.ProblemOf(problemOf(err)).Code
		}
		if err != nil {
			return ""
		}
		if len(data) > 0 {
			if st.Write(data) != nil {
				return ""
			}
			if b.hopeless(st, frames, &chase) {
				return "behind"
			}
			continue
		}
		beat, err := st.Wait(frames.Wake())
		if err != nil || beat && st.Write(b.heartbeat()) != nil {
			return ""
		}
	}
}

// chase is how far a reader was behind when that was last looked at.
type chase struct {
	since time.Time
	lag   uint64
}

// hopeless reports whether a reader is too far behind and, since the last look, came no
// nearer to the head. One that reads a long past, however slowly it gains, goes on.
func (b *Binding) hopeless(st *server.Stream, frames reader, last *chase) bool {
	now := b.opt.Now()
	if now.Sub(last.since) < b.opt.Heartbeat {
		return false
	}
	lag, err := frames.Lag(st.Context())
	if err != nil {
		return true
	}
	before := last.lag
	*last = chase{now, lag}
	return before > b.opt.MaxLag && lag > b.opt.MaxLag && lag >= before
}

// heartbeat fills the silence of a stream; it has no id (§11.2).
func (b *Binding) heartbeat() []byte {
	return appendRecord(nil, &narad.ServerHeartbeat{ServerTime: narad.Timestamp(b.opt.Now())})
}
