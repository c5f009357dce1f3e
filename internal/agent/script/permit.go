package script

import (
	"context"
	"slices"
	"strings"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
	"go.yaml.in/yaml/v3"
)

// permit is the question whether a tool call may go on.
type permit struct {
	title, message, resource, detail template
	options                          []agent.Option
}

// permitActions are the words of R11.
var permitActions = []string{"approve", "approve_always", "deny", "deny_always", "stop"}

// permit reads the question of a tool; "permit: true" asks the usual one.
func (r *reader) permit(n *yaml.Node, tool string) *permit {
	p := &permit{title: template{"Allow " + tool + "?"}, options: []agent.Option{option("approve"), option("deny")}}
	if n.Kind == yaml.ScalarNode {
		if n.Value != "true" {
			r.fail(n, "permit must be true or a mapping")
		}
		return p
	}
	o := r.object(n, "permit")
	if title := o.template("title"); title != nil {
		p.title = title
	}
	p.message, p.resource, p.detail = o.template("message"), o.template("resource"), o.template("detail")
	if list := o.take("options"); list != nil {
		p.options = r.options(list)
	}
	o.close("title", "message", "resource", "detail", "options")
	return p
}

func (r *reader) options(n *yaml.Node) []agent.Option {
	var list []agent.Option
	for _, item := range r.items(n, "permit: options", len(permitActions)) {
		opt := r.option(item)
		if slices.ContainsFunc(list, func(known agent.Option) bool { return known.Action == opt.Action }) {
			r.fail(item, "permit: options: %q stands twice", opt.Action)
		}
		list = append(list, opt)
	}
	if len(list) == 0 {
		r.fail(n, "permit: options must not be empty")
	}
	return list
}

// option reads an action, or an action with the agent's own id and name of it.
func (r *reader) option(n *yaml.Node) agent.Option {
	if n.Kind == yaml.ScalarNode {
		return option(r.permitAction(n))
	}
	o := r.object(n, "an option")
	given := agent.Option{ID: o.plain("id"), Name: o.plain("name")}
	opt := agent.Option{}
	if a := o.take("action"); a != nil {
		opt = option(r.permitAction(a))
	} else {
		r.fail(n, "an option must have an action")
	}
	o.close("id", "name", "action")
	if given.ID != "" {
		opt.ID = given.ID
	}
	if given.Name != "" {
		opt.Name = given.Name
	}
	return opt
}

func (r *reader) permitAction(n *yaml.Node) string {
	word := r.plain(n, "an option")
	if !slices.Contains(permitActions, word) {
		r.fail(n, "an option must be one of %s", strings.Join(permitActions, ", "))
	}
	return word
}

func option(action string) agent.Option {
	words := strings.ReplaceAll(action, "_", " ")
	return agent.Option{ID: action, Name: strings.ToUpper(words[:min(1, len(words))]) + words[min(1, len(words)):], Action: action}
}

// refusals returns the decisions after which the call does not go on.
func (p *permit) refusals() []string {
	words := []string{narad.DecisionExpired}
	for _, o := range p.options {
		if !allows(o.Action) {
			words = append(words, denials(o.Action)...)
		}
	}
	return words
}

// ask asks for an open call, or awaits what was asked before a restart.
func (p *permit) ask(ctx context.Context, sc *scene, at spot, id string, gate *pastWait) (agent.Answer, error) {
	if gate != nil {
		return sc.h.Await(ctx, gate.id)
	}
	ask := agent.Permission{ToolCallID: id, Options: p.options}
	err := sc.fills(at, map[*string]template{
		&ask.Title: p.title, &ask.Message: p.message, &ask.Resource: p.resource, &ask.Detail: p.detail,
	})
	if err != nil {
		return agent.Answer{}, err
	}
	return sc.h.Permit(ctx, ask)
}
