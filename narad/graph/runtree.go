package graph

import "github.com/mahati-host/mahati/narad"

// changeRunTree changes the graph of a run tree by a fact of it.
func (s *State) changeRunTree(c *Change, fact narad.Authority) {
	switch f := fact.(type) {
	case *narad.RunStarted:
		s.runStarted(c, f)
	case *narad.ToolCallStarted:
		s.toolStarted(c, f)
	case *narad.ToolCallFinished:
		s.update(c, nodeID(KindTool, f.ToolCallID), func(n *Node) { n.Status, n.Code = string(f.Outcome), f.Code })
	case *narad.InterruptRequested:
		s.interruptRequested(c, f, s.asker(f.RunID))
	case *narad.InterruptResolved:
		s.interruptResolved(c, f)
	default:
		s.runChanged(c, fact)
	}
	if e := fact.Envelope(); ended(fact) {
		delete(s.gates, e.RunID)
	}
}

// runStarted adds a run. A gate run is no node: it stands for what it asks for (R10).
func (s *State) runStarted(c *Change, f *narad.RunStarted) {
	id, from := nodeID(KindRun, f.RunID), s.origin(f)
	if isTrue(f.Optional("gate")) {
		s.gates[f.RunID] = from
		return
	}
	s.add(c, Node{ID: id, Kind: KindRun, Label: runLabel(f), Status: StatusRunning})
	s.link(c, from, id, EdgeStarted)
}

// origin returns the node that a run came from: the tool call that started it, else
// the run above it.
func (s *State) origin(f *narad.RunStarted) string {
	tool := nodeID(KindTool, f.ParentToolCallID)
	if _, known := s.index[tool]; known {
		return tool
	}
	return nodeID(KindRun, f.ParentRunID)
}

// runLabel is the name of who works in a run, where the host tells it.
func runLabel(f *narad.RunStarted) string {
	if name, _ := f.Optional("agentName").IsString(); name != "" {
		return name
	}
	return string(KindRun)
}

func isTrue(value narad.Raw) bool { return string(value) == "true" }

// asker returns the node that an interrupt of a run hangs from.
func (s *State) asker(runID string) string {
	if shown, gate := s.gates[runID]; gate {
		return shown
	}
	return nodeID(KindRun, runID)
}

func (s *State) toolStarted(c *Change, f *narad.ToolCallStarted) {
	id, label := nodeID(KindTool, f.ToolCallID), f.ToolName
	if title, _ := f.Optional("title").IsString(); title != "" {
		label = title
	}
	s.add(c, Node{ID: id, Kind: KindTool, Label: label, Status: StatusRunning, Executor: f.Executor})
	s.link(c, nodeID(KindRun, f.RunID), id, EdgeCalled)
	if f.ParentToolCallID != "" {
		s.link(c, nodeID(KindTool, f.ParentToolCallID), id, EdgeCalled)
	}
}

func (s *State) interruptRequested(c *Change, f *narad.InterruptRequested, from string) {
	id, label := nodeID(KindInterrupt, f.InterruptID), f.Title
	if label == "" {
		label = f.Kind
	}
	s.add(c, Node{ID: id, Kind: KindInterrupt, Label: label, Status: StatusOpen})
	s.link(c, from, id, EdgeAsked)
}

func (s *State) interruptResolved(c *Change, f *narad.InterruptResolved) {
	s.update(c, nodeID(KindInterrupt, f.InterruptID), func(n *Node) { n.Status, n.Decision = StatusResolved, f.Decision })
}

// runChanged changes a run that has a node.
func (s *State) runChanged(c *Change, fact narad.Authority) {
	id := nodeID(KindRun, fact.Envelope().RunID)
	set := func(status, code string) {
		s.update(c, id, func(n *Node) { n.Status, n.Code = status, code })
	}
	switch f := fact.(type) {
	case *narad.RunPaused:
		set(StatusPaused, "")
	case *narad.RunResumed:
		set(StatusRunning, "")
	case *narad.RunStopRequested:
		s.update(c, nodeID(KindRun, f.TargetRunID), func(n *Node) { n.StopRequested = true })
	case *narad.RunFinished:
		set(StatusFinished, "")
	case *narad.RunError:
		set(StatusError, f.Code)
	case *narad.RunCancelled:
		set(StatusCancelled, f.Code)
	}
}

// ended reports whether a fact is the terminal of its run.
func ended(fact narad.Authority) bool {
	switch fact.(type) {
	case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
		return true
	}
	return false
}
