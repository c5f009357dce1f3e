package field_test

import (
	"net"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// Case 77. However text is cut on its way in, what comes out are whole characters: each
// frame is valid UTF-8, the pieces join to the source, half a character waits for its
// other half and is replaced only at the end, and bytes that are no text stop nothing.
func TestCase77CharactersAreNeverCut(t *testing.T) {
	t.Parallel()
	const text = "e\u0301 日本語 👩‍👩‍👧 ß 🎵"
	b := newBed(t, `
script: 1
defaults: {chunk: 1, pace: 15ms}
steps:
  - think: "`+text+`"
  - say: "`+text+`"
  - parallel:
      - - tool:
              name: bytewise
              run: |
                for b in 360 237 216 265 ' ' 346 227 245; do
                  case $b in ' ') printf ' ';; *) printf "\\$b";; esac
                  sleep 0.15
                done
      - - tool: {name: halves, run: "printf 'a\\360\\237'; sleep 0.4; printf '\\216\\265b\\377\\376c\\360\\237\\216'"}
      - - say: "`+text+`"
  - say: Done.
`)
	b.session("s1")
	run := b.say("s1", "go")
	live := b.stream("s1", "?afterSessionSequence=0", "")
	var seen []narad.Raw
	for ended := false; !ended; {
		f, e := live.fact()
		if !utf8.ValidString(f.raw) {
			t.Errorf("a frame that is no UTF-8: %q", f.raw)
		}
		seen = append(seen, narad.Raw(f.data))
		if ended = terminal(e) && e.Envelope().RunID == run; ended && e.Type() != narad.TypeRunFinished {
			t.Errorf("the run ended as %s", e.Type())
		}
	}
	if got := b.facts("s1"); !equalFacts(got, seen) {
		t.Error("history and the stream have different facts")
	}
	state := reduce(t, seen)
	if got := saidBy(state)[run]; got != text+text+"Done." {
		t.Errorf("said: got %q, want %q", got, text+text+"Done.")
	}
	if got := state.Reasoning(); len(got) != 1 || got[0].Content != text {
		t.Errorf("thought: got %+v, want %q", got, text)
	}
	output := map[string]string{}
	for _, e := range decode(t, seen) {
		switch f := e.(type) {
		case *narad.MessageTextDelta:
			if strings.ContainsRune(f.Delta, utf8.RuneError) {
				t.Errorf("a delta with a replacement: %q", f.Delta)
			}
		case *narad.Custom:
			if o, ok := facts.Read[facts.Output](f, facts.ToolOutput); ok {
				call, _ := state.Tool(o.ToolCallID)
				output[call.ToolName] += o.Text
			}
		}
	}
	if got, want := output["bytewise"], "🎵 日"; got != want {
		t.Errorf("a tool that writes byte by byte: got %q, want %q", got, want)
	}
	// Invalid bytes and the half character at the end become replacements, however many.
	got, found := strings.CutPrefix(output["halves"], "a🎵b\uFFFD")
	middle, end, ended := strings.Cut(strings.TrimLeft(got, "\uFFFD"), "c")
	if !found || !ended || middle != "" || end == "" || strings.Trim(end, "\uFFFD") != "" {
		t.Errorf("a tool that ends inside a character: got %q, want a🎵b, replacements, c, replacements", output["halves"])
	}
}

// Case 81. Who connects where nothing happens knows at once: the status, the kind of answer
// and what was negotiated come before anything else, long before a first heartbeat.
func TestCase81IdleStreamAnswersAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps: [{say: hi}]\n", "MAHATI_STREAMS_HEARTBEAT=10m")
	b.session("idle")
	for range 5 {
		began := time.Now()
		s := b.stream("idle", "?afterSessionSequence=1", "") // fails after 30 s, the first heartbeat comes after ten minutes
		t.Logf("the header came after %s", time.Since(began))
		for name, want := range map[string]string{"Narad-Version": "narad/v1", "Narad-Session-Sequence": "1"} {
			if got := s.header.Get(name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		if !strings.Contains(s.header.Get("Narad-Profiles"), "narad.conversation/v1") {
			t.Errorf("Narad-Profiles: got %q", s.header.Get("Narad-Profiles"))
		}
		s.close()
	}
	s := b.stream("idle", "?afterSessionSequence=1", "")
	b.say("idle", "hello")
	if _, e := s.fact(); e.Envelope().SessionSequence != 2 {
		t.Errorf("the first fact after the header is %d, want 2", e.Envelope().SessionSequence)
	}
}

// Case 82. A long silence is filled: a relay that gives up on quiet connections keeps the
// stream, and what fills it has no id, no sequence and no place in the journal.
func TestCase82SilenceIsFilled(t *testing.T) {
	t.Parallel()
	const script = "script: 1\nsteps: [{tool: {name: quiet, delay: 4s}}]\n"
	const idle = 2 * time.Second
	t.Run("with heartbeats", func(t *testing.T) {
		t.Parallel()
		b := newBed(t, script, "MAHATI_STREAMS_HEARTBEAT=1s")
		b.session("s1")
		s, a := b.openStream("http://"+relay(t, b, idle), "s1", "", "")
		if s == nil {
			t.Fatalf("through the relay: %v", a)
		}
		run := b.say("s1", "go")
		var before int64
		beats := 0
		for {
			f := s.next()
			if s.err != nil {
				t.Fatalf("the relay cut the stream: %v\n%s", s.err, s.lately())
			}
			switch e := f.record.(type) {
			case narad.Authority:
				if before > 0 && e.Envelope().SessionSequence != before+1 {
					t.Errorf("after %d came %d", before, e.Envelope().SessionSequence)
				}
				before = e.Envelope().SessionSequence
				if terminal(e) && e.Envelope().RunID == run {
					if e.Type() != narad.TypeRunFinished || beats < 2 {
						t.Errorf("%s after %d heartbeats, want run.finished after some", e.Type(), beats)
					}
					if got := int64(len(b.facts("s1"))); got != before {
						t.Errorf("the journal has %d facts, the stream had %d", got, before)
					}
					return
				}
			default:
				beats++
				if f.hasID || strings.Contains(f.data, "equence") || strings.Contains(f.data, "eventId") {
					t.Errorf("what fills the silence claims a place: %q", f.raw)
				}
			}
		}
	})
	t.Run("the relay does cut", func(t *testing.T) { // else the case would show nothing
		t.Parallel()
		b := newBed(t, script, "MAHATI_STREAMS_HEARTBEAT=5m")
		b.session("s1")
		s, _ := b.openStream("http://"+relay(t, b, idle), "s1", "", "")
		run := b.say("s1", "go")
		for s.err == nil {
			if e, ok := s.next().record.(narad.Authority); ok && terminal(e) {
				t.Error("a silent stream came through the relay")
				return
			}
		}
		// The run does not care (case 64).
		if e := b.awaitEnd("s1", run); e.Type() != narad.TypeRunFinished {
			t.Errorf("the run ended as %s", e.Type())
		}
	})
}

// relay passes connections on to the host, and cuts one on which the host said nothing for
// so long, as proxies do. It returns its address.
func relay(t *testing.T, b *bed, idle time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	b.must(err)
	done := make(chan struct{})
	t.Cleanup(func() { listener.Close(); <-done })
	go func() {
		defer close(done)
		down, err := listener.Accept() // a test has one stream
		if err != nil {
			return
		}
		defer down.Close()
		up, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
		if err != nil {
			return
		}
		defer up.Close()
		part := make([]byte, 32<<10)
		n, err := down.Read(part)
		if _, failed := up.Write(part[:n]); err != nil || failed != nil { // the request is small
			return
		}
		for err == nil {
			_ = up.SetReadDeadline(time.Now().Add(idle))
			n, err = up.Read(part)
			if _, failed := down.Write(part[:n]); failed != nil {
				return
			}
		}
	}()
	return listener.Addr().String()
}
