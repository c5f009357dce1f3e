package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

func (h *handle) OpenGate(ctx context.Context, p agent.Permission) (string, error) {
	h.mu.Lock()
	tool, known := h.tools[p.ToolCallID]
	h.mu.Unlock()
	var actions []string
	for _, o := range p.Options {
		actions = append(actions, o.Action)
	}
	call := asToldNow(tool.Tool, p)
	var ruling *decide.Ruling
	quorum := h.o.host.quorum()
	if known && !tool.past { // else people decide
		ruling, quorum = h.o.host.rule(call, actions)
	}
	id := h.o.host.opt.NewID()
	_, err := h.do(ctx, &task{command: decide.Permit{
		RunID: h.info.RunID, ToolCallID: p.ToolCallID, GateRunID: h.o.host.opt.NewID(), InterruptID: id,
		WaitID: h.o.host.opt.NewID(), Actions: actions, Title: p.Title, Message: p.Message,
		Input: permissionInput(p, call, quorum), Ruling: ruling,
	}})
	return id, err
}

func (h *handle) Permit(ctx context.Context, p agent.Permission) (agent.Answer, error) {
	id, err := h.OpenGate(ctx, p)
	if err != nil {
		return agent.Answer{}, err
	}
	return h.Await(ctx, id)
}

// asToldNow is a call as it stands when a permission is asked for it: some agents tell only
// then what it is about.
func asToldNow(t agent.Tool, p agent.Permission) agent.Tool {
	if p.Kind != "" {
		t.Kind = p.Kind
	}
	if len(p.Paths) > 0 {
		t.Paths = p.Paths
	}
	return t
}

// permissionInput is what a client needs to show of a permission (R11).
func permissionInput(p agent.Permission, t agent.Tool, quorum int) narad.Raw {
	type option struct {
		ID     string `json:"id"`
		Name   string `json:"name,omitzero"`
		Action string `json:"action"`
	}
	input := struct {
		ToolCallID string   `json:"toolCallId"`
		ToolName   string   `json:"toolName,omitzero"`
		Action     string   `json:"action,omitzero"`
		Resource   string   `json:"resource,omitzero"`
		Detail     string   `json:"detail,omitzero"`
		Options    []option `json:"options,omitempty"`
		Quorum     int      `json:"quorum,omitzero"`
	}{ToolCallID: p.ToolCallID, ToolName: t.Name, Action: t.Kind, Resource: p.Resource, Detail: p.Detail}
	if quorum > 1 {
		input.Quorum = quorum
	}
	for _, o := range p.Options {
		input.Options = append(input.Options, option{o.ID, o.Name, o.Action})
	}
	value, err := facts.Value(input)
	if err != nil {
		return narad.Raw("{}") // an option's text that is no UTF-8
	}
	return value
}

func (h *handle) Ask(ctx context.Context, a agent.Ask) (agent.Answer, error) {
	id := h.o.host.opt.NewID()
	command := decide.Ask{
		RunID: h.info.RunID, InterruptID: id, WaitID: h.o.host.opt.NewID(), ToolCallID: h.o.host.opt.NewID(),
		AgentID: a.AgentID, Kind: a.Kind, Title: a.Title, Message: a.Message, Actions: a.Actions, Input: a.Input,
		ExpiresIn: a.ExpiresIn,
	}
	for _, m := range a.Members {
		command.Members = append(command.Members, h.member(m, a.Actions))
	}
	for _, q := range a.Questions {
		question := decide.Question{Text: q.Text, Options: q.Options, Multiple: q.Multiple, Free: q.Free}
		if q.Recommended >= 0 && q.Recommended < len(q.Options) {
			question.Recommended = &q.Recommended
		}
		command.Questions = append(command.Questions, question)
	}
	wait := newWaiter(ctx)
	if _, err := h.do(ctx, &task{command: command, interrupt: id, wait: wait}); err != nil {
		return agent.Answer{}, err
	}
	return h.o.awaitAnswer(ctx, wait)
}

// member is one of a pack, as the policy has it.
func (h *handle) member(m agent.Member, actions []string) decide.Member {
	out := decide.Member{
		RequestID: m.RequestID, ToolCallID: m.ToolCallID, ToolName: m.ToolName, ToolType: m.ToolType,
		Action: m.Action, Resource: m.Resource, Detail: m.Detail,
	}
	h.mu.Lock()
	tool, known := h.tools[m.ToolCallID]
	h.mu.Unlock()
	switch {
	case !known:
		tool.Tool = agent.Tool{Name: m.ToolName, Kind: m.ToolType}
		if m.Resource != "" {
			tool.Paths = []string{m.Resource}
		}
	case tool.past:
		out.Quorum = h.o.host.quorum()
		return out
	}
	out.Ruling, out.Quorum = h.o.host.rule(tool.Tool, actions)
	if out.Quorum == 1 {
		out.Quorum = 0
	}
	return out
}

// awaitAnswer waits for a decision, a stop or the end of the owner. Whoever waits for a person
// leaves its place among the running agents to others meanwhile: people may take days.
func (o *owner) awaitAnswer(ctx context.Context, wait waiter) (agent.Answer, error) {
	select {
	case f := <-wait.answer: // a rule has decided
		return answerOf(f)
	default:
	}
	o.host.places.lend(o.id)
	defer o.host.places.reclaim(o.id)
	select {
	case f := <-wait.answer:
		return answerOf(f)
	case <-ctx.Done():
		return agent.Answer{}, ctx.Err()
	case <-o.ended:
		return agent.Answer{}, agent.ErrEnded
	}
}

// answerOf is a decision as its agent sees it. One that a stop made is none.
func answerOf(f *narad.InterruptResolved) (agent.Answer, error) {
	if f.Reason == decide.ReasonStopped && hasLapsed(f) {
		return agent.Answer{}, agent.ErrStopped
	}
	a := agent.Answer{
		InterruptID: f.InterruptID, Decision: f.Decision, Reason: f.Reason, Said: facts.SaidBy(f),
		Answers: facts.Answers(&f.Event),
	}
	for _, m := range f.Members {
		if a.Members == nil {
			a.Members = map[string]string{}
		}
		a.Members[m.RequestID] = m.Decision
	}
	return a, nil
}

// hasLapsed reports whether something that was asked was never decided.
func hasLapsed(f *narad.InterruptResolved) bool {
	return f.Decision == narad.DecisionExpired || slices.ContainsFunc(f.Members, func(m narad.MemberDecision) bool {
		return m.Decision == narad.DecisionExpired
	})
}

// Await waits for an interrupt. Where it was decided in the meantime, its fact is read.
func (h *handle) Await(ctx context.Context, interruptID string) (agent.Answer, error) {
	wait := newWaiter(ctx)
	answer, err := h.do(ctx, &task{
		command: decide.Await{RunID: h.info.RunID, InterruptID: interruptID}, interrupt: interruptID, wait: wait,
	})
	if err != nil {
		return agent.Answer{}, err
	}
	if answer.Status == decide.Accepted {
		return h.o.awaitAnswer(ctx, wait)
	}
	return h.o.decided(ctx, interruptID)
}

func (h *handle) Retract(ctx context.Context, interruptID, reason string) error {
	_, err := h.do(ctx, &task{command: decide.Retract{RunID: h.info.RunID, InterruptID: interruptID, Reason: reason}})
	return err
}

// decided reads how an interrupt of the session was decided.
func (o *owner) decided(ctx context.Context, interruptID string) (agent.Answer, error) {
	row, err := journal.Get[journal.InterruptRow](ctx, o.host.journal, journal.InterruptKey(interruptID))
	if errors.Is(err, journal.ErrNotFound) {
		return agent.Answer{}, invalid("no such interrupt")
	}
	if err != nil {
		return agent.Answer{}, fmt.Errorf("find interrupt: %w", err)
	}
	at := index.Read[index.Interrupt](row.Value).SessionSequence
	if row.Session != o.id || row.Open || at < 1 {
		return agent.Answer{}, invalid("the interrupt is not of this session")
	}
	chunk, err := o.host.journal.Read(ctx, journal.BySession{Session: o.id, After: uint64(at - 1)}, journal.Page{Limit: 1})
	if err != nil {
		return agent.Answer{}, fmt.Errorf("read decision: %w", err)
	}
	for _, record := range chunk.Records {
		fact, err := narad.Decode(record.Bytes)
		if f, ok := fact.(*narad.InterruptResolved); err == nil && ok && f.InterruptID == interruptID {
			return answerOf(f)
		}
	}
	return agent.Answer{}, invalid("the decision is not there")
}
