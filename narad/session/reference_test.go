package session_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mahati-host/mahati/internal/referencetest"
	"github.com/mahati-host/mahati/narad/session"
)

// A traceEnd is what a reference trace leads to.
type traceEnd struct {
	// given are the outcomes that are not "applied", by line number from 1. Where the
	// modes differ they are "strict | lenient".
	given map[int]string
	// says are the answers of the snapshot at the end.
	says map[string]string
}

var traceEnds = map[string]traceEnd{
	"authority-replay": {
		map[int]string{2: "duplicate", 4: "duplicate"},
		map[string]string{"lastSessionSequence": "2", "runs.run-replay.state": `"finished"`},
	},
	"client-tool": {
		map[int]string{1: "control", 2: "control", 5: "control", 6: "control", 7: "control", 8: "control", 9: "control"},
		map[string]string{"lastSessionSequence": "4", "runs.run-2.state": `"finished"`, "tools.tool-2.outcome": `"success"`},
	},
	"client-tool-delivery-failure": {nil, map[string]string{
		"lastSessionSequence": "4", "runs.run-client-failure.state": `"error"`, "tools.tool-missing.outcome": `"error"`,
	}},
	"client-tool-stop": {nil, map[string]string{
		"lastSessionSequence": "5", "runs.run-client-stop.state": `"cancelled"`,
		"runs.run-client-stop.stopRequested": "true", "tools.tool-stop.outcome": `"cancelled"`,
	}},
	// A host must not send it; a client holds it back until the authority is there.
	"graph-cursor-ahead.invalid": {
		map[int]string{2: "rejected graph_cursor_ahead | buffered graph_cursor_ahead"},
		map[string]string{"lastSessionSequence": "1", "graphs": "absent"},
	},
	"graph-cursor-regress.invalid": {
		map[int]string{4: "rejected graph_cursor_regressed"},
		map[string]string{
			"lastSessionSequence": "2", "graphs.run:run-bad.revision": "1",
			"graphs.run:run-bad.resyncRequired": "true", "resyncRequired": "false",
		},
	},
	"graph-unknown-root.invalid": {
		map[int]string{1: "rejected graph_scope_unknown"},
		map[string]string{"lastSessionSequence": "0", "graphs": "absent"},
	},
	"graph-has-authority-fields.invalid": {
		map[int]string{2: "rejected invalid_hydrate"},
		map[string]string{"lastSessionSequence": "1"},
	},
	"independent-run": {
		map[int]string{3: "duplicate"},
		map[string]string{"lastSessionSequence": "4", "runs.run-1.state": `"finished"`, "tools.tool-1.outcome": `"success"`},
	},
	"interrupt-pause": {nil, map[string]string{
		"lastSessionSequence": "6", "runs.run-3.state": `"finished"`,
		"interrupts.interrupt-1.open": "false", "interrupts.interrupt-1.decision": `"approve"`,
	}},
	"progress-after-terminal.invalid": {
		map[int]string{3: "rejected run_ended"},
		map[string]string{"lastSessionSequence": "2", "progress": "absent"},
	},
	"progress-before-run.invalid": {
		map[int]string{1: "rejected run_not_started"},
		map[string]string{"lastSessionSequence": "0"},
	},
	"progress-interrupt-adjacency.invalid": {
		map[int]string{3: "rejected pause_must_follow", 4: "gap session_gap"},
		map[string]string{"lastSessionSequence": "2", "sessionGap": "true"},
	},
	"progress-replay": {
		map[int]string{3: "duplicate"},
		map[string]string{
			"lastSessionSequence": "5", "runs.run-progress.state": `"finished"`,
			"progress.run-progress.phase-planning.status":   `"completed"`,
			"progress.run-progress.connector-search.status": `"active"`,
		},
	},
	"progress-while-paused": {nil, map[string]string{
		"lastSessionSequence": "7", "runs.run-paused-progress.state": `"finished"`,
		"progress.run-paused-progress.phase-wait.status": `"active"`,
	}},
	"reconnect-revision": {
		map[int]string{4: "duplicate", 5: "duplicate"},
		map[string]string{"lastSessionSequence": "3", "revisions.session": "2"},
	},
	"run-graph": {nil, map[string]string{
		"lastSessionSequence": "4", "runs.run-graph.state": `"finished"`, "tools.tool-1.open": "false",
		"graphs.run:run-graph.revision": "2", "graphs.run:run-graph.cursor": "2",
		"graphs.run:run-graph.nodes": `[{"id":"node-root","label":"Run"},{"id":"node-tool-1","label":"search"}]`,
	}},
	"snapshot-replay": {nil, map[string]string{
		"lastSessionSequence": "5", "messages.2.content": `"Welcome back."`, "messages.3": "absent",
	}},
	"terminal-usage": {nil, map[string]string{
		"lastSessionSequence": "7", "runs.run-usage-ok.state": `"finished"`,
		"runs.run-usage-err.state": `"error"`, "runs.run-usage-cancel.state": `"cancelled"`,
		"runs.run-usage-cancel.usage": `{"promptTokens":12,"completionTokens":0}`,
	}},
	"workflow": {nil, map[string]string{
		"lastSessionSequence": "4", "workflows.workflow-1.state": `"finished"`, "workflows.workflow-1.lastWorkflowSequence": "4",
	}},
	"workflow-edge": {nil, map[string]string{
		"lastSessionSequence": "3", "workflows.workflow-edge.state": `"finished"`,
		"workflows.workflow-edge.lastWorkflowSequence": "3", "workflows.workflow-edge.currentNodeId": `"step-3"`,
	}},
	"workflow-edge-missing-from.invalid": {
		map[int]string{2: "rejected invalid_record"},
		map[string]string{"lastSessionSequence": "1"},
	},
	"workspace-watch": {nil, map[string]string{
		"lastSessionSequence": "0", "workspace.revision": "5",
		"workspace.sessions": `[{"sessionId":"session-watch-a","archived":true},{"sessionId":"session-watch-b","archived":false}]`,
	}},
}

// TestReferenceTraces plays the authors' traces in both modes: what their names
// call valid is applied to its end, and what they call invalid is refused.
func TestReferenceTraces(t *testing.T) {
	dir := filepath.Join(referencetest.Dir(t), "narad", "traces")
	paths, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no traces in %s (error: %v)", dir, err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		end, ok := traceEnds[name]
		if !ok {
			t.Errorf("the trace %s has no row in the table", name)
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range modes {
			t.Run(name+"/"+mode, func(t *testing.T) {
				playTrace(t, bytes.Split(bytes.TrimSpace(content), []byte("\n")), mode, end)
			})
		}
	}
}

func playTrace(t *testing.T, lines [][]byte, mode string, end traceEnd) {
	t.Helper()
	p := newPlayer(session.Options{Remember: session.RememberAll}, mode == "strict")
	for i, line := range lines {
		want, otherwise, differ := strings.Cut(end.given[i+1], " | ")
		if differ && mode == "lenient" {
			want = otherwise
		}
		if want == "" {
			want = "applied"
		}
		if got := p.apply(line); got.String() != want {
			t.Errorf("line %d: %s\ngot  %s\nwant %s", i+1, line, got, want)
		}
	}
	for path, want := range end.says {
		got, err := p.ask(path)
		if err != nil {
			t.Fatal(err)
		}
		if !sameText(got, want) {
			t.Errorf("at the end %s is %s, want %s", path, got, want)
		}
	}
}
