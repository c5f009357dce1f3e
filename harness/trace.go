package harness

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// Tracer makes a Narad trace of a run log: facts that a strict reader takes, and that say
// what the log says. A log has no times, so every fact has the one that the tracer was
// given; it does not say which run a permission paused, so each approval is asked in a gate
// run of its own; and what is open when its run ends is closed there, with the code
// not_told. Checkpoints, redacted payloads and unknown types become nothing. It belongs to
// one goroutine.
type Tracer struct {
	state *session.State
	at    string
	root  string
	// skipped counts the records that became nothing.
	skipped int
	said    map[string]string // what user messages said so far
	errors  map[string]Failure
	used    map[string]*narad.Usage
	over    bool
	out     []narad.Authority
}

// NewTracer returns a tracer whose facts are of a session, and of one time: a timestamp as
// Narad has them.
func NewTracer(sessionID, timestamp string) *Tracer {
	return &Tracer{
		state: session.New(session.Options{SessionID: sessionID}), at: timestamp,
		said: map[string]string{}, errors: map[string]Failure{}, used: map[string]*narad.Usage{},
	}
}

// Skipped returns how many records became nothing.
func (t *Tracer) Skipped() int { return t.skipped }

// codeNotTold is the code of what the log leaves open.
const codeNotTold = "not_told"

// told is all that payloads say which Narad has a place for.
type told struct {
	In
	Status      string    `json:"status"`
	Reason      string    `json:"reason"`
	ParentRunID string    `json:"parent_run_id"`
	MessageID   string    `json:"message_id"`
	ReasoningID string    `json:"reasoning_id"`
	Role        string    `json:"role"`
	Text        string    `json:"text"`
	CallID      string    `json:"call_id"`
	Name        string    `json:"name"`
	Summary     string    `json:"summary"`
	Kind        string    `json:"kind"`
	Args        narad.Raw `json:"args"`
	Response    narad.Raw `json:"response"`
	Code        string    `json:"code"`
	Message     string    `json:"message"`
	ApprovalID  string    `json:"approval_id"`
	Prompt      string    `json:"prompt"`
	Scope       string    `json:"scope"`
	Actions     []string  `json:"actions"`
	Input       narad.Raw `json:"input"`
	Decision    string    `json:"decision"`
	ArtifactID  string    `json:"artifact_id"`
	MediaType   string    `json:"media_type"`
	URI         string    `json:"uri"`
	InputTokens *int64    `json:"input_tokens"`
	Output      *int64    `json:"output_tokens"`
}

// traced are the types that become facts.
var traced = []Type{
	RunStarted, RunCompleted, RunCanceled, SubrunStarted, SubrunCompleted, MessageStarted, MessageDelta, MessageCompleted,
	ReasoningStarted, ReasoningDelta, ReasoningCompleted, ToolStarted, ToolCompleted, ApprovalRequested, ApprovalResolved,
	UIBlock, PlanUpdated, ArtifactPublished, ErrorReported, UsageReported,
}

// Add takes the next record of the log and returns the facts that it becomes.
func (t *Tracer) Add(e Event) ([]narad.Authority, error) {
	t.out = nil
	if e.Redacted() || t.over || !slices.Contains(traced, e.Type) {
		t.skipped++
		return nil, nil
	}
	p := told{}
	if e.Payload != nil {
		if err := json.Unmarshal(e.Payload, &p, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
			return nil, fmt.Errorf("record %d: the payload of %s: %w", e.Sequence, e.Type, err)
		}
	}
	if err := t.tell(e, p); err != nil {
		return nil, fmt.Errorf("record %d, %s: %w", e.Sequence, e.Type, err)
	}
	return t.out, nil
}

// add gives a fact of a run its places, and judges it.
func (t *Tracer) add(runID string, f narad.Authority) error {
	e := f.Envelope()
	if runID != "" {
		e.RootRunID, e.RunID = t.root, runID
	}
	t.state.Number(f)
	e.EventID = strconv.FormatInt(e.SessionSequence, 10) + ".ofrunlog"
	e.Timestamp = t.at
	e.SessionID = t.state.SessionID()
	if _, err := narad.Encode(f); err != nil {
		return err
	}
	if r := t.state.Admit(f); r.Kind != session.Applied {
		return fmt.Errorf("%s: %s: %w", f.Type(), r.Code, ErrIllegal)
	}
	t.out = append(t.out, f)
	return nil
}

// all adds facts of one run until one is refused.
func (t *Tracer) all(runID string, list ...narad.Authority) error {
	for _, f := range list {
		if err := t.add(runID, f); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tracer) tell(e Event, p told) error {
	if t.root == "" {
		if err := t.begin(e); err != nil || e.Type == RunStarted || e.Type == RunCanceled {
			return err
		}
	}
	run := t.root
	if r, known := t.state.Run(p.SubrunID); known && !r.State.Ended() {
		run = p.SubrunID
	}
	switch e.Type {
	case SubrunStarted:
		return t.nested(p)
	case MessageStarted, MessageDelta, MessageCompleted:
		return t.message(run, e.Type, p)
	case ReasoningStarted, ReasoningDelta, ReasoningCompleted:
		return t.reasoning(run, e.Type, p)
	case ToolStarted:
		return t.call(run, p)
	case ToolCompleted:
		return t.returned(run, p)
	case ApprovalRequested:
		return t.ask(run, p)
	case ApprovalResolved:
		return t.decide(p)
	case UIBlock:
		return t.add(run, facts.Run(t.root, run, "harness.ui.block", e.Payload))
	case PlanUpdated:
		return t.add(run, facts.Run(t.root, run, "harness.plan.updated", e.Payload))
	case ArtifactPublished:
		return t.artifact(run, p)
	case ErrorReported:
		return t.failed(run, p)
	case UsageReported:
		t.used[run] = &narad.Usage{PromptTokens: p.InputTokens, CompletionTokens: p.Output}
	case SubrunCompleted:
		if run != t.root {
			return t.end(run, p)
		}
	case RunCompleted:
		t.over = true
		return t.end(t.root, p)
	case RunCanceled:
		return t.cancel(e, p)
	}
	return nil
}

// begin starts the run, or says that it was withdrawn before it started.
func (t *Tracer) begin(e Event) error {
	if e.Type == RunCanceled {
		t.over = true
		return t.add("", facts.Session(facts.InputWithdrawn, facts.Withdrawn{RunID: e.RunID}))
	}
	t.root = e.RunID
	return t.add(t.root, &narad.RunStarted{})
}

func (t *Tracer) nested(p told) error {
	parent := cmp.Or(p.ParentRunID, t.root)
	if r, known := t.state.Run(parent); !known || r.State.Ended() {
		parent = t.root
	}
	return t.add(p.SubrunID, &narad.RunStarted{ParentRunID: parent, ParentToolCallID: t.openCall(parent, p.CallID)})
}

// openCall is a call if it is open in a run, else "".
func (t *Tracer) openCall(run, call string) string {
	if c, known := t.state.Tool(call); known && c.Open && c.RunID == run {
		return call
	}
	return ""
}

// message tells a streamed message, or gathers what a user said.
func (t *Tracer) message(run string, kind Type, p told) error {
	_, gathers := t.said[p.MessageID]
	open := slices.Contains(t.state.OpenMessages(run), p.MessageID)
	scope := narad.ScopeSession
	if run != t.root {
		scope = narad.ScopeRun
	}
	if !open && (gathers || p.Role == string(narad.RoleUser)) {
		t.said[p.MessageID] += p.Text
		if kind != MessageCompleted {
			return nil
		}
		content := t.said[p.MessageID]
		delete(t.said, p.MessageID)
		return t.add(run, &narad.MessageUserRecorded{MessageID: p.MessageID, MessageScope: scope, Content: content})
	}
	if !open {
		role := narad.RoleAssistant
		if p.Role == string(narad.RoleSystem) {
			role = narad.RoleSystem
		}
		if err := t.add(run, &narad.MessageTextStarted{MessageID: p.MessageID, Role: role, MessageScope: scope}); err != nil {
			return err
		}
	}
	if p.Text != "" {
		if err := t.add(run, &narad.MessageTextDelta{MessageID: p.MessageID, Delta: p.Text}); err != nil {
			return err
		}
	}
	if kind != MessageCompleted {
		return nil
	}
	return t.add(run, &narad.MessageTextCompleted{MessageID: p.MessageID})
}

func (t *Tracer) reasoning(run string, kind Type, p told) error {
	if !slices.Contains(t.state.OpenReasoning(run), p.ReasoningID) {
		if err := t.add(run, &narad.ReasoningStarted{ReasoningID: p.ReasoningID}); err != nil {
			return err
		}
	}
	if p.Text != "" {
		if err := t.add(run, &narad.ReasoningDelta{ReasoningID: p.ReasoningID, Delta: p.Text}); err != nil {
			return err
		}
	}
	if kind != ReasoningCompleted {
		return nil
	}
	return t.add(run, &narad.ReasoningCompleted{ReasoningID: p.ReasoningID})
}

func (t *Tracer) call(run string, p told) error {
	f := &narad.ToolCallStarted{
		ToolCallID: p.CallID, ToolName: cmp.Or(p.Name, "unknown"), Executor: narad.ExecutorBackend, Args: orNull(p.Args),
	}
	facts.SetToolStart(&f.Event, p.Kind, p.Summary)
	return t.add(run, f)
}

func orNull(r narad.Raw) narad.Raw {
	if r == nil {
		return narad.Raw("null")
	}
	return r
}

// returned ends a call, which some producers never begin.
func (t *Tracer) returned(run string, p told) error {
	c, known := t.state.Tool(p.CallID)
	if !known {
		if err := t.call(run, p); err != nil {
			return err
		}
		c.RunID = run
	}
	f := &narad.ToolCallFinished{ToolCallID: p.CallID, Outcome: narad.OutcomeSuccess, Response: orNull(p.Response), Code: p.Code, Message: p.Summary}
	switch p.Status {
	case "failed", "error":
		f.Outcome = narad.OutcomeError
	case wordCanceled, "cancelled", "denied":
		f.Outcome = narad.OutcomeCancelled
	}
	return t.add(c.RunID, f)
}

// gateOf names the gate run in which an approval is asked.
func gateOf(approval string) string { return "gate:" + approval }

func (t *Tracer) ask(run string, p told) error {
	if _, known := t.state.Interrupt(p.ApprovalID); known {
		return nil
	}
	gate := &narad.RunStarted{ParentRunID: run, ParentToolCallID: t.openCall(run, p.CallID)}
	facts.SetGate(&gate.Event)
	actions, input := p.Actions, p.Input
	if len(actions) == 0 {
		actions = []string{"approve", "deny"}
	}
	if input == nil || input.Field("members") != nil { // the members of a pack are not told one by one
		input, _ = facts.Value(map[string]string{"action": p.Scope})
	}
	wait := "wait:" + p.ApprovalID
	return t.all(gateOf(p.ApprovalID), gate, &narad.InterruptRequested{
		InterruptID: p.ApprovalID, WaitID: wait, Kind: cmp.Or(p.Kind, "approval"), Actions: actions,
		Title: p.Prompt, Message: p.Summary, Input: input,
	}, &narad.RunPaused{WaitID: wait, InterruptID: p.ApprovalID, Reason: "interrupt", ResumeMode: narad.ResumeCommand})
}

// decide closes an approval that waits.
func (t *Tracer) decide(p told) error {
	i, known := t.state.Interrupt(p.ApprovalID)
	if !known || !i.Open {
		return nil
	}
	word := p.Decision
	if word == "" {
		word = map[string]string{"approved": "approve", "denied": "deny"}[p.Status]
	}
	if !slices.Contains(i.Actions, word) {
		word = narad.DecisionExpired
	}
	return t.close(i, word, p.Reason)
}

// close decides an interrupt and ends its gate.
func (t *Tracer) close(i session.Interrupt, decision, reason string) error {
	end := &narad.RunFinished{}
	facts.SetGate(&end.Event)
	return t.all(i.RunID, &narad.InterruptResolved{
		InterruptID: i.InterruptID, WaitID: i.WaitID, Decision: decision, Reason: reason,
	}, &narad.RunResumed{WaitID: i.WaitID}, end)
}

func (t *Tracer) artifact(run string, p told) error {
	list := make([]narad.Authority, 2)
	for n, kind := range []narad.Type{narad.TypeArtifactAdded, narad.TypeArtifactReady} {
		f := &narad.Artifact{Kind: kind, ArtifactID: p.ArtifactID}
		facts.SetMaterial(&f.Event, facts.Material{Name: p.Name, MediaType: p.MediaType, ToolCallID: p.CallID})
		f.SetOptional("uri", narad.Quote(p.URI))
		list[n] = f
	}
	return t.all(run, list...)
}

// failed keeps a fault for the end of its run. One before it is told by itself.
func (t *Tracer) failed(run string, p told) error {
	before, known := t.errors[run]
	t.errors[run] = Failure{Code: p.Code, Message: p.Message}
	if !known {
		return nil
	}
	return t.add(run, facts.Run(t.root, run, "harness.error", before))
}

func (t *Tracer) end(run string, p told) error {
	if err := t.closeAll(run); err != nil {
		return err
	}
	var f narad.Authority
	switch why, faulty := t.errors[run]; {
	case p.Status == wordCanceled || p.Status == "cancelled":
		f = &narad.RunCancelled{Code: p.Reason, Usage: t.used[run]}
	case p.Status == "failed" || p.Status == "error":
		if !faulty {
			why.Code = p.Reason
		}
		f = &narad.RunError{Code: cmp.Or(why.Code, codeNotTold), Message: why.Message, Usage: t.used[run]}
	default:
		finished := &narad.RunFinished{Usage: t.used[run]}
		facts.SetStopReason(&finished.Event, p.Reason)
		f = finished
	}
	return t.add(run, f)
}

// cancel ends a run that was stopped. One whose usage the log tells first ended so by
// itself: from a stop on a log is silent.
func (t *Tracer) cancel(e Event, p told) error {
	t.over = true
	if t.used[t.root] == nil {
		stop := &narad.RunStopRequested{TargetRunID: t.root}
		facts.SetInputID(&stop.Event, e.CausationID)
		if err := t.add(t.root, stop); err != nil {
			return err
		}
	}
	if err := t.closeAll(t.root); err != nil {
		return err
	}
	return t.add(t.root, &narad.RunCancelled{Code: p.Reason, Usage: t.used[t.root]})
}

// closeAll closes what is open in a run and below it, leaves first.
func (t *Tracer) closeAll(run string) error {
	for _, below := range slices.Backward(t.state.OpenRuns()) {
		if below.RunID == run || !t.below(below, run) {
			continue
		}
		if i, asks := t.state.OpenInterrupt(below.RunID); asks {
			if err := t.close(i, narad.DecisionExpired, codeNotTold); err != nil {
				return err
			}
			continue
		}
		if err := t.closeOpen(below.RunID); err != nil {
			return err
		}
		if err := t.add(below.RunID, &narad.RunCancelled{Code: codeNotTold, Usage: t.used[below.RunID]}); err != nil {
			return err
		}
	}
	return t.closeOpen(run)
}

func (t *Tracer) below(run session.Run, above string) bool {
	for run.ParentRunID != "" && run.ParentRunID != above {
		run, _ = t.state.Run(run.ParentRunID)
	}
	return run.ParentRunID == above
}

func (t *Tracer) closeOpen(run string) error {
	var list []narad.Authority
	for _, c := range t.state.OpenTools(run) {
		list = append(list, &narad.ToolCallFinished{ToolCallID: c.ToolCallID, Outcome: narad.OutcomeCancelled, Response: narad.Raw("null"), Code: codeNotTold})
	}
	for _, id := range t.state.OpenReasoning(run) {
		list = append(list, &narad.ReasoningCompleted{ReasoningID: id})
	}
	for _, id := range t.state.OpenMessages(run) {
		list = append(list, &narad.MessageTextCompleted{MessageID: id})
	}
	return t.all(run, list...)
}
