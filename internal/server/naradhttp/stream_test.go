package naradhttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/server/naradhttp"
	"github.com/mahati-host/mahati/narad"
)

// Field case 2: what stands on the wire, byte by byte. Facts carry their id and the
// bytes that are stored; a heartbeat carries none, so that it moves nobody's cursor.
func TestFramesByteByByte(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.say("s1", "hi")
		synctest.Wait()
		began := time.Now()
		request := r.request("GET", "/sessions/s1/stream", "")
		response, err := r.http.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		want := ""
		for record, err := range journal.All(t.Context(), r.journal, "s1", 0) {
			if err != nil {
				t.Fatal(err)
			}
			want += "id: " + record.EventID + "\ndata: " + string(record.Bytes) + "\n\n"
		}
		beat := narad.Timestamp(began.Add(15 * time.Second))
		want += `data: {"type":"server.heartbeat","protocolVersion":"narad/v1","serverTime":"` + beat + `"}` + "\n\n"
		got := make([]byte, len(want))
		if _, err := io.ReadFull(response.Body, got); err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
		for name, want := range map[string]string{
			"Content-Type": "text/event-stream", "Cache-Control": "no-store", "Narad-Version": "narad/v1",
			"Narad-Session-Sequence": strconv.FormatUint(r.head("s1"), 10), "Narad-Active-Root": "",
		} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		if got := response.Header.Get("Narad-Profiles"); !strings.Contains(got, "narad.conversation/v1") {
			t.Errorf("Narad-Profiles: got %q", got)
		}
	})
}

// Field case 81: an idle stream begins at once, and tells what is negotiated first.
func TestAnIdleStreamBeginsAtOnce(t *testing.T) {
	bubble(t, rigOptions{agent: waits}, func(t *testing.T, r *rig) {
		r.create("s1")
		run := r.say("s1", "work")
		began := time.Now()
		s := r.open("/sessions/s1/stream?afterSessionSequence="+strconv.FormatUint(r.head("s1"), 10), nil)
		defer s.Close()
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("the header came after %v", took)
		}
		if got := s.header.Get("Narad-Active-Root"); got != run {
			t.Errorf("Narad-Active-Root: got %q, want %q", got, run)
		}
	})
}

// Field case 82: a long silence is filled, and the filling is in no journal.
func TestSilenceIsFilled(t *testing.T) {
	bubble(t, rigOptions{agent: waits, binding: naradhttp.Options{Heartbeat: 5 * time.Second}}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.say("s1", "work")
		before := r.heads()
		s := r.open("/sessions/s1/stream?afterSessionSequence="+strconv.FormatUint(r.head("s1"), 10), nil)
		defer s.Close()
		for range 3 {
			last := time.Now()
			frame, err := s.Next()
			if err != nil {
				t.Fatal(err)
			}
			record, err := narad.Decode(frame.Data)
			beat, ok := record.(*narad.ServerHeartbeat)
			if err != nil || !ok || frame.ID != "" || beat.ServerTime != narad.Timestamp(time.Now()) {
				t.Errorf("got the frame %+v (%v), want a heartbeat without an id", frame, err)
			}
			if silent := time.Since(last); silent > 5*time.Second {
				t.Errorf("silent for %v", silent)
			}
		}
		if r.heads() != before {
			t.Errorf("silence moved the store from %v to %v", before, r.heads())
		}
	})
}

// R3, R27: an event id is believed only if the fact at its place has exactly this id.
func TestWhereAStreamBegins(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.say("s1", "hi")
		synctest.Wait()
		facts := r.facts("s1")
		id := func(sequence int) string { return facts[sequence-1].Envelope().EventID }
		head := len(facts)
		tests := []struct {
			name, query, lastID string
			first               int    // sequence of the first frame; 0: a problem
			code                string // of the problem
		}{
			{"neither", "", "", 1, ""},
			{"the query", "?afterSessionSequence=2", "", 3, ""},
			{"the id", "", id(3), 4, ""},
			{"the id beats the query", "?afterSessionSequence=1", id(3), 4, ""},
			{"the id beats a query above the head", "?afterSessionSequence=99", id(3), 4, ""},
			{"an id of another", "", "3.otherone", 0, "cursor_unknown"},
			{"an id beyond the head", "", strconv.Itoa(head+1) + ".otherone", 0, "cursor_unknown"},
			{"no id at all", "", "nonsense", 0, "cursor_unknown"},
			{"an unknown id and a query", "?afterSessionSequence=2", "3.otherone", 3, ""},
			{"above the head", "?afterSessionSequence=" + strconv.Itoa(head+1), "", 0, "cursor_ahead"},
			{"an unknown id and a query above the head", "?afterSessionSequence=99", "3.otherone", 0, "cursor_ahead"},
		}
		for _, test := range tests {
			setID := func(request *http.Request) {
				if test.lastID != "" {
					request.Header.Set("Last-Event-ID", test.lastID)
				}
			}
			if test.first == 0 {
				request := r.request("GET", "/sessions/s1/stream"+test.query, "")
				setID(request)
				if got := r.send(request); got.status != 409 || got.field("code") != test.code {
					t.Errorf("%s: got %s, want 409 %s", test.name, got, test.code)
				}
				continue
			}
			s := r.open("/sessions/s1/stream"+test.query, setID)
			if s == nil {
				t.Fatalf("%s: no stream", test.name)
			}
			frame, err := s.Next()
			if err != nil || frame.ID != id(test.first) {
				t.Errorf("%s: got %q, %v, want %q", test.name, frame.ID, err, id(test.first))
			}
			s.Close()
		}
	})
}

func TestStreamsOfNothing(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.wantProblem(r.get("/sessions/nothing/stream"), 404, "not_found")
		if got := r.send(r.request("HEAD", "/sessions/s1/stream?afterSessionSequence=1", "")); got.status != 200 || got.header.Get("Narad-Session-Sequence") != "1" {
			t.Errorf("HEAD: got %d %v", got.status, got.header)
		}
		synctest.Wait()
		if got := r.streams.Counters(); got.Opened != 0 {
			t.Errorf("a HEAD opened a stream: %+v", got)
		}
	})
}

// Field case 97: a shutdown waits for no stream, and ends each at a frame boundary. One
// whose reader takes nothing is cut.
func TestDrainEndsStreams(t *testing.T) {
	bubble(t, rigOptions{agent: waits}, func(t *testing.T, r *rig) {
		r.create("s1")
		r.say("s1", "work")
		head := r.head("s1")
		stalled := r.open("/sessions/s1/stream", nil)
		defer stalled.Close()
		var readers sync.WaitGroup
		for range 50 {
			s := r.open("/sessions/s1/stream", nil)
			readers.Go(func() {
				defer s.Close()
				for range head {
					if _, err := s.Next(); err != nil {
						t.Error(err)
					}
				}
				if _, err := s.Next(); !errors.Is(err, io.EOF) {
					t.Errorf("got %v, want an end between frames", err)
				}
			})
		}
		synctest.Wait()
		before, began := r.heads(), time.Now()
		r.close()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the shutdown took %v", took)
		}
		readers.Wait()
		if r.heads() != before {
			t.Errorf("the shutdown moved the store from %v to %v", before, r.heads())
		}
	})
}

// DESIGN §3: a reader that falls ever further behind is ended at a frame boundary; one
// that is as slow but not as far behind is not.
func TestAHopelessReaderIsEnded(t *testing.T) {
	for maxLag, wantEnd := range map[uint64]bool{50: true, 1 << 40: false} {
		t.Run(fmt.Sprint(maxLag), func(t *testing.T) {
			bubble(t, rigOptions{binding: naradhttp.Options{MaxLag: maxLag}}, func(t *testing.T, r *rig) {
				r.create("s1")
				w := r.newWriter("s1", 1000)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); w.writeUntil(ctx, 10, time.Second) }()
				s := r.open("/sessions/s1/stream", nil)
				text, err := readSlowly(s, 2<<10, 5*time.Minute)
				ended := errors.Is(err, io.EOF)
				if ended != wantEnd || !ended && err != nil {
					t.Errorf("got the end %v (%v), want %v", ended, err, wantEnd)
				}
				if ended && !bytes.HasSuffix(text, []byte("}\n\n")) {
					t.Errorf("cut inside a frame: %q", text[max(0, len(text)-100):])
				}
				s.Close()
				cancel()
				<-done
				synctest.Wait()
				if logged := strings.Contains(r.log.String(), `"ended":"behind"`); logged != wantEnd {
					t.Errorf("the log says why the stream ended: %v, want %v", logged, wantEnd)
				}
				if got := r.streams.Counters(); got.Open != 0 || ended && got.Stalled != 0 {
					t.Errorf("streams: got %+v", got)
				}
			})
		})
	}
}

// readSlowly reads so many bytes a second, for at most that long.
func readSlowly(s *stream, rate int, most time.Duration) (text []byte, err error) {
	piece := make([]byte, rate)
	for began := time.Now(); time.Since(began) < most; <-time.After(time.Second) {
		n, err := io.ReadFull(s.Closer.(io.Reader), piece)
		text = append(text, piece[:n]...)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		if err != nil {
			return text, err
		}
	}
	return text, nil
}

// Field case 64: losing the client is no stop, and another client may stop the run.
func TestADropIsNoStop(t *testing.T) {
	working := func(ctx context.Context, h agent.Handle) agent.Ending {
		id, err := h.StartTool(ctx, agent.Tool{AgentID: "a", Name: "shell", Kind: "execute", Args: narad.Raw(`{}`)})
		if err == nil {
			for range 100 {
				select {
				case <-ctx.Done():
					return agent.Ending{Outcome: agent.Cancelled}
				case <-time.After(time.Second):
					_ = h.ToolOutput(ctx, id, "a line\n")
				}
			}
		}
		return agent.Ending{}
	}
	bubble(t, rigOptions{agent: working}, func(t *testing.T, r *rig) {
		r.create("s1")
		run := r.say("s1", "work")
		a := r.open("/sessions/s1/stream", nil)
		if _, err := a.Next(); err != nil {
			t.Fatal(err)
		}
		a.Close()
		r.http.CloseIdleConnections()
		pass(10 * time.Second)
		if n := r.count("s1", narad.TypeRunStopRequested) + r.count("s1", narad.TypeRunCancelled); n != 0 {
			t.Fatalf("the drop caused %d facts", n)
		}
		r.token = r.newToken("second", everything())
		b := r.open("/sessions/s1/stream?afterSessionSequence="+strconv.FormatUint(r.head("s1"), 10), nil)
		defer b.Close()
		if frame, err := b.Next(); err != nil || !bytes.Contains(frame.Data, []byte("a line")) {
			t.Errorf("got %s, %v, want the run to go on", frame.Data, err)
		}
		r.wantWord(r.post("/commands/stop-active-root", `{"sessionId":"s1","rootRunId":"`+run+`"}`), 202, "accepted")
		synctest.Wait()
		if n := r.count("s1", narad.TypeRunCancelled); n != 1 {
			t.Errorf("got %d run.cancelled, want one", n)
		}
	})
}

// A stream of a session that is deleted ends, and says to the log why.
func TestADeletedSessionEndsItsStreams(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		s := r.open("/sessions/s1/stream", nil)
		defer s.Close()
		if _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
		r.want(r.send(r.request("DELETE", "/sessions/s1", "")), 204)
		if frame, err := s.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("got %s, %v, want the end", frame.Data, err)
		}
		synctest.Wait()
		if !strings.Contains(r.log.String(), `"ended":"session_deleted"`) {
			t.Error("the log does not say why the stream ended")
		}
	})
}

// Field case 75: a dropped connection leaves nothing behind, whenever it drops.
func TestDroppedConnectionsLeaveNothing(t *testing.T) {
	bubble(t, rigOptions{}, func(t *testing.T, r *rig) {
		r.create("s1")
		w := r.newWriter("s1", 500)
		for range 5 {
			w.write(1000)
		}
		synctest.Wait()
		r.http.CloseIdleConnections()
		synctest.Wait()
		before := goroutinesOfBubbles()
		paths := []string{
			"/sessions/s1/stream",                            // cut during replay
			"/sessions/s1/stream?afterSessionSequence=5001",  // cut at the end
			"/sessions/s1/stream?afterSessionSequence=90000", // refused
		}
		for i := range 300 {
			request := r.request("GET", paths[i%len(paths)], "")
			ctx, cut := context.WithCancel(t.Context())
			response, err := r.http.Do(request.WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			cut()
			response.Body.Close()
		}
		r.http.CloseIdleConnections()
		synctest.Wait()
		if got := r.streams.Counters(); got.Open != 0 || got.Opened != 200 {
			t.Errorf("streams: got %+v, want 200 opened and none open", got)
		}
		if after := goroutinesOfBubbles(); after > before {
			t.Errorf("got %d goroutines, want the %d from before", after, before)
		}
	})
}

// goroutinesOfBubbles counts without the runtime's own, such as that of finalizers, which come
// and go with its garbage.
func goroutinesOfBubbles() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "synctest bubble")
}

// Field case 89: what is seen can be read at once through another connection, and what
// was not committed is seen by nobody.
func TestWhatIsSeenCanBeRead(t *testing.T) {
	var refuse atomic.Bool
	o := journal.Options{Fault: func(s journal.Stage, g journal.Group) error {
		if s == journal.StageBuilt && g.Facts > 0 && refuse.Swap(false) {
			return journal.ErrRefused
		}
		return nil
	}}
	bubble(t, rigOptions{journal: o}, func(t *testing.T, r *rig) {
		r.create("s1")
		s := r.open("/sessions/s1/stream", nil)
		defer s.Close()
		seen := make(chan int)
		go func() { seen <- r.readBack("s1", s) }()
		synctest.Wait()
		refuse.Store(true)
		r.wantProblem(r.post("/commands/message", `{"sessionId":"s1","content":"lost"}`), 500, "internal")
		pass(5 * time.Second)
		r.say("s1", "kept")
		if n := <-seen; n != len(r.facts("s1")) {
			t.Errorf("saw %d facts, want the %d that there are", n, len(r.facts("s1")))
		}
	})
}

// readBack reads each fact of a stream in history, too, until a run has finished.
func (r *rig) readBack(id string, s *stream) (seen int) {
	for {
		frame, err := s.Next()
		if err != nil {
			r.t.Errorf("after %d facts: %v", seen, err)
			return seen
		}
		got := r.get("/sessions/" + id + "/events?limit=1&afterSessionSequence=" + strconv.Itoa(seen))
		if events, _ := narad.Raw(got.field("events")).Elements(); len(events) != 1 || !bytes.Equal(events[0], frame.Data) {
			r.t.Errorf("seen %s\nread %s", frame.Data, got)
		}
		seen++
		if bytes.Contains(frame.Data, []byte(`"run.finished"`)) {
			return seen
		}
	}
}
