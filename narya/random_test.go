package narya

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// draw returns a random value that a schema of our document takes: each optional field
// there or not, texts that are not empty, numbers near their bounds.
func (c *contract) draw(t *rapid.T, schema map[string]any) any {
	if ref, ok := schema["$ref"].(string); ok {
		return c.draw(t, c.schemas()[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any))
	}
	if words, ok := schema["enum"].([]any); ok {
		return rapid.SampledFrom(words).Draw(t, "word")
	}
	if schema["additionalProperties"] == true {
		return freeForm(t, 3)
	}
	switch schema["type"] {
	case "string":
		return drawText(t, schema)
	case "boolean":
		return true
	case "integer":
		return rapid.SampledFrom([]int64{1, 2, 10, 1 << 40}).Draw(t, "number")
	case "number":
		return rapid.SampledFrom([]float64{0, 0.1, 1e-9, 12.5, 3e21}).Draw(t, "amount")
	case "array":
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return c.draw(t, schema["items"].(map[string]any)) }), 0, 3).Draw(t, "items")
	}
	fields := map[string]any{}
	c.drawFields(t, schema, fields)
	return fields
}

func (c *contract) drawFields(t *rapid.T, schema, fields map[string]any) {
	demanded := map[string]bool{}
	for _, name := range elementsOf(schema, "required") {
		demanded[name.(string)] = true
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, inner := range properties {
		if demanded[name] || rapid.Bool().Draw(t, name) {
			fields[name] = c.draw(t, inner.(map[string]any))
		}
	}
	if more, ok := schema["additionalProperties"].(map[string]any); ok {
		for _, name := range rapid.SliceOfN(text(), 0, 3).Draw(t, "names") {
			fields[name] = c.draw(t, more)
		}
	}
}

func elementsOf(schema map[string]any, name string) []any {
	values, _ := schema[name].([]any)
	return values
}

func text() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringN(1, 20, -1), rapid.SampledFrom([]string{"\x00", "\u2028\n\r", "🪕", `"\`, strings.Repeat("ü", 600)}))
}

func drawText(t *rapid.T, schema map[string]any) string {
	switch {
	case schema["format"] == "uuid":
		return UUID(KindRun, rapid.String().Draw(t, "id"))
	case schema["format"] == "date-time":
		return rapid.SampledFrom([]string{"2026-11-30T09:15:00.250Z", "0001-01-01T00:00:00Z", "2024-02-29T23:59:59.999999999+05:30"}).Draw(t, "time")
	case schema["pattern"] != nil:
		return rapid.StringMatching(schema["pattern"].(string)).Filter(func(s string) bool { return len(s) < 19 && !strings.Contains(s, "\n") }).Draw(t, "pattern")
	}
	s := text().Draw(t, "text")
	if most, ok := schema["maxLength"].(json.Number); ok {
		n, _ := most.Int64()
		s = clip(s, int(n))
	}
	return s
}

// freeForm returns a value of free form: at the top an object.
func freeForm(t *rapid.T, depth int) map[string]any {
	fields := map[string]any{}
	for _, name := range rapid.SliceOfN(text(), 0, 3).Draw(t, "names") {
		fields[name] = rapid.SampledFrom([]any{nil, true, "x", json.Number("1.10"), json.Number("1e400"), []any{}}).Draw(t, "value")
		if depth > 0 && rapid.Bool().Draw(t, "deeper") {
			fields[name] = []any{freeForm(t, depth-1)}
		}
	}
	return fields
}

// envelopeName returns the name of a type's schema.
func envelopeName(kind Type) string {
	if kind == TypeExtension {
		return "ExtensionEvent"
	}
	return strings.TrimSuffix(payloadName(registry[kind]()), "Payload") + "Event"
}

// payloadName returns the name of a payload's schema.
func payloadName(p Payload) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", p), "*narya.")
	if name == "Extension" {
		name = "ExtensionEvent"
	}
	return name + "Payload"
}

// drawEvent returns a random event as JSON.
func (c *contract) drawEvent(t *rapid.T, kind Type) string {
	whole := c.schemas()[envelopeName(kind)].(map[string]any)
	fields := map[string]any{}
	own := whole["allOf"].([]any)[1].(map[string]any)
	c.drawFields(t, c.schemas()["EventBase"].(map[string]any), fields)
	for _, name := range elementsOf(own, "required") {
		if name != "payload" {
			fields[name.(string)] = UUID(KindSession, rapid.String().Draw(t, name.(string)))
		}
	}
	fields["type"] = string(kind)
	fields["payload"] = c.draw(t, own["properties"].(map[string]any)["payload"].(map[string]any))
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestRandomEvents: every event that our schema can say is read, written as the same
// value, and read again as the same event; and our schema takes what was written.
func TestRandomEvents(t *testing.T) {
	doc := ours(t)
	for _, kind := range Types() {
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkRandom(t, doc, kind) })
		})
	}
}

// checkRandom returns what was written of a random event.
func checkRandom(t *rapid.T, doc *contract, kind Type) string {
	drawn := doc.drawEvent(t, kind)
	if err := doc.judge(t, envelopeName(kind), drawn); err != nil {
		t.Fatalf("the schema refuses what was drawn from it: %v\n%s", err, drawn)
	}
	e := mustDecode(t, drawn)
	written := mustEncode(t, e)
	sameNumbers(t, written, drawn)
	if again := mustDecode(t, written); !cmp.Equal(again, e) {
		t.Fatalf("read as another event\n%s\n%s", written, cmp.Diff(e, again))
	}
	if err := doc.judge(t, envelopeName(kind), written); err != nil {
		t.Fatalf("%v\n%s", err, written)
	}
	return written
}

// sameNumbers is sameValue for numbers that no machine type holds.
func sameNumbers(t rapid.TB, got, want string) {
	t.Helper()
	read := func(text string) (v any) {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return v
	}
	number := cmp.Comparer(func(a, b json.Number) bool {
		x, _ := a.Float64()
		y, _ := b.Float64()
		return a == b || x == y
	})
	if diff := cmp.Diff(read(want), read(got), number); diff != "" {
		t.Fatalf("other value (-want +got):\n%s\n%s", diff, got)
	}
}
