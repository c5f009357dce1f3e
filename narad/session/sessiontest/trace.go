package sessiontest

import (
	"fmt"
	"math/rand"
	"slices"
	"time"
)

// Trace returns a trace of n lines that a host may emit: records of every kind, as
// the story of one session asks for them. A strict reader takes every line.
func Trace(rng *rand.Rand, n int) [][]byte {
	w := &world{
		rng: rng, session: "s-1", runs: map[string]*worldRun{}, rootSequence: map[string]int64{},
		revisions: map[string]int64{}, messages: map[string]*worldMessage{},
	}
	if rng.Intn(4) == 0 {
		w.beginLate()
	}
	for len(w.lines) < n {
		w.step()
	}
	return w.lines[:n]
}

// world is what a trace has told so far, as far as the next line depends on it. It
// knows what is possible and picks; it judges nothing.
type world struct {
	rng     *rand.Rand
	session string
	lines   [][]byte
	ids     int
	clock   int

	sequence     int64
	rootSequence map[string]int64
	revisions    map[string]int64 // watch events, by key

	runs     map[string]*worldRun
	order    []string // of runs, as they began
	root     *worldRun
	workflow *worldWorkflow

	messages  map[string]*worldMessage
	shown     []string // message ids, as they appeared
	reasoning []*worldReasoning
	material  [][]string // attachments and artifacts: profile, id, last word
	states    []*worldState
	views     []string
	hasModel  map[string]bool
	awaiting  func() // the pause that must follow in its run or workflow
	quiet     bool   // while awaiting: nothing of a run or a workflow
	facts     [][]byte
}

type worldRun struct {
	id, root, parent, executor string
	workflow                   *worldWorkflow
	state                      string
	wait                       string
	interrupt                  object // the open request
	stopped                    bool
	tools                      map[string]string // open calls: id to executor
}

type worldWorkflow struct {
	id        string
	sequence  int64
	state     string
	node      string
	steps     map[string]bool // running
	wait      string
	interrupt object
}

type worldMessage struct {
	item      object
	streaming bool
	run       string
}

type worldReasoning struct {
	id   string
	done bool
}

type worldState struct {
	kind  string // "state" or "ui.state"
	scope object // scope and its ids
	run   *worldRun
	flow  *worldWorkflow
	rev   int64
	keys  int
}

func (w *world) id(kind string) string {
	w.ids++
	return fmt.Sprintf("%s-%d", kind, w.ids)
}

func (w *world) chance(percent int) bool { return w.rng.Intn(100) < percent }

func (w *world) pick(of ...string) string { return of[w.rng.Intn(len(of))] }

func (w *world) now() string {
	w.clock++
	return time.Date(2026, 8, 5, 0, 0, w.clock, 0, time.UTC).Format(time.RFC3339)
}

// emit writes a record that takes no place in the orderings.
func (w *world) emit(kind string, o object) {
	o["type"], o["protocolVersion"] = kind, "narad/v1"
	w.lines = append(w.lines, spelling{}.line(o))
}

// fact writes a session event.
func (w *world) fact(kind string, o object) {
	w.sequence++
	o["eventId"], o["timestamp"] = w.id("e"), w.now()
	o["sessionId"], o["sessionSequence"] = w.session, w.sequence
	w.emit(kind, o)
	w.facts = append(w.facts, w.lines[len(w.lines)-1])
}

// ofWorkflow writes a workflow event.
func (w *world) ofWorkflow(f *worldWorkflow, kind string, o object) {
	f.sequence++
	o["workflowId"], o["workflowSequence"] = f.id, f.sequence
	w.fact(kind, o)
}

// ofRun writes a run-tree event.
func (w *world) ofRun(r *worldRun, kind string, o object) {
	w.rootSequence[r.root]++
	o["rootRunId"], o["runId"], o["sequence"] = r.root, r.id, w.rootSequence[r.root]
	if r.workflow != nil {
		w.ofWorkflow(r.workflow, kind, o)
		return
	}
	w.fact(kind, o)
}

// somewhere writes an event of the session, the workflow or a run, as it comes.
func (w *world) somewhere(kind string, o object) {
	if r := w.someRun("running", "paused"); r != nil && !w.quiet && w.chance(50) {
		w.ofRun(r, kind, o)
		return
	}
	if w.workflow != nil && !w.quiet && w.chance(30) {
		w.ofWorkflow(w.workflow, kind, o)
		return
	}
	w.fact(kind, o)
}

// someRun returns a run in one of some states, or nil.
func (w *world) someRun(states ...string) *worldRun {
	var fit []*worldRun
	for _, id := range w.order {
		if r := w.runs[id]; slices.Contains(states, r.state) {
			fit = append(fit, r)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[w.rng.Intn(len(fit))]
}

// stopping reports whether a run or one above it was asked to stop.
func (w *world) stopping(r *worldRun) bool {
	for ; r != nil; r = w.runs[r.parent] {
		if r.stopped {
			return true
		}
	}
	return false
}

func (w *world) step() {
	if w.awaiting != nil {
		if w.chance(65) {
			w.quiet = false
			w.awaiting()
			return
		}
		w.quiet = true
		w.bystander()
		return
	}
	w.quiet = false
	switch n := w.rng.Intn(100); {
	case n < 45:
		w.lifecycle()
	case n < 60:
		w.conversation()
	default:
		w.bystander()
	}
}

// bystander writes something that is possible at any time.
func (w *world) bystander() {
	steps := []func(){w.conversation, w.conversation, w.reason, w.materials, w.state, w.state, w.view, w.extension, w.watch, w.watch, w.hydrate, w.controlMessage, w.again}
	steps[w.rng.Intn(len(steps))]()
}

// lifecycle moves the execution on.
func (w *world) lifecycle() {
	switch {
	case w.root == nil && w.workflow == nil:
		if w.chance(35) {
			w.startWorkflow()
		} else {
			w.startRoot()
		}
	case w.workflow != nil && (w.root == nil || w.chance(20)):
		w.moveWorkflow()
	default:
		w.moveRun()
	}
}

func (w *world) startRoot() {
	r := &worldRun{id: w.id("r"), workflow: w.workflow, state: "running", tools: map[string]string{}}
	r.root, w.root = r.id, r
	w.begin(r, object{})
}

func (w *world) begin(r *worldRun, o object) {
	if w.chance(50) {
		r.executor = w.pick("desktop", "laptop")
		o["clientExecutorId"] = r.executor
	}
	w.runs[r.id] = r
	w.order = append(w.order, r.id)
	w.ofRun(r, "run.started", o)
}

func (w *world) startNested() bool {
	parent := w.someRun("running")
	if parent == nil || w.stopping(parent) {
		return false
	}
	r := &worldRun{id: w.id("r"), root: parent.root, parent: parent.id, workflow: parent.workflow, state: "running", tools: map[string]string{}}
	o := object{"parentRunId": parent.id}
	if open := sortedKeys(parent.tools); len(open) > 0 && w.chance(70) {
		o["parentToolCallId"] = open[w.rng.Intn(len(open))]
	}
	w.begin(r, o)
	return true
}

func (w *world) moveRun() {
	steps := []func() bool{
		w.startNested, w.startTool, w.startTool, w.finishTool, w.finishTool, w.pause, w.resume, w.resume,
		w.interrupt, w.resolve, w.resolve, w.stop, w.end, w.end, w.recordProgress,
	}
	for !steps[w.rng.Intn(len(steps))]() {
	}
}

func (w *world) startTool() bool {
	r := w.someRun("running")
	if r == nil || w.stopping(r) {
		return false
	}
	o := object{"toolCallId": w.id("t"), "toolName": w.pick("open.file", "search"), "executor": "backend", "args": w.value(2)}
	if r.executor != "" && w.chance(60) {
		o["executor"] = "client"
	}
	if open := sortedKeys(r.tools); len(open) > 0 && w.chance(20) {
		o["parentToolCallId"] = open[0]
	}
	r.tools[o["toolCallId"].(string)] = o["executor"].(string)
	w.ofRun(r, "tool.call.started", o)
	return true
}

func (w *world) finishTool() bool {
	r := w.someRun("running", "paused")
	if r == nil || len(r.tools) == 0 {
		return false
	}
	open := sortedKeys(r.tools)
	id := open[w.rng.Intn(len(open))]
	delete(r.tools, id)
	o := object{"toolCallId": id, "outcome": w.pick("success", "error", "cancelled"), "response": w.value(2)}
	if w.chance(30) {
		o["code"], o["message"] = "tool_failed", w.pick("", "it did not work")
	}
	w.ofRun(r, "tool.call.finished", o)
	return true
}

func (w *world) pause() bool {
	r := w.someRun("running")
	if r == nil || w.chance(50) {
		return false
	}
	r.state, r.wait = "paused", w.id("wait")
	o := object{"waitId": r.wait, "reason": "capacity.pressure", "resumeMode": w.pick("automatic", "command")}
	if w.chance(30) {
		o["retryAt"], o["message"] = "2026-08-05T01:00:00Z", "later"
	}
	w.ofRun(r, "run.paused", o)
	return true
}

func (w *world) resume() bool {
	r := w.someRun("paused")
	if r == nil || r.interrupt != nil {
		return false
	}
	w.ofRun(r, "run.resumed", object{"waitId": r.wait})
	r.state, r.wait = "running", ""
	return true
}

func (w *world) stop() bool {
	r, target := w.someRun("running", "paused"), w.someRun("running", "paused")
	if r == nil || r.root != target.root || w.chance(70) {
		return false
	}
	target.stopped = true
	w.ofRun(r, "run.stop.requested", object{"targetRunId": target.id})
	return true
}

func (w *world) end() bool {
	r := w.someRun("running")
	if r == nil || len(r.tools) > 0 || r.interrupt != nil {
		return false
	}
	for _, child := range w.runs {
		if child.parent == r.id && (child.state == "running" || child.state == "paused") {
			return false
		}
	}
	o := object{}
	if w.chance(40) {
		o["usage"] = object{"promptTokens": 12, "totalTokens": w.rng.Intn(500), "elapsedMs": Number("1500.5"), "cacheReads": Number("1e2")}
	}
	kind := w.pick("run.finished", "run.error", "run.cancelled")
	switch kind {
	case "run.error":
		o["code"], o["message"] = "model_failed", w.pick("", "the model failed")
	case "run.cancelled":
		o["code"] = "stopped"
	default:
		o["artifactIds"] = []any{"a-1", "a-2"}
	}
	w.ofRun(r, kind, o)
	r.state = lastWord(kind)
	if r == w.root {
		w.root = nil
	}
	return true
}

func (w *world) recordProgress() bool {
	r := w.someRun("running", "paused")
	if r == nil {
		return false
	}
	o := object{
		"progressId": fmt.Sprintf("p-%d", w.rng.Intn(3)), "category": "phase", "label": w.pick("Planning", "Reading"),
		"status": w.pick("active", "completed", "failed", "cancelled"), "privacy": w.pick("public", "internal", "sensitive"),
	}
	if w.chance(40) {
		o["detail"] = w.pick("", "file one")
	}
	if w.chance(20) {
		o["usage"] = object{"totalTokens": 5}
	}
	w.ofRun(r, "progress.recorded", o)
	return true
}

// value returns some JSON value, with numbers that no machine type keeps.
func (w *world) value(depth int) any {
	n := w.rng.Intn(9)
	if depth == 0 {
		n = w.rng.Intn(7)
	}
	switch n {
	case 0:
		return nil
	case 1:
		return w.chance(50)
	case 2:
		return Number(w.pick("1.10", "9007199254740993", "1e400", "-0", "100"))
	case 3:
		return w.pick("", "text", "é \" \\ \u2028")
	case 4:
		return object{}
	case 5:
		return []any{}
	case 6:
		return number(int64(w.rng.Intn(10)))
	case 7:
		return object{"a": w.value(depth - 1), "b": w.value(depth - 1)}
	default:
		return []any{w.value(depth - 1), w.value(depth - 1)}
	}
}
