package session_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad/session"
)

// corpus is a session of runs that talk, call tools and report progress.
func corpus(n int) [][]byte {
	lines := make([][]byte, 0, n)
	run, sequence, open := 0, 0, 0
	add := func(format string, args ...any) {
		sequence++
		head := fmt.Sprintf(`"protocolVersion":"narad/v1","eventId":"%d.abcdefgh","timestamp":"2026-08-05T00:00:00.123Z",`+
			`"sessionId":"0198f3a0-aaaa-7bbb-8ccc-0123456789ab","sessionSequence":%d,"rootRunId":"run-%d","runId":"run-%d","sequence":%d,`,
			len(lines)+1, len(lines)+1, run, run, sequence)
		lines = append(lines, []byte(fmt.Sprintf(format, append([]any{head}, args...)...)))
	}
	for len(lines) < n {
		run++
		sequence = 0
		add(`{"type":"run.started",%s"x":1}`)
		add(`{"type":"message.text.started",%s"messageId":"m-%d","role":"assistant","messageScope":"session"}`, run)
		for range 40 {
			add(`{"type":"message.text.delta",%s"messageId":"m-%d","delta":"some text that an agent has written, about eighty bytes of it, give or take."}`, run)
		}
		add(`{"type":"message.text.completed",%s"messageId":"m-%d"}`, run)
		for range 3 {
			open++
			add(`{"type":"tool.call.started",%s"toolCallId":"t-%d","toolName":"read","executor":"backend","args":{"path":"internal/some/file.go","limit":200}}`, open)
			add(`{"type":"progress.recorded",%s"progressId":"p-%d","category":"phase","label":"Reading","status":"active","privacy":"public"}`, open)
			add(`{"type":"tool.call.finished",%s"toolCallId":"t-%d","outcome":"success","response":{"lines":200,"text":"package some // and so on"}}`, open)
		}
		add(`{"type":"run.finished",%s"usage":{"promptTokens":120,"completionTokens":45}}`)
	}
	return lines[:n]
}

// BenchmarkReduce decodes, validates and applies a session as a client does, and
// prints facts a second. It should not depend on the length (DESIGN §12).
func BenchmarkReduce(b *testing.B) {
	for _, n := range []int{5_000, 200_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			lines := corpus(n)
			b.ReportAllocs()
			var spent time.Duration
			for b.Loop() {
				s := session.New(session.Options{Remember: 10_000})
				start := time.Now()
				for i, line := range lines {
					if r := s.ApplyJSON(line, false); r.Kind != session.Applied {
						b.Fatalf("line %d: %v\n%s", i+1, r, line)
					}
				}
				spent += time.Since(start)
			}
			b.ReportMetric(float64(n)*float64(b.N)/spent.Seconds(), "facts/s")
		})
	}
}
