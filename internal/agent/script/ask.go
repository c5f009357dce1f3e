package script

import (
	"context"
	"slices"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
	"go.yaml.in/yaml/v3"
)

// ask pauses the run until somebody decides.
type ask struct {
	kind           string
	title, message template
	actions        []string
	input          value
	members        []member
	expires        time.Duration
	as             string
	on             branches
}

// member is one of several things that are asked together.
type member struct {
	id, tool, kind           string
	action, resource, detail template
	on                       branches
}

// maxMembers is the size of a pack (R12).
const maxMembers = 32

func readAsk(r *reader, n *yaml.Node, m manner) action {
	r.alone(n, "ask")
	o := r.object(n, "ask")
	a := &ask{kind: o.plain("kind"), title: o.template("title"), message: o.template("message"), input: o.value("input")}
	if a.kind == "" {
		a.kind = "approval"
	}
	a.actions = r.actions(o.take("actions"))
	a.expires = o.duration("expires")
	results := append(slices.Clone(a.actions), narad.DecisionExpired)
	if list := o.take("members"); list != nil {
		for _, item := range r.items(list, "ask: members", maxMembers) {
			a.members = append(a.members, r.member(item, m, a.members, results))
		}
	}
	if a.input.kind != 0 && a.input.kind != yaml.MappingNode {
		r.fail(n, "ask: input must be a mapping")
	}
	a.as = r.as(o)
	a.on = r.on(o, m, results...)
	o.close("kind", "title", "message", "actions", "input", "members", "expires", "as", "on")
	return a
}

// actions reads the decisions that are offered.
func (r *reader) actions(n *yaml.Node) []string {
	if n == nil {
		return []string{"approve", "deny"}
	}
	var list []string
	for _, item := range r.items(n, "ask: actions", 32) {
		word := r.name(item, "ask: actions")
		if word == narad.DecisionExpired || slices.Contains(list, word) {
			r.fail(item, "ask: actions: %q cannot stand here (again)", word)
		}
		list = append(list, word)
	}
	if len(list) == 0 {
		r.fail(n, "ask: actions must not be empty")
	}
	return list
}

func (r *reader) member(n *yaml.Node, m manner, before []member, results []string) member {
	o := r.object(n, "a member")
	one := member{
		id: o.name("id"), tool: o.plain("tool"), kind: o.plain("kind"),
		action: o.template("action"), resource: o.template("resource"), detail: o.template("detail"),
	}
	if one.id == "" || slices.ContainsFunc(before, func(known member) bool { return known.id == one.id }) {
		r.fail(n, "a member must have an id of its own")
	}
	one.on = r.on(o, m, results...)
	o.close("id", "tool", "kind", "action", "resource", "detail", "on")
	return one
}

func (a *ask) perform(ctx context.Context, sc *scene, at spot) error {
	answer, err := sc.decided(ctx, at, func() (agent.Ask, error) { return a.fill(sc, at) })
	if err != nil {
		return err
	}
	sc.play.vars.set(a.as, result{decision: answer.Decision, reason: answer.Reason})
	for _, m := range a.members {
		decision, ok := answer.Members[m.id]
		if !ok {
			decision = answer.Decision
		}
		if err := m.on.follow(ctx, sc, at.into(m.id), denials(decision)...); err != nil {
			return err
		}
	}
	return a.on.follow(ctx, sc, at, denials(answer.Decision)...)
}

func (a *ask) fill(sc *scene, at spot) (agent.Ask, error) {
	out := agent.Ask{AgentID: at.path, Kind: a.kind, Actions: a.actions, ExpiresIn: a.expires}
	var err error
	if out.Input, err = a.input.fill(sc, at); err != nil {
		return out, err
	}
	for _, m := range a.members {
		one := agent.Member{RequestID: m.id, ToolName: m.tool, ToolType: m.kind}
		err := sc.fills(at, map[*string]template{&one.Action: m.action, &one.Resource: m.resource, &one.Detail: m.detail})
		if err != nil {
			return out, err
		}
		out.Members = append(out.Members, one)
	}
	return out, sc.fills(at, map[*string]template{&out.Title: a.title, &out.Message: a.message})
}

// decided asks, or awaits what was asked before a restart, or returns what was decided
// then.
func (sc *scene) decided(ctx context.Context, at spot, fill func() (agent.Ask, error)) (agent.Answer, error) {
	known := sc.play.past.waits[at.path]
	if known == nil {
		a, err := fill()
		if err != nil {
			return agent.Answer{}, err
		}
		return sc.h.Ask(ctx, a)
	}
	sc.play.past.consume()
	if known.resolved == nil {
		return sc.h.Await(ctx, known.id)
	}
	return answerOf(known.resolved), nil
}

// answerOf reads an answer from its fact.
func answerOf(r *narad.InterruptResolved) agent.Answer {
	answer := agent.Answer{
		InterruptID: r.InterruptID, Decision: r.Decision, Reason: r.Reason, Said: facts.SaidBy(r),
		Members: map[string]string{}, Answers: facts.Answers(&r.Event),
	}
	for _, m := range r.Members {
		answer.Members[m.RequestID] = m.Decision
	}
	return answer
}
