package graph_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/graph"
)

// naive is the second opinion: a graph as one walks over the facts and asks, of each
// thing that ever began, what the facts say about it. It keeps nothing.
type naive struct {
	scope graph.Scope
	facts []narad.Authority // of the scope, in order
}

// place returns a fact's place in the scope, 0 for none.
func place(s graph.Scope, e *narad.Event) int64 {
	if s.Kind == narad.ScopeRun && e.RootRunID == s.ID {
		return e.Sequence
	}
	if s.Kind == narad.ScopeWorkflow && e.WorkflowID == s.ID {
		return e.WorkflowSequence
	}
	return 0
}

type thing = map[string]any

// graph returns the graph's canonical form, written by the standard library, which
// sorts the names of maps.
func (n naive) graph() string {
	nodes, links := []thing{}, [][3]string{}
	known := func(id string) bool {
		return slices.ContainsFunc(nodes, func(o thing) bool { return o["id"] == id })
	}
	add := func(o thing, at int64, from ...string) {
		if known(o["id"].(string)) {
			return
		}
		o["kind"], _, _ = strings.Cut(o["id"].(string), ":")
		o["sequence"] = at
		nodes = append(nodes, o)
		for i := 0; i+1 < len(from); i += 2 {
			links = append(links, [3]string{from[i], o["id"].(string), from[i+1]})
		}
	}
	for i, fact := range n.facts {
		at := place(n.scope, fact.Envelope())
		if n.scope.Kind == narad.ScopeRun {
			n.inRunTree(i, at, fact, add)
		} else {
			n.inWorkflow(i, at, fact, add, func(from, to string) { links = append(links, [3]string{from, to, "taken"}) })
		}
	}
	links = slices.DeleteFunc(links, func(l [3]string) bool { return !known(l[0]) || !known(l[1]) })
	slices.SortFunc(links, func(a, b [3]string) int { return slices.Compare(a[:], b[:]) })
	edges := []thing{}
	for _, l := range slices.Compact(links) {
		edges = append(edges, thing{"from": l[0], "to": l[1], "kind": l[2]})
	}
	root := map[narad.Scope]string{narad.ScopeRun: "run:", narad.ScopeWorkflow: "workflow:"}[n.scope.Kind] + n.scope.ID
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(thing{"nodes": nodes, "edges": edges, "rootNodeId": root}); err != nil {
		panic(err)
	}
	return strings.TrimSpace(out.String())
}

type adder = func(o thing, at int64, from ...string)

func (n naive) inRunTree(i int, at int64, fact narad.Authority, add adder) {
	switch f := fact.(type) {
	case *narad.RunStarted:
		if string(f.Optional("gate")) == "true" {
			return
		}
		add(n.run(f), at, n.origin(i, f), "started")
	case *narad.ToolCallStarted:
		o := thing{"id": "tool:" + f.ToolCallID, "label": f.ToolName, "executor": f.Executor, "status": "running"}
		if title, ok := f.Optional("title").IsString(); ok {
			o["label"] = title
		}
		for _, later := range n.facts {
			if end, is := later.(*narad.ToolCallFinished); is && end.ToolCallID == f.ToolCallID {
				o["status"] = end.Outcome
				put(o, "code", end.Code)
			}
		}
		add(o, at, "run:"+f.RunID, "called", "tool:"+f.ParentToolCallID, "called")
	case *narad.InterruptRequested:
		from := "run:" + f.RunID
		for j, start := range n.facts {
			if g, is := start.(*narad.RunStarted); is && g.RunID == f.RunID && string(g.Optional("gate")) == "true" {
				from = n.origin(j, g)
			}
		}
		add(n.interrupt(f), at, from, "asked")
	}
}

func put(o thing, name, value string) {
	if value != "" {
		o[name] = value
	}
}

// origin is what the i-th fact, a run's start, came from.
func (n naive) origin(i int, f *narad.RunStarted) string {
	for _, before := range n.facts[:i] {
		if t, is := before.(*narad.ToolCallStarted); is && t.ToolCallID == f.ParentToolCallID {
			return "tool:" + f.ParentToolCallID
		}
	}
	return "run:" + f.ParentRunID
}

func (n naive) run(f *narad.RunStarted) thing {
	o := thing{"id": "run:" + f.RunID, "label": "run", "status": "running"}
	if name, ok := f.Optional("agentName").IsString(); ok {
		o["label"] = name
	}
	for _, later := range n.facts {
		if stop, is := later.(*narad.RunStopRequested); is && stop.TargetRunID == f.RunID {
			o["stopRequested"] = true
		}
		if later.Envelope().RunID != f.RunID {
			continue
		}
		switch l := later.(type) {
		case *narad.RunPaused:
			o["status"] = "paused"
		case *narad.RunResumed:
			o["status"] = "running"
		case *narad.RunFinished:
			o["status"] = "finished"
		case *narad.RunError:
			o["status"] = "error"
			put(o, "code", l.Code)
		case *narad.RunCancelled:
			o["status"] = "cancelled"
			put(o, "code", l.Code)
		}
	}
	return o
}

func (n naive) interrupt(f *narad.InterruptRequested) thing {
	o := thing{"id": "interrupt:" + f.InterruptID, "label": f.Kind, "status": "open"}
	put(o, "label", f.Title)
	for _, later := range n.facts {
		if end, is := later.(*narad.InterruptResolved); is && end.InterruptID == f.InterruptID {
			o["status"], o["decision"] = "resolved", end.Decision
		}
	}
	return o
}

// nodeOf is the node of the workflow that a fact moves to, "" for none.
func nodeOf(fact narad.Authority) string {
	switch f := fact.(type) {
	case *narad.WorkflowStarted:
		return f.NodeID
	case *narad.WorkflowPaused:
		return f.NodeID
	case *narad.WorkflowResumed:
		return f.NodeID
	case *narad.WorkflowStep:
		return f.NodeID
	case *narad.WorkflowEdgeTaken:
		return f.To
	}
	return ""
}

func (n naive) inWorkflow(i int, at int64, fact narad.Authority, add adder, taken func(from, to string)) {
	root := "workflow:" + n.scope.ID
	switch f := fact.(type) {
	case *narad.WorkflowStarted:
		add(n.workflow(root), at)
	case *narad.WorkflowEdgeTaken:
		add(n.step(f.From), at, root, "entered")
		add(n.step(f.To), at)
		taken("node:"+f.From, "node:"+f.To)
	case *narad.InterruptRequested:
		if f.Scope == narad.ScopeWorkflow {
			add(n.interrupt(f), at, root, "asked")
		}
	case *narad.RunStarted:
		if f.RunID != f.RootRunID {
			return
		}
		from := root
		for _, before := range n.facts[:i] {
			if node := nodeOf(before); node != "" {
				from = "node:" + node
			}
		}
		add(n.run(f), at, from, "started")
	}
	if node := nodeOf(fact); node != "" {
		add(n.step(node), at, root, "entered")
	}
}

func (n naive) workflow(id string) thing {
	o := thing{"id": id, "label": "workflow", "status": "running"}
	for _, later := range n.facts {
		switch l := later.(type) {
		case *narad.WorkflowPaused:
			o["status"] = "paused"
		case *narad.WorkflowResumed:
			o["status"] = "running"
		case *narad.WorkflowStopRequested:
			o["stopRequested"] = true
		case *narad.WorkflowEnded:
			o["status"] = strings.TrimPrefix(string(l.Kind), "workflow.")
			put(o, "code", l.Code)
		}
	}
	return o
}

func (n naive) step(node string) thing {
	o := thing{"id": "node:" + node, "label": node, "status": "pending"}
	for _, later := range n.facts {
		l, is := later.(*narad.WorkflowStep)
		if !is || l.NodeID != node {
			continue
		}
		delete(o, "attempt")
		if l.StepAttempt > 0 {
			o["attempt"] = l.StepAttempt
		}
		switch l.Kind {
		case narad.TypeWorkflowStepStarted:
			o["status"] = "running"
		case narad.TypeWorkflowStepFinished:
			o["status"] = "finished"
		default:
			o["status"] = "failed"
		}
	}
	return o
}
