package script

import (
	"context"
	"errors"

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
	o.close("reason", "usage")
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

func (f *finish) perform(context.Context, *scene, spot) error {
	return ended{agent.Ending{Outcome: agent.Finished, StopReason: f.reason, Usage: f.usage}}
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
