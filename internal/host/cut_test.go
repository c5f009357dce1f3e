package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/script"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// power is what a host loses when it dies: after so many commits nothing is written
// any more, whatever the host still does.
type power struct{ left atomic.Int64 }

func (p *power) fault(stage journal.Stage, _ journal.Group) error {
	if stage == journal.StageBuilt && p.left.Add(-1) < 0 {
		return errors.New("the host is dead")
	}
	return nil
}

const plenty = 1 << 30

// rich does all that a run can do and then ends. It resumes nothing.
func rich(ctx context.Context, h agent.Handle) agent.Ending {
	_ = h.Thought(ctx, "hm")
	_ = h.Text(ctx, "First a tool.")
	call, err := h.StartTool(ctx, agent.Tool{AgentID: "call_1", Name: "write", Kind: "edit", Args: narad.Raw(`{}`)})
	if err != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	a, err := h.Permit(ctx, agent.Permission{ToolCallID: call, Options: []agent.Option{{ID: "y", Action: "approve"}, {ID: "n", Action: "deny"}}})
	if err != nil {
		return agent.Ending{Outcome: agent.Cancelled}
	}
	_ = h.ToolOutput(ctx, call, "written\n")
	_ = h.FinishTool(ctx, call, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Quote(a.Decision)})
	task, _ := h.StartTool(ctx, agent.Tool{AgentID: "call_1", Name: "task", Args: narad.Raw(`{}`)})
	if n, err := h.StartRun(ctx, agent.Nested{Name: "helper", ParentToolCallID: task, Prompt: "help"}); err == nil {
		_ = n.Text(ctx, "Helping.")
		_ = n.Progress(ctx, agent.Progress{ID: "p", Category: "phase", Label: "Looking", Status: narad.ProgressActive, Privacy: narad.PrivacyPublic})
		_, _ = n.Ask(ctx, agent.Ask{Kind: "approval", Actions: []string{"approve", "deny"}, Members: []agent.Member{{RequestID: "a"}, {RequestID: "b"}}})
		_ = n.End(ctx, agent.Ending{})
	}
	_ = h.FinishTool(ctx, task, agent.ToolResult{Outcome: narad.OutcomeSuccess})
	_, _ = h.Ask(ctx, agent.Ask{Questions: []agent.Question{{Text: "Colour?", Options: []string{"red", "blue"}}}, ExpiresIn: time.Hour})
	_ = h.Remember(ctx, "ref")
	_ = h.Text(ctx, "Done.")
	return agent.Ending{StopReason: "completed"}
}

// scripted does the same and goes on after a restart.
const scripted = `
script: 1
steps:
  - think: hm
  - say: First a tool.
  - tool: {name: write, kind: edit, as: w, permit: {title: Write}, output: "written\n", delay: 1s, respond: {n: 1}}
  - parallel:
      - - tool: {name: left, delay: 2s, respond: 1}
      - - agent:
            name: helper
            prompt: help
            tool: task
            steps:
              - say: Helping.
              - ask: {title: Sure, members: [{id: a}, {id: b}]}
              - tool: {name: inner, delay: 1s, respond: 2}
  - question: {text: "Colour?", options: [red, blue]}
  - say: Done.
`

// play is the whole story: two messages, the second while the first run works, and a
// person who approves whatever is asked. A client repeats what it has no answer to.
type play struct {
	t    *testing.T
	j    journal.Journal
	kind agent.Kind
	w    *power
}

// live starts a host and reports whether it comes to the end of the story.
func (p *play) live(ctx context.Context) bool {
	f := newFeed(p.j)
	h := host.New(p.j, f, cast{p.kind}, host.Options{})
	defer f.Close()
	defer h.Close()
	if h.Start(ctx) != nil {
		return false
	}
	do := func(a access.Action, session, id string, c decide.Command) bool {
		answer, err := h.Do(ctx, access.Owner(), host.Request{Action: a, Session: session, CommandID: id, Command: c})
		if err == nil && !slices.Contains([]decide.Status{decide.Accepted, decide.AlreadyApplied, decide.Expired}, answer.Status) {
			p.t.Errorf("%#v: %+v", c, answer)
		}
		return err == nil
	}
	if !do(access.CreateSession, "s1", "", decide.Create{Payload: facts.Created{WorkspaceID: "default", RequiredProfiles: []string{}}}) {
		return false
	}
	for _, text := range []string{"work", "more"} {
		do(access.SendMessage, "s1", "c-"+text, decide.Message{MessageID: "m-" + text, Content: text})
	}
	for range 60 {
		if p.w.left.Load() < 0 {
			return false // the clients of a dead host notice
		}
		<-time.After(700 * time.Millisecond)
		open, _, _, err := h.Inbox(ctx, access.Owner(), "", "", 10)
		if err != nil {
			return false
		}
		for _, i := range open {
			do(access.ResolveInterrupt, "", "r-"+i.InterruptID, decide.Resolve{InterruptID: i.InterruptID, Decision: i.Actions[0]})
		}
		if v, err := h.Attach(ctx, access.Owner(), access.ReadSession, "s1"); err == nil {
			if s, err := v.Summary(ctx); err == nil && s.State == "idle" {
				return true
			}
		}
	}
	return false
}

// judge reads what was written and holds it to what every life of a host owes.
func (p *play) judge(lives string) *stage {
	p.t.Helper()
	s := &stage{t: p.t, journal: p.j}
	prompts := map[string]int{}
	ended := map[string]int{}
	for _, f := range s.facts("s1") {
		switch f := f.(type) {
		case *narad.MessageUserRecorded:
			prompts[f.Content]++
		case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
			ended[f.Envelope().RunID]++
		}
	}
	for _, text := range []string{"work", "more"} {
		if prompts[text] != 1 {
			p.t.Errorf("%s: %q was recorded %d times", lives, text, prompts[text])
		}
	}
	for run, n := range ended {
		if n != 1 {
			p.t.Errorf("%s: run %s ended %d times", lives, run, n)
		}
	}
	for row, err := range journal.Each[journal.OpenWorkRow](context.Background(), p.j, journal.OpenWork{}, noDamage(p.t)) {
		p.t.Errorf("%s: open work %+v, %v", lives, row, err)
	}
	return s
}

// cuts plays the story once for every place at which its host can die, and again with
// a second death shortly after, in the middle of recovery.
func cuts(t *testing.T, kind func() agent.Kind, judge func(*play, *stage, string)) {
	all := 0
	for first := int64(0); first < 200; first++ {
		done := false
		for _, second := range []int64{plenty, 0, 1, 2, 4} {
			synctest.Test(t, func(t *testing.T) {
				var w power
				j := memory(t, journal.Options{Fault: w.fault})
				p := &play{t: t, j: j, kind: kind(), w: &w}
				lives := fmt.Sprintf("died after %d and %d commits", first, second)
				w.left.Store(first)
				done = p.live(t.Context()) && w.left.Load() >= 0
				w.left.Store(second)
				p.live(t.Context())
				w.left.Store(plenty)
				if !p.live(t.Context()) {
					t.Errorf("%s: the story has no end", lives)
				}
				judge(p, p.judge(lives), lives)
				all++
			})
			if t.Failed() {
				return
			}
		}
		if done {
			if first < 10 {
				t.Errorf("the story has only %d commits", first)
			}
			t.Logf("%d stories, up to %d commits", all, first)
			return
		}
	}
	t.Error("the story does not end")
}

// Field cases 39, 45, 51, 56: wherever the host dies, everything open is closed, nothing
// acknowledged is lost, and the next message gets its turn.
func TestDeathAnywhere(t *testing.T) {
	cuts(t, func() agent.Kind { return acts{run: rich} }, func(p *play, s *stage, lives string) {
		for _, f := range s.facts("s1") {
			if r, ok := f.(*narad.RunError); ok && r.Code != "host_restarted" {
				p.t.Errorf("%s: run error %s", lives, r.Code)
			}
			if c, ok := f.(*narad.ToolCallFinished); ok && c.Outcome == narad.OutcomeError && c.Code != "outcome_unknown" {
				p.t.Errorf("%s: call error %s", lives, c.Code)
			}
		}
	})
}

// Field cases 31, 48: a run that resumes does nothing twice, and asks nothing twice.
func TestResumeAnywhere(t *testing.T) {
	kind := func() agent.Kind {
		k, err := script.New([]byte(scripted), script.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	cuts(t, kind, func(p *play, s *stage, lives string) {
		var root string
		done := map[string]int{}
		said := map[string]*strings.Builder{}
		for _, f := range s.facts("s1") {
			e := f.Envelope()
			switch f := f.(type) {
			case *narad.RunStarted:
				if f.RunID == f.RootRunID {
					root = f.RunID
				}
			case *narad.ToolCallStarted:
				done[root+" call "+f.ToolName]++
			case *narad.InterruptRequested:
				done[root+" ask "+f.Title]++
			case *narad.MessageTextDelta:
				if said[e.RunID] == nil {
					said[e.RunID] = &strings.Builder{}
				}
				said[e.RunID].WriteString(f.Delta)
			case *narad.RunError, *narad.RunCancelled:
				p.t.Errorf("%s: %s of %s", lives, f.Type(), e.RunID)
			}
		}
		for what, n := range done {
			if n != 1 {
				p.t.Errorf("%s: %s came %d times", lives, what, n)
			}
		}
		for _, call := range []string{"write", "left", "ask_user"} {
			if done[root+" call "+call] != 1 {
				p.t.Errorf("%s: the last run never called %s: %v", lives, call, done)
			}
		}
		for run, text := range said {
			if got := text.String(); got != "Helping." && got != "First a tool.Done." {
				p.t.Errorf("%s: run %s said %q", lives, run, got)
			}
		}
	})
}
