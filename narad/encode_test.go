package narad

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// genRecord makes a random record of a type as the table describes it, with the
// fields in random order and some that nobody knows.
func genRecord(s shape) *rapid.Generator[object] {
	return rapid.Custom(func(t *rapid.T) object {
		o := object{{"type", Quote(string(s.kind))}, {"protocolVersion", Raw(`"narad/v1"`)}}
		pair := s.lane != "workflow" && rapid.Bool().Draw(t, "workflow")
		triple := (s.lane == "session" || s.lane == "workflow") && rapid.Bool().Draw(t, "run")
		for _, f := range s.fields {
			if f.optional && rapid.Bool().Draw(t, "leave out") {
				continue
			}
			text := genField(f).Draw(t, f.name)
			o = o.with(f.name, text)
			pair = pair || text == `"workflow"`
			triple = triple || text == `"run"`
		}
		switch s.lane {
		case "session", "workflow", "run", "activity":
			scoped := string(s.kind[:strings.IndexByte(string(s.kind), '.')])
			if s.lane != "workflow" && (pair || scoped == "node" || scoped == "workflow") {
				o = o.with("workflowId", `"w"`).with("workflowSequence", `3`)
			}
			if s.lane != "run" && s.lane != "activity" && (triple || scoped == "run") {
				o = o.with("rootRunId", `"r"`).with("runId", `"q"`).with("sequence", `5`)
			}
		}
		if base := o.get("baseRevision"); base != "" {
			o = o.with("baseRevision", `6`).with("revision", `7`)
		}
		for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`x[ -~é]{0,5}`), 0, 3, rapid.ID[string]).Draw(t, "unknown") {
			o = o.with(name, genValue(2).Draw(t, "value").spell(t))
		}
		return rapid.Permutation(o).Draw(t, "order")
	})
}

func genField(f field) *rapid.Generator[string] {
	id := rapid.Custom(func(t *rapid.T) string {
		return spellText(t, rapid.StringMatching(`[a-z0-9水/"\\]{1,8}`).Draw(t, "id"))
	})
	list := func(item *rapid.Generator[string], least int) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			return "[" + strings.Join(rapid.SliceOfNDistinct(item, least, 4, rapid.ID[string]).Draw(t, "items"), ",") + "]"
		})
	}
	word := rapid.StringMatching(`"[a-z0-9]{1,6}"`)
	switch f.kind {
	case "word":
		return rapid.Map(rapid.SampledFrom(f.allowed), func(s string) string { return Quote(s).String() })
	case "text":
		return rapid.Map(rapid.String(), func(s string) string { return Quote(s).String() })
	case "or-null":
		return rapid.SampledFrom([]string{`null`, `""`, `"gone"`})
	case "time":
		return rapid.StringMatching(`"20[0-9]{2}-0[1-9]-[12][0-8]T1[0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]00:00)"`)
	case "count":
		return rapid.SampledFrom([]string{`1`, `2.0`, `3e2`, `9007199254740991`})
	case "index":
		return rapid.SampledFrom([]string{`0`, `-0`, `17`, `9007199254740991`})
	case "any":
		return rapid.Custom(func(t *rapid.T) string { return genValue(3).Draw(t, "value").spell(t) })
	case "name":
		return rapid.StringMatching(`"[a-z0-9]{1,3}(\.[a-z0-9]{1,3}){1,3}"`)
	case "words", "set":
		return list(word, 0)
	case "actions":
		return list(word, 1)
	case "list":
		return list(rapid.Custom(func(t *rapid.T) string { return genValue(2).Draw(t, "item").spell(t) }), 0)
	case "patch":
		return rapid.SampledFrom([]string{
			`[{"op":"add","path":"/a~1b/-","value":null}]`,
			`[{"op":"test","path":"/a","value":1.10},{"op":"remove","path":"/"},{"op":"replace","path":"/a//","value":{}}]`,
			`[{"op":"move","from":"/~0","path":"/constructors"},{"op":"copy","from":"/x","path":"/y","value":7,"note":[]}]`,
		})
	case "usage":
		return rapid.SampledFrom([]string{`{}`, `{"promptTokens":0}`, `{"totalTokens":3,"elapsedMs":-0.5,"x":{"y":1e400}}`})
	case "members":
		return rapid.SampledFrom([]string{`[]`, `[{"requestId":"a","decision":"x"},{"requestId":"b","toolCallId":"c","toolName":"d","toolType":"e","decision":"y","more":[1]}]`})
	case "cursor":
		return rapid.SampledFrom([]string{`{"kind":"session","sessionSequence":4}`, `{"kind":"workflow","workflowId":"w","workflowSequence":1}`, `{"kind":"run","rootRunId":"r","sequence":2,"more":1}`})
	case "source":
		return rapid.SampledFrom([]string{`{"sequence":3}`})
	}
	return id
}

// TestWhatIsReadCanBeWritten: a random record of any type is taken, written again,
// and what was written is taken as the same record.
func TestWhatIsReadCanBeWritten(t *testing.T) {
	checkRecords(t, func(t *rapid.T, _ shape, text string) { checkWritten(t, text) })
}

// checkRecords calls check with random records of all types.
func checkRecords(t *testing.T, check func(t *rapid.T, s shape, text string)) {
	rapid.Check(t, func(t *rapid.T) {
		for range 8 {
			s := rapid.SampledFrom(shapes).Draw(t, "type")
			check(t, s, genRecord(s).Draw(t, "record").text())
		}
	})
}

// checkWritten returns what is written of a record that a host may emit.
func checkWritten(t rapid.TB, text string) string {
	t.Helper()
	first, err := DecodeStrict([]byte(text))
	if err != nil {
		t.Fatalf("decode: %v\n%s", err, text)
	}
	if _, err := Decode([]byte(text)); err != nil {
		t.Fatalf("a client refuses what a host may emit: %v\n%s", err, text)
	}
	out, err := Encode(first)
	if err != nil {
		t.Fatalf("encode: %v\n%s", err, text)
	}
	second, err := DecodeStrict(out)
	if err != nil {
		t.Fatalf("decode what was written: %v\n%s\n%s", err, text, out)
	}
	for name, value := range valuesOf(first) {
		if got := valuesOf(second)[name]; !reflect.DeepEqual(got, value) {
			t.Fatalf("%s is %v, was %v\n%s\n%s", name, got, value, text, out)
		}
	}
	return string(out)
}

// valuesOf returns the exported fields of a record, embedded ones and white space
// inside free-form values resolved.
func valuesOf(rec Record) map[string]any {
	found := map[string]any{}
	var visit func(v reflect.Value, path string)
	visit = func(v reflect.Value, path string) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				visit(v.Elem(), path)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					visit(v.Field(i), path+"."+v.Type().Field(i).Name)
				}
			}
		default:
			if raw, ok := v.Interface().(Raw); ok && raw != nil {
				found[path] = string(appendRaw(nil, raw))
				return
			}
			if v.Kind() == reflect.Slice && v.Len() > 0 && v.Type() != reflect.TypeFor[[]string]() {
				for i := range v.Len() {
					visit(v.Index(i), path+"[]"+string(rune('a'+i)))
				}
				return
			}
			if !v.IsZero() && v.Kind() != reflect.Slice || v.Kind() == reflect.Slice && v.Len() > 0 {
				found[path] = v.Interface()
			}
		}
	}
	visit(reflect.ValueOf(rec), "")
	return found
}

// TestEncodeRefusesZero: a record of no fields but its kind is refused, unless the
// type needs none.
func TestEncodeRefusesZero(t *testing.T) {
	for _, s := range shapes {
		if s.kind == TypeServerHeartbeat {
			continue
		}
		if out, err := Encode(registry[s.kind].make()); refusalOf(err).Code == "" || out != nil {
			t.Errorf("%s: wrote %s, %v", s.kind, out, err)
		}
	}
}

// TestEncodeRefuses spoils one field of a record's Go value at a time, in every way
// that a program can: the record is refused, or what is written is right.
func TestEncodeRefuses(t *testing.T) {
	for _, s := range shapes {
		for i, text := range examples(t)[s.kind] {
			refused := 0
			spoil(t, text, func(rec Record, what string) {
				out, err := Encode(rec)
				if err != nil {
					refused++
					if got := refusalOf(err).Code; got != s.code() && got != CodeUnknownEvent && got != CodeInvalidPatch && got != CodeUnsafePatch {
						t.Errorf("%s, %s: refused with %v", s.kind, what, err)
					}
					return
				}
				if _, err := DecodeStrict(out); err != nil {
					t.Errorf("%s, %s was written: %v\n%s", s.kind, what, err, out)
				}
				if strings.ContainsAny(string(out), "\r\n") {
					t.Errorf("%s, %s was written in two lines: %s", s.kind, what, out)
				}
			})
			required := 0
			for _, f := range s.fields {
				if !f.optional && f.name != "graphSchemaVersion" {
					required++
				}
			}
			if refused < required {
				t.Errorf("%s, example %d: %d of its fields are required and only %d spoiled records were refused", s.kind, i, required, refused)
			}
		}
	}
}

// spoil calls check with the record once for every value it can put into a field.
func spoil(t *testing.T, text string, check func(rec Record, what string)) {
	t.Helper()
	junk := []any{
		"", "x", "run", "workflow", "session", "a\xffb", "line\nbreak",
		int64(0), int64(-1), int64(1), int64(MaxInteger), int64(MaxInteger + 1), int64(math.MinInt64),
		math.NaN(), math.Inf(1), 0.0,
		Raw(nil), Raw(""), Raw("x"), Raw(`{"a":1,"a":2}`), Raw("1 2"), Raw("[1],[2]"), Raw("\"\xff\""), Raw(" 1 "), Raw("[\n]"), Raw(`"\ud800"`), Raw("[]"), Raw("null"),
		[]Raw{Raw("1,2")}, []Raw{nil}, []Raw{Raw("1],[2")}, []Raw{Raw("{}")},
		[]string{}, []string{""}, []string{"a", "a"}, []string{"\xff"}, []string(nil),
		[]Member(nil), []Member{{"x", nil}}, []Member{{"x", Raw("]")}}, []Member{{"\xff", Raw("1")}}, []Member{{"x", Raw("1")}, {"x", Raw("2")}}, []Member{{"", Raw("1")}},
		[]MemberDecision{{}}, []MemberDecision{{RequestID: "a", Decision: "b", Extra: []Member{{"requestId", Raw("1")}}}},
		(*Usage)(nil), &Usage{}, &Usage{Extra: []Member{{"promptTokens", Raw("1")}}}, (*Cursor)(nil), &Cursor{}, &Cursor{Kind: ScopeSession, Sequence: 1, Extra: []Member{{"kind", Raw("1")}}},
	}
	for i := range fieldsOf(mustDecode(t, Decoder{Strict: true}, text)) {
		for _, value := range junk {
			rec := mustDecode(t, Decoder{Strict: true}, text)
			f := fieldsOf(rec)[i]
			v := reflect.ValueOf(value)
			if f.Kind() != v.Kind() || !v.CanConvert(f.Type()) {
				continue
			}
			f.Set(v.Convert(f.Type()))
			what := fmt.Sprintf("%s %q", f.Type(), fmt.Sprint(value))
			check(rec, what)
		}
	}
}

// fieldsOf returns the settable fields of a record, those of embedded structs too.
func fieldsOf(rec Record) []reflect.Value {
	var fields []reflect.Value
	var visit func(v reflect.Value)
	visit = func(v reflect.Value) {
		for i := range v.NumField() {
			switch f := v.Field(i); {
			case !v.Type().Field(i).IsExported():
			case f.Kind() == reflect.Struct:
				visit(f)
			default:
				fields = append(fields, f)
			}
		}
	}
	visit(reflect.ValueOf(rec).Elem())
	return fields
}

// TestEncodeRefusesKnownNames: an additional field must not say what a field of the
// type says, nor what the class must not say, even if the field itself is absent.
func TestEncodeRefusesKnownNames(t *testing.T) {
	for _, s := range shapes {
		names := []string{"type", "protocolVersion"}
		for _, f := range s.fields {
			names = append(names, f.name)
		}
		switch s.lane {
		case "control", "hydrate":
			names = append(names, "eventId", "sessionSequence", "workflowSequence", "sequence")
		case "session", "workflow", "run", "activity":
			names = append(names, "workflowId", "workflowSequence", "rootRunId", "runId", "sequence", "sourceEventId")
		}
		minimal := example(t, s.kind).without("x.example.note", "members", "input")
		for _, f := range s.fields {
			if f.optional {
				minimal = minimal.without(f.name)
			}
		}
		if s.lane == "session" || s.lane == "run" || s.lane == "activity" {
			minimal = example(t, s.kind)
		}
		for _, name := range names {
			for _, value := range []string{`{}`, `"x"`, `1`} {
				rec := mustDecode(t, Decoder{Strict: true}, minimal.text())
				*extraOf(rec) = []Member{{name, Raw(value)}}
				if out, err := Encode(rec); refusalOf(err).Path != "/"+name {
					t.Errorf("%s with an additional %s: %v\n%s", s.kind, name, err, out)
				}
			}
		}
		many := make([]Member, 40)
		for i := range many {
			many[i] = Member{"x" + string(rune('a'+i%39)), Raw("1")}
		}
		rec := mustDecode(t, Decoder{Strict: true}, minimal.text())
		*extraOf(rec) = many
		if _, err := Encode(rec); refusalOf(err).Path != "/xa" {
			t.Errorf("%s with 40 additional fields, two of one name: %v", s.kind, err)
		}
	}
}

// TestEncodeRefusesOtherKinds: a Go type stands for its own types alone.
func TestEncodeRefusesOtherKinds(t *testing.T) {
	e := Event{EventID: "1.a", Timestamp: "2026-08-05T00:00:00Z", SessionID: "s", SessionSequence: 1}
	for _, rec := range []Record{
		&Attachment{Event: e, AttachmentID: "a", Kind: TypeArtifactAdded},
		&Attachment{Event: e, AttachmentID: "a", Kind: "attachment.lost"},
		&Attachment{Event: e, AttachmentID: "a"},
		&Custom{Event: e, Name: "a.b", Value: Raw("1"), Kind: TypeSessionRaw},
		&Tracing{Event: e, Kind: TypeSessionRevision},
		&Revision{EventID: "x", Timestamp: e.Timestamp, SessionID: "s", Revision: 1, Kind: TypeMessageTextCompleted},
		&Skipped{Event: e, Kind: TypeTraceEvent},
	} {
		if out, err := Encode(rec); refusalOf(err).Code != CodeUnknownEvent {
			t.Errorf("%T of kind %q: wrote %s, %v", rec, rec.Type(), out, err)
		}
	}
}

// TestEncodeLimits: size and depth are those of a reader.
func TestEncodeLimits(t *testing.T) {
	call := func(args string) Record {
		rec := mustDecode(t, Decoder{Strict: true}, example(t, TypeToolCallStarted).text())
		rec.(*ToolCallStarted).Args = Raw(args)
		return rec
	}
	room := MaxEventBytes - len(mustEncode(t, call(`""`)))
	for _, tc := range []struct {
		name string
		args string
		want Code
	}{
		{"exactly the size", `"` + strings.Repeat("x", room) + `"`, ""},
		{"one byte more", `"` + strings.Repeat("x", room+1) + `"`, CodeTooLarge},
		{"line breaks do not count", "\n" + strings.Repeat(" ", 9000) + `"` + strings.Repeat("x", room) + `"`, ""},
		{"exponents count 25", "[" + strings.Repeat("1e5,", room/26+1) + "1]", CodeTooLarge},
		{"63 deep", strings.Repeat("[", 64) + strings.Repeat("]", 64), ""},
		{"64 deep", strings.Repeat("[", 65) + strings.Repeat("]", 65), CodeTooDeep},
	} {
		if _, err := Encode(call(tc.args)); refusalOf(err).Code != tc.want {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
	rec := mustDecode(t, Decoder{Strict: true}, example(t, TypeMessageTextDelta).text()).(*MessageTextDelta)
	rec.Delta = strings.Repeat("\x01", MaxEventBytes/6) // each becomes six bytes
	if _, err := Encode(rec); refusalOf(err).Code != CodeTooLarge {
		t.Errorf("escapes count as written: %v", err)
	}
}
