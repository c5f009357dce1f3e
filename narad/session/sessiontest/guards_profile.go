package sessiontest

func (m *Model) messageBegins(f fact) string {
	if m.strict && m.history.transcript().message(f.text("messageId")) != nil {
		return "message_exists"
	}
	return ""
}

func (m *Model) messageGoesOn(f fact) string {
	old := m.history.transcript().message(f.text("messageId"))
	switch {
	case old == nil:
		return "message_not_found"
	case m.strict && old["streaming"] != true:
		return "message_completed"
	case m.strict && f.runID() != "" && old.text("runId") != "" && f.runID() != old.text("runId"):
		return "message_run_mismatch"
	}
	return ""
}

func (m *Model) messageRedacted(f fact) string {
	if m.history.transcript().message(f.text("messageId")) == nil {
		return "message_not_found"
	}
	return ""
}

func (m *Model) reasoningBegins(f fact) string {
	if m.strict && m.history.transcript().stretch(f.text("reasoningId")) != nil {
		return "reasoning_exists"
	}
	return ""
}

func (m *Model) reasoningGoesOn(f fact) string {
	old := m.history.transcript().stretch(f.text("reasoningId"))
	switch {
	case old == nil:
		return "reasoning_not_found"
	case m.strict && old.completed:
		return "reasoning_completed"
	}
	return ""
}

func (m *Model) attachment(f fact) string {
	old, known := m.history.lastOf("attachment", "attachmentId", f.text("attachmentId"))
	fine := false
	switch f.kind {
	case "attachment.added":
		fine = !known
	case "attachment.removed":
		fine = known && !old.is("attachment.removed")
	default:
		fine = old.is("attachment.added")
	}
	if m.strict && !fine {
		return "attachment_order"
	}
	return ""
}

func (m *Model) artifact(f fact) string {
	old, known := m.history.lastOf("artifact", "artifactId", f.text("artifactId"))
	fine := !known
	if !f.is("artifact.added") {
		fine = old.is("artifact.added")
	}
	if m.strict && !fine {
		return "artifact_order"
	}
	return ""
}

// scoped returns the state that an event is about.
func (m *Model) scoped(f fact) (scopedState, bool) {
	prefix := "state."
	if f.is("ui.state.snapshot", "ui.state.delta") {
		prefix = "ui.state."
	}
	all, _ := m.history.scopes(prefix)
	s, known := all[f.scopeKey()]
	return s, known
}

func (m *Model) stateSnapshot(f fact) string {
	if s, known := m.scoped(f); m.strict && known && f.whole("revision", 1) <= s.revision {
		return "state_revision"
	}
	return ""
}

// stateDelta: a host never sends a delta that has no base. A client that sees one has
// missed something, which is a mark on the state and no refusal.
func (m *Model) stateDelta(f fact) string {
	s, known := m.scoped(f)
	switch {
	case m.strict && !known:
		return "state_not_found"
	case m.strict && !s.fits(f):
		return "state_revision"
	case !known || !s.fits(f):
		return ""
	}
	_, code := patched(s.state, f.body["patch"])
	return code
}

func (m *Model) stateCompacted(f fact) string {
	s, known := m.scoped(f)
	switch {
	case !known:
		return "state_not_found"
	case m.strict && f.whole("coversThroughSessionSequence", 0) > f.session(),
		m.strict && f.whole("snapshotRevision", 1) < s.revision:
		return "state_revision"
	}
	return ""
}

func (m *Model) viewOpened(f fact) string {
	if m.strict && m.history.views()[f.text("viewId")].open {
		return "view_open"
	}
	return ""
}

func (m *Model) viewUpdated(f fact) string {
	if code := m.viewClosed(f); code != "" {
		return code
	}
	_, code := m.history.views()[f.text("viewId")].updated(f)
	return code
}

func (m *Model) viewClosed(f fact) string {
	v, known := m.history.views()[f.text("viewId")]
	if !known || m.strict && !v.open {
		return "view_not_open"
	}
	return ""
}

func (m *Model) workflowStarted(f fact) string {
	_, known := m.history.workflow(f.workflowID())
	switch {
	case !m.strict:
		return ""
	case known:
		return "workflow_already_started"
	case len(m.history.activeRoots()) > 0 || len(m.history.activeWorkflows()) > 0:
		return "execution_active"
	}
	return ""
}

func (m *Model) workflowPaused(f fact) string {
	w, known := m.history.workflow(f.workflowID())
	request, awaited := m.history.awaitedWorkflows()[f.workflowID()]
	switch {
	case !known:
		return "workflow_not_started"
	case w.state != "running":
		return "workflow_not_running"
	case m.strict && (!awaited || !samePause(f, request)):
		return "pause_mismatch"
	}
	return ""
}

func (m *Model) workflowResumed(f fact) string {
	w, known := m.history.workflow(f.workflowID())
	switch {
	case !known:
		return "workflow_not_started"
	case w.state != "paused":
		return "workflow_not_paused"
	case w.waitID != f.text("waitId"):
		return "wait_mismatch"
	case m.strict && len(m.history.openInterrupts("", f.workflowID())) > 0:
		return "open_interrupt"
	}
	return ""
}

func (m *Model) stepStarted(f fact) string {
	if m.strict && m.stepRuns(f) {
		return "step_already_started"
	}
	return ""
}

func (m *Model) stepEnded(f fact) string {
	if m.strict && !m.stepRuns(f) {
		return "step_not_started"
	}
	return ""
}

// stepRuns reports whether the step of an event's node has begun and not ended.
func (m *Model) stepRuns(f fact) bool {
	w, _ := m.history.workflow(f.workflowID())
	return w.steps[f.text("nodeId")].is("workflow.step.started")
}

func (m *Model) edgeTaken(f fact) string {
	w, known := m.history.workflow(f.workflowID())
	switch {
	case !known:
		return "workflow_not_started"
	case w.state != "running":
		return "workflow_not_running"
	case w.node != "" && w.node != f.text("from"):
		return "workflow_edge_source"
	}
	return ""
}

func (m *Model) workflowEnd(f fact) string {
	switch {
	case !m.strict:
		return ""
	case len(m.history.openRunsOf(f.workflowID())) > 0:
		return "open_run"
	case len(m.history.openInterrupts("", f.workflowID())) > 0:
		return "open_interrupt"
	}
	return ""
}
