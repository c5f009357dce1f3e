package sessiontest

import (
	"fmt"
	"maps"
	"slices"
)

// conversation writes something of a message.
func (w *world) conversation() {
	var streaming, all []string
	for _, id := range w.shown {
		all = append(all, id)
		if w.messages[id].streaming {
			streaming = append(streaming, id)
		}
	}
	switch n := w.rng.Intn(10); {
	case n < 5 && len(streaming) > 0:
		w.stream(w.messages[streaming[w.rng.Intn(len(streaming))]], n < 4)
	case n == 5 && len(all) > 0:
		o := object{"messageId": all[w.rng.Intn(len(all))], "reason": "privacy", "displayReplacement": nil}
		if w.chance(60) {
			o["displayReplacement"] = w.pick("", "(removed)")
		}
		w.messages[o["messageId"].(string)].item["redacted"] = true
		w.fact("message.redacted", o)
	case n < 8:
		w.say("message.user.recorded", object{"content": w.pick("", "hello", "how are you?")}, "user")
	default:
		role := w.pick("assistant", "system")
		w.say("message.text.started", object{"role": role}, role)
	}
}

// say begins a message in one of the scopes.
func (w *world) say(kind string, o object, role string) {
	id := w.id("m")
	o["messageId"], o["messageScope"] = id, "session"
	if role == "user" && w.chance(30) {
		o["attachmentIds"] = []any{"at-1", "at-2"}
	}
	m := &worldMessage{streaming: role != "user"}
	m.item = object{"messageId": id, "role": role, "content": "", "completed": !m.streaming, "messageScope": "session"}
	if role == "user" {
		m.item["content"] = o["content"]
	}
	w.messages[id] = m
	w.shown = append(w.shown, id)
	r := w.someRun("running", "paused")
	switch {
	case r != nil && !w.quiet && w.chance(60):
		o["messageScope"], m.run = w.pick("run", "session"), r.id
		w.ofRun(r, kind, o)
	case w.workflow != nil && !w.quiet && w.chance(50):
		o["messageScope"] = "workflow"
		w.ofWorkflow(w.workflow, kind, o)
	default:
		w.fact(kind, o)
	}
	m.item["messageScope"], m.item["sessionSequence"] = o["messageScope"], w.sequence
}

// stream continues a message, in its own run or in none.
func (w *world) stream(m *worldMessage, goOn bool) {
	kind, o := "message.text.completed", object{"messageId": m.item["messageId"]}
	if goOn {
		kind, o["delta"] = "message.text.delta", w.pick("", "a", "word ")
		m.item["content"] = m.item["content"].(string) + o["delta"].(string)
	}
	m.streaming = goOn
	m.item["completed"] = !goOn
	if r := w.runs[m.run]; r != nil && !w.quiet && (r.state == "running" || r.state == "paused") && w.chance(70) {
		w.ofRun(r, kind, o)
		return
	}
	w.fact(kind, o)
}

func (w *world) reason() {
	open := slices.DeleteFunc(slices.Clone(w.reasoning), func(r *worldReasoning) bool { return r.done })
	if len(open) == 0 || w.chance(30) {
		r := &worldReasoning{id: w.id("reasoning")}
		w.reasoning = append(w.reasoning, r)
		o := object{"reasoningId": r.id}
		if len(w.shown) > 0 && w.chance(50) {
			o["messageId"] = w.shown[0]
		}
		w.somewhere("reasoning.started", o)
		return
	}
	r := open[w.rng.Intn(len(open))]
	if w.chance(70) {
		w.somewhere("reasoning.delta", object{"reasoningId": r.id, "delta": w.pick("", "hm ")})
		return
	}
	r.done = true
	w.somewhere("reasoning.completed", object{"reasoningId": r.id})
}

// materials writes something of an attachment or an artifact.
func (w *world) materials() {
	if len(w.material) == 0 || w.chance(40) {
		what := []string{w.pick("attachment", "artifact"), w.id("x"), "added"}
		w.material = append(w.material, what)
		w.somewhere(what[0]+".added", object{what[0] + "Id": what[1], "name": "paper.txt"})
		return
	}
	what := w.material[w.rng.Intn(len(w.material))]
	next := map[string][]string{"added": {"ready", "failed"}}[what[2]]
	if what[0] == "attachment" && what[2] != "removed" {
		next = append(next, "removed")
	}
	if len(next) == 0 {
		w.extension()
		return
	}
	what[2] = w.pick(next...)
	o := object{what[0] + "Id": what[1]}
	if what[2] == "failed" {
		o["code"], o["message"] = "too_large", "Too large."
	}
	w.somewhere(what[0]+"."+what[2], o)
}

// state writes something of a scoped state.
func (w *world) state() {
	usable := slices.DeleteFunc(slices.Clone(w.states), func(s *worldState) bool {
		return s.run != nil && s.run.state != "running" && s.run.state != "paused" ||
			s.flow != nil && s.flow != w.workflow || w.quiet && (s.run != nil || s.flow != nil)
	})
	if len(usable) == 0 || w.chance(15) {
		w.newState()
		return
	}
	s := usable[w.rng.Intn(len(usable))]
	switch n := w.rng.Intn(10); {
	case n < 7:
		patch := w.patch(s)
		s.rev++
		w.ofState(s, s.kind+".delta", object{"baseRevision": s.rev - 1, "revision": s.rev, "patch": patch})
	case n < 9 || s.kind != "state":
		s.rev += 1 + int64(w.rng.Intn(3))
		s.keys = 0
		w.ofState(s, s.kind+".snapshot", object{"revision": s.rev, "state": object{"list": []any{}}})
	default:
		s.rev += int64(w.rng.Intn(2))
		w.ofState(s, "state.compacted", object{"coversThroughSessionSequence": w.sequence, "snapshotRevision": s.rev})
	}
}

func (w *world) newState() {
	s := &worldState{kind: w.pick("state", "ui.state"), scope: object{"scope": "session"}}
	if r := w.someRun("running", "paused"); r != nil && !w.quiet && w.chance(50) {
		s.scope, s.run = object{"scope": "run"}, r
	} else if w.workflow != nil && !w.quiet && w.chance(50) {
		s.scope, s.flow = object{"scope": "workflow"}, w.workflow
	}
	for _, old := range w.states {
		if old.kind == s.kind && old.run == s.run && old.flow == s.flow {
			s = old
		}
	}
	if s.rev == 0 {
		w.states = append(w.states, s)
	}
	s.rev++
	s.keys = 0
	w.ofState(s, s.kind+".snapshot", object{"revision": s.rev, "state": object{"list": []any{}}})
}

func (w *world) ofState(s *worldState, kind string, o object) {
	maps.Copy(o, s.scope)
	switch {
	case s.run != nil:
		w.ofRun(s.run, kind, o)
	case s.flow != nil:
		w.ofWorkflow(s.flow, kind, o)
	default:
		w.fact(kind, o)
	}
}

// patch makes a patch that fits: the state is an object with a list and keys k1...kn.
func (w *world) patch(s *worldState) []any {
	var patch []any
	for range 1 + w.rng.Intn(3) {
		switch n := w.rng.Intn(6); {
		case n == 0:
			patch = append(patch, object{"op": "add", "path": "/list/" + w.pick("-", "0"), "value": w.value(1)})
		case n == 1 && s.keys > 0:
			patch = append(patch, object{"op": "remove", "path": fmt.Sprintf("/k%d", s.keys)})
			s.keys--
		case n == 2 && s.keys > 0:
			patch = append(patch, object{"op": "replace", "path": fmt.Sprintf("/k%d", s.keys), "value": w.value(1)})
		case n == 3 && s.keys > 0:
			patch = append(patch, object{"op": w.pick("copy", "move"), "from": fmt.Sprintf("/k%d", s.keys), "path": fmt.Sprintf("/k%d", s.keys)},
				object{"op": "copy", "from": "/list", "path": "/k~1x~0"}, object{"op": "remove", "path": "/k~1x~0"})
		case n == 4:
			patch = append(patch, object{"op": "add", "path": "/t", "value": Number("100")}, object{"op": "test", "path": "/t", "value": Number("1e2")},
				object{"op": "remove", "path": "/t"})
		default:
			s.keys++
			patch = append(patch, object{"op": "add", "path": fmt.Sprintf("/k%d", s.keys), "value": w.value(1)})
		}
	}
	return patch
}

func (w *world) view() {
	if w.hasModel == nil {
		w.hasModel = map[string]bool{}
	}
	if len(w.views) == 0 || w.chance(30) {
		id := w.id("v")
		o := object{"viewId": id}
		if w.chance(50) {
			o["model"] = object{"a": w.value(1)}
		}
		w.views = append(w.views, id)
		w.somewhere("view.opened", o)
		return
	}
	at := w.rng.Intn(len(w.views))
	id := w.views[at]
	switch w.rng.Intn(4) {
	case 0:
		w.views = slices.Delete(w.views, at, at+1)
		w.somewhere("view.closed", object{"viewId": id})
		if w.chance(30) {
			w.views = append(w.views, id)
			w.somewhere("view.opened", object{"viewId": id})
		}
	case 1:
		w.somewhere("view.updated", object{"viewId": id, "operation": "replace", "model": object{"b": w.value(1)}})
	default:
		w.somewhere("view.updated", object{"viewId": id, "operation": "patch", "patch": []any{object{"op": "add", "path": "/c", "value": w.value(1)}}})
	}
}

// extension writes a custom, raw, trace or debug event.
func (w *world) extension() {
	kind := w.pick("session.custom", "run.custom", "workflow.custom", "node.custom", "session.raw", "run.raw", "workflow.raw", "node.raw",
		"trace.span.started", "trace.span.completed", "trace.event", "debug.log", "debug.snapshot")
	o := object{"name": "mahati.note", "value": w.value(1)}
	if lastWord(kind) == "raw" {
		o = object{"contentType": "text/plain", "payload": ""}
	}
	r := w.someRun("running", "paused")
	switch {
	case kind[:3] == "run" && r != nil && !w.quiet:
		w.ofRun(r, kind, o)
	case (kind[:4] == "work" || kind[:4] == "node") && w.workflow != nil && !w.quiet:
		if kind[:4] == "node" {
			o["nodeId"] = "plan"
		}
		w.ofWorkflow(w.workflow, kind, o)
	case kind[:3] == "tra" || kind[:3] == "deb":
		w.somewhere(kind, object{"anything": w.value(2)})
	default:
		kind = w.pick("session.custom", "session.raw")
		w.fact(kind, object{"name": "mahati.note", "value": w.value(1), "contentType": "text/plain", "payload": "aGk="})
	}
}
