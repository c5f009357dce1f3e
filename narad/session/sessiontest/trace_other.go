package sessiontest

import "fmt"

// watch writes a watch event with a higher revision than the last of its key.
func (w *world) watch() {
	kind := w.pick("session.revision", "run.revision", "workflow.revision", "node.revision", "workspace.revision",
		"session.created", "session.updated", "session.archived")
	o := object{"eventId": w.id("we"), "timestamp": w.now(), "sessionId": w.session}
	key := kind
	switch kind {
	case "run.revision":
		o["runId"], o["rootRunId"] = w.pick("r-1", "r-2", "r-x"), "r-1"
		key += o["runId"].(string)
	case "workflow.revision", "node.revision":
		o["workflowId"] = w.pick("w-1", "w-x")
		key += o["workflowId"].(string)
		if kind == "node.revision" {
			o["nodeId"] = w.node()
			key += o["nodeId"].(string)
		}
	case "workspace.revision", "session.created", "session.updated", "session.archived":
		key, o["workspaceId"], o["sessionId"] = "workspace", "ws-1", w.pick("s-1", "s-2", "s-3")
		if kind == "workspace.revision" {
			delete(o, "sessionId")
		}
	default:
		o["cursor"] = object{"kind": "session", "sessionSequence": max(w.sequence, 1)}
	}
	w.revisions[key] += 1 + int64(w.rng.Intn(2))
	o["revision"] = w.revisions[key]
	w.emit(kind, o)
}

// beginLate starts a session behind a snapshot that covers its beginning.
func (w *world) beginLate() {
	covers := int64(1 + w.rng.Intn(5))
	messages := []any{}
	for i := range w.rng.Intn(3) {
		m := &worldMessage{item: object{
			"messageId": fmt.Sprintf("old-%d", i), "role": "user", "content": "long ago", "completed": true,
			"messageScope": "session", "sessionSequence": i + 1, "timestamp": w.now(),
		}}
		w.messages[m.item["messageId"].(string)] = m
		w.shown = append(w.shown, m.item["messageId"].(string))
		messages = append(messages, clone(m.item))
	}
	w.snapshot(covers, messages)
	if w.chance(70) {
		w.sequence = covers
	}
}

func (w *world) snapshot(covers int64, messages []any) {
	w.emit("messages.snapshot", object{
		"timestamp": w.now(), "snapshotId": w.id("snap"), "sessionId": w.session,
		"coversThroughSessionSequence": covers, "messages": messages,
	})
}

// hydrate writes a hydrate record.
func (w *world) hydrate() {
	switch w.rng.Intn(4) {
	case 0:
		w.emit("graph.snapshot", object{
			"timestamp": w.now(), "sessionId": w.session, "scope": "run", "graphSchemaVersion": "narad.graph/v1", "rootRunId": "r-1",
			"sourceRunCursor": object{"sequence": 1}, "revision": 1, "rootNodeId": "n", "nodes": []any{}, "edges": []any{},
		})
	case 1:
		w.emit("graph.delta", object{
			"timestamp": w.now(), "sessionId": w.session, "scope": "run", "graphSchemaVersion": "narad.graph/v1", "rootRunId": "r-1",
			"sourceRunCursor": object{"sequence": 1}, "baseRevision": 1, "revision": 2,
			"patch": []any{object{"op": "add", "path": "/nodes/-", "value": object{}}},
		})
	default:
		w.wholeTranscript()
	}
}

// wholeTranscript writes a snapshot of all messages as they are; what it does not say,
// the stretches of reasoning, is gone after it.
func (w *world) wholeTranscript() {
	messages := []any{}
	for _, id := range w.shown {
		messages = append(messages, clone(w.messages[id].item))
	}
	w.snapshot(w.sequence, messages)
	w.reasoning = nil
	for _, m := range w.messages {
		m.run = "" // the items name no run
	}
}

func (w *world) controlMessage() {
	o := object{"clientExecutorId": "desktop", "leaseId": "lease-1"}
	switch w.rng.Intn(3) {
	case 0:
		w.emit("server.heartbeat", object{})
	case 1:
		w.emit("client.heartbeat", o)
	default:
		o["executionToken"], o["toolCallId"], o["outcome"], o["response"] = "token", "t-1", "success", w.value(1)
		w.emit("client.tool.finish", o)
	}
}

// again delivers an event a second time, in another spelling.
func (w *world) again() {
	if len(w.facts) == 0 {
		w.controlMessage()
		return
	}
	v, _ := Parse(w.facts[w.rng.Intn(len(w.facts))])
	w.lines = append(w.lines, spelling{w.rng}.line(v))
}
