package narad

import (
	"strings"
	"testing"
	"unsafe"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// ownSchemas are ours, by type.
type ownSchemas map[Type]*jsonschema.Schema

func loadOwnSchemas(t *testing.T) ownSchemas {
	t.Helper()
	list := ownSchemas{}
	for _, kind := range Types() {
		list[kind] = compileSchema(t, kind)
	}
	return list
}

func compileSchema(t *testing.T, types ...Type) *jsonschema.Schema {
	t.Helper()
	text, ok := Schema(types...)
	if !ok {
		t.Fatalf("no schema for %q", types)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("narad.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("narad.json")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return compiled
}

func (s ownSchemas) judge(t rapid.TB, kind Type, text string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return s[kind].Validate(v)
}

// beyondASchema reports whether a refusal is for something that no schema can say: one
// number that must follow another.
func beyondASchema(err error) bool {
	return strings.Contains(refusalOf(err).Rule, "baseRevision") || strings.Contains(refusalOf(err).Rule, "names what the graph shows")
}

// TestSchemaAgreesWithTheDecoder: our schemas and DecodeStrict say the same of every
// example and of every eleventh change to one; make reference looks at all of them.
func TestSchemaAgreesWithTheDecoder(t *testing.T) {
	ours, made := loadOwnSchemas(t), 0
	for kind, texts := range examples(t) {
		for _, text := range texts {
			ours.agree(t, kind, text, "as it is")
		}
	}
	eachMutant(t, func(s shape, changed object, what string) {
		if made++; made%11 == 0 {
			ours.agree(t, s.kind, changed.text(), what)
		}
	})
}

// agree demands that the schema and the decoder say the same, and returns what the schema
// says.
func (s ownSchemas) agree(t *testing.T, kind Type, text, what string) error {
	t.Helper()
	_, decoded := DecodeStrict([]byte(text))
	judged := s.judge(t, kind, text)
	if (decoded == nil) != (judged == nil) && (judged != nil || !beyondASchema(decoded)) {
		t.Errorf("%s, %s: the decoder says %v, the schema %v\n%s", kind, what, decoded, judged, text)
	}
	return judged
}

// TestSchemaTakesWhatIsWritten: the schema takes what Encode writes, whatever the record.
func TestSchemaTakesWhatIsWritten(t *testing.T) {
	ours := loadOwnSchemas(t)
	checkRecords(t, func(rt *rapid.T, s shape, text string) {
		out := checkWritten(rt, text)
		if err := ours.judge(rt, s.kind, out); err != nil {
			rt.Fatalf("%s: %v\n%s", s.kind, err, out)
		}
	})
}

// TestWholeSchema: the document of all types judges each by its own schema.
func TestWholeSchema(t *testing.T) {
	whole := ownSchemas{"": compileSchema(t)}
	for kind, texts := range examples(t) {
		for _, text := range texts {
			if err := whole.judge(t, "", text); err != nil {
				t.Errorf("%s: %v\n%s", kind, err, text)
			}
			spoilt := strings.Replace(text, `"protocolVersion":"narad/v1"`, `"protocolVersion":"narad/v2"`, 1)
			if whole.judge(t, "", spoilt) == nil {
				t.Errorf("the whole schema takes another protocol\n%s", spoilt)
			}
		}
	}
	for _, text := range []string{`7`, `{}`, `{"type":"run.vanished","protocolVersion":"narad/v1"}`} {
		if whole.judge(t, "", text) == nil {
			t.Errorf("the whole schema takes %s", text)
		}
	}
	if _, ok := Schema("run.vanished"); ok {
		t.Error("there is a schema of a type that narad/v1 lacks")
	}
}

// TestReadingStaysSmall: a schema's part of a coder leaves a Reader's room what it was.
func TestReadingStaysSmall(t *testing.T) {
	if size := unsafe.Sizeof(reading{}); size > 512 {
		t.Errorf("a reading has %d bytes, want at most 512, for which the allocator keeps no header", size)
	}
}
