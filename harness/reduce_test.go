package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func eventsOf(t *testing.T, log string) (list []Event) {
	t.Helper()
	in := NewReader(strings.NewReader(log))
	for {
		event, err := in.Next()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, event)
	}
}

func reduced(t *testing.T, sight Sight, log string) *Reducer {
	t.Helper()
	r, err := Project(strings.NewReader(log), sight)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	return r
}

func viewOf(t *testing.T, r *Reducer, view View) string {
	t.Helper()
	var out bytes.Buffer
	if err := r.WriteView(&out, view, nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestSnapshot: a log with a record of every kind, as a program sees it that may see
// private payloads.
func TestSnapshot(t *testing.T) {
	got := reduced(t, SeePrivate, logOf(story...)).Snapshot()
	want := Snapshot{
		RunID: "r", Sequence: 19, Status: "canceled", Reason: "enough", Canceled: true,
		Messages: []MessageState{{MessageID: "m1", Role: "user", Text: "héllo wörld", Completed: true}},
		Blocks:   []Block{{"b", "k", []byte(`{"a":1.50}`)}},
		Tools:    []ToolState{{Tool{"c1", "", "completed", "done"}, "read", "done", true}},
		Plan:     []Step{{"s1", "t", "done"}},
		Approvals: []ApprovalState{{
			Approval: Approval{ApprovalID: "a1", Status: "approved"},
			Asked:    Approval{ApprovalID: "a1", Prompt: "ok?", Status: "pending", Scope: "s"},
		}},
		Artifacts:  []Artifact{{"x", "text/plain", "u:1", ""}},
		Failures:   []Failure{{"c", "m", true}},
		Usage:      Usage{4, 5, 5},
		Checkpoint: Cursor{Version, "r", 18, "tok"},
		Counts:     Counts{Records: 19, Ignored: 1, Redacted: 2},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestPrefixAndRest: after any prefix of a log, the rest leads to what the whole leads to;
// and what a prefix says does not change when the log goes on.
func TestPrefixAndRest(t *testing.T) {
	events := eventsOf(t, logOf(story...))
	for _, sight := range []Sight{SeeAll, SeePrivate, SeePublic} {
		whole := reduced(t, sight, logOf(story...))
		for cut := range len(events) + 1 {
			prefix := reduced(t, sight, logOf(story[:cut]...))
			before := prefix.Snapshot()
			kept := reduced(t, sight, logOf(story[:cut]...)).Snapshot()
			for _, event := range events[cut:] {
				if err := prefix.Apply(event); err != nil {
					t.Fatalf("cut at %d: %v", cut, err)
				}
			}
			if got, want := prefix.Snapshot(), whole.Snapshot(); !reflect.DeepEqual(got, want) {
				t.Errorf("cut at %d: got %+v\nwant %+v", cut, got, want)
			}
			if got, want := viewOf(t, prefix, ViewJSON), viewOf(t, whole, ViewJSON); got != want {
				t.Errorf("cut at %d: got %s\nwant %s", cut, got, want)
			}
			if !reflect.DeepEqual(before, kept) {
				t.Errorf("cut at %d: the snapshot of the prefix became %+v\nwas %+v", cut, before, kept)
			}
		}
	}
}

// TestRefusedChangesNothing: a record that is refused leaves cursor and state, and the right
// one is taken after it.
func TestRefusedChangesNothing(t *testing.T) {
	events := eventsOf(t, logOf(story...))
	for at, next := range events {
		r := NewReducer(SeeAll)
		for _, event := range events[:at] {
			if err := r.Apply(event); err != nil {
				t.Fatal(err)
			}
		}
		before := r.Snapshot()
		again, other, gap, broken, foreign := next, next, next, next, next
		again.Sequence--
		gap.Sequence++
		other.RunID = "other"
		foreign.Version = "fak.harness.run/v2"
		broken.Payload = []byte(`"x"`)
		type wrong struct {
			event Event
			code  Code
		}
		list := []wrong{{gap, CodeOrder}, {foreign, CodeEnvelope}, {again, CodeOrder}}
		if at == 0 {
			list[2].code = CodeEnvelope // sequence 0
		} else {
			list = append(list, wrong{other, CodeOrder})
		}
		if next.Type != "vendor.progress" {
			list = append(list, wrong{broken, CodePayload})
		}
		for _, w := range list {
			if err := r.Apply(w.event); !errors.Is(err, w.code) {
				t.Errorf("record %d: got %v, want the class %s for %+v", at+1, err, w.code, w.event)
			}
			if after := r.Snapshot(); !reflect.DeepEqual(before, after) {
				t.Errorf("record %d: a refused record changed the state to %+v\nfrom %+v", at+1, after, before)
			}
		}
		if err := r.Apply(next); err != nil {
			t.Errorf("record %d after refusals: %v", at+1, err)
		}
	}
}

// TestSight: what a consumer may not see only moves the cursor and is counted, and whether
// the log is sound does not depend on who looks.
func TestSight(t *testing.T) {
	log := logOf(started, `message.delta {"message_id":"m","text":"a"}`, `message.delta (private) {"message_id":"m","text":"b"}`,
		`message.delta () {"message_id":"m","text":"c"}`, `message.delta (secret) {"message_id":"m","text":"d"}`, `message.delta (Public) {"message_id":"m","text":"e"}`,
		`message.delta (secret) {"redacted": true }`, `message.delta {"redacted":true}`)
	for _, c := range []struct {
		sight    Sight
		text     string
		redacted uint64
	}{{SeeAll, "abcde", 1}, {SeePrivate, "abc", 3}, {SeePublic, "a", 5}} {
		s := reduced(t, c.sight, log).Snapshot()
		if s.Messages[0].Text != c.text || s.Counts.Redacted != c.redacted || s.Sequence != 8 {
			t.Errorf("sight %d: got %+v, want the text %q, %d redacted", c.sight, s, c.text, c.redacted)
		}
		if len(s.Messages) != 2 || s.Messages[1].MessageID != "" {
			t.Errorf("sight %d: a public payload that says redacted is a payload like any other: %+v", c.sight, s.Messages)
		}
		broken := logOf(started, `message.delta (secret) {"message_id":5}`)
		if _, err := Project(strings.NewReader(broken), c.sight); !errors.Is(err, CodePayload) {
			t.Errorf("sight %d: got %v for a broken secret payload", c.sight, err)
		}
	}
}

// TestRedactedLog: a log whose payloads were all replaced projects to its run and cursor
// alone, and a cancel closes it all the same.
func TestRedactedLog(t *testing.T) {
	var records []string
	for _, kind := range Types()[:14] {
		records = append(records, string(kind)+` (private) {"redacted":true}`)
	}
	r := reduced(t, SeeAll, logOf(append(records, `run.canceled (private) {"redacted":true}`)...))
	if got, want := viewOf(t, r, ViewJSON), `{"run_id":"r","cursor":15,"usage":{"input_tokens":0,"output_tokens":0}}`+"\n"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
	late := eventsOf(t, logOf(append(records, `x`, `vendor.late`)...))[15]
	if err := r.Apply(late); !errors.Is(err, CodeCanceled) {
		t.Errorf("output after a cancel whose payload was replaced: got %v", err)
	}
}

// TestUsageOverflow: a sum that 64 bits do not hold wraps, as the public implementation's
// does, and says so.
func TestUsageOverflow(t *testing.T) {
	r := reduced(t, SeeAll, logOf(started, `usage {"input_tokens":9223372036854775807,"output_tokens":-1}`, `usage {"input_tokens":1,"output_tokens":-1}`))
	s := r.Snapshot()
	first, all := r.Findings()
	if s.Usage.InputTokens != math.MinInt64 || s.Usage.OutputTokens != -2 || !s.UsageOverflow || all != 1 || first[0].Code != CodeUsage || !first[0].Note {
		t.Errorf("got %+v and %+v", s, first)
	}
	if s := reduced(t, SeeAll, logOf(started, `usage {"input_tokens":-5,"output_tokens":7}`)).Snapshot(); s.UsageOverflow {
		t.Errorf("nothing overflowed in %+v", s)
	}
}

// TestFindings: what a projection takes and the page does not have is noted with its place,
// in bounded number.
func TestFindings(t *testing.T) {
	asked, granted := `approval.requested {"approval_id":"a","status":"pending","scope":"s"}`, `approval.resolved {"approval_id":"a","status":"approved","scope":"s"}`
	for _, c := range []struct {
		name    string
		records []string
		want    []Code
	}{
		{"sound", []string{started, asked, granted}, nil},
		{"twice", []string{started, asked, granted, granted}, []Code{CodeApproval}},
		{"never asked", []string{started, granted}, []Code{CodeApproval}},
		{"asked in a record that may not be seen", []string{started, strings.Replace(asked, " ", " (secret) ", 1), granted}, nil},
		{"asked in a record that was replaced", []string{started, `approval.requested (private) {"redacted":true}`, granted}, nil},
		{"other scope", []string{started, asked, strings.Replace(granted, `"s"`, `"*"`, 1)}, []Code{CodeApproval}},
		{"scope left out", []string{started, asked, strings.Replace(granted, `,"scope":"s"`, "", 1)}, nil},
		{"empty token", []string{started, `checkpoint {"cursor":{"version":"fak.harness.run/v1","run_id":"r","sequence":1,"checkpoint":""}}`}, []Code{CodeCheckpoint}},
		{"cancel without checkpoint", []string{started, "run.canceled"}, []Code{CodeTerminal}},
		{"checkpoint, cancel", []string{started, "checkpoint", "run.canceled"}, []Code{CodeTerminal}},
		{"cancel, checkpoint", []string{started, "run.canceled", "checkpoint"}, nil},
	} {
		first, all := reduced(t, SeePrivate, logOf(c.records...)).Findings()
		var got []Code
		for _, f := range first {
			got = append(got, f.Code)
		}
		if !slices.Equal(got, c.want) || int(all) != len(c.want) {
			t.Errorf("%s: got %v of %d, want %v", c.name, got, all, c.want)
		}
	}
	many := []string{started}
	for range 100 {
		many = append(many, granted)
	}
	first, all := reduced(t, SeeAll, logOf(many...)).Findings()
	if len(first) != maxFindings || all != 100 || first[0].Sequence != 2 || first[0].EventID != "e2" {
		t.Errorf("got %d of %d, the first %+v", len(first), all, first[0])
	}
}

// TestCase121UnknownType: an unknown type moves the cursor and means nothing, whatever its
// name and payload; a broken known payload and another major version are refused.
func TestCase121UnknownType(t *testing.T) {
	r := reduced(t, SeeAll, logOf(started, `vendor.future.additive {"text":"prose"}`, `approval.requested {"approval_id":"a","status":"pending"}`,
		`approval.granted {"approval_id":"a","status":"approved"}`, `Run.Completed {"status":"completed"}`, `message.delta {"message_id":"m","text":"x","new_field":{"a":1}}`))
	s := r.Snapshot()
	if s.Sequence != 6 || s.Status != "running" || s.Counts.Ignored != 3 || !s.Approvals[0].Pending || len(s.Messages) != 1 || s.Messages[0].Text != "x" {
		t.Errorf("got %+v", s)
	}
	for _, view := range []View{ViewCLI, ViewTUI, ViewJSON} {
		if text := viewOf(t, r, view); strings.Contains(text, "prose") || strings.Contains(text, "granted") {
			t.Errorf("%s shows a payload that nobody knows:\n%s", view, text)
		}
	}
	for log, want := range map[string]Code{
		logOf(started, `message.delta {"message_id":["m"]}`):                                  CodePayload,
		strings.Replace(logOf(started, "vendor.x"), "run/v1", "run/v2", 1):                    CodeEnvelope,
		logOf(started) + strings.Replace(recordOf(2, "vendor.x"), "run/v1", "run/v1.1", 1):    CodeEnvelope,
		logOf(started) + recordOf(3, "vendor.x"):                                              CodeOrder,
		logOf(started) + strings.Replace(recordOf(2, "vendor.x"), `"run_id":"r"`, `"a":1`, 1): CodeEnvelope,
	} {
		if _, err := Project(strings.NewReader(log), SeeAll); !errors.Is(err, want) {
			t.Errorf("got %v, want the class %s for\n%s", err, want, log)
		}
	}
}

// TestCase77CharactersInPieces: characters that are cut between records are not joined:
// the producer must not cut them. Bytes that are no UTF-8 stop nothing.
func TestCase77CharactersInPieces(t *testing.T) {
	for _, c := range []struct{ first, second, want string }{
		{`😀é`, `日本`, "😀é日本"}, {`\ud83d`, `\ude00`, "\ufffd\ufffd"}, {"\xf0\x9f", "\x98\x80", "\ufffd\ufffd\ufffd\ufffd"}, {`\ud83d\ude00`, "e\u0301", "😀e\u0301"},
	} {
		log := logOf(started, `message.delta {"message_id":"m","text":"`+c.first+`"}`, `message.delta {"message_id":"m","text":"`+c.second+`"}`)
		r := reduced(t, SeeAll, log)
		if got := r.Snapshot().Messages[0].Text; got != c.want {
			t.Errorf("%q and %q: got %q, want %q", c.first, c.second, got, c.want)
		}
		if text := viewOf(t, r, ViewJSON); !json.Valid([]byte(text)) || strings.ToValidUTF8(text, "!") != text {
			t.Errorf("%q and %q: the view is %q", c.first, c.second, text)
		}
	}
}

// TestSnapshotIsJSON: a snapshot is written and read again as the same.
func TestSnapshotIsJSON(t *testing.T) {
	want := reduced(t, SeePrivate, logOf(story...)).Snapshot()
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Snapshot
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v\n%s", got, want, text)
	}
}
