package flow

import (
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// Progress is how far one workflow has come, as its facts tell it.
type Progress struct {
	def     *Definition
	data    data
	steps   int             // that have started
	done    map[string]bool // the nodes whose step was finished, once at least
	strayed bool            // a step that failed has left the way
	began   map[string]bool // the nodes that have started
	step    step
	stopped bool
	ended   bool
}

// step is the last step that started.
type step struct {
	node     string
	attempt  int
	since    string // when it started
	state    stepState
	run      string // its root run, "" for none
	end      *runEnd
	branches map[string]*branch // by their runs
	voices   map[string]*voice  // by runs
	asked    bool
	answer   *narad.InterruptResolved
	failure  Failure
}

type stepState uint8

const (
	stepNone stepState = iota
	stepRunning
	stepFinished
	stepFailed
)

// runEnd is how a run ended.
type runEnd struct {
	finished      bool
	code, message string
}

// branch is a parallel branch of a step.
type branch struct {
	name string
	end  *runEnd
}

// voice is what an agent has said since its last tool call, or before it if nothing came
// after. Messages are joined: a restart of the host cuts one in two.
type voice struct {
	text  []byte
	stale bool // a tool was called: what comes next begins anew
}

// NewProgress returns the progress of a workflow that has not started.
func NewProgress() *Progress {
	return &Progress{data: data{}, done: map[string]bool{}, began: map[string]bool{}}
}

// Ended reports whether the workflow has ended.
func (p *Progress) Ended() bool { return p.ended }

// Completed returns how many steps are finished: one that comes again counts once.
func (p *Progress) Completed() int { return len(p.done) }

// Finished reports whether the step of a node was finished before.
func (p *Progress) Finished(node string) bool { return p.done[node] }

// Total returns how many steps the workflow takes after a move; false where that depends on
// what comes of them, or a step that failed has left the way.
func (p *Progress) Total(m Move) (steps int, known bool) {
	if p.def == nil || p.strayed || m.Edge != nil && m.Edge.Op == opFailed {
		return 0, false
	}
	return p.def.Total()
}

// Unstarted returns the steps of the definition that have never started, in its order.
func (p *Progress) Unstarted() []string {
	if p.def == nil {
		return nil
	}
	return slices.DeleteFunc(p.def.Steps(), func(id string) bool { return p.began[id] })
}

// Data returns the working data as one JSON object.
func (p *Progress) Data() narad.Raw { return p.data.all() }

// Apply adds the next fact of the workflow. Other facts change nothing.
func (p *Progress) Apply(fact narad.Authority) {
	switch f := fact.(type) {
	case *narad.Custom:
		p.custom(f)
	case *narad.WorkflowStopRequested:
		p.stopped = true
	case *narad.WorkflowStep:
		p.stepped(f)
	case *narad.WorkflowEdgeTaken:
		p.strayed = p.strayed || f.Op == opFailed
	case *narad.WorkflowEnded:
		p.ended = true
	case *narad.InterruptRequested:
		p.step.asked = p.step.asked || f.Scope == narad.ScopeWorkflow
	case *narad.InterruptResolved:
		if f.Scope == narad.ScopeWorkflow {
			p.step.answer = f
		}
	case *narad.RunStarted:
		if f.ParentRunID != "" && f.ParentRunID == p.step.run && !facts.Gate(&f.Event) {
			p.step.branches[f.RunID] = &branch{name: facts.AgentID(&f.Event)}
		}
	case *narad.RunFinished:
		p.runEnded(f.RunID, runEnd{finished: true})
	case *narad.RunError:
		p.runEnded(f.RunID, runEnd{code: f.Code, message: f.Message})
	case *narad.RunCancelled:
		p.runEnded(f.RunID, runEnd{code: orElse(f.Code, "cancelled"), message: f.Message})
	default:
		p.said(fact)
	}
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func (p *Progress) custom(f *narad.Custom) {
	switch f.Name {
	case facts.WorkflowDefined:
		defined, _ := facts.Read[facts.Defined](f, f.Name)
		def, err := Read([]byte(defined.Definition), "")
		if err != nil {
			return // another version of the host: Next ends the workflow
		}
		p.def = def
		for _, e := range def.data {
			p.data[e.name] = e.value
		}
		p.data[inputName] = defined.Input
	case facts.WorkflowData:
		noted, _ := facts.Read[facts.Noted](f, f.Name)
		var values map[string]narad.Raw
		if err := json.Unmarshal(noted.Set, &values); err == nil {
			for name, v := range values {
				p.data[name] = v
			}
		}
	}
}

// inputName is where the data holds what the workflow was started with.
const inputName = "input"

func (p *Progress) stepped(f *narad.WorkflowStep) {
	switch f.Kind {
	case narad.TypeWorkflowStepStarted:
		p.steps++
		p.began[f.NodeID] = true
		p.step = step{
			node: f.NodeID, attempt: int(f.StepAttempt), state: stepRunning, run: f.AgentRunID, since: f.Timestamp,
			branches: map[string]*branch{}, voices: map[string]*voice{},
		}
	case narad.TypeWorkflowStepFinished:
		p.step.state = stepFinished
		p.done[f.NodeID] = true
		p.step.forget()
	case narad.TypeWorkflowStepFailed:
		p.step.state = stepFailed
		p.step.failure = failureOf(f)
		p.step.forget()
	}
}

// forget lets go of what only a running step needs.
func (s *step) forget() { s.branches, s.voices, s.answer = nil, nil, nil }

func failureOf(f *narad.WorkflowStep) Failure {
	failure := Failure{}
	failure.Code, failure.Message = facts.StepFailure(&f.Event)
	failure.Retry, _ = time.Parse(time.RFC3339Nano, facts.RetryAt(&f.Event))
	return failure
}

func (p *Progress) runEnded(run string, end runEnd) {
	if run == p.step.run && run != "" {
		p.step.end = &end
	} else if b := p.step.branches[run]; b != nil {
		b.end = &end
	}
}

// said keeps what the step's agents say last.
func (p *Progress) said(fact narad.Authority) {
	run := fact.Envelope().RunID
	if p.step.state != stepRunning || run == "" || run != p.step.run && p.step.branches[run] == nil {
		return
	}
	v := p.step.voices[run]
	if v == nil {
		v = &voice{}
		p.step.voices[run] = v
	}
	switch f := fact.(type) {
	case *narad.ToolCallStarted:
		v.stale = true
	case *narad.MessageTextDelta:
		v.say(f.Delta)
	}
}

func (v *voice) say(text string) {
	if v.stale {
		v.text, v.stale = nil, false
	}
	v.text = append(v.text, text...)
	if len(v.text) > 2*maxResult { // the end is what counts
		v.text = append(v.text[:0], v.text[len(v.text)-maxResult:]...)
	}
}
