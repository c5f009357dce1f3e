package session_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad/session"
)

// talk writes the first n facts of a session of runs that talk, call tools and report
// progress, one a line.
func talk(w io.Writer, n int) {
	run, sequence, call, written := 0, 0, 0, 0
	add := func(kind, rest string, args ...any) {
		if written == n {
			return
		}
		written++
		sequence++
		fmt.Fprintf(w, `{"type":"%s","protocolVersion":"narad/v1","eventId":"%d.abcdefgh","timestamp":"2026-08-05T00:00:00.123Z",`+
			`"sessionId":"0198f3a0-aaaa-7bbb-8ccc-0123456789ab","sessionSequence":%d,"rootRunId":"run-%d","runId":"run-%d","sequence":%d,`,
			kind, written, written, run, run, sequence)
		fmt.Fprintf(w, rest+"}\n", args...)
	}
	for written < n {
		run++
		sequence = 0
		add("run.started", `"x":1`)
		add("message.text.started", `"messageId":"m-%d","role":"assistant","messageScope":"session"`, run)
		for range 40 {
			add("message.text.delta", `"messageId":"m-%d","delta":"some text that an agent has written, about eighty bytes of it, give or take."`, run)
		}
		add("message.text.completed", `"messageId":"m-%d"`, run)
		for range 3 {
			call++
			add("tool.call.started", `"toolCallId":"t-%d","toolName":"read","executor":"backend","args":{"path":"internal/some/file.go","limit":200}`, call)
			add("progress.recorded", `"progressId":"p-%d","category":"phase","label":"Reading","status":"active","privacy":"public"`, call)
			add("tool.call.finished", `"toolCallId":"t-%d","outcome":"success","response":{"lines":200,"text":"package some // and so on"}`, call)
		}
		add("run.finished", `"usage":{"promptTokens":120,"completionTokens":45}`)
	}
}

// recorded returns a file of the first n facts of a session.
func recorded(b *testing.B, n int) *os.File {
	file, err := os.Create(filepath.Join(b.TempDir(), "session.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = file.Close() })
	w := bufio.NewWriter(file)
	talk(w, n)
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	return file
}

// BenchmarkReduce reads, decodes, validates and applies a session as a client does, from
// a file, and prints facts a second. It should not depend on the length (DESIGN §12). The
// facts are not held in memory: a heap that holds them grows instead of being collected,
// and then the time is that of the pages which the system has to find for it.
func BenchmarkReduce(b *testing.B) {
	for _, n := range []int{5_000, 200_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			file := recorded(b, n)
			b.ReportAllocs()
			var spent time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := file.Seek(0, io.SeekStart); err != nil {
					b.Fatal(err)
				}
				s := session.New(session.Options{Remember: 10_000})
				lines := bufio.NewScanner(file)
				for lines.Scan() {
					if r := s.ApplyJSON(lines.Bytes(), false); r.Kind != session.Applied {
						b.Fatalf("%v\n%s", r, lines.Bytes())
					}
				}
				spent += time.Since(start)
				if got := s.Last(); lines.Err() != nil || got != int64(n) {
					b.Fatalf("got %d facts (%v), want %d", got, lines.Err(), n)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/spent.Seconds(), "facts/s")
		})
	}
}
