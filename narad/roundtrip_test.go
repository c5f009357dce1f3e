package narad

import (
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TestRoundTrip decodes every example, encodes it and decodes it again: nothing is
// lost, known or unknown.
func TestRoundTrip(t *testing.T) {
	for kind, texts := range examples(t) {
		for _, text := range texts {
			for _, d := range decoders {
				first := mustDecode(t, d, text)
				if first.Type() != kind {
					t.Errorf("type %s, want %s", first.Type(), kind)
				}
				out := mustEncode(t, first)
				second := mustDecode(t, Decoder{Strict: true}, out)
				if !reflect.DeepEqual(plain(first), plain(second)) {
					t.Errorf("%s came back as another record\n%s\n%s", kind, text, out)
				}
				if again := mustEncode(t, second); again != out {
					t.Errorf("%s is encoded in two ways\n%s\n%s", kind, out, again)
				}
				checkSameFields(t, text, out)
			}
		}
	}
}

// checkSameFields demands that two objects hold the same fields. That is what pins
// unknown fields, whatever the JSON packages below think of them. Numbers and
// strings of an example are in the form that Encode writes.
func checkSameFields(t *testing.T, in, out string) {
	t.Helper()
	want, got := parseObject(t, in), parseObject(t, out)
	if len(got) != len(want) {
		t.Errorf("%d fields became %d\n%s\n%s", len(want), len(got), in, out)
	}
	for _, m := range want {
		a, b := jsontext.Value(m.Value), jsontext.Value(got.get(m.Name))
		if a.Canonicalize() != nil || b.Canonicalize() != nil || string(a) != string(b) {
			t.Errorf("%s is %s, was %s\n%s", m.Name, b, a, in)
		}
	}
}

// TestUnknownFieldsOfStructs pins what other packages need of the JSON package that
// this build uses: a struct keeps unknown fields in an embedded value. Under
// GOEXPERIMENT=jsonv2 the toolchain's own package takes its place, which may know
// other tags, and the fields would be lost without an error.
func TestUnknownFieldsOfStructs(t *testing.T) {
	const text = `{"a":1,"later":9007199254740993}`
	var v struct {
		A    int            `json:"a"`
		Rest jsontext.Value `json:",embed"`
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(&v); err != nil || string(got) != text {
		t.Errorf("got %s, %v; want %s: build without GOEXPERIMENT=jsonv2", got, err, text)
	}
}

// freeForm are values whose bytes must come out as they went in.
var freeForm = []string{
	`9007199254740993`, `1.10`, `1e400`, `-0`, `-0.0`, `1E+2`, `100.0`, `123456789012345678901234567890`,
	`"\u0041\/\ud83c\udf0a"`, `"🌊"`, `""`, `null`, `true`, `[]`, `{}`,
	`{"z":1,"a":[9007199254740993,1.10,{"n":[1e400,-0]}],"":"\n"}`,
	`[[[[1.0,"<&>\u2028"]]]]`, `{ "a" : [ 1 , 2 ] }`,
}

// TestFreeFormBytes puts them where somebody else decides the form.
func TestFreeFormBytes(t *testing.T) {
	for _, place := range []struct {
		kind Type
		name string
	}{
		{TypeToolCallStarted, "args"}, {TypeToolCallFinished, "response"},
		{TypeInterruptRequested, "input"}, {TypeInterruptResolved, "actor"},
		{TypeStateSnapshot, "state"}, {TypeUIStateSnapshot, "state"},
		{TypeViewOpened, "model"}, {TypeViewUpdated, "model"},
		{TypeSessionCustom, "value"}, {TypeNodeCustom, "value"},
		{TypeClientToolExecute, "args"}, {TypeClientToolFinish, "response"},
		{TypeRunStarted, "unknown"}, {TypeServerHeartbeat, "unknown"},
		{TypeSessionRevision, "unknown"}, {TypeGraphDelta, "unknown"},
	} {
		for _, value := range freeForm {
			text := example(t, place.kind).with(place.name, value).text()
			out := mustEncode(t, mustDecode(t, Decoder{Strict: true}, text))
			if !strings.Contains(out, `"`+place.name+`":`+value) {
				t.Errorf("%s of %s: %s became %s", place.name, place.kind, value, parseObject(t, out).get(place.name))
			}
		}
	}
	for _, value := range freeForm {
		patch := `[{"op":"add","path":"/a","value":` + value + `}]`
		text := example(t, TypeStateDelta).with("patch", patch).text()
		if out := mustEncode(t, mustDecode(t, Decoder{Strict: true}, text)); !strings.Contains(out, patch) {
			t.Errorf("patch %s became %s", patch, out)
		}
		for _, name := range []string{"nodes", "edges"} {
			list := `[` + value + `,` + value + `]`
			text := example(t, TypeGraphSnapshot).with(name, list).text()
			if out := mustEncode(t, mustDecode(t, Decoder{Strict: true}, text)); !strings.Contains(out, `"`+name+`":`+list) {
				t.Errorf("%s %s became %s", name, list, out)
			}
		}
	}
}

// TestRecordIsOneLine spreads a value over lines: a record is one line of an
// export and of a stream, and only the white space goes.
func TestRecordIsOneLine(t *testing.T) {
	const spread, want = "{\n  \"a b\": [1.10,\r\n\t\"x\\n y\"]\n}", `{"a b":[1.10,"x\n y"]}`
	for _, name := range []string{"args", "unknown"} {
		text := example(t, TypeToolCallStarted).with(name, spread).text()
		rec := mustDecode(t, Decoder{}, text)
		out := mustEncode(t, rec)
		if strings.ContainsAny(out, "\r\n") || parseObject(t, out).get(name) != want {
			t.Errorf("%s: got %q, want %q", name, out, want)
		}
		if name == "args" && rec.(*ToolCallStarted).Args.String() != spread {
			t.Errorf("encoding changed the record: %s", rec.(*ToolCallStarted).Args)
		}
	}
}

func TestOptional(t *testing.T) {
	rec := mustDecode(t, Decoder{}, example(t, TypeRunStarted).text()).(*RunStarted)
	if got := rec.Optional("x.example.note").String(); got != `{"seen":[1,null]}` {
		t.Errorf("Optional: %s", got)
	}
	if got := rec.Optional("absent"); got != nil {
		t.Errorf("Optional of an absent field: %s", got)
	}
	rec.SetOptional("commandId", Quote("c-1"))
	rec.SetOptional("x.example.note", Raw("7"))
	want := []Member{{"x.example.note", Raw("7")}, {"commandId", Raw(`"c-1"`)}}
	if !reflect.DeepEqual(rec.Extra, want) {
		t.Errorf("Extra is %s, want %s", rec.Extra, want)
	}
}

// TestDecodeCopies changes the input after decoding.
func TestDecodeCopies(t *testing.T) {
	data := []byte(example(t, TypeToolCallStarted).text())
	rec, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	before := mustEncode(t, rec)
	for i := range data {
		data[i] = 'x'
	}
	if after := mustEncode(t, rec); after != before {
		t.Errorf("the record changed with its input\n%s\n%s", before, after)
	}
}

func TestAppendEncode(t *testing.T) {
	rec := mustDecode(t, Decoder{}, example(t, TypeRunResumed).text())
	want := "data: " + mustEncode(t, rec)
	if got, err := AppendEncode([]byte("data: "), rec); err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	if got, err := AppendEncode([]byte("data: "), new(RunResumed)); err == nil || string(got) != "data: " {
		t.Errorf("a refusal left %q, %v", got, err)
	}
}
