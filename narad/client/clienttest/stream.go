package clienttest

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
)

// stream serves a session as a cursor with a wake-up: what came before, what comes
// now and catching up are one loop.
func (h *Host) stream(w http.ResponseWriter, r *http.Request, s *hosted) {
	wake := make(chan struct{}, 1)
	h.mu.Lock()
	s.wakes[wake] = struct{}{}
	cut, head, before := h.cut, s.head(), h.before
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(s.wakes, wake)
		h.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Narad-Session-Sequence", strconv.FormatInt(head, 10))
	flush := http.NewResponseController(w).Flush
	if flush() != nil {
		return
	}
	if before != nil {
		pause(r, before())
	}
	cursor, _ := strconv.ParseInt(r.URL.Query().Get("afterSessionSequence"), 10, 64)
	first := h.hydrate(r, s, cursor)
	watch := r.URL.Query().Get("watch") == "1"
	for {
		var frames []byte
		frames, cursor = h.frames(s, cursor, watch)
		if frames = append(first, frames...); len(frames) > 0 {
			if _, err := w.Write(frames); err != nil || flush() != nil {
				return
			}
			first = nil
		}
		if !h.await(r, wake, cut, &first) {
			return
		}
	}
}

// await waits for facts, for the end, or long enough for a heartbeat, which it puts
// into frames.
func (h *Host) await(r *http.Request, wake, cut <-chan struct{}, frames *[]byte) bool {
	timer := time.NewTimer(h.options.Heartbeat)
	defer timer.Stop()
	select {
	case <-wake:
		return true
	case <-cut:
		return false
	case <-r.Context().Done():
		return false
	case <-timer.C:
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.frozen {
		*frames, _ = sse.AppendFrame(*frames, "", []byte(`{"type":"server.heartbeat","protocolVersion":"narad/v1"}`))
	}
	return true
}

// frames returns the facts after a cursor, and the cursor after them.
func (h *Host) frames(s *hosted, cursor int64, watch bool) ([]byte, int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.frozen {
		return nil, cursor
	}
	var frames []byte
	session := ""
	for _, f := range s.facts[firstAfter(s.facts, cursor):] {
		id, _ := f.raw.Field("eventId").IsString()
		session, _ = f.raw.Field("sessionId").IsString()
		frames, _ = sse.AppendFrame(frames, id, f.raw)
		cursor = f.sequence
	}
	if watch && session != "" {
		frames = appendRevision(frames, session, cursor)
	}
	return frames, cursor
}

func firstAfter(facts []fact, cursor int64) int {
	i := len(facts)
	for i > 0 && facts[i-1].sequence > cursor {
		i--
	}
	return i
}

func appendRevision(frames []byte, session string, revision int64) []byte {
	event := narad.Revision{
		Kind: narad.TypeSessionRevision, EventID: "session.revision:" + session + ":" + strconv.FormatInt(revision, 10),
		Timestamp: "2026-08-05T00:00:00Z", SessionID: session, Revision: revision,
	}
	raw, err := narad.Encode(&event)
	if err != nil {
		return frames
	}
	frames, _ = sse.AppendFrame(frames, event.EventID, raw)
	return frames
}

// hydrate returns the transcript's frame where it is asked for and may stand.
func (h *Host) hydrate(r *http.Request, s *hosted, cursor int64) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if cursor != 0 || !strings.Contains(r.URL.Query().Get("hydrate"), "messages") {
		return nil
	}
	frame, _ := sse.AppendFrame(nil, "", s.transcript(s.state.SessionID()))
	return frame
}

// transcript is the messages.snapshot of the present state.
func (s *hosted) transcript(id string) narad.Raw {
	snapshot := narad.MessagesSnapshot{
		Timestamp: "2026-08-05T00:00:00Z", SnapshotID: "snapshot-1", SessionID: id,
		CoversThroughSessionSequence: s.head(), Messages: []narad.Raw{},
	}
	for _, m := range s.state.Messages() {
		snapshot.Messages = append(snapshot.Messages, narad.Raw(`{"messageId":`+string(narad.Quote(m.MessageID))+
			`,"role":"`+string(m.Role)+`","content":`+string(narad.Quote(m.Content))+
			`,"completed":`+strconv.FormatBool(!m.Streaming)+`,"messageScope":"`+string(m.MessageScope)+
			`","sessionSequence":`+strconv.FormatInt(m.SessionSequence, 10)+`,"timestamp":"`+m.Timestamp+`"}`))
	}
	raw, err := narad.Encode(&snapshot)
	if err != nil {
		panic("clienttest: a transcript cannot be encoded: " + err.Error())
	}
	return raw
}
