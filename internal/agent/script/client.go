package script

import (
	"context"

	"github.com/mahati-host/mahati/internal/agent"
	"go.yaml.in/yaml/v3"
)

// clientCall is one call of a tool that the run's executor runs on its machine.
type clientCall struct {
	tool
}

func readClient(r *reader, n *yaml.Node, m manner) action {
	o := r.object(n, "client")
	c := &clientCall{tool{name: o.plain("name"), kind: o.word("kind", toolKinds...), title: o.template("title"), args: o.value("args")}}
	if c.name == "" || len(c.name) > longestName {
		r.fail(n, "client: a name of 1 to %d bytes is required", longestName)
	}
	c.as = r.as(o)
	c.on = r.on(o, m, c.results()...)
	o.close("name", "kind", "title", "args", "as", "on")
	return c
}

func (c *clientCall) perform(ctx context.Context, sc *scene, at spot) error {
	end, err := c.call(ctx, sc, at)
	if err != nil {
		return err
	}
	res := resultOf(end)
	sc.play.vars.set(c.as, res)
	return c.on.follow(ctx, sc, at, res.outcome)
}

// call makes the call, or goes on with what is recorded of it. One that was open at a
// restart is the executor's to end: it is awaited, and never made again.
func (c *clientCall) call(ctx context.Context, sc *scene, at spot) (agent.ToolResult, error) {
	known := sc.play.past.calls[at.path]
	switch {
	case known == nil:
		call, err := c.describe(sc, at)
		if err != nil {
			return agent.ToolResult{}, err
		}
		return sc.h.CallClient(ctx, call, nil)
	case known.finish != nil:
		sc.play.past.consume()
		return agent.ResultOf(known.finish), nil
	}
	sc.play.past.consume()
	return sc.h.AwaitClient(ctx, known.id)
}
