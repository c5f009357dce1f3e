package narya

import (
	"errors"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/narad"
)

// event is a small event with a payload.
func event(kind, payload string) string {
	return `{"id":"7","type":"` + kind + `","sessionId":"0f9c1d52-7c1e-4b0a-9f0e-3a5b7c9d1e2f","laneId":"0f9c1d52-7c1e-4b0a-9f0e-3a5b7c9d1e2f","timestamp":"2026-11-30T09:15:00Z","payload":` + payload + `}`
}

func TestRefusals(t *testing.T) {
	const turn = `"turnId":"0f9c1d52-7c1e-4b0a-9f0e-3a5b7c9d1e2f"`
	deep := strings.Repeat(`{"a":`, MaxDepth) + `1` + strings.Repeat(`}`, MaxDepth)
	for _, c := range []struct {
		name, text string
		code       InvalidCode
		field      string
	}{
		{"nothing", ``, NotJSON, ""},
		{"half", `{"id":`, NotJSON, ""},
		{"a name twice", `{"id":"1","id":"1"}`, NotJSON, ""},
		{"a name twice, deep inside", event("extension", `{"extension":"a/b","name":"n","payload":{"x":[{"y":1,"y":1}]}}`), NotJSON, ""},
		{"bytes that are no text", event("ladder-changed", "{\"notices\":[\"\xff\"]}"), NotJSON, ""},
		{"half a character", event("ladder-changed", `{"notices":["\ud800"]}`), NotJSON, ""},
		{"an array", `[]`, InvalidField, ""},
		{"no type", `{"id":"1"}`, InvalidField, "/type"},
		{"a type that is no text", `{"id":"1","type":7}`, InvalidField, "/type"},
		{"an unknown type", event("turn-vanished", `{}`), UnknownType, "/type"},
		{"too large", event("ladder-changed", `{"notices":["`+strings.Repeat("x", MaxEventBytes)+`"]}`), TooLarge, ""},
		{"too deep", event("extension", `{"extension":"a/b","name":"n","payload":`+deep+`}`), TooDeep, ""},
		{"no id", strings.Replace(event("context-pruned", `{"count":1}`), `"id":"7",`, "", 1), InvalidField, "/id"},
		{"an id with a zero in front", strings.Replace(event("context-pruned", `{"count":1}`), `"7"`, `"07"`, 1), InvalidField, "/id"},
		{"an id that is a number", strings.Replace(event("context-pruned", `{"count":1}`), `"7"`, `7`, 1), InvalidField, "/id"},
		{"no payload", `{"id":"7","type":"turn-started","timestamp":"2026-11-30T09:15:00Z"}`, InvalidField, "/payload"},
		{"a payload that is null", event("turn-started", `null`), InvalidField, "/payload"},
		{"a required field that is absent", event("turn-started", `{}`), InvalidField, "/payload/turnId"},
		{"a required field that is null", event("message-delta", `{`+turn+`,"delta":null}`), InvalidField, "/payload/delta"},
		{"an optional field that is null", event("message-delta", `{`+turn+`,"delta":"","channel":null}`), InvalidField, "/payload/channel"},
		{"a word of another list", event("lane-finished", `{"status":"ok"}`), InvalidField, "/payload/status"},
		{"too few", event("context-pruned", `{"count":0}`), InvalidField, "/payload/count"},
		{"half a one", event("context-pruned", `{"count":1.5}`), InvalidField, "/payload/count"},
		{"inside a list", event("task-list", `{"tasks":[{"content":"a","status":"pending"},{"content":"b"}]}`), InvalidField, "/payload/tasks/1/status"},
		{"inside a table", event("turn-finished", `{`+turn+`,"stopReason":"error","error":{"code":"NRY-0001","title":"","message":"","fields":{"a/b":1}}}`), InvalidField, "/payload/error/fields/a~1b"},
		{"rows above the bound", event("tool-call-receipt", `{`+turn+`,"parentToolCallId":"c","tool":"t","status":"ok","fileTouches":[`+strings.Repeat(`{"path":"a","op":"read"},`, 128)+`{"path":"a","op":"read"}]}`), InvalidField, "/payload/fileTouches"},
		{"a preview that is no object", event("tool-call-started", `{`+turn+`,"toolCallId":"c","tool":"t","input":[]}`), InvalidField, "/payload/input"},
		{"an entry of no lane", strings.Replace(event("entry-appended", `{"entryId":"0f9c1d52-7c1e-4b0a-9f0e-3a5b7c9d1e2f","kind":"system"}`), `"laneId":"0f9c1d52-7c1e-4b0a-9f0e-3a5b7c9d1e2f",`, "", 1), InvalidField, "/laneId"},
		{"tasks of no session", strings.Replace(event("task-list", `{"tasks":[]}`), `"sessionId":"0f9c1d52-7c1e-4b0a-9f0e-3a5b7c9d1e2f",`, "", 1), InvalidField, "/sessionId"},
	} {
		_, err := Decode([]byte(c.text))
		var refusal *Invalid
		if !errors.As(err, &refusal) || refusal.Code != c.code || refusal.Field != c.field || refusal.Rule == "" {
			t.Errorf("%s: got %v, want %s at %q\n%.200s", c.name, err, c.code, c.field, c.text)
		}
	}
}

// What is not known is passed over, and values of free form keep their bytes.
func TestUnknownFieldsAndBytes(t *testing.T) {
	e := mustDecode(t, event("extension", `{"later":[{}],"extension":"a/b","name":"n","payload":{ "n" : 1.10, "big":12345678901234567890,
 "s":"\u00e9"}}`))
	got := e.Payload.(*Extension)
	if want := "{ \"n\" : 1.10, \"big\":12345678901234567890,\n \"s\":\"\\u00e9\"}"; string(got.Payload) != want {
		t.Errorf("got %s, want %s", got.Payload, want)
	}
	written := mustEncode(t, e)
	if want := `"payload":{"n":1.10,"big":12345678901234567890,"s":"\u00e9"}`; !strings.Contains(written, want) {
		t.Errorf("got %s, want one line with %s", written, want)
	}
	got.Payload = narad.Raw(`{ "n" : 1.10 }`)
	if written, want := mustEncode(t, e), `"payload":{ "n" : 1.10 }`; !strings.Contains(written, want) {
		t.Errorf("got %s, want %s", written, want)
	}
}

func TestEncodeRefuses(t *testing.T) {
	good := mustDecode(t, event("context-pruned", `{"count":1}`))
	for name, spoil := range map[string]func(*Event){
		"no number":       func(e *Event) { e.ID = 0 },
		"a payload gone":  func(e *Event) { e.Payload = nil },
		"no session":      func(e *Event) { e.SessionID = "" },
		"another time":    func(e *Event) { e.Timestamp = "yesterday" },
		"no text":         func(e *Event) { e.Payload = &MonitorList{Running: []string{"\xff"}} },
		"no JSON":         func(e *Event) { e.Payload = &Extension{Extension: "a/b", Payload: narad.Raw(`{"a"}`)} },
		"less than none":  func(e *Event) { e.Payload = &ContextPruned{} },
		"larger than may": func(e *Event) { e.Payload = &MonitorList{Running: []string{strings.Repeat("x", MaxEventBytes)}} },
	} {
		e := good
		spoil(&e)
		var refusal *Invalid
		if out, err := AppendEncode([]byte("before"), e); !errors.As(err, &refusal) || string(out) != "before" {
			t.Errorf("%s: got %s, %v", name, out, err)
		}
	}
	if out, err := AppendEncode([]byte("before"), good); err != nil || !strings.HasPrefix(string(out), `before{"id":"7"`) {
		t.Errorf("got %s, %v", out, err)
	}
}

func TestParseID(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1796030000000000": 1796030000000000, "9223372036854775807": 1<<63 - 1,
		"": 0, "0": 0, "-1": 0, "+1": 0, "01": 0, " 1": 0, "1 ": 0, "1.0": 0, "0x1": 0, "1_0": 0, "9223372036854775808": 0, "١": 0,
	} {
		id, ok := ParseID(text)
		if id != want || ok != (want != 0) {
			t.Errorf("ParseID(%q): got %d %v, want %d", text, id, ok, want)
		}
		if ok && FormatID(id) != text {
			t.Errorf("FormatID(%d): got %s", id, FormatID(id))
		}
	}
}

func TestBodies(t *testing.T) {
	refused := Refuse(CodeInvalid, "%d fields", 2)
	refused.Fields = map[string]string{"b": "too long", "a/b": "\"unknown\""}
	data, err := EncodeError(refused)
	if want := `{"code":"NRY-0003","title":"Invalid fields","message":"2 fields","fields":{"a/b":"\"unknown\"","b":"too long"}}`; err != nil || string(data) != want {
		t.Errorf("got %s, %v, want %s", data, err, want)
	}
	again, err := DecodeError(data)
	if err != nil || again.Error() != "NRY-0003: 2 fields" || again.Fields["b"] != "too long" {
		t.Errorf("got %+v, %v", again, err)
	}
	if _, err := DecodeError([]byte(`{"code":"NRY-3","title":"","message":""}`)); err == nil {
		t.Error("took a code of another form")
	}
	for _, bad := range []string{``, `7`, strings.Repeat(" ", MaxEventBytes+1)} {
		if _, err := DecodeSession([]byte(bad)); err == nil {
			t.Errorf("took %.10q for a session", bad)
		}
	}
	s := Session{ID: MainLaneID("s"), Status: Idle, ClientKind: ClientAPI, CreatedAt: "2026-11-30T09:15:00Z", UpdatedAt: "2026-11-30T09:15:00Z"}
	if data, err = EncodeSession(&s); err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeSession(data); err != nil || got.ID != s.ID || got.ClientKind != ClientAPI {
		t.Errorf("got %+v, %v from %s", got, err, data)
	}
}
