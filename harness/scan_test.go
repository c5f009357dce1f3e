package harness

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// lineSeeds are lines that two readers of JSON could take differently, and the plain ones.
var lineSeeds = []string{
	`{"version":"fak.harness.run/v1","run_id":"r1","sequence":1,"event_id":"r1:1","type":"run.started","sensitivity":"public","payload":{"status":"running"}}`,
	`{"version":"fak.harness.run/v1","run_id":"r1","sequence":2,"event_id":"r1:2","correlation_id":"c","causation_id":"r1:1","type":"message.delta","sensitivity":"private","payload":{"message_id":"m1","role":"user","text":"a\n\"\\\/\b\f\r\té\u00e9😀"}}`,
	` { "sequence" : 18446744073709551615 , "payload" : [ 1.50 , -0 , 1e400 , {"a":{}} , [] , true , false , null ] } `,
	`{"sequence":18446744073709551616}`, `{"sequence":9999999999999999999}`, `{"sequence":1.0}`, `{"sequence":1e0}`, `{"sequence":01}`, `{"sequence":-1}`, `{"sequence":"1"}`,
	`{"Run_ID":"a","run_id":"b"}`, `{"run_id":"b","RUN_ID":"a"}`, "{\"\u017fequence\":3}", "{\"ver\u017fion\":\"x\"}", "{\"\u212aind\":1}",
	`{"payload":{"a":1},"payload":{"b":2}}`, `{"payload":null}`, `{"payload":{},"payload":null}`, `{"run_id":null}`, `{"run_id":"a","run_id":null}`,
	"{\"run_id\":\"a\xffb\"}", "{\"run_id\":\"\xed\xa0\x80\"}", "{\"a\xff\":1}", "{\"payload\":\"\xff\"}", `{"run_id":"\ud800"}`, `{"run_id":"\ud83d\ude00"}`, `{"run_id":"\ud800A"}`,
	`{"run_id":"a\ud83d\ude00b","event_id":"\ud83d\n","type":"\ud83d\ud83d","version":"\ude00"}`, `{"run_id":"\ud83d\u"}`, `{"run_id":"\ud83d\`, `{"run_id":"\ufffd"}`,
	`{"x":{"y":[{"run_id":1}]},"type":"t"}`, `{"run\u005fid":"a"}`, `{"":1}`, `null`, `[]`, `"x"`, `1`, `{}`, `{}{}`, `{},`, ``, ` `, "\xef\xbb\xbf{}", `{"a":1,}`, `{"a" 1}`, `{a:1}`, `{"a":tru}`,
	`{"payload":01}`, `{"payload":1.}`, `{"payload":.5}`, `{"payload":+1}`, `{"payload":1e}`, `{"payload":-}`, `{"payload":"\x"}`, `{"payload":"\u12g4"}`, `{"payload":"\u12"}`, "{\"payload\":\"a\nb\"}", "{\"run_id\":\"a\x01\"}", "{\"run_id\":\"\x7f\"}",
	`{"payload":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`,
	`{"steps":[{"id":"a","text":"b","status":"c"},null,{}]}`, `{"steps":null}`, `{"steps":[]}`, `{"steps":{}}`, `{"steps":[{"id":"a"}],"steps":[{"text":"b"}]}`,
	`{"retryable":true,"code":"c","message":"m"}`, `{"retryable":"true"}`, `{"input_tokens":-9223372036854775808,"output_tokens":9223372036854775807}`, `{"input_tokens":9223372036854775808}`, `{"input_tokens":-0}`, `{"input_tokens":1E2}`,
	`{"cursor":{"version":"v","run_id":"r","sequence":3,"checkpoint":"c"}}`, `{"cursor":5}`, `{"cursor":null}`,
	`{"block_id":"b","kind":"k","data": {"a" : 1.10} }`, `{"data":null}`, `{"redacted":true}`, `{"redacted":null}`,
	`{"version":null,"run_id":null,"sequence":null,"event_id":null,"correlation_id":null,"causation_id":null,"type":null,"sensitivity":null}`,
	`{"code":null,"retryable":null,"input_tokens":null,"status":nul,"text":null,"message_id":null,"steps":[null],"cursor":{"sequence":null}}`, `{"run_id":nullx}`,
	`{"approval_id":"a","prompt":"p","status":"s","scope":"x","kind":"k","summary":"s","workspace":"w","risk":"r","consequence":"c","policy_reason":"p","fak_capability_floor":"f","codex_sandbox_policy":"c"}`,
}

// FuzzScan: what the scanner takes, encoding/json takes and reads as the same value, for
// the envelope and for every payload; and each field is read by its declared name.
func FuzzScan(f *testing.F) {
	for _, seed := range lineSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		scanned(t, text, &envelope{}, func(e *envelope) any { return &e.Event })
		scanned(t, text, &Lifecycle{}, itself)
		scanned(t, text, &Message{}, itself)
		scanned(t, text, &messagePart{}, func(p *messagePart) any {
			p.Text = string(p.text)
			return &p.Message
		})
		scanned(t, text, &Block{}, itself)
		scanned(t, text, &Tool{}, itself)
		scanned(t, text, &Plan{}, itself)
		scanned(t, text, &Approval{}, itself)
		scanned(t, text, &Artifact{}, itself)
		scanned(t, text, &Failure{}, itself)
		scanned(t, text, &Usage{}, itself)
		scanned(t, text, &Checkpoint{}, itself)
	})
}

func itself[T any](v T) any { return v }

func scanned[T target](t *testing.T, text []byte, to T, value func(T) any) {
	t.Helper()
	s := scanner{text: text}
	if _, ok := s.document(to); !ok {
		return
	}
	got := value(to)
	want := reflect.New(reflect.TypeOf(got).Elem()).Interface()
	if err := json.Unmarshal(text, want); err != nil {
		t.Fatalf("the scanner takes what encoding/json refuses: %v\n%q\n%+v", err, text, got)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q\nscanned %+v\nwant    %+v", text, got, want)
	}
}

// TestScannerTakesOrdinaryText: the plain form of every type is read without encoding/json,
// so that a slow path for all would be seen.
func TestScannerTakesOrdinaryText(t *testing.T) {
	for _, v := range []target{
		&envelope{Event: Event{Version, "r", 1, "e", "c", "d", "t", Public, []byte(`{"a":[1,"x",null,{"b":2.5}]}`)}},
		&Lifecycle{"s", "r"}, &Message{"m", "r", "t \n\" é 😀"}, &Block{"b", "k", []byte(`{"a":1}`)}, &Tool{"c", "n", "s", "s"},
		&Plan{[]Step{{"a", "b", "c"}, {"d", "e", "f"}}}, &Artifact{"a", "m", "u", "n"}, &Failure{"c", "m", true}, &Usage{1, -2, 3},
		&Checkpoint{Cursor{"v", "r", 7, "c"}}, &Approval{"a", "p", "s", "x", "k", "s", "w", "r", "c", "p", "f", "c"},
	} {
		value := any(v)
		if e, ok := v.(*envelope); ok {
			value = &e.Event
		}
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		fresh := reflect.New(reflect.TypeOf(v).Elem()).Interface().(target)
		s := scanner{text: text}
		seen, ok := s.document(fresh)
		if all := uint32(1)<<len(v.fields()) - 1; !ok || seen != all {
			t.Errorf("%T: scanned %v, fields %b, want %b\n%s", v, ok, seen, all, text)
		}
		scanned(t, text, fresh, func(v target) any {
			if e, ok := v.(*envelope); ok {
				return &e.Event
			}
			return v
		})
	}
}

// TestScannerDeclines: what is doubtful is left to encoding/json.
func TestScannerDeclines(t *testing.T) {
	for _, text := range []string{
		`{"run_id":null,"run_id":"a"}`, `{"run_id":"a","run_id":"a"}`, `{"Run_id":"a"}`, "{\"\u017fequence\":1}", `{"run_id":"\ud83d"}`, `{"run_id":"\ud83d\u0041"}`, `{"run_id":"\ude00\ud83d"}`, "{\"run_id\":\"\xff\"}",
		`{"sequence":1.0}`, `{"sequence":01}`, `{} x`, `[]`, `{"run\u005fid":"a"}`, `{"payload":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`,
	} {
		s := scanner{text: []byte(text)}
		if _, ok := s.document(&envelope{}); ok {
			t.Errorf("the scanner takes %q", text)
		}
	}
}
