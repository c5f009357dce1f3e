package sessiontest

import "maps"

// request makes an interrupt, often a pack.
func (w *world) request() object {
	o := object{"interruptId": w.id("i"), "waitId": w.id("wait"), "kind": "tool.approval", "actions": []any{"approve", "deny", "stop"}}
	switch w.rng.Intn(4) {
	case 0:
		o["actions"] = []any{"approve", "deny"}
	case 1:
		o["actions"] = []any{"approve", "approve_always", "deny", "deny_always", "stop"}
	}
	if w.chance(30) {
		o["expiresAt"], o["title"], o["message"] = "2026-08-05T02:00:00Z", "May I?", "It wants to write."
	}
	switch w.rng.Intn(3) {
	case 0:
		o["input"] = w.value(2)
	case 1:
		o["input"] = object{"members": []any{
			object{"requestId": "m-1", "toolName": "open.file"}, object{"requestId": "m-2"}, object{"requestId": "m-3"},
		}}
	}
	return o
}

// members makes the answer of each member of a pack and what they come to.
func (w *world) members(request object) (members []any, fold string) {
	input, _ := request["input"].(object)
	asked, _ := input["members"].([]any)
	offered := append([]any{"expired"}, request["actions"].([]any)...)
	stop, approve, expired := 0, 0, 0
	always := offered[w.rng.Intn(len(offered))] // packs of one mind must be common
	alike := w.chance(50)
	for _, m := range asked {
		d := always.(string)
		if !alike {
			d = offered[w.rng.Intn(len(offered))].(string)
		}
		switch d {
		case "stop":
			stop++
		case "approve", "approve_always":
			approve++
		case "expired":
			expired++
		}
		members = append(members, object{"requestId": m.(object)["requestId"], "decision": d, "toolName": "open.file"})
	}
	switch len(asked) {
	case approve:
		fold = "approve"
	case expired:
		fold = "expired"
	default:
		fold = "deny"
	}
	if stop > 0 {
		fold = "stop"
	}
	w.rng.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return members, fold
}

func (w *world) resolution(request object) object {
	actions := request["actions"].([]any)
	o := object{"interruptId": request["interruptId"], "waitId": request["waitId"], "decision": actions[w.rng.Intn(len(actions))]}
	if w.chance(15) {
		o["decision"] = "expired"
	}
	if members, fold := w.members(request); len(members) > 0 && w.chance(80) {
		o["members"], o["decision"] = members, fold
	}
	if w.chance(30) {
		o["reason"] = "because"
		o["actor"] = object{"name": "somebody"}
	}
	return o
}

func (w *world) interrupt() bool {
	r := w.someRun("running")
	if r == nil {
		return false
	}
	r.interrupt = w.request()
	o := maps.Clone(r.interrupt)
	if w.chance(30) {
		o["scope"] = "run"
	}
	w.ofRun(r, "interrupt.requested", o)
	w.awaiting = func() {
		w.awaiting = nil
		r.state, r.wait = "paused", r.interrupt["waitId"].(string)
		w.ofRun(r, "run.paused", object{
			"waitId": r.wait, "interruptId": r.interrupt["interruptId"], "reason": "interrupt", "resumeMode": "command",
		})
	}
	return true
}

func (w *world) resolve() bool {
	r := w.someRun("paused")
	if r == nil || r.interrupt == nil {
		return false
	}
	w.ofRun(r, "interrupt.resolved", w.resolution(r.interrupt))
	r.interrupt = nil
	return true
}

func (w *world) startWorkflow() {
	f := &worldWorkflow{id: w.id("w"), state: "running", steps: map[string]bool{}}
	o := object{}
	if w.chance(50) {
		f.node = w.node()
		o["nodeId"] = f.node
	}
	w.workflow = f
	w.ofWorkflow(f, "workflow.started", o)
}

func (w *world) node() string { return w.pick("plan", "write", "check") }

func (w *world) moveWorkflow() {
	f := w.workflow
	if f.state == "paused" {
		w.settleWorkflow(f)
		return
	}
	switch n := w.rng.Intn(20); {
	case n < 7:
		w.moveStep(f)
	case n < 10:
		w.takeEdge(f)
	case n < 13:
		w.interruptWorkflow(f)
	case n < 14:
		w.ofWorkflow(f, "workflow.stop.requested", object{})
	case n < 17 && w.root == nil:
		w.startRoot()
	case w.root == nil:
		w.endWorkflow(f)
	default:
		w.moveRun()
	}
}

func (w *world) moveStep(f *worldWorkflow) {
	o := object{"nodeId": w.node()}
	if w.chance(50) {
		o["agentRunId"], o["agentSessionId"], o["stepAttempt"] = "r-agent", "s-agent", w.rng.Intn(3)
	}
	kind := "workflow.step.started"
	if f.steps[o["nodeId"].(string)] {
		kind = w.pick("workflow.step.finished", "workflow.step.failed")
	}
	f.node = o["nodeId"].(string)
	f.steps[f.node] = kind == "workflow.step.started"
	w.ofWorkflow(f, kind, o)
}

func (w *world) takeEdge(f *worldWorkflow) {
	o := object{"from": f.node, "to": w.node()}
	if f.node == "" {
		o["from"] = w.node()
	}
	if w.chance(60) {
		o["caseIndex"], o["pointer"], o["op"] = w.rng.Intn(2), w.pick("", "/a"), w.pick("default", "eq")
	}
	f.node = o["to"].(string)
	w.ofWorkflow(f, "workflow.edge.taken", o)
}

func (w *world) interruptWorkflow(f *worldWorkflow) {
	f.interrupt = w.request()
	o := maps.Clone(f.interrupt)
	o["scope"] = "workflow"
	w.ofWorkflow(f, "interrupt.requested", o)
	w.awaiting = func() {
		w.awaiting = nil
		f.state, f.wait = "paused", f.interrupt["waitId"].(string)
		o := object{"waitId": f.wait, "interruptId": f.interrupt["interruptId"]}
		if w.chance(30) {
			o["nodeId"] = "elsewhere"
		}
		w.ofWorkflow(f, "workflow.paused", o)
	}
}

// settleWorkflow resolves a workflow's interrupt, or resumes or ends it after that.
func (w *world) settleWorkflow(f *worldWorkflow) {
	if f.interrupt != nil {
		o := w.resolution(f.interrupt)
		o["scope"] = "workflow"
		f.interrupt = nil
		w.ofWorkflow(f, "interrupt.resolved", o)
		return
	}
	if w.root == nil && w.chance(20) {
		w.endWorkflow(f)
		return
	}
	o := object{"waitId": f.wait}
	f.state = "running"
	w.ofWorkflow(f, "workflow.resumed", o)
}

func (w *world) endWorkflow(f *worldWorkflow) {
	f.state = "ended"
	w.ofWorkflow(f, w.pick("workflow.finished", "workflow.error", "workflow.cancelled"), object{"code": "done", "message": ""})
	w.workflow = nil
}
