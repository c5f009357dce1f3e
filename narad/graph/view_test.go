package graph_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/internal/referencetest"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/graph"
	"github.com/mahati-host/mahati/narad/session"
)

// Scenarios of a view. A line is one of
//
//	fact N [ROOT]                       authority up to N of the run tree "r", or another
//	snapshot R @N [ROOT] = ANSWER       revision R, derived at N, with one node "n<R>"
//	delta R @N [ROOT] [base=B] [PATCH] = ANSWER   adds the node "n<R>", or has the patch
//	? ROOT TEXT                         what the view says of a run tree: its revision,
//	                                    its cursor, its nodes, and "resync" if it needs one
//
// An answer is a kind and, if there is one, a code.
var viewScenarios = []struct{ name, play string }{
	{"a delta ahead of the authority waits for it", `
		fact 1
		snapshot 1 @1 = applied
		delta 2 @2 = buffered graph_cursor_ahead
		? r 1 @1 n1
		fact 2
		? r 2 @2 n1 n2`},
	{"the same snapshot again", `
		fact 1
		snapshot 1 @1 = applied
		snapshot 1 @1 = duplicate graph_revision_passed
		? r 1 @1 n1`},
	{"no delta overtakes one that waits", `
		fact 1
		snapshot 1 @1 = applied
		delta 2 @4 = buffered graph_cursor_ahead
		delta 3 @1 = buffered graph_cursor_ahead
		? r 1 @1 n1
		fact 3
		? r 1 @1 n1
		fact 4
		? r 3 @4 n1 n2 n3`},
	{"a live delta from further back", `
		fact 2
		snapshot 1 @2 = applied
		delta 2 @1 = rejected graph_cursor_regressed
		? r 1 @2 n1 resync`},
	{"a patch that replaces all nodes", `
		fact 3
		snapshot 2 @2 = applied
		delta 3 @4 [{"op":"replace","path":"/nodes","value":[{"id":"x"}]}] = buffered graph_cursor_ahead
		fact 4
		? r 3 @4 x`},
	{"a gap of revisions", `
		fact 9
		snapshot 1 @1 = applied
		delta 3 @3 = rejected graph_revision_gap
		? r 1 @1 n1 resync
		delta 2 @2 = buffered graph_snapshot_needed
		snapshot 3 @3 = applied
		? r 3 @3 n3
		delta 4 @4 = applied
		? r 4 @4 n3 n4`},
	{"deltas that come while a snapshot is awaited go on after it", `
		fact 9
		delta 5 @5 = rejected graph_snapshot_missing
		delta 6 @6 = buffered graph_snapshot_needed
		delta 7 @7 = buffered graph_snapshot_needed
		fact 10
		delta 8 @8 = buffered graph_snapshot_needed
		snapshot 6 @6 = applied
		? r 8 @8 n6 n7 n8`},
	{"a snapshot that is too old for the deltas that wait", `
		fact 9
		delta 5 @5 = rejected graph_snapshot_missing
		delta 7 @7 = buffered graph_snapshot_needed
		snapshot 5 @5 = applied
		? r 5 @5 n5 resync
		snapshot 8 @8 = applied
		? r 8 @8 n8`},
	{"a delta that does not start at the present revision", `
		fact 9
		snapshot 3 @3 = applied
		delta 4 @4 base=2 = rejected graph_revision_gap
		? r 3 @3 n3 resync
		snapshot 4 @4 = applied
		delta 6 @6 base=4 = rejected graph_revision_gap
		? r 4 @4 n4 resync`},
	{"authority that is told again", `
		fact 4
		fact 2
		snapshot 1 @1 = applied
		delta 2 @4 = applied
		? r 2 @4 n1 n2`},
	{"what was passed is no gap", `
		fact 9
		snapshot 5 @5 = applied
		delta 5 @5 = ignored graph_revision_passed
		delta 4 @4 = ignored graph_revision_passed
		snapshot 4 @4 = ignored graph_revision_passed
		? r 5 @5 n5
		delta 6 @6 = applied
		? r 6 @6 n5 n6`},
	{"two contents of one revision", `
		fact 9
		snapshot 1 @1 = applied
		delta 2 @2 = applied
		snapshot 2 @2 = rejected graph_revision_conflict
		? r 2 @2 n1 n2 resync
		snapshot 2 @2 = applied
		? r 2 @2 n2`},
	{"a snapshot may jump and must not be from further back", `
		fact 9
		snapshot 1 @5 = applied
		snapshot 7 @5 = applied
		snapshot 8 @4 = rejected graph_cursor_regressed
		? r 7 @5 n7 resync`},
	{"a snapshot ahead of the authority waits, and what is behind it", `
		fact 1
		snapshot 1 @1 = applied
		delta 2 @2 = buffered graph_cursor_ahead
		snapshot 4 @4 = buffered graph_cursor_ahead
		delta 5 @5 = buffered graph_cursor_ahead
		fact 2
		? r 1 @1 n1
		fact 4
		? r 4 @4 n4
		fact 5
		? r 5 @5 n4 n5`},
	{"a snapshot that waits ends the need of one", `
		fact 1
		delta 2 @1 = rejected graph_snapshot_missing
		snapshot 3 @3 = buffered graph_cursor_ahead
		delta 4 @4 = buffered graph_snapshot_needed
		fact 4
		? r 4 @4 n3 n4`},
	{"a run that has not started", `
		snapshot 1 @1 = rejected graph_scope_unknown
		delta 2 @1 = rejected graph_scope_unknown
		fact 1 r2
		snapshot 1 @1 = rejected graph_scope_unknown
		? r none`},
	{"authority of one run is not another's, whatever their names", `
		fact 1 r1
		fact 1 r10
		snapshot 1 @1 r1 = applied
		snapshot 1 @1 r10 = applied
		delta 2 @2 r10 = buffered graph_cursor_ahead
		delta 2 @2 r1 = buffered graph_cursor_ahead
		fact 2 r1
		? r1 2 @2 n1 n2
		? r10 1 @1 n1
		delta 4 @1 r10 = buffered graph_cursor_ahead
		fact 2 r10
		? r10 2 @2 n1 n2 resync
		? r1 2 @2 n1 n2`},
	{"a patch that does not apply", `
		fact 9
		snapshot 1 @1 = applied
		delta 2 @2 [{"op":"add","path":"/nodes/0","value":1},{"op":"remove","path":"/nodes/7"}] = rejected invalid_patch
		? r 1 @1 n1 resync`},
	{"a patch that is none", `
		fact 9
		snapshot 1 @1 = applied
		delta 2 @2 [] = rejected invalid_patch
		? r 1 @1 n1 resync`},
	{"a patch that leaves no graph", `
		fact 9
		snapshot 1 @1 = applied
		delta 2 @2 [{"op":"replace","path":"/edges","value":{}}] = rejected graph_invalid
		? r 1 @1 n1 resync
		snapshot 3 @3 = applied
		delta 4 @4 [{"op":"remove","path":"/rootNodeId"}] = rejected graph_invalid
		? r 3 @3 n3 resync
		snapshot 5 @5 = applied
		delta 6 @6 [{"op":"move","from":"/nodes","path":"/edges/0"}] = rejected graph_invalid
		? r 5 @5 n5 resync
		snapshot 7 @7 = applied
		? r 7 @7 n7`},
}

var strictScenarios = []struct{ name, play string }{
	{"a host is not ahead of its authority", `
		fact 1
		snapshot 1 @2 = rejected graph_cursor_ahead
		snapshot 1 @1 = applied
		delta 2 @2 = rejected graph_cursor_ahead`},
	{"a host does not go back", `
		fact 9
		snapshot 2 @2 = applied
		snapshot 2 @2 = duplicate graph_revision_passed
		snapshot 1 @1 = rejected graph_revision_passed
		snapshot 3 @3 = applied
		delta 3 @3 = rejected graph_revision_gap
		snapshot 4 @4 = applied
		delta 5 @3 = rejected graph_cursor_regressed
		snapshot 6 @3 = rejected graph_cursor_regressed`},
}

func TestView(t *testing.T) {
	for _, sc := range viewScenarios {
		t.Run(sc.name, func(t *testing.T) { playView(t, graph.ViewOptions{}, sc.play) })
	}
}

func TestStrictView(t *testing.T) {
	for _, sc := range strictScenarios {
		t.Run(sc.name, func(t *testing.T) { playView(t, graph.ViewOptions{Strict: true}, sc.play) })
	}
}

func playView(t *testing.T, opt graph.ViewOptions, play string) {
	t.Helper()
	v := graph.NewView("s", opt)
	for _, line := range strings.Split(strings.TrimSpace(play), "\n") {
		line = strings.TrimSpace(line)
		if question, ok := strings.CutPrefix(line, "? "); ok {
			root, want, _ := strings.Cut(question, " ")
			if got := describe(v, root); got != want {
				t.Errorf("%s\ngot  %s", line, got)
			}
			continue
		}
		text, want, asked := strings.Cut(line, " = ")
		r := v.Apply(recordOf(t, text))
		if got := strings.TrimSpace(fmt.Sprintf("%v %s", r.Kind, r.Code)); asked && got != want {
			t.Errorf("%s\ngot  %s: %s", line, got, r.Detail)
		}
		if asked && r.Code != "" && r.Detail == "" {
			t.Errorf("%s: %s has no detail", line, r.Code)
		}
	}
}

func describe(v *graph.View, root string) string {
	g, ok := v.Graph(graph.RunTree(root))
	if !ok {
		return "none"
	}
	text := fmt.Sprintf("%d @%d", g.Revision, g.Cursor)
	for _, n := range g.Nodes {
		id, _ := n.Field("id").IsString()
		text += " " + id
	}
	if g.ResyncRequired {
		text += " resync"
	}
	if listed := slices.Contains(v.Resync(), graph.RunTree(root)); listed != g.ResyncRequired {
		text += fmt.Sprintf(" (listed: %v)", listed)
	}
	return text
}

func recordOf(t *testing.T, text string) narad.Record {
	t.Helper()
	words := strings.SplitN(text, " ", 3)
	number := func(s string) int64 {
		n, err := strconv.ParseInt(strings.TrimPrefix(s, "@"), 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return n
	}
	n := number(words[1])
	root, rest, patch, base := "r", "", "", n-1
	if len(words) > 2 {
		rest = words[2]
	}
	if words[0] == "fact" {
		f := &narad.ProgressRecorded{}
		f.SessionID, f.RootRunID, f.Sequence = "s", root, n
		if rest != "" {
			f.RootRunID = rest
		}
		return f
	}
	place, rest, _ := strings.Cut(rest, " ")
	if at := strings.Index(rest, "["); at >= 0 {
		rest, patch = rest[:at], rest[at:]
	}
	for _, word := range strings.Fields(rest) {
		if b, is := strings.CutPrefix(word, "base="); is {
			base = number(b)
		} else {
			root = word
		}
	}
	scope := narad.GraphScope{Scope: narad.ScopeRun, RootRunID: root, Source: number(place)}
	node := fmt.Sprintf(`{"id":"n%d"}`, n)
	if words[0] == "snapshot" {
		return &narad.GraphSnapshot{SessionID: "s", GraphScope: scope, Revision: n, RootNodeID: "n", Nodes: []narad.Raw{narad.Raw(node)}}
	}
	if patch == "" {
		patch = `[{"op":"add","path":"/nodes/-","value":` + node + `}]`
	}
	return &narad.GraphDelta{SessionID: "s", GraphScope: scope, BaseRevision: base, Revision: n, Patch: narad.Raw(patch)}
}

// What waits is bounded by number and by bytes. While a snapshot is awaited the newest
// deltas stay, otherwise the graph is given up until one comes.
func TestViewBuffersAreBounded(t *testing.T) {
	t.Run("records", func(t *testing.T) {
		v := graph.NewView("s", graph.ViewOptions{})
		v.Apply(recordOf(t, "fact 1"))
		v.Apply(recordOf(t, "snapshot 1 @1"))
		for i := 2; i <= 257; i++ {
			if r := v.Apply(recordOf(t, fmt.Sprintf("delta %d @%d", i, i))); r.Kind != graph.Buffered {
				t.Fatalf("delta %d: got %v %s", i, r.Kind, r.Code)
			}
		}
		if r := v.Apply(recordOf(t, "delta 258 @258")); r.Kind != graph.Rejected || r.Code != graph.BufferFull {
			t.Errorf("the record after 256: got %v %s", r.Kind, r.Code)
		}
		v.Apply(recordOf(t, "fact 400"))
		if got, want := describe(v, "r"), "1 @1 n1 resync"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("the newest while a snapshot is awaited", func(t *testing.T) {
		v := graph.NewView("s", graph.ViewOptions{})
		v.Apply(recordOf(t, "fact 999"))
		v.Apply(recordOf(t, "delta 2 @2"))
		for i := 3; i <= 600; i++ {
			if r := v.Apply(recordOf(t, fmt.Sprintf("delta %d @%d", i, i))); r.Kind != graph.Buffered {
				t.Fatalf("delta %d: got %v %s", i, r.Kind, r.Code)
			}
		}
		v.Apply(recordOf(t, "snapshot 344 @344"))
		if g, _ := v.Graph(graph.RunTree("r")); g.Revision != 600 || len(g.Nodes) != 257 || g.ResyncRequired {
			t.Errorf("got revision %d with %d nodes, resync %v, want 600 with 257", g.Revision, len(g.Nodes), g.ResyncRequired)
		}
	})
	t.Run("bytes", func(t *testing.T) {
		v := graph.NewView("s", graph.ViewOptions{})
		v.Apply(recordOf(t, "fact 1"))
		v.Apply(recordOf(t, "snapshot 1 @1"))
		large := `[{"op":"add","path":"/nodes/-","value":"` + strings.Repeat("x", 1<<19) + `"}]`
		for i := 2; ; i++ {
			r := v.Apply(recordOf(t, fmt.Sprintf("delta %d @%d %s", i, i, large)))
			if r.Kind == graph.Buffered && i <= 8 {
				continue
			}
			if r.Code != graph.BufferFull || i != 9 {
				t.Errorf("delta %d of half a megabyte: got %v %s, want the buffer full at the eighth", i, r.Kind, r.Code)
			}
			break
		}
	})
	t.Run("bytes that no longer wait", func(t *testing.T) {
		v := graph.NewView("s", graph.ViewOptions{})
		v.Apply(recordOf(t, "fact 1"))
		v.Apply(recordOf(t, "snapshot 1 @1"))
		large := `[{"op":"replace","path":"/nodes/0","value":"` + strings.Repeat("x", 1<<19) + `"}]`
		for i := 2; i <= 20; i++ {
			if r := v.Apply(recordOf(t, fmt.Sprintf("delta %d @%d %s", i, i, large))); r.Kind != graph.Buffered {
				t.Fatalf("delta %d: got %v %s", i, r.Kind, r.Code)
			}
			v.Apply(recordOf(t, fmt.Sprintf("fact %d", i)))
		}
	})
	t.Run("bytes behind a snapshot that waits", func(t *testing.T) {
		v := graph.NewView("s", graph.ViewOptions{})
		v.Apply(recordOf(t, "fact 1"))
		v.Apply(recordOf(t, "delta 2 @1")) // a snapshot is needed
		v.Apply(recordOf(t, "snapshot 3 @3"))
		for i := 4; i < 300; i++ {
			v.Apply(recordOf(t, fmt.Sprintf("delta %d @%d", i, i)))
		}
		v.Apply(recordOf(t, "fact 999"))
		if got := describe(v, "r"); got != "none" {
			t.Errorf("got %s: what overflowed must not be used", got)
		}
		v.Apply(recordOf(t, "snapshot 300 @300"))
		if got, want := describe(v, "r"), "300 @300 n300"; got != want {
			t.Errorf("after a snapshot: got %s, want %s", got, want)
		}
	})
}

func TestViewIsOfOneSession(t *testing.T) {
	v := graph.NewView("other", graph.ViewOptions{})
	for _, text := range []string{"snapshot 1 @1", "delta 2 @1", "fact 1"} {
		if r := v.Apply(recordOf(t, text)); r.Code != graph.OtherSession || r.Kind == graph.Applied {
			t.Errorf("%s: got %v %s", text, r.Kind, r.Code)
		}
	}
	if list := v.Resync(); len(list) > 0 {
		t.Errorf("another session's records made %v need snapshots", list)
	}
}

func TestViewForgets(t *testing.T) {
	v := graph.NewView("s", graph.ViewOptions{})
	v.Apply(recordOf(t, "fact 1"))
	v.Apply(recordOf(t, "snapshot 1 @1"))
	v.Forget(graph.RunTree("r"))
	if got := describe(v, "r"); got != "none" {
		t.Errorf("got %s, want none", got)
	}
	if r := v.Apply(recordOf(t, "snapshot 1 @1")); r.Code != graph.ScopeUnknown {
		t.Errorf("got %v %s", r.Kind, r.Code)
	}
}

// A workflow's graph follows the workflow's order.
func TestViewOfWorkflow(t *testing.T) {
	v := graph.NewView("s", graph.ViewOptions{})
	fact := &narad.WorkflowStarted{}
	fact.SessionID, fact.WorkflowID, fact.WorkflowSequence = "s", "w", 3
	v.Apply(fact)
	g := &narad.GraphSnapshot{
		SessionID: "s", GraphScope: narad.GraphScope{Scope: narad.ScopeWorkflow, WorkflowID: "w", Source: 3},
		Revision: 1, RootNodeID: "n",
	}
	if r := v.Apply(g); r.Kind != graph.Applied {
		t.Fatalf("got %v %s", r.Kind, r.Code)
	}
	if got, ok := v.Graph(graph.WorkflowOf("w")); !ok || got.Revision != 1 || got.RootNodeID != "n" {
		t.Errorf("got %+v, %v", got, ok)
	}
	if got, want := v.Canonical(graph.WorkflowOf("w")).String(), `{"edges":[],"nodes":[],"rootNodeId":"n"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The authors' traces with graph records: a strict view refuses the lines that their
// names call invalid, and a lenient one what it cannot use.
func TestReferenceTraces(t *testing.T) {
	for name, want := range map[string]struct{ strict, lenient string }{
		"run-graph":                    {"", ""},
		"graph-cursor-ahead.invalid":   {"2 rejected graph_cursor_ahead", "2 buffered graph_cursor_ahead"},
		"graph-cursor-regress.invalid": {"4 rejected graph_cursor_regressed", "4 rejected graph_cursor_regressed"},
		"graph-unknown-root.invalid":   {"1 rejected graph_scope_unknown", "1 rejected graph_scope_unknown"},
	} {
		for _, strict := range []bool{false, true} {
			expected := want.lenient
			if strict {
				expected = want.strict
			}
			if got := playTrace(t, name, strict); got != expected {
				t.Errorf("%s, strict %v: got %q, want %q", name, strict, got, expected)
			}
		}
	}
}

// playTrace returns the first answer of a view that is not simply applied.
func playTrace(t *testing.T, name string, strict bool) string {
	t.Helper()
	file, err := os.Open(filepath.Join(referencetest.Dir(t), "narad", "traces", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	state := session.New(session.Options{})
	var v *graph.View
	scanner := bufio.NewScanner(file)
	for n := 1; scanner.Scan(); n++ {
		rec, err := narad.Decoder{Strict: strict}.Decode(scanner.Bytes())
		if err != nil {
			t.Fatalf("%s:%d: %v", name, n, err)
		}
		if v == nil {
			id, _ := narad.Raw(scanner.Bytes()).Field("sessionId").IsString()
			v = graph.NewView(id, graph.ViewOptions{Strict: strict})
		}
		fact, is := rec.(narad.Authority)
		if is {
			state.Apply(fact)
			v.Apply(fact)
			continue
		}
		if r := v.Apply(rec); r.Kind != graph.Applied {
			return fmt.Sprintf("%d %v %s", n, r.Kind, r.Code)
		}
	}
	if name == "run-graph" {
		g, _ := v.Graph(graph.RunTree("run-graph"))
		if g.Revision != 2 || len(g.Nodes) != 2 || g.Cursor != 2 {
			t.Errorf("at the end: %+v, want revision 2 at 2 with two nodes", g)
		}
	}
	return ""
}
