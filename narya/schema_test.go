package narya

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	"github.com/mahati-host/mahati/narad"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// contract is an OpenAPI document whose schemas judge values.
type contract struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

func ours(t *testing.T) *contract { return newContract(t, OpenAPI()) }

func newContract(t *testing.T, document []byte) *contract {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(document)))
	if err != nil {
		t.Fatalf("the document is not JSON: %v", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("contract.json", doc); err != nil {
		t.Fatal(err)
	}
	return &contract{doc.(map[string]any), compiler, map[string]*jsonschema.Schema{}}
}

// judge returns what the schema of that name says of a JSON text.
func (c *contract) judge(t rapid.TB, name, text string) error {
	t.Helper()
	if c.compiled[name] == nil {
		schema, err := c.compiler.Compile("contract.json#/components/schemas/" + name)
		if err != nil {
			t.Fatal(err)
		}
		c.compiled[name] = schema
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return c.compiled[name].Validate(v)
}

func (c *contract) schemas() map[string]any {
	return c.doc["components"].(map[string]any)["schemas"].(map[string]any)
}

// TestOpenAPIFragments: no part of the document takes the place of what another one has.
func TestOpenAPIFragments(t *testing.T) {
	seen := map[string]string{}
	note := func(kind, name, section string) {
		if other := seen[kind+" "+name]; other != "" {
			t.Errorf("%s %s is in %s and in %s", kind, name, other, section)
		}
		seen[kind+" "+name] = section
	}
	for _, section := range sections {
		text, err := fragments.ReadFile("openapi/" + section + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var one struct {
			Paths      map[string]map[string]any
			Components map[string]map[string]any
		}
		if err := json.Unmarshal(text, &one); err != nil {
			t.Fatal(err)
		}
		for path, operations := range one.Paths {
			for method := range operations {
				note(path, method, section)
			}
		}
		for kind, members := range one.Components {
			for name := range members {
				note(kind, name, section)
			}
		}
	}
	if len(seen) < 90 {
		t.Errorf("only %d parts were found", len(seen))
	}
}

// TestOpenAPIDocument: the document is one of OpenAPI 3.1 and knows exactly our types.
func TestOpenAPIDocument(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Error(err)
	}
	event := doc.Components.Schemas["Event"].Value
	known := event.Discriminator.Mapping
	if len(known) != len(Types()) || len(event.OneOf) != len(Types()) {
		t.Errorf("the document knows %d types of %d", len(known), len(Types()))
	}
	for i, kind := range Types() {
		if known[string(kind)].Ref != event.OneOf[i].Ref {
			t.Errorf("%s: mapped to %q, listed as %q", kind, known[string(kind)].Ref, event.OneOf[i].Ref)
		}
	}
}

// examples are our own events, one a line.
func examples(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestExamplesCoverEveryType(t *testing.T) {
	seen := map[Type]bool{}
	for _, text := range examples(t) {
		seen[mustDecode(t, text).Type()] = true
	}
	for _, kind := range Types() {
		if !seen[kind] {
			t.Errorf("no example of %s", kind)
		}
	}
}

// TestExamples: what is read is written as the same value, and our schema takes it.
func TestExamples(t *testing.T) {
	doc := ours(t)
	for _, text := range examples(t) {
		sameValue(t, mustEncode(t, mustDecode(t, text)), text)
		if err := doc.judge(t, "Event", text); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
}

func mustDecode(t rapid.TB, text string) Event {
	t.Helper()
	e, err := Decode([]byte(text))
	if err != nil {
		t.Fatalf("decode: %v\n%s", err, text)
	}
	return e
}

func mustEncode(t rapid.TB, e Event) string {
	t.Helper()
	data, err := Encode(e)
	if err != nil {
		t.Fatalf("encode: %v\n%+v", err, e)
	}
	return string(data)
}

// sameValue demands two JSON texts of the same value.
func sameValue(t rapid.TB, got, want string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		t.Fatalf("%v\n%s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatalf("%v\n%s", err, want)
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("other value (-want +got):\n%s\nwant %s\ngot  %s", diff, want, got)
	}
}

// TestSchemaAgreesWithTheDecoder: our schema and Decode say the same of examples with one
// value replaced or removed: of every seventh such change.
func TestSchemaAgreesWithTheDecoder(t *testing.T) { ours(t).agrees(t, 7) }

// agrees demands that the contract's schema and Decode say the same of every nth change to
// an example, but for fields of which Decode demands more.
func (c *contract) agrees(t *testing.T, n int, stricter ...string) {
	t.Helper()
	made, refused := 0, 0
	for _, text := range examples(t) {
		name := envelopeName(mustDecode(t, text).Type())
		eachMutant(t, text, func(write func() string) {
			if made++; made%n != 0 {
				return
			}
			changed := write()
			_, decoded := Decode([]byte(changed))
			judged := c.judge(t, name, changed)
			if (decoded == nil) != (judged == nil) && !beyondASchema(decoded, stricter) {
				t.Errorf("Decode says %v, the schema %v\n%s", decoded, judged, changed)
			}
			if decoded != nil {
				refused++
			}
		})
	}
	if made/n < 1000 || refused < made/n/4 || refused > made/n*19/20 {
		t.Errorf("%d of %d changes were refused: that tells little", refused, made/n)
	}
}

// beyondASchema reports whether a refusal is for what the schema leaves open: how large a
// whole number is, and the fields that are named.
func beyondASchema(err error, stricter []string) bool {
	var refusal *Invalid
	return errors.As(err, &refusal) && (strings.Contains(refusal.Rule, "64 bits") || slices.Contains(stricter, refusal.Field))
}

// odd are the values that take the place of others.
var odd = []string{
	`null`, `true`, `false`, `0`, `-1`, `1`, `7.0`, `1e1`, `0.5`, `-0.0`, `1e300`, `""`, `"x"`, `"é"`, `"idle"`, `"01"`, `"17"`,
	`"2026-02-30T00:00:00Z"`, `"2026-02-28T23:59:59.5+01:00"`, `"2026-02-28 23:59:59Z"`, `"2026-02-28t23:59:59z"`,
	`"2026-12-31T23:59:60Z"`, `"2026-12-31T22:59:60-01:00"`, `"2026-12-31T22:59:60Z"`, `"2026-12-31T23:59:61Z"`, `"2026-12-31T23:59:59+24:00"`,
	`"0F9C1D52-7C1E-4B0A-9F0E-3A5B7C9D1E2F"`, `"0f9c1d527c1e4b0a9f0e3a5b7c9d1e2f"`, `"NRY-001"`, `"NRY-0001\n"`, `"a/b"`, `"a/b\n"`, `"A/b"`,
	`[]`, `["x"]`, `[1]`, `[{}]`, `{}`, `{"a":"b"}`, `{"a":1}`,
	`"` + strings.Repeat("é", 64) + `"`, `"` + strings.Repeat("x", 65) + `"`, `"` + strings.Repeat("é", 512) + `"`, `"` + strings.Repeat("é", 513) + `"`,
	`"` + strings.Repeat("é", 4096) + `"`, `"` + strings.Repeat("é", 4097) + `"`,
}

// eachMutant shows a text with each value, at any depth, replaced by each odd one, and with
// each member removed.
func eachMutant(t *testing.T, text string, show func(write func() string)) {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	write := func() string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	var visit func(at any, set func(any))
	visit = func(at any, set func(any)) {
		for _, o := range odd {
			set(json.RawMessage(o))
			show(write)
		}
		set(at)
		switch at := at.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(at)) {
				inner := at[name]
				delete(at, name)
				show(write)
				at[name] = inner
				visit(inner, func(v any) { at[name] = v })
			}
		case []any:
			for i, inner := range at {
				visit(inner, func(v any) { at[i] = v })
			}
		}
	}
	visit(v, func(w any) { v = w })
}

func members(text string) ([]narad.Member, bool) { return narad.Raw(text).Members() }
