package sessiontest

import "strings"

// body gives an event what its type demands.
func (w *wanderer) body(kind string, o object) {
	prefix, _, _ := strings.Cut(kind, ".")
	switch prefix {
	case "run":
		w.runBody(kind, o)
	case "interrupt":
		w.interruptBody(kind, o)
	case "tool":
		w.toolBody(kind, o)
	case "message", "reasoning":
		w.speechBody(kind, o)
	case "state", "ui":
		w.stateBody(kind, o)
	case "workflow":
		w.workflowBody(kind, o)
	case "attachment", "artifact":
		o[prefix+"Id"] = w.pick("x1", "x2")
		if w.chance(30) {
			o["code"], o["message"] = "c", "m"
		}
	case "view":
		w.viewBody(kind, o)
	case "progress":
		o["progressId"], o["category"], o["label"] = w.pick("p1", "p2"), "phase", w.pick("A", "B")
		o["status"], o["privacy"] = w.pick("active", "completed"), "public"
		if w.chance(30) {
			o["detail"] = w.pick("", "d")
		}
	}
	if strings.HasSuffix(kind, ".custom") || strings.HasSuffix(kind, ".raw") {
		o["name"], o["value"], o["contentType"], o["payload"], o["nodeId"] = "a.b", nil, "text/plain", "", "a"
	}
}

// waitOf returns the wait that a run or workflow is in, or may be in.
func (w *wanderer) waitOf() string {
	open := []string{"wait1", "wait2"}
	for _, id := range sortedKeys(w.m.history.runs()) {
		if r, _ := w.m.history.run(id); r.state == "paused" {
			open = append(open, r.waitID, r.waitID)
		}
	}
	return open[w.rng.Intn(len(open))]
}

func (w *wanderer) runBody(kind string, o object) {
	switch kind {
	case "run.started":
		if w.chance(60) {
			o["parentRunId"] = w.neighbour("")
			if w.chance(30) {
				o["parentToolCallId"] = w.pick("t1", "t2", "t3")
			}
		}
		if w.chance(50) {
			o["clientExecutorId"] = "desktop"
		}
	case "run.paused":
		o["waitId"], o["reason"], o["resumeMode"] = w.waitOf(), "capacity", "automatic"
		if w.chance(60) {
			o["waitId"], o["interruptId"] = w.pick("wait1", "wait2"), w.pick("i1", "i2", "i3", "i4")
		}
	case "run.resumed":
		o["waitId"] = w.waitOf()
	case "run.stop.requested":
		o["targetRunId"] = w.run()
	default:
		o["code"], o["message"] = "c", ""
		if w.chance(30) {
			o["usage"] = object{"totalTokens": 3, "elapsedMs": Number("1.5")}
		}
	}
}

func (w *wanderer) interruptBody(kind string, o object) {
	o["interruptId"] = w.pick("i1", "i2", "i3", "i4")
	o["waitId"] = w.pick("wait1", "wait2")
	if w.chance(25) {
		o["scope"] = "workflow"
	}
	if kind == "interrupt.requested" {
		o["kind"], o["actions"] = "k", []any{"approve", "deny"}
		if w.chance(50) {
			o["actions"] = []any{"approve", "deny", "stop", "approve_always", "deny_always"}
		}
		if w.chance(40) {
			o["input"] = object{"members": []any{object{"requestId": "a"}, object{"requestId": "b"}}}
		}
		return
	}
	if open := w.openInterrupts(); len(open) > 0 && w.chance(80) {
		o["interruptId"] = w.pick(open...)
	}
	if i, known := w.m.history.interrupt(text(o, "interruptId")); known && w.chance(85) {
		o["waitId"] = i.requested.text("waitId")
		delete(o, "scope")
		if i.requested.workflowScope() {
			o["scope"] = "workflow"
		}
	}
	decisions := []string{"approve", "approve", "deny", "expired", "stop", "approve_always", "maybe"}
	o["decision"] = w.pick(decisions[:5]...)
	if w.chance(50) {
		var members []any
		for _, id := range []string{"a", "b", "c"}[:w.rng.Intn(3)+1] {
			members = append(members, object{"requestId": id, "decision": w.pick(decisions[:4+w.rng.Intn(4)]...)})
		}
		o["members"] = members
	}
}

func (w *wanderer) openInterrupts() (open []string) {
	for _, id := range []string{"i1", "i2", "i3", "i4"} {
		if i, _ := w.m.history.interrupt(id); i.open {
			open = append(open, id)
		}
	}
	return open
}

func (w *wanderer) toolBody(kind string, o object) {
	o["toolCallId"] = w.pick("t1", "t2", "t3", "t4", "t5")
	if kind == "tool.call.started" {
		o["toolName"], o["executor"], o["args"] = "x", w.pick("backend", "backend", "client"), object{"n": Number("1.10")}
		return
	}
	o["outcome"], o["response"] = w.pick("success", "error"), nil
}

func (w *wanderer) speechBody(kind string, o object) {
	o["messageId"], o["reasoningId"] = w.pick("m1", "m2", "m3", "m4"), w.pick("x1", "x2")
	if strings.HasPrefix(kind, "reasoning.") && w.chance(50) {
		delete(o, "messageId")
	}
	switch kind {
	case "message.user.recorded", "message.text.started":
		o["messageScope"] = w.pick("session", "session", "run", "run", "workflow")
		o["content"], o["role"] = w.pick("", "hi"), w.pick("assistant", "system")
		if w.chance(20) {
			o["attachmentIds"] = []any{"x1"}
		}
	case "message.redacted":
		o["reason"], o["displayReplacement"] = "r", nil
		if w.chance(50) {
			o["displayReplacement"] = w.pick("", "gone")
		}
	default:
		o["delta"] = w.pick("", "a", "b")
	}
}

func (w *wanderer) stateBody(kind string, o object) {
	o["scope"] = w.pick("session", "session", "run", "workflow")
	prefix := kind[:strings.LastIndexByte(kind, '.')+1]
	all, _ := w.m.history.scopes(prefix)
	now := all["session"].revision
	switch lastWord(kind) {
	case "snapshot":
		o["revision"], o["state"] = now+int64(w.rng.Intn(3)), object{"a": 1}
	case "delta":
		base := now
		if w.chance(20) {
			base = int64(w.rng.Intn(4))
		}
		o["baseRevision"], o["revision"], o["patch"] = base, base+1, w.patch()
		if w.chance(3) {
			o["revision"] = base + 2
		}
	default:
		o["coversThroughSessionSequence"] = w.m.history.cursor() + int64(w.rng.Intn(3))
		o["snapshotRevision"] = max(now+int64(w.rng.Intn(3))-1, 1)
	}
}

func (w *wanderer) patch() []any {
	var patch []any
	for range 1 + w.rng.Intn(2) {
		patch = append(patch, object{
			"op": w.pick("add", "add", "replace", "remove", "copy", "move", "test"), "from": w.pick("/a", "/b", "/b/c"),
			"path": w.pick("/a", "/b", "/b/c", "/b/-", "/b/0"), "value": []any{Number("1e0"), []any{}, object{}, Number("1")}[w.rng.Intn(4)],
		})
	}
	return patch
}

func (w *wanderer) workflowBody(kind string, o object) {
	if w.chance(50) {
		o["nodeId"] = w.pick("a", "b")
	}
	o["waitId"], o["interruptId"] = w.pick("wait1", "wait2"), w.pick("i1", "i2", "i3", "i4")
	switch kind {
	case "workflow.edge.taken":
		o["from"], o["to"] = w.pick("a", "b"), w.pick("a", "b")
		if w.chance(50) {
			o["caseIndex"], o["pointer"], o["op"] = w.rng.Intn(2), "", "default"
		}
	case "workflow.step.started", "workflow.step.finished", "workflow.step.failed":
		o["nodeId"] = w.pick("a", "b")
		if w.chance(40) {
			o["agentRunId"], o["stepAttempt"] = "r9", w.rng.Intn(2)
		}
	}
}

func (w *wanderer) viewBody(kind string, o object) {
	o["viewId"] = w.pick("v1", "v2")
	if kind == "view.opened" && w.chance(50) {
		o["model"] = []any{object{"a": 1}, nil, object{}}[w.rng.Intn(3)]
	}
	if kind == "view.updated" {
		o["operation"], o["patch"], o["model"] = w.pick("replace", "patch"), w.patch(), object{"b": object{}}
	}
}
