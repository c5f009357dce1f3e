package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// model is the contract read the plain way: the whole log into memory, every record by
// encoding/json, texts added to strings. It is slow, and a second opinion.
type model struct {
	jsonView
	canceled bool
}

// project gives the state of a log, or the class of what is wrong with it.
func (m *model) project(log []byte) Code {
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, 1<<20)
	var events []Event
	for lines.Scan() {
		var event Event
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			if _, wrong := err.(*json.UnmarshalTypeError); wrong {
				return CodeType
			}
			return CodeSyntax
		}
		events = append(events, event)
	}
	if lines.Err() != nil {
		return CodeLength
	}
	m.Messages, m.Tools, m.Approvals = map[string]string{}, map[string]Tool{}, map[string]Approval{}
	for _, event := range events {
		if code := m.apply(event); code != "" {
			return code
		}
	}
	return ""
}

func (m *model) apply(e Event) Code {
	if e.Version != Version || e.RunID == "" || e.Sequence == 0 || e.EventID == "" || e.Type == "" {
		return CodeEnvelope
	}
	if m.Cursor > 0 && e.RunID != m.RunID || e.Sequence != m.Cursor+1 {
		return CodeOrder
	}
	m.RunID, m.Cursor = e.RunID, e.Sequence
	if m.canceled && e.Type != RunCanceled && e.Type != Checkpointed {
		return CodeCanceled
	}
	m.canceled = m.canceled || e.Type == RunCanceled
	if e.Sensitivity != Public && len(e.Payload) <= 64 && bytes.Contains(e.Payload, []byte(`"redacted"`)) && onlyRedacted(e.Payload) {
		return ""
	}
	var err error
	read := func(to any) {
		if e.Payload != nil {
			err = json.Unmarshal(e.Payload, to)
		}
	}
	switch kind := string(e.Type); {
	case kind == "run.started" || kind == "run.completed" || kind == "run.canceled":
		var p Lifecycle
		read(&p)
		m.Status = p.Status
	case kind == "message.started" || kind == "message.delta" || kind == "message.completed":
		var p Message
		read(&p)
		m.Messages[p.MessageID] += p.Text
	case kind == "ui.block":
		var p Block
		read(&p)
		m.UI = append(m.UI, p)
	case kind == "tool.started" || kind == "tool.completed":
		var p Tool
		read(&p)
		m.Tools[p.CallID] = p
	case kind == "plan.updated":
		var p Plan
		read(&p)
		m.Plan = p.Steps
	case kind == "approval.requested" || kind == "approval.resolved":
		var p Approval
		read(&p)
		m.Approvals[p.ApprovalID] = p
	case kind == "artifact.published":
		var p Artifact
		read(&p)
		m.Artifacts = append(m.Artifacts, p)
	case kind == "error":
		var p Failure
		read(&p)
		m.Errors = append(m.Errors, p)
	case kind == "usage":
		var p Usage
		read(&p)
		m.Usage.InputTokens += p.InputTokens
		m.Usage.OutputTokens += p.OutputTokens
		m.Usage.CostMicros += p.CostMicros
	case kind == "checkpoint":
		read(&Checkpoint{})
	}
	if err != nil {
		return CodePayload
	}
	return ""
}

// onlyRedacted reports whether a JSON value is {"redacted":true}.
func onlyRedacted(value []byte) bool {
	in := json.NewDecoder(bytes.NewReader(value))
	for _, want := range []json.Token{json.Delim('{'), "redacted", true, json.Delim('}')} {
		if got, err := in.Token(); err != nil || got != want {
			return false
		}
	}
	return true
}

// againstModel holds a projection to the model, however the log is cut while it is read.
func againstModel(t *testing.T, log []byte) {
	t.Helper()
	var m model
	want := m.project(log)
	got, err := Project(bytes.NewReader(log), SeeAll)
	if CodeOf(err) != want || (err != nil) != (want != "") {
		t.Fatalf("got %v, want the class %q for\n%q", err, want, log)
	}
	if _, halved := Project(iotest.HalfReader(bytes.NewReader(log)), SeeAll); CodeOf(halved) != want {
		t.Fatalf("read in pieces: got %v, want the class %q for\n%q", halved, want, log)
	}
	if err != nil {
		return
	}
	var shown, plain bytes.Buffer
	if err := got.WriteView(&shown, ViewJSON, nil); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(&plain).Encode(m.jsonView); err != nil {
		t.Fatal(err)
	}
	if shown.String() != plain.String() {
		t.Fatalf("got  %s\nwant %s\nfor %q", shown.String(), plain.String(), log)
	}
}

// logSeeds are logs around everything that a reader decides.
func logSeeds() (seeds []string) {
	record := func(sequence, kind, rest string) string {
		return `{"version":"fak.harness.run/v1","run_id":"r","sequence":` + sequence + `,"event_id":"e` + sequence + `","type":"` + kind + `"` + rest + "}\n"
	}
	public := func(payload string) string { return `,"sensitivity":"public","payload":` + payload }
	start := record("1", "run.started", public(`{"status":"running"}`))
	for _, second := range []string{
		record("2", "message.delta", public(`{"message_id":"m","text":"<a>\u2028\n"}`)) + record("3", "message.completed", public(`{"message_id":"m","text":"b"}`)),
		record("2", "tool.started", public(`{"call_id":"c","name":"n"}`)) + record("3", "tool.completed", public(`{"call_id":"c","name":"","Status":"ok"}`)),
		record("2", "usage", public(`{"input_tokens":9223372036854775807,"output_tokens":-1}`)) + record("3", "usage", public(`{"input_tokens":1,"cost_micros":2}`)),
		record("2", "plan.updated", public(`{"steps":[null,{"id":"a"}],"steps":[{"text":"b"}]}`)), record("2", "ui.block", public(`{"block_id":"b","data": {"a" : [1.50,"<"] }}`)),
		record("2", "run.canceled", public(`{"status":"canceled"}`)) + record("3", "checkpoint", public(`{"cursor":{"sequence":2}}`)) + record("4", "run.canceled", ""),
		record("2", "run.canceled", `,"sensitivity":"secret","payload":{"redacted":true}`) + record("3", "x", ""),
		record("2", "checkpoint", public(`"x"`)), record("2", "error", public(`{"code":1}`)), record("2", "vendor.x", public(`[[]]`)), record("3", "vendor.x", ""),
		record("2", "approval.requested", public(`{"approval_id":"a"}`)) + record("3", "artifact.published", `,"payload":null`), record("2", "usage", public("1")) + "x\n",
		record("3", "usage", "") + "[]\n", record("2", "a", "") + "\r\n", "\n", " \n", strings.TrimSuffix(record("2", "a", ""), "\n"), record("2", "a", "") + strings.Repeat(" ", 70_000) + "x",
	} {
		seeds = append(seeds, start+second)
	}
	return append(seeds, "", "\n", "null", start+start, strings.Replace(start, "run/v1", "run/v2", 1), strings.ReplaceAll(start, "\n", "\r\r\n"))
}

// FuzzProject: a projection and the plain model end alike on any bytes.
func FuzzProject(f *testing.F) {
	for _, seed := range logSeeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, log []byte) { againstModel(t, log) })
}

// FuzzCheck: what a strict reading finds nothing wrong with, the ordinary one takes; and it
// ends on any bytes, with every finding in its place.
func FuzzCheck(f *testing.F) {
	for _, seed := range logSeeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		line := 0
		summary, err := Check(bytes.NewReader(log), func(found Finding) error {
			if found.Line < line || found.Rule == "" || found.Code == "" {
				t.Fatalf("after line %d: %+v", line, found)
			}
			line = found.Line
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Project(bytes.NewReader(log), SeeAll); err != nil && summary.Violations == 0 {
			t.Fatalf("nothing is wrong with what is refused: %v\n%q", err, log)
		}
	})
}

// FuzzEncode: a record that was read is written as one line that reads as the same record.
func FuzzEncode(f *testing.F) {
	for _, seed := range lineSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		event, err := Decode(text)
		if err != nil {
			return
		}
		line, err := Encode(event)
		if err != nil {
			if event.validate() == nil && len(text) < MaxLineBytes/6 && utf8.Valid(event.Payload) {
				t.Fatalf("%v\n%q", err, text)
			}
			return
		}
		if bytes.ContainsAny(line, "\n\r") {
			t.Fatalf("more than one line: %q", line)
		}
		again, err := Decode(line)
		if err != nil {
			t.Fatalf("%v\n%q", err, line)
		}
		second, err := Encode(again)
		if err != nil || !bytes.Equal(second, line) {
			t.Fatalf("written in two ways\n%q\n%q\n%v", line, second, err)
		}
		if event.RunID != again.RunID || event.EventID != again.EventID || event.Type != again.Type || event.Sequence != again.Sequence {
			t.Fatalf("got %+v, want %+v", again, event)
		}
	})
}
