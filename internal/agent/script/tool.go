package script

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/narad"
	"go.yaml.in/yaml/v3"
)

// outcomeUnknown is the code of a call that a restart of the host cut off (R17).
const outcomeUnknown = "outcome_unknown"

// tool is one tool call.
type tool struct {
	name, kind string
	title      template
	paths      []template
	args       value
	permit     *permit
	output     []*words
	delay      time.Duration
	command    *command
	respond    value
	length     int // of a made-up response instead
	outcome    narad.Outcome
	code       string
	message    template
	as         string
	on         branches
}

var toolKinds = []string{"other", "read", "edit", "delete", "move", "search", "execute", "think", "fetch"}

func readTool(r *reader, n *yaml.Node, m manner) action {
	o := r.object(n, "tool")
	t := &tool{name: o.plain("name"), kind: o.word("kind", toolKinds...), title: o.template("title"), args: o.value("args")}
	if t.name == "" || len(t.name) > longestName {
		r.fail(n, "tool: a name of 1 to %d bytes is required", longestName)
	}
	if p := o.take("paths"); p != nil {
		for _, item := range r.items(p, "tool: paths", 100) {
			t.paths = append(t.paths, r.template(item, "tool: paths"))
		}
	}
	if p := o.take("permit"); p != nil {
		t.permit = r.permit(p, t.name)
	}
	t.readWork(r, o, m)
	t.readEnd(r, n, o)
	t.as = r.as(o)
	t.on = r.on(o, m, t.results()...)
	o.close("name", "kind", "title", "paths", "args", "permit", "output", "delay", "run", "timeout",
		"respond", "respond_bytes", "outcome", "code", "message", "as", "on")
	return t
}

// readWork reads what a call does while it is open.
func (t *tool) readWork(r *reader, o *object, m manner) {
	if out := o.take("output"); out != nil {
		items := []*yaml.Node{out}
		if out.Kind == yaml.SequenceNode {
			items = r.items(out, "tool: output", maxSteps)
		}
		for _, item := range items {
			w, inner := r.words(item, "tool: output", m)
			if inner != nil {
				inner.close("text", "bytes", "chunk", "pace")
			}
			t.output = append(t.output, w)
		}
	}
	t.delay = o.duration("delay")
	if line := o.template("run"); line != nil {
		if r.opt.NoCommands {
			r.fail(o.node, "tool: run: this script runs no commands")
		}
		t.command = &command{line: line, timeout: o.duration("timeout")}
	}
}

// readEnd reads how a call ends.
func (t *tool) readEnd(r *reader, n *yaml.Node, o *object) {
	t.respond, t.length = o.value("respond"), o.number("respond_bytes", maxBytes)
	outcome := o.left["outcome"]
	t.outcome = narad.Outcome(o.word("outcome", "success", "error", "cancelled"))
	t.code, t.message = o.name("code"), o.template("message")
	switch {
	case t.respond.kind != 0 && t.length > 0:
		r.fail(n, "tool: either respond or respond_bytes")
	case t.command != nil && outcome != nil:
		r.fail(outcome, "tool: the outcome of a command is its own")
	}
}

// results returns the results that a call can have.
func (t *tool) results() []string {
	words := []string{"success", "error", "cancelled", "unknown"}
	if t.permit != nil {
		words = append(words, t.permit.refusals()...)
	}
	return words
}

func (t *tool) perform(ctx context.Context, sc *scene, at spot) error {
	res, err := t.call(ctx, sc, at)
	if err != nil {
		return err
	}
	sc.play.vars.set(t.as, res)
	words := []string{res.outcome}
	if res.decision != "" && !allows(res.decision) {
		words = append(denials(res.decision), res.outcome)
	}
	return t.on.follow(ctx, sc, at, words...)
}

// call makes the call, or goes on with what is recorded of it.
func (t *tool) call(ctx context.Context, sc *scene, at spot) (result, error) {
	known := sc.play.past.calls[at.path]
	switch {
	case known == nil:
		id, err := t.start(ctx, sc, at)
		if err != nil {
			return result{}, err
		}
		return t.work(ctx, sc, at, id, nil)
	case known.finish != nil:
		sc.play.past.consume()
		return known.result(), nil
	case known.gate != nil && known.gate.resolved == nil:
		sc.play.past.consume()
		return t.work(ctx, sc, at, known.id, known.gate)
	}
	// It may have been performed, in part or wholly: it is never performed again.
	sc.play.past.consume()
	return finishCall(ctx, sc, known.id, agent.ToolResult{Outcome: narad.OutcomeError, Code: outcomeUnknown})
}

// result returns what a finished call of the past left behind.
func (c *pastCall) result() result {
	res := resultOf(agent.ToolResult{Outcome: c.finish.Outcome, Code: c.finish.Code})
	if c.gate != nil && c.gate.resolved != nil {
		res.decision, res.reason = c.gate.resolved.Decision, c.gate.resolved.Reason
	}
	return res
}

func resultOf(r agent.ToolResult) result {
	res := result{outcome: string(r.Outcome), code: r.Code}
	if r.Code == outcomeUnknown {
		res.outcome = "unknown"
	}
	return res
}

func (t *tool) start(ctx context.Context, sc *scene, at spot) (string, error) {
	call, err := t.describe(sc, at)
	if err != nil {
		return "", err
	}
	return sc.h.StartTool(ctx, call)
}

// describe says what the call is about.
func (t *tool) describe(sc *scene, at spot) (call agent.Tool, err error) {
	call = agent.Tool{AgentID: at.path, Name: t.name, Kind: t.kind}
	if call.Args, err = t.args.arguments(sc, at); err != nil {
		return call, err
	}
	if call.Title, err = t.title.fill(sc, at); err != nil {
		return call, err
	}
	for _, p := range t.paths {
		path, err := p.fill(sc, at)
		if err != nil {
			return call, err
		}
		call.Paths = append(call.Paths, path)
	}
	return call, nil
}

// work asks for permission, if the call needs one, performs an open call and ends it.
func (t *tool) work(ctx context.Context, sc *scene, at spot, id string, gate *pastWait) (result, error) {
	var answer agent.Answer
	if t.permit != nil {
		var err error
		if answer, err = t.permit.ask(ctx, sc, at, id, gate); err != nil {
			return result{}, err
		}
		if !allows(answer.Decision) {
			return refuse(ctx, sc, id, answer)
		}
	}
	end, err := t.act(ctx, sc, at, id)
	if err != nil {
		return result{}, err
	}
	res, err := finishCall(ctx, sc, id, end)
	res.decision, res.reason = answer.Decision, answer.Reason
	return res, err
}

// refuse ends a call that was not permitted.
func refuse(ctx context.Context, sc *scene, id string, answer agent.Answer) (result, error) {
	end := agent.ToolResult{Outcome: narad.OutcomeCancelled, Code: "denied", Message: answer.Said}
	if answer.Decision == narad.DecisionExpired {
		end.Code = narad.DecisionExpired
	}
	res, err := finishCall(ctx, sc, id, end)
	res.decision, res.reason = answer.Decision, answer.Reason
	return res, err
}

func finishCall(ctx context.Context, sc *scene, id string, end agent.ToolResult) (result, error) {
	return resultOf(end), sc.h.FinishTool(ctx, id, end)
}

// act performs the call: its output, its time, its command.
func (t *tool) act(ctx context.Context, sc *scene, at spot, id string) (agent.ToolResult, error) {
	var shown tail
	put := func(text string) error {
		shown.add(text)
		return sc.h.ToolOutput(ctx, id, text)
	}
	for _, w := range t.output {
		text, err := w.fill(sc, at)
		if err != nil {
			return agent.ToolResult{}, err
		}
		if err := w.stream(ctx, text, put); err != nil {
			return agent.ToolResult{}, err
		}
	}
	if err := wait(ctx, t.delay); err != nil {
		return agent.ToolResult{}, err
	}
	end := agent.ToolResult{Outcome: t.outcome, Code: t.code}
	if t.command != nil {
		var err error
		if end, err = t.command.run(ctx, sc, at, put); err != nil {
			return agent.ToolResult{}, err
		}
	}
	end, err := t.answer(sc, at, end)
	if end.Message == "" && end.Outcome != narad.OutcomeSuccess {
		end.Message = shown.reason(end.Response)
	}
	if err == nil {
		end.Touches, err = t.touches(sc, at, end.Outcome)
	}
	return end, err
}

// touches are the files of a call that succeeded in what its kind says.
func (t *tool) touches(sc *scene, at spot, outcome narad.Outcome) (list []facts.FileTouch, err error) {
	if outcome != narad.OutcomeSuccess || !slices.Contains([]string{"read", "edit", "delete"}, t.kind) {
		return nil, nil
	}
	for _, p := range t.paths {
		path, err := p.fill(sc, at)
		if err != nil {
			return nil, err
		}
		list = append(list, facts.FileTouch{Path: path, Op: t.kind})
	}
	return list, nil
}

// answer adds to a call's end what the file says of it.
func (t *tool) answer(sc *scene, at spot, end agent.ToolResult) (agent.ToolResult, error) {
	message, err := t.message.fill(sc, at)
	if err != nil {
		return end, err
	}
	if message != "" {
		end.Message = message
	}
	if t.length > 0 {
		end.Response = narad.Quote(filler(t.length))
		return end, nil
	}
	response, err := t.respond.fill(sc, at)
	if err == nil && response != nil {
		end.Response = response
	}
	return end, err
}

// allows reports whether a decision lets a call go on.
func allows(decision string) bool { return decision == "approve" || decision == "approve_always" }

// denials returns the branches that a decision against a call may take, best first.
func denials(decision string) []string {
	if plain, ok := strings.CutSuffix(decision, "_always"); ok {
		return []string{decision, plain}
	}
	return []string{decision}
}
