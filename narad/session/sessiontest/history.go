package sessiontest

import (
	"iter"
	"slices"

	"github.com/mahati-host/mahati/narad"
)

// A fact is one record that the model took in.
type fact struct {
	kind  string
	class narad.Class
	body  object
	// told reports whether the fact changes the state. Without it the fact only takes
	// its places in the orderings: it belongs to a profile that was not negotiated, or
	// a lenient reader passed over it (R20).
	told bool
}

// text returns a string field. An empty one is as good as absent.
func (f fact) text(name string) string {
	s, _ := f.body[name].(string)
	return s
}

// whole returns an integer field of at least least, or 0.
func (f fact) whole(name string, least int64) int64 {
	if i, ok := integer(f.body[name]); ok && i >= least {
		return i
	}
	return 0
}

func (f fact) has(name string) bool {
	_, ok := f.body[name]
	return ok
}

func (f fact) eventID() string        { return f.text("eventId") }
func (f fact) sessionID() string      { return f.text("sessionId") }
func (f fact) session() int64         { return f.whole("sessionSequence", 1) }
func (f fact) workflowID() string     { return f.text("workflowId") }
func (f fact) workflow() int64        { return f.whole("workflowSequence", 1) }
func (f fact) runID() string          { return f.text("runId") }
func (f fact) rootID() string         { return f.text("rootRunId") }
func (f fact) sequence() int64        { return f.whole("sequence", 1) }
func (f fact) is(kind ...string) bool { return slices.Contains(kind, f.kind) }

// workflowScope reports whether an interrupt belongs to a workflow and to no run.
func (f fact) workflowScope() bool { return f.text("scope") == "workflow" }

// projection reports whether the event was copied from a child session. Only the
// types of a run tree can be.
func (f fact) projection() bool {
	runTree := f.is("run.started", "run.paused", "run.resumed", "run.stop.requested", "run.finished", "run.error",
		"run.cancelled", "tool.call.started", "tool.call.finished", "progress.recorded") ||
		f.is("interrupt.requested", "interrupt.resolved") && !f.workflowScope()
	return runTree && f.text("sourceEventId") != ""
}

// nested reports whether the event belongs to a run below its root.
func (f fact) nested() bool {
	return f.runID() != "" && f.rootID() != "" && f.runID() != f.rootID()
}

// A history is everything that was taken in, oldest first. What it answers about a
// time in the past is what its beginning answers.
type history []fact

// told walks over the facts of some types that change the state; no type means all.
func (h history) told(kinds ...string) iter.Seq[fact] {
	return func(yield func(fact) bool) {
		for _, f := range h {
			if f.told && (len(kinds) == 0 || slices.Contains(kinds, f.kind)) && !yield(f) {
				return
			}
		}
	}
}

// authority walks over everything that took a place in the session's order.
func (h history) authority() iter.Seq[fact] {
	return func(yield func(fact) bool) {
		for _, f := range h {
			if f.class == narad.ClassAuthority && !yield(f) {
				return
			}
		}
	}
}

// cursor returns the session sequence of the last authority event.
func (h history) cursor() int64 {
	var last int64
	for f := range h.authority() {
		last = f.session()
	}
	return last
}

// beganLate reports whether the session's first event was not its sequence 1, which
// only a snapshot makes possible.
func (h history) beganLate() bool {
	for f := range h.authority() {
		return f.session() > 1
	}
	return false
}

// lastOfWorkflow returns the last sequence of a workflow.
func (h history) lastOfWorkflow(id string) int64 {
	var last int64
	for f := range h.authority() {
		if f.workflowID() == id && f.workflow() > 0 && !f.projection() {
			last = f.workflow()
		}
	}
	return last
}

// lastOfRoot returns the highest sequence of a run tree.
func (h history) lastOfRoot(id string) int64 {
	var last int64
	for f := range h.authority() {
		if f.rootID() == id && !f.projection() {
			last = max(last, f.sequence())
		}
	}
	return last
}

// named returns the record with that identity, be it authority or watch event.
func (h history) named(f fact) (fact, bool) {
	for _, old := range h {
		if old.class != narad.ClassHydrate && old.eventID() == f.eventID() && old.space() == f.space() {
			return old, true
		}
	}
	return fact{}, false
}

// space names what an event id is unique in.
func (f fact) space() string {
	if f.workspaceWatch() {
		return "workspace " + f.text("workspaceId")
	}
	return "session " + f.sessionID()
}

func (f fact) workspaceWatch() bool {
	return f.is("workspace.revision", "session.created", "session.updated", "session.archived")
}

// watchKey names what a revision belongs to.
func (f fact) watchKey() string {
	switch f.kind {
	case "session.revision":
		return "session"
	case "run.revision":
		return "run " + f.runID()
	case "workflow.revision":
		return "workflow " + f.workflowID()
	case "node.revision":
		return "node " + f.workflowID() + " " + f.text("nodeId")
	default:
		return "workspace " + f.text("workspaceId")
	}
}

// lastRevision returns the last revision of a watch event's key.
func (h history) lastRevision(key string) int64 {
	var last int64
	for f := range h.told() {
		if f.class == narad.ClassWatch && f.watchKey() == key {
			last = f.whole("revision", 1)
		}
	}
	return last
}

var runEnds = []string{"run.finished", "run.error", "run.cancelled"}

// runState is a run as its facts tell it.
type runState struct {
	started       fact
	state         string
	waitID        string
	interruptID   string
	stopRequested bool
	end           fact
}

func (r runState) root() string   { return r.started.rootID() }
func (r runState) parent() string { return r.started.text("parentRunId") }
func (r runState) ended() bool    { return r.state != "running" && r.state != "paused" }

// run returns a run; it is unknown before its start.
func (h history) run(id string) (runState, bool) {
	var r runState
	for f := range h.told("run.started", "run.paused", "run.resumed", "run.stop.requested", "run.finished", "run.error", "run.cancelled") {
		switch {
		case f.is("run.stop.requested"):
			r.stopRequested = r.stopRequested || f.text("targetRunId") == id
		case f.runID() != id:
		case f.is("run.started"):
			r = runState{started: f, state: "running"}
		case f.is("run.paused"):
			r.state, r.waitID, r.interruptID = "paused", f.text("waitId"), f.text("interruptId")
		case f.is("run.resumed"):
			r.state, r.waitID, r.interruptID = "running", "", ""
		default:
			r.state, r.end = lastWord(f.kind), f
		}
	}
	return r, r.state != ""
}

// runs returns all runs by id.
func (h history) runs() map[string]runState {
	all := map[string]runState{}
	for f := range h.told("run.started") {
		all[f.runID()], _ = h.run(f.runID())
	}
	return all
}

// openChildren returns the runs below a run that have not ended.
func (h history) openChildren(id string) (open []string) {
	for child, r := range h.runs() {
		if r.parent() == id && child != r.root() && !r.ended() {
			open = append(open, child)
		}
	}
	return open
}

// stopping reports whether a run, or a run above it, was asked to stop.
func (h history) stopping(id string) bool {
	for range len(h) + 1 { // a tree is no deeper than the history is long
		r, known := h.run(id)
		if !known {
			return false
		}
		if r.stopRequested {
			return true
		}
		id = r.parent()
	}
	return false
}

// activeRoot returns the top-level run that started last, unless it has ended.
func (h history) activeRoot() string {
	active := ""
	for f := range h.told("run.started", "run.finished", "run.error", "run.cancelled") {
		switch {
		case f.is("run.started") && f.runID() == f.rootID():
			active = f.runID()
		case f.is(runEnds...) && f.runID() == active:
			active = ""
		}
	}
	return active
}

// toolState is a tool call as its facts tell it.
type toolState struct {
	started  fact
	finished fact
	open     bool
}

// tool returns a tool call.
func (h history) tool(id string) (toolState, bool) {
	var t toolState
	for f := range h.told("tool.call.started", "tool.call.finished") {
		switch {
		case f.text("toolCallId") != id:
		case f.is("tool.call.started"):
			t = toolState{started: f, open: true}
		default:
			t.finished, t.open = f, false
		}
	}
	return t, t.started.kind != ""
}

// openTools returns the tool calls of a run that have not finished.
func (h history) openTools(run string) (open []string) {
	for f := range h.told("tool.call.started") {
		if t, _ := h.tool(f.text("toolCallId")); t.open && t.started.runID() == run {
			open = append(open, f.text("toolCallId"))
		}
	}
	return open
}

// interruptState is an interrupt as its facts tell it.
type interruptState struct {
	requested fact
	resolved  fact
	open      bool
}

// interrupt returns the last request of an id and what became of it.
func (h history) interrupt(id string) (interruptState, bool) {
	var i interruptState
	for f := range h.told("interrupt.requested", "interrupt.resolved") {
		switch {
		case f.text("interruptId") != id:
		case f.is("interrupt.requested"):
			i = interruptState{requested: f, open: true}
		default:
			i.resolved, i.open = f, false
		}
	}
	return i, i.requested.kind != ""
}

// openInterrupts returns the open interrupts of a run (or, of workflow scope, of a
// workflow).
func (h history) openInterrupts(run, workflow string) (open []string) {
	for f := range h.told("interrupt.requested") {
		i, _ := h.interrupt(f.text("interruptId"))
		mine := run != "" && !i.requested.workflowScope() && i.requested.runID() == run ||
			workflow != "" && i.requested.workflowScope() && i.requested.workflowID() == workflow
		if i.open && mine {
			open = append(open, f.text("interruptId"))
		}
	}
	return open
}

var workflowEnds = []string{"workflow.finished", "workflow.error", "workflow.cancelled"}

// workflowState is a workflow as its facts tell it.
type workflowState struct {
	state         string
	node          string
	waitID        string
	interruptID   string
	stopRequested bool
	steps         map[string]fact
	edges         []fact
}

func (w workflowState) ended() bool { return w.state != "running" && w.state != "paused" }

// workflow returns a workflow. A lenient reader may know one by a step alone.
func (h history) workflow(id string) (workflowState, bool) {
	w := workflowState{steps: map[string]fact{}}
	for f := range h.told() {
		if f.class == narad.ClassAuthority && f.workflowID() == id {
			w.tell(f)
		}
	}
	return w, w.state != ""
}

func (w *workflowState) tell(f fact) {
	node := f.text("nodeId")
	switch f.kind {
	case "workflow.started":
		w.state = "running"
		w.enter(node)
	case "workflow.resumed":
		w.state, w.waitID, w.interruptID = "running", "", ""
		w.enter(node)
	case "workflow.step.started", "workflow.step.finished", "workflow.step.failed":
		if w.state == "" {
			w.state = "running"
		}
		w.steps[node] = f
		w.enter(node)
	case "workflow.edge.taken":
		w.edges = append(w.edges, f)
		w.enter(f.text("to"))
	case "workflow.paused":
		w.state, w.waitID, w.interruptID = "paused", f.text("waitId"), f.text("interruptId")
	case "workflow.stop.requested":
		w.stopRequested = w.state != ""
	case "workflow.finished", "workflow.error", "workflow.cancelled":
		if w.state != "" {
			w.state = lastWord(f.kind)
		}
	}
}

func (w *workflowState) enter(node string) {
	if node != "" {
		w.node = node
	}
}

// workflows returns all workflows by id.
func (h history) workflows() map[string]workflowState {
	all := map[string]workflowState{}
	for f := range h.told() {
		if w, known := h.workflow(f.workflowID()); f.workflowID() != "" && known {
			all[f.workflowID()] = w
		}
	}
	return all
}

// activeWorkflow returns the workflow that was entered last, unless it has ended.
func (h history) activeWorkflow() string {
	active := ""
	for f := range h.told() {
		switch {
		case f.is("run.started") && f.workflowID() != "",
			f.is("workflow.started", "workflow.resumed", "workflow.step.started", "workflow.step.finished", "workflow.step.failed"):
			active = f.workflowID()
		case f.is(workflowEnds...) && f.workflowID() == active:
			active = ""
		}
	}
	return active
}

// openRunsOf returns the runs of a workflow that have not ended.
func (h history) openRunsOf(workflow string) (open []string) {
	for id, r := range h.runs() {
		if r.started.workflowID() == workflow && !r.ended() {
			open = append(open, id)
		}
	}
	return open
}

// lastWord returns what follows the last dot of a type.
func lastWord(kind string) string {
	for i := len(kind) - 1; i >= 0; i-- {
		if kind[i] == '.' {
			return kind[i+1:]
		}
	}
	return kind
}
