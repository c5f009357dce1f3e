package field_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/session"
)

// Case 2. Owed: the frame of each fact carries the fact's id, so a client that saw it can
// come back from there, and so does that of each watch event; hydrate records and
// heartbeats carry no id, so they never move a browser's position.
func TestCase2EveryFrameCarriesItsID(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
steps:
  - think: {text: "Let me see.", chunk: 4, pace: 20ms}
  - say: {text: "some words, one by one", chunk: 5, pace: 150ms}
  - plan: [{text: Look, status: active}, Mend]
  - tool: {name: slow, output: {text: "a b c d", chunk: 2, pace: 150ms}, delay: 2500ms}
  - ask: {title: "Go on?"}
  - say: done
`, "MAHATI_STREAMS_HEARTBEAT=1s")
	b.session("s1")
	s := b.stream("s1", "?afterSessionSequence=0&hydrate=messages,graph&watch=1", "")
	run, end := b.say("s1", "go"), int64(math.MaxInt64)
	late := time.AfterFunc(patience, s.close)
	defer late.Stop()

	var frames []frame
	heartbeats, hydrates := 0, 0
	for told := int64(0); told < end; {
		f := s.next()
		if s.err != nil {
			b.fatalf("the stream ended: %v", s.err)
		}
		frames = append(frames, f)
		switch record := f.record.(type) {
		case narad.Authority:
			if !f.hasID || f.id != record.Envelope().EventID {
				t.Errorf("a fact whose frame has the wrong id: got %q, want %q", f.raw, record.Envelope().EventID)
			}
		case *narad.ServerHeartbeat:
			heartbeats++
			if f.hasID {
				t.Errorf("a heartbeat with an id: %q", f.raw)
			}
		case *narad.Revision:
			if record.Kind == narad.TypeSessionRevision {
				told = record.Revision
			}
			if !f.hasID || f.id != record.EventID {
				t.Errorf("a watch event whose frame has the wrong id: got %q, want %q", f.raw, record.EventID)
			}
		case *narad.MessagesSnapshot, *narad.GraphSnapshot, *narad.GraphDelta:
			hydrates++
			if f.hasID {
				t.Errorf("a hydrate record with an id: %q", f.raw)
			}
		default:
			t.Errorf("a frame that was not asked for: %q", f.raw)
		}
		if asked, ok := f.record.(*narad.InterruptRequested); ok {
			if a := b.resolve(asked.InterruptID, "approve", ""); a.status != http.StatusAccepted {
				t.Fatalf("resolve: got %v, want 202", a)
			}
		}
		if fact, ok := f.record.(narad.Authority); ok && terminal(fact) && fact.Envelope().RunID == run {
			end = fact.Envelope().SessionSequence // what covers it ends what it brings
		}
	}
	if hydrates < 5 {
		t.Errorf("got %d hydrate records, want the transcript and a graph of several changes", hydrates)
	}
	if heartbeats < 2 {
		t.Errorf("got %d heartbeats during 2.5 s of silence, want at least 2", heartbeats)
	}
	wantPositions(t, s.raw.Bytes(), frames)

	// From each id a client comes back to exactly what followed it.
	facts := b.facts("s1")
	for i, event := range decode(t, facts) {
		after := b.stream("s1", "", event.Envelope().EventID)
		if i+1 < len(facts) {
			wantFacts(t, fmt.Sprintf("after the id of fact %d", i+1), after.factsTo(int64(len(facts))), facts[i+1:])
		}
		after.close()
	}
}

// wantPositions compares with what another parser makes of the same bytes: at each frame,
// the position that a browser would come back with is the id of the last fact.
func wantPositions(t *testing.T, raw []byte, frames []frame) {
	t.Helper()
	last, i := "", 0
	for event, err := range sse.Read(bytes.NewReader(raw), &sse.ReadConfig{MaxEventSize: 1 << 20}) {
		if err != nil {
			t.Fatalf("another parser, at frame %d: %v", i+1, err)
		}
		if i == len(frames) {
			t.Fatalf("another parser sees more frames than %d", len(frames))
		}
		if frames[i].hasID {
			last = frames[i].id
		}
		if event.LastEventID != last || event.Data != frames[i].data || event.Type != "" {
			t.Errorf("frame %d: another parser got %+v, want the position %q and the data of %q", i+1, event, last, frames[i].raw)
		}
		i++
	}
	if i != len(frames) {
		t.Errorf("another parser sees %d frames, want %d", i, len(frames))
	}
}

// Case 3. Owed: a run that nobody watches is recorded like one that somebody does, to its
// end; who comes later gets all of it.
func TestCase3NobodyIsAttached(t *testing.T) {
	t.Parallel()
	b := newBed(t, `
script: 1
steps:
  - delay: 300ms
  - think: First.
  - say: {text: "The text of the run.", chunk: 5, pace: 30ms}
  - tool: {name: t1, output: out, respond: {n: 1.10}}
  - agent: {name: writer, tool: task, steps: [{say: "From below."}]}
  - say: {text: "The end.", chunk: 3}
`)
	for _, id := range []string{"watched", "left", "alone"} {
		b.session(id)
	}
	watcher := b.stream("watched", "?afterSessionSequence=0", "")
	p := newProxy(b)
	leaver, a := b.openStream(p.url, "left", "?afterSessionSequence=0", "")
	if leaver == nil {
		t.Fatalf("stream: got %v", a)
	}
	leaver.fact() // the session's own first fact
	runs := map[string]string{"watched": b.say("watched", "go"), "left": b.say("left", "go"), "alone": b.say("alone", "go")}
	p.cut() // before the agent has said anything

	// Whoever looks at a summary is attached to nothing.
	deadline := time.Now().Add(patience)
	for _, id := range []string{"left", "alone", "watched"} {
		for b.get("/sessions/"+id).field("state") != "idle" {
			if time.Now().After(deadline) {
				b.fatalf("session %s does not end: %v", id, b.get("/sessions/"+id))
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	want := outline(t, b.facts("watched"))
	wantFacts(t, "what the watcher saw", watcher.factsTo(b.head("watched")), b.facts("watched"))
	for round := range 2 {
		for _, id := range []string{"left", "alone"} {
			facts := b.facts(id)
			if got := outline(t, facts); got != want {
				t.Errorf("%s, nobody attached: got\n%s\nwant what was recorded for a watcher\n%s", id, got, want)
			}
			if end := decode(t, facts)[len(facts)-1]; end.Type() != narad.TypeRunFinished || end.Envelope().RunID != runs[id] {
				t.Errorf("%s: the last fact is %s of %s, want run.finished of %s", id, end.Type(), end.Envelope().RunID, runs[id])
			}
			wantFacts(t, id+" on a stream", b.stream(id, "?afterSessionSequence=0", "").factsTo(b.head(id)), facts)
		}
		if round == 0 {
			b.restart()
		}
	}
}

// outline tells what a session's facts say, without ids and times and without the way its
// text was cut. It demands that the facts are a sound session.
func outline(t *testing.T, facts []narad.Raw) string {
	t.Helper()
	state := reduce(t, facts)
	var lines []string
	for _, event := range decode(t, facts) {
		kind := string(event.Type())
		switch e := event.(type) {
		case *narad.MessageTextDelta, *narad.ReasoningDelta:
			if lines[len(lines)-1] == kind {
				continue
			}
		case *narad.ToolCallFinished:
			kind += fmt.Sprintf(" %s %s", e.Outcome, e.Response)
		case *narad.ToolCallStarted:
			kind += " " + e.ToolName
		case *narad.Custom:
			kind += " " + e.Name
		}
		lines = append(lines, kind)
	}
	for _, m := range state.Messages() {
		lines = append(lines, fmt.Sprintf("%s: %q complete %v", m.Role, m.Content, !m.Streaming))
	}
	for _, r := range state.Reasoning() {
		lines = append(lines, fmt.Sprintf("thought: %q complete %v", r.Content, r.Completed))
	}
	return strings.Join(lines, "\n")
}

// Case 4. Owed: what a client sees a second time is the same facts under the same ids and
// sequences, and no message begins anew, so that its text stands there exactly once.
func TestCase4ResumeDoublesNothing(t *testing.T) {
	t.Parallel()
	const text = "one two three four five " // 5 deltas
	b := newBed(t, `
script: 1
steps:
  - say: {text: "`+text+`", chunk: 5, pace: 250ms}
`)
	b.session("s1")
	p := newProxy(b)
	first, a := b.openStream(p.url, "s1", "?afterSessionSequence=0", "")
	if first == nil {
		t.Fatalf("stream: got %v", a)
	}
	followed := make(chan []session.Message, 1)
	go func() { followed <- followThrough(b, p.url, "s1") }()
	run := b.say("s1", "go")

	var seen []narad.Raw
	for deltas := 0; deltas < 3; {
		f, event := first.fact()
		seen = append(seen, narad.Raw(f.data))
		if _, ok := event.(*narad.MessageTextDelta); ok {
			deltas++
		}
	}
	if p.cut() == 0 {
		t.Fatal("nothing was cut")
	}
	if f := first.next(); first.err == nil || first.err == io.EOF {
		t.Fatalf("after the cut: got %q, %v, want a reset", f.raw, first.err)
	}
	// The client has noted everything but the last fact it saw.
	behind := decode(t, seen)[len(seen)-2].Envelope()
	overlap := narad.Raw(nil)
	for _, from := range []struct{ query, id string }{
		{fmt.Sprintf("?afterSessionSequence=%d", behind.SessionSequence), ""},
		{"", behind.EventID},
	} {
		again := b.stream("s1", from.query, from.id)
		rest := again.factsTo(b.awaitEnd("s1", run).Envelope().SessionSequence)
		again.close()
		if overlap = rest[0]; !bytes.Equal(overlap, seen[len(seen)-1]) {
			t.Errorf("after %+v: the overlap is\n%s\nwant\n%s", from, overlap, seen[len(seen)-1])
		}
		state := session.New(session.Options{Remember: session.RememberAll})
		for i, raw := range append(slices.Clone(seen), rest...) {
			want := session.Applied
			if i == len(seen) {
				want = session.Duplicate
			}
			if got := state.ApplyJSON(raw, false); got.Kind != want {
				t.Errorf("after %+v, fact %d: got %+v, want %s\n%s", from, i, got, want, raw)
			}
		}
		wantOnce(t, state.Messages(), text)
	}
	events := decode(t, b.facts("s1"))
	if n := len(only[*narad.MessageTextStarted](events)); n != 1 {
		t.Errorf("%d messages were started, want 1", n)
	}
	if n := len(only[*narad.MessageTextDelta](events)); n < 4 {
		t.Errorf("the text came in %d deltas: the cut was not inside it", n)
	}
	wantOnce(t, b.state("s1").Messages(), text)
	wantOnce(t, <-followed, text) // the client that follows by itself
}

// followThrough follows a session over whatever happens, and returns the transcript at the
// end of its run.
func followThrough(b *bed, url, sessionID string) []session.Message {
	c, err := client.New(url, client.Options{Token: client.Token(b.token), Backoff: func(int) time.Duration { return 10 * time.Millisecond }})
	if err != nil {
		b.t.Error(err)
		return nil
	}
	defer c.Close()
	f := c.Follow(sessionID, client.FollowOptions{})
	for u, err := range f.Updates(b.context()) {
		if err != nil {
			b.t.Errorf("follow %s: %v", sessionID, err)
			return nil
		}
		if event, ok := u.Record.(narad.Authority); ok && terminal(event) {
			break
		}
	}
	return f.Messages()
}

func wantOnce(t *testing.T, messages []session.Message, text string) {
	t.Helper()
	if len(messages) != 2 || messages[1].Content != text || messages[1].Streaming {
		t.Errorf("got %+v, want the prompt and, once and complete, %q", messages, text)
	}
}

// Case 10. Owed: who comes to a run that has ended gets its end if that lies ahead, and
// else learns at once that nothing runs and where the session stands; nobody waits for
// what will not come. A restart changes none of it.
func TestCase10ARunThatHasEnded(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps: [{say: Hello.}, {tool: {name: t1}}, {say: Bye.}]\n")
	b.session("s1")
	end := b.awaitEnd("s1", b.say("s1", "go")).Envelope()
	b.restart()

	head := b.head("s1")
	if head != end.SessionSequence {
		t.Errorf("after the restart the head is %d, want that of the terminal, %d", head, end.SessionSequence)
	}
	before := b.stream("s1", fmt.Sprintf("?afterSessionSequence=%d", head-2), "")
	if got := before.factsTo(head); len(got) != 2 || narad.Raw(got[1]).Field("eventId").String() != `"`+end.EventID+`"` {
		t.Errorf("from before the terminal: got\n%s\nwant the terminal %s last", got, end.EventID)
	}
	wantAtTheEnd(t, b, head, fmt.Sprintf("?afterSessionSequence=%d", head), "")
	wantAtTheEnd(t, b, head, "", end.EventID)

	attached, err := b.client().Attach(b.context(), "s1", client.AttachQuery{})
	if err != nil || attached.Boundary != head || attached.Capabilities.CurrentSessionSequence != head || attached.Capabilities.ActiveRootRunID != "" {
		t.Errorf("attach: got %+v, %v; want head %d and no active run", attached, err, head)
	}
	page := b.get(fmt.Sprintf("/sessions/s1/events?afterSessionSequence=%d", head))
	if page.status != http.StatusOK || page.field("events") != "[]" || page.field("nextSessionSequence") != "null" {
		t.Errorf("history from the terminal: got %v, want an empty last page", page)
	}
	beyond := b.get(fmt.Sprintf("/sessions/s1/events?afterSessionSequence=%d", head+1))
	if beyond.status != http.StatusConflict || beyond.field("code") != "cursor_ahead" {
		t.Errorf("history from beyond the head: got %v, want 409 cursor_ahead", beyond)
	}
}

// wantAtTheEnd opens a stream at the end of a session: its header alone must say so.
func wantAtTheEnd(t *testing.T, b *bed, head int64, query, id string) {
	t.Helper()
	s := b.stream("s1", query, id)
	defer s.close()
	if got, active := s.header.Get("Narad-Session-Sequence"), s.header.Values("Narad-Active-Root"); got != fmt.Sprint(head) || len(active) != 0 {
		t.Errorf("stream %s %s: the header says head %q and active %q, want %d and nothing", query, id, got, active, head)
	}
}
