package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/graph"
	"github.com/mahati-host/mahati/narad/session"
)

// TestTraces plays every golden trace with our own readers.
func TestTraces(t *testing.T) {
	all, err := Traces()
	if err != nil {
		t.Fatal(err)
	}
	for _, trace := range all {
		for _, strict := range []bool{true, false} {
			if trace.Reader == Strict && !strict || trace.Reader == Lenient && strict {
				continue
			}
			play(t, trace, strict)
		}
	}
}

// player is our own reader of traces.
type player struct {
	decoder narad.Decoder
	state   *session.State
}

func newPlayer(t *testing.T, trace Trace, strict bool) *player {
	t.Helper()
	o := session.Options{SessionID: trace.SessionID, Remember: session.RememberAll}
	for _, id := range trace.Without {
		profile, ok := narad.ParseProfile(id)
		if !ok {
			t.Fatalf("%s:%d: no profile %q", trace.File, trace.Line, id)
		}
		o.Without |= profile
	}
	o.Graphs = graph.NewView(trace.session(), graph.ViewOptions{Strict: strict})
	return &player{narad.Decoder{Strict: strict, Without: o.Without}, session.New(o)}
}

// session is the session of a trace: that of its first record where no other is named.
func (t Trace) session() string {
	if t.SessionID != "" {
		return t.SessionID
	}
	for _, s := range t.Steps {
		if id, ok := narad.Raw(s.Record).Field("sessionId").IsString(); ok {
			return id
		}
	}
	return ""
}

func play(t *testing.T, trace Trace, strict bool) {
	t.Helper()
	p := newPlayer(t, trace, strict)
	for _, s := range trace.Steps {
		switch {
		case s.Record != nil:
			if result, code := p.take(s.Record); result != s.Result || code != s.Code {
				t.Errorf("%s:%d: %s, strict %v: got %s %s, want %s %s\n%.500s", trace.File, s.Line, trace.Name, strict, result, code, s.Result, s.Code, s.Record)
			}
		case s.ClearGap:
			p.state.ClearGap()
		default:
			if got := ask(t, p.state, s.State); !same(got, s.Is) {
				t.Errorf("%s:%d: %s, strict %v: %s is %s, want %s", trace.File, s.Line, trace.Name, strict, s.State, got, s.Is)
			}
		}
	}
}

// take gives one record to the reader.
func (p *player) take(record []byte) (result, code string) {
	read, err := p.decoder.Decode(record)
	var refusal *narad.Error
	if errors.As(err, &refusal) {
		return "rejected", string(refusal.Code)
	}
	apply := p.state.Apply
	if p.decoder.Strict {
		apply = p.state.Admit
	}
	got := apply(read)
	return got.Kind.String(), string(got.Code)
}

// ask returns what stands at a path of the state, nil for nothing.
func ask(t *testing.T, state *session.State, path string) narad.Raw {
	t.Helper()
	var value any
	if err := json.Unmarshal(state.SnapshotJSON(), &value); err != nil {
		t.Fatal(err)
	}
	for part := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			inner, ok := v[part]
			if !ok {
				return nil
			}
			value = inner
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func same(a, b narad.Raw) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// TestTracesCoverEverything holds the traces to the tables of narad and narad/session:
// every type is taken at least once and refused at least once, and every code is given.
func TestTracesCoverEverything(t *testing.T) {
	all, err := Traces()
	if err != nil {
		t.Fatal(err)
	}
	taken, refused, codes := map[narad.Type]bool{}, map[narad.Type]bool{}, map[string]bool{}
	for _, trace := range all {
		for _, s := range trace.Steps {
			kind, _ := narad.Raw(s.Record).Field("type").IsString()
			if s.Result == "rejected" {
				refused[narad.Type(kind)] = true
			} else {
				taken[narad.Type(kind)] = true
			}
			codes[s.Code] = true
		}
	}
	for _, kind := range narad.Types() {
		if !taken[kind] {
			t.Errorf("no trace takes a %s", kind)
		}
		if !refused[kind] {
			t.Errorf("no trace refuses a %s", kind)
		}
	}
	for _, code := range session.Codes() {
		if !codes[string(code)] {
			t.Errorf("no trace gives the code %s", code)
		}
	}
	for _, code := range narad.Codes() {
		if !codes[string(code)] {
			t.Errorf("no trace gives the code %s", code)
		}
	}
}

// TestSchemasAgreeOnTraces: our JSON Schemas and the strict decoder say the same of every
// record of the traces.
func TestSchemasAgreeOnTraces(t *testing.T) {
	all, err := Traces()
	if err != nil {
		t.Fatal(err)
	}
	schemas, judged := map[narad.Type]*jsonschema.Schema{}, 0
	for _, trace := range all {
		for _, s := range trace.Steps {
			kind, _ := narad.Raw(s.Record).Field("type").IsString()
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(s.Record))
			if narad.Type(kind).Class() == narad.ClassUnknown || err != nil {
				continue // no schema is for it, or it is no JSON
			}
			if schemas[narad.Type(kind)] == nil {
				schemas[narad.Type(kind)] = compile(t, narad.Type(kind))
			}
			_, decoded := narad.DecodeStrict(s.Record)
			valid := schemas[narad.Type(kind)].Validate(v)
			if (decoded == nil) != (valid == nil) && !beyondASchema(decoded) {
				t.Errorf("%s:%d: the decoder says %v, the schema %v\n%.500s", trace.File, s.Line, decoded, valid, s.Record)
			}
			judged++
		}
	}
	if judged < 1000 {
		t.Errorf("only %d records were judged", judged)
	}
}

// beyondASchema reports whether a refusal is for what no schema says: sizes and depths, and
// a revision that must follow another.
func beyondASchema(err error) bool {
	var refusal *narad.Error
	return errors.As(err, &refusal) &&
		(refusal.Code == narad.CodeTooLarge || refusal.Code == narad.CodeTooDeep || strings.Contains(refusal.Rule, "baseRevision"))
}

func compile(t *testing.T, kind narad.Type) *jsonschema.Schema {
	t.Helper()
	text, ok := narad.Schema(kind)
	if !ok {
		t.Fatalf("no schema for %s", kind)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("narad.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("narad.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}
