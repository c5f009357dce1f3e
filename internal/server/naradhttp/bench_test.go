package naradhttp_test

import (
	"bytes"
	"context"
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

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/feed"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/journal/pebble"
	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/server/bindingtest"
	"github.com/mahati-host/mahati/internal/server/naradhttp"
	"github.com/mahati-host/mahati/narad"
)

// BenchmarkHistory reads a page near the tail of a session over a real connection, and
// for comparison the same bytes as net/http serves them from memory, in turns: what
// counts is the last figure, how many times the time of the second the first takes.
func BenchmarkHistory(b *testing.B) {
	address, token, head := benched(b, 3_000)
	for _, limit := range []int{100, 1000} {
		b.Run(fmt.Sprint(limit), func(b *testing.B) {
			path := naradhttp.Prefix + "/sessions/s1/events?limit=" + strconv.Itoa(limit) + "&afterSessionSequence=" + strconv.FormatUint(head-uint64(limit)-20, 10)
			page := fetch(b, "http://"+address+path, token)
			plain := serveHTTP(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", strconv.Itoa(len(page)))
				_, _ = w.Write(page)
			}))
			var ours, theirs time.Duration
			b.SetBytes(int64(len(page)))
			b.ReportAllocs()
			for b.Loop() {
				begun := time.Now()
				fetch(b, "http://"+address+path, token)
				ours += time.Since(begun)
				b.StopTimer()
				begun = time.Now()
				fetch(b, "http://"+plain+path, token)
				theirs += time.Since(begun)
				b.StartTimer()
			}
			b.ReportMetric(float64(ours)/float64(theirs), "times-net/http")
		})
	}
}

// benched serves a session of many facts from disk.
func benched(b *testing.B, facts int) (address, token string, head uint64) {
	b.Helper()
	j, err := pebble.Open(b.TempDir(), pebble.Options{})
	if err != nil {
		b.Fatal(err)
	}
	f := feed.New(j, feed.Options{})
	done := make(chan struct{})
	h := host.New(j, f, bindingtest.Cast{"test": writes(facts, done)}, host.Options{})
	b.Cleanup(func() { err := h.Close(); f.Close(); err = errors.Join(err, j.Close()); fail(b, err) })
	fail(b, h.Start(b.Context()))
	tokens, err := access.Open(b.TempDir(), access.StoreOptions{})
	fail(b, err)
	_, secret, err := tokens.Create(access.TokenRequest{Name: "bench", Grant: everything()}, time.Now())
	fail(b, err)
	streams := server.NewStreams(tokens, server.StreamOptions{})
	mux := http.NewServeMux()
	naradhttp.New(h, streams, naradhttp.Options{}).Register(mux)
	edge, err := server.New(server.Routes(mux), tokens, access.NewCookies(tokens, access.CookieOptions{}), streams, server.Options{})
	fail(b, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fail(b, err)
	go func() { fail(b, edge.Serve(listener)) }()
	b.Cleanup(func() { fail(b, edge.Shutdown(context.Background())) })
	address, token = listener.Addr().String(), secret.Reveal()
	post(b, address, token, "/sessions", `{"sessionId":"s1"}`)
	post(b, address, token, "/commands/message", `{"sessionId":"s1","content":"write"}`)
	<-done
	last, err := j.Head(b.Context(), "s1")
	fail(b, err)
	return address, token, last.Sequence
}

// writes records so many facts of about 450 bytes and then waits.
func writes(facts int, done chan struct{}) acts {
	return func(ctx context.Context, h agent.Handle) agent.Ending {
		for i := range facts / 2 {
			id, err := h.StartTool(ctx, agent.Tool{
				AgentID: "call_" + strconv.Itoa(i), Name: "read", Kind: "read", Args: narad.Raw(`{"path":"internal/server/streams.go","lines":[120,240]}`),
			})
			if err != nil {
				break
			}
			_ = h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Raw(`{"exitCode":0}`)})
		}
		close(done)
		<-ctx.Done()
		return agent.Ending{Outcome: agent.Cancelled}
	}
}

func serveHTTP(b *testing.B, handler http.Handler) (address string) {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	fail(b, err)
	s := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(listener) }()
	b.Cleanup(func() { fail(b, s.Close()) })
	return listener.Addr().String()
}

func fetch(b *testing.B, url, token string) []byte {
	q, err := http.NewRequestWithContext(b.Context(), "GET", url, http.NoBody)
	fail(b, err)
	q.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(q)
	fail(b, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 200 {
		b.Fatalf("%s: %d %v %.200s", url, response.StatusCode, err, body)
	}
	return body
}

func post(b *testing.B, address, token, path, body string) {
	b.Helper()
	q, err := http.NewRequestWithContext(b.Context(), "POST", "http://"+address+naradhttp.Prefix+path, strings.NewReader(body))
	fail(b, err)
	q.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(q)
	fail(b, err)
	_ = response.Body.Close()
	if response.StatusCode >= 300 {
		b.Fatalf("%s: %d", path, response.StatusCode)
	}
}

func fail(b *testing.B, err error) {
	if err != nil && !errors.Is(err, journal.ErrClosed) {
		b.Helper()
		b.Fatal(err)
	}
}

// BenchmarkFanOut has many readers follow one session from its beginning over real
// connections, to its head.
func BenchmarkFanOut(b *testing.B) {
	const readers = 100
	address, token, head := benched(b, 3_000)
	request := "GET " + naradhttp.Prefix + "/sessions/s1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\n\r\n"
	b.ReportAllocs()
	for b.Loop() {
		var all sync.WaitGroup
		for range readers {
			all.Go(func() { fail(b, readFrames(b.Context(), address, request, int(head))) })
		}
		all.Wait()
	}
	b.ReportMetric(float64(readers)*float64(head)*float64(b.N)/b.Elapsed().Seconds(), "frames/s")
}

// readFrames reads a stream until it has so many frames.
func readFrames(ctx context.Context, address, request string, frames int) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	piece := make([]byte, 64<<10)
	for seen, kept := 0, 0; seen < frames; {
		n, err := conn.Read(piece[kept:])
		if err != nil {
			return err
		}
		read := piece[:kept+n]
		seen += bytes.Count(read, []byte("\n\n"))
		// Half of an end may stand at the end of what was read.
		if kept = 0; bytes.HasSuffix(read, []byte("\n")) && !bytes.HasSuffix(read, []byte("\n\n")) {
			piece[0], kept = '\n', 1
		}
	}
	return nil
}
