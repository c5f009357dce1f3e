package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

// TestHarnessViewOnATerminal: text of a log neither moves the cursor nor begins a line of
// its own where somebody reads it, and is whole where a program does.
func TestHarnessViewOnATerminal(t *testing.T) {
	log := t.TempDir() + "/log.jsonl"
	record := `{"version":"fak.harness.run/v1","run_id":"r\n","sequence":1,"event_id":"e","type":"message.delta","sensitivity":"public",` +
		`"payload":{"message_id":"m\r","text":"\u001b[31mred\nusage 9/9\u009b\u202e\tx"}}`
	if err := os.WriteFile(log, []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	for terminal, want := range map[bool]string{
		true:  `run r\n ` + "\n" + `message m\r: \x1b[31mred\nusage 9/9\u009b\u202e` + "\tx\nusage 0/0\n",
		false: "run r\n \nmessage m\r: \x1b[31mred\nusage 9/9\u009b\u202e\tx\nusage 0/0\n",
	} {
		var out bytes.Buffer
		a := &app{Process: Process{Stdout: &out, Stderr: &out}, out: console{Writer: &out, terminal: terminal}}
		if err := a.project(log, "cli", false); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("terminal %v: got %q, want %q", terminal, out.String(), want)
		}
	}
}

// TestHarnessJSONOnATerminal: the JSON view stays the same value, and nothing in it acts on a
// terminal.
func TestHarnessJSONOnATerminal(t *testing.T) {
	log := t.TempDir() + "/log.jsonl"
	record := `{"version":"fak.harness.run/v1","run_id":"r","sequence":1,"event_id":"e","type":"ui.block","sensitivity":"public",` +
		"\"payload\":{\"block_id\":\"\u009b31m\u202e\U000e0041\x7f\",\"kind\":\"é\",\"data\":[\"\u009b\U000e0041\"]}}"
	if err := os.WriteFile(log, []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	shown := map[bool]string{}
	for _, terminal := range []bool{true, false} {
		var out bytes.Buffer
		a := &app{Process: Process{Stdout: &out, Stderr: &out}, out: console{Writer: &out, terminal: terminal}}
		if err := a.project(log, "json", false); err != nil {
			t.Fatal(err)
		}
		shown[terminal] = out.String()
	}
	var plain, escaped any
	if err := errors.Join(json.Unmarshal([]byte(shown[false]), &plain), json.Unmarshal([]byte(shown[true]), &escaped)); err != nil || !reflect.DeepEqual(plain, escaped) {
		t.Errorf("%v: got %s\nwant %s", err, shown[true], shown[false])
	}
	if strings.ContainsFunc(shown[true], harmful) || !strings.ContainsFunc(shown[false], harmful) {
		t.Errorf("got %q and, where no terminal is, %q", shown[true], shown[false])
	}
}

// TestHarnessViewIsNotTaken: a view that could not be written whole is a failure.
func TestHarnessViewIsNotTaken(t *testing.T) {
	log := t.TempDir() + "/log.jsonl"
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, view := range []string{"cli", "tui", "json"} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		var told strings.Builder
		code := Main([]string{"harness", "protocol", "project", "--input", log, "--view", view}, Process{Stdin: os.Stdin, Stdout: w, Stderr: &told, Getenv: os.Getenv})
		if code != exitFailed || !strings.HasPrefix(told.String(), "mahati: io: write the view: ") {
			t.Errorf("%s: got exit code %d and %q", view, code, told.String())
		}
		if _, err := w.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("the reader is not gone: %v", err)
		}
		w.Close()
	}
}
