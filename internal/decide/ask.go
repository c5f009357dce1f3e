package decide

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// The words of interrupts (R11, R13).
const (
	kindApproval  = "approval"
	kindQuestion  = "question"
	actionApprove = "approve"
	actionDeny    = "deny"
	actionAnswer  = "answer"
	actionDismiss = "dismiss"
	askUser       = "ask_user"
	reasonAsked   = "interrupt"
)

// permissionWords are the actions of permissions (R11).
var permissionWords = []string{actionApprove, "approve_always", actionDeny, "deny_always", "stop"}

// Ruling is what a rule of the policy says instead of a person.
type Ruling struct {
	Rule     string
	Decision string
}

// Permit asks whether an open tool call may go on, in a gate run of its own, so that
// the run above stays running (R10).
type Permit struct {
	RunID       string
	ToolCallID  string
	GateRunID   string
	InterruptID string
	WaitID      string
	Actions     []string
	Title       string
	Message     string
	Input       narad.Raw
	// Ruling decides at once; nil asks a person, and Quorum says how many must approve:
	// it stands in the input.
	Ruling *Ruling
}

func (p Permit) propose(d *draft) Answer {
	run, answer, ok := d.starting(p.RunID)
	if !ok {
		return answer
	}
	if _, refusal, ok := d.tool(p.ToolCallID, p.RunID); !ok {
		return refusal
	}
	if refusal, ok := d.mayStartRun(); !ok {
		return refusal
	}
	gate := &narad.RunStarted{
		ParentRunID: p.RunID, ParentToolCallID: p.ToolCallID, ClientExecutorID: run.ClientExecutorID,
	}
	facts.SetGate(&gate.Event)
	inside := run
	inside.RunID, inside.ParentRunID, inside.ParentToolCallID = p.GateRunID, p.RunID, p.ToolCallID
	d.opening = p.GateRunID
	d.in(inside, gate)
	d.request(inside, &narad.InterruptRequested{
		InterruptID: p.InterruptID, WaitID: p.WaitID, Kind: kindApproval, Actions: p.Actions,
		Title: p.Title, Message: p.Message, Input: p.Input,
	})
	answer.RequestID = p.InterruptID
	ruling := p.Ruling
	if ruling == nil {
		ruling = d.remembered(inside, p.Input)
	}
	if by, decision := d.atOnce(kindApproval, p.Actions, ruling); by != nil {
		d.decideAtOnce(inside, p.InterruptID, p.WaitID, decision, by, nil)
		d.in(inside, gateEnd(false))
		answer.Decision = decision
	}
	return answer
}

// request asks and, at once, pauses (§7.6).
func (d *draft) request(run session.Run, i *narad.InterruptRequested) {
	d.subject()
	d.in(run, i)
	d.in(run, &narad.RunPaused{
		WaitID: i.WaitID, InterruptID: i.InterruptID, Reason: reasonAsked, ResumeMode: narad.ResumeCommand,
	})
}

// ruledBy is who decided at once, and why.
type ruledBy struct {
	actor  facts.Actor
	reason string
}

// atOnce returns the decision that needs no person: a rule's, or that nobody is there
// to ask (R18).
func (d *draft) atOnce(kind string, actions []string, r *Ruling) (*ruledBy, string) {
	if r != nil && slices.Contains(actions, r.Decision) {
		return &ruledBy{facts.Actor{ID: "policy", Rule: r.Rule}, "policy"}, r.Decision
	}
	if !d.desk.Detached() {
		return nil, ""
	}
	by := &ruledBy{facts.Actor{ID: "policy", Rule: facts.Detached}, facts.Detached}
	for _, word := range []string{actionDeny, actionDismiss} {
		if slices.Contains(actions, word) {
			return by, word
		}
	}
	return by, narad.DecisionExpired
}

func (d *draft) decideAtOnce(run session.Run, interruptID, waitID, decision string, by *ruledBy, members []narad.MemberDecision) {
	who, _ := facts.Value(by.actor)
	d.in(run, &narad.InterruptResolved{
		InterruptID: interruptID, WaitID: waitID, Decision: decision, Reason: by.reason, Actor: who, Members: members,
	})
	d.in(run, &narad.RunResumed{WaitID: waitID})
}

// Ask pauses a run until somebody decides. Questions make it a question, which is asked
// through a tool call (R13); members make it a pack (R12).
type Ask struct {
	RunID       string
	InterruptID string
	WaitID      string
	ToolCallID  string // for a question
	AgentID     string
	Kind        string
	Title       string
	Message     string
	Actions     []string
	Input       narad.Raw
	Members     []Member
	Questions   []Question
	ExpiresIn   time.Duration
}

// Member is one of several things that are asked together.
type Member = member

// Question is one question to a person.
type Question struct {
	Text        string   `json:"text"`
	Options     []string `json:"options,omitempty"`
	Recommended *int     `json:"recommended,omitzero"`
	Multiple    bool     `json:"multiple,omitzero"`
	Free        bool     `json:"free,omitzero"`
}

// maxMembers bounds a pack (R12), and the questions that are asked together.
const maxMembers = 32

// check says what is wrong with an ask, "" for nothing.
func (a Ask) check() string {
	switch {
	case len(a.Members) > maxMembers, len(a.Questions) > maxMembers:
		return "too many things are asked at once"
	case len(a.Members) > 0 && len(a.Questions) > 0:
		return "a question has no members"
	case len(a.Members) > 0:
		return a.checkPack()
	}
	return ""
}

// checkPack demands members that can be told apart, and actions of which the fold of
// their decisions is always one (R12).
func (a Ask) checkPack() string {
	seen := map[string]bool{"": true}
	for _, m := range a.Members {
		if seen[m.RequestID] {
			return "each member needs an id of its own"
		}
		seen[m.RequestID] = true
	}
	if !slices.Contains(a.Actions, actionApprove) || !slices.Contains(a.Actions, actionDeny) {
		return "a pack offers approve and deny"
	}
	for _, word := range a.Actions {
		if !slices.Contains(permissionWords, word) {
			return "a pack offers the words of permissions alone"
		}
	}
	return ""
}

func (a Ask) propose(d *draft) Answer {
	run, answer, ok := d.starting(a.RunID)
	if !ok {
		return answer
	}
	if wrong := a.check(); wrong != "" {
		return refuseRecord(RefusedInvalid, wrong)
	}
	d.closeText(run)
	if len(a.Questions) > 0 {
		if len(d.state.OpenTools(a.RunID)) >= maxOpenTools {
			return refuseRecord(RefusedInvalid, "too many tool calls are open")
		}
		a = a.question()
		call := &narad.ToolCallStarted{
			ToolCallID: a.ToolCallID, ToolName: askUser, Executor: narad.ExecutorBackend, Args: a.Input,
		}
		facts.SetAgentID(&call.Event, a.AgentID)
		d.in(run, call)
	}
	input, err := a.input()
	if err != nil {
		return refuseRecord(RefusedInvalid, "the input is not a JSON object")
	}
	asked := &narad.InterruptRequested{
		InterruptID: a.InterruptID, WaitID: a.WaitID, Kind: a.Kind, Actions: a.Actions,
		Title: a.Title, Message: a.Message, Input: input,
	}
	if a.ExpiresIn > 0 {
		asked.ExpiresAt = narad.Timestamp(d.env.Now.Add(a.ExpiresIn))
	}
	facts.SetAgentID(&asked.Event, a.AgentID)
	d.request(run, asked)
	answer.RequestID = a.InterruptID
	if len(a.Members) > 0 {
		answer.Decision = d.ruleMembers(run, a)
	} else if by, decision := d.atOnce(a.Kind, a.Actions, d.rememberedOf(run, a)); by != nil {
		d.settle(run, a, decision, by)
		answer.Decision = decision
	}
	return answer
}

// ruleMembers decides the members of a pack that need no person, each by its own rule; those
// for which nobody is there are decided by the end of the pack. Where that is all of them
// nobody is asked, and their fold is returned.
func (d *draft) ruleMembers(run session.Run, a Ask) string {
	var settled []narad.MemberDecision
	end := &ruledBy{facts.Actor{ID: "policy"}, "policy"}
	for _, m := range a.Members {
		if m.Ruling == nil {
			m.Ruling = d.rememberedMember(run, m)
		}
		by, decision := d.atOnce(a.Kind, a.Actions, m.Ruling)
		if by == nil {
			continue
		}
		settled = append(settled, m.decided(decision))
		if by.reason == facts.Detached {
			end = by
			continue
		}
		d.in(run, facts.Run(run.RootRunID, run.RunID, facts.Decision, facts.Decided{
			InterruptID: a.InterruptID, Actor: by.actor, Reason: by.reason,
			Members: []facts.MemberDecided{{RequestID: m.RequestID, Decision: decision}},
		}))
	}
	if len(settled) < len(a.Members) {
		return ""
	}
	fold := session.Fold(settled)
	d.decideAtOnce(run, a.InterruptID, a.WaitID, fold, end, settled)
	return fold
}

// settle decides an ask without members in the batch that asks it.
func (d *draft) settle(run session.Run, a Ask, decision string, by *ruledBy) {
	d.decideAtOnce(run, a.InterruptID, a.WaitID, decision, by, nil)
	if len(a.Questions) > 0 {
		t := session.Tool{ToolCallID: a.ToolCallID, ToolName: askUser, StartedAt: narad.Timestamp(d.env.Now)}
		d.in(run, d.answered(t, resolution{decision: decision}))
	}
}

// question gives a question its kind, its actions and its arguments: one single choice
// offers the options themselves.
func (a Ask) question() Ask {
	a.Kind = kindQuestion
	first := a.Questions[0]
	if len(a.Questions) == 1 && len(first.Options) > 0 && !first.Multiple && !first.Free {
		a.Actions = nil
		for i := range first.Options {
			a.Actions = append(a.Actions, strconv.Itoa(i))
		}
		a.Actions = append(a.Actions, actionDismiss)
	} else {
		a.Actions = []string{actionAnswer, actionDismiss}
	}
	args, _ := facts.Value(struct {
		Questions []Question `json:"questions"`
	}{a.Questions})
	a.Input = args
	return a
}

// input adds what every client needs to the agent's own input.
func (a Ask) input() (narad.Raw, error) {
	if len(a.Questions) > 0 {
		return facts.Value(struct {
			ToolCallID string     `json:"toolCallId"`
			Questions  []Question `json:"questions"`
		}{a.ToolCallID, a.Questions})
	}
	if len(a.Members) == 0 {
		return a.Input, nil
	}
	own := map[string]narad.Raw{}
	if a.Input != nil {
		fields, ok := a.Input.Members()
		if !ok {
			return nil, errors.New("the input is not an object")
		}
		for _, f := range fields {
			own[f.Name] = f.Value
		}
	}
	members, err := facts.Value(a.Members)
	if err != nil {
		return nil, err
	}
	own["members"] = members
	return facts.Value(own)
}

// Await says whether an interrupt of the session is still open: accepted if it is.
type Await struct {
	RunID       string
	InterruptID string
}

func (a Await) propose(d *draft) Answer {
	if _, answer, ok := d.open(a.RunID); !ok {
		return answer
	}
	if i, known := d.state.Interrupt(a.InterruptID); known && i.Open {
		return Answer{Status: Accepted, RequestID: a.InterruptID}
	}
	return Answer{Status: AlreadyApplied, RequestID: a.InterruptID}
}

// Retract closes a question that its agent does not ask any more: of the run itself, or
// of one of its gates. Nobody has decided it.
type Retract struct {
	RunID       string
	InterruptID string
	Reason      string
}

func (r Retract) propose(d *draft) Answer {
	_, answer, ok := d.open(r.RunID)
	if !ok {
		return answer
	}
	answer.RequestID = r.InterruptID
	i, known := d.state.Interrupt(r.InterruptID)
	if !known || !i.Open {
		answer.Status = AlreadyApplied
		return answer
	}
	asks, _ := d.run(i.RunID)
	if own := asks.RunID == r.RunID || d.gate(asks) && asks.ParentRunID == r.RunID; !own {
		return refuseRecord(RefusedInvalid, "the question is another run's")
	}
	d.closing = true
	d.lapse(i, orElse(r.Reason, "withdrawn"))
	answer.Decision = narad.DecisionExpired
	return answer
}
