package harness_test

import (
	"bytes"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
	"github.com/mahati-host/mahati/narad/session/sessiontest"
)

// shown is what the cli view shows of a log.
func shown(t *testing.T, log []harness.Event) string {
	t.Helper()
	reducer := harness.NewReducer(harness.SeeAll)
	for _, e := range log {
		if err := reducer.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := reducer.WriteView(&out, harness.ViewCLI, nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// thereAndBack makes a trace of a log, judges it as `mahati narad check` does, and makes
// a log of it again.
func thereAndBack(t *testing.T, log []harness.Event) []harness.Event {
	t.Helper()
	tracer, judge := harness.NewTracer("s", "1970-01-01T00:00:00Z"), session.New(session.Options{Remember: session.RememberAll})
	converter := harness.NewConverter()
	var again []harness.Event
	for _, e := range log {
		list, err := tracer.Add(e)
		if err != nil {
			t.Fatalf("%s: %v", e.Payload, err)
		}
		for _, fact := range list {
			line, err := narad.Encode(fact)
			if err != nil {
				t.Fatal(err)
			}
			if r := judge.ApplyJSON(line, true); r.Kind != session.Applied || r.Code != "" {
				t.Fatalf("%v %s: %s\n%s", r.Kind, r.Code, r.Detail, line)
			}
			rec, err := narad.DecodeStrict(line)
			if err != nil {
				t.Fatal(err)
			}
			events, err := converter.Add(rec)
			if err != nil {
				t.Fatal(err)
			}
			again = append(again, events...)
		}
	}
	return again
}

// A trace of a log is legal, and its own log shows the same messages, calls, usage and end.
func TestTracesOfLogs(t *testing.T) {
	check := func(what string, log []harness.Event) {
		t.Helper()
		if got, want := shown(t, thereAndBack(t, log)), shown(t, log); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
		}
	}
	files, err := filepath.Glob("testdata/mapping1/*.log.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden logs: %v", err)
	}
	for _, file := range files {
		for run, log := range goldenLogs(t, file) {
			check(file+" "+run, log)
		}
	}
	for seed := range int64(100) {
		logs, ended, err := convert(sessiontest.Trace(rand.New(rand.NewSource(seed)), 150))
		if err != nil {
			t.Fatal(err)
		}
		for run, log := range logs {
			if ended[run] { // what a log that goes on leaves open is not closed
				check(run, log)
			}
		}
	}
}

func goldenLogs(t *testing.T, file string) map[string][]harness.Event {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	logs := map[string][]harness.Event{}
	var one []byte
	flush := func() {
		reader := harness.NewReader(bytes.NewReader(one))
		for one != nil {
			e, err := reader.Next()
			if err != nil {
				break
			}
			logs[e.RunID] = append(logs[e.RunID], e)
		}
		one = nil
	}
	for line := range bytes.Lines(data) { // the file has one log after another
		if strings.Contains(string(line), `,"sequence":1,`) {
			flush()
		}
		one = append(one, line...)
	}
	flush()
	return logs
}

// Other producers leave out what Mahati tells: their logs become legal traces too.
func TestTracesOfOtherProducers(t *testing.T) {
	file := `{"version":"fak.harness.run/v1","run_id":"r","sequence":1,"event_id":"e1","type":"run.started","sensitivity":"public","payload":{"status":"running"}}
{"version":"fak.harness.run/v1","run_id":"r","sequence":2,"event_id":"e2","type":"message.started","sensitivity":"private","payload":{"message_id":"u","role":"user"}}
{"version":"fak.harness.run/v1","run_id":"r","sequence":3,"event_id":"e3","type":"message.delta","sensitivity":"private","payload":{"message_id":"u","text":"hel"}}
{"version":"fak.harness.run/v1","run_id":"r","sequence":4,"event_id":"e4","type":"message.completed","sensitivity":"private","payload":{"message_id":"u","text":"lo"}}
{"version":"fak.harness.run/v1","run_id":"r","sequence":5,"event_id":"e5","type":"message.delta","sensitivity":"private","payload":{"message_id":"a","text":"yes"}}
{"version":"fak.harness.run/v1","run_id":"r","sequence":6,"event_id":"e6","type":"tool.completed","sensitivity":"private","payload":{"call_id":"c","name":"grep","status":"failed"}}
{"version":"fak.harness.run/v1","run_id":"r","sequence":7,"event_id":"e7","type":"x.unknown","sensitivity":"private","payload":[1]}
{"version":"fak.harness.run/v1","run_id":"r","sequence":8,"event_id":"e8","type":"message.delta","sensitivity":"secret","payload":{"redacted":true}}
{"version":"fak.harness.run/v1","run_id":"r","sequence":9,"event_id":"e9","type":"approval.requested","sensitivity":"private","payload":{"approval_id":"p","status":"pending","scope":"s"}}
{"version":"fak.harness.run/v1","run_id":"r","sequence":10,"event_id":"e10","type":"error","sensitivity":"private","payload":{"code":"one","message":"","retryable":true}}
{"version":"fak.harness.run/v1","run_id":"r","sequence":11,"event_id":"e11","type":"run.completed","sensitivity":"public","payload":{"status":"failed"}}
`
	reader := harness.NewReader(strings.NewReader(file))
	var log []harness.Event
	for {
		e, err := reader.Next()
		if err != nil {
			break
		}
		log = append(log, e)
	}
	if len(log) != 11 {
		t.Fatalf("read %d records", len(log))
	}
	want := "run r failed\nmessage a: yes\nmessage u: hello\ntool c grep failed\nusage 0/0\n"
	if got := shown(t, thereAndBack(t, log)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
