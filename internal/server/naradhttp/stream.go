package naradhttp

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
)

// setHeaders tells what a reader of a session can know before its facts (R25).
func setHeaders(h http.Header, s host.Summary) {
	h.Set("Narad-Version", narad.Version)
	h.Set("Narad-Profiles", strings.Join(s.RequiredProfiles, ","))
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
	for _, name := range []string{"hydrate", "watch"} {
		if r.query.Get(name) != "" {
			return bad("not_offered", "this host does not offer "+name+" on a stream")
		}
	}
	after, err := cursor(r, v, s.Last)
	if err != nil {
		return err
	}
	setHeaders(w.Header(), s)
	if r.Method == http.MethodHead {
		return nil // a HEAD has no body, and must not wait for one to end
	}
	st, err := b.streams.Open(w, r.Request)
	if err != nil {
		return err
	}
	frames := v.Follow(b.framer, after)
	defer frames.Close()
	if why := b.follow(st, frames); why != "" {
		server.Annotate(r.Context(), "ended", why)
	}
	return nil
}

// cursor is where a stream begins. An event id that the client saw last is believed
// only if the fact at its place has exactly this id; it beats the query, since a
// browser reconnects with both (R3, R27).
func cursor(r *request, v *host.View, head uint64) (uint64, error) {
	after, err := number(r, "afterSessionSequence")
	if err != nil {
		return 0, err
	}
	if len(r.Header.Values("Last-Event-ID")) > 1 {
		return 0, bad("bad_request", "Last-Event-ID is given more than once")
	}
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		record, err := v.Find(r.Context(), id)
		switch {
		case err == nil:
			return record.Sequence, nil
		case !errors.Is(err, host.ErrNotFound):
			return 0, err
		case !r.query.Has("afterSessionSequence"):
			return 0, conflict("cursor_unknown", "Last-Event-ID is no event of the session")
		}
	}
	if after > head {
		return 0, cursorAhead()
	}
	return after, nil
}

// follow writes frames until the client leaves, the server drains or the session ends.
// An end of a stream means nothing about the session; why is for the log, where the end
// is not the client's or the edge's doing.
func (b *Binding) follow(st *server.Stream, frames *host.Frames) (why string) {
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
func (b *Binding) hopeless(st *server.Stream, frames *host.Frames, last *chase) bool {
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
	data, err := narad.Encode(&narad.ServerHeartbeat{ServerTime: narad.Timestamp(b.opt.Now())})
	if err != nil {
		panic("naradhttp: a heartbeat is a record: " + err.Error())
	}
	out, err := sse.AppendFrame(nil, "", data)
	if err != nil {
		panic("naradhttp: a heartbeat is one line: " + err.Error())
	}
	return out
}
