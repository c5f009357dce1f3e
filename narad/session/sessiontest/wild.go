package sessiontest

import (
	"fmt"
	"math/rand"
	"slices"

	"github.com/mahati-host/mahati/narad"
)

// Wild returns n lines that wander through all that could be sent: few ids, so that
// everything meets everything, and sequences as m expects them, so that a refusal does
// not end in a gap. Lines that m would take are preferred, so that there is something to
// go wrong with, and so are refusals that did not come yet. m has then seen the lines.
func Wild(rng *rand.Rand, m *Model, n int) [][]byte {
	w := &wanderer{rng: rng, m: m, met: map[string]bool{"": true}}
	lines := make([][]byte, 0, n)
	for i := range n {
		w.at = i
		line := w.line()
		m.Apply(line)
		lines = append(lines, line)
	}
	return lines
}

type wanderer struct {
	rng *rand.Rand
	m   *Model
	at  int
	ids int
	met map[string]bool // codes that lines were preferred for
}

func (w *wanderer) chance(percent int) bool { return w.rng.Intn(100) < percent }

func (w *wanderer) pick(of ...string) string { return of[w.rng.Intn(len(of))] }

// line draws lines until one suits, or the patience ends: mostly one that would be
// taken, often one that is refused as no line was before, now and then any.
func (w *wanderer) line() []byte {
	suits := func(v Verdict) bool { return v == applied }
	switch n := w.rng.Intn(10); {
	case n < 3:
		suits = func(v Verdict) bool { return v.Result != "gap" && !w.met[v.Code] }
	case n < 4:
		suits = func(Verdict) bool { return true }
	}
	line := w.draw()
	for range 12 {
		v := w.m.Clone().Apply(line)
		if suits(v) {
			w.met[v.Code] = true
			break
		}
		line = w.draw()
	}
	return line
}

func (w *wanderer) draw() []byte {
	switch w.rng.Intn(60) {
	case 0, 1:
		return w.snapshot()
	case 2:
		if w.chance(20) {
			return stranger(w.rng)
		}
		return w.old()
	}
	o := w.event()
	if w.chance(8) {
		spoilField(w.rng, o)
	}
	style := spelling{}
	if w.chance(10) {
		style.rng = w.rng
	}
	return style.line(o)
}

// old returns an accepted record again, mostly unchanged.
func (w *wanderer) old() []byte {
	if len(w.m.history) == 0 {
		return stranger(w.rng)
	}
	o := clone(w.m.history[w.rng.Intn(len(w.m.history))].body).(object)
	if w.chance(10) {
		o["more"] = true
	}
	return spelling{w.rng}.line(o)
}

func (w *wanderer) snapshot() []byte {
	messages := []any{}
	for _, id := range []string{"m1", "m2", "m3", "m4"} {
		if !w.chance(50) {
			continue
		}
		item := object{"messageId": id, "content": w.pick("", "x"), "role": w.pick("user", "assistant")}
		if now := w.m.history.transcript().message(id); now != nil && w.chance(70) {
			item["content"], item["role"] = now.text("content"), now.text("role")
		}
		if w.chance(70) {
			item["sessionSequence"] = w.rng.Intn(len(w.m.history) + 2)
		}
		if w.chance(50) {
			item["completed"] = w.chance(50)
		}
		if w.chance(30) {
			item["runId"], item["rootRunId"], item["messageScope"] = w.run(), w.run(), "run"
		}
		messages = append(messages, item)
	}
	covers := w.m.history.cursor()
	if w.chance(50) {
		covers = int64(w.rng.Intn(int(covers) + 3))
	}
	return spelling{}.line(object{
		"type": "messages.snapshot", "protocolVersion": "narad/v1", "timestamp": w.now(), "snapshotId": "snap",
		"sessionId": "s-1", "coversThroughSessionSequence": covers, "messages": messages,
	})
}

// run draws a run, rather one that there is.
func (w *wanderer) run() string {
	if known := sortedKeys(w.m.history.runs()); len(known) > 0 && w.chance(70) {
		return w.pick(known...)
	}
	return w.pick("r1", "r2", "r3", "r4", "r5")
}

func (w *wanderer) flow() string { return w.pick("w1", "w1", "w2") }

func (w *wanderer) now() string { return fmt.Sprintf("2026-08-05T00:%02d:%02dZ", w.at/60%60, w.at%60) }

// event draws an event of any type with its envelope.
func (w *wanderer) event() object {
	kind := wildTypes[w.rng.Intn(len(wildTypes))]
	w.ids++
	o := object{"type": kind, "protocolVersion": "narad/v1", "eventId": fmt.Sprintf("e-%d", w.ids), "timestamp": w.now(), "sessionId": "s-1"}
	if w.chance(1) {
		o["sessionId"] = "s-2"
	}
	if narad.Type(kind).Class() == narad.ClassWatch {
		w.watch(kind, o)
		return o
	}
	o["sessionSequence"] = w.m.history.cursor() + 1
	if w.chance(1) {
		o["sessionSequence"] = w.m.history.cursor() + int64(w.rng.Intn(3))
	}
	w.body(kind, o)
	w.place(kind, o)
	return o
}

// place gives an event its run and its workflow.
func (w *wanderer) place(kind string, o object) {
	lane := laneOf[kind]
	if s, _ := o["scope"].(string); s == "workflow" && (kind == "interrupt.requested" || kind == "interrupt.resolved") {
		lane = "workflow only"
	}
	switch {
	case lane == "workflow only", lane == "workflow" && w.chance(95):
		w.placeInWorkflow(o, w.flow())
	case lane == "run":
		w.placeInRun(kind, o)
	default:
		scope, _ := o["messageScope"].(string)
		if scope == "" {
			scope, _ = o["scope"].(string)
		}
		if scope == "run" || scope != "workflow" && w.chance(40) {
			w.placeInRun(kind, o)
		} else if scope == "workflow" {
			w.placeInWorkflow(o, w.flow())
		}
	}
}

func (w *wanderer) placeInWorkflow(o object, id string) {
	o["workflowId"] = id
	o["workflowSequence"] = w.m.history.lastOfWorkflow(id) + 1
	if w.chance(1) {
		o["workflowSequence"] = w.m.history.lastOfWorkflow(id) + 2
	}
}

func (w *wanderer) placeInRun(kind string, o object) {
	id := w.run()
	if owner := w.owner(o); owner != "" && w.chance(80) {
		id = owner
	} else if owner != "" {
		id = w.neighbour(owner)
	} else if kind == "run.started" && w.chance(80) {
		id = w.pick("r1", "r2", "r3", "r4", "r5", "r6", "r7")
	}
	o["runId"], o["rootRunId"] = id, id
	r, known := w.m.history.run(id)
	switch parent, hasParent := w.m.history.run(text(o, "parentRunId")); {
	case known && w.chance(95):
		o["rootRunId"] = r.root()
	case hasParent && w.chance(95):
		o["rootRunId"] = parent.root()
		r = parent
	}
	o["sequence"] = w.m.history.lastOfRoot(text(o, "rootRunId")) + 1
	if w.chance(2) {
		o["sequence"] = w.m.history.lastOfRoot(text(o, "rootRunId")) + int64(w.rng.Intn(3))
	}
	if flow := r.started.workflowID(); flow != "" && w.chance(95) {
		w.placeInWorkflow(o, flow)
	} else if active := w.m.history.activeWorkflow(); kind == "run.started" && active != "" && w.chance(80) || w.chance(1) {
		w.placeInWorkflow(o, cmpOr(active, w.flow()))
	}
	if laneOf[kind] == "run" && w.chance(3) { // a projection
		o["sourceEventId"], o["sourceSessionId"] = "e-source", "s-source"
		delete(o, "sequence")
		delete(o, "workflowId")
		delete(o, "workflowSequence")
	}
}

// owner returns the run that a tool call, an interrupt or a message belongs to.
func (w *wanderer) owner(o object) string {
	if t, known := w.m.history.tool(text(o, "toolCallId")); known {
		return t.started.runID()
	}
	if i, known := w.m.history.interrupt(text(o, "interruptId")); known {
		return i.requested.runID()
	}
	return w.m.history.transcript().message(text(o, "messageId")).text("runId")
}

// neighbour returns a run that goes on, of the same tree as a run; of any for "".
func (w *wanderer) neighbour(id string) string {
	mine, _ := w.m.history.run(id)
	runs := w.m.history.runs()
	var fit []string
	for _, other := range sortedKeys(runs) {
		if r := runs[other]; other != id && !r.ended() && (id == "" || r.root() == mine.root()) {
			fit = append(fit, other)
		}
	}
	if len(fit) == 0 {
		return w.run()
	}
	return w.pick(fit...)
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func text(o object, name string) string { s, _ := o[name].(string); return s }

func (w *wanderer) watch(kind string, o object) {
	f := fact{kind: kind, body: o}
	if f.workspaceWatch() {
		o["workspaceId"] = w.pick("ws-1", "ws-1", "ws-2")
		o["sessionId"] = w.pick("s-1", "s-2", "s-3")
	}
	o["runId"], o["rootRunId"], o["workflowId"], o["nodeId"] = w.run(), w.run(), w.flow(), w.pick("a", "b")
	o["revision"] = w.m.history.lastRevision(f.watchKey()) + int64(w.rng.Intn(3))
}

// laneOf says what an event of a type is placed in.
var laneOf = map[string]string{}

// wildTypes are the types to draw from; what drives a state comes more often.
var wildTypes = func() (types []string) {
	for _, t := range narad.Types() {
		kind := string(t)
		f := fact{kind: kind}
		switch {
		case t.Class() != narad.ClassAuthority && t.Class() != narad.ClassWatch:
			continue
		case f.is("run.started", "run.paused", "run.resumed", "run.stop.requested", "run.finished", "run.error", "run.cancelled",
			"tool.call.started", "tool.call.finished", "interrupt.requested", "interrupt.resolved", "progress.recorded"):
			laneOf[kind] = "run"
			types = append(types, kind, kind, kind, kind, kind)
		case t.Profile() == narad.Workflow, kind == "workflow.custom", kind == "workflow.raw":
			laneOf[kind] = "workflow"
			types = append(types, kind, kind)
		}
		types = append(types, kind)
	}
	slices.Sort(types)
	return types
}()
