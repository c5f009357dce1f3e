package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/server"
)

const beat = ": beat\n\n"

// follow is a binding in small: it opens a stream and writes what comes.
type follow struct {
	frames chan string         // written as they come
	ended  chan error          // why each stream ended
	hold   func(*http.Request) // called before the stream is opened, if set
}

func newFollow() *follow {
	return &follow{frames: make(chan string, 64), ended: make(chan error, 1024)}
}

func (f *follow) build(r *rig) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Narad-Version", "narad/v1")
		if f.hold != nil {
			f.hold(request)
		}
		stream, err := r.streams.Open(w, request)
		if err != nil {
			server.WriteProblem(w, request, err)
			return
		}
		f.ended <- f.run(stream)
	})
}

func (f *follow) run(stream *server.Stream) error {
	wake := make(chan struct{}, 1)
	pending := make(chan string, 64)
	go func() { // the feed
		for {
			select {
			case frame := <-f.frames:
				pending <- frame
				wake <- struct{}{}
			case <-stream.Context().Done():
				return
			}
		}
	}()
	for {
		beating, err := stream.Wait(wake)
		if err != nil {
			return err
		}
		next := beat
		if !beating {
			next = <-pending
		}
		if err := stream.Write([]byte(next)); err != nil {
			return err
		}
	}
}

// open connects a reader that has got the header, and nothing else yet.
func (r *rig) open() *http.Response {
	r.t.Helper()
	response, err := r.client.Do(r.request("GET", "/stream", "", nil))
	if err != nil {
		r.t.Fatal(err)
	}
	if response.StatusCode != 200 {
		r.t.Fatalf("status %d", response.StatusCode)
	}
	return response
}

// block reads one frame or comment with its blank line.
func block(t *testing.T, reader *bufio.Reader) string {
	t.Helper()
	var out strings.Builder
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q%q: %v", out.String(), line, err)
		}
		out.WriteString(line)
		if line == "\n" {
			return out.String()
		}
	}
}

// Field case 81.
func TestStreamHeaderComesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, rigOptions{}, newFollow().build)
		begun := time.Now()
		response := r.open()
		defer response.Body.Close()
		if took := time.Since(begun); took != 0 {
			t.Errorf("the header took %v", took)
		}
		for name, want := range map[string]string{
			"Content-Type": "text/event-stream", "Cache-Control": "no-store", "Narad-Version": "narad/v1", "X-Accel-Buffering": "no",
			"Heartbeat-Interval-Ms": "15000",
		} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	})
}

// Field case 82.
func TestHeartbeatFillsSilenceAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollow()
		r := start(t, rigOptions{streams: server.StreamOptions{Heartbeat: 15 * time.Second}}, f.build)
		begun := time.Now()
		response := r.open()
		defer response.Body.Close()
		reader := bufio.NewReader(response.Body)
		next := func(want string, at time.Duration) {
			t.Helper()
			got := block(t, reader)
			if got != want || time.Since(begun) != at {
				t.Errorf("%q after %v; want %q after %v", got, time.Since(begun), want, at)
			}
		}
		next(beat, 15*time.Second)
		next(beat, 30*time.Second)

		time.AfterFunc(10*time.Second, func() { f.frames <- "data: 1\n\n" })
		time.AfterFunc(24*time.Second, func() { f.frames <- "data: 2\n\n" })
		next("data: 1\n\n", 40*time.Second)
		next("data: 2\n\n", 54*time.Second)
		next(beat, 69*time.Second)
		next(beat, 84*time.Second)
	})
}

func TestReaderThatTakesNothingIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollow()
		r := start(t, rigOptions{edge: server.Options{WriteTimeout: 30 * time.Second}}, f.build)
		begun := time.Now()
		response := r.open() // and never reads
		defer response.Body.Close()
		err := <-f.ended
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("the stream ended with %v", err)
		}
		// It fell silent for 15 s, then its heartbeat was not taken for 30 s.
		if took := time.Since(begun); took != 45*time.Second {
			t.Errorf("ended after %v", took)
		}
		synctest.Wait()
		if got := r.streams.Counters(); got.Open != 0 || got.Stalled != 1 {
			t.Errorf("counters %+v", got)
		}
	})
}

// A reader slower than the write timeout as a whole, which never stops.
func TestSlowReaderGetsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollow()
		r := start(t, rigOptions{edge: server.Options{WriteTimeout: 30 * time.Second}}, f.build)
		begun := time.Now()
		response := r.open()
		defer response.Body.Close()
		want := "data: " + strings.Repeat("x", 1<<20) + "\n\n"
		f.frames <- want
		var got strings.Builder
		for got.Len() < len(want) {
			<-time.After(20 * time.Second) // of the bubble
			if _, err := io.CopyN(&got, response.Body, int64(min(40<<10, len(want)-got.Len()))); err != nil {
				t.Fatalf("after %v and %d bytes: %v", time.Since(begun), got.Len(), err)
			}
		}
		if got.String() != want {
			t.Error("other bytes came than were sent")
		}
	})
}

func TestPageIsHeldToProgressToo(t *testing.T) {
	const size = int64(1 << 20)
	page := func(*rig) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, size))
		})
	}
	for _, tt := range []struct {
		name  string
		pause time.Duration
		want  bool
	}{{"slow", 20 * time.Second, true}, {"stopped", 40 * time.Second, false}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, rigOptions{edge: server.Options{WriteTimeout: 30 * time.Second}}, page)
				response, err := r.client.Do(r.request("GET", "/", "", nil))
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				var got int64
				for got < size && err == nil {
					<-time.After(tt.pause) // of the bubble
					var n int64
					n, err = io.CopyN(io.Discard, response.Body, min(40<<10, size-got))
					got += n
				}
				if (err == nil) != tt.want {
					t.Errorf("%d bytes came, %v", got, err)
				}
			})
		})
	}
}

func TestStreamsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, rigOptions{streams: server.StreamOptions{Max: 5, MaxPerPrincipal: 3}}, newFollow().build)
		_, other, err := r.tokens.Create(access.TokenRequest{Name: "other", Grant: access.Grant{Roles: []access.Role{access.Observe}}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		asOther := header("Authorization", "Bearer "+other.Reveal())
		open := func(edit func(*http.Request)) *http.Response {
			response, err := r.client.Do(r.request("GET", "/stream", "", edit))
			if err != nil {
				t.Fatal(err)
			}
			return response
		}
		var mine []*http.Response
		for range 3 {
			mine = append(mine, open(nil))
		}
		refused := r.get("/stream")
		r.wantProblem(refused, 429, "too_many_streams")
		if refused.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		for range 2 {
			defer open(asOther).Body.Close()
		}
		r.wantProblem(r.do(r.request("GET", "/stream", "", asOther)), 503, "too_many_streams")

		mine[0].Body.Close()
		synctest.Wait()
		again := open(nil)
		if again.StatusCode != 200 {
			t.Errorf("after one was closed: status %d", again.StatusCode)
		}
		want := server.StreamCounters{Open: 5, Opened: 6, Refused: 2}
		if got := r.streams.Counters(); got != want {
			t.Errorf("counters %+v, want %+v", got, want)
		}
		for _, response := range append(mine[1:], again) {
			response.Body.Close()
		}
	})
}

// Field case 75: connections that are cut at any moment leave nothing behind.
// A goroutine that stayed would fail the bubble.
func TestCutConnectionsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollow()
		var held atomic.Int32
		gate := make(chan struct{})
		f.hold = func(*http.Request) {
			if held.Add(1)%2 == 0 {
				<-gate // these are cut before the first byte
			}
		}
		r := start(t, rigOptions{}, f.build)
		var conns []net.Conn
		for i := range 400 {
			conn, err := r.listener.Dial(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
			fmt.Fprintf(conn, "GET /stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", r.token)
			if i%4 == 1 {
				conn.Close()
			}
		}
		synctest.Wait()
		for _, conn := range conns {
			conn.Close()
		}
		close(gate)
		synctest.Wait()
		if got := r.streams.Counters(); got.Open != 0 {
			t.Errorf("%d streams are open", got.Open)
		}
	})
}

func TestStreamEndsWithItsToken(t *testing.T) {
	for name, traffic := range map[string]time.Duration{"idle": time.Hour, "busy": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFollow()
				r := start(t, rigOptions{streams: server.StreamOptions{Heartbeat: 15 * time.Second}}, f.build)
				response := r.open()
				defer response.Body.Close()
				read := make(chan struct{})
				go func() {
					_, _ = io.Copy(io.Discard, response.Body)
					close(read)
				}()
				ticker := time.NewTicker(traffic)
				defer ticker.Stop()
				go func() {
					for {
						select {
						case <-ticker.C:
							f.frames <- "data: x\n\n"
						case <-read:
							return
						}
					}
				}()
				<-time.After(time.Minute) // of the bubble
				revoked := time.Now()
				if _, err := r.tokens.Revoke(r.tokenID, revoked); err != nil {
					t.Fatal(err)
				}
				if err := <-f.ended; !errors.Is(err, access.ErrUnauthenticated) {
					t.Errorf("the stream ended with %v", err)
				}
				if took := time.Since(revoked); took > 16*time.Second {
					t.Errorf("the stream outlived its token by %v", took)
				}
				<-read
				if got := r.streams.Counters().Revoked; got != 1 {
					t.Errorf("counted %d", got)
				}
			})
		})
	}
}

// Field case 97, with the times of the bubble.
func TestShutdownEndsStreamsAtFrameBoundaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollow()
		r := start(t, rigOptions{}, f.build)
		type end struct {
			text string
			err  error
		}
		ends := make(chan end, 50)
		for range 50 {
			response := r.open()
			go func() {
				defer response.Body.Close()
				text, err := io.ReadAll(response.Body)
				ends <- end{string(text), err}
			}()
		}
		for range 50 {
			f.frames <- "data: x\n\n"
		}
		stalled := r.open()
		defer stalled.Body.Close()
		// Heartbeats are due now, and one reader does not take its own.
		<-time.After(16 * time.Second) // of the bubble
		idle, err := r.listener.Dial(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer idle.Close()
		synctest.Wait()

		begun := time.Now()
		if err := r.server.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("the shutdown took %v", took)
		}
		for range 50 {
			got := <-ends
			if got.err != nil || got.text != "" && !strings.HasSuffix(got.text, "\n\n") {
				t.Errorf("a reader got %q, %v", got.text, got.err)
			}
		}
		drained := 0
		for range 51 {
			if err := <-f.ended; errors.Is(err, server.ErrDraining) {
				drained++
			}
		}
		if drained != 50 {
			t.Errorf("%d streams ended by the drain, 50 were idle", drained)
		}
		if got := r.streams.Counters(); got.Open != 0 || got.Stalled != 1 {
			t.Errorf("counters %+v", got)
		}
	})
}

func TestStreamThatWouldBeginInADrainIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFollow()
		admitted, gate := make(chan struct{}), make(chan struct{})
		f.hold = func(*http.Request) {
			close(admitted)
			<-gate
		}
		r := start(t, rigOptions{}, f.build)
		got := make(chan answer, 1)
		go func() { got <- r.get("/stream") }()
		<-admitted
		down := make(chan error, 1)
		go func() { down <- r.server.Shutdown(context.Background()) }()
		synctest.Wait()
		close(gate)
		r.wantProblem(<-got, 503, "draining")
		if err := <-down; err != nil {
			t.Error(err)
		}
	})
}

func TestNothingIsWrittenAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := make(chan error, 3)
		r := start(t, rigOptions{}, func(r *rig) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				stream, err := r.streams.Open(w, request)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := r.streams.Open(w, request); err == nil {
					t.Error("a second stream in one answer")
				}
				<-stream.Context().Done()
				failed <- stream.Write([]byte("data: late\n\n"))
				_, err = stream.Wait(nil)
				failed <- err
			})
		})
		response := r.open()
		down := make(chan error, 1)
		go func() { down <- r.server.Shutdown(context.Background()) }()
		if text, err := io.ReadAll(response.Body); len(text) > 0 || err != nil {
			t.Errorf("after the drain came %q, %v", text, err)
		}
		response.Body.Close()
		for range 2 {
			if err := <-failed; !errors.Is(err, server.ErrDraining) {
				t.Errorf("use after the end: %v", err)
			}
		}
		if err := <-down; err != nil {
			t.Error(err)
		}
	})
}

func TestOpenOutsideTheEdgeIsAnError(t *testing.T) {
	tokens, err := access.Open(t.TempDir(), access.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest("GET", "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.NewStreams(tokens, server.StreamOptions{}).Open(nil, request); err == nil {
		t.Error("a stream without a request of the edge")
	}
}

// A request that waits takes a place like a stream does, and its end comes for the same
// reasons; it is answered all the same.
func TestHeldRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 8)
		build := func(r *rig) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				held, err := r.streams.Hold(w, request)
				if err != nil {
					server.WriteProblem(w, request, err)
					return
				}
				if _, err := r.streams.Hold(w, request); err == nil {
					t.Error("a request was held twice")
				}
				select {
				case <-held.Context().Done():
				case <-time.After(time.Minute):
				}
				causes <- held.Alive()
				w.WriteHeader(http.StatusNoContent)
			})
		}
		r := start(t, rigOptions{streams: server.StreamOptions{MaxPerPrincipal: 1, Heartbeat: time.Second}}, build)
		answers := make(chan answer, 1)
		go func() { answers <- r.do(r.request("GET", "/wait", "", nil)) }()
		synctest.Wait()
		if open := r.streams.Counters().Open; open != 1 {
			t.Errorf("%d places are taken, want 1", open)
		}
		if a := r.do(r.request("GET", "/wait", "", nil)); a.status != http.StatusTooManyRequests {
			t.Errorf("one more than allowed: got %d", a.status)
		}
		if a := <-answers; a.status != http.StatusNoContent || <-causes != nil {
			t.Errorf("got %d", a.status)
		}
		go func() { answers <- r.do(r.request("GET", "/wait", "", nil)) }()
		synctest.Wait()
		if err := r.server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if a := <-answers; a.status != http.StatusNoContent {
			t.Errorf("at the drain: got %d", a.status)
		}
		if why := <-causes; !errors.Is(why, server.ErrDraining) {
			t.Errorf("the wait ended for %v", why)
		}
		if open := r.streams.Counters().Open; open != 0 {
			t.Errorf("%d places are taken at the end", open)
		}
	})
}

// All clients of the socket are the owner: only the bound of the host holds for them.
func TestStreamsOfTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, rigOptions{owner: true, streams: server.StreamOptions{Max: 3, MaxPerPrincipal: 1}}, newFollow().build)
		asOwner := func(r *http.Request) { r.Header.Del("Authorization") }
		for i := range 3 {
			response, err := r.client.Do(r.request("GET", "/stream", "", asOwner))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Errorf("stream %d: got %d, want 200", i+1, response.StatusCode)
			}
		}
		r.wantProblem(r.do(r.request("GET", "/stream", "", asOwner)), 503, "too_many_streams")
	})
}

// A binding ends a stream from elsewhere: its handler hears of it, with the reason.
func TestStreamIsEndedFromElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("superseded")
		streams, ended := make(chan *server.Stream, 1), make(chan error, 1)
		r := start(t, rigOptions{}, func(r *rig) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				stream, err := r.streams.Open(w, request)
				if err != nil {
					t.Error(err)
					return
				}
				streams <- stream
				_, err = stream.Wait(nil)
				ended <- err
			})
		})
		response := r.open()
		defer response.Body.Close()
		(<-streams).End(why)
		if err := <-ended; !errors.Is(err, why) {
			t.Errorf("the stream ended for %v", err)
		}
		if body, err := io.ReadAll(response.Body); err != nil || len(body) > 0 {
			t.Errorf("read %q, %v", body, err)
		}
	})
}
