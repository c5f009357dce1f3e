package graph_test

import (
	"fmt"
	"math/rand"
	"time"

	"pgregory.net/rapid"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
	"github.com/mahati-host/mahati/narad/session/sessiontest"
)

// story makes facts by chance and keeps those that a host may append. It knows more of
// runs, gates and workflows than the traces of sessiontest do, and less of the rest.
type story struct {
	rng   *rand.Rand
	state *session.State
	facts []narad.Authority
	ids   int

	runs, tools, asked, nodes []string
	workflow                  string
	waits                     map[string]string // of runs, interrupts and the workflow
}

// drawStory draws the facts of the session "s".
func drawStory(t *rapid.T) []narad.Authority {
	w := &story{
		rng:   rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed"))),
		state: session.New(session.Options{SessionID: "s"}), waits: map[string]string{},
		nodes: []string{"plan", "write", "check"},
	}
	for range rapid.IntRange(1, 400).Draw(t, "steps") {
		w.step()
	}
	return w.facts
}

func (w *story) id(kind string) string {
	w.ids++
	return fmt.Sprintf("%s%d", kind, w.ids)
}

func (w *story) chance(percent int) bool { return w.rng.Intn(100) < percent }

func (w *story) pick(from []string) string {
	if len(from) == 0 {
		return "nobody"
	}
	return from[w.rng.Intn(len(from))]
}

// tell keeps a fact of a run, a workflow or neither if it may stand here.
func (w *story) tell(fact narad.Authority, run string) bool {
	e := fact.Envelope()
	if run != "" {
		r, _ := w.state.Run(run)
		e.RunID, e.RootRunID, e.WorkflowID = run, r.RootRunID, r.WorkflowID
		if start, is := fact.(*narad.RunStarted); is {
			parent, _ := w.state.Run(start.ParentRunID)
			e.RootRunID, e.WorkflowID = parent.RootRunID, parent.WorkflowID
			if start.ParentRunID == "" {
				e.RootRunID, e.WorkflowID = run, w.state.ActiveWorkflowID()
			}
		}
	}
	e.Timestamp = narad.Timestamp(time.Unix(1_800_000_000+int64(len(w.facts)), 0))
	e.EventID = fmt.Sprintf("%d.aaaaaaaa", len(w.facts)+1)
	w.state.Number(fact)
	if w.state.Admit(fact).Kind != session.Applied {
		return false
	}
	w.facts = append(w.facts, fact)
	return true
}

func (w *story) step() {
	steps := []func(){
		w.startRun, w.startRun, w.startGate, w.startGate, w.startTool, w.startTool, w.finishTool, w.finishTool,
		w.ask, w.resolve, w.resolve, w.resume, w.resume, w.pause, w.stop, w.endRun, w.endRun, w.noise, w.flow, w.flow,
	}
	steps[w.rng.Intn(len(steps))]()
}

func (w *story) startRun() {
	f := &narad.RunStarted{}
	if w.state.ActiveRootRunID() != "" {
		f.ParentRunID = w.pick(w.runs)
	}
	if f.ParentRunID != "" && w.chance(50) {
		f.ParentToolCallID = w.pick(w.tools)
	}
	if w.chance(30) {
		f.SetOptional("agentName", narad.Quote("réviseur"))
	}
	w.begin(f)
}

func (w *story) begin(f *narad.RunStarted) bool {
	id := w.id("r")
	if !w.tell(f, id) {
		return false
	}
	w.runs = append(w.runs, id)
	return true
}

// startGate starts a gate run, which mostly asks at once (R10).
func (w *story) startGate() {
	f := &narad.RunStarted{ParentRunID: w.pick(w.runs)}
	if w.chance(80) {
		f.ParentToolCallID = w.pick(w.tools)
	}
	f.SetOptional("gate", narad.Raw("true"))
	if w.begin(f) && w.chance(80) {
		w.askIn(w.runs[len(w.runs)-1])
	}
}

func (w *story) startTool() {
	f := &narad.ToolCallStarted{ToolCallID: w.id("t"), ToolName: "search", Executor: narad.ExecutorBackend, Args: narad.Raw(`{"q":1e400}`)}
	if w.chance(30) {
		f.SetOptional("title", narad.Quote("Read <a> & \"b\""))
	}
	if w.chance(30) {
		f.ParentToolCallID = w.pick(w.tools)
	}
	if w.tell(f, w.pick(w.runs)) {
		w.tools = append(w.tools, f.ToolCallID)
	}
}

func (w *story) finishTool() {
	f := &narad.ToolCallFinished{
		ToolCallID: w.pick(w.tools), Response: narad.Raw("null"),
		Outcome: []narad.Outcome{narad.OutcomeSuccess, narad.OutcomeError, narad.OutcomeCancelled}[w.rng.Intn(3)],
	}
	if f.Outcome != narad.OutcomeSuccess {
		f.Code = "denied"
	}
	for _, run := range w.runs {
		if w.tell(f, run) {
			return
		}
	}
}

func (w *story) ask() { w.askIn(w.pick(w.runs)) }

func (w *story) askIn(run string) {
	f := &narad.InterruptRequested{InterruptID: w.id("i"), WaitID: w.id("w"), Kind: "approval", Actions: []string{"approve", "deny"}}
	if w.chance(50) {
		f.Title = "May I?"
	}
	if !w.tell(f, run) {
		return
	}
	w.asked = append(w.asked, f.InterruptID)
	w.waits[f.InterruptID], w.waits[run] = f.WaitID, f.WaitID
	w.tell(&narad.RunPaused{WaitID: f.WaitID, InterruptID: f.InterruptID, Reason: "interrupt", ResumeMode: narad.ResumeCommand}, run)
}

func (w *story) resolve() {
	id := w.pick(w.asked)
	f := &narad.InterruptResolved{InterruptID: id, WaitID: w.waits[id], Decision: w.pick([]string{"approve", "deny", "expired"})}
	i, _ := w.state.Interrupt(id)
	if i.RunID == "" && w.workflow != "" {
		f.Scope, f.WorkflowID = narad.ScopeWorkflow, w.workflow
	}
	w.tell(f, i.RunID)
}

func (w *story) pause() {
	run := w.pick(w.runs)
	wait := w.id("w")
	if w.tell(&narad.RunPaused{WaitID: wait, Reason: "capacity", ResumeMode: narad.ResumeAutomatic}, run) {
		w.waits[run] = wait
	}
}

func (w *story) resume() {
	run := w.pick(w.runs)
	w.tell(&narad.RunResumed{WaitID: w.waits[run] + ""}, run)
}

func (w *story) stop() {
	if w.chance(30) {
		w.tell(&narad.RunStopRequested{TargetRunID: w.pick(w.runs)}, w.pick(w.runs))
	}
}

func (w *story) endRun() {
	run := w.pick(w.runs)
	switch w.rng.Intn(3) {
	case 0:
		w.tell(&narad.RunError{Code: "model_failed"}, run)
	case 1:
		w.tell(&narad.RunCancelled{}, run)
	default:
		w.tell(&narad.RunFinished{}, run)
	}
}

// noise tells what no graph shows.
func (w *story) noise() {
	switch w.rng.Intn(3) {
	case 0:
		w.tell(&narad.ProgressRecorded{ProgressID: "p", Category: "phase", Label: "Reading", Status: narad.ProgressActive, Privacy: narad.PrivacyPublic}, w.pick(w.runs))
	case 1:
		w.tell(&narad.MessageUserRecorded{MessageID: w.id("m"), MessageScope: narad.ScopeSession, Content: "hello"}, "")
	default:
		f := &narad.Custom{Kind: narad.TypeRunCustom, Name: "mahati.round", Value: narad.Raw("{}")}
		w.tell(f, w.pick(w.runs))
	}
}

// flow moves a workflow on.
func (w *story) flow() {
	in := func(fact narad.Authority) bool {
		fact.Envelope().WorkflowID = w.workflow
		return w.workflow != "" && w.tell(fact, "")
	}
	switch w.rng.Intn(8) {
	case 0:
		if !w.chance(30) {
			return
		}
		old := w.workflow
		w.workflow = w.id("f")
		f := &narad.WorkflowStarted{}
		if w.chance(50) {
			f.NodeID = w.pick(w.nodes)
		}
		if !in(f) {
			w.workflow = old
		}
	case 1:
		in(&narad.WorkflowStep{Kind: narad.TypeWorkflowStepStarted, NodeID: w.pick(w.nodes), StepAttempt: int64(w.rng.Intn(3))})
	case 2:
		in(&narad.WorkflowStep{Kind: narad.TypeWorkflowStepFinished, NodeID: w.pick(w.nodes)})
	case 3:
		in(&narad.WorkflowStep{Kind: narad.TypeWorkflowStepFailed, NodeID: w.pick(w.nodes)})
	case 4:
		in(&narad.WorkflowEdgeTaken{From: w.pick(w.nodes), To: w.pick(w.nodes)})
	case 5:
		id, wait := w.id("i"), w.id("w")
		f := &narad.InterruptRequested{InterruptID: id, WaitID: wait, Kind: "review", Actions: []string{"approve", "deny"}, Scope: narad.ScopeWorkflow}
		if in(f) {
			w.asked = append(w.asked, id)
			w.waits[id], w.waits[w.workflow] = wait, wait
			in(&narad.WorkflowPaused{WaitID: wait, InterruptID: id})
		}
	case 6:
		in(&narad.WorkflowResumed{WaitID: w.waits[w.workflow], NodeID: w.pick(append(w.nodes, ""))})
	default:
		switch w.rng.Intn(5) {
		case 0:
			in(&narad.WorkflowStopRequested{})
		case 1:
			in(&narad.WorkflowEnded{Kind: narad.TypeWorkflowFinished})
		case 2:
			in(&narad.WorkflowEnded{Kind: narad.TypeWorkflowError, Code: "failed"})
		}
	}
}

// drawTrace draws the facts of a trace of sessiontest.
func drawTrace(t *rapid.T) []narad.Authority {
	rng := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
	state := session.New(session.Options{Remember: session.RememberAll})
	var history []narad.Authority
	for _, line := range sessiontest.Trace(rng, rapid.IntRange(1, 200).Draw(t, "lines")) {
		rec, err := narad.DecodeStrict(line)
		if err != nil {
			t.Fatalf("%v\n%s", err, line)
		}
		r := state.Admit(rec)
		if fact, is := rec.(narad.Authority); is && r.Kind == session.Applied {
			history = append(history, fact)
		}
	}
	return history
}

// drawFacts draws the facts of one session, of either kind.
func drawFacts(t *rapid.T) []narad.Authority {
	if rapid.Bool().Draw(t, "trace") {
		return drawTrace(t)
	}
	return drawStory(t)
}
