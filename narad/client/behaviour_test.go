package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/client/clienttest"
	"github.com/mahati-host/mahati/narad/session"
)

// These tests are named after the public client's behaviours that they pin down.

func queriesOf(h *clienttest.Host, suffix string) []string {
	var queries []string
	for _, r := range h.Requests(suffix) {
		queries = append(queries, r.Query)
	}
	return queries
}

func afters(h *clienttest.Host, suffix string) string {
	var list []string
	for _, q := range queriesOf(h, suffix) {
		for part := range strings.SplitSeq(q, "&") {
			if n, ok := strings.CutPrefix(part, "afterSessionSequence="); ok {
				list = append(list, n)
			}
		}
	}
	return strings.Join(list, " ")
}

func TestA1FreshAttachReadsHistoryOnceAndSubscribesBeyondIt(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		started(h, 1, 5)
		h.DelayFrames(func() time.Duration { started(h, 6, 6); return 0 })
		f := dial(t, h, client.Options{}).Follow(sessionID, client.FollowOptions{})
		s := follow(t.Context(), f, at(6))
		wantRun(t, s.sequences, 1, 6)
		if got := afters(h, "/events"); got != "0" {
			t.Errorf("history was asked after %q, want once after 0", got)
		}
		if got := afters(h, "/stream"); got != "5" {
			t.Errorf("subscribed after %q, want 5", got)
		}
		for n := 1; n <= 6; n++ {
			if _, ok := f.Run(fmt.Sprintf("run-%d", n)); !ok {
				t.Errorf("run-%d is missing", n)
			}
		}
	})
}

func TestA2AttachContinuesFromTheStateAndMergesTheOverlap(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		started(h, 1, 5)
		h.DelayFrames(func() time.Duration { started(h, 5, 6); return 0 }) // 5 comes live too
		state := session.New(session.Options{SessionID: sessionID})
		for n := int64(1); n <= 2; n++ {
			state.ApplyJSON([]byte(clienttest.Started(sessionID, n)), false)
		}
		f := dial(t, h, client.Options{}).Follow(sessionID, client.FollowOptions{State: state})
		s := follow(t.Context(), f, at(6))
		wantRun(t, s.sequences, 3, 6)
		if got, live := afters(h, "/events"), afters(h, "/stream"); got != "2" || live != "5" {
			t.Errorf("history after %q, stream after %q; want 2 and 5", got, live)
		}
	})
}

func TestA3LiveGapIsFilledFromHistory(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		started(h, 1, 1)
		jumps := make(chan string)
		jumpingStream(h, jumps)
		go func() {
			synctest.Wait()
			started(h, 2, 3)
			jumps <- frame(3)
			synctest.Wait()
			started(h, 4, 4)
			jumps <- frame(4)
		}()
		began := time.Now()
		f := dial(t, h, client.Options{}).Follow(sessionID, client.FollowOptions{})
		s := follow(t.Context(), f, func(u client.Update, s *seen) bool { return live(u, s) && f.Last() == 4 || at(4)(u, s) })
		wantRun(t, s.sequences, 1, 4)
		if got := afters(h, "/events"); got != "0 1" {
			t.Errorf("history was asked after %q, want 0 and 1", got)
		}
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("the gap was filled after %v", took)
		}
		if !slices.Contains(s.phases, client.Live) || len(s.broken) > 0 {
			t.Errorf("phases %v, broken %v: want live, and one connection", s.phases, s.broken)
		}
	})
}

func frame(n int64) string {
	return fmt.Sprintf("id: evt-%d\ndata: %s\n\n", n, clienttest.Started(sessionID, n))
}

// jumpingStream serves whatever comes over a channel as the one stream.
func jumpingStream(h *clienttest.Host, parts <-chan string) {
	h.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/stream") {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			for {
				select {
				case part := <-parts:
					_, _ = io.WriteString(w, part)
					_ = http.NewResponseController(w).Flush()
				case <-r.Context().Done():
					return
				}
			}
		})
	})
}

func TestA4StreamThatEndsIsFollowedByHistoryAndAnother(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		started(h, 1, 1)
		f := dial(t, h, client.Options{}).Follow(sessionID, client.FollowOptions{})
		var cut time.Time
		s := follow(t.Context(), f, func(u client.Update, s *seen) bool {
			if live(u, s) && cut.IsZero() {
				cut = time.Now()
				h.CutStreams()
				synctest.Wait() // the stream is gone: what comes now is not on it
				started(h, 2, 2)
			}
			return at(2)(u, s)
		})
		wantRun(t, s.sequences, 1, 2)
		if took := time.Since(cut); took > 80*time.Millisecond {
			t.Errorf("came back after %v, want within 80 ms", took)
		}
		if got := afters(h, "/events"); got != "0 1" {
			t.Errorf("history was asked after %q, want 0 and 1", got)
		}
		if len(s.broken) != 1 || s.broken[0].Code != client.CodeStreamEnded {
			t.Errorf("broken by %v, want stream_ended once", s.broken)
		}
	})
}

func TestA5ProfilesAreThoseOfBothSidesInClaimedOrder(t *testing.T) {
	id := func(names ...string) []string {
		for i, name := range names {
			names[i] = "narad." + name + "/v1"
		}
		return names
	}
	bubble(t, clienttest.Options{Profiles: id("trace", "conversation", "graph", "progress", "workflow")}, func(t *testing.T, h *clienttest.Host) {
		h.Append(sessionID, clienttest.Turn(1)...)
		c := dial(t, h, client.Options{})
		f := c.Follow(sessionID, client.FollowOptions{Profiles: id("conversation", "graph", "debug", "progress")})
		follow(t.Context(), f, live)
		if got, want := f.Profiles(), id("conversation", "graph", "progress"); !slices.Equal(got, want) {
			t.Errorf("negotiated %v, want %v", got, want)
		}
		if q := queriesOf(h, "/attach")[0]; !strings.Contains(q, "unclaimed=skip") {
			t.Errorf("attach query %q lets the host refuse the claim", q)
		}
		all := c.Follow(sessionID, client.FollowOptions{})
		follow(t.Context(), all, live)
		if got, want := all.Profiles(), id("trace", "conversation", "graph", "progress", "workflow"); !slices.Equal(got, want) {
			t.Errorf("without a claim: negotiated %v, want %v", got, want)
		}
	})
}

func TestA6AttachIsDoneAlthoughNothingComes(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		started(h, 1, 1)
		streams(h) // never a frame, never an end
		f := dial(t, h, client.Options{}).Follow(sessionID, client.FollowOptions{})
		began := time.Now()
		s := follow(t.Context(), f, live)
		if took := time.Since(began); s.err != nil || took > 0 {
			t.Errorf("live after %v, error %v; want at once", took, s.err)
		}
	})
}

func TestA7OverflowBehindAHoleFailsClosed(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Put(sessionID)
		streams(h, frame(999)+frame(1000))
		f := dial(t, h, client.Options{}).Follow(sessionID, client.FollowOptions{MaxPending: 1})
		s := follow(t.Context(), f, never)
		e := wantCode(t, s.err, client.CodePendingOverflow, client.Resync)
		if !strings.Contains(e.Error(), "overflow") {
			t.Errorf("message %q does not say overflow", e)
		}
		if f.Last() != 0 || len(s.sequences) > 0 {
			t.Errorf("cursor %d, shown %v: nothing may be guessed", f.Last(), s.sequences)
		}
	})
}

// openStream opens a stream that the host answers with parts.
func openStream(t *testing.T, h *clienttest.Host, o client.Options, parts ...string) *client.Stream {
	t.Helper()
	h.Put(sessionID)
	streams(h, parts...)
	s, err := dial(t, h, o).Stream(t.Context(), sessionID, client.StreamQuery{})
	if err != nil {
		t.Fatalf("Stream: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestE1FragmentsGiveOneFrame(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		fact := clienttest.Started(sessionID, 1)
		s := openStream(t, h, client.Options{}, "id: evt-1\nevent: message\n", "data: "+fact[:20], fact[20:]+"\n\n")
		got, err := s.Next()
		if err != nil || got.ID != "evt-1" || string(got.Raw) != fact {
			t.Fatalf("got %q %s, %v; want evt-1 and %s", got.ID, got.Raw, err, fact)
		}
		if e := got.Record.(*narad.RunStarted); e.EventID != "evt-1" {
			t.Errorf("record of event %q", e.EventID)
		}
	})
}

func TestE2V7FrameLimit(t *testing.T) {
	for limit, length := range map[int]int{16: 32, 32: 64} {
		for _, end := range []string{"\n\n", ""} { // complete, and still growing
			bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
				s := openStream(t, h, client.Options{MaxFrame: limit}, "data: "+strings.Repeat("x", length)+strings.Repeat("x", 200)+end)
				_, err := s.Next()
				wantCode(t, err, client.CodeFrameTooLarge, client.Retry)
			})
		}
	}
}

func TestE3V8AuthorityFrameRequiresID(t *testing.T) {
	whole := clienttest.Started(sessionID, 1)
	for _, text := range []string{
		`data: {"type":"run.started","eventId":"e1"}` + "\n\n",
		"data: " + whole + "\n\n",
		"id:\ndata: " + whole + "\n\n",
		`data: {"type":"session.revision","protocolVersion":"narad/v1","eventId":"w1","timestamp":"2026-08-05T00:00:00Z","sessionId":"s","revision":1}` + "\n\n",
		": an id of an earlier block does not stick\nid: evt-1\n\ndata: " + whole + "\n\n",
	} {
		bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
			_, err := openStream(t, h, client.Options{}, text).Next()
			e := wantCode(t, err, client.CodeInvalidFrame, client.GiveUp)
			if !strings.Contains(e.Error(), "requires id") {
				t.Errorf("%q: message %q does not say that it requires id", text, e)
			}
		})
	}
}

func TestFrameIDMustBeTheEventID(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		s := openStream(t, h, client.Options{}, "id: evt-2\ndata: "+clienttest.Started(sessionID, 1)+"\n\n")
		_, err := s.Next()
		wantCode(t, err, client.CodeFrameIDMismatch, client.GiveUp)
	})
}

func TestFramesWithoutFactsNeedNoID(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		s := openStream(t, h, client.Options{},
			"data: {\"type\":\"server.party\",\"protocolVersion\":\"narad/v1\"}\n\n", // a control message of the future
			"data: {\"type\":\"server.heartbeat\",\"protocolVersion\":\"narad/v1\"}\n\n")
		got, err := s.Next()
		if err != nil || got.Record.Type() != narad.TypeServerHeartbeat {
			t.Fatalf("got %v, %v; want the heartbeat", got.Record, err)
		}
	})
}

func TestV6CutJSONFails(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		_, err := openStream(t, h, client.Options{}, "data: {\"type\":\"run.started\",\"eventId\":\"evt-1\"\n\n").Next()
		wantCode(t, err, client.CodeInvalidFrame, client.Retry)
	})
}

func TestV10PublicErrorTellsNoSecret(t *testing.T) {
	hidden := errors.New("lease secret=abc123")
	e := client.Public(fmt.Errorf("reading: %w", hidden))
	if strings.Contains(e.Error(), "abc123") || !e.Redacted {
		t.Errorf("got %q, redacted %v", e, e.Redacted)
	}
	for err := error(e); err != nil; err = errors.Unwrap(err) {
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "abc123") {
			t.Errorf("the chain tells the secret: %#v", err)
		}
	}
	own := &client.Error{Op: "read", Code: client.CodeGap}
	if got := client.Public(fmt.Errorf("outer: %w", own)); got != own {
		t.Errorf("an error of the library came out as %v", got)
	}
	if e := client.Public(fmt.Errorf("secret: %w", context.Canceled)); !errors.Is(e, context.Canceled) {
		t.Errorf("%v lost what it is", e)
	}
	if client.Public(nil) != nil {
		t.Error("no error became one")
	}
}

// K1: one POST, absent fields left out, the answer's status.
func TestK1ResolveInterruptBody(t *testing.T) {
	for id, want := range map[string]string{
		"":    `{"interruptId":"wrev-1","decision":"approve"}`,
		"c-1": `{"interruptId":"wrev-1","decision":"approve","commandId":"c-1"}`,
	} {
		bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
			c := dial(t, h, client.Options{NewID: func() string { return id }})
			answer, err := c.ResolveInterrupt(t.Context(), client.ResolveInterrupt{InterruptID: "wrev-1", Decision: "approve"})
			if err != nil || answer.Status != client.Accepted || answer.RequestID != "wrev-1" || answer.CommandID != id {
				t.Fatalf("answer %+v, %v", answer, err)
			}
			sent := h.Requests("")
			if len(sent) != 1 || sent[0].Method != "POST" || sent[0].Path != "/api/narad/v1/commands/resolve-interrupt" {
				t.Fatalf("requests %+v", sent)
			}
			if sent[0].Body != want {
				t.Errorf("body %s, want %s", sent[0].Body, want)
			}
		})
	}
}
