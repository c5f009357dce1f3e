package watch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/watch"
	"github.com/mahati-host/mahati/narad"
)

// fact places a fact at session sequence 7, and where it belongs to a run or a
// workflow at 3 of the run tree and 5 of the workflow.
func fact[T narad.Authority](f T, run, workflow string) T {
	e := f.Envelope()
	e.EventID, e.Timestamp, e.SessionID, e.SessionSequence = "7.abcdefgh", "2026-08-05T00:00:07Z", "s", 7
	if run != "" {
		e.RootRunID, e.RunID, e.Sequence = "root", run, 3
	}
	if workflow != "" {
		e.WorkflowID, e.WorkflowSequence = workflow, 5
	}
	return f
}

func write(t rapid.TB, r *narad.Revision) string {
	t.Helper()
	data, err := narad.Encode(r)
	if err != nil {
		t.Fatalf("encode %+v: %v", r, err)
	}
	return string(data)
}

func writeAll(t rapid.TB, events []*narad.Revision) []string {
	t.Helper()
	lines := make([]string, len(events))
	for i, r := range events {
		lines[i] = write(t, r)
	}
	return lines
}

// R28: the events of one fact, from the innermost scope out.
func TestSession(t *testing.T) {
	const (
		session  = "session.revision:s:7 session=s cursor=session//7"
		run      = "run.revision:child:7 session=s root=root run=child cursor=run/root/3"
		workflow = "workflow.revision:w:7 session=s workflow=w cursor=workflow/w/5"
	)
	node := func(id string) string {
		return "node.revision:" + id + ":7 session=s workflow=w node=" + id + " cursor=workflow/w/5"
	}
	step := &narad.WorkflowStep{Kind: narad.TypeWorkflowStepFinished, NodeID: "plan"}
	custom := func(kind narad.Type, node string) *narad.Custom { return &narad.Custom{Kind: kind, NodeID: node} }
	for _, tt := range []struct {
		name string
		fact narad.Authority
		want []string
	}{
		{"of a session", fact(&narad.MessageUserRecorded{}, "", ""), []string{session}},
		{"of a run", fact(&narad.ToolCallStarted{}, "child", ""), []string{run, session}},
		{"of a message in a run", fact(&narad.MessageTextDelta{}, "child", ""), []string{run, session}},
		{"of a run in a workflow", fact(&narad.RunFinished{}, "child", "w"), []string{workflow, run, session}},
		{
			"that stops another run", fact(&narad.RunStopRequested{TargetRunID: "child"}, "root", ""),
			[]string{run, strings.ReplaceAll(run, "child", "root"), session},
		},
		{"that stops its own run", fact(&narad.RunStopRequested{TargetRunID: "child"}, "child", ""), []string{run, session}},
		{"of a workflow", fact(&narad.WorkflowStarted{}, "", "w"), []string{workflow, session}},
		{"of a workflow at a node", fact(&narad.WorkflowStarted{NodeID: "plan"}, "", "w"), []string{node("plan"), workflow, session}},
		{"that pauses at a node", fact(&narad.WorkflowPaused{NodeID: "plan"}, "", "w"), []string{node("plan"), workflow, session}},
		{"that goes on at a node", fact(&narad.WorkflowResumed{NodeID: "plan"}, "", "w"), []string{node("plan"), workflow, session}},
		{"of a step", fact(step, "", "w"), []string{node("plan"), workflow, session}},
		{"of an edge", fact(&narad.WorkflowEdgeTaken{From: "write", To: "check"}, "", "w"), []string{node("check"), node("write"), workflow, session}},
		{"of an edge to itself", fact(&narad.WorkflowEdgeTaken{From: "plan", To: "plan"}, "", "w"), []string{node("plan"), workflow, session}},
		{"of an extension of a node", fact(custom(narad.TypeNodeCustom, "plan"), "", "w"), []string{node("plan"), workflow, session}},
		{"of an opaque extension", fact(&narad.Opaque{Kind: narad.TypeNodeRaw, NodeID: "plan"}, "", "w"), []string{node("plan"), workflow, session}},
		{"of a profile that was not negotiated", fact(&narad.Skipped{Kind: "state.delta"}, "child", ""), []string{run, session}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, r := range watch.Session(tt.fact) {
				got = append(got, summary(r))
				if r.Revision != 7 || r.Timestamp != "2026-08-05T00:00:07Z" {
					t.Errorf("revision %d at %s, want the sequence 7 and the time of the fact", r.Revision, r.Timestamp)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("events of %T (-want +got):\n%s", tt.fact, d)
			}
		})
	}
}

func summary(r *narad.Revision) string {
	var b strings.Builder
	b.WriteString(r.EventID)
	for _, f := range [][2]string{
		{"workspace", r.WorkspaceID}, {"session", r.SessionID}, {"root", r.RootRunID}, {"run", r.RunID},
		{"workflow", r.WorkflowID}, {"node", r.NodeID},
	} {
		if f[1] != "" {
			fmt.Fprintf(&b, " %s=%s", f[0], f[1])
		}
	}
	if r.Cursor == nil {
		return b.String() + " without cursor"
	}
	fmt.Fprintf(&b, " cursor=%s/%s/%d", r.Cursor.Kind, r.Cursor.ID, r.Cursor.Sequence)
	for _, m := range r.Cursor.Extra {
		fmt.Fprintf(&b, " %s=%s", m.Name, m.Value)
	}
	return b.String()
}

// The bytes are for ever the same, as a replay after an update must find its place.
func TestSessionBytes(t *testing.T) {
	got := writeAll(t, watch.Session(fact(&narad.WorkflowStep{Kind: narad.TypeWorkflowStepStarted, NodeID: "plan"}, "", "w")))
	want := []string{
		`{"type":"node.revision","protocolVersion":"narad/v1","eventId":"node.revision:plan:7","timestamp":"2026-08-05T00:00:07Z","sessionId":"s","workflowId":"w","nodeId":"plan","revision":7,"cursor":{"kind":"workflow","workflowId":"w","workflowSequence":5}}`,
		`{"type":"workflow.revision","protocolVersion":"narad/v1","eventId":"workflow.revision:w:7","timestamp":"2026-08-05T00:00:07Z","sessionId":"s","workflowId":"w","revision":7,"cursor":{"kind":"workflow","workflowId":"w","workflowSequence":5}}`,
		`{"type":"session.revision","protocolVersion":"narad/v1","eventId":"session.revision:s:7","timestamp":"2026-08-05T00:00:07Z","sessionId":"s","revision":7,"cursor":{"kind":"session","sessionSequence":7}}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("bytes (-want +got):\n%s", d)
	}
}

// R8, R28: a fact about the session as a whole yields its session event and no
// workspace.revision; the revision is the host offset.
func TestWorkspace(t *testing.T) {
	statusChange := fact(&narad.RunStarted{}, "root", "")
	facts.SetStatus(&statusChange.Event, facts.Idle, facts.Running)
	runNamed := facts.Run("root", "root", facts.SessionArchived, facts.Archived{})
	const revision = `workspace.revision:ws:40 workspace=ws cursor=session//7 sessionId="s"`
	event := func(kind string) string { return kind + ":s:40 workspace=ws session=s cursor=session//7" }
	for _, tt := range []struct {
		name string
		fact narad.Authority
		want string
	}{
		{"created", fact(facts.Session(facts.SessionCreated, facts.Created{WorkspaceID: "ws"}), "", ""), event("session.created")},
		{"archived", fact(facts.Session(facts.SessionArchived, facts.Archived{}), "", ""), event("session.archived")},
		{"restored", fact(facts.Session(facts.SessionRestored, facts.Archived{}), "", ""), event("session.updated")},
		{"posture", fact(facts.Session(facts.Posture, facts.Postured{}), "", ""), event("session.updated")},
		{"status", statusChange, event("session.updated")},
		{"anything else", fact(&narad.ToolCallStarted{}, "root", ""), revision},
		{"a fact of a run with such a name", fact(runNamed, "root", ""), revision},
		{"other facts of ours", fact(facts.Session(facts.AgentRemembered, facts.Remembered{}), "", ""), revision},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := watch.Workspace("ws", watch.Change{Fact: tt.fact, Offset: 40})
			data, err := narad.Encode(tt.fact)
			if err != nil {
				t.Logf("not written: %v", err) // the table has facts without what their types demand
			} else if told := r.Kind != narad.TypeWorkspaceRevision; told && !watch.MayTell(data) {
				t.Errorf("MayTell does not see %s", data)
			}
			if got := summary(r); got != tt.want || r.Revision != 40 || r.Timestamp != "2026-08-05T00:00:07Z" {
				t.Errorf("got %s, revision %d at %s\nwant %s, revision 40 at the time of the fact", got, r.Revision, r.Timestamp, tt.want)
			}
		})
	}
}

// R8: neither the stream of the host nor a side session is watched.
func TestHiddenSessions(t *testing.T) {
	for _, id := range []string{"~host", "s~trace"} {
		f := fact(&narad.Tracing{Kind: narad.TypeTraceEvent}, "", "")
		f.SessionID = id
		change := watch.Change{Fact: f, Offset: 1}
		if got := watch.Session(f); len(got) > 0 {
			t.Errorf("%s: Session gave %s", id, writeAll(t, got))
		}
		if got := watch.Coalesce([]narad.Authority{f}); len(got) > 0 {
			t.Errorf("%s: Coalesce gave %s", id, writeAll(t, got))
		}
		if got := watch.Workspace("ws", change); got != nil {
			t.Errorf("%s: Workspace gave %s", id, write(t, got))
		}
		if got := watch.CoalesceWorkspace("ws", []watch.Change{change}); len(got) > 0 {
			t.Errorf("%s: CoalesceWorkspace gave %s", id, writeAll(t, got))
		}
	}
}

// A created session is told as created, however soon it changes, and what a
// workspace's list shows is up to date after the last event.
func TestCoalesceWorkspaceKeepsEachKindOfEvent(t *testing.T) {
	at := func(offset int64, name string) watch.Change {
		return watch.Change{Fact: fact(facts.Session(name, facts.Archived{}), "", ""), Offset: offset}
	}
	var got []string
	for _, r := range watch.CoalesceWorkspace("ws", []watch.Change{
		at(10, facts.SessionCreated), at(11, facts.InputQueued), at(12, facts.SessionArchived),
		at(20, facts.SessionRestored), at(21, facts.InputQueued), at(30, facts.SessionArchived),
	}) {
		got = append(got, r.EventID)
	}
	want := []string{"session.created:s:10", "session.updated:s:20", "workspace.revision:ws:21", "session.archived:s:30"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestParse(t *testing.T) {
	for id, want := range map[string]watch.Place{
		"session.revision:s:42":              {Kind: narad.TypeSessionRevision, Revision: 42},
		"run.revision:a:b:c:1":               {Kind: narad.TypeRunRevision, Revision: 1},
		"node.revision:::9007199254740991":   {Kind: narad.TypeNodeRevision, Revision: narad.MaxInteger},
		"workspace.revision:default:7":       {Kind: narad.TypeWorkspaceRevision, Revision: 7},
		"session.archived:session.created:7": {Kind: narad.TypeSessionArchived, Revision: 7},
	} {
		got, ok := watch.Parse(id)
		if !ok || got != want {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", id, got, ok, want)
		}
		if ofWorkspace := strings.Contains(id, "workspace") || strings.Contains(id, "created"); got.OfWorkspace() != ofWorkspace {
			t.Errorf("Parse(%q).OfWorkspace() = %v, want %v", id, got.OfWorkspace(), ofWorkspace)
		}
	}
	for _, id := range []string{
		"", ":", "::", "42.abcdefgh", "session.revision", "session.revision:", "session.revision:42", "session.revision::42",
		"session.revision:s:", "session.revision:s:0", "session.revision:s:-1", "session.revision:s:+1", "session.revision:s:042",
		"session.revision:s:1.0", "session.revision:s:9007199254740992", "session.revision:s:99999999999999999999", "session.revision:s:4 ",
		"run.started:r:4", "graph.snapshot:r:4", "server.heartbeat:r:4", "SESSION.REVISION:s:4", " session.revision:s:4",
	} {
		if got, ok := watch.Parse(id); ok {
			t.Errorf("Parse(%q) = %+v, want a refusal", id, got)
		}
	}
}

// An id stands on one line of a frame and comes back in a header, whatever the names
// in it are, and different names stay different.
func TestIDsAreOneLine(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"a\nb", "a%0Ab", "a%250Ab", "a\rb", "a\x00b", "a\tb", "a\x7fb", "é:%", "é:%25"} {
		events := watch.Session(fact(&narad.WorkflowStep{Kind: narad.TypeWorkflowStepStarted, NodeID: name}, "", "w"))
		id := events[0].EventID
		if strings.IndexFunc(id, func(r rune) bool { return r < 0x20 || r == 0x7f }) >= 0 {
			t.Errorf("node %q: id %q has a control character", name, id)
		}
		if other, taken := seen[id]; taken {
			t.Errorf("nodes %q and %q share the id %q", name, other, id)
		}
		seen[id] = name
		if p, ok := watch.Parse(id); !ok || p.Revision != 7 {
			t.Errorf("node %q: Parse(%q) = %+v, %v", name, id, p, ok)
		}
	}
}

// An id that no event of the fact has is not believed (R3).
func TestRestRefusesForeignIDs(t *testing.T) {
	events := watch.Session(fact(&narad.RunStarted{}, "root", ""))
	for _, id := range []string{"session.revision:other:7", "run.revision:root:8", "run.revision:ROOT:7", "workflow.revision:w:7", ""} {
		if rest, ok := watch.Rest(id, events); ok {
			t.Errorf("Rest(%q) = %s, want a refusal", id, writeAll(t, rest))
		}
	}
}
