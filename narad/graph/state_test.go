package graph_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/graph"
)

// tree numbers facts of the run tree "r" of session "s".
type tree struct{ facts []narad.Authority }

func (w *tree) tell(run string, fact narad.Authority) {
	e, n := fact.Envelope(), int64(len(w.facts)+1)
	e.EventID, e.Timestamp = fmt.Sprintf("%d.aaaaaaaa", n), fmt.Sprintf("2026-08-05T00:00:00.%06dZ", n)
	e.SessionID, e.SessionSequence, e.RootRunID, e.RunID, e.Sequence = "s", n, "r", run, n
	w.facts = append(w.facts, fact)
}

func (w *tree) start(run, parent, tool string) *narad.RunStarted {
	f := &narad.RunStarted{ParentRunID: parent, ParentToolCallID: tool}
	w.tell(run, f)
	return f
}

func (w *tree) call(run, tool string) {
	w.tell(run, &narad.ToolCallStarted{ToolCallID: tool, ToolName: "search", Executor: narad.ExecutorBackend, Args: narad.Raw("{}")})
}

func (w *tree) ask(run, interrupt string) {
	w.tell(run, &narad.InterruptRequested{InterruptID: interrupt, WaitID: "w", Kind: "approval", Actions: []string{"approve"}})
	w.tell(run, &narad.RunPaused{WaitID: "w", InterruptID: interrupt, Reason: "interrupt", ResumeMode: narad.ResumeCommand})
	w.tell(run, &narad.InterruptResolved{InterruptID: interrupt, WaitID: "w", Decision: "approve"})
	w.tell(run, &narad.RunResumed{WaitID: "w"})
}

// patches returns the patch of each fact that changes the graph, after the number of
// the fact.
func (w *tree) patches(t *testing.T) []string {
	t.Helper()
	var list []string
	s := graph.New("s", graph.RunTree("r"))
	for i, fact := range w.facts {
		if c := apply(t, s, fact); c != nil {
			list = append(list, fmt.Sprintf("%d %s", i+1, c.Delta().Patch))
		}
	}
	return list
}

// A run, a tool call in it and a nested run below that, as the deltas tell it.
func TestDeltas(t *testing.T) {
	w := &tree{}
	w.start("r", "", "")
	w.call("r", "t")
	nested := w.start("c", "r", "t")
	nested.SetOptional("agentName", narad.Quote("réviseur <1>"))
	w.tell("c", &narad.ProgressRecorded{ProgressID: "p", Category: "phase", Label: "x", Status: narad.ProgressActive, Privacy: narad.PrivacyPublic})
	w.tell("r", &narad.RunStopRequested{TargetRunID: "c"})
	w.tell("r", &narad.RunStopRequested{TargetRunID: "c"})
	w.tell("c", &narad.RunCancelled{Code: "stopped"})
	w.tell("r", &narad.ToolCallFinished{ToolCallID: "t", Outcome: narad.OutcomeError, Response: narad.Raw("null"), Code: "denied"})
	w.tell("r", &narad.RunFinished{})
	want := []string{
		`1 [{"op":"add","path":"/nodes/0","value":{"id":"run:r","kind":"run","label":"run","sequence":1,"status":"running"}}]`,
		`2 [{"op":"add","path":"/nodes/1","value":{"executor":"backend","id":"tool:t","kind":"tool","label":"search","sequence":2,"status":"running"}},` +
			`{"op":"add","path":"/edges/0","value":{"from":"run:r","kind":"called","to":"tool:t"}}]`,
		`3 [{"op":"add","path":"/nodes/2","value":{"id":"run:c","kind":"run","label":"réviseur <1>","sequence":3,"status":"running"}},` +
			`{"op":"add","path":"/edges/1","value":{"from":"tool:t","kind":"started","to":"run:c"}}]`,
		`5 [{"op":"replace","path":"/nodes/2","value":{"id":"run:c","kind":"run","label":"réviseur <1>","sequence":3,"status":"running","stopRequested":true}}]`,
		`7 [{"op":"replace","path":"/nodes/2","value":{"code":"stopped","id":"run:c","kind":"run","label":"réviseur <1>","sequence":3,"status":"cancelled","stopRequested":true}}]`,
		`8 [{"op":"replace","path":"/nodes/1","value":{"code":"denied","executor":"backend","id":"tool:t","kind":"tool","label":"search","sequence":2,"status":"error"}}]`,
		`9 [{"op":"replace","path":"/nodes/0","value":{"id":"run:r","kind":"run","label":"run","sequence":1,"status":"finished"}}]`,
	}
	if d := cmp.Diff(want, w.patches(t), lines); d != "" {
		t.Errorf("patches (-want +got):\n%s", d)
	}
}

// R10: a gate run is folded. What it asks hangs at the call it asks for, and its start,
// pause, resume and end change nothing.
func TestGatesAreFolded(t *testing.T) {
	w := &tree{}
	w.start("r", "", "")
	w.call("r", "t")
	w.start("g", "r", "t").SetOptional("gate", narad.Raw("true"))
	w.ask("g", "i")
	w.tell("g", &narad.RunFinished{})
	got := w.patches(t)[2:]
	want := []string{
		`4 [{"op":"add","path":"/nodes/2","value":{"id":"interrupt:i","kind":"interrupt","label":"approval","sequence":4,"status":"open"}},` +
			`{"op":"add","path":"/edges/1","value":{"from":"tool:t","kind":"asked","to":"interrupt:i"}}]`,
		`6 [{"op":"replace","path":"/nodes/2","value":{"decision":"approve","id":"interrupt:i","kind":"interrupt","label":"approval","sequence":4,"status":"resolved"}}]`,
	}
	if d := cmp.Diff(want, got, lines); d != "" {
		t.Errorf("patches of the gate (-want +got):\n%s", d)
	}
	s := graph.New("s", graph.RunTree("r"))
	for _, fact := range w.facts {
		apply(t, s, fact)
	}
	if kept := s.Encode(); strings.Contains(string(kept), `"gates"`) {
		t.Errorf("a gate that has ended is still kept: %s", kept)
	}
}

// A run that names a call nobody has seen hangs below the run above it.
func TestRunOfUnknownCall(t *testing.T) {
	w := &tree{}
	w.start("r", "", "")
	w.start("c", "r", "t")
	got := w.patches(t)[1]
	if want := `{"from":"run:r","kind":"started","to":"run:c"}`; !strings.Contains(got, want) {
		t.Errorf("got %s, want the edge %s", got, want)
	}
}

// The bytes of the records, which must be the same for ever.
func TestRecordBytes(t *testing.T) {
	w := &tree{}
	w.start("r", "", "")
	w.call("r", "t")
	s := graph.New("s", graph.RunTree("r"))
	var got []string
	for _, fact := range w.facts {
		got = append(got, write(t, s.Record(apply(t, s, fact))))
	}
	want := []string{
		`{"type":"graph.snapshot","protocolVersion":"narad/v1","timestamp":"2026-08-05T00:00:00.000001Z","sessionId":"s","scope":"run","graphSchemaVersion":"narad.graph/v1","rootRunId":"r",` +
			`"sourceRunCursor":{"rootRunId":"r","sequence":1},"revision":1,"rootNodeId":"run:r","nodes":[{"id":"run:r","kind":"run","label":"run","sequence":1,"status":"running"}],"edges":[]}`,
		`{"type":"graph.delta","protocolVersion":"narad/v1","timestamp":"2026-08-05T00:00:00.000002Z","sessionId":"s","scope":"run","graphSchemaVersion":"narad.graph/v1","rootRunId":"r",` +
			`"sourceRunCursor":{"rootRunId":"r","sequence":2},"baseRevision":1,"revision":2,"patch":` +
			`[{"op":"add","path":"/nodes/1","value":{"executor":"backend","id":"tool:t","kind":"tool","label":"search","sequence":2,"status":"running"}},` +
			`{"op":"add","path":"/edges/0","value":{"from":"run:r","kind":"called","to":"tool:t"}}]}`,
	}
	if d := cmp.Diff(want, got, lines); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
}

// R29: a snapshot first, and again after every 128 deltas.
func TestSnapshotAfterEvery128Deltas(t *testing.T) {
	w := &tree{}
	w.start("r", "", "")
	for i := range 300 {
		w.call("r", fmt.Sprintf("t%d", i))
	}
	s, view := graph.New("s", graph.RunTree("r")), graph.NewView("s", graph.ViewOptions{Strict: true})
	var snapshots []int64
	for _, fact := range w.facts {
		rec := s.Record(apply(t, s, fact))
		if snapshot, is := rec.(*narad.GraphSnapshot); is {
			snapshots = append(snapshots, snapshot.Revision)
		}
		view.Apply(fact)
		if r := view.Apply(rec); r.Kind != graph.Applied {
			t.Fatalf("%v %s: %s", r.Kind, r.Code, write(t, rec))
		}
	}
	if d := cmp.Diff([]int64{1, 130, 259}, snapshots); d != "" {
		t.Errorf("revisions with a snapshot (-want +got):\n%s", d)
	}
}

// R29: a snapshot of more than 500,000 bytes is not sent, its delta is.
func TestLargeSnapshotsAreNotSent(t *testing.T) {
	w := &tree{}
	w.start("r", "", "")
	for i := range 3500 {
		w.call("r", fmt.Sprintf("t%d", i))
		w.tell("r", &narad.ToolCallFinished{
			ToolCallID: fmt.Sprintf("t%d", i), Outcome: narad.OutcomeError, Code: "out_of_memory", Response: narad.Raw("null"),
		})
	}
	s := graph.New("s", graph.RunTree("r"))
	fitted, missed := 0, 0
	for i, fact := range w.facts {
		c := apply(t, s, fact)
		due := (c.Revision-1)%129 == 0
		if !due && i%97 != 0 {
			continue
		}
		size := len(write(t, bare(s.Snapshot()))) - len("[],[]") + len(join(s.Snapshot().Nodes)) + len(",") + len(join(s.Snapshot().Edges))
		if fits := size <= 500_000; s.Fits() != fits {
			t.Fatalf("revision %d has %d bytes and fits: %v", c.Revision, size, s.Fits())
		}
		_, sent := s.Record(c).(*narad.GraphSnapshot)
		if due && size <= 500_000 != sent || !due && sent {
			t.Fatalf("revision %d of %d bytes is sent as a snapshot: %v", c.Revision, size, sent)
		}
		if due && sent {
			fitted++
		}
		if due && !sent {
			missed++
			write(t, s.Record(c)) // the delta can be written
		}
	}
	if fitted == 0 || missed == 0 {
		t.Errorf("%d snapshots fitted and %d did not, want some of each", fitted, missed)
	}
}

// bare returns a snapshot without nodes and edges, since a large one cannot be written.
func bare(g *narad.GraphSnapshot) *narad.GraphSnapshot {
	g.Nodes, g.Edges = nil, nil
	return g
}

// A fact that is not the next of its tree is refused and changes nothing; one that was
// taken, or is of another tree or session, is passed over.
func TestOnlyTheNextFactIsTaken(t *testing.T) {
	w := &tree{}
	w.start("r", "", "")
	w.call("r", "t1")
	w.call("r", "t2")
	other, foreign := *w.facts[1].(*narad.ToolCallStarted), *w.facts[1].(*narad.ToolCallStarted)
	other.RootRunID, foreign.SessionID = "r2", "s2"
	s := graph.New("s", graph.RunTree("r"))
	if s.Snapshot() != nil || s.Fits() {
		t.Error("a graph with nothing in it has a snapshot")
	}
	apply(t, s, w.facts[0])
	before := string(s.Encode())
	if _, err := s.Apply(w.facts[2]); !errors.Is(err, graph.ErrGap) {
		t.Errorf("a fact too far on: got %v, want ErrGap", err)
	}
	for _, fact := range []narad.Authority{w.facts[0], &other, &foreign} {
		if c, err := s.Apply(fact); c != nil || err != nil {
			t.Errorf("a fact for others: got %v, %v", c, err)
		}
	}
	if after := string(s.Encode()); after != before {
		t.Errorf("the state has changed from\n%s\nto\n%s", before, after)
	}
	if c := apply(t, s, w.facts[1]); c == nil || c.Revision != 2 || s.Last() != 2 {
		t.Errorf("the next fact: got %+v, last %d", c, s.Last())
	}
	g := graph.NewGraphs("s")
	if rec, err := g.Apply(w.facts[1]); rec != nil || !errors.Is(err, graph.ErrGap) {
		t.Errorf("graphs of a session, from the middle: got %v, %v, want ErrGap", rec, err)
	}
	if _, open := g.Open("r"); open {
		t.Error("a refused fact left a graph behind")
	}
	g.Adopt(s)
	if rec, err := g.Apply(w.facts[2]); rec == nil || err != nil {
		t.Errorf("after the graph was adopted: got %v, %v", rec, err)
	}
}

// A change is a value: what comes later does not reach into it.
func TestRecordsStayWhatTheyAre(t *testing.T) {
	w := &tree{}
	w.start("r", "", "")
	for i := range 50 {
		w.call("r", fmt.Sprintf("t%d", i))
	}
	w.tell("r", &narad.RunPaused{WaitID: "w", Reason: "x", ResumeMode: narad.ResumeCommand})
	s := graph.New("s", graph.RunTree("r"))
	var records []narad.Record
	var then []string
	for _, fact := range w.facts {
		c := apply(t, s, fact)
		for _, rec := range []narad.Record{c.Delta(), s.Snapshot()} {
			records, then = append(records, rec), append(then, write(t, rec))
		}
	}
	for i, rec := range records {
		if now := write(t, rec); now != then[i] {
			t.Fatalf("record %d has changed from\n%s\nto\n%s", i, then[i], now)
		}
	}
}

// Texts are cut, never inside a character; the whole is in the facts.
func TestTextsAreShort(t *testing.T) {
	w := &tree{}
	w.start("r", "", "")
	w.tell("r", &narad.ToolCallStarted{ToolCallID: "t", ToolName: strings.Repeat("é", 300) + "x", Executor: narad.ExecutorBackend, Args: narad.Raw("{}")})
	w.tell("r", &narad.ToolCallStarted{ToolCallID: "u", ToolName: "x" + strings.Repeat("é", 300), Executor: narad.ExecutorBackend, Args: narad.Raw("{}")})
	w.tell("r", &narad.ToolCallFinished{ToolCallID: "t", Outcome: narad.OutcomeError, Code: strings.Repeat("c", 1000), Response: narad.Raw("{}")})
	s := graph.New("s", graph.RunTree("r"))
	for _, fact := range w.facts {
		apply(t, s, fact)
	}
	nodes := s.Snapshot().Nodes
	for i, want := range []string{strings.Repeat("é", 128), "x" + strings.Repeat("é", 127)} {
		if got, _ := nodes[i+1].Field("label").IsString(); got != want {
			t.Errorf("label of node %d: got %d bytes %q, want %d", i+1, len(got), got, len(want))
		}
	}
	if got, _ := nodes[1].Field("code").IsString(); got != strings.Repeat("c", 256) {
		t.Errorf("code: got %d bytes, want 256", len(got))
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, data := range []string{"", "{}", `{"version":2}`, `[]`, `{"version":1,"nodes":7}`, "\xff"} {
		if s, err := graph.Decode([]byte(data)); err == nil {
			t.Errorf("Decode(%q) = %+v, want an error", data, s)
		}
	}
}

// Edges of any ids come to stand by from, to, kind, also where there are many.
func TestEdgesAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &tree{}
		w.start("r", "", "")
		known := []string{"r"}
		for range rapid.IntRange(0, 3000).Draw(t, "runs") {
			id := fmt.Sprintf("c%d", rapid.IntRange(0, 1<<30).Draw(t, "id"))
			parent := known[rapid.IntRange(0, min(len(known), 40)-1).Draw(t, "parent")]
			w.start(id, parent, "")
			known = append(known, id)
		}
		s, view := graph.New("s", graph.RunTree("r")), graph.NewView("s", graph.ViewOptions{})
		for _, fact := range w.facts {
			view.Apply(fact)
			if c := apply(t, s, fact); c != nil {
				view.Apply(s.Record(c))
			}
		}
		last := [3]string{}
		for _, e := range s.Snapshot().Edges {
			var now [3]string
			for i, name := range []string{"from", "to", "kind"} {
				now[i], _ = e.Field(name).IsString()
			}
			if strings.Join(last[:], "\x00") >= strings.Join(now[:], "\x00") {
				t.Fatalf("%v stands before %v", last, now)
			}
			last = now
		}
		if got, want := view.Canonical(graph.RunTree("r")), s.Canonical(); got.String() != want.String() {
			t.Fatalf("the view has %d bytes and the state %d: places in deltas are wrong", len(got), len(want))
		}
	})
}
