package sessiontest

import "slices"

// Snapshot returns the session as the accepted lines tell it, in the form of the last
// line of `narad check --json`, without its wrapper. What is empty or unknown is
// absent.
func (m *Model) Snapshot() map[string]any {
	h, s := m.history, fields{}
	s.put("sessionId", m.sessionID)
	s.put("lastSessionSequence", number(h.cursor()))
	s.put("sessionGap", m.latched)
	s.put("activeRootRunId", h.activeRoot())
	if m.knowsWorkflows() {
		s.put("activeWorkflowId", h.activeWorkflow())
	}
	s.put("runs", h.shownRuns())
	s.put("workflows", h.shownWorkflows())
	s.put("tools", h.shownTools())
	s.put("interrupts", h.shownInterrupts())
	s.put("progress", h.shownProgress())
	s.put("attachments", h.shownMaterial("attachment", "attachmentId"))
	s.put("artifacts", h.shownMaterial("artifact", "artifactId"))
	s.put("views", h.shownViews())
	s.put("revisions", h.shownRevisions())
	s.put("workspace", h.shownWorkspace())
	s.put("rootRunSequences", h.shownSequences(fact.rootID, h.lastOfRoot))
	s.put("workflowSequences", h.shownSequences(fact.workflowID, h.lastOfWorkflow))
	s.putTranscript(h)
	s.putScopes(h)
	return s
}

// fields is a JSON object under construction.
type fields object

// put adds what is neither empty nor unknown.
func (s fields) put(name string, value any) {
	if !empty(value) {
		s[name] = value
	}
}

// empty reports whether a value says no more than its absence would.
func empty(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case bool:
		return !v
	case Number:
		return v == "0"
	case []any:
		return len(v) == 0
	case object:
		return len(v) == 0
	default:
		return value == nil
	}
}

// copyText copies string fields of a fact.
func (s fields) copyText(f fact, names ...string) {
	for _, name := range names {
		s.put(name, f.text(name))
	}
}

// copyValue copies a field whose value is somebody else's, empty or not.
func (s fields) copyValue(f fact, name string) {
	if f.has(name) {
		s[name] = f.body[name]
	}
}

func (h history) shownRuns() object {
	all := object{}
	for id, r := range h.runs() {
		s := fields{"state": r.state}
		s.copyText(r.started, "runId", "rootRunId", "parentRunId", "parentToolCallId", "clientExecutorId", "workflowId")
		s.put("stopRequested", r.stopRequested)
		s.put("startedAt", r.started.text("timestamp"))
		if r.state == "paused" {
			s.put("openWaitId", r.waitID)
			s.put("openInterruptId", r.interruptID)
		}
		s.put("completedAt", r.end.text("timestamp"))
		s.put("usage", usage(r.end.body["usage"]))
		if r.end.is("run.error", "run.cancelled") {
			s.copyText(r.end, "code", "message")
		}
		all[id] = object(s)
	}
	return all
}

// usage reads a usage object as a lenient reader does: what is no number is left out.
func usage(v any) object {
	o, _ := v.(object)
	s := fields{}
	for name, figure := range o {
		switch name {
		case "promptTokens", "completionTokens", "totalTokens":
			if i, ok := integer(figure); ok && i >= 0 {
				s[name] = figure
			}
		case "elapsedMs":
			if _, ok := figure.(Number); ok {
				s[name] = figure
			}
		default:
			s[name] = figure
		}
	}
	return object(s)
}

func (h history) shownWorkflows() object {
	all := object{}
	for id, w := range h.workflows() {
		s := fields{"workflowId": id, "state": w.state}
		s.put("stopRequested", w.stopRequested)
		s.put("currentNodeId", w.node)
		if w.state == "paused" {
			s.put("openWaitId", w.waitID)
			s.put("openInterruptId", w.interruptID)
		}
		s.put("lastWorkflowSequence", number(h.lastOfWorkflow(id)))
		steps := fields{}
		for node, f := range w.steps {
			steps[node] = shownStep(f)
		}
		s.put("steps", object(steps))
		edges := []any{}
		for _, f := range w.edges {
			edges = append(edges, shownEdge(f))
		}
		s.put("transitions", edges)
		all[id] = object(s)
	}
	return all
}

func shownStep(f fact) object {
	status := map[string]string{"started": "running", "finished": "finished", "failed": "failed"}[lastWord(f.kind)]
	s := fields{"status": status}
	s.put("attempt", number(f.whole("stepAttempt", 0)))
	s.put("runId", f.text("agentRunId"))
	s.put("sessionId", f.text("agentSessionId"))
	return object(s)
}

func shownEdge(f fact) object {
	s := fields{"workflowSequence": number(f.workflow())}
	s.copyText(f, "from", "to", "op")
	s.copyValue(f, "caseIndex")
	s.copyValue(f, "pointer")
	return object(s)
}

func (h history) shownTools() object {
	all := object{}
	for f := range h.told("tool.call.started") {
		t, _ := h.tool(f.text("toolCallId"))
		s := fields{}
		s.copyText(f, "toolCallId", "runId", "rootRunId", "toolName", "executor", "parentToolCallId")
		s.copyValue(f, "args")
		s.put("startedAt", f.text("timestamp"))
		s.put("open", t.open)
		s.copyText(t.finished, "outcome", "code", "message")
		s.copyValue(t.finished, "response")
		s.put("completedAt", t.finished.text("timestamp"))
		all[f.text("toolCallId")] = object(s)
	}
	return all
}

func (h history) shownInterrupts() object {
	all := object{}
	for f := range h.told("interrupt.requested") {
		i, _ := h.interrupt(f.text("interruptId"))
		s := fields{"scope": "run"}
		s.copyText(i.requested, "interruptId", "runId", "rootRunId", "workflowId", "scope", "waitId", "kind", "title", "message")
		s.put("actions", words(i.requested.body["actions"]))
		s.put("expiresAt", timeOf(i.requested.text("expiresAt")))
		s.copyValue(i.requested, "input")
		s.put("requestedAt", i.requested.text("timestamp"))
		s.put("open", i.open)
		s.copyText(i.resolved, "decision", "reason")
		s.put("resolvedAt", i.resolved.text("timestamp"))
		s.put("members", shownMembers(i.resolved))
		all[f.text("interruptId")] = object(s)
	}
	return all
}

func shownMembers(f fact) []any {
	list := []any{}
	for _, member := range f.members() {
		s := fields{}
		s.copyText(member, "requestId", "toolCallId", "toolName", "toolType", "decision")
		list = append(list, object(s))
	}
	return list
}

// timeOf leaves out what is no time. The traces know two forms only.
func timeOf(s string) string {
	if len(s) < len("2006-01-02") || s[4] != '-' {
		return ""
	}
	return s
}

func (h history) shownProgress() object {
	all := object{}
	for f := range h.told("progress.recorded") {
		run, _ := all[f.runID()].(object)
		if run == nil {
			run = object{}
			all[f.runID()] = run
		}
		old, known := run[f.text("progressId")].(object)
		s := fields{}
		s.copyText(f, "progressId", "rootRunId", "category", "label", "status", "privacy")
		s.put("recordedAt", f.text("timestamp"))
		s.put("updatedAt", f.text("timestamp"))
		if known { // what is not told again stays
			s["recordedAt"] = old["recordedAt"]
			s.put("detail", old["detail"])
			s.put("usage", old["usage"])
		}
		s.put("detail", f.text("detail"))
		s.put("usage", usage(f.body["usage"]))
		run[f.text("progressId")] = object(s)
	}
	return all
}

func (h history) shownMaterial(prefix, idField string) object {
	all := object{}
	for f := range h.told(prefix+".added", prefix+".ready", prefix+".failed", prefix+".removed") {
		s := fields{"state": lastWord(f.kind)}
		s.copyText(f, "code", "message")
		all[f.text(idField)] = object(s)
	}
	return all
}

func (h history) shownViews() object {
	all := object{}
	for id, v := range h.views() {
		s := fields{}
		s.put("open", v.open)
		if v.hasModel {
			s["model"] = v.model
		}
		all[id] = object(s)
	}
	return all
}

func (h history) shownRevisions() object {
	s, runs, workflows, nodes := fields{}, fields{}, fields{}, fields{}
	for f := range h.told("session.revision", "run.revision", "workflow.revision", "node.revision") {
		revision := number(f.whole("revision", 1))
		switch f.kind {
		case "session.revision":
			s["session"] = revision
		case "run.revision":
			runs[f.runID()] = revision
		case "workflow.revision":
			workflows[f.workflowID()] = revision
		default:
			nodes[f.workflowID()+":"+f.text("nodeId")] = revision
		}
	}
	s.put("runs", object(runs))
	s.put("workflows", object(workflows))
	s.put("nodes", object(nodes))
	return object(s)
}

func (h history) shownWorkspace() object {
	s := fields{}
	sessions := []any{}
	for f := range h.told("workspace.revision", "session.created", "session.updated", "session.archived") {
		s.put("workspaceId", f.text("workspaceId"))
		s.put("revision", number(f.whole("revision", 1)))
		if f.is("workspace.revision") {
			continue
		}
		at := slices.IndexFunc(sessions, func(v any) bool { return v.(object)["sessionId"] == f.sessionID() })
		if at < 0 {
			at = len(sessions)
			sessions = append(sessions, object{"sessionId": f.sessionID()})
		}
		delete(sessions[at].(object), "archived")
		if f.is("session.archived") { // created or updated takes it back
			sessions[at].(object)["archived"] = true
		}
	}
	s.put("sessions", sessions)
	return object(s)
}

// shownSequences returns the last sequence of everything that of finds in the facts.
func (h history) shownSequences(of func(fact) string, last func(string) int64) object {
	s := fields{}
	for f := range h.authority() {
		if id := of(f); id != "" {
			s.put(id, number(last(id)))
		}
	}
	return object(s)
}

func (s fields) putTranscript(h history) {
	t := h.transcript()
	messages, reasoning := []any{}, []any{}
	for _, m := range t.messages {
		shown := fields{}
		for name, value := range m {
			shown.put(name, value)
		}
		messages = append(messages, object(shown))
	}
	for _, r := range t.reasoning {
		shown := fields{"reasoningId": r.id}
		shown.put("messageId", r.message)
		shown.put("content", r.content)
		shown.put("completed", r.completed)
		shown.put("timestamp", r.timestamp)
		reasoning = append(reasoning, object(shown))
	}
	s.put("messages", messages)
	s.put("reasoning", reasoning)
	s.put("coversThroughSessionSequence", number(t.covers))
}

func (s fields) putScopes(h history) {
	states, lost := h.scopes("state.")
	uis, lostToo := h.scopes("ui.state.")
	s.put("resyncRequired", lost || lostToo)
	s.put("state", shownScopes(states))
	s.put("ui", shownScopes(uis))
}

func shownScopes(all map[string]scopedState) object {
	out := object{}
	for key, state := range all {
		s := fields{"revision": number(state.revision), "state": state.state}
		s.put("resyncRequired", state.resync)
		out[key] = object(s)
	}
	return out
}
