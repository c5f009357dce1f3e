package sessiontest

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// A story is a few events in short: one per line, a type and name=value pairs. What a
// type needs and the line does not say is filled in, sequences included. run=r1 stands
// for a top-level run, run=r1/c1 for one nested below it, wf=w1 for a workflow.
type story struct {
	m        *Model
	sequence int64
	flows    map[string]int64
	roots    map[string]int64
	events   int
}

// usual are the fields that a type needs.
var usual = map[string]object{
	"run.paused":             {"waitId": "wait", "reason": "capacity", "resumeMode": "command"},
	"run.resumed":            {"waitId": "wait"},
	"run.error":              {"code": "c", "message": ""},
	"interrupt.requested":    {"interruptId": "i1", "waitId": "wait", "kind": "k", "actions": []any{"approve", "deny", "stop"}},
	"interrupt.resolved":     {"interruptId": "i1", "waitId": "wait", "decision": "approve"},
	"tool.call.started":      {"toolCallId": "t1", "toolName": "x", "executor": "backend", "args": object{}},
	"tool.call.finished":     {"toolCallId": "t1", "outcome": "success", "response": nil},
	"message.user.recorded":  {"messageId": "m1", "messageScope": "session", "content": "hi"},
	"message.text.started":   {"messageId": "m1", "messageScope": "session", "role": "assistant"},
	"message.text.delta":     {"messageId": "m1", "delta": "a"},
	"message.text.completed": {"messageId": "m1"},
	"message.redacted":       {"messageId": "m1", "reason": "r", "displayReplacement": "gone"},
	"reasoning.started":      {"reasoningId": "x1"},
	"reasoning.delta":        {"reasoningId": "x1", "delta": "h"},
	"reasoning.completed":    {"reasoningId": "x1"},
	"attachment.added":       {"attachmentId": "a1"},
	"attachment.ready":       {"attachmentId": "a1"},
	"attachment.failed":      {"attachmentId": "a1"},
	"attachment.removed":     {"attachmentId": "a1"},
	"artifact.added":         {"artifactId": "a1"},
	"artifact.ready":         {"artifactId": "a1"},
	"artifact.failed":        {"artifactId": "a1"},
	"state.snapshot":         {"scope": "session", "revision": 1, "state": object{"n": 1}},
	"ui.state.snapshot":      {"scope": "session", "revision": 1, "state": object{"n": 1}},
	"state.delta":            {"scope": "session", "baseRevision": 1, "revision": 2, "patch": []any{object{"op": "replace", "path": "/n", "value": 2}}},
	"state.compacted":        {"scope": "session", "coversThroughSessionSequence": 1, "snapshotRevision": 3},
	"view.opened":            {"viewId": "v1"},
	"view.updated":           {"viewId": "v1", "operation": "patch", "patch": []any{object{"op": "add", "path": "/n", "value": 2}}},
	"view.closed":            {"viewId": "v1"},
	"progress.recorded":      {"progressId": "p1", "category": "c", "label": "l", "status": "active", "privacy": "public"},
	"workflow.paused":        {"waitId": "wait", "interruptId": "i1"},
	"workflow.resumed":       {"waitId": "wait"},
	"workflow.step.started":  {"nodeId": "a"},
	"workflow.step.finished": {"nodeId": "a"},
	"workflow.step.failed":   {"nodeId": "a"},
	"workflow.edge.taken":    {"from": "a", "to": "b"},
	"session.custom":         {"name": "a.b", "value": nil},
	"session.revision":       {"revision": 1},
	"run.revision":           {"revision": 1, "rootRunId": "r1", "runId": "r1"},
	"workflow.revision":      {"revision": 1, "workflowId": "w1"},
	"node.revision":          {"revision": 1, "workflowId": "w1", "nodeId": "a"},
	"workspace.revision":     {"revision": 1, "workspaceId": "ws"},
	"session.created":        {"revision": 1, "workspaceId": "ws"},
	"session.archived":       {"revision": 1, "workspaceId": "ws"},
	"messages.snapshot":      {"snapshotId": "s", "coversThroughSessionSequence": 0, "messages": []any{}},
	"graph.snapshot": {"scope": "run", "graphSchemaVersion": "narad.graph/v1", "rootRunId": "r1", "sourceRunCursor": object{"sequence": 1},
		"revision": 1, "rootNodeId": "n", "nodes": []any{}, "edges": []any{}},
	"server.heartbeat": {},
}

func newStory(m *Model) *story {
	return &story{m: m, flows: map[string]int64{}, roots: map[string]int64{}}
}

// tell applies one line and returns the verdict.
func (s *story) tell(t *testing.T, line string) Verdict {
	t.Helper()
	kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	s.events++
	o := object{"type": kind, "protocolVersion": "narad/v1", "timestamp": "2026-08-05T00:00:00Z"}
	maps.Copy(o, usual[kind])
	if kind != "server.heartbeat" && kind != "workspace.revision" {
		o["sessionId"] = "s"
	}
	record := kind == "messages.snapshot" || kind == "graph.snapshot" || kind == "server.heartbeat"
	watch := strings.HasSuffix(kind, ".revision") || kind == "session.created" || kind == "session.archived"
	if !record {
		o["eventId"] = fmt.Sprintf("e%d", s.events)
	}
	if !record && !watch {
		o["sessionSequence"] = s.sequence + 1
	}
	for pair := range strings.FieldsSeq(rest) {
		s.field(t, o, pair)
	}
	v := s.m.Apply(spelling{}.line(o))
	if took := v.Result == "applied" || v == ignored("profile_not_negotiated"); took && !record && !watch {
		s.took(o)
	}
	return v
}

func (s *story) field(t *testing.T, o object, pair string) {
	t.Helper()
	name, value, ok := strings.Cut(pair, "=")
	switch {
	case !ok && strings.HasPrefix(pair, "-"):
		delete(o, pair[1:])
	case !ok:
		t.Fatalf("%q is no name=value", pair)
	case name == "run":
		root, run, nested := strings.Cut(value, "/")
		if !nested {
			run = root
		}
		o["rootRunId"], o["runId"], o["sequence"] = root, run, s.roots[root]+1
	case name == "wf":
		o["workflowId"], o["workflowSequence"] = value, s.flows[value]+1
	default:
		o[name] = value
		if v, err := Parse([]byte(value)); err == nil {
			o[name] = v
		}
	}
}

func (s *story) took(o object) {
	v, _ := Parse(spelling{}.line(o))
	f := fact{body: v.(object)}
	s.sequence = f.session()
	if f.workflow() > 0 {
		s.flows[f.workflowID()] = f.workflow()
	}
	if f.sequence() > 0 {
		s.roots[f.rootID()] = f.sequence()
	}
}

// run tells all lines. All but the last must be taken; the last one's verdict returns.
// A line that begins with ? may be refused.
func (s *story) run(t *testing.T, text string) Verdict {
	t.Helper()
	var last Verdict
	lines := strings.Split(strings.TrimSpace(text), ";")
	for i, line := range lines {
		line, any := strings.CutPrefix(strings.TrimSpace(line), "?")
		last = s.tell(t, line)
		if i < len(lines)-1 && !any && last.Result != "applied" {
			t.Fatalf("line %d (%s): got %v, want applied\nin %s", i+1, line, last, text)
		}
	}
	return last
}
