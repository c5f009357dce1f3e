package graph_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/mahati-host/mahati/internal/referencetest"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/graph"
)

// scopesOf returns the run trees and workflows of facts, in the order of their starts.
func scopesOf(facts []narad.Authority) []graph.Scope {
	var scopes []graph.Scope
	for _, fact := range facts {
		e := fact.Envelope()
		for _, s := range []graph.Scope{graph.RunTree(e.RootRunID), graph.WorkflowOf(e.WorkflowID)} {
			if s.ID != "" && !slices.Contains(scopes, s) {
				scopes = append(scopes, s)
			}
		}
	}
	return scopes
}

// ofScope returns the facts of a scope.
func ofScope(s graph.Scope, facts []narad.Authority) []narad.Authority {
	return slices.DeleteFunc(slices.Clone(facts), func(f narad.Authority) bool { return place(s, f.Envelope()) == 0 })
}

func sessionOf(facts []narad.Authority) string {
	if len(facts) == 0 {
		return "s"
	}
	return facts[0].Envelope().SessionID
}

func write(t rapid.TB, rec narad.Record) string {
	t.Helper()
	data, err := narad.Encode(rec)
	if err != nil {
		t.Fatalf("encode %T: %v", rec, err)
	}
	return string(data)
}

func apply(t rapid.TB, s *graph.State, fact narad.Authority) *graph.Change {
	t.Helper()
	c, err := s.Apply(fact)
	if err != nil {
		t.Fatalf("%T: %v", fact, err)
	}
	return c
}

// lines joins the lines of two lists for a readable difference.
var lines = cmp.Transformer("lines", func(s []string) string { return strings.Join(s, "\n") })

// After every fact the graph is what the naive reading of the facts says, and the
// revision is how many facts changed that.
func TestStateAgreesWithNaiveReading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts := drawFacts(t)
		for _, scope := range scopesOf(facts) {
			s := graph.New(sessionOf(facts), scope)
			own := ofScope(scope, facts)
			before, changes := naive{scope, nil}.graph(), int64(0)
			for i, fact := range own {
				c := apply(t, s, fact)
				want := naive{scope, own[:i+1]}.graph()
				if got := s.Canonical().String(); got != want {
					t.Fatalf("%v after fact %d, a %s: got\n%s\nwant\n%s", scope, i+1, fact.Type(), got, want)
				}
				if want != before {
					changes++
				}
				if s.Revision() != changes || (c != nil) != (want != before) {
					t.Fatalf("%v after fact %d, a %s: revision %d, a change %v, want %d, %v",
						scope, i+1, fact.Type(), s.Revision(), c != nil, changes, want != before)
				}
				before = want
			}
		}
	})
}

// Derived whole, or resumed at any fact, a graph yields the same bytes ever after.
func TestStateResumesAtAnyFact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts := drawFacts(t)
		for _, scope := range scopesOf(facts) {
			own := ofScope(scope, facts)
			at := rapid.IntRange(0, len(own)).Draw(t, "at")
			whole, resumed := graph.New(sessionOf(facts), scope), graph.New(sessionOf(facts), scope)
			for i, fact := range own {
				if i == at {
					resumed = again(t, resumed)
				}
				want, got := apply(t, whole, fact), apply(t, resumed, fact)
				if (want == nil) != (got == nil) {
					t.Fatalf("fact %d, a %s: a change %v, want %v", i+1, fact.Type(), got != nil, want != nil)
				}
				if want == nil {
					continue
				}
				for _, r := range [][2]narad.Record{{want.Delta(), got.Delta()}, {whole.Snapshot(), resumed.Snapshot()}, {whole.Record(want), resumed.Record(got)}} {
					if a, b := write(t, r[0]), write(t, r[1]); a != b {
						t.Fatalf("fact %d, a %s: got\n%s\nwant\n%s", i+1, fact.Type(), b, a)
					}
				}
				if whole.Fits() != resumed.Fits() {
					t.Fatalf("fact %d: fits %v, want %v", i+1, resumed.Fits(), whole.Fits())
				}
			}
			if a, b := string(whole.Encode()), string(resumed.Encode()); a != b {
				t.Fatalf("got\n%s\nwant\n%s", b, a)
			}
		}
	})
}

func again(t *rapid.T, s *graph.State) *graph.State {
	kept, err := graph.Decode(s.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

// What a host sends after each fact is taken by a strict reader, which then knows the
// graph that the host knows; so does one that joined at any fact by a snapshot.
func TestViewsKnowWhatWasSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts := drawFacts(t)
		id := sessionOf(facts)
		host, first := graph.NewGraphs(id), graph.NewView(id, graph.ViewOptions{Strict: true})
		late := graph.NewView(id, graph.ViewOptions{})
		join := rapid.IntRange(0, len(facts)).Draw(t, "join")
		revisions, states := map[graph.Scope]int64{}, map[graph.Scope]*graph.State{}
		for i, fact := range facts {
			rec, err := host.Apply(fact)
			if err != nil {
				t.Fatal(err)
			}
			first.Apply(fact)
			late.Apply(fact)
			scope := graph.RunTree(fact.Envelope().RootRunID)
			if states[scope] == nil {
				states[scope] = graph.New(id, scope)
			}
			state := states[scope]
			apply(t, state, fact)
			if s := state.Snapshot(); i == join && s != nil {
				late.Apply(s)
			}
			if rec == nil {
				continue
			}
			read, err := narad.DecodeStrict([]byte(write(t, rec)))
			if err != nil {
				t.Fatalf("%v\n%s", err, write(t, rec))
			}
			revisions[scope]++
			checkRecord(t, read, fact, revisions[scope])
			if r := first.Apply(read); r.Kind != graph.Applied {
				t.Fatalf("after fact %d a strict view says %v %s\n%s", i+1, r.Kind, r.Code, write(t, rec))
			}
			late.Apply(read)
			want := state.Canonical().String()
			if got := first.Canonical(scope).String(); got != want {
				t.Fatalf("after fact %d the view has\n%s\nwant\n%s", i+1, got, want)
			}
			if got := late.Canonical(scope).String(); i > join && got != want {
				t.Fatalf("joined at fact %d, after fact %d the view has\n%s\nwant\n%s", join+1, i+1, got, want)
			}
			if _, open := host.Open(scope.ID); open == (ended(fact) && !fact.Envelope().Nested()) {
				t.Fatalf("after fact %d, a %s, the graph is kept: %v", i+1, fact.Type(), open)
			}
		}
		if list := append(first.Resync(), late.Resync()...); len(list) > 0 {
			t.Fatalf("views need snapshots of %v", list)
		}
	})
}

func ended(fact narad.Authority) bool {
	return slices.Contains([]narad.Type{narad.TypeRunFinished, narad.TypeRunError, narad.TypeRunCancelled}, fact.Type())
}

var patchPath = regexp.MustCompile(`^/(nodes|edges)/(0|[1-9][0-9]*)$`)

// checkRecord demands R29 of a record: its revision, its source and time, and the form
// of its patch.
func checkRecord(t *rapid.T, rec narad.Record, fact narad.Authority, revision int64) {
	e := fact.Envelope()
	switch r := rec.(type) {
	case *narad.GraphSnapshot:
		if r.Revision != revision || r.Source != e.Sequence || r.SourceID != e.RootRunID || r.Timestamp != e.Timestamp || (revision-1)%129 != 0 {
			t.Fatalf("snapshot %d of fact %d of the tree:\n%s", revision, e.Sequence, write(t, rec))
		}
	case *narad.GraphDelta:
		if r.Revision != revision || r.BaseRevision != revision-1 || r.Source != e.Sequence || r.Timestamp != e.Timestamp || (revision-1)%129 == 0 {
			t.Fatalf("delta %d of fact %d of the tree:\n%s", revision, e.Sequence, write(t, rec))
		}
		canonical, err := graph.Canonical(r.Patch)
		if err != nil || canonical.String() != r.Patch.String() {
			t.Fatalf("a patch in other than the canonical form:\n%s", r.Patch)
		}
		operations, _ := r.Patch.Elements()
		if len(operations) == 0 {
			t.Fatalf("an empty patch:\n%s", write(t, rec))
		}
		for _, o := range operations {
			if path, _ := o.Field("path").IsString(); !patchPath.MatchString(path) {
				t.Fatalf("a patch at %q:\n%s", path, write(t, rec))
			}
		}
	default:
		t.Fatalf("%T is no graph record", rec)
	}
}

// A snapshot has one byte form for its revision, whenever it is asked for, and every
// snapshot and delta is canonical where the form of values is free.
func TestSnapshotIsAFunctionOfItsRevision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		facts := drawFacts(t)
		for _, scope := range scopesOf(facts) {
			s := graph.New(sessionOf(facts), scope)
			bytes := map[int64]string{}
			for _, fact := range facts { // also those of others, which change nothing
				apply(t, s, fact)
				snapshot := s.Snapshot()
				if snapshot == nil {
					continue
				}
				now := write(t, snapshot)
				if old, seen := bytes[snapshot.Revision]; seen && old != now {
					t.Fatalf("revision %d: got\n%s\nand before\n%s", snapshot.Revision, now, old)
				}
				bytes[snapshot.Revision] = now
				whole, err := graph.Canonical(narad.Raw(`{"rootNodeId":` + narad.Quote(snapshot.RootNodeID).String() +
					`,"nodes":` + join(snapshot.Nodes) + `,"edges":` + join(snapshot.Edges) + `}`))
				if err != nil || whole.String() != s.Canonical().String() {
					t.Fatalf("the snapshot says\n%s\nthe state\n%s\n(%v)", whole, s.Canonical(), err)
				}
			}
		}
	})
}

func join(values []narad.Raw) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = v.String()
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// The published schema takes every record.
func TestReferenceSchema(t *testing.T) {
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile(filepath.Join(referencetest.Dir(t), "narad", "schema", "narad-hydrate.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[narad.Type]int{}
	check := func(t *rapid.T, rec narad.Record) {
		text := write(t, rec)
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if _, err := narad.DecodeStrict([]byte(text)); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		seen[rec.Type()]++
	}
	rapid.Check(t, func(t *rapid.T) {
		facts := drawFacts(t)
		for _, scope := range scopesOf(facts) {
			s := graph.New(sessionOf(facts), scope)
			for i, fact := range facts {
				if c := apply(t, s, fact); c != nil && i%7 == 0 {
					check(t, c.Delta())
				}
			}
			if snapshot := s.Snapshot(); snapshot != nil {
				check(t, snapshot)
			}
		}
	})
	if len(seen) != 2 {
		t.Errorf("records of the types %v, want snapshots and deltas", seen)
	}
}
