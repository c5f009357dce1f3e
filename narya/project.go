package narya

import (
	"slices"
	"strings"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
)

// Mapping is a version of the projection. A session records the one that applies to it as
// it is created, for ever (R1).
type Mapping int

// The versions. The first yields nothing: sessions that began before the contract was
// served have it.
const (
	NoMapping Mapping = 0
	Mapping1  Mapping = 1
)

// MappingOf returns the version that applies to a fact of a session that has recorded one,
// or nothing yet: its first fact tells. The host's own stream has the newest.
func MappingOf(fact narad.Authority, recorded int) Mapping {
	if fact.Envelope().SessionID == hostSession {
		return Mapping1
	}
	if created, ok := facts.Read[facts.Created](fact, facts.SessionCreated); ok {
		return Mapping(created.Mappings.Narya)
	}
	return Mapping(recorded)
}

// Project returns the events that a fact causes, in the order in which they get their
// numbers (R41). They have none yet.
func (m Mapping) Project(fact narad.Authority) []Event {
	if !m.projects(fact) {
		return nil
	}
	e := fact.Envelope()
	p := &projection{event: e}
	if e.SessionID == hostSession {
		p.ofHost(fact)
		return p.events
	}
	was, now, changes := facts.Status(e)
	p.changeStatus(was, now, changes && now == facts.Running)
	p.of(fact)
	p.changeStatus(was, now, changes && now != facts.Running)
	return p.events
}

// Count returns how many events a fact causes.
func (m Mapping) Count(fact narad.Authority) int { return len(m.Project(fact)) }

// projects reports whether a fact has a place on the stream.
func (m Mapping) projects(fact narad.Authority) bool {
	return m == Mapping1 && !strings.HasSuffix(fact.Envelope().SessionID, traceSuffix)
}

// The sessions that are none of Narya's (R6, R8).
const (
	hostSession = "~host"
	traceSuffix = "~trace"
)

// projection collects the events of one fact.
type projection struct {
	event  *narad.Event
	events []Event
}

// ofHost projects a fact that belongs to no session.
func (p *projection) ofHost(fact narad.Authority) {
	if published, ok := facts.Read[facts.Published](fact, facts.Extension); ok {
		p.extension(published)
	}
}

func (p *projection) of(fact narad.Authority) {
	switch f := fact.(type) {
	case *narad.RunStarted:
		p.runStarted(f)
	case *narad.RunFinished:
		p.runEnded(TurnFinished{StopReason: stopReason(facts.StopReason(p.event))}, LaneCompleted)
	case *narad.RunError:
		p.runEnded(TurnFinished{StopReason: StopError, Error: turnError(f)}, LaneFailed)
	case *narad.RunCancelled:
		p.runEnded(TurnFinished{StopReason: StopInterrupted}, LaneCancelled)
	case *narad.MessageUserRecorded:
		if !facts.WasQueued(p.event) { // its entry was told as it began to wait
			p.entry(MessageEntryID(p.event.SessionID, f.MessageID), EntryUserMessage, f.RunID)
		}
	case *narad.MessageTextDelta:
		p.delta(f.Delta, "")
	case *narad.ReasoningDelta:
		p.delta(f.Delta, ChannelReasoning)
	case *narad.MessageTextCompleted:
		p.messageCompleted(f)
	case *narad.ToolCallStarted:
		p.toolStarted(f)
	case *narad.ToolCallFinished:
		p.toolFinished(f)
	case *narad.InterruptRequested:
		p.asked(f)
	case *narad.InterruptResolved:
		p.resolved(f)
	case *narad.WorkflowStarted, *narad.WorkflowStep, *narad.WorkflowEnded:
		p.workflow(fact)
	case *narad.Custom:
		p.custom(f)
	}
}

// tell adds an event of the session.
func (p *projection) tell(payload Payload) {
	p.events = append(p.events, Event{
		SessionID: UUID(KindSession, p.event.SessionID), Timestamp: p.event.Timestamp, Payload: payload,
	})
}

// tellIn adds an event of the lane to which the fact belongs.
func (p *projection) tellIn(payload Payload) {
	p.tell(payload)
	p.events[len(p.events)-1].LaneID = p.lane()
}

// lane returns the lane of the fact: that of its run, and for a gate that of the run whose
// call it asks for (R10, R41).
func (p *projection) lane() string {
	run := p.event.RunID
	if of := p.gateOf(); of != "" {
		run = of
	}
	if run == "" || run == p.event.RootRunID && p.event.WorkflowID == "" {
		return MainLaneID(p.event.SessionID)
	}
	return LaneID(run)
}

// main reports whether the fact is of a run on the main lane.
func (p *projection) main() bool { return p.lane() == MainLaneID(p.event.SessionID) }

// gateOf returns the run for whose call a gate run asks, "" for a fact that asks in none.
func (p *projection) gateOf() string {
	run, _ := p.event.Optional("gateOf").IsString()
	return run
}

func (p *projection) turn() string { return UUID(KindRun, p.event.RunID) }

// entry tells of an entry of the transcript; runID is "" for one of no turn.
func (p *projection) entry(id string, kind EntryKind, runID string) {
	entry := &EntryAppended{EntryID: id, Kind: kind}
	if runID != "" {
		entry.TurnID = UUID(KindRun, runID)
	}
	p.tellIn(entry)
}

// changeStatus tells that the session's status changed, if it did.
func (p *projection) changeStatus(was, now string, changes bool) {
	if changes && slices.Contains(statuses, Status(was)) && slices.Contains(statuses, Status(now)) {
		p.tell(&SessionStatusChanged{Status: Status(now), PreviousStatus: Status(was)})
	}
}

func (p *projection) runStarted(f *narad.RunStarted) {
	if facts.Gate(p.event) { // it is no lane and no turn
		return
	}
	if !p.main() {
		p.tellIn(&LaneStarted{Kind: laneKind(f), Agent: facts.AgentName(p.event)})
	}
	p.tellIn(&TurnStarted{TurnID: p.turn()})
}

// laneKind is the kind of a run's lane: what a tool call began is a subagent, what a
// workflow began is the workflow's.
func laneKind(f *narad.RunStarted) LaneKind {
	if f.WorkflowID != "" && f.ParentToolCallID == "" {
		return LaneWorkflow
	}
	return LaneSubagent
}

func (p *projection) runEnded(end TurnFinished, status LaneStatus) {
	if facts.Gate(p.event) { // it is no lane and no turn
		return
	}
	end.TurnID = p.turn()
	end.figures(facts.TurnOf(p.event))
	p.tellIn(&end)
	if !p.main() {
		p.tellIn(&LaneFinished{Status: status})
	}
}

// figures adds what is known of what the turn took (R42).
func (t *TurnFinished) figures(is facts.Turn) {
	t.CostUSD, t.ElapsedMs, t.ContextWindow = from(0, is.CostUSD), from(0, is.ElapsedMs), from(1, is.ContextWindow)
	if r := is.LastRound; r != nil && r.Input >= 0 && r.Output >= 0 {
		t.Usage = &TokenUsage{
			InputTokens: r.Input, OutputTokens: r.Output, CacheReadTokens: from(0, r.CacheRead),
			CacheWriteTokens: from(0, r.CacheWrite), CostUSD: from(0, r.CostUSD),
		}
	}
}

// from returns a figure that is at least so much, and nil for one that cannot be.
func from[T int64 | float64](least T, figure *T) *T {
	if figure == nil || *figure < least {
		return nil
	}
	return figure
}

// stopReason is why a turn ended that was not broken off.
func stopReason(told string) StopReason {
	switch s := StopReason(told); s {
	case StopMaxTokens, StopContentFilter, StopSplit, StopBudget:
		return s
	}
	return StopCompleted
}

// turnErrors are the codes of runs' errors that have one of their own in the catalogue.
var turnErrors = map[string]Code{
	"host_restarted":    CodeHostRestarted,
	"max_turn_requests": CodeTurnLimit,
	"no_usable_model":   CodeNoModel,
}

// turnError is what killed a turn, in the envelope of every refusal.
func turnError(f *narad.RunError) *Error {
	code := turnErrors[f.Code]
	if code == "" {
		code = CodeAgentFailed
	}
	return Refuse(code, "%s", f.Message)
}

func (p *projection) delta(text string, channel Channel) {
	if p.event.RunID != "" {
		p.tellIn(&MessageDelta{TurnID: p.turn(), Delta: text, Channel: channel})
	}
}

func (p *projection) messageCompleted(f *narad.MessageTextCompleted) {
	id := MessageEntryID(p.event.SessionID, f.MessageID)
	p.entry(id, EntryAssistantMessage, f.RunID)
	if f.RunID != "" {
		p.tellIn(&MessageEnd{TurnID: p.turn(), EntryID: id})
	}
}
