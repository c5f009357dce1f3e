package harness

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// checked gives what a strict reading finds, as "line code field", notes with a mark.
func checked(t *testing.T, log string) (list []string, summary Summary) {
	t.Helper()
	summary, err := Check(strings.NewReader(log), func(f Finding) error {
		text := strings.TrimSpace(fmt.Sprintf("%d %s %s", f.Line, f.Code, f.Field))
		if f.Note {
			text = "note " + text
		}
		list = append(list, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list, summary
}

const (
	finished = `run.completed {"status":"completed"}`
	stopped  = `run.canceled {"status":"canceled"}`
	asks     = `approval.requested {"approval_id":"a","status":"pending","scope":"s"}`
	grants   = `approval.resolved {"approval_id":"a","status":"approved","scope":"s"}`
)

func checkpointAt(sequence string) string {
	return `checkpoint {"cursor":{"version":"fak.harness.run/v1","run_id":"r","sequence":` + sequence + `,"checkpoint":"tok"}}`
}

// TestCheckRules: each rule of docs/harness.md, broken once, and kept beside it.
func TestCheckRules(t *testing.T) {
	for _, c := range []struct {
		name    string
		records []string
		want    []string
	}{
		{"completed", []string{started, finished}, nil},
		{"completed, checkpoint", []string{started, finished, checkpointAt("2")}, nil},
		{"canceled, checkpoint", []string{started, stopped, checkpointAt("2")}, nil},
		{"checkpoint, canceled", []string{started, checkpointAt("1"), stopped}, []string{"note 3 terminal"}},
		{"withdrawn before its start", []string{stopped, checkpointAt("1")}, nil},
		{"canceled alone", []string{started, stopped}, []string{"2 terminal"}},
		{"the log ends early", []string{started}, []string{"note 1 terminal"}},
		{"an empty log", nil, []string{"note 0 terminal"}},
		{"output after cancel", []string{started, stopped, "vendor.x", `error {"code":"c","message":"m","retryable":false}`, checkpointAt("4")}, []string{"3 after-cancel type", "4 after-cancel type"}},
		{"completed after cancel", []string{started, stopped, finished, checkpointAt("3")}, []string{"3 after-cancel type"}},
		{"canceled twice", []string{started, stopped, stopped, checkpointAt("3")}, []string{"3 lifecycle type"}},
		{"output after completed", []string{started, finished, "vendor.x"}, []string{"3 lifecycle type"}},
		{"canceled after completed", []string{started, finished, stopped}, []string{"3 lifecycle type"}},
		{"completed twice", []string{started, finished, finished}, []string{"3 lifecycle type"}},
		{"started twice", []string{started, started, finished}, []string{"2 lifecycle type"}},
		{"begins otherwise", []string{"vendor.x", started, finished}, []string{"1 lifecycle type", "2 lifecycle type"}},
		{"approval", []string{started, asks, grants, finished}, nil},
		{"resolved twice", []string{started, asks, grants, grants, finished}, []string{"4 approval payload.approval_id"}},
		{"resolved and never asked", []string{started, grants, finished}, []string{"2 approval payload.approval_id"}},
		{"asked twice", []string{started, asks, asks, grants, finished}, []string{"3 approval payload.approval_id"}},
		{"other scope", []string{started, asks, strings.Replace(grants, `"s"`, `"*"`, 1), finished}, []string{"3 approval payload.scope"}},
		{"no scope", []string{started, asks, strings.Replace(grants, `,"scope":"s"`, "", 1), finished}, nil},
		{"asked in a redacted record", []string{started, `approval.requested (private) {"redacted":true}`, grants, grants, finished}, []string{"4 approval payload.approval_id"}},
		{"open at the end", []string{started, asks, `message.delta {"message_id":"m"}`, `tool.started {"call_id":"c","name":"n"}`, finished}, []string{"note 5 lifecycle", "note 5 lifecycle", "note 5 lifecycle"}},
		{"message", []string{started, `message.started {"message_id":"m"}`, `message.delta {"message_id":"m"}`, `message.completed {"message_id":"m"}`, `message.completed {"message_id":"n"}`, finished}, nil},
		{"message goes on", []string{started, `message.completed {"message_id":"m"}`, `message.delta {"message_id":"m"}`, finished}, []string{"3 lifecycle payload.message_id"}},
		{"message starts late", []string{started, `message.delta {"message_id":"m"}`, `message.started {"message_id":"m"}`, `message.completed {"message_id":"m"}`, finished}, []string{"3 lifecycle payload.message_id"}},
		{"tool", []string{started, `tool.started {"call_id":"c","name":"n"}`, `tool.completed {"call_id":"c","name":"n"}`, `tool.started {"call_id":"c","name":"n"}`, `tool.completed {"call_id":"c","name":"n"}`, `tool.completed {"call_id":"d","name":"n"}`, finished}, nil},
		{"tool twice", []string{started, `tool.started {"call_id":"c","name":"n"}`, `tool.started {"call_id":"c","name":"n"}`, `tool.completed {"call_id":"c","name":"n"}`, `tool.completed {"call_id":"c","name":"n"}`, finished}, []string{"3 lifecycle payload.call_id", "5 lifecycle payload.call_id"}},
		{"checkpoint of another run", []string{started, strings.Replace(checkpointAt("1"), `"r"`, `"q"`, 1), finished}, []string{"2 checkpoint payload.cursor.run_id"}},
		{"checkpoint of another protocol", []string{started, strings.Replace(checkpointAt("1"), `run/v1`, `run/v2`, 1), finished}, []string{"2 checkpoint payload.cursor.version"}},
		{"checkpoint ahead", []string{started, checkpointAt("3"), finished}, []string{"2 checkpoint payload.cursor.sequence"}},
		{"checkpoint of itself", []string{started, checkpointAt("2"), finished}, nil},
		{"empty token", []string{started, strings.Replace(checkpointAt("1"), "tok", "", 1), finished}, []string{"note 2 checkpoint payload.cursor.checkpoint"}},
		{"unclassified", []string{started, `vendor.x ()`, `vendor.x (Public)`, finished}, []string{"2 sensitivity sensitivity", "3 sensitivity sensitivity"}},
		{"no payload", []string{started, "usage", finished}, []string{"2 field payload"}},
		{"null payload", []string{started, "usage null", finished}, []string{"2 field payload.input_tokens", "2 field payload.output_tokens"}},
		{"no payload of an unknown type", []string{started, "vendor.x", `vendor.y "text"`, finished}, nil},
		{"fields", []string{started, `ui.block {"block_id":""}`, `artifact.published {"artifact_id":"a","media_type":null,"uri":"u"}`, `plan.updated {"steps":[{"id":"a","text":"t"}]}`, finished},
			[]string{"2 field payload.kind", "2 field payload.block_id", "3 field payload.media_type", "4 field payload.steps[0].status"}},
		{"broken payload", []string{started, `usage {"input_tokens":"1","output_tokens":2}`, finished}, []string{"2 payload payload.input_tokens"}},
		{"redacted", []string{started, `usage (private) {"redacted":true}`, `message.delta (secret) {"redacted":true}`, finished}, nil},
		{"folded in a payload", []string{started, `usage {"Input_Tokens":1,"input_tokens":1,"output_tokens":2}`, finished}, []string{"2 folded-key payload.input_tokens"}},
		{"folded beyond ASCII", []string{started, "run.x {}", "message.completed {\"message_id\":\"m\",\"\u017fcope\":1,\"role\":\"x\",\"te\u212at\":1,\"ro\u017fe\":1}", finished}, nil},
		{"repeated below", []string{started, `vendor.x {"a":[{"b":1,"b":2}]}`, finished}, []string{"2 repeated-key"}},
		{"no UTF-8", []string{started, "vendor.x {\"a\":\"\xff\"}", `vendor.x {"a":"\ud800"}`, finished}, []string{"2 utf8", "3 utf8"}},
	} {
		got, summary := checked(t, logOf(c.records...))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		notes := 0
		for _, text := range c.want {
			if strings.HasPrefix(text, "note ") {
				notes++
			}
		}
		if want := (Summary{uint64(len(c.records)), uint64(len(c.records)), uint64(len(c.records)), uint64(len(c.want) - notes), uint64(notes)}); summary != want {
			t.Errorf("%s: got %+v, want %+v", c.name, summary, want)
		}
	}
}

// TestCheckLines: what is wrong with lines and their order is told for each, and one fault
// does not bring others with it.
func TestCheckLines(t *testing.T) {
	first, last := recordOf(1, started), recordOf(2, finished)
	for _, c := range []struct {
		name, log string
		want      []string
	}{
		{"CRLF", first + "\r\n" + last + "\r\n", nil},
		{"byte order mark", "\xef\xbb\xbf" + first + "\n" + last, []string{"1 json-syntax"}},
		{"blank", first + "\n\n \n" + last + "\n\n", []string{"2 json-syntax", "3 json-syntax", "5 json-syntax"}},
		{"a line that cannot be read may be the one that is missing", first + "\n{\n" + recordOf(3, finished), []string{"2 json-syntax"}},
		{"and not two of them", first + "\n{\n" + recordOf(4, finished), []string{"2 json-syntax", "3 order sequence"}},
		{"too long", first + "\n" + strings.Repeat("x", 2<<20) + "\n" + recordOf(3, finished), []string{"2 line-length"}},
		{"gap", first + "\n" + recordOf(5, "vendor.x") + "\n" + recordOf(6, finished), []string{"2 order sequence"}},
		{"back", first + "\n" + recordOf(2, "vendor.x") + "\n" + recordOf(1, "vendor.x") + "\n" + recordOf(3, finished), []string{"3 order sequence", "3 event-id event_id"}},
		{"event id again", first + "\n" + strings.Replace(last, `"e2"`, `"e1"`, 1), []string{"2 event-id event_id"}},
		{"other run", first + "\n" + strings.Replace(recordOf(2, "vendor.x"), `"r"`, `"q"`, 1) + "\n" + last, []string{"2 order run_id"}},
		{"other version", first + "\n" + strings.Replace(last, `run/v1`, `run/v2`, 1), []string{"2 envelope version"}},
		{"nothing in it", first + "\n{}\n" + last, []string{"2 envelope version", "2 envelope run_id", "2 envelope sequence", "2 envelope event_id", "2 envelope type"}},
		{"other type", first + "\n" + strings.Replace(last, `:2,`, `:"2",`, 1), []string{"2 json-type sequence", "note 2 terminal"}},
		{"folded", first + "\n" + strings.Replace(last, `"type"`, `"TYPE"`, 1), []string{"2 folded-key type"}},
		{"folded beyond ASCII", first + "\n" + strings.Replace(last, `"version"`, "\"ver\u017fion\"", 1), []string{"2 folded-key version"}},
		{"repeated", first + "\n" + strings.Replace(last, `"type"`, `"type":"x","type"`, 1), []string{"2 repeated-key"}},
		{"unknown field", first + "\n" + strings.Replace(last, `"type"`, `"x":[],"type"`, 1), nil},
		{"too deep", first + "\n" + recordOf(2, "vendor.x "+nested(10_001)) + "\n" + recordOf(3, finished), []string{"2 json-syntax"}},
	} {
		got, _ := checked(t, c.log)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestCheckEnds: an error of the reader, or of whom the findings go to, ends the reading.
func TestCheckEnds(t *testing.T) {
	gone := errors.New("gone")
	_, err := Check(io.MultiReader(strings.NewReader(logOf(started)), iotest.ErrReader(gone)), func(Finding) error { return nil })
	if !errors.Is(err, gone) || !errors.Is(err, CodeIO) {
		t.Errorf("got %v", err)
	}
	n := 0
	_, err = Check(strings.NewReader("\n\n\n"), func(Finding) error { n++; return gone })
	if !errors.Is(err, gone) || n != 1 {
		t.Errorf("got %v after %d findings", err, n)
	}
}

// TestCheckMemory: of a record that was read nothing is kept but a part of its id's hash.
func TestCheckMemory(t *testing.T) {
	const n = 100_000
	log := mixed(n)
	log.record = func(i int) (string, string) { return "vendor.progress", `{"text":"a payload that nobody keeps"}` }
	before, most := alive(), uint64(0)
	log.each = func(at int) {
		if at == n-1 {
			most = alive()
		}
	}
	summary, err := Check(log, func(Finding) error { return nil })
	if err != nil || summary.Records != n {
		t.Fatalf("%+v, %v", summary, err)
	}
	if each := (float64(most) - float64(before)) / n; each > 100 {
		t.Errorf("%.0f bytes are alive for each record", each)
	}
}
