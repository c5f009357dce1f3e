package script

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
	"go.yaml.in/yaml/v3"
)

// parallel performs its branches at the same time and goes on when all are done.
type parallel struct{ branches []sequence }

const maxBranches = 32

func readParallel(r *reader, n *yaml.Node, m manner) action {
	outer, spoke, speakers := r.parallel, r.spoke, 0
	r.parallel = true
	p := &parallel{}
	for _, item := range r.items(n, "parallel", maxBranches) {
		r.spoke = false
		p.branches = append(p.branches, r.steps(item, m))
		if r.spoke {
			speakers++
		}
		if speakers > 1 {
			r.fail(item, "only one branch of parallel may say or think something; the others can in an agent of their own")
		}
	}
	r.parallel, r.spoke = outer, spoke || speakers > 0
	return p
}

func (p *parallel) perform(ctx context.Context, sc *scene, at spot) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for i, steps := range p.branches {
		wg.Go(func() {
			if err := steps.perform(ctx, sc, at.into("branch"+strconv.Itoa(i))); err != nil {
				cancel(err) // the first counts
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// repeat performs steps several times.
type repeat struct {
	times int
	steps sequence
}

const maxTimes = 10_000

func readRepeat(r *reader, n *yaml.Node, m manner) action {
	o := r.object(n, "repeat")
	p := &repeat{}
	if times := o.take("times"); times != nil {
		p.times = r.number(times, "repeat: times", 0, maxTimes)
	} else {
		r.fail(n, "repeat must say how many times")
	}
	if steps := o.take("steps"); steps != nil {
		p.steps = r.steps(steps, m)
	}
	o.close("times", "steps")
	return p
}

func (p *repeat) perform(ctx context.Context, sc *scene, at spot) error {
	for i := 1; i <= p.times; i++ {
		round := at.into("round" + strconv.Itoa(i))
		round.round = i
		if err := p.steps.perform(ctx, sc, round); err != nil {
			return err
		}
	}
	return nil
}

// choice performs one of two lists of steps.
type choice struct {
	value template
	is    []template
	then  sequence
	not   sequence
}

func readIf(r *reader, n *yaml.Node, m manner) action {
	o := r.object(n, "if")
	c := &choice{value: o.template("value")}
	if is := o.take("is"); is != nil {
		items := []*yaml.Node{is}
		if is.Kind == yaml.SequenceNode {
			items = r.items(is, "if: is", 100)
		}
		for _, item := range items {
			c.is = append(c.is, r.template(item, "if: is"))
		}
	}
	if c.value == nil || c.is == nil {
		r.fail(n, "if must have value and is")
	}
	c.then, c.not = r.branch(o, "then", m), r.branch(o, "else", m)
	o.close("value", "is", "then", "else")
	return c
}

func (r *reader) branch(o *object, key string, m manner) sequence {
	n := o.take(key)
	if n == nil {
		return nil
	}
	return r.steps(n, m)
}

func (c *choice) perform(ctx context.Context, sc *scene, at spot) error {
	value, err := c.value.fill(sc, at)
	if err != nil {
		return err
	}
	for _, t := range c.is {
		word, err := t.fill(sc, at)
		if err != nil {
			return err
		}
		if word == value {
			return c.then.perform(ctx, sc, at.into("then"))
		}
	}
	return c.not.perform(ctx, sc, at.into(otherwise))
}

// delay waits. A wait that lies behind is not repeated after a restart.
type delay struct{ d time.Duration }

func readDelay(r *reader, n *yaml.Node, _ manner) action { return &delay{r.duration(n, "delay")} }

func (d *delay) perform(ctx context.Context, sc *scene, _ spot) error {
	if sc.play.past.behind() {
		return nil
	}
	return wait(ctx, d.d)
}

// steered takes the next message to the run under way, if one comes in time.
type steered struct {
	within time.Duration
	as     string
	then   sequence
	not    sequence
}

func readSteered(r *reader, n *yaml.Node, m manner) action {
	r.steerable = true
	o := r.object(n, "steered")
	s := &steered{within: o.duration("within"), as: r.as(o)}
	s.then, s.not = r.branch(o, "then", m), r.branch(o, "else", m)
	o.close("within", "as", "then", "else")
	return s
}

func (s *steered) perform(ctx context.Context, sc *scene, at spot) error {
	text, came, err := s.take(ctx, sc, at)
	if err != nil {
		return err
	}
	if !came {
		return s.not.perform(ctx, sc, at.into(otherwise))
	}
	sc.play.vars.set(s.as, result{decision: "message", answer: text})
	return s.then.perform(ctx, sc, at.into("then"))
}

// take waits for a message and notes what came of it, so that it is the same after a
// restart.
func (s *steered) take(ctx context.Context, sc *scene, at spot) (string, bool, error) {
	past := sc.play.past
	if n := past.notes[at.path]; n != nil {
		past.consume()
		i := slices.IndexFunc(past.messages, func(m agent.Message) bool { return m.MessageID == n.MessageID })
		if i < 0 {
			return "", n.MessageID != "", nil
		}
		return past.messages[i].Content, true, nil
	}
	m, came, err := sc.play.mail.take(ctx, s.within)
	if err != nil {
		return "", false, fmt.Errorf("wait for a message: %w", err)
	}
	return m.Content, came, sc.note(ctx, note{Step: at.path, MessageID: m.MessageID})
}
