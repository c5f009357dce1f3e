package flow

import (
	"errors"
	"regexp"
	"strings"

	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/script"
	"go.yaml.in/yaml/v3"
)

// Read reads a file. Name is how it is called in errors, which are of type [*Error];
// empty means "workflow".
func Read(file []byte, name string) (*Definition, error) {
	if name == "" {
		name = "workflow"
	}
	r := &reader{name: name}
	n := r.parse(file)
	var d *Definition
	if r.err == nil {
		d = r.file(n)
	}
	if r.err != nil {
		return nil, r.err
	}
	return d, nil
}

func (r *reader) file(n *yaml.Node) *Definition {
	o := r.object(n, "the file")
	if version := o.take("workflow"); version == nil || version.Value != "1" {
		r.fail(n, "the file must say workflow: 1")
	}
	d := &Definition{
		Name: o.text("name", 256), Start: o.leadsTo("start", "start"), limit: o.number("max_steps", 1, maxSteps, usualSteps),
		nodes: map[string]*node{},
	}
	if given := o.take("data"); given != nil {
		r.each(given, "data", maxNodes, func(name string, v *yaml.Node) {
			d.data = append(d.data, entry{name, r.constant(v, "data: "+name)})
		})
	}
	if nodes := o.take("nodes"); nodes == nil {
		r.fail(n, "the file must have nodes")
	} else {
		r.each(nodes, "nodes", maxNodes, func(name string, v *yaml.Node) {
			if d.Start == "" {
				d.Start = name
			}
			d.nodes[name], d.order = r.node(name, v), append(d.order, name)
		})
	}
	o.close()
	r.whole(d)
	return d
}

// lead is a place of the file that names a node.
type lead struct {
	at   *yaml.Node
	what string
	to   string
}

// leadsTo reads an optional word that names a node. What says whose it is.
func (o *object) leadsTo(key, what string) string {
	n := o.left[key]
	word := o.word(key)
	if n != nil {
		o.r.leads = append(o.r.leads, lead{n, what, word})
	}
	return word
}

// whole demands that each path leads to a node of the file.
func (r *reader) whole(d *Definition) {
	for _, l := range r.leads {
		if d.nodes[l.to] == nil {
			r.fail(l.at, "%s leads to %q, which is no node of the file", l.what, l.to)
		}
	}
}

// kinds are the keys that say what a node does: one of them stands in each.
var kinds = []string{"agent", "script", "parallel", "approval", "question", "set", "end"}

func (r *reader) node(id string, n *yaml.Node) *node {
	what := "the node " + id
	o := r.object(n, what)
	is := &node{id: id, as: id, attempts: 1}
	var does []string
	for _, kind := range kinds {
		if o.left[kind] != nil {
			does = append(does, kind)
		}
	}
	if len(does) != 1 {
		r.fail(n, "%s must have exactly one of %s", what, strings.Join(kinds, ", "))
		return is
	}
	switch does[0] {
	case "agent", "script":
		is.work = []work{r.work(n, o)}
	case "parallel":
		is.parallel = true
		r.branches(o, is)
	case "approval", "question":
		is.ask = r.question(o, does[0])
	case "set":
		r.each(o.take("set"), what+": set", maxNodes, func(name string, v *yaml.Node) {
			is.set = append(is.set, assignment{name, r.value(v, what+": set: "+name)})
		})
	case "end":
		is.end = r.ending(o)
		o.close()
		return is
	}
	r.way(n, o, is)
	o.close()
	return is
}

// way reads what every node has that does not end the workflow: its result's name, its
// attempts, and where it leads.
func (r *reader) way(n *yaml.Node, o *object, is *node) {
	if is.set == nil {
		if as := o.word("as"); as != "" {
			is.as = as
		}
		is.onFailure = o.leadsTo("on_failure", "on_failure of "+o.what)
	}
	if is.work != nil {
		is.attempts, is.backoff = o.number("attempts", 1, maxAttempts, 1), o.duration("backoff")
	}
	next := o.take("next")
	switch {
	case next == nil:
		r.fail(n, "%s: next is missing: name a node, which may be one with end", o.what)
	case next.Kind == yaml.SequenceNode:
		is.next = r.paths(next, o.what)
	default:
		is.next = []path{{to: r.word(next, o.what+": next")}}
		r.leads = append(r.leads, lead{next, o.what, is.next[0].to})
	}
}

// paths reads an exclusive choice. Its last path has no condition.
func (r *reader) paths(n *yaml.Node, node string) []path {
	what := node + ": next"
	items := r.items(n, what, maxNodes)
	var list []path
	for i, item := range items {
		o := r.object(item, what)
		p := path{to: o.leadsTo("to", node)}
		when := o.take("when")
		switch last := i == len(items)-1; {
		case p.to == "":
			r.fail(item, "%s: a path needs to", what)
		case last && when != nil:
			r.fail(item, "%s: the last path must have no when: it is taken when no condition holds", what)
		case !last && when == nil:
			r.fail(item, "%s: only the last path may have no when", what)
		case when != nil:
			p.when = r.condition(when, what+": when")
		}
		o.close()
		list = append(list, p)
	}
	return list
}

func (r *reader) condition(n *yaml.Node, what string) *condition {
	o := r.object(n, what)
	c := &condition{pointer: o.text("pointer", longestText), op: o.choice("op", operators...)}
	if !isPointer(c.pointer) || c.pointer == "" {
		r.fail(n, "%s: pointer must be one into the data, such as /review/verdict", what)
	}
	v := o.take("value")
	o.close()
	if c.op == opExists || c.op == opMissing {
		if v != nil {
			r.fail(v, "%s: %s takes no value", what, c.op)
		}
		return c
	}
	if v == nil {
		r.fail(n, "%s: %s needs a value", what, c.op)
		return c
	}
	c.value = r.constant(v, what+": value")
	r.operand(v, what, c)
	return c
}

// operand holds the value to its operator.
func (r *reader) operand(n *yaml.Node, what string, c *condition) {
	switch c.op {
	case opLess, opGreater, opAtMost, opAtLeast:
		if _, ok := numberOf(c.value); !ok {
			r.fail(n, "%s: %s needs a number", what, c.op)
		}
	case opMatches:
		text, ok := c.value.IsString()
		pattern, err := regexp.Compile(text)
		if !ok || err != nil {
			r.fail(n, "%s: the value of matches is no regular expression", what)
		}
		c.pattern = pattern
	}
}

// work reads what an agent does. The object is that of a node or of a branch.
func (r *reader) work(n *yaml.Node, o *object) work {
	w := work{json: o.choice("result", "text", "json") == "json"}
	if steps := o.take("script"); steps != nil {
		w.script = r.script(steps, o.what)
	}
	if named := o.take("agent"); named != nil {
		w.agent = r.plain(named, o.what+": agent")
	}
	if (w.agent == "") == (w.script == nil) {
		r.fail(n, "%s must have either an agent or a script", o.what)
	}
	w.prompt = o.template("prompt", maxPrompt)
	if len(w.prompt) == 1 && w.prompt[0] == "" || w.prompt == nil {
		r.fail(n, "%s needs a prompt", o.what)
	}
	return w
}

// script reads the steps of docs/script.md. They run no commands.
func (r *reader) script(n *yaml.Node, what string) agent.Kind {
	steps, err := yaml.Marshal(map[string]any{"script": 1, "steps": n})
	if err != nil {
		r.fail(n, "%s: the script cannot be read", what)
		return nil
	}
	kind, err := script.New(steps, script.Options{Name: r.name, NoCommands: true})
	var wrong *script.Error
	switch {
	case errors.As(err, &wrong):
		r.fail(n, "%s: script: %s", what, wrong.Problem)
	case err != nil:
		r.fail(n, "%s: script: %s", what, err)
	}
	return kind
}

func (r *reader) branches(o *object, is *node) {
	n := o.take("parallel")
	r.each(n, o.what+": parallel", maxBranches, func(name string, v *yaml.Node) {
		inner := r.object(v, o.what+": the branch "+name)
		w := r.work(v, inner)
		w.name = name
		inner.close()
		is.work = append(is.work, w)
	})
	if len(is.work) == 0 {
		r.fail(n, "%s: parallel needs branches", o.what)
	}
}

func (r *reader) question(o *object, kind string) *question {
	n := o.take(kind)
	in := r.object(n, o.what+": "+kind)
	q := &question{
		approval: kind == "approval", title: in.template("title", longestText), message: in.template("message", longestText),
		expires: in.duration("expires"), recommended: -1,
	}
	if q.approval && q.title == nil {
		r.fail(n, "%s: approval needs a title", o.what)
	}
	if !q.approval {
		r.choices(n, in, q)
	}
	in.close()
	return q
}

func (r *reader) choices(n *yaml.Node, in *object, q *question) {
	if q.text = in.template("text", longestText); q.text == nil {
		r.fail(n, "%s needs a text", in.what)
	}
	if options := in.take("options"); options != nil {
		for _, item := range r.items(options, in.what+": options", maxBranches) {
			q.options = append(q.options, r.plain(item, in.what+": an option"))
		}
	}
	q.free = in.yes("free")
	q.recommended = in.number("recommended", 0, max(len(q.options)-1, 0), -1)
	if len(q.options) == 0 && q.recommended >= 0 {
		r.fail(n, "%s: recommended is the place of an option, from 0", in.what)
	}
}

func (r *reader) ending(o *object) *ending {
	e := &ending{
		failed: o.choice("end", "completed", "failed") == "failed", code: o.text("code", longestName),
		message: o.template("message", longestText),
	}
	if out := o.take("output"); out != nil {
		e.output = r.value(out, o.what+": output")
	}
	if !e.failed && e.code != "" {
		r.fail(o.node, "%s: only a failed end has a code", o.what)
	}
	return e
}
