package graph

import "github.com/mahati-host/mahati/narad"

// changeWorkflow changes the graph of a workflow by a fact of it. Of the runs inside,
// the top-level ones are shown; what is below them is in their own graphs.
func (s *State) changeWorkflow(c *Change, fact narad.Authority) {
	root := s.scope.root()
	switch f := fact.(type) {
	case *narad.WorkflowStarted:
		s.add(c, Node{ID: root, Kind: KindWorkflow, Label: string(KindWorkflow), Status: StatusRunning})
		s.enter(c, f.NodeID)
	case *narad.WorkflowPaused:
		s.update(c, root, func(n *Node) { n.Status = StatusPaused })
		s.enter(c, f.NodeID)
	case *narad.WorkflowResumed:
		s.update(c, root, func(n *Node) { n.Status = StatusRunning })
		s.enter(c, f.NodeID)
	case *narad.WorkflowStopRequested:
		s.update(c, root, func(n *Node) { n.StopRequested = true })
	case *narad.WorkflowStep:
		s.stepped(c, f)
	case *narad.WorkflowEdgeTaken:
		s.edgeTaken(c, f)
	case *narad.WorkflowEnded:
		s.update(c, root, func(n *Node) { n.Status, n.Code = workflowEnd[f.Kind], f.Code })
	case *narad.InterruptRequested:
		if f.Scope == narad.ScopeWorkflow {
			s.interruptRequested(c, f, root)
		}
	case *narad.InterruptResolved:
		s.interruptResolved(c, f)
	case *narad.RunStarted:
		s.topLevelStarted(c, f)
	default:
		s.runChanged(c, fact)
	}
}

var workflowEnd = map[narad.Type]string{
	narad.TypeWorkflowFinished:  StatusFinished,
	narad.TypeWorkflowError:     StatusError,
	narad.TypeWorkflowCancelled: StatusCancelled,
}

var stepStatus = map[narad.Type]string{
	narad.TypeWorkflowStepStarted:  StatusRunning,
	narad.TypeWorkflowStepFinished: StatusFinished,
	narad.TypeWorkflowStepFailed:   StatusFailed,
}

// enter moves the workflow to a node, where a fact names one.
func (s *State) enter(c *Change, node string) {
	if node == "" {
		return
	}
	s.current = nodeID(KindNode, node)
	if _, known := s.index[s.current]; !known {
		s.add(c, Node{ID: s.current, Kind: KindNode, Label: node, Status: StatusPending})
		s.link(c, s.scope.root(), s.current, EdgeEntered)
	}
}

func (s *State) stepped(c *Change, f *narad.WorkflowStep) {
	id := nodeID(KindNode, f.NodeID)
	s.current = id
	if _, known := s.index[id]; !known {
		s.add(c, Node{ID: id, Kind: KindNode, Label: f.NodeID, Status: stepStatus[f.Kind], Attempt: f.StepAttempt})
		s.link(c, s.scope.root(), id, EdgeEntered)
		return
	}
	s.update(c, id, func(n *Node) { n.Status, n.Attempt = stepStatus[f.Kind], f.StepAttempt })
}

func (s *State) edgeTaken(c *Change, f *narad.WorkflowEdgeTaken) {
	s.enter(c, f.From)
	to := nodeID(KindNode, f.To)
	s.add(c, Node{ID: to, Kind: KindNode, Label: f.To, Status: StatusPending})
	s.link(c, s.current, to, EdgeTaken)
	s.current = to
}

// topLevelStarted adds a run that stands on its own, below where the workflow is.
func (s *State) topLevelStarted(c *Change, f *narad.RunStarted) {
	if f.Nested() {
		return
	}
	from := s.current
	if from == "" {
		from = s.scope.root()
	}
	id := nodeID(KindRun, f.RunID)
	s.add(c, Node{ID: id, Kind: KindRun, Label: runLabel(f), Status: StatusRunning})
	s.link(c, from, id, EdgeStarted)
}
