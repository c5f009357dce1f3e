package watch_test

import (
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/referencetest"
	"github.com/mahati-host/mahati/internal/watch"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
	"github.com/mahati-host/mahati/narad/session/sessiontest"
)

// drawFacts draws the facts of a session that a host may have written, and the state
// before each.
func drawFacts(t *rapid.T) (history []narad.Authority, admit func(upTo int) *session.State) {
	rng := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
	var records []narad.Record
	state := session.New(session.Options{Remember: session.RememberAll})
	for _, line := range sessiontest.Trace(rng, rapid.IntRange(1, 150).Draw(t, "lines")) {
		rec, err := narad.DecodeStrict(line)
		if err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		if _, isWatch := rec.(*narad.Revision); isWatch {
			continue // a host writes its own or these, not both
		}
		r := state.Admit(rec)
		records = append(records, rec)
		if f, ok := rec.(narad.Authority); ok && r.Kind == session.Applied {
			history = append(history, f)
		}
	}
	return history, func(upTo int) *session.State {
		s := session.New(session.Options{Remember: session.RememberAll})
		for _, rec := range records {
			if f, ok := rec.(narad.Authority); !ok || f.Envelope().SessionSequence <= int64(upTo) {
				s.Admit(rec)
			}
		}
		return s
	}
}

// cuts draws where a stream of n facts is cut into groups: the ends of the groups.
func cuts(t *rapid.T, n int) []int {
	if n == 0 {
		return nil
	}
	ends := rapid.SliceOfN(rapid.IntRange(1, n), 0, 10).Draw(t, "cuts")
	slices.Sort(ends)
	return slices.Compact(append(ends, n))
}

// keyOf is what a client counts the revisions of an event for, and what coalescing
// must leave the last of.
func keyOf(r *narad.Revision) [3]string {
	switch r.Kind {
	case narad.TypeNodeRevision:
		return [3]string{string(r.Kind), r.WorkflowID, r.NodeID}
	case narad.TypeWorkflowRevision:
		return [3]string{string(r.Kind), r.WorkflowID}
	case narad.TypeRunRevision:
		return [3]string{string(r.Kind), r.RunID}
	case narad.TypeWorkspaceRevision:
		return [3]string{string(r.Kind), r.WorkspaceID}
	}
	return [3]string{string(r.Kind), r.SessionID}
}

// leastOf is what coalescing means, said the slow way: of a list the last event of
// each key, in the list's order.
func leastOf(events []*narad.Revision) []*narad.Revision {
	var least []*narad.Revision
	for i, r := range events {
		last := true
		for _, later := range events[i+1:] {
			last = last && keyOf(later) != keyOf(r)
		}
		if last {
			least = append(least, r)
		}
	}
	return least
}

// Any cut of the stream into groups gives, for each group, exactly the last event of
// each key, with the bytes that its fact alone gives.
func TestCoalesce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history, _ := drawFacts(t)
		start := 0
		for _, end := range cuts(t, len(history)) {
			var all []*narad.Revision
			for _, f := range history[start:end] {
				all = append(all, watch.Session(f)...)
			}
			want, got := writeAll(t, leastOf(all)), writeAll(t, watch.Coalesce(history[start:end]))
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("facts %d to %d (-want +got):\n%s", start+1, end, d)
			}
			start = end
		}
	})
}

// What is sent after any group of facts is what a strict reader takes there: strict
// records that it applies, none of which regresses, each covered by authority that
// the reader holds. The last one covers all that was sent.
func TestReadersTakeEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history, admit := drawFacts(t)
		start, reader := 0, session.New(session.Options{})
		for _, end := range cuts(t, len(history)) {
			events := watch.Coalesce(history[start:end])
			for _, r := range events {
				line := write(t, r)
				rec, err := narad.DecodeStrict([]byte(line))
				if err != nil {
					t.Fatalf("%v\n%s", err, line)
				}
				if res := reader.Admit(rec); res.Kind != session.Applied {
					t.Fatalf("%v %s\n%s", res.Kind, res.Detail, line)
				}
			}
			head := history[end-1].Envelope()
			if last := events[len(events)-1]; last.Kind != narad.TypeSessionRevision || last.Cursor.Sequence != head.SessionSequence {
				t.Fatalf("the last event is %s, want that of the session at %d", last.EventID, head.SessionSequence)
			}
			checkCursors(t, events, history[start:end], admit(int(head.SessionSequence)))
			start = end
		}
	})
}

// checkCursors demands of the events of a group that each cursor is a place that the
// reader holds, and at least as far as any fact of its scope in the group.
func checkCursors(t *rapid.T, events []*narad.Revision, group []narad.Authority, held *session.State) {
	snapshot := held.Snapshot()
	for _, r := range events {
		var most, holds int64
		for _, f := range group {
			e := f.Envelope()
			switch {
			case r.Kind == narad.TypeRunRevision && e.RunID == r.RunID:
				most = max(most, e.Sequence)
			case r.Kind == narad.TypeWorkflowRevision && e.WorkflowID == r.WorkflowID:
				most = max(most, e.WorkflowSequence)
			case r.Kind == narad.TypeSessionRevision:
				most = max(most, e.SessionSequence)
			}
		}
		switch r.Cursor.Kind {
		case narad.ScopeRun:
			holds = snapshot.RootRunSequences[r.Cursor.ID]
		case narad.ScopeWorkflow:
			holds = snapshot.WorkflowSequences[r.Cursor.ID]
		default:
			holds = held.Last()
		}
		if r.Cursor.Sequence < most || r.Cursor.Sequence > holds {
			t.Fatalf("%s: cursor at %d, want at least %d and at most %d", r.EventID, r.Cursor.Sequence, most, holds)
		}
	}
}

// A stream that goes on after any id it sent gives exactly what came after, and what
// it gives is made of the stored bytes alone.
func TestResumeAfterAnyID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history, _ := drawFacts(t)
		if len(history) == 0 {
			return
		}
		var sent []string
		ids := map[string]bool{}
		for _, f := range history {
			for _, r := range watch.Session(f) {
				sent = append(sent, write(t, r))
				if ids[r.EventID] {
					t.Fatalf("two events have the id %s", r.EventID)
				}
				ids[r.EventID] = true
			}
		}
		at := rapid.IntRange(0, len(sent)-1).Draw(t, "at")
		last, err := narad.Decode([]byte(sent[at]))
		if err != nil {
			t.Fatal(err)
		}
		got := writeAll(t, resume(t, history, last.(*narad.Revision).EventID))
		if d := cmp.Diff(sent[at+1:], got, cmp.Transformer("", func(s []string) string { return strings.Join(s, "\n") })); d != "" {
			t.Fatalf("after %s (-want +got):\n%s", sent[at], d)
		}
	})
}

// resume does what a host does with Last-Event-ID: it reads the stored facts from the
// place on.
func resume(t *rapid.T, history []narad.Authority, id string) []*narad.Revision {
	p, ok := watch.Parse(id)
	if !ok || p.OfWorkspace() {
		t.Fatalf("Parse(%q) = %+v, %v", id, p, ok)
	}
	var events []*narad.Revision
	for _, f := range history {
		switch sequence := f.Envelope().SessionSequence; {
		case sequence == p.Revision:
			if events, ok = watch.Rest(id, watch.Session(again(t, f))); !ok {
				t.Fatalf("%q is not believed at its place", id)
			}
		case sequence > p.Revision:
			events = append(events, watch.Session(again(t, f))...)
		}
	}
	return events
}

// again reads a fact back from its bytes.
func again(t *rapid.T, f narad.Authority) narad.Authority {
	data, err := narad.Encode(f)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := narad.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return rec.(narad.Authority)
}

// drawChanges draws what the sessions of a workspace tell, in the order of the store,
// with offsets that other workspaces leave holes in.
func drawChanges(t *rapid.T) []watch.Change {
	var changes []watch.Change
	sequences := map[string]int64{}
	offset := int64(0)
	for range rapid.IntRange(1, 40).Draw(t, "changes") {
		offset += rapid.Int64Range(1, 3).Draw(t, "step")
		id := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "session")
		sequences[id]++
		name := rapid.SampledFrom([]string{facts.SessionCreated, facts.SessionArchived, facts.SessionRestored, facts.InputQueued, facts.InputQueued}).Draw(t, "name")
		f := fact(facts.Session(name, facts.Archived{}), "", "")
		f.SessionID, f.SessionSequence = id, sequences[id]
		changes = append(changes, watch.Change{Fact: f, Offset: offset})
	}
	return changes
}

// Events that are merged are those of all facts together.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		changes := drawChanges(t)
		var merged []*narad.Revision
		start := 0
		for _, end := range cuts(t, len(changes)) {
			merged = watch.Merge(merged, watch.CoalesceWorkspace("ws", changes[start:end]))
			start = end
		}
		if d := cmp.Diff(writeAll(t, watch.CoalesceWorkspace("ws", changes)), writeAll(t, merged)); d != "" {
			t.Fatalf("(-want +got):\n%s", d)
		}
	})
}

// The same of a workspace's stream.
func TestCoalesceWorkspace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		changes := drawChanges(t)
		start, reader := 0, session.New(session.Options{})
		archived := map[string]bool{}
		for _, end := range cuts(t, len(changes)) {
			var all []*narad.Revision
			for _, c := range changes[start:end] {
				r := watch.Workspace("ws", c)
				all = append(all, r)
				if r.Kind != narad.TypeWorkspaceRevision {
					archived[r.SessionID] = r.Kind == narad.TypeSessionArchived
				}
			}
			events := watch.CoalesceWorkspace("ws", changes[start:end])
			if d := cmp.Diff(writeAll(t, leastOf(all)), writeAll(t, events)); d != "" {
				t.Fatalf("facts %d to %d (-want +got):\n%s", start+1, end, d)
			}
			for _, r := range events {
				rec, err := narad.DecodeStrict([]byte(write(t, r)))
				if err != nil {
					t.Fatalf("%v\n%s", err, write(t, r))
				}
				if res := reader.Admit(rec); res.Kind != session.Applied {
					t.Fatalf("%v %s\n%s", res.Kind, res.Detail, write(t, r))
				}
				p, ok := watch.Parse(r.EventID)
				if !ok || !p.OfWorkspace() || p.Revision != r.Revision {
					t.Fatalf("Parse(%q) = %+v, %v, want the offset %d", r.EventID, p, ok, r.Revision)
				}
			}
			if last := events[len(events)-1]; last.Revision != changes[end-1].Offset {
				t.Fatalf("the last event is at %d, want %d", last.Revision, changes[end-1].Offset)
			}
			start = end
		}
		told := map[string]bool{}
		if w := reader.Snapshot().Workspace; w != nil {
			for _, s := range w.Sessions {
				told[s.SessionID] = s.Archived
			}
		}
		if d := cmp.Diff(archived, told); d != "" {
			t.Fatalf("what the reader knows of the sessions (-want +got):\n%s", d)
		}
	})
}

// The published schemas take every event.
func TestReferenceSchemas(t *testing.T) {
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
	core, profile := load("core-event"), load("profile-event")
	seen := map[narad.Type]bool{}
	check := func(t *rapid.T, r *narad.Revision) {
		schema := profile
		if r.Kind.Profile() == narad.Core {
			schema = core
		}
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(write(t, r)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); err != nil {
			t.Fatalf("%v\n%s", err, write(t, r))
		}
		seen[r.Kind] = true
	}
	rapid.Check(t, func(t *rapid.T) {
		history, _ := drawFacts(t)
		for _, r := range watch.Coalesce(history) {
			check(t, r)
		}
		for _, r := range watch.CoalesceWorkspace("ws", drawChanges(t)) {
			check(t, r)
		}
	})
	if len(seen) != 8 {
		t.Errorf("events of the types %v, want all eight", seen)
	}
}
