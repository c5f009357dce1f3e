package naryahttp_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/server/naryahttp"
	"github.com/mahati-host/mahati/narya"
)

// create makes a session by the host itself, and says something in it if text is not empty.
func (b *bed) create(id, text string) {
	b.t.Helper()
	b.createIn(id, "default", text)
}

func (b *bed) createIn(id, workspace, text string) {
	b.t.Helper()
	a, err := b.host.Do(b.t.Context(), access.Owner(), host.Request{
		Action: access.CreateSession, Session: id,
		Command: decide.Create{Payload: facts.Created{WorkspaceID: workspace, Cwd: "/", RequiredProfiles: host.RequiredProfiles.IDs()}},
	})
	if err != nil || a.Status != decide.Accepted {
		b.t.Fatalf("create %s: %v, %v", id, a, err)
	}
	if text != "" {
		b.say(id, text)
	}
}

// say sends a message by the host itself.
func (b *bed) say(id, text string) host.Answer {
	b.t.Helper()
	a, err := b.host.Do(b.t.Context(), access.Owner(), host.Request{
		Action: access.SendMessage, Session: id, Command: decide.Message{Content: text},
	})
	if err != nil {
		b.t.Fatalf("say: %v", err)
	}
	return a
}

// TestFirehose: what happens comes as events, in the order of their numbers, and again the
// same behind any of them.
func TestFirehose(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		s := b.stream("", "")
		b.create("one", "hello")
		got := s.now()
		want := []narya.Type{
			narya.TypeSessionCreated, narya.TypeLaneStarted, narya.TypeSessionStatusChanged, narya.TypeTurnStarted, narya.TypeEntryAppended,
			narya.TypeMessageDelta, narya.TypeEntryAppended, narya.TypeMessageEnd, narya.TypeTurnFinished,
			narya.TypeSessionStatusChanged,
		}
		if !slices.Equal(kinds(got), want) {
			t.Fatalf("got  %v\nwant %v", kinds(got), want)
		}
		for i, e := range got {
			if i > 0 && e.ID != got[i-1].ID+1 {
				t.Errorf("%d is followed by %d", got[i-1].ID, e.ID)
			}
			again := b.stream("", narya.FormatID(e.ID))
			rest := again.now()
			if len(rest) != len(got)-i-1 || len(rest) > 0 && rest[0].data != got[i+1].data {
				t.Errorf("behind event %d of %d came %d", i, len(got), len(rest))
			}
			again.close()
		}
	})
}

// publish lets an extension say something, in a session or, where it is "", on the host.
func (b *bed) publish(session, name string) {
	b.t.Helper()
	a, err := b.host.Do(b.t.Context(), access.Owner(), host.Request{
		Action: access.PublishExtension, Session: session, Command: decide.Publish{Extension: "lab/test", Name: name},
	})
	if err != nil || a.Status != decide.Accepted {
		b.t.Fatalf("publish in %q: %v, %v", session, a, err)
	}
}

// newest is the id of the last event.
func (b *bed) newest() int64 { return int64(b.host.Events().Newest) }

// uuidOf is a session on the wire.
func uuidOf(id string) string { return narya.UUID(narya.KindSession, id) }

// TestLastEventID: what a stream begins with, and what is refused before its first byte
// (R39; field cases 1, 14, 17, 19).
func TestLastEventID(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		b.create("one", "hello")
		pass(0)
		first, newest := int64(b.journal.Identity().FirstEvent), b.newest()
		for _, c := range []struct {
			name   string
			header []string
			query  string
			events int64      // that come at once
			code   narya.Code // of a refusal
		}{
			{name: "none begins live"},
			{name: "an empty one counts as none", header: []string{""}},
			{name: "just before the first", header: []string{narya.FormatID(first - 1)}, events: newest - first + 1},
			{name: "in the middle", header: []string{narya.FormatID(newest - 3)}, events: 3},
			{name: "the newest waits", header: []string{narya.FormatID(newest)}},
			{name: "one of another store, long ago, begins live", header: []string{"500"}},
			{name: "a query is no substitute", query: "lastEventId=" + narya.FormatID(first)},
			{name: "one above the newest", header: []string{narya.FormatID(newest + 1)}, code: narya.CodeCursorAhead},
			{name: "far above", header: []string{"9223372036854775807"}, code: narya.CodeCursorAhead},
			{name: "above all numbers", header: []string{"9223372036854775808"}, code: narya.CodeMalformed},
			{name: "zero", header: []string{"0"}, code: narya.CodeMalformed},
			{name: "a sign", header: []string{"+5"}, code: narya.CodeMalformed},
			{name: "a leading zero", header: []string{"05"}, code: narya.CodeMalformed},
			{name: "a fraction", header: []string{"5.0"}, code: narya.CodeMalformed},
			{name: "no number", header: []string{"abc"}, code: narya.CodeMalformed},
			{name: "two", header: []string{"5", "5"}, code: narya.CodeMalformed},
			{name: "a session that is no UUID", query: "sessionId=one", code: narya.CodeMalformed},
			{name: "an empty session", query: "sessionId=", code: narya.CodeMalformed},
			{name: "a flag that is none", query: "hostEvents=yes&sessionId=" + uuidOf("one"), code: narya.CodeMalformed},
		} {
			t.Log(c.name)
			request := b.request("GET", "/v1/events?"+c.query, "")
			request.Header["Last-Event-Id"] = c.header
			if c.code != "" {
				for range 2 { // it is not to be waited away
					b.wantError(b.send(request.Clone(t.Context())), c.code)
				}
				continue
			}
			s := b.open(request)
			if got := s.now(); int64(len(got)) != c.events || c.events > 0 && got[len(got)-1].ID != newest {
				t.Errorf("%s: %d events came, want %d up to %d", c.name, len(got), c.events, newest)
			}
			s.close()
		}
	})
}

// TestQuietStream: the header of a stream comes at once, and comments while nothing happens
// (field cases 81, 82).
func TestQuietStream(t *testing.T) {
	bubble(t, bedOptions{heartbeat: 15 * time.Second}, func(t *testing.T, b *bed) {
		begun := time.Now()
		response, err := b.http.Do(b.request("GET", "/v1/events", ""))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		h := response.Header
		if time.Since(begun) != 0 || response.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("after %v: %d %v", time.Since(begun), response.StatusCode, h)
		}
		for n := 1; n <= 3; n++ {
			comment := make([]byte, 3)
			if _, err := io.ReadFull(response.Body, comment); err != nil || string(comment) != ":\n\n" || time.Since(begun) != time.Duration(n)*15*time.Second {
				t.Fatalf("after %v: %q, %v", time.Since(begun), comment, err)
			}
		}
		head, err := b.http.Do(b.request("HEAD", "/v1/events", ""))
		if err != nil || head.StatusCode != 200 {
			t.Errorf("HEAD: %v, %v", head, err)
		}
	})
}

// TestBlocks: a long past comes in blocks that end like any connection; a client that comes
// back with the last id gets all, once (R40; field case 7).
func TestBlocks(t *testing.T) {
	bubble(t, bedOptions{binding: naryahttp.Options{Block: 7}}, func(t *testing.T, b *bed) {
		begin := b.newest()
		for i := range 6 {
			b.create(fmt.Sprint("s", i), "hello")
		}
		pass(0)
		for _, query := range []string{"", "sessionId=" + uuidOf("s3"), "hostEvents=true&sessionId=" + uuidOf("s4")} {
			var got []event
			last, rounds := begin, 0
			for live := false; !live; rounds++ {
				s := b.stream(query, narya.FormatID(last))
				block := s.now()
				if live = !s.over(); live && rounds == 0 {
					t.Errorf("%s: live after %d events", query, len(got))
				}
				if rounds == 1 && query == "" {
					b.publish("s3", "meanwhile") // while the past is delivered
				}
				if len(block) > 7 || !live && len(block) != 7 {
					t.Errorf("%s: a block of %d", query, len(block))
				}
				got = append(got, block...)
				if len(got) > 0 {
					last = got[len(got)-1].ID
				}
				s.close()
				if rounds > 50 {
					t.Fatalf("%s: no end after %d events", query, len(got))
				}
			}
			b.wantEvents(t, query, begin, got)
			if query == "" && rounds < 8 {
				t.Errorf("%d events came in %d blocks", len(got), rounds)
			}
		}
	})
}

// TestSlowReader: one that takes too little is dropped at a whole frame, and holds up nobody
// (field cases 72, 76).
func TestSlowReader(t *testing.T) {
	bubble(t, bedOptions{binding: naryahttp.Options{MaxLag: 20}}, func(t *testing.T, b *bed) {
		b.create("one", "")
		begin := b.newest()
		slow, err := b.http.Do(b.request("GET", "/v1/events", ""))
		if err != nil {
			t.Fatal(err)
		}
		defer slow.Body.Close()
		quick := b.stream("", "")
		for i := range 100 {
			b.publish("one", fmt.Sprint(i))
			if i%5 == 4 {
				synctest.Wait() // for the quick one to have it
			}
		}
		pass(time.Second)
		b.wantEvents(t, "", begin, quick.now())
		data, err := io.ReadAll(slow.Body) // it takes what was written for it, and finds the end
		if n := strings.Count(string(data), "\n\n"); err != nil || n == 0 || n >= 80 || !strings.HasSuffix(string(data), "}\n\n") {
			t.Errorf("the slow reader got %d frames, %v:\n%.300s", n, err, data)
		}
		pass(0)
		if !strings.Contains(b.log.String(), `"ended":"behind"`) {
			t.Error("the log does not say why the stream ended")
		}
		last := idOfLast(string(data))
		rest := b.stream("", last).now()
		if len(rest) == 0 || narya.FormatID(rest[0].ID-1) != last || rest[len(rest)-1].ID != b.newest() {
			t.Errorf("behind %s came %d events", last, len(rest))
		}
	})
}

// TestDrain: streams end at a whole frame as the host shuts down (field case 97).
func TestDrain(t *testing.T) {
	bubble(t, bedOptions{}, func(t *testing.T, b *bed) {
		b.create("one", "hello")
		s, filtered := b.stream("", narya.FormatID(b.newest()-2)), b.stream("sessionId="+uuidOf("one"), "")
		s.take(2)
		begun := time.Now()
		b.close()
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		s.rest()
		filtered.rest()
	})
}

// TestReaders: who may follow what. What is not reached is told apart from nothing (R39).
func TestReaders(t *testing.T) {
	bubble(t, bedOptions{tcp: true}, func(t *testing.T, b *bed) {
		b.createIn("ours", "here", "")
		b.createIn("theirs", "there", "")
		here := b.as("here", access.Grant{Roles: []access.Role{access.Observe}, Workspaces: []string{"here"}})
		decider := b.as("decider", access.Grant{Roles: []access.Role{access.Decide}, Workspaces: []string{"here"}})
		here.wantError(here.get("/v1/events"), narya.CodeForbidden)
		here.wantError(here.get("/v1/events?hostEvents=true&sessionId="+uuidOf("ours")), narya.CodeForbidden)
		for _, session := range []string{"ours", "theirs", "nobody"} { // who may read none learns of none
			decider.wantError(decider.get("/v1/events?sessionId="+uuidOf(session)), narya.CodeForbidden)
		}
		first := narya.FormatID(int64(b.journal.Identity().FirstEvent) - 1)
		own, other, unknown := here.stream("sessionId="+uuidOf("ours"), first), here.stream("sessionId="+uuidOf("theirs"), first),
			here.stream("sessionId="+uuidOf("nobody"), first)
		b.publish("ours", "x")
		b.publish("theirs", "x")
		b.publish("", "x")
		if n := len(own.now()); n != 3 {
			t.Errorf("%d events of the own session, want 3", n)
		}
		for name, s := range map[string]*reading{"another's": other, "nobody's": unknown} {
			if n := len(s.now()); n != 0 || s.over() {
				t.Errorf("%s: %d events, over: %v", name, n, s.over())
			}
		}
	})
}

// TestAwaitedSession: a stream may be opened before its session begins, and has it from its
// first event; another's session stays unheard.
func TestAwaitedSession(t *testing.T) {
	bubble(t, bedOptions{tcp: true}, func(t *testing.T, b *bed) {
		const id = "0f9c1d52-7c1e-4b0a-9f0e-3a5b7c9d1e2f"
		b.create("other", "hello")
		begin := b.newest()
		here := b.as("here", access.Grant{Roles: []access.Role{access.Observe}, Workspaces: []string{"here"}})
		plain, both, foreign := b.stream("sessionId="+strings.ToUpper(id), ""), b.stream("hostEvents=true&sessionId="+id, ""), here.stream("sessionId="+id, "")
		b.publish("", "before")
		b.create(id, "hello")
		b.publish("", "between")
		b.publish("other", "elsewhere")
		b.publish(id, "after")
		pass(time.Second)
		b.wantEvents(t, "sessionId="+id, begin, plain.now())
		b.wantEvents(t, "hostEvents=true&sessionId="+id, begin, both.now())
		if n := len(foreign.now()); n != 0 {
			t.Errorf("a stranger got %d events", n)
		}
	})
}

// TestRestart: the stream goes on behind any event over the end of a host, with the same
// bytes (R39).
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := begin(t, bedOptions{})
		first := b.newest()
		s := b.stream("", "")
		b.create("one", "hello")
		got := s.now()
		b.close()
		again := begin(t, bedOptions{before: b})
		s = again.stream("", narya.FormatID(got[4].ID))
		again.say("one", "again")
		rest := s.now()
		again.wantEvents(t, "", first, append(got[:5:5], rest...))
		if len(rest) < 12 {
			t.Errorf("only %d events came", len(rest))
		}
	})
}

// TestRetention: what is older than events are kept begins live, and the number from which
// they are kept never falls, whatever the clock says (R40; field case 19).
func TestRetention(t *testing.T) {
	var ahead atomic.Int64 // of the clock
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	synctest.Test(t, func(t *testing.T) {
		b := begin(t, bedOptions{host: host.Options{Retention: 168 * time.Minute, Now: now}})
		oldest := func() (id int64) { unmarshal(t, b.get("/v1/host").field("store", "oldestEventId"), &id); return id }
		first := oldest()
		b.create("one", "hello")
		pass(90 * time.Minute)
		if got := oldest(); got != first {
			t.Errorf("after 90 minutes the oldest is %d, want %d", got, first)
		}
		last := b.newest()
		b.say("one", "again")
		pass(90 * time.Minute)
		kept := oldest()
		if kept != last+1 {
			t.Errorf("after three hours the oldest is %d, want %d", kept, last+1)
		}
		if n := len(b.stream("", narya.FormatID(last-1)).now()); n != 0 {
			t.Errorf("%d events came that are not kept", n)
		}
		if n := len(b.stream("", narya.FormatID(last)).now()); int64(n) != b.newest()-last {
			t.Errorf("%d events came that are kept", n)
		}
		b.publish("one", "x")
		pass(2 * time.Minute)
		ahead.Store(int64(365 * 24 * time.Hour)) // a clock that is wrong for a while
		pass(time.Minute)
		if oldest() > b.newest() {
			t.Error("a wrong clock lets go of everything at once")
		}
		ahead.Store(0)
		pass(time.Hour)
		after := oldest()
		b.close()
		b = begin(t, bedOptions{before: b, host: host.Options{Retention: 1000 * time.Hour, Now: now}})
		if got := oldest(); got < kept || got != after {
			t.Errorf("after a restart the oldest is %d, was %d and %d", got, kept, after)
		}
	})
}
