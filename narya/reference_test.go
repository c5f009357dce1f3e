package narya

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/mahati-host/mahati/internal/referencetest"
	"pgregory.net/rapid"
)

// mapped are the discriminator's entries as the published document has them: objects,
// where OpenAPI wants texts.
var mapped = regexp.MustCompile(`(?m)^( {10}[a-z-]+:)\n {12}\$ref: ('#/components/schemas/\w+Event')$`)

func published(t *testing.T) *contract {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(referencetest.Dir(t), "narya", "narya-events.openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(mapped.ReplaceAll(text, []byte("$1 $2")))
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return newContract(t, data)
}

// TestReferenceExamples: every example of the published document is read, and written as
// the same value.
func TestReferenceExamples(t *testing.T) {
	seen := 0
	for name, schema := range published(t).schemas() {
		for i, example := range elementsOf(schema.(map[string]any), "examples") {
			data, err := json.Marshal(example)
			if err != nil {
				t.Fatal(err)
			}
			seen++
			t.Run(fmt.Sprint(name, i), func(t *testing.T) { checkExample(t, name, string(data)) })
		}
	}
	if seen < 70 {
		t.Errorf("only %d examples were found", seen)
	}
}

// parts makes an empty object for the schemas that are no events.
var parts = map[string]func() object{
	"Error": func() object { return new(Error) }, "Session": func() object { return new(Session) },
	"FileTouch": func() object { return new(FileTouch) }, "TokenUsage": func() object { return new(TokenUsage) },
	"WorkflowStep": func() object { return new(WorkflowStep) }, "Task": func() object { return new(Task) },
	"PendingInputReference": func() object { return new(PendingInput) }, "Warming": func() object { return new(Warming) },
	"CacheSpend": func() object { return new(CacheSpend) },
}

func checkExample(t *testing.T, name, text string) {
	var empty object
	switch {
	case strings.HasSuffix(name, "Event"):
		sameValue(t, mustEncode(t, mustDecode(t, text)), text)
		return
	case name == "EventBase":
		e, c := Event{}, &coder{}
		c.in, _ = members(text)
		if e.envelope(c, TypeTurnStarted); c.err != nil || e.ID == 0 || e.SessionID == "" {
			t.Errorf("%v\n%s", c.err, text)
		}
		return
	case strings.HasSuffix(name, "Payload"):
		for _, make := range payloads {
			if name == payloadName(make()) {
				empty = make()
			}
		}
	default:
		if parts[name] != nil {
			empty = parts[name]()
		}
	}
	if empty == nil {
		t.Fatalf("no type for %s", name)
	}
	if err := decodeObject([]byte(text), empty); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	data, err := encodeObject(empty)
	if err != nil {
		t.Fatal(err)
	}
	sameValue(t, string(data), text)
}

// TestReferenceTakesWhatIsWritten: the published schemas take every event that we can
// write.
func TestReferenceTakesWhatIsWritten(t *testing.T) {
	theirs, doc := published(t), ours(t)
	for _, text := range examples(t) {
		if err := theirs.judge(t, "Event", text); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	for _, kind := range Types() {
		t.Run(string(kind), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				written := checkRandom(t, doc, kind)
				if err := theirs.judge(t, envelopeName(kind), written); err != nil {
					t.Fatalf("%v\n%s", err, written)
				}
			})
		})
	}
}

// TestReferenceAgreesWithTheDecoder: the published schemas and Decode say the same of every
// third change to an example, but that an id is a number.
func TestReferenceAgreesWithTheDecoder(t *testing.T) { published(t).agrees(t, 3, "/id") }

// TestReferenceSchemasAreOurs: our schemas of that name demand what the published ones
// demand, field by field, and nothing else but what is listed here.
func TestReferenceSchemasAreOurs(t *testing.T) {
	stricter := map[string]bool{
		"EventBase/properties/id/pattern":                        true, // "monotonic integers"
		"ToolCallReceiptPayload/properties/fileTouches/maxItems": true, // "at most 128 rows"
	}
	theirs, own := published(t).schemas(), ours(t).schemas()
	demands := map[string][2]string{}
	for i, schemas := range []map[string]any{theirs, own} {
		for name, schema := range schemas {
			if theirs[name] == nil { // of an operation that the published document does not describe
				continue
			}
			collect(name, schema, func(at, demand string) {
				both := demands[at]
				both[i] = demand
				demands[at] = both
			})
		}
	}
	if len(demands) < 700 {
		t.Fatalf("only %d demands were found", len(demands))
	}
	for _, at := range slices.Sorted(maps.Keys(demands)) {
		if both := demands[at]; both[0] != both[1] && !(both[0] == "" && stricter[at]) {
			t.Errorf("%s: published %q, ours %q", at, cmp.Or(both[0], "nothing"), cmp.Or(both[1], "nothing"))
		}
	}
}

// collect tells each demand of a schema, by its place.
func collect(at string, schema any, tell func(at, demand string)) {
	fields, ok := schema.(map[string]any)
	if !ok {
		return
	}
	for name, value := range fields {
		place := at + "/" + name
		switch name {
		case "description", "examples", "x-enum-varnames":
		case "properties":
			for field, inner := range value.(map[string]any) {
				tell(place+"/"+field, "a field")
				collect(place+"/"+field, inner, tell)
			}
		case "items":
			tell(place, "elements")
			collect(place, value, tell)
		case "allOf":
			for i, inner := range value.([]any) {
				collect(fmt.Sprint(place, "/", i), inner, tell)
			}
		case "required":
			names := []string{}
			for _, n := range value.([]any) {
				names = append(names, n.(string))
			}
			slices.Sort(names)
			tell(place, strings.Join(names, " "))
		default:
			data, _ := json.Marshal(value)
			tell(place, string(data))
		}
	}
}
