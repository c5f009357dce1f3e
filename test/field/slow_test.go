package field_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// bulk writes as many facts of 400 kB as its prompt's scenario says.
const bulk = `
script: 1
rules:
  - {contains: bulk, play: bulk}
  - {play: other}
scenarios:
  other: [{say: "You said: {{prompt}}"}]
  bulk:
    - repeat: {times: %d, steps: [{tool: {name: dump, respond_bytes: 400000}}]}
`

// Case 72. Readers that stop reading cost the host a bounded amount: those of a busy
// session are dropped behind a bounded backlog, those of a quiet one get nothing and stay,
// and the host's memory grows by far less than what was not read.
func TestCase72ReaderThatStopsReading(t *testing.T) {
	t.Parallel()
	dumps := sized(60, 500)
	volume := int64(dumps) * 400_000
	b := newBed(t, fmt.Sprintf(bulk, dumps), "MAHATI_STREAMS_WRITE_TIMEOUT=1s", "MAHATI_STREAMS_HEARTBEAT=1s")
	b.session("busy")
	b.session("quiet")
	// What the store needs for such a volume it needs without readers, too. No stream
	// waits for the end: it might itself be slower than the host's patience.
	idle := func() bool {
		s, err := b.client().Session(b.context(), "busy")
		return err == nil && s.ActiveRootRunID == ""
	}
	b.say("busy", "bulk")
	b.eventually("the first run ends", idle)
	before := b.resident()

	var stalled, quiet []*net.TCPConn
	for range 5 {
		stalled = append(stalled, b.send(http.MethodGet, "/sessions/busy/stream?afterSessionSequence=0", ""))
		quiet = append(quiet, b.send(http.MethodGet, "/sessions/quiet/stream", ""))
	}
	b.say("busy", "bulk")
	peak := before
	b.eventually("the run ends", func() bool {
		peak = max(peak, b.resident())
		return idle()
	})
	b.eventually("the readers are dropped", func() bool { // a second after the host could give them nothing more
		return strings.Contains(b.metrics(), fmt.Sprintf("mahati_streams_stalled_total %d", len(stalled)))
	})
	for i, conn := range stalled {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		n, err := io.Copy(io.Discard, conn)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("reader %d: %d bytes, and the host did not drop it", i, n)
		}
		if n >= volume {
			t.Errorf("reader %d was given %d bytes, the whole backlog", i, n)
		}
		conn.Close()
	}
	if grown := peak - before; grown > 2*volume {
		t.Errorf("the host grew by %d MB while 5 readers left %d MB unread each", grown>>20, volume>>20)
	} else {
		t.Logf("the host grew by %d MB while 5 readers left %d MB unread each", grown>>20, volume>>20)
	}

	b.awaitEnd("quiet", b.say("quiet", "hello"))
	for i, conn := range quiet {
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		var got bytes.Buffer
		part := make([]byte, 4<<10)
		for !strings.Contains(got.String(), "run.finished") {
			n, err := conn.Read(part)
			got.Write(part[:n])
			if err != nil {
				t.Errorf("reader %d of the quiet session was not kept: %v\n%s", i, err, got.String())
				break
			}
		}
		if strings.Contains(got.String(), `"dump"`) {
			t.Errorf("reader %d of the quiet session got facts of the busy one", i)
		}
		conn.Close()
	}
}

// Case 75. Connections that are cut at any moment leave nothing behind: no place among the
// streams, no descriptor, no goroutine, no memory.
func TestCase75CutConnectionsLeaveNothing(t *testing.T) {
	t.Parallel()
	const places = 8
	setting := fmt.Sprint("MAHATI_STREAMS_MAX=", places)
	script := fmt.Sprintf(bulk, 20)
	b, untouched := newBed(t, script, setting), newBed(t, script)
	for _, each := range []*bed{b, untouched} {
		each.session("done")
		each.awaitEnd("done", each.say("done", "bulk"))
		each.session("idle")
	}
	descriptors, memory := b.descriptors(), b.resident()
	moments := []struct {
		method, path, body string
		read               int // before it is cut
	}{
		{"GET", "/sessions/done/stream", "", 100_000},                             // in the middle of replay
		{"GET", "/sessions/done/stream", "", 1},                                   // at its first byte
		{"GET", "/sessions/done/stream?afterSessionSequence=999999", "", 1},       // 409
		{"GET", "/sessions/idle/stream?afterSessionSequence=1", "", 1},            // while it waits
		{"GET", "/sessions/idle/stream", "", 0},                                   // before the first byte
		{"GET", "/sessions/nothing/stream", "", 1},                                // 404
		{"GET", "/sessions/done/events", "", 50_000},                              // in the middle of a page
		{"POST", "/commands/message", strings.Repeat(" ", 1_000), 0},              // a command that is none
		{"POST", "/sessions/idle/archive", "half a body, and then nothing...", 0}, // see below
	}
	var next sync.Mutex
	cuts := sized(500, 5_000)
	var workers sync.WaitGroup
	for range 6 {
		workers.Go(func() {
			for {
				next.Lock()
				n := cuts
				cuts--
				next.Unlock()
				if n <= 0 {
					return
				}
				m := moments[n%len(moments)]
				conn := b.dial()
				request := b.request(m.method, m.path, m.body)
				if m.path == "/sessions/idle/archive" {
					request = request[:len(request)-10] // cut inside the request
				}
				_, _ = conn.Write([]byte(request))
				if m.read > 0 {
					_ = conn.SetReadDeadline(time.Now().Add(patience))
					_, _ = io.CopyN(io.Discard, conn, int64(m.read))
				}
				reset(conn)
			}
		})
	}
	workers.Wait()
	if t.Failed() {
		return
	}
	b.eventually("the descriptors of before", func() bool { return b.descriptors() <= descriptors })
	if grown := b.resident() - memory; grown > 128<<20 {
		t.Errorf("the host grew by %d MB", grown>>20)
	}
	var open []*stream
	for range places { // had one been kept, there would be no place for all of these
		open = append(open, b.stream("done", "?afterSessionSequence=1", ""))
	}
	for _, s := range open {
		s.fact()
		s.close()
	}
	b.eventually("no stream is open", func() bool { return b.descriptors() <= descriptors })

	want, got := untouched.goroutines(), b.goroutines()
	for function, n := range got {
		if n > want[function] {
			t.Errorf("%d goroutines that %s started, want the %d of a host that nobody cut", n, function, want[function])
		}
	}
}

// Case 76. However much an agent or a tool says at once, nobody's stream is cut by it: what
// is too large for a fact is an artifact, told by its size and beginning (R7, R43), what is not stays
// whole, each fact is one valid frame, and what a client may not say is refused at once.
func TestCase76HugeResults(t *testing.T) {
	t.Parallel()
	const huge = 15_000_000
	b := newACPBed(t)
	b.write(b.script, fmt.Sprintf(`
script: 1
rules:
  - {contains: huge, play: huge}
  - {play: other}
scenarios:
  other: [{say: "You said: {{prompt}}"}]
  huge:
    - tool: {name: whole, respond_bytes: 400000}
    - tool: {name: text, output: {bytes: %d}, respond_bytes: %d}
    - tool: {name: image, run: "head -c 3000000 /dev/zero | base64"}
    - say: {bytes: 3000000, chunk: 65536}
    - think: {bytes: 3000000, chunk: 65536}
    - say: Done.
`, huge, huge))
	b.stop()
	b.start()
	b.session("s1")
	b.acpSession("image")
	b.session("other")
	own, foreign, picture := b.stream("s1", "", ""), b.stream("other", "", ""), b.stream("image", "", "")

	// readOn takes frames until the run ends, each of which must be sound and of a bounded
	// size; that it is a strict record the stream itself demands.
	readOn := func(s *stream, run string) (seen []narad.Raw) {
		for {
			f, e := s.fact()
			if len(f.raw) > narad.MaxFrameBytes || len(f.data) > narad.MaxEventBytes {
				t.Errorf("a frame of %d bytes with a fact of %d", len(f.raw), len(f.data))
			}
			s.raw.Reset()
			seen = append(seen, narad.Raw(f.data))
			if e.Envelope().RunID == run && terminal(e) {
				if e.Type() != narad.TypeRunFinished {
					t.Errorf("run %s ended as %s", run, e.Type())
				}
				return seen
			}
		}
	}
	run := b.say("s1", "huge")
	seen := readOn(own, run)
	imageRun := b.say("image", "image")
	images := readOn(picture, imageRun)
	readOn(foreign, b.say("other", "hello")) // the stream of another session lives
	if history := b.facts("s1"); !equalFacts(history[len(history)-len(seen):], seen) {
		t.Error("history and the stream have different facts")
	}

	state := b.state("s1")
	output, markers := map[string]int{}, map[string]int{}
	for _, e := range decode(t, b.facts("s1")) {
		if o, ok := facts.Read[facts.Output](e, facts.ToolOutput); ok {
			call, _ := state.Tool(o.ToolCallID)
			output[call.ToolName] += len(o.Text)
			if o.Truncated {
				markers[call.ToolName]++
			}
		}
	}
	for _, call := range state.Snapshot().Tools {
		text, whole := call.Response.IsString()
		switch call.ToolName {
		case "whole":
			if !whole || len(text) != 400_000 {
				t.Errorf("a response of 400,000 bytes: got %.100s", call.Response)
			}
		case "text":
			id, _ := call.Response.Field("artifactId").IsString()
			preview, _ := call.Response.Field("preview").IsString()
			whole := b.get("/sessions/s1/artifacts/" + id)
			if len(whole.body) != 15_000_000 || preview == "" || !strings.HasPrefix(string(whole.body), preview) {
				t.Errorf("a response of 15 MB: got %.200s, and an artifact of %d bytes", call.Response, len(whole.body))
			}
			fallthrough
		case "image":
			if output[call.ToolName] != 1<<20 || markers[call.ToolName] != 1 {
				t.Errorf("output of %s: got %d bytes and %d markers, want 1 MiB and one", call.ToolName, output[call.ToolName], markers[call.ToolName])
			}
		}
	}
	if said := saidBy(state)[run]; len(said) != 3_000_000+len("Done.") {
		t.Errorf("the agent said %d bytes, want all 3 MB", len(said))
	}

	// A base64 image of 20 MB is told by what it is and how much, never by its bytes.
	mentioned := 0
	for _, raw := range images {
		if len(raw) > 10_000 {
			t.Errorf("a fact of %d bytes about the image", len(raw))
		}
		if bytes.Contains(raw, []byte("image/png")) && !bytes.Contains(raw, []byte(`"type":"artifact.`)) {
			mentioned++
		}
		if kind, _ := raw.Field("type").IsString(); kind == "artifact.ready" {
			id, _ := raw.Field("artifactId").IsString()
			if got := b.get("/sessions/image/artifacts/" + id); string(raw.Field("bytes")) != strconv.Itoa(len(got.body)) {
				t.Errorf("%.300s: got %d bytes", raw, len(got.body))
			}
		}
	}
	if mentioned != 2 {
		t.Errorf("%d facts tell of the images, want the call's and the message's", mentioned)
	}

	before := b.head("s1")
	for size, want := range map[int]int{300 << 10: http.StatusBadRequest, 1<<20 + 1<<10: http.StatusRequestEntityTooLarge} {
		if a := b.post("/commands/message", object{"sessionId": "s1", "content": strings.Repeat("x", size)}); a.status != want {
			t.Errorf("a message of %d bytes: got %d %.200s, want %d", size, a.status, a.body, want)
		}
	}
	if a := b.get("/sessions/s1/messages"); a.status != http.StatusRequestEntityTooLarge || a.field("code") != "snapshot_too_large" {
		t.Errorf("the transcript as one record: got %d %.200s, want 413", a.status, a.body)
	}
	if after := b.head("s1"); after != before {
		t.Errorf("refusals moved the session from %d to %d", before, after)
	}
}
