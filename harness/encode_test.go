package harness

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// TestEncode: the fields stand in the contract's order, empty optional ones are left out, and
// nothing is escaped that JSON does not demand; the payload's bytes are its producer's.
func TestEncode(t *testing.T) {
	for _, c := range []struct {
		event Event
		want  string
	}{
		{Event{Version, "r", 1, "e", "", "", "t", "", nil}, `{"version":"fak.harness.run/v1","run_id":"r","sequence":1,"event_id":"e","type":"t"}`},
		{
			Event{Version, "r", 18446744073709551615, "e", "c", "d", MessageDelta, Private, []byte(`{"text":"<&>","n":1.10,"u":"\u00e9"}`)},
			`{"version":"fak.harness.run/v1","run_id":"r","sequence":18446744073709551615,"event_id":"e","correlation_id":"c","causation_id":"d","type":"message.delta","sensitivity":"private","payload":{"text":"<&>","n":1.10,"u":"\u00e9"}}`,
		},
		{Event{Version, "<r\n\"\u2028é>", 1, "e\xff", "", "", "t", Public, []byte("{\n\t\"a\" : [ 1,\r\n 2.50 ] }\n")}, "{\"version\":\"fak.harness.run/v1\",\"run_id\":\"<r\\n\\\"\u2028é>\",\"sequence\":1,\"event_id\":\"e\ufffd\",\"type\":\"t\",\"sensitivity\":\"public\",\"payload\":{\"a\":[1,2.50]}}"},
		{Event{Version, "r", 1, "e", "", "", "t", Public, []byte("null")}, `{"version":"fak.harness.run/v1","run_id":"r","sequence":1,"event_id":"e","type":"t","sensitivity":"public","payload":null}`},
	} {
		got, err := Encode(c.event)
		if err != nil || string(got) != c.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
		}
		prefix := []byte("before ")
		if appended, err := c.event.AppendLine(prefix); err != nil || string(appended) != "before "+c.want {
			t.Errorf("appended: %s, %v", appended, err)
		}
	}
	sound := Event{Version, "r", 1, "e", "", "", "t", Public, nil}
	for want, change := range map[Code]func(*Event){
		CodeEnvelope: func(e *Event) { e.RunID = "" },
		CodeSyntax:   func(e *Event) { e.Payload = []byte(`{"a":}`) },
		CodeUTF8:     func(e *Event) { e.Payload = []byte("\"\xff\"") },
		CodeLength:   func(e *Event) { e.Payload = []byte(`"` + strings.Repeat("x", MaxLineBytes) + `"`) },
	} {
		e := sound
		change(&e)
		if line, err := e.AppendLine([]byte("x")); !errors.Is(err, want) || string(line) != "x" {
			t.Errorf("got %.40s and %v, want the class %s", line, err, want)
		}
	}
}

// TestDecodeCopies: a record does not change with the bytes that it was read from.
func TestDecodeCopies(t *testing.T) {
	line := []byte(recordOf(1, `ui.block {"block_id":"b","data":{"a":1}}`))
	event, err := Decode(line)
	if err != nil {
		t.Fatal(err)
	}
	for i := range line {
		line[i] = 'x'
	}
	if want := (Event{Version, "r", 1, "e1", "", "", UIBlock, Public, []byte(`{"block_id":"b","data":{"a":1}}`)}); !reflect.DeepEqual(event, want) {
		t.Errorf("got %+v, want %+v", event, want)
	}
}
