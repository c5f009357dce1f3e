package session

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/narad"
)

// control is the open work of a state as it is kept between processes. Field names
// may be added; a change of meaning is a new version, which drops what was kept.
type control struct {
	Version        int
	SessionID      string
	Last           int64
	Covers         int64
	Joined         bool
	Resync         bool
	ActiveRoot     string
	ActiveWorkflow string
	Trees          map[string]controlTree
	Runs           []controlRun
	Tools          []controlTool
	Interrupts     []controlInterrupt
	Workflows      []controlWorkflow
	WorkflowLast   map[string]int64
	Messages       []message
	Thoughts       []thought
	Attachments    map[string]Material
	Artifacts      map[string]Material
	Scoped         []controlScope
	Views          []string
	Progress       []controlActivity
}

const controlVersion = 1

type controlTree struct {
	Last     int64
	Awaiting string // an interrupt
}

type controlRun struct {
	Run
	StartedSequence int64
	Awaiting        bool
	Interrupt       string
	Children        int
	Tools           int
}

type controlActivity struct {
	Activity
	RunID string
}

type controlTool struct {
	Tool
	StartedSequence int64
}

type controlInterrupt struct {
	Interrupt
	RequestedSequence int64
}

type controlWorkflow struct {
	Workflow
	Awaiting  string
	Interrupt string
}

type controlScope struct {
	Scope         narad.Scope
	First, Second string
	Revision      int64
	Resync        bool
}

// EncodeControl writes the open work of a state that was made with NoDisplay, so that
// it can go on in another process. Equal states give equal bytes.
func (s *State) EncodeControl() []byte {
	c := control{
		Version: controlVersion, SessionID: s.sessionID, Last: s.last, Covers: s.covers, Joined: s.joined, Resync: s.resync,
		ActiveRoot: s.activeRoot, ActiveWorkflow: s.activeWorkflow, Trees: map[string]controlTree{},
		WorkflowLast: s.workflowLast, Attachments: values(s.attachments), Artifacts: values(s.artifacts),
		Views: slices.Sorted(maps.Keys(s.views)),
	}
	for root, t := range s.trees {
		c.Trees[root] = controlTree{t.last, idOf(t.awaiting)}
	}
	for _, r := range s.OpenRuns() {
		c.Runs = append(c.Runs, controlRun{r, r.StartedSequence, r.awaiting, r.interrupt, r.children, r.tools})
		for _, t := range s.OpenTools(r.RunID) {
			c.Tools = append(c.Tools, controlTool{t, t.StartedSequence})
		}
		for _, a := range s.ActiveProgress(r.RunID) {
			c.Progress = append(c.Progress, controlActivity{a, r.RunID})
		}
	}
	for _, i := range s.OpenInterrupts() {
		c.Interrupts = append(c.Interrupts, controlInterrupt{i, i.RequestedSequence})
	}
	for _, id := range slices.Sorted(maps.Keys(s.workflows)) {
		w := s.workflows[id]
		c.Workflows = append(c.Workflows, controlWorkflow{*w, idOf(w.awaiting), s.workflowAsks[id]})
	}
	for _, m := range s.messages.order {
		c.Messages = append(c.Messages, *m)
	}
	for _, t := range s.reasoning.order {
		c.Thoughts = append(c.Thoughts, *t)
	}
	for key, state := range s.scoped {
		c.Scoped = append(c.Scoped, controlScope{key.scope, key.first, key.second, state.revision, state.resync})
	}
	slices.SortFunc(c.Scoped, func(a, b controlScope) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.First, b.First), cmp.Compare(a.Second, b.Second))
	})
	data, err := json.Marshal(c, json.Deterministic(true))
	if err != nil {
		panic("session: open work is always JSON: " + err.Error())
	}
	return data
}

func idOf(i *Interrupt) string {
	if i == nil {
		return ""
	}
	return i.InterruptID
}

// DecodeControl reads what EncodeControl wrote, as a state with NoDisplay that
// remembers no ids. An error means that the state must be made from its records.
func DecodeControl(data []byte) (*State, error) {
	var c control
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("decode open work: %w", err)
	}
	if c.Version != controlVersion {
		return nil, fmt.Errorf("decode open work: version %d, not %d", c.Version, controlVersion)
	}
	s := New(Options{SessionID: c.SessionID, NoDisplay: true})
	s.last, s.covers, s.joined, s.resync = c.Last, c.Covers, c.Joined, c.Resync
	s.activeRoot, s.activeWorkflow = c.ActiveRoot, c.ActiveWorkflow
	maps.Copy(s.workflowLast, c.WorkflowLast)
	c.restoreWork(s)
	c.restoreMaterial(s)
	return s, nil
}

func (c *control) restoreWork(s *State) {
	for _, i := range c.Interrupts {
		i.Interrupt.RequestedSequence = i.RequestedSequence
		s.interrupts[i.InterruptID] = &i.Interrupt
	}
	for root, t := range c.Trees {
		s.trees[root] = &tree{t.Last, s.interrupts[t.Awaiting]}
	}
	for _, r := range c.Runs {
		r.Run.StartedSequence, r.Run.awaiting, r.Run.interrupt = r.StartedSequence, r.Awaiting, r.Interrupt
		r.Run.children, r.Run.tools = r.Children, r.Tools
		s.runs[r.RunID] = &r.Run
	}
	for _, t := range c.Tools {
		t.Tool.StartedSequence = t.StartedSequence
		s.tools[t.ToolCallID] = &t.Tool
	}
	for _, w := range c.Workflows {
		w.Workflow.awaiting = s.interrupts[w.Awaiting]
		if w.Interrupt != "" {
			s.workflowAsks[w.WorkflowID] = w.Interrupt
		}
		if w.Workflow.Steps == nil {
			w.Workflow.Steps = map[string]Step{}
		}
		s.workflows[w.WorkflowID] = &w.Workflow
	}
}

func (c *control) restoreMaterial(s *State) {
	for _, m := range c.Messages {
		m.streaming = true
		s.messages.put(&m)
	}
	for _, t := range c.Thoughts {
		s.reasoning.put(&t)
	}
	for id, m := range c.Attachments {
		s.attachments[id] = &m
	}
	for id, m := range c.Artifacts {
		s.artifacts[id] = &m
	}
	for _, k := range c.Scoped {
		s.scoped[scopeKey{k.Scope, k.First, k.Second}] = &scopedState{revision: k.Revision, resync: k.Resync}
	}
	for _, id := range c.Views {
		s.views[id] = &view{open: true}
	}
	for _, a := range c.Progress {
		of := s.progress[a.RunID]
		if of == nil {
			of = &activities{byID: map[string]*Activity{}}
			s.progress[a.RunID] = of
		}
		a.Activity.RunID = a.RunID
		of.byID[a.ProgressID] = &a.Activity
		of.order = append(of.order, a.ProgressID)
	}
}
