package harness

import (
	"cmp"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// projection makes one record of one fact.
type projection struct {
	run   Run
	fact  narad.Authority
	in    In
	event *Event
	sign  func(uint64) Cursor
	// mentions are tools that the record tells of besides the one it is about.
	mentions []string
}

// The names of records that a later fact can name as a cause: they are made of ids that
// are unique in a run, with what the record says of them. Other records have the id of
// their fact.
func runID(run, what string) string             { return "run:" + run + ":" + what }
func messageID(message, what string) string     { return "message:" + message + ":" + what }
func reasoningID(reasoning, what string) string { return "reasoning:" + reasoning + ":" + what }
func toolID(call, what string) string           { return "tool:" + call + ":" + what }
func approvalID(approval, what string) string   { return "approval:" + approval + ":" + what }

const (
	wordStarted   = "started"
	wordCompleted = "completed"
	wordCanceled  = "canceled"
	wordRequested = "requested"
	wordResolved  = "resolved"
)

// fill makes the record. Each part of the switch names the record, says what it is about,
// what caused it, and what it says.
func (p *projection) fill() error {
	switch f := p.fact.(type) {
	case *narad.RunStarted:
		return p.start(f)
	case *narad.RunFinished:
		return p.end(f.Usage, "completed", "", facts.StopReason(&f.Event))
	case *narad.RunError:
		return p.end(f.Usage, "failed", f.Message, f.Code)
	case *narad.RunCancelled:
		return p.end(f.Usage, wordCanceled, "", f.Code)
	case *narad.MessageUserRecorded:
		return p.said(f)
	case *narad.MessageTextStarted:
		return p.message(messageID(f.MessageID, wordStarted), p.begun(), f.MessageID, string(f.Role), "")
	case *narad.MessageTextDelta:
		return p.message(f.EventID, messageID(f.MessageID, wordStarted), f.MessageID, "", f.Delta)
	case *narad.MessageTextCompleted:
		return p.message(messageID(f.MessageID, wordCompleted), messageID(f.MessageID, wordStarted), f.MessageID, "", "")
	case *narad.ReasoningStarted:
		return p.reasoning(reasoningID(f.ReasoningID, wordStarted), p.begun(), f.ReasoningID, "")
	case *narad.ReasoningDelta:
		return p.reasoning(f.EventID, reasoningID(f.ReasoningID, wordStarted), f.ReasoningID, f.Delta)
	case *narad.ReasoningCompleted:
		return p.reasoning(reasoningID(f.ReasoningID, wordCompleted), reasoningID(f.ReasoningID, wordStarted), f.ReasoningID, "")
	case *narad.ToolCallStarted:
		return p.toolStarted(f)
	case *narad.ToolCallFinished:
		return p.toolFinished(f)
	case *narad.InterruptRequested:
		return p.asked(f)
	case *narad.InterruptResolved:
		return p.decided(f)
	case *narad.ProgressRecorded:
		return p.progress(f)
	case *narad.StateSnapshot:
		return p.block("ui:"+string(f.Scope), string(f.Kind), stateData{Revision: f.Revision, State: f.State}, Private)
	case *narad.StateDelta:
		return p.block("ui:"+string(f.Scope), string(f.Kind), stateData{BaseRevision: &f.BaseRevision, Revision: f.Revision, Patch: f.Patch}, Private)
	case *narad.ViewOpened:
		return p.block(f.ViewID, string(f.Type()), viewData{Model: f.Model}, Private)
	case *narad.ViewUpdated:
		return p.block(f.ViewID, string(f.Type()), viewData{Operation: string(f.Operation), Model: f.Model, Patch: f.Patch}, Private)
	case *narad.ViewClosed:
		return p.block(f.ViewID, string(f.Type()), viewData{}, Private)
	case *narad.Artifact:
		return p.artifact(f)
	case *narad.Custom:
		return p.withdrawn(f)
	}
	return ErrCount
}

// named gives the record its name and its cause.
func (p *projection) named(id, cause string) { p.event.EventID, p.event.CausationID = id, cause }

// about says what the record belongs to. Records of a nested run that are about nothing
// narrower belong to it.
func (p *projection) about(id string) {
	p.event.CorrelationID = cmp.Or(id, p.in.SubrunID)
}

// begun names the start of the run that the record is of.
func (p *projection) begun() string { return runID(cmp.Or(p.in.SubrunID, p.run.ID), wordStarted) }

// told is what a client did that led to the fact, else another cause.
func (p *projection) told(otherwise string) string {
	e := p.fact.Envelope()
	return cmp.Or(facts.InputID(e), facts.Caused(e), otherwise)
}

// says gives the record its class and its payload. tool names the tool that the record is
// about, if it is about one.
func (p *projection) says(class Sensitivity, tool string, payload any) error {
	about := subject{tool: tool, kind: p.event.Type, agent: p.run.Agent}
	p.event.Sensitivity = p.run.Policy.classify(about, class)
	for _, about.tool = range p.mentions {
		p.event.Sensitivity = stricter(p.event.Sensitivity, p.run.Policy.classify(about, class))
	}
	data, err := json.Marshal(payload, json.Deterministic(true), jsontext.AllowInvalidUTF8(true),
		jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true))
	p.event.Payload = data
	return err
}

type lifecycle struct {
	In
	Lifecycle
	// ParentRunID and CallID say where a nested run stands.
	ParentRunID string `json:"parent_run_id,omitzero"`
	CallID      string `json:"call_id,omitzero"`
}

func (p *projection) start(f *narad.RunStarted) error {
	payload := lifecycle{In: p.in, Lifecycle: Lifecycle{Status: "running"}}
	if p.event.Type == RunStarted {
		p.named(runID(f.RunID, wordStarted), p.told(""))
		p.about(facts.InputID(&f.Event))
		return p.says(Public, "", payload)
	}
	payload.ParentRunID, payload.CallID = f.ParentRunID, f.ParentToolCallID
	cause := runID(f.ParentRunID, wordStarted)
	if f.ParentToolCallID != "" {
		cause = toolID(f.ParentToolCallID, wordStarted)
	}
	p.named(runID(f.RunID, wordStarted), cause)
	p.about(f.RunID)
	return p.says(Public, "", payload)
}

type failure struct {
	In
	Failure
}

type usage struct {
	In
	Usage
}

type checkpoint struct{ Checkpoint }

// end makes the records of a terminal. reason is the code or the reason of the fact, text
// what it says of a failure.
func (p *projection) end(used *narad.Usage, status, text, reason string) error {
	run := p.fact.Envelope().RunID
	if _, stopped := facts.StoppedBy(p.fact.Envelope()); stopped && p.in.SubrunID == "" {
		status = wordCanceled // whatever else the run came to
	}
	last := runID(run, wordCompleted)
	if status == wordCanceled && p.in.SubrunID == "" {
		last = runID(run, wordCanceled)
	}
	p.about("")
	switch p.event.Type {
	case ErrorReported:
		p.named(runID(run, "error"), p.begun())
		return p.says(Private, "", failure{p.in, Failure{Code: reason, Message: text}})
	case UsageReported:
		p.named(runID(run, "usage"), p.begun())
		return p.says(Public, "", usage{p.in, usageOf(used)})
	case Checkpointed:
		return p.checkpoint(run, last)
	}
	p.named(last, p.endCause(status == "failed"))
	return p.says(Public, "", lifecycle{In: p.in, Lifecycle: Lifecycle{Status: status, Reason: reason}})
}

// endCause is what led to the end of a run: who stopped it, its failure, or that it had
// begun.
func (p *projection) endCause(failed bool) string {
	e := p.fact.Envelope()
	if failed {
		return runID(e.RunID, "error")
	}
	if by, stopped := facts.StoppedBy(e); stopped {
		return cmp.Or(by.InputID, by.CommandID, p.begun())
	}
	return p.begun()
}

// usageOf is the run's own, without that of the runs below it (R36). A figure that is not
// known is 0: the format has no other word.
func usageOf(u *narad.Usage) Usage {
	var out Usage
	if u.PromptTokens != nil {
		out.InputTokens = *u.PromptTokens
	}
	if u.CompletionTokens != nil {
		out.OutputTokens = *u.CompletionTokens
	}
	return out
}

// checkpoint names the position before itself.
func (p *projection) checkpoint(run, cause string) error {
	p.named(runID(run, "checkpoint"), cause)
	before := p.event.Sequence - 1
	at := Cursor{Version: Version, RunID: p.run.ID, Sequence: before}
	if p.sign != nil {
		at = p.sign(before)
	}
	return p.says(Public, "", checkpoint{Checkpoint{at}})
}

// withdrawn makes the log of a run that did not start (R16).
func (p *projection) withdrawn(*narad.Custom) error {
	if p.event.Type == Checkpointed {
		return p.checkpoint(p.run.ID, runID(p.run.ID, wordCanceled))
	}
	p.named(runID(p.run.ID, wordCanceled), p.told(""))
	return p.says(Public, "", lifecycle{Lifecycle: Lifecycle{Status: wordCanceled, Reason: "withdrawn"}})
}

type message struct {
	In
	Message
}

// said records a whole message that a person, or the run above, gave.
func (p *projection) said(f *narad.MessageUserRecorded) error {
	p.named(messageID(f.MessageID, wordCompleted), p.told(p.begun()))
	p.about(facts.InputID(&f.Event))
	class := Private
	if facts.Secret(&f.Event) {
		class = Secret
	}
	return p.says(class, "", message{p.in, Message{MessageID: f.MessageID, Role: string(narad.RoleUser), Text: f.Content}})
}

func (p *projection) message(id, cause, about, role, text string) error {
	p.named(id, cause)
	p.about("")
	return p.says(Private, "", message{p.in, Message{MessageID: about, Role: role, Text: text}})
}

// thought is the payload of the additive reasoning types (R36).
type thought struct {
	In
	ReasoningID string `json:"reasoning_id"`
	Text        string `json:"text,omitzero"`
}

func (p *projection) reasoning(id, cause, about, text string) error {
	p.named(id, cause)
	p.about("")
	return p.says(Private, "", thought{p.in, about, text})
}

// tool is the payload of a tool's records, with what else a headless consumer wants.
type tool struct {
	In
	Tool
	Kind       string    `json:"kind,omitzero"`
	Executor   string    `json:"executor,omitzero"`
	Args       narad.Raw `json:"args,omitzero"`
	Code       string    `json:"code,omitzero"`
	DurationMs narad.Raw `json:"duration_ms,omitzero"`
	Response   narad.Raw `json:"response,omitzero"`
}

func (p *projection) toolStarted(f *narad.ToolCallStarted) error {
	cause := p.begun()
	if f.ParentToolCallID != "" {
		cause = toolID(f.ParentToolCallID, wordStarted)
	}
	p.named(toolID(f.ToolCallID, wordStarted), cause)
	p.about(f.ToolCallID)
	return p.says(Private, f.ToolName, tool{
		In:   p.in,
		Tool: Tool{CallID: f.ToolCallID, Name: f.ToolName, Status: "running", Summary: facts.Title(&f.Event)},
		Kind: facts.ToolKind(&f.Event), Executor: string(f.Executor), Args: f.Args,
	})
}

// toolWords are the statuses of calls that have ended.
var toolWords = map[narad.Outcome]string{
	narad.OutcomeSuccess: wordCompleted, narad.OutcomeError: "failed", narad.OutcomeCancelled: wordCanceled,
}

func (p *projection) toolFinished(f *narad.ToolCallFinished) error {
	p.named(toolID(f.ToolCallID, wordCompleted), toolID(f.ToolCallID, wordStarted))
	p.about(f.ToolCallID)
	name := facts.ToolName(&f.Event)
	return p.says(Private, name, tool{
		In:   p.in,
		Tool: Tool{CallID: f.ToolCallID, Name: name, Status: toolWords[f.Outcome], Summary: f.Message},
		Code: f.Code, DurationMs: facts.Duration(&f.Event), Response: f.Response,
	})
}

type plan struct {
	In
	Steps narad.Raw `json:"steps"`
}

// activity is what a ui.block tells of an activity.
type activity struct {
	Category string `json:"category"`
	Label    string `json:"label"`
	Detail   string `json:"detail,omitzero"`
	Status   string `json:"status"`
}

var privacyClasses = map[narad.Privacy]Sensitivity{
	narad.PrivacyPublic: Public, narad.PrivacyInternal: Private, narad.PrivacySensitive: Secret,
}

func (p *projection) progress(f *narad.ProgressRecorded) error {
	class := privacyClasses[f.Privacy]
	if p.event.Type != PlanUpdated {
		return p.block(f.ProgressID, "progress", activity{f.Category, f.Label, f.Detail, string(f.Status)}, class)
	}
	p.named(f.EventID, p.begun())
	p.about("")
	return p.says(class, "", plan{p.in, facts.Plan(&f.Event)})
}

// block is the payload of a ui.block, with its data as it is.
type block struct {
	In
	BlockID string `json:"block_id"`
	Kind    string `json:"kind"`
	Data    any    `json:"data,omitzero"`
}

type stateData struct {
	BaseRevision *int64    `json:"base_revision,omitzero"`
	Revision     int64     `json:"revision"`
	State        narad.Raw `json:"state,omitzero"`
	Patch        narad.Raw `json:"patch,omitzero"`
}

type viewData struct {
	Operation string    `json:"operation,omitzero"`
	Model     narad.Raw `json:"model,omitzero"`
	Patch     narad.Raw `json:"patch,omitzero"`
}

func (p *projection) block(id, kind string, data any, class Sensitivity) error {
	p.named(p.fact.Envelope().EventID, p.begun())
	p.about("")
	return p.says(class, "", block{p.in, id, kind, data})
}

type artifact struct {
	In
	Artifact
	CallID string    `json:"call_id,omitzero"`
	Bytes  narad.Raw `json:"bytes,omitzero"`
	Digest string    `json:"digest,omitzero"`
}

// artifact refers to bytes that the same host serves (R36).
func (p *projection) artifact(f *narad.Artifact) error {
	m := facts.MaterialOf(&f.Event)
	cause := p.begun()
	if m.ToolCallID != "" {
		cause = toolID(m.ToolCallID, wordStarted)
	}
	p.named("artifact:"+f.ArtifactID+":published", cause)
	p.about(m.ToolCallID)
	return p.says(Private, facts.ToolName(&f.Event), artifact{
		In: p.in, CallID: m.ToolCallID, Digest: m.Digest, Bytes: f.Optional("bytes"),
		Artifact: Artifact{
			ArtifactID: f.ArtifactID, MediaType: m.MediaType, Name: m.Name,
			URI: "/api/narad/v1/sessions/" + url.PathEscape(f.SessionID) + "/artifacts/" + url.PathEscape(f.ArtifactID),
		},
	})
}
