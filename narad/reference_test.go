package narad

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mahati-host/mahati/internal/referencetest"
	"pgregory.net/rapid"
)

// schemas are the published ones, by the lane or profile whose types they describe.
type schemas struct{ core, profile, hydrate, control *jsonschema.Schema }

func loadSchemas(t *testing.T) schemas {
	t.Helper()
	dir := filepath.Join(referencetest.Dir(t), "narad", "schema")
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	load := func(name string) *jsonschema.Schema {
		schema, err := compiler.Compile(filepath.Join(dir, "narad-"+name+".schema.json"))
		if err != nil {
			t.Fatal(err)
		}
		return schema
	}
	return schemas{load("core-event"), load("profile-event"), load("hydrate"), load("control")}
}

// judge returns what the schema for the type says of a record.
func (s schemas) judge(t rapid.TB, kind Type, text string) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	switch {
	case kind.Class() == ClassControl:
		return s.control.Validate(v)
	case kind.Class() == ClassHydrate:
		return s.hydrate.Validate(v)
	case kind.Profile() == Core:
		return s.core.Validate(v)
	}
	return s.profile.Validate(v)
}

// beyondSchemas reports whether a record is one of the closed list of R19: what the
// prose names and the published schemas lack.
func beyondSchemas(o object) bool {
	switch Type(unquote(o.get("type"))) {
	case TypeWorkflowPaused, TypeWorkflowResumed, TypeWorkflowStopRequested,
		TypeWorkflowStepStarted, TypeWorkflowStepFinished, TypeWorkflowStepFailed:
		return true
	case TypeInterruptRequested, TypeInterruptResolved:
		return is(o.get("scope"), "workflow")
	}
	return false
}

// TestReferenceSchemasTakeWhatIsWritten: what Encode writes satisfies the schemas,
// but for R19.
func TestReferenceSchemasTakeWhatIsWritten(t *testing.T) {
	published := loadSchemas(t)
	for kind, texts := range examples(t) {
		for _, text := range texts {
			out := mustEncode(t, mustDecode(t, Decoder{Strict: true}, text))
			if err := published.judge(t, kind, out); (err != nil) != beyondSchemas(parseObject(t, out)) {
				t.Errorf("%s: %v\n%s", kind, err, out)
			}
		}
	}
	checkRecords(t, func(rt *rapid.T, s shape, text string) {
		out := checkWritten(rt, text)
		if err := published.judge(rt, s.kind, out); (err != nil) != beyondSchemas(parseObject(t, out)) {
			rt.Fatalf("%s: %v\n%s", s.kind, err, out)
		}
	})
	all, written := os.Getenv(referencetest.RequiredEnv) == "1", 0
	for _, s := range shapes { // what a spoiled Go value leads to
		for _, text := range examples(t)[s.kind] {
			spoil(t, text, func(rec Record, what string) {
				out, err := Encode(rec)
				if err != nil || beyondSchemas(parseObject(t, string(out))) {
					return
				}
				if written++; !all && written%7 != 0 {
					return
				}
				if err := published.judge(t, s.kind, string(out)); err != nil {
					t.Errorf("%s, %s was written: %v\n%s", s.kind, what, err, out)
				}
			})
		}
	}
}

// reasons are why a host must not write what a published schema takes. Each is a
// line of docs/narad.md. Nothing that a schema refuses is ever taken, but for R19.
var reasons = []struct {
	name string
	is   func(o object, r Error) bool
}{
	{"time in UTC", func(_ object, r Error) bool { return strings.Contains(r.Rule, "UTC") }},
	{"integer above 2^53-1", func(o object, r Error) bool {
		return strings.Contains(r.Rule, "integer") && strings.Contains(o.get(r.Path[1:]), "9007199254740992")
	}},
	{"patch", func(o object, r Error) bool {
		return strings.HasPrefix(r.Path, "/patch") && (r.Code == CodeInvalidPatch || r.Code == CodeUnsafePatch || strings.HasPrefix(o.get("type"), `"view.`) && !is(o.get("type"), "view.updated"))
	}},
	{"view update", func(o object, r Error) bool {
		return is(o.get("type"), "view.updated") && (r.Path == "/model" || r.Path == "/patch")
	}},
	{"delta revision", func(_ object, r Error) bool { return r.Path == "/revision" && strings.Contains(r.Rule, "baseRevision") }},
	{"projection", func(_ object, r Error) bool { return r.Path == "/sourceEventId" }},
	{"interrupt scope", func(_ object, r Error) bool { return r.Path == "/scope" || strings.Contains(r.Rule, "workflow-scope") }},
	{"members", func(_ object, r Error) bool { return strings.HasPrefix(r.Path, "/members") }},
	{"usage", func(o object, r Error) bool {
		return strings.HasPrefix(r.Path, "/usage") && (r.Path == "/usage/elapsedMs" || is(o.get("type"), "progress.recorded") || strings.Contains(o.get("usage"), "9007199254740992"))
	}},
	{"watch cursor", func(_ object, r Error) bool { return strings.HasPrefix(r.Path, "/cursor") }},
	{"graph", func(o object, r Error) bool {
		return strings.HasPrefix(o.get("type"), `"graph.`) &&
			(slices.Contains([]string{"/runId", "/graphSchemaVersion", "/rootRunId", "/sourceRunCursor", "/sourceRunCursor/rootRunId", "/sourceWorkflowCursor/workflowId"}, r.Path))
	}},
}

// mutants are values that a field may get, whatever it was.
var mutants = []string{
	`null`, `true`, `""`, `"x"`, `"a.b"`, `"workflow"`, `"run"`, `7`, `0`, `-1`, `1.5`, `1e2`, `9007199254740992`, `[]`, `[""]`, `["a","a"]`, `[7]`, `{}`,
	`"2026-08-05T00:00:00+02:00"`, `"2026-08-05t00:00:00z"`, `"2026-02-30T00:00:00Z"`, `"2026-08-05T00:00:00,5Z"`, `"2026-08-05T0:00:00.5Z"`,
	`{"promptTokens":-1}`, `{"elapsedMs":"x"}`, `{"sequence":1}`, `{"sequence":1,"rootRunId":"other"}`, `{"sequence":1,"x":1}`, `{"kind":"session"}`,
	`[{"op":"add","path":"/a","value":1}]`, `[{"op":"add","path":"/a"}]`, `[{"op":"move","path":"/a"}]`, `[{"op":"remove","path":""}]`, `[{"op":"remove","path":"/constructor"}]`,
	`[{"op":"remove","path":"/~2"}]`, `[{"op":"remove","path":"/a","from":7}]`, `[{"op":"remove","path":"/a","from":"/__proto__"}]`, `[{"op":"no","path":"/a"}]`, `[7]`,
}

// strangers are fields that the schemas give a form to in types that do not define
// them, and those of other classes.
var strangers = strings.Fields(`eventId sessionSequence workflowId workflowSequence rootRunId runId sequence revision nodeId
	parentRunId parentToolCallId operation patch model messageId code message defaultClientExecutorId sessionId sourceEventId scope usage members cursor`)

// TestReferenceVerdictsAgree changes every field of every example, and compares what
// a host may write with what the published schemas take. Validating by schema is
// slow, so that an ordinary run looks at every 37th record and make reference
// at all of them.
func TestReferenceVerdictsAgree(t *testing.T) {
	published := loadSchemas(t)
	all, made := os.Getenv(referencetest.RequiredEnv) == "1", 0
	used := map[string]int{}
	compared := 0
	eachMutant(t, func(s shape, changed object, what string) {
		if made++; beyondSchemas(changed) || !all && made%37 != 0 {
			return
		}
		compared++
		text := changed.text()
		_, ours := DecodeStrict([]byte(text))
		theirs := published.judge(t, s.kind, text)
		if (ours == nil) == (theirs == nil) {
			return
		}
		if ours == nil {
			t.Errorf("a host may write what the schema refuses: %v\n%s", theirs, text)
			return
		}
		reason := reasonOf(changed, refusalOf(ours))
		used[reason]++
		if reason == "" {
			t.Errorf("%s, %s: no reason is listed for %v\n%s", s.kind, what, ours, text)
		}
	})
	for _, r := range reasons {
		if all && used[r.name] == 0 {
			t.Errorf("no record shows the reason %q", r.name)
		}
	}
	t.Logf("%d records compared, disagreements by reason: %v", compared, used)
}

// eachMutant changes every field of every example, known or not, into what it may and
// what it may not be.
func eachMutant(t *testing.T, visit func(s shape, changed object, what string)) {
	t.Helper()
	for _, s := range shapes {
		for _, text := range examples(t)[s.kind] {
			o := parseObject(t, text)
			names := slices.Clone(strangers)
			for _, m := range o {
				if m.Name != "type" && !slices.Contains(names, m.Name) {
					names = append(names, m.Name)
				}
			}
			for _, name := range names {
				visit(s, o.without(name), "-"+name)
				for _, mutant := range mutants {
					visit(s, o.with(name, mutant), name+" = "+mutant)
				}
			}
		}
	}
}

// TestReferenceSchemasAgree: our schemas and the published ones say the same of every line
// of the published traces and of changed records (every fourth under make reference), but
// for the reasons listed above and the types of R19.
func TestReferenceSchemasAgree(t *testing.T) {
	published, ours := loadSchemas(t), loadOwnSchemas(t)
	all, made, compared := os.Getenv(referencetest.RequiredEnv) == "1", 0, 0
	used := map[string]int{}
	agree := func(kind Type, o object, what string) {
		compared++
		text := o.text()
		mine, theirs := ours.agree(t, kind, text, what), published.judge(t, kind, text)
		if (mine == nil) == (theirs == nil) {
			return
		}
		_, err := DecodeStrict([]byte(text))
		reason := "R19"
		switch {
		case beyondSchemas(o):
		case mine == nil:
			reason = ""
		case err != nil:
			reason = reasonOf(o, refusalOf(err))
		}
		used[reason]++
		if reason == "" {
			t.Errorf("%s, %s: no reason is listed; ours %v, theirs %v\n%s", kind, what, mine, theirs, text)
		}
	}
	eachMutant(t, func(s shape, changed object, what string) {
		if made++; all && made%4 == 0 || made%37 == 0 {
			agree(s.kind, changed, what)
		}
	})
	names, err := filepath.Glob(filepath.Join(referencetest.Dir(t), "narad", "traces", "*.jsonl"))
	if err != nil || len(names) < 20 {
		t.Fatalf("%d traces, %v", len(names), err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			o := parseObject(t, strings.TrimSpace(line))
			agree(Type(unquote(o.get("type"))), o, filepath.Base(name))
		}
	}
	t.Logf("%d records compared, disagreements by reason: %v", compared, used)
}

func reasonOf(o object, refusal Error) string {
	for _, r := range reasons {
		if r.is(o, refusal) {
			return r.name
		}
	}
	return ""
}

// TestReferenceTraces: every line of the published traces is a record, but for the
// two whose names say that a record itself is malformed. What is wrong with the
// other invalid traces is their order.
func TestReferenceTraces(t *testing.T) {
	malformed := map[string]Error{
		"graph-has-authority-fields.invalid.jsonl:2": {Code: CodeInvalidHydrate, Path: "/sessionSequence"},
		"workflow-edge-missing-from.invalid.jsonl:2": {Code: CodeInvalidRecord, Path: "/from"},
	}
	names, err := filepath.Glob(filepath.Join(referencetest.Dir(t), "narad", "traces", "*.jsonl"))
	if err != nil || len(names) < 20 {
		t.Fatalf("%d traces, %v", len(names), err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(bytes.NewReader(data))
		for n := 1; lines.Scan(); n++ {
			at := filepath.Base(name) + ":" + string(rune('0'+n%10))
			want, bad := malformed[at]
			bad = bad && n < 10
			for _, d := range decoders {
				rec, err := d.Decode(lines.Bytes())
				if got := refusalOf(err); bad && (got.Code != want.Code || got.Path != want.Path) || !bad && err != nil {
					t.Errorf("%s, strict %v: got %v, want %v", at, d.Strict, err, want)
				}
				if err == nil {
					checkSameFields(t, lines.Text(), mustEncode(t, rec))
				}
			}
		}
	}
}
