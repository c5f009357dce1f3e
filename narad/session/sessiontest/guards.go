package sessiontest

import "slices"

// refusal returns the code of the first rule that an event breaks, or "".
func (m *Model) refusal(f fact) string {
	for _, rule := range []func(fact) string{m.pauseFollowsInterrupt, m.runRules, m.workflowRules, m.typeRules} {
		if code := rule(f); code != "" {
			return code
		}
	}
	return ""
}

// awaitedRuns returns the interrupts of run scope whose pause has not come, by run.
func (h history) awaitedRuns() map[string]fact {
	awaited := map[string]fact{}
	for f := range h.told("interrupt.requested", "run.paused") {
		switch {
		case f.is("run.paused"):
			delete(awaited, f.runID())
		case !f.workflowScope() && !f.projection():
			awaited[f.runID()] = f
		}
	}
	return awaited
}

// awaitedWorkflows is the same of workflow scope, by workflow.
func (h history) awaitedWorkflows() map[string]fact {
	awaited := map[string]fact{}
	for f := range h.told("interrupt.requested", "workflow.paused") {
		switch {
		case f.is("workflow.paused"):
			delete(awaited, f.workflowID())
		case f.workflowScope():
			awaited[f.workflowID()] = f
		}
	}
	return awaited
}

// pauseFollowsInterrupt: between an interrupt and its pause nothing comes in the same
// run (strictly: in the same run tree), nor in the same workflow.
func (m *Model) pauseFollowsInterrupt(f fact) string {
	for _, request := range m.history.awaitedRuns() {
		if code := m.pauseOfRun(f, request); code != "" {
			return code
		}
	}
	_, awaited := m.history.awaitedWorkflows()[f.workflowID()]
	if m.knowsWorkflows() && awaited && !f.is("workflow.paused") {
		return "pause_must_follow"
	}
	return ""
}

func (m *Model) pauseOfRun(f, request fact) string {
	concerns := f.runID() == request.runID()
	if m.strict {
		concerns = f.rootID() == request.rootID()
	}
	switch {
	case !concerns:
		return ""
	case !f.is("run.paused") || f.runID() != request.runID():
		return "pause_must_follow"
	}
	return ""
}

func samePause(pause, request fact) bool {
	return pause.text("waitId") == request.text("waitId") && pause.text("interruptId") == request.text("interruptId")
}

// runRules are what a host holds every event of a run to.
func (m *Model) runRules(f fact) string {
	if !m.strict || f.runID() == "" || f.is("run.started") {
		return ""
	}
	r, known := m.history.run(f.runID())
	switch {
	case !known:
		return "run_not_started"
	case r.root() != f.rootID():
		return "root_mismatch"
	case r.started.workflowID() != f.workflowID():
		return "workflow_mismatch"
	case r.ended():
		return "run_ended"
	case f.sequence() != m.history.lastOfRoot(f.rootID())+1:
		return "run_sequence"
	}
	return ""
}

// workflowRules are what a host holds every event of a workflow to.
func (m *Model) workflowRules(f fact) string {
	if !m.strict || !m.knowsWorkflows() || f.workflowID() == "" || f.is("workflow.started") {
		return ""
	}
	w, known := m.history.workflow(f.workflowID())
	switch {
	case !known:
		return "workflow_not_started"
	case w.ended():
		return "workflow_ended"
	}
	return ""
}

// typeRules are the rules of each type.
func (m *Model) typeRules(f fact) string {
	rules := map[string]func(fact) string{
		"run.started": m.runStarted, "run.paused": m.runPaused, "run.resumed": m.runResumed,
		"run.stop.requested": m.runStop, "run.finished": m.runEnd, "run.error": m.runEnd, "run.cancelled": m.runEnd,
		"interrupt.requested": m.interruptRequested, "interrupt.resolved": m.interruptResolved,
		"tool.call.started": m.toolStarted, "tool.call.finished": m.toolFinished,
		"message.user.recorded": m.messageBegins, "message.text.started": m.messageBegins,
		"message.text.delta": m.messageGoesOn, "message.text.completed": m.messageGoesOn, "message.redacted": m.messageRedacted,
		"reasoning.started": m.reasoningBegins, "reasoning.delta": m.reasoningGoesOn, "reasoning.completed": m.reasoningGoesOn,
		"attachment.added": m.attachment, "attachment.ready": m.attachment, "attachment.failed": m.attachment, "attachment.removed": m.attachment,
		"artifact.added": m.artifact, "artifact.ready": m.artifact, "artifact.failed": m.artifact,
		"state.snapshot": m.stateSnapshot, "ui.state.snapshot": m.stateSnapshot,
		"state.delta": m.stateDelta, "ui.state.delta": m.stateDelta, "state.compacted": m.stateCompacted,
		"view.opened": m.viewOpened, "view.updated": m.viewUpdated, "view.closed": m.viewClosed,
		"progress.recorded": m.progress,
		"workflow.started":  m.workflowStarted, "workflow.paused": m.workflowPaused, "workflow.resumed": m.workflowResumed,
		"workflow.step.started": m.stepStarted, "workflow.step.finished": m.stepEnded, "workflow.step.failed": m.stepEnded,
		"workflow.edge.taken": m.edgeTaken, "workflow.finished": m.workflowEnd, "workflow.error": m.workflowEnd, "workflow.cancelled": m.workflowEnd,
	}
	if rule := rules[f.kind]; rule != nil {
		return rule(f)
	}
	return ""
}

func (m *Model) runStarted(f fact) string {
	_, known := m.history.run(f.runID())
	parent, parentKnown := m.history.run(f.text("parentRunId"))
	switch {
	case known:
		return "run_already_started"
	case f.text("parentRunId") != "" && !parentKnown:
		return "parent_not_started"
	case !m.strict:
		return ""
	case f.runID() == f.rootID():
		return m.rootStarted(f)
	case f.text("parentRunId") == "":
		return "parent_not_started"
	}
	return m.nestedStarted(f, parent)
}

func (m *Model) rootStarted(f fact) string {
	switch {
	case f.text("parentRunId") != "":
		return "parent_mismatch"
	case f.sequence() != 1:
		return "run_sequence"
	case len(m.history.activeRoots()) > 0:
		return "execution_active"
	}
	for _, id := range m.history.activeWorkflows() {
		if id != f.workflowID() {
			return "execution_active"
		}
	}
	return ""
}

// activeRoots returns the top-level runs that have not ended.
func (h history) activeRoots() (active []string) {
	for id, r := range h.runs() {
		if id == r.root() && !r.ended() {
			active = append(active, id)
		}
	}
	return active
}

// activeWorkflows returns the workflows that have not ended.
func (h history) activeWorkflows() (active []string) {
	for id, w := range h.workflows() {
		if !w.ended() {
			active = append(active, id)
		}
	}
	return active
}

func (m *Model) nestedStarted(f fact, parent runState) string {
	switch {
	case parent.root() != f.rootID():
		return "parent_mismatch"
	case parent.started.workflowID() != f.workflowID():
		return "workflow_mismatch"
	case parent.ended():
		return "run_ended"
	case parent.state == "paused":
		return "run_not_running"
	case m.history.stopping(f.text("parentRunId")):
		return "run_stopped"
	}
	if code := m.calledByTool(f); code != "" {
		return code
	}
	if f.sequence() != m.history.lastOfRoot(f.rootID())+1 {
		return "run_sequence"
	}
	return ""
}

// calledByTool: the tool call that a nested run answers is an open one of its parent.
func (m *Model) calledByTool(f fact) string {
	call, known := m.history.tool(f.text("parentToolCallId"))
	switch {
	case f.text("parentToolCallId") == "":
		return ""
	case !known || !call.open:
		return "tool_not_open"
	case call.started.runID() != f.text("parentRunId"):
		return "tool_run_mismatch"
	}
	return ""
}

func (m *Model) runPaused(f fact) string {
	r, known := m.history.run(f.runID())
	request, awaited := m.history.awaitedRuns()[f.runID()]
	switch {
	case !known:
		return "run_not_started"
	case r.state != "running":
		return "run_not_running"
	case m.strict && awaited && !samePause(f, request),
		m.strict && !awaited && f.text("interruptId") != "":
		return "pause_mismatch"
	}
	return ""
}

func (m *Model) runResumed(f fact) string {
	r, known := m.history.run(f.runID())
	switch {
	case !known:
		return "run_not_started"
	case r.state != "paused":
		return "run_not_paused"
	case r.waitID != f.text("waitId"):
		return "wait_mismatch"
	case m.strict && len(m.history.openInterrupts(f.runID(), "")) > 0:
		return "open_interrupt"
	}
	return ""
}

func (m *Model) runStop(f fact) string {
	target, known := m.history.run(f.text("targetRunId"))
	switch {
	case !known:
		return "run_not_started"
	case m.strict && target.root() != f.rootID():
		return "root_mismatch"
	case m.strict && target.ended():
		return "run_ended"
	}
	return ""
}

func (m *Model) runEnd(f fact) string {
	r, known := m.history.run(f.runID())
	switch {
	case !known:
		return "run_not_started"
	case r.state == "paused":
		return "run_paused"
	case r.state != "running":
		return "run_ended"
	case !m.strict:
		return ""
	case len(m.history.openChildren(f.runID())) > 0:
		return "open_child"
	case len(m.history.openTools(f.runID())) > 0:
		return "open_tool"
	case len(m.history.openInterrupts(f.runID(), "")) > 0:
		return "open_interrupt"
	}
	return ""
}

func (m *Model) interruptRequested(f fact) string {
	if f.workflowScope() {
		w, known := m.history.workflow(f.workflowID())
		switch {
		case !m.knowsWorkflows():
		case !known:
			return "workflow_not_started"
		case w.state != "running":
			return "workflow_not_running"
		}
	} else {
		r, known := m.history.run(f.runID())
		switch {
		case !known:
			return "run_not_started"
		case r.state != "running":
			return "run_not_running"
		}
	}
	old, known := m.history.interrupt(f.text("interruptId"))
	open := m.history.openInterrupts(f.runID(), "")
	if f.workflowScope() {
		open = m.history.openInterrupts("", f.workflowID())
	}
	switch {
	case known && (old.open || m.strict):
		return "interrupt_already_requested"
	case len(open) > 0:
		return "interrupt_open"
	}
	return ""
}

func (m *Model) interruptResolved(f fact) string {
	i, known := m.history.interrupt(f.text("interruptId"))
	switch {
	case !known || !i.open:
		return "interrupt_not_open"
	case i.requested.text("waitId") != f.text("waitId"):
		return "wait_mismatch"
	case m.strict && !sameOwner(i.requested, f):
		return "interrupt_mismatch"
	case !everyDecisionOffered(i.requested, f):
		return "decision_not_offered"
	case m.strict && !membersAnswered(i.requested, f):
		return "member_mismatch"
	case m.strict && !foldAgrees(i.requested, f):
		return "fold_mismatch"
	}
	return ""
}

func sameOwner(request, resolution fact) bool {
	if request.workflowScope() != resolution.workflowScope() {
		return false
	}
	return request.runID() == resolution.runID() && request.workflowID() == resolution.workflowID()
}

// members returns the usable entries of a resolution's members.
func (f fact) members() (usable []fact) {
	list, _ := f.body["members"].([]any)
	for _, v := range list {
		o, _ := v.(object)
		if member := (fact{body: o}); member.text("requestId") != "" {
			usable = append(usable, member)
		}
	}
	return usable
}

func everyDecisionOffered(request, resolution fact) bool {
	offered := append(words(request.body["actions"]), "expired")
	decisions := []string{resolution.text("decision")}
	for _, member := range resolution.members() {
		if d := member.text("decision"); d != "" {
			decisions = append(decisions, d)
		}
	}
	for _, d := range decisions {
		if !slices.Contains(offered, any(d)) {
			return false
		}
	}
	return true
}

// membersAnswered: who was asked answers, each once and nobody else.
func membersAnswered(request, resolution fact) bool {
	input, _ := request.body["input"].(object)
	list, ok := input["members"].([]any)
	if !ok || len(resolution.members()) == 0 {
		return true
	}
	asked := map[string]bool{}
	for _, v := range list {
		o, _ := v.(object)
		id := fact{body: o}.text("requestId")
		if id == "" {
			return true // not a list of members
		}
		asked[id] = true
	}
	answered := map[string]bool{}
	for _, member := range resolution.members() {
		id := member.text("requestId")
		if answered[id] || !asked[id] {
			return false
		}
		answered[id] = true
	}
	return len(answered) == len(asked)
}

// foldAgrees: the decision for a pack is what its members' decisions come to.
func foldAgrees(request, resolution fact) bool {
	members := resolution.members()
	if len(members) == 0 {
		return true
	}
	count := map[string]int{}
	for _, member := range members {
		count[plain(member.text("decision"))]++
	}
	fold := "deny"
	switch {
	case count["stop"] > 0:
		fold = "stop"
	case count["approve"] == len(members):
		fold = "approve"
	case count["expired"] == len(members):
		fold = "expired"
	}
	sayable := fold == "expired" || slices.Contains(words(request.body["actions"]), any(fold))
	return !sayable || resolution.text("decision") == fold
}

// plain returns the word that a lasting decision counts as (R12).
func plain(decision string) string {
	switch decision {
	case "approve_always":
		return "approve"
	case "deny_always":
		return "deny"
	}
	return decision
}

func (m *Model) toolStarted(f fact) string {
	r, known := m.history.run(f.runID())
	_, used := m.history.tool(f.text("toolCallId"))
	switch {
	case !known:
		return "run_not_started"
	case r.state != "running":
		return "run_not_running"
	case used:
		return "tool_already_started"
	case m.strict && m.history.stopping(f.runID()):
		return "run_stopped"
	case m.strict && f.text("executor") == "client" && r.started.text("clientExecutorId") == "":
		return "client_executor_missing"
	}
	return ""
}

func (m *Model) toolFinished(f fact) string {
	call, known := m.history.tool(f.text("toolCallId"))
	switch {
	case !known || !call.open:
		return "tool_not_open"
	case call.started.runID() != f.runID():
		return "tool_run_mismatch"
	}
	return ""
}

func (m *Model) progress(f fact) string {
	r, known := m.history.run(f.runID())
	switch {
	case !known:
		return "run_not_started"
	case r.ended():
		return "run_ended"
	}
	return ""
}
