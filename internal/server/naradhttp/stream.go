package naradhttp

import (
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"
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
func (b *Binding) stream(w http.ResponseWriter, r *http.Request) error {
	v, s, err := b.view(r, access.ReadSession, r.PathValue("id"))
	if err != nil {
		return err
	}
	for _, name := range []string{"hydrate", "watch"} {
		if r.URL.Query().Get(name) != "" {
			return bad("not_offered", "this host does not offer "+name+" on a stream")
		}
	}
	after, err := cursor(r, v, s.Last)
	if err != nil {
		return err
	}
	setHeaders(w.Header(), s)
	st, err := b.streams.Open(w, r)
	if err != nil {
		return err
	}
	frames := v.Follow(b.framer, after)
	defer frames.Close()
	b.follow(st, frames)
	return nil
}

// cursor is where a stream begins. An event id that the client saw last is believed
// only if the fact at its place has exactly this id; it beats the query, since a
// browser reconnects with both (R3, R27).
func cursor(r *http.Request, v *host.View, head uint64) (uint64, error) {
	after, err := number(r, "afterSessionSequence")
	if err != nil {
		return 0, err
	}
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		record, err := v.Find(r.Context(), id)
		switch {
		case err == nil:
			return record.Sequence, nil
		case !errors.Is(err, host.ErrNotFound):
			return 0, err
		case !r.URL.Query().Has("afterSessionSequence"):
			return 0, &server.Problem{HTTPStatus: http.StatusConflict, Code: "cursor_unknown", Detail: "Last-Event-ID is no event of the session"}
		}
	}
	if after > head {
		return 0, &server.Problem{HTTPStatus: http.StatusConflict, Code: "cursor_ahead", Detail: "the cursor is above the head of the session"}
	}
	return after, nil
}

// follow writes frames until the client leaves, the server drains or the session ends.
// An end of a stream means nothing about the session.
func (b *Binding) follow(st *server.Stream, frames *host.Frames) {
	for {
		data, err := frames.Poll(st.Context())
		if err != nil {
			return
		}
		if len(data) > 0 {
			if st.Write(data) != nil {
				return
			}
			continue
		}
		beat, err := st.Wait(frames.Wake())
		if err != nil {
			return
		}
		if beat && st.Write(b.heartbeat()) != nil {
			return
		}
	}
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

// snapshotID is a function of the session and what the snapshot covers (R29).
func snapshotID(id string, covers int64) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("mahati:messages:"+id+":"+strconv.FormatInt(covers, 10))).String()
}
