package script

import (
	"context"
	"errors"

	"github.com/mahati-host/mahati/internal/agent"
	"go.yaml.in/yaml/v3"
)

// tell says something to another session, and may wait for its answer.
type tell struct {
	to, text template
	ask      bool
	as       string
	on       branches
}

func readTell(r *reader, n *yaml.Node, m manner) action {
	o := r.object(n, "tell")
	t := &tell{to: o.template("to"), text: o.template("text"), ask: o.yes("ask")}
	if t.to == nil || t.text == nil {
		r.fail(n, "tell must have to and text")
	}
	t.as = r.as(o)
	t.on = r.on(o, m, resultAnswered, resultUnanswered, resultRefused)
	o.close("to", "text", "ask", "as", "on")
	return t
}

// The results of speaking to another session. What only tells has none but the refusal.
const (
	resultAnswered   = "answered"
	resultUnanswered = "unanswered"
	resultRefused    = "refused"
)

func (t *tell) perform(ctx context.Context, sc *scene, at spot) error {
	askID, err := t.say(ctx, sc, at)
	switch {
	case errors.Is(err, agent.ErrInvalid):
		sc.play.vars.set(t.as, result{outcome: resultRefused})
		return t.on.follow(ctx, sc, at, resultRefused)
	case err != nil || !t.ask:
		return err
	}
	content, answered, err := sc.h.AwaitAnswer(ctx, askID)
	if err != nil {
		return err
	}
	is := result{outcome: resultUnanswered, answer: content}
	if answered {
		is.outcome = resultAnswered
	}
	sc.play.vars.set(t.as, is)
	return t.on.follow(ctx, sc, at, is.outcome)
}

// say tells it, unless the past tells of it.
func (t *tell) say(ctx context.Context, sc *scene, at spot) (askID string, err error) {
	if sc.play.past.done[at.path] {
		sc.play.past.consume()
		return sc.play.past.asks[at.path], nil
	}
	out := agent.Telling{AgentID: at.path, Ask: t.ask}
	if err := sc.fills(at, map[*string]template{&out.To: t.to, &out.Content: t.text}); err != nil {
		return "", err
	}
	return sc.h.Tell(ctx, out)
}

// reply answers the ask with which the run began.
type reply struct{ text template }

func readReply(r *reader, n *yaml.Node, _ manner) action { return &reply{r.template(n, "answer")} }

func (a *reply) perform(ctx context.Context, sc *scene, at spot) error {
	return sc.once(at, func() error {
		from := sc.play.from
		if from == nil || from.AskID == "" {
			return nil // nobody has asked
		}
		text, err := a.text.fill(sc, at)
		if err != nil {
			return err
		}
		err = sc.h.AnswerAsk(ctx, from.AskID, text, at.path)
		if errors.Is(err, agent.ErrConflict) {
			return nil // nobody waits any more
		}
		return err
	})
}
