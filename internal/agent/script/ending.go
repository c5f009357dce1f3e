package script

import (
	"context"
	"errors"
	"math"
	"strconv"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
	"go.yaml.in/yaml/v3"
)

// ended is the error by which steps say that their run is to end.
type ended struct{ agent.Ending }

// Error says that the run ends.
func (e ended) Error() string { return "the run ends: " + e.Code }

func failure(code, message string) error {
	return ended{agent.Ending{Outcome: agent.Failed, Code: code, Message: message}}
}

// endingOf returns how a run ends whose steps returned err. Refusals of the handle
// are faults of the script, and their texts are for its author.
func endingOf(ctx context.Context, err error) agent.Ending {
	var e ended
	switch {
	case errors.As(err, &e):
		return e.Ending
	case ctx.Err() != nil, errors.Is(err, agent.ErrStopped), errors.Is(err, agent.ErrEnded):
		return agent.Ending{Outcome: agent.Cancelled, Code: "stopped"}
	case errors.Is(err, agent.ErrTooLarge), errors.Is(err, errTooLong):
		return agent.Ending{Outcome: agent.Failed, Code: "too_large", Message: "A value of the script is too large."}
	}
	return agent.Ending{Outcome: agent.Failed, Code: "script_error", Message: "The script cannot be performed: " + err.Error()}
}

// fail ends the run with a fault.
type fail struct {
	code    string
	message template
}

func readFail(r *reader, n *yaml.Node, _ manner) action {
	r.alone(n, "fail")
	if n.Kind == yaml.ScalarNode {
		return &fail{"script_failed", r.template(n, "fail")}
	}
	o := r.object(n, "fail")
	f := &fail{o.name("code"), o.template("message")}
	if f.code == "" {
		f.code = "script_failed"
	}
	o.close("code", "message")
	return f
}

func (f *fail) perform(_ context.Context, sc *scene, at spot) error {
	message, err := f.message.fill(sc, at)
	if err != nil {
		return err
	}
	return failure(f.code, message)
}

// finish ends the run before its last step.
type finish struct {
	reason string
	usage  *narad.Usage
	turn   facts.Turn
}

func readFinish(r *reader, n *yaml.Node, _ manner) action {
	r.alone(n, "finish")
	if n.Kind == yaml.ScalarNode {
		return &finish{reason: r.name(n, "finish")}
	}
	o := r.object(n, "finish")
	f := &finish{reason: o.name("reason")}
	if f.reason == "" {
		f.reason = "completed"
	}
	if u := o.take("usage"); u != nil {
		f.usage = r.usage(u)
	}
	f.turn = r.turn(o)
	o.close("reason", "usage", "last_round", "cost_usd", "context_window")
	return f
}

// usage reads figures. One that is not told is unknown (R42).
func (r *reader) usage(n *yaml.Node) *narad.Usage {
	o := r.object(n, "usage")
	u := &narad.Usage{}
	for key, p := range map[string]**int64{"prompt": &u.PromptTokens, "completion": &u.CompletionTokens, "total": &u.TotalTokens} {
		if v := o.take(key); v != nil {
			tokens := int64(r.number(v, "usage: "+key, 0, 1<<40))
			*p = &tokens
		}
	}
	o.close("prompt", "completion", "total")
	return u
}

// turn reads what else a run took. What is not told is unknown (R42).
func (r *reader) turn(o *object) facts.Turn {
	t := facts.Turn{CostUSD: r.dollars(o, "cost_usd"), ContextWindow: r.tokens(o, "context_window")}
	n := o.take("last_round")
	if n == nil {
		return t
	}
	round := r.object(n, "last_round")
	input, output := r.tokens(round, "input"), r.tokens(round, "output")
	if input == nil || output == nil {
		r.fail(n, "last_round: input and output are required")
		return t
	}
	t.LastRound = &facts.Tokens{
		Input: *input, Output: *output, CacheRead: r.tokens(round, "cache_read"),
		CacheWrite: r.tokens(round, "cache_write"), CostUSD: r.dollars(round, "cost_usd"),
	}
	round.close("input", "output", "cache_read", "cache_write", "cost_usd")
	return t
}

func (r *reader) tokens(o *object, name string) *int64 {
	n := o.take(name)
	if n == nil {
		return nil
	}
	tokens := int64(r.number(n, name, 0, 1<<40))
	return &tokens
}

func (r *reader) dollars(o *object, name string) *float64 {
	n := o.take(name)
	if n == nil {
		return nil
	}
	amount, err := strconv.ParseFloat(r.plain(n, name), 64)
	if err != nil || math.IsNaN(amount) || amount < 0 || amount > 1e9 {
		r.fail(n, "%s must be an amount in US dollars", name)
		return nil
	}
	return &amount
}

func (f *finish) perform(context.Context, *scene, spot) error {
	return ended{agent.Ending{Outcome: agent.Finished, StopReason: f.reason, Usage: f.usage, Turn: f.turn}}
}

// crash ends the host, once.
type crash struct{}

func readCrash(r *reader, n *yaml.Node, _ manner) action {
	if r.opt.Crash == nil {
		r.fail(n, "crash is for tests of the host and not enabled")
	}
	if yes := r.plain(n, "crash"); yes != "true" {
		r.fail(n, "crash must be true")
	}
	return crash{}
}

func (crash) perform(ctx context.Context, sc *scene, at spot) error {
	if sc.play.past.notes[at.path] != nil {
		sc.play.past.consume()
		return nil
	}
	if err := sc.note(ctx, note{Step: at.path}); err != nil {
		return err
	}
	sc.play.opt.Crash()
	return ctx.Err()
}
