package harness

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// padded makes a record of a given length out of one.
func padded(record string, bytes int) string {
	return record + strings.Repeat(" ", bytes-len(record))
}

// TestBadInput: everything that can be wrong with the bytes of a log ends with its class
// and line, and everything that is only odd is taken.
func TestBadInput(t *testing.T) {
	first, second := recordOf(1, started), recordOf(2, "vendor.x")
	depth := func(n int) string { return recordOf(2, "vendor.x "+nested(n)) }
	for _, c := range []struct {
		name, log string
		want      Code
		line      int
	}{
		{"nothing", "", "", 0},
		{"no end of the last line", first + "\n" + second, "", 0},
		{"CRLF", first + "\r\n" + second + "\r\n", "", 0},
		{"CR CR LF", first + "\r\r\n", "", 0},
		{"CR alone is no end", first + "\r" + second, CodeSyntax, 1},
		{"white space around", " \t" + first + " \r", "", 0},
		{"blank line in the middle", first + "\n\n" + second + "\n", CodeSyntax, 2},
		{"blank line at the end", first + "\n\n", CodeSyntax, 2},
		{"line of spaces", first + "\n  \n", CodeSyntax, 2},
		{"byte order mark", "\xef\xbb\xbf" + first, CodeSyntax, 1},
		{"comment", first + "// x\n", CodeSyntax, 1},
		{"two records on a line", first + second, CodeSyntax, 1},
		{"array", "[" + first + "]", CodeType, 1},
		{"text", `"x"`, CodeType, 1},
		{"null", "null\n", CodeEnvelope, 1},
		{"longest line", padded(first, MaxLineBytes) + "\n" + second, "", 0},
		{"longest line with CR", padded(first, MaxLineBytes-1) + "\r\n" + second, "", 0},
		{"longest line without end", padded(first, MaxLineBytes), "", 0},
		{"a byte too long", padded(first, MaxLineBytes+1) + "\n" + second, CodeLength, 1},
		{"a byte too long with CR", padded(first, MaxLineBytes) + "\r\n" + second, CodeLength, 1},
		{"a byte too long without end", padded(first, MaxLineBytes+1), CodeLength, 1},
		{"much too long", first + "\n" + strings.Repeat("x", 3<<20) + "\n" + second, CodeLength, 2},
		{"deep", first + "\n" + depth(9_999), "", 0},
		{"too deep", first + "\n" + depth(10_000), CodeSyntax, 2},
		{"much too deep", first + "\n" + depth(400_000), CodeSyntax, 2},
		{"invalid UTF-8 in a text", first + "\n" + recordOf(2, "message.delta {\"message_id\":\"\xff\",\"text\":\"\xc0\xaf\"}"), "", 0},
		{"repeated key", first + "\n" + strings.Replace(second, `"type":`, `"type":"usage","type":`, 1), "", 0},
		{"repeated key, the last counts", first + "\n" + strings.Replace(second, `}`, `,"sequence":7}`, 1), CodeOrder, 2},
		{"folded key", strings.Replace(first, `"run_id"`, `"RUN_ID"`, 1), "", 0},
		{"sequence 1.0", strings.Replace(first, `:1,`, `:1.0,`, 1), CodeType, 1},
		{"sequence 1e0", strings.Replace(first, `:1,`, `:1e0,`, 1), CodeType, 1},
		{"sequence as text", strings.Replace(first, `:1,`, `:"1",`, 1), CodeType, 1},
		{"sequence -1", strings.Replace(first, `:1,`, `:-1,`, 1), CodeType, 1},
		{"sequence 2^64", strings.Replace(first, `:1,`, `:18446744073709551616,`, 1), CodeType, 1},
		{"sequence 2^64-1", strings.Replace(first, `:1,`, `:18446744073709551615,`, 1), CodeOrder, 1},
		{"sequence 01", strings.Replace(first, `:1,`, `:01,`, 1), CodeSyntax, 1},
		{"tokens 2^63", logOf(started, `usage {"input_tokens":9223372036854775808}`), CodePayload, 2},
		{"tokens 1.5", logOf(started, `usage {"input_tokens":1.5}`), CodePayload, 2},
		{"control byte in a text", strings.Replace(first, `"e1"`, "\"e\x011\"", 1), CodeSyntax, 1},
		{"a gap, then what is no JSON", first + "\n" + recordOf(3, "x") + "\n}\n", CodeSyntax, 3},
		{"a gap, then another type", first + "\n" + recordOf(3, "x") + "\n[]\n", CodeType, 3},
		{"a gap, then a line too long", first + "\n" + recordOf(3, "x") + "\n" + strings.Repeat(" ", 2<<20), CodeLength, 3},
		{"a gap, then another", first + "\n" + recordOf(3, "x") + "\n" + recordOf(9, "x"), CodeOrder, 2},
		{"a broken payload, then what is no JSON", logOf(started, `usage 5`) + "{", CodeSyntax, 3},
		{"a broken payload, then a gap", logOf(started, `usage 5`) + recordOf(9, "x"), CodePayload, 2},
	} {
		againstModel(t, []byte(c.log))
		for way, in := range map[string]io.Reader{"whole": strings.NewReader(c.log), "in pieces": iotest.HalfReader(strings.NewReader(c.log))} {
			_, err := Project(in, SeePublic)
			var refusal *Error
			if c.want == "" && err == nil {
				continue
			}
			if !errors.Is(err, c.want) || !errors.As(err, &refusal) || refusal.Line != c.line {
				t.Errorf("%s, %s: got %v, want the class %q in line %d", c.name, way, err, c.want, c.line)
			}
		}
	}
}

// TestReaderThatFails: an error of the reader is told as such, wherever it comes, also when
// what came before it is no whole line or the next record.
func TestReaderThatFails(t *testing.T) {
	broken := errors.New("the disk is gone")
	for _, before := range []string{"", recordOf(1, started), recordOf(1, started) + "\n", recordOf(1, started) + "\n{", recordOf(3, started) + "\n", strings.Repeat("x", 2<<20)} {
		in := io.MultiReader(strings.NewReader(before), iotest.ErrReader(broken))
		if _, err := Project(in, SeeAll); !errors.Is(err, broken) || !errors.Is(err, CodeIO) {
			t.Errorf("after %.80q: got %v", before, err)
		}
	}
}

// TestReader: records come one by one, whole, until the log ends or is wrong, and then
// nothing more.
func TestReader(t *testing.T) {
	log := logOf(story...)
	events := eventsOf(t, log)
	if len(events) != len(story) || events[2].Payload.String() != `{"message_id":"m1","text":"héllo "}` || events[2].Type != MessageDelta {
		t.Errorf("got %d records, the third %+v", len(events), events[2])
	}
	in := NewReader(strings.NewReader(logOf(started) + recordOf(3, "x") + "\n" + recordOf(2, "x")))
	if _, err := in.Next(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if event, err := in.Next(); !errors.Is(err, CodeOrder) || event.RunID != "" || in.Line() != 2 {
			t.Errorf("got %+v, %v at line %d", event, err, in.Line())
		}
	}
}

// TestCase119RecordsComeAsTheyAreWritten: of a log that is still written, each record is there
// when its line is: no reader waits for more.
func TestCase119RecordsComeAsTheyAreWritten(t *testing.T) {
	lines := strings.SplitAfter(logOf(story...), "\n")
	written := 0
	in := NewReader(readerFunc(func(to []byte) (int, error) {
		if written == len(story) {
			return 0, io.EOF
		}
		written++
		return copy(to, lines[written-1]), nil
	}))
	for i := range story {
		event, err := in.Next()
		if err != nil || event.Sequence != uint64(i+1) || written != i+1 {
			t.Fatalf("record %d: got %+v, %v when %d were written", i+1, event, err, written)
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(to []byte) (int, error) { return f(to) }

// TestErrorText: an error names line, sequence, event, field, what was expected and the rule,
// and of the log's own texts nothing but short, quoted ids.
func TestErrorText(t *testing.T) {
	hostile := strings.Repeat("\x1b[31m", 200)
	for _, c := range []struct{ log, want string }{
		{logOf(started) + recordOf(3, "x"), `order: line 2, sequence 3, event "e3", sequence: sequences count from 1 without a gap (expected "2")`},
		{logOf(started) + strings.Replace(recordOf(2, "x"), `"r"`, `"q"`, 1), `order: line 2, sequence 2, event "e2", run_id: a log has the records of one run (expected "r")`},
		{logOf(started, `usage {"input_tokens":"PAYLOAD"}`), `payload: line 2, sequence 2, event "e2", payload.input_tokens: this is no payload of usage`},
		{logOf(started, `message.delta {"message_id":{"PAYLOAD":1}}`), `payload: line 2, sequence 2, event "e2", payload.message_id: this is no payload of message.delta`},
		{strings.Replace(logOf(started), "run/v1", "run/v9", 1), `envelope: line 1, sequence 1, event "e1", version: the protocol's version is compared whole (expected "fak.harness.run/v1")`},
		{strings.Replace(logOf(started), `:1,`, `:1.5,`, 1), `json-type: line 1, sequence: a number cannot stand here`},
		{"[]", `json-type: line 1: a record is a JSON object, not an array`},
	} {
		_, err := Project(strings.NewReader(c.log), SeeAll)
		if err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	_, err := Project(strings.NewReader(strings.Replace(recordOf(2, "x"), `"e2"`, `"`+strings.ReplaceAll(hostile, "\x1b", `\u001b`)+`"`, 1)), SeeAll)
	if err == nil || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 600 {
		t.Errorf("got %q", err)
	}
	if CodeOf(err) != CodeOrder || CodeOf(io.EOF) != "" || CodeOf(nil) != "" {
		t.Errorf("the class of %v is %q", err, CodeOf(err))
	}
}

// TestMemory: reading a log holds one line and what the log says, however long the log is:
// of records that say nothing, as many as there are.
func TestMemory(t *testing.T) {
	short, long := peak(quiet(2_000)), peak(quiet(60_000))
	if allowed := short + 256<<10; long > allowed {
		t.Errorf("alive at most: %.0f bytes in a log of 2,000 records, %.0f in one of 60,000", short, long)
	}
	broken := quiet(60_000)
	broken.record = func(i int) (string, string) {
		if i == 3 {
			return "usage", `"broken"`
		}
		return "message.delta", `{"message_id":"m","text":"words that are dropped after the error"}`
	}
	if after := peak(broken); after > short+256<<10 {
		t.Errorf("alive at most: %.0f bytes after a record that ends the projection", after)
	}
}
