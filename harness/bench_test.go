package harness

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// made is a log that is written while it is read, so that what is measured holds no log.
type made struct {
	record func(sequence int) (kind, payload string)
	n      int
	at     int // records so far
	line   []byte
	rest   []byte
	each   func(at int) // called before each record, where it is not nil
}

func (m *made) Read(to []byte) (int, error) {
	if len(m.rest) == 0 {
		if m.at == m.n {
			return 0, io.EOF
		}
		if m.each != nil {
			m.each(m.at)
		}
		m.at++
		m.next()
	}
	n := copy(to, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

func (m *made) next() {
	kind, payload := m.record(m.at)
	b := append(m.line[:0], `{"version":"fak.harness.run/v1","run_id":"run-0001","sequence":`...)
	b = strconv.AppendInt(b, int64(m.at), 10)
	b = append(strconv.AppendInt(append(b, `,"event_id":"run-0001:`...), int64(m.at), 10), '"')
	if m.at > 1 {
		b = append(strconv.AppendInt(append(b, `,"correlation_id":"turn-1","causation_id":"run-0001:`...), int64(m.at-1), 10), '"')
	}
	b = append(append(append(b, `,"type":"`...), kind...), `","sensitivity":"public","payload":`...)
	m.line = append(append(b, payload...), '}', '\n')
	m.rest = m.line
}

// mixed is a log like that of a run: messages of a hundred deltas, tool calls, plans,
// blocks, approvals, usage, checkpoints, and types that nobody knows.
func mixed(n int) *made {
	return &made{n: n, record: func(i int) (string, string) {
		turn := strconv.Itoa(i / 200)
		switch {
		case i == 1:
			return "run.started", `{"status":"running"}`
		case i == n:
			return "run.completed", `{"status":"completed"}`
		case i%200 == 10:
			return "message.started", `{"message_id":"m` + turn + `","role":"assistant"}`
		case i%200 == 180:
			return "message.completed", `{"message_id":"m` + turn + `"}`
		case i%20 == 3:
			return "tool.started", `{"call_id":"c` + strconv.Itoa(i/20) + `","name":"read_file","status":"running"}`
		case i%20 == 13:
			return "tool.completed", `{"call_id":"c` + strconv.Itoa(i/20) + `","name":"read_file","status":"completed","summary":"42 lines of \"main.go\" read"}`
		case i%50 == 7:
			return "plan.updated", `{"steps":[{"id":"s1","text":"read the sources","status":"completed"},{"id":"s2","text":"write the test","status":"in_progress"}]}`
		case i%100 == 17:
			return "ui.block", `{"block_id":"b` + turn + `","kind":"table","data":{"columns":["name","lines"],"rows":[["main.go",42],["main_test.go",97]]}}`
		case i%200 == 18:
			return "approval.requested", `{"approval_id":"a` + turn + `","prompt":"Run the tests?","status":"pending","scope":"command:go test"}`
		case i%200 == 19:
			return "approval.resolved", `{"approval_id":"a` + turn + `","status":"approved","scope":"command:go test"}`
		case i%100 == 21:
			return "usage", `{"input_tokens":1200,"output_tokens":350,"cost_micros":4100}`
		case i%100 == 22:
			return "checkpoint", `{"cursor":{"version":"fak.harness.run/v1","run_id":"run-0001","sequence":` + strconv.Itoa(i-1) + `,"checkpoint":"5d41402abc4b2a76b9719d911017c592"}}`
		case i%20 == 5:
			return "vendor.progress", `{"phase":"indexing","done":` + strconv.Itoa(i) + `,"detail":{"files":["a.go","b.go"],"ratio":0.25}}`
		}
		return "message.delta", `{"message_id":"m` + turn + `","text":"some more words\n"}`
	}}
}

// oneMessage is a log of one message in many deltas of twenty bytes.
func oneMessage(n int) *made {
	return &made{n: n, record: func(i int) (string, string) {
		if i == 1 {
			return "run.started", `{"status":"running"}`
		}
		return "message.delta", `{"message_id":"m1","role":"assistant","text":"twenty bytes of text"}`
	}}
}

// quiet is a log of records that change what is kept, and add nothing to it.
func quiet(n int) *made {
	return &made{n: n, record: func(i int) (string, string) {
		switch i % 4 {
		case 0:
			return "checkpoint", `{"cursor":{"version":"fak.harness.run/v1","run_id":"run-0001","sequence":1,"checkpoint":"t"}}`
		case 1:
			return "run.started", `{"status":"running"}`
		case 2:
			return "usage", `{"input_tokens":1,"output_tokens":1}`
		}
		return "vendor.progress", `{"text":"a payload that nobody keeps"}`
	}}
}

var benchmarkLogs = []struct {
	name string
	log  func(int) *made
}{{"mixed", mixed}, {"one-message", oneMessage}, {"quiet", quiet}}

// BenchmarkProject reads logs and reduces them: records a second of one processor, what is
// allocated for each, and the most that was alive.
func BenchmarkProject(b *testing.B) {
	for _, l := range benchmarkLogs {
		for _, n := range []int{10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", l.name, n), func(b *testing.B) {
				measure(b, n, func() {
					if _, err := Project(l.log(n), SeePublic); err != nil {
						b.Fatal(err)
					}
				})
				b.ReportMetric(peak(l.log(n)), "peak-bytes")
			})
		}
	}
}

// BenchmarkPlain reads a log as BenchmarkProject does, the plain way: whole, and by
// encoding/json.
func BenchmarkPlain(b *testing.B) {
	const n = 100_000
	log, err := io.ReadAll(mixed(n))
	if err != nil {
		b.Fatal(err)
	}
	measure(b, n, func() {
		var m model
		if code := m.project(log); code != "" {
			b.Fatal(code)
		}
	})
}

// measure runs what reads n records on one processor.
func measure(b *testing.B, n int, read func()) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	busy := processorTime(b)
	for b.Loop() {
		read()
	}
	records := float64(n) * float64(b.N)
	b.ReportMetric(records/(processorTime(b)-busy).Seconds(), "events/cpu-s")
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/records, "allocs/event")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/records, "bytes/event")
}

// BenchmarkMakeLog is what the logs of the others cost by themselves.
func BenchmarkMakeLog(b *testing.B) {
	const n = 100_000
	for b.Loop() {
		if _, err := io.Copy(io.Discard, struct{ io.Reader }{mixed(n)}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// peak is how much more was alive at the worst of twenty moments of a projection than
// before it.
func peak(log *made) float64 {
	before := alive()
	most := uint64(0)
	log.each = func(at int) {
		if at%(log.n/20) == log.n/20-1 {
			most = max(most, alive())
		}
	}
	if _, err := Project(log, SeePublic); errors.Is(err, CodeOrder) || errors.Is(err, CodeIO) {
		panic(err)
	}
	return float64(most) - float64(before)
}

func alive() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// processorTime is what the process used of the processors so far, the collector's share
// included: other than the clock it does not run while others have them.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
