package script

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
)

// past is what the facts of an earlier life tell of a run, by the paths of its steps
// where they have one. It is read once; only counts change.
type past struct {
	calls     map[string]*pastCall     // by path
	waits     map[string]*pastWait     // by path
	runs      map[string]*pastRun      // by path
	notes     map[string]*note         // by path
	speeches  map[string]*speech       // by run
	artifacts map[string]*pastArtifact // by path
	done      map[string]bool          // by path: states, views and the like that were recorded
	opened    map[string]string        // by path: views
	asks      map[string]string        // by path: asks of other sessions
	told      *tally                   // activities and custom facts, by content
	messages  []agent.Message          // that steered the run
	asking    map[string]*asking       // by run
	// left counts what no step has come to yet; of text, its bytes.
	left atomic.Int64
}

type pastCall struct {
	id     string
	finish *narad.ToolCallFinished // nil while open
	gate   *pastWait               // nil if never asked for
}

type pastWait struct {
	id       string
	resolved *narad.InterruptResolved // nil while open
}

type pastArtifact struct {
	id   string
	done bool // it is ready, or has failed
}

type pastRun struct {
	id     string
	ending *agent.Ending // nil while open
}

// noteName is the custom fact that records what a step decided for itself.
const noteName = "script.step"

// note is its payload.
type note struct {
	Step string `json:"step"`
	// MessageID is the message that a steered step took, "" for none.
	MessageID string `json:"messageId,omitzero"`
}

func (sc *scene) note(ctx context.Context, n note) error {
	value, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return sc.h.Custom(ctx, noteName, value)
}

// historian reads a past.
type historian struct {
	*past
	root, prompt string
	byCall       map[string]*pastCall
	byWait       map[string]*pastWait
	byRun        map[string]*pastRun
	byArtifact   map[string]*pastArtifact
	gates        map[string]*pastCall // by the gate's run
}

func readPast(info agent.Info) *past {
	p := &past{
		calls: map[string]*pastCall{}, waits: map[string]*pastWait{}, runs: map[string]*pastRun{},
		notes: map[string]*note{}, speeches: map[string]*speech{}, artifacts: map[string]*pastArtifact{}, told: newTally(),
		done: map[string]bool{}, opened: map[string]string{}, asks: map[string]string{},
		asking: map[string]*asking{},
	}
	h := &historian{
		past: p, root: info.RootRunID, prompt: info.Prompt.MessageID, byCall: map[string]*pastCall{},
		byWait: map[string]*pastWait{}, byRun: map[string]*pastRun{}, byArtifact: map[string]*pastArtifact{}, gates: map[string]*pastCall{},
	}
	for _, rec := range info.Past {
		h.read(rec)
	}
	for _, s := range p.speeches {
		p.left.Add(int64(len(s.messages.told) + len(s.thoughts.told)))
	}
	p.left.Add(int64(len(p.calls) + len(p.waits) + len(p.runs) + len(p.notes) + len(p.artifacts) + len(p.done) + p.told.total()))
	return p
}

func (h *historian) read(rec narad.Authority) {
	e := rec.Envelope()
	h.round(rec, e.RunID)
	switch r := rec.(type) {
	case *narad.RunStarted:
		h.start(r)
	case *narad.RunFinished:
		h.end(e, agent.Ending{Outcome: agent.Finished})
	case *narad.RunError:
		h.end(e, agent.Ending{Outcome: agent.Failed, Code: r.Code})
	case *narad.RunCancelled:
		h.end(e, agent.Ending{Outcome: agent.Cancelled, Code: r.Code})
	case *narad.InterruptRequested:
		h.ask(r)
	case *narad.InterruptResolved:
		if w := h.byWait[r.InterruptID]; w != nil {
			w.resolved = r
		}
	case *narad.ToolCallStarted:
		h.call(r)
	case *narad.ToolCallFinished:
		if c := h.byCall[r.ToolCallID]; c != nil {
			c.finish = r
		}
	case *narad.MessageUserRecorded:
		if e.RunID == h.root && r.MessageID != h.prompt {
			h.messages = append(h.messages, agent.Message{MessageID: r.MessageID, Content: r.Content})
		}
	case *narad.ProgressRecorded:
		h.told.add(activityKey(e.RunID, r.ProgressID, r.Status, r.Label, r.Detail))
	case *narad.Artifact:
		h.artifact(r)
	case *narad.ViewOpened:
		h.opened[facts.AgentID(e)] = r.ViewID
		h.note(e)
	case *narad.ViewUpdated, *narad.ViewClosed, *narad.StateSnapshot, *narad.StateDelta, *narad.Opaque:
		h.note(e)
	case *narad.Custom:
		h.custom(r)
	default:
		h.speak(rec, e.RunID)
	}
}

func (h *historian) start(r *narad.RunStarted) {
	if facts.Gate(&r.Event) {
		h.gates[r.RunID] = h.byCall[r.ParentToolCallID]
		return
	}
	if path := facts.AgentID(&r.Event); path != "" && r.RunID != h.root {
		run := &pastRun{id: r.RunID}
		h.runs[path], h.byRun[r.RunID] = run, run
	}
}

func (h *historian) end(e *narad.Event, ending agent.Ending) {
	if run := h.byRun[e.RunID]; run != nil {
		run.ending = &ending
	}
}

func (h *historian) ask(r *narad.InterruptRequested) {
	w := &pastWait{id: r.InterruptID}
	h.byWait[r.InterruptID] = w
	if call := h.gates[r.RunID]; call != nil {
		call.gate = w
		return
	}
	if path := facts.AgentID(&r.Event); path != "" {
		h.waits[path] = w
	}
}

func (h *historian) call(r *narad.ToolCallStarted) {
	path := facts.AgentID(&r.Event)
	if path == "" || r.ToolName == askUser {
		return // the question is found by its interrupt
	}
	c := &pastCall{id: r.ToolCallID}
	h.calls[path], h.byCall[r.ToolCallID] = c, c
}

// note notes a step that was performed by the path on its fact.
func (h *historian) note(e *narad.Event) {
	if path := facts.AgentID(e); path != "" {
		h.done[path] = true
	}
}

func (h *historian) artifact(r *narad.Artifact) {
	if known := h.byArtifact[r.ArtifactID]; known != nil {
		known.done = true
		return
	}
	if path := facts.AgentID(&r.Event); path != "" {
		a := &pastArtifact{id: r.ArtifactID, done: r.Kind != narad.TypeArtifactAdded}
		h.artifacts[path], h.byArtifact[r.ArtifactID] = a, a
	}
}

// askUser is the tool by which the host asks questions (R13).
const askUser = "ask_user"

func (h *historian) custom(r *narad.Custom) {
	switch r.Name {
	case facts.TaskList:
		h.note(&r.Event)
		return
	case facts.IntercomSent:
		sent, _ := facts.Read[facts.Sent](r, r.Name)
		h.asks[facts.AgentID(&r.Event)] = sent.AskID
		h.note(&r.Event)
		return
	}
	if r.Name != noteName {
		h.told.add(customKey(r.RunID, r.Name, r.Value))
		return
	}
	var n note
	if err := json.Unmarshal(r.Value, &n); err == nil {
		h.notes[n.Step] = &n
	}
}

// untaken returns the messages that steered the run and that no step took.
func (p *past) untaken() []agent.Message {
	taken := map[string]bool{}
	for _, n := range p.notes {
		taken[n.MessageID] = true
	}
	var list []agent.Message
	for _, m := range p.messages {
		if !taken[m.MessageID] {
			list = append(list, m)
		}
	}
	return list
}

// leave passes over a run that ended in the past, and over what its steps left there.
func (p *past) leave(runID, path string) {
	below := path + "/"
	runs := []string{runID}
	for at, run := range p.runs {
		if strings.HasPrefix(at, below) {
			runs = append(runs, run.id)
		}
	}
	n := len(runs) - 1 + under(p.calls, below) + under(p.waits, below) + under(p.notes, below) + under(p.artifacts, below) + under(p.done, below)
	for _, id := range runs {
		said := p.speech(id)
		n += len(said.messages.told) + len(said.thoughts.told) + p.told.drop(id)
	}
	p.left.Add(-int64(n))
}

// under counts what stands at paths that begin so.
func under[T any](byPath map[string]T, prefix string) int {
	n := 0
	for path := range byPath {
		if strings.HasPrefix(path, prefix) {
			n++
		}
	}
	return n
}

// consume notes that a step has come to what the past tells of it.
func (p *past) consume() { p.left.Add(-1) }

// hear notes that steps have come past so many bytes of what was said.
func (p *past) hear(n int) { p.left.Add(-int64(n)) }

// behind reports whether the past tells of something that no step has come to yet:
// then what the present step does was done before.
func (p *past) behind() bool { return p.left.Load() > 0 }
