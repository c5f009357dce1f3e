package decide_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
	"pgregory.net/rapid"
)

// Whatever is commanded in whatever state, the facts proposed are legal, a refusal
// proposes none, the desk is what the facts add up to (the bed proves all three), and
// the session can be brought to rest at any moment.
func TestAnyCommandInAnyState(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := &player{bed: newBed(rt), draw: rt}
		p.do(decide.Create{Payload: created("default")})
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			p.env.MayStart = rapid.IntRange(0, 3).Draw(rt, "place") > 0
			p.env.CanSteer = rapid.Bool().Draw(rt, "steers")
			p.env.Now = p.env.Now.Add(msec(rapid.Int64Range(-500, 2000).Draw(rt, "time")))
			c := p.command()
			if a := p.do(c); a.Status == decide.NotFound && p.exists(c) {
				rt.Fatalf("%#v was not found: %+v", c, a)
			}
		}
		p.checkLogs()
		p.bringToRest(rapid.SampledFrom([]string{"end", "stop", "restart"}).Draw(rt, "rest"))
		p.checkLogs()
	})
}

// player draws commands that often make sense.
type player struct {
	*bed
	draw *rapid.T
	n    int
}

func (p *player) pick(what string, ids ...string) string {
	return rapid.SampledFrom(append(ids, "nothing")).Draw(p.draw, what)
}

func (p *player) fresh(what string) string {
	p.n++
	return fmt.Sprintf("%s-%d", what, p.n)
}

func (p *player) run() string {
	ids := p.runs() // ended and waiting ones too
	for _, r := range p.owner.OpenRuns() {
		ids = append(ids, r.RunID, r.RunID, r.RunID)
	}
	return p.pick("run", ids...)
}

func (p *player) call() string {
	ids := []string{"never"}
	for _, r := range p.owner.OpenRuns() {
		for _, t := range p.owner.OpenTools(r.RunID) {
			ids = append(ids, t.ToolCallID)
		}
	}
	return p.pick("call", ids...)
}

func (p *player) interrupt() string {
	var ids []string
	for _, f := range p.list {
		if i, ok := f.(*narad.InterruptRequested); ok {
			ids = append(ids, i.InterruptID)
		}
	}
	for _, i := range p.owner.OpenInterrupts() {
		ids = append(ids, i.InterruptID, i.InterruptID)
	}
	return p.pick("interrupt", ids...)
}

// exists reports whether what a command names was there.
func (p *player) exists(c decide.Command) bool {
	switch c := c.(type) {
	case decide.Resolve:
		return slices.ContainsFunc(p.list, func(f narad.Authority) bool {
			i, ok := f.(*narad.InterruptRequested)
			return ok && i.InterruptID == c.InterruptID
		})
	case decide.Stop:
		return c.RootRunID == "" || slices.Contains(p.runs(), c.RootRunID)
	}
	return false
}

func (p *player) command() decide.Command {
	draws := []func() decide.Command{
		p.message, p.message, p.message, p.ask, p.ask, p.permit, p.permit, p.resolve, p.resolve, p.resolve,
		func() decide.Command {
			return decide.Stop{RootRunID: rapid.SampledFrom([]string{"", p.run()}).Draw(p.draw, "which")}
		},
		func() decide.Command { return decide.Release{} },
		func() decide.Command { return decide.Withdraw{RunID: p.run()} },
		func() decide.Command { return decide.StartNext{} },
		func() decide.Command {
			return rapid.SampledFrom([]decide.Command{decide.Archive{}, decide.Restore{}, decide.Restore{}}).Draw(p.draw, "away")
		},
		func() decide.Command { return decide.Redact{MessageID: p.pick("m", "m-1", "m-2"), Reason: "r"} },
		func() decide.Command { return decide.Expire{InterruptID: p.interrupt()} },
		func() decide.Command { return decide.Await{RunID: p.run(), InterruptID: p.interrupt()} },
		func() decide.Command {
			return decide.Retract{RunID: p.run(), InterruptID: p.interrupt(), Reason: "withdrawn"}
		},
		func() decide.Command { return decide.Ended{RunID: p.run(), Ending: p.ending()} },
		func() decide.Command { return decide.EndRun{RunID: p.run(), Ending: p.ending()} },
		func() decide.Command { return decide.Recover{Resumes: rapid.Bool().Draw(p.draw, "resumes")} },
		func() decide.Command { return decide.EndMessage{RunID: p.run()} },
		p.posture,
	}
	for range 3 { // agents tell more than people command
		draws = append(draws, p.say, p.say, p.startTool, p.startTool, p.startTool, p.finishTool, p.startRun, p.startRun, p.progress)
	}
	return rapid.SampledFrom(draws).Draw(p.draw, "command")()
}

func (p *player) message() decide.Command {
	m := decide.Message{Content: "x", WhenBusy: rapid.SampledFrom([]decide.WhenBusy{"", decide.WhenBusyReject, decide.WhenBusySteer}).Draw(p.draw, "busy")}
	if rapid.Bool().Draw(p.draw, "own id") {
		m.MessageID = p.fresh("m")
	}
	return m
}

// posture appends the fact that no command makes yet (R18), and then does nothing.
func (p *player) posture() decide.Command {
	now := rapid.SampledFrom([]string{facts.Attended, facts.Detached}).Draw(p.draw, "posture")
	p.apply(facts.Session(facts.Posture, facts.Postured{Posture: now, Was: p.desk.Posture}))
	return decide.Expire{InterruptID: "nothing"}
}

func (p *player) ending() decide.Ending {
	used := int64(7)
	return decide.Ending{
		State: rapid.SampledFrom([]session.RunState{session.Finished, session.Failed, session.Cancelled}).Draw(p.draw, "ending"),
		Usage: &narad.Usage{PromptTokens: &used},
	}
}

func (p *player) say() decide.Command {
	run := p.run()
	if rapid.Bool().Draw(p.draw, "aloud") {
		return decide.Say{RunID: run, MessageID: p.voice(run), Text: "x"}
	}
	return decide.Think{RunID: run, MessageID: p.voice(run), Text: "x"}
}

// voice is the open message of a run, or a new one.
func (p *player) voice(run string) string {
	if open := p.owner.OpenMessages(run); len(open) > 0 {
		return open[0]
	}
	return p.fresh("said")
}

func (p *player) startTool() decide.Command {
	return decide.StartTool{RunID: p.run(), ToolCallID: p.fresh("call"), AgentID: "call_1", Name: "x", Args: narad.Raw("{}")}
}

func (p *player) finishTool() decide.Command {
	if rapid.Bool().Draw(p.draw, "only output") {
		return decide.ToolOutput{RunID: p.run(), Output: output(p.call(), "x")}
	}
	return decide.FinishTool{RunID: p.run(), ToolCallID: p.call(), Outcome: narad.OutcomeSuccess, Response: narad.Raw("1")}
}

func (p *player) startRun() decide.Command {
	s := decide.StartRun{ParentRunID: p.run(), RunID: p.fresh("run")}
	if rapid.Bool().Draw(p.draw, "by a call") {
		s.ParentToolCallID = p.call()
	}
	if rapid.Bool().Draw(p.draw, "told") {
		s.Prompt, s.MessageID = "do", p.fresh("prompt")
	}
	return s
}

func (p *player) progress() decide.Command {
	return decide.Progress{
		RunID: p.run(), ProgressID: p.pick("activity", "a", "b"), Category: "phase", Label: "l", Privacy: narad.PrivacyPublic,
		Status: rapid.SampledFrom([]narad.ProgressStatus{narad.ProgressActive, narad.ProgressCompleted}).Draw(p.draw, "status"),
	}
}

func (p *player) permit() decide.Command {
	c := permit(p.run(), p.call(), p.fresh("gate"), p.fresh("i"))
	if rapid.IntRange(0, 3).Draw(p.draw, "ruled") == 0 {
		c.Ruling = &decide.Ruling{Rule: "r", Decision: rapid.SampledFrom([]string{"approve", "deny", "other"}).Draw(p.draw, "ruling")}
	}
	return c
}

func (p *player) ask() decide.Command {
	a := decide.Ask{
		RunID: p.run(), InterruptID: p.fresh("i"), WaitID: p.fresh("w"), Kind: "approval",
		Actions: []string{"approve", "deny", "approve_always", "stop"},
	}
	if rapid.Bool().Draw(p.draw, "expires") {
		a.ExpiresIn = msec(rapid.Int64Range(1, 3000).Draw(p.draw, "in"))
	}
	switch rapid.IntRange(0, 3).Draw(p.draw, "what") {
	case 0:
		a.Members = members("a", "b")
	case 1:
		a.ToolCallID, a.Questions = p.fresh("ask"), []decide.Question{{Text: "?", Options: []string{"x", "y"}}}
	case 2:
		a.ToolCallID, a.Questions = p.fresh("ask"), []decide.Question{{Text: "?"}, {Text: "!"}}
	}
	return a
}

func (p *player) resolve() decide.Command {
	r := decide.Resolve{InterruptID: p.interrupt(), Decision: rapid.SampledFrom([]string{
		"approve", "deny", "approve_always", "stop", "0", "answer", "dismiss", "expired", "maybe",
	}).Draw(p.draw, "decision")}
	if rapid.Bool().Draw(p.draw, "members") {
		r.Members = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3).Draw(p.draw, "for")
	}
	if rapid.Bool().Draw(p.draw, "answers") {
		r.Answers = []decide.QuestionAnswer{{Text: "x"}, {Text: "y"}}
	}
	if rapid.IntRange(0, 3).Draw(p.draw, "revision") == 0 {
		r.ExpectedRevision = rapid.Int64Range(1, p.owner.Last()+1).Draw(p.draw, "at")
	}
	return r
}

// bringToRest ends what is active, as often as something starts after it.
func (p *player) bringToRest(how string) {
	for range 10 {
		root := p.owner.ActiveRootRunID()
		if root == "" {
			break
		}
		switch how {
		case "stop":
			if a := p.do(decide.Stop{RootRunID: root}); a.Status != decide.Accepted && a.Status != decide.AlreadyApplied {
				p.t.Fatalf("stop of the active run: %+v", a)
			}
			p.must(decide.Ended{RunID: root})
		case "restart":
			p.must(decide.Recover{})
		default:
			p.must(decide.Ended{RunID: root})
		}
	}
	if p.owner.HasOpenWork() || len(p.owner.OpenInterrupts()) > 0 {
		p.t.Fatalf("something is open:\n%s", tellAll(p.list))
	}
	p.idle()
	p.once()
}

func (p *player) must(c decide.Command) {
	if a := p.do(c); a.Status != decide.Accepted {
		p.t.Fatalf("%#v: %+v", c, a)
	}
}

// once fails unless every top-level run that was named came once, and ended once or was
// withdrawn or waits.
func (p *player) once() {
	for _, id := range p.runs() {
		started, ended := 0, 0
		for _, f := range p.list {
			switch f.(type) {
			case *narad.RunStarted:
				started += btoi(f.Envelope().RunID == id)
			case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
				ended += btoi(f.Envelope().RunID == id)
			}
		}
		_, waits := p.desk.Queued(id)
		state, _ := p.ended(id)
		rests := waits || state == decide.Withdrawn
		if want := btoi(!rests); started != want || ended != want {
			p.t.Fatalf("run %s: %d starts and %d ends, waits %v, state %s", id, started, ended, waits, state)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
