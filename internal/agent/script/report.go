package script

import (
	"context"
	"strconv"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
	"go.yaml.in/yaml/v3"
)

// progress tells of an activity.
type progress struct {
	id              string
	category        string
	label, detail   template
	status, privacy string
}

func readProgress(r *reader, n *yaml.Node, _ manner) action {
	o := r.object(n, "progress")
	p := &progress{id: o.name("id"), category: o.plain("category"), label: o.template("label"), detail: o.template("detail")}
	p.status = o.word("status", "active", "completed", "failed", "cancelled")
	p.privacy = o.word("privacy", "public", "internal", "sensitive")
	if p.category == "" {
		p.category = "task"
	}
	if p.label == nil {
		r.fail(n, "progress must have a label")
	}
	o.close("id", "category", "label", "detail", "status", "privacy")
	return p
}

func (p *progress) perform(ctx context.Context, sc *scene, at spot) error {
	out := agent.Progress{
		ID: p.id, Category: p.category,
		Status: narad.ProgressStatus(p.status), Privacy: narad.Privacy(p.privacy),
	}
	if out.ID == "" {
		out.ID = at.path
	}
	if err := sc.fills(at, map[*string]template{&out.Label: p.label, &out.Detail: p.detail}); err != nil {
		return err
	}
	return sc.tell(ctx, out)
}

// tell records an activity, unless the past tells of it.
func (sc *scene) tell(ctx context.Context, p agent.Progress) error {
	if sc.play.past.told.take(activityKey(sc.h.Info().RunID, p.ID, p.Status, p.Label, p.Detail)) {
		sc.play.past.consume()
		return nil
	}
	return sc.h.Progress(ctx, p)
}

// plan tells what is to be done and how far it is: one activity an entry.
type plan struct{ entries []entry }

type entry struct {
	text   template
	status string
}

func readPlan(r *reader, n *yaml.Node, _ manner) action {
	p := &plan{}
	for _, item := range r.items(n, "plan", maxMembers) {
		if item.Kind == yaml.ScalarNode {
			p.entries = append(p.entries, entry{r.template(item, "plan"), "pending"})
			continue
		}
		o := r.object(item, "an entry of a plan")
		e := entry{o.template("text"), o.word("status", "pending", "active", "completed", "failed", "cancelled")}
		if e.text == nil {
			r.fail(item, "an entry of a plan must have a text")
		}
		o.close("text", "status")
		p.entries = append(p.entries, e)
	}
	return p
}

func (p *plan) perform(ctx context.Context, sc *scene, at spot) error {
	whole := make([]facts.Planned, len(p.entries))
	for i, e := range p.entries {
		text, err := e.text.fill(sc, at)
		if err != nil {
			return err
		}
		whole[i] = facts.Planned{ID: "plan-" + strconv.Itoa(i+1), Text: text, Status: e.status}
	}
	if len(whole) == 0 {
		return sc.once(at, func() error { return sc.h.Tasks(ctx, at.path, whole) })
	}
	for i, step := range whole {
		// What is planned and not begun is an active activity that says so.
		out := agent.Progress{
			ID: step.ID, Category: "plan", Label: step.Text, Detail: step.Status, Privacy: narad.PrivacyPublic,
			Status: narad.ProgressStatus(step.Status), Plan: &agent.Plan{Steps: whole, Later: i < len(whole)-1},
		}
		if step.Status == "pending" {
			out.Status = narad.ProgressActive
		}
		if err := sc.tell(ctx, out); err != nil {
			return err
		}
	}
	return nil
}

// custom records a fact of a name of the file's own.
type custom struct {
	name  string
	value value
}

func readCustom(r *reader, n *yaml.Node, _ manner) action {
	o := r.object(n, "custom")
	c := &custom{o.plain("name"), o.value("value")}
	switch {
	case !isCustomName(c.name):
		r.fail(n, "custom: the name must be two or more words of a-z and 0-9 joined by dots, such as build.done")
	case customKey("", c.name, nil) == "" || c.name == noteName:
		r.fail(n, "custom: names under %s and %s are taken", facts.Prefix, noteName)
	case c.value.kind == 0:
		r.fail(n, "custom must have a value")
	}
	o.close("name", "value")
	return c
}

// isCustomName reports whether a name is one that a custom fact may have (R6).
func isCustomName(name string) bool {
	dots, part := 0, 0
	for i := range len(name) {
		switch c := name[i]; {
		case c == '.' && part > 0:
			dots, part = dots+1, 0
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			part++
		default:
			return false
		}
	}
	return dots > 0 && part > 0 && len(name) <= 256
}

func (c *custom) perform(ctx context.Context, sc *scene, at spot) error {
	value, err := c.value.fill(sc, at)
	if err != nil {
		return err
	}
	if sc.play.past.told.take(customKey(sc.h.Info().RunID, c.name, value)) {
		sc.play.past.consume()
		return nil
	}
	return sc.h.Custom(ctx, c.name, value)
}
