package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// performs lets an agent perform one run of a session to its end.
func performs(t *testing.T, run func(t *testing.T, ctx context.Context, h agent.Handle) agent.Ending, judge func(*stage)) {
	t.Helper()
	does := func(ctx context.Context, h agent.Handle) agent.Ending { return run(t, ctx, h) }
	alone(t, acts{run: does}, host.Options{}, func(t *testing.T, s *stage) {
		s.say("s1", "go")
		time.Sleep(time.Minute)
		synctest.Wait()
		judge(s)
	})
}

// said joins the deltas of a run's messages, and lists them.
func (s *stage) said(run string) (text string, deltas []string) {
	s.t.Helper()
	for _, f := range s.facts("s1") {
		if d, ok := f.(*narad.MessageTextDelta); ok && (run == "" || d.RunID == run) {
			deltas = append(deltas, d.Delta)
		}
	}
	return strings.Join(deltas, ""), deltas
}

// DESIGN §7: text waits 40 ms or for 2 KiB, and is recorded in stretches of at most
// 16 KiB.
func TestTextIsCoalesced(t *testing.T) {
	performs(t, func(t *testing.T, ctx context.Context, h agent.Handle) agent.Ending {
		for range 10 {
			_ = h.Text(ctx, "a")
			pass(time.Millisecond)
		}
		pass(time.Second)
		_ = h.Text(ctx, strings.Repeat("b", 2048)) // enough: recorded when the call returns
		_ = h.Text(ctx, strings.Repeat("c", 40_000))
		return agent.Ending{}
	}, func(s *stage) {
		_, deltas := s.said("")
		var got []string
		for _, d := range deltas {
			got = append(got, fmt.Sprintf("%c%d", d[0], len(d)))
		}
		if fmt.Sprint(got) != "[a10 b2048 c16384 c16384 c7232]" {
			t.Errorf("got %v", got)
		}
	})
}

// Field case 77: however a text is cut, the deltas are whole characters and join to it;
// what stays half a character is replaced at the end.
func TestCharactersAreNeverCut(t *testing.T) {
	text := "e\u0301 日本語 👩‍👩‍👧 ß" + strings.Repeat("🎵", 5000)
	performs(t, func(t *testing.T, ctx context.Context, h agent.Handle) agent.Ending {
		call, _ := h.StartTool(ctx, agent.Tool{Name: "x"})
		for i := range len(text) {
			_ = h.Text(ctx, text[i:i+1])
			if i < 60 { // another stream, and another fact, in the middle of a character
				_ = h.ToolOutput(ctx, call, text[i:i+1])
				_ = h.Progress(ctx, agent.Progress{ID: "p", Category: "c", Label: "l", Status: narad.ProgressCompleted, Privacy: narad.PrivacyPublic})
				pass(50 * time.Millisecond)
			}
		}
		_ = h.FinishTool(ctx, call, agent.ToolResult{Outcome: narad.OutcomeSuccess})
		_ = h.Text(ctx, "\xff|\xf0\x9f\x8e")
		return agent.Ending{}
	}, func(s *stage) {
		got, _ := s.said("")
		if want := text + "\uFFFD|\uFFFD\uFFFD\uFFFD"; got != want {
			t.Errorf("got %q, want %q", tail(got), tail(want))
		}
		var output strings.Builder
		for _, f := range s.facts("s1") {
			if o, ok := facts.Read[facts.Output](f, facts.ToolOutput); ok {
				output.WriteString(o.Text)
			}
		}
		if want := strings.ToValidUTF8(text[:60], "?"); strings.Trim(output.String(), "\uFFFD") != strings.Trim(want, "?") {
			t.Errorf("output: got %q, want %q", output.String(), want)
		}
	})
}

func tail(s string) string { return s[max(0, len(s)-60):] }

// Field case 107: text and calls in the order in which they were made, with one byte at
// a time and nothing lost.
func TestOrderOfTextAndTools(t *testing.T) {
	performs(t, func(t *testing.T, ctx context.Context, h agent.Handle) agent.Ending {
		for n := range 3 {
			for _, c := range fmt.Sprintf("text %d", n) {
				_ = h.Text(ctx, string(c))
			}
			call, _ := h.StartTool(ctx, agent.Tool{Name: fmt.Sprint("tool", n)})
			_ = h.ToolOutput(ctx, call, "o")
			_ = h.FinishTool(ctx, call, agent.ToolResult{Outcome: narad.OutcomeSuccess})
		}
		_ = h.Text(ctx, "last")
		return agent.Ending{}
	}, func(s *stage) {
		var got []string
		for _, f := range s.facts("s1") {
			switch f := f.(type) {
			case *narad.MessageTextDelta:
				got = append(got, f.Delta)
			case *narad.ToolCallStarted:
				got = append(got, f.ToolName)
			case *narad.MessageTextCompleted:
				got = append(got, "|")
			}
		}
		if want := "text 0 | tool0 text 1 | tool1 text 2 | tool2 last |"; strings.Join(got, " ") != want {
			t.Errorf("got %s, want %s", strings.Join(got, " "), want)
		}
	})
}

// One run, many goroutines: text, tools and permissions at once keep the session legal
// (the stage judges each fact).
func TestParallelUseOfAHandle(t *testing.T) {
	performs(t, func(t *testing.T, ctx context.Context, h agent.Handle) agent.Ending {
		var all sync.WaitGroup
		for n := range 8 {
			all.Go(func() {
				for range 10 {
					_ = h.Text(ctx, "t")
					_ = h.Thought(ctx, "h")
					call, err := h.StartTool(ctx, agent.Tool{AgentID: "call_1", Name: fmt.Sprint(n)})
					if err != nil {
						t.Error(err)
						return
					}
					_ = h.ToolOutput(ctx, call, "o")
					_ = h.EndMessage(ctx)
					if err := h.FinishTool(ctx, call, agent.ToolResult{Outcome: narad.OutcomeSuccess}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		return agent.Ending{}
	}, func(s *stage) {
		if text, _ := s.said(""); text != strings.Repeat("t", 80) {
			t.Errorf("got %d of 80 letters", len(text))
		}
	})
}

// Field cases 65, 68: nested runs speak for themselves, their text is flushed with the
// end of the run above, and a grandchild's question reaches who decides.
func TestNestedHandles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory(t, journal.Options{}), acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
			child, err := h.StartRun(ctx, agent.Nested{AgentID: "a", Name: "child", Prompt: "do"})
			if err != nil {
				t.Error(err)
				return agent.Ending{}
			}
			grandchild, _ := child.StartRun(ctx, agent.Nested{Name: "grandchild"})
			for range 5 {
				_ = h.Text(ctx, "r")
				_ = child.Text(ctx, "c")
				_ = grandchild.Text(ctx, "g")
			}
			if got := child.Info(); got.Prompt.Content != "do" || got.RootRunID != h.Info().RunID || got.RunID == h.Info().RunID {
				t.Errorf("the child's info is %+v", got)
			}
			a, err := grandchild.Ask(ctx, agent.Ask{Kind: "approval", Actions: []string{"approve", "deny"}})
			if err != nil || a.Decision != "approve" {
				t.Errorf("the grandchild was told %+v %v", a, err)
			}
			_ = grandchild.Text(ctx, "G")
			_ = child.Text(ctx, "C")
			return agent.Ending{} // neither was ended: the host does
		}}, host.Options{})
		defer s.close()
		s.create("s1")
		root := s.say("s1", "go").RunID
		synctest.Wait()
		asked := s.inbox()[0]
		if asked.RootRunID != root || asked.RunID == root {
			t.Errorf("the inbox has %+v, want a question of the grandchild below %s", asked, root)
		}
		s.resolve(asked.InterruptID, "approve")
		synctest.Wait()
		for run, want := range map[string]string{root: "rrrrr", asked.RunID: "gggggG"} {
			if got, _ := s.said(run); got != want {
				t.Errorf("run %s said %q, want %q", run, got, want)
			}
		}
		if all, _ := s.said(""); strings.Count(all, "c")+strings.Count(all, "C") != 6 {
			t.Errorf("the child's words are lost: %q", all)
		}
	})
}

// R43: a call's output is kept up to 1 MiB, and then one marker says that there was more.
func TestToolOutputIsBounded(t *testing.T) {
	performs(t, func(t *testing.T, ctx context.Context, h agent.Handle) agent.Ending {
		call, _ := h.StartTool(ctx, agent.Tool{Name: "x"})
		for range 150 {
			if err := h.ToolOutput(ctx, call, strings.Repeat("x", 10_000)); err != nil {
				t.Error(err)
			}
		}
		_ = h.FinishTool(ctx, call, agent.ToolResult{Outcome: narad.OutcomeSuccess})
		if err := h.ToolOutput(ctx, call, "late"); !errors.Is(err, agent.ErrInvalid) {
			t.Errorf("output of a finished call: %v", err)
		}
		return agent.Ending{}
	}, func(s *stage) {
		size, markers, after := 0, 0, 0
		for _, f := range s.facts("s1") {
			if o, ok := facts.Read[facts.Output](f, facts.ToolOutput); ok {
				size += len(o.Text)
				after += markers
				if o.Truncated {
					markers++
				}
			}
		}
		if size != 1<<20 || markers != 1 || after != 0 {
			t.Errorf("%d bytes with %d markers and %d outputs after it, want 1 MiB and one marker", size, markers, after)
		}
	})
}

// R7: arguments above the size of an event are refused and nothing is appended; a
// response is replaced by its size and beginning, however it is too large.
func TestLargeValues(t *testing.T) {
	numbers := "[" + strings.Repeat("1e1,", 100_000) + "0]"
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	performs(t, func(t *testing.T, ctx context.Context, h agent.Handle) agent.Ending {
		_ = h.Text(ctx, "I begin")
		for _, args := range []string{`"` + strings.Repeat("x", 600_000) + `"`, numbers} {
			if _, err := h.StartTool(ctx, agent.Tool{Name: "x", Args: narad.Raw(args)}); !errors.Is(err, agent.ErrTooLarge) {
				t.Errorf("%d bytes of arguments: %v", len(args), err)
			}
		}
		for _, response := range []string{`"` + strings.Repeat("é", 300_000) + `"`, numbers, deep} {
			call, err := h.StartTool(ctx, agent.Tool{Name: "x", Args: narad.Raw("{}")})
			if err != nil {
				t.Fatal(err)
			}
			err = h.FinishTool(ctx, call, agent.ToolResult{Outcome: narad.OutcomeError, Response: narad.Raw(response), Code: "c", Message: strings.Repeat("m\xff", 600_000)})
			if err != nil {
				t.Errorf("%d bytes of response: %v", len(response), err)
			}
		}
		return agent.Ending{Outcome: agent.Failed, Message: strings.Repeat("\x00", 600_000)}
	}, func(s *stage) {
		var sizes []string
		for _, f := range s.facts("s1") {
			if c, ok := f.(*narad.ToolCallFinished); ok {
				if string(c.Response.Field("truncated")) != "true" {
					t.Errorf("got a response %.80s", c.Response)
				}
				sizes = append(sizes, string(c.Response.Field("bytes")))
			}
		}
		if fmt.Sprint(sizes) != fmt.Sprintf("[600002 %d %d]", len(numbers), len(deep)) {
			t.Errorf("got sizes %v", sizes)
		}
		if got := s.story("s1"); !strings.HasSuffix(got, "run.error") {
			t.Errorf("got %s", got)
		}
	})
}

// What makes no sense is refused, and neither the run nor the session suffers.
func TestNonsenseOfAnAgent(t *testing.T) {
	performs(t, func(t *testing.T, ctx context.Context, h agent.Handle) agent.Ending {
		_ = h.Text(ctx, "kept")
		for name, f := range map[string]func() error{
			"a tool without a name": func() error { _, err := h.StartTool(ctx, agent.Tool{}); return err },
			"arguments that are no JSON": func() error {
				_, err := h.StartTool(ctx, agent.Tool{Name: "x", Args: narad.Raw("{")})
				return err
			},
			"a finish of nothing":      func() error { return h.FinishTool(ctx, "x", agent.ToolResult{}) },
			"output of nothing":        func() error { return h.ToolOutput(ctx, "x", "x") },
			"progress without a label": func() error { return h.Progress(ctx, agent.Progress{ID: "x"}) },
			"a fact of the host's":     func() error { return h.Custom(ctx, "mahati.session.created", narad.Raw("{}")) },
			"a name that is none":      func() error { return h.Custom(ctx, "No Name", narad.Raw("{}")) },
			"an ask without actions":   func() error { _, err := h.Ask(ctx, agent.Ask{Kind: "approval"}); return err },
			"a permission for nothing": func() error { _, err := h.Permit(ctx, agent.Permission{ToolCallID: "x"}); return err },
			"a question awaited":       func() error { _, err := h.Await(ctx, "x"); return err },
			"a run resumed":            func() error { _, err := h.Resume(ctx, "x"); return err },
			"the root ended":           func() error { return h.End(ctx, agent.Ending{}) },
			"a call that is not open": func() error {
				_, err := h.StartRun(ctx, agent.Nested{ParentToolCallID: "x"})
				return err
			},
		} {
			if err := f(); !errors.Is(err, agent.ErrInvalid) {
				t.Errorf("%s: got %v, want invalid", name, err)
			}
		}
		if err := h.Remember(ctx, "ref\xff"); err != nil {
			t.Errorf("remember: %v", err)
		}
		negative := int64(-1)
		return agent.Ending{Usage: &narad.Usage{PromptTokens: &negative}, StopReason: "completed"}
	}, func(s *stage) {
		text, _ := s.said("")
		if story := s.story("s1"); text != "kept" || !strings.HasSuffix(story, "run.finished") {
			t.Errorf("said %q: %s", text, story)
		}
	})
}

// After its run nothing is told, by whatever a goroutine kept.
func TestHandleAfterTheEnd(t *testing.T) {
	kept := make(chan agent.Handle, 2)
	performs(t, func(t *testing.T, ctx context.Context, h agent.Handle) agent.Ending {
		child, _ := h.StartRun(ctx, agent.Nested{Name: "child"})
		kept <- h
		kept <- child
		return agent.Ending{}
	}, func(s *stage) {
		before := s.story("s1")
		for range 2 {
			h := <-kept
			_, toolErr := h.StartTool(s.t.Context(), agent.Tool{Name: "x"})
			for _, err := range []error{h.Text(s.t.Context(), "x"), toolErr, h.EndMessage(s.t.Context()), h.Remember(s.t.Context(), "r")} {
				if !errors.Is(err, agent.ErrEnded) {
					s.t.Errorf("after the end: got %v, want ended", err)
				}
			}
		}
		pass(time.Second)
		if got := s.story("s1"); got != before {
			t.Errorf("told after the end: %s", strings.TrimPrefix(got, before))
		}
	})
}

// An agent that panics, or cannot be started, fails its own run alone; what it said of
// it is in no log (field case 98).
func TestAgentsThatFail(t *testing.T) {
	const secret = "sk-marker"
	for name, a := range map[string]acts{
		"agent_failed":      {run: func(context.Context, agent.Handle) agent.Ending { panic(secret) }},
		"agent_unavailable": {opens: func() error { return errors.New("no such command") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := open(t, memory(t, journal.Options{}), a, host.Options{Logger: logger(&log)})
				defer s.close()
				s.create("s1")
				for range 2 {
					s.say("s1", "go")
					synctest.Wait()
				}
				n := 0
				for _, f := range s.facts("s1") {
					if r, ok := f.(*narad.RunError); ok && r.Code == name && !strings.Contains(r.Message, secret) && (name != "agent_unavailable" || strings.Contains(r.Message, "The agent test cannot be started")) {
						n++
					}
				}
				if n != 2 {
					t.Errorf("%d runs failed as %s, want 2: %s", n, name, s.story("s1"))
				}
				if log.Len() == 0 || strings.Contains(log.String(), secret) {
					t.Errorf("the log says %s", log.String())
				}
			})
		})
	}
}

// R10: when a gate is open its question is recorded, so that what is told then stands
// behind it; its answer may have come before somebody waits for it.
func TestGateIsOpenBeforeItIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory(t, journal.Options{}), acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
			call, _ := h.StartTool(ctx, agent.Tool{Name: "write"})
			options := []agent.Option{{ID: "y", Action: "approve"}, {ID: "n", Action: "deny"}}
			first, err := h.OpenGate(ctx, agent.Permission{ToolCallID: call, Options: options})
			if err != nil {
				t.Error(err)
			}
			second, _ := h.OpenGate(ctx, agent.Permission{ToolCallID: call, Options: options})
			_ = h.Progress(ctx, agent.Progress{ID: "p", Category: "c", Label: "l", Status: narad.ProgressCompleted, Privacy: narad.PrivacyPublic})
			pass(time.Second) // the first is decided meanwhile
			if a, err := h.Await(ctx, first); err != nil || a.Decision != "approve" {
				t.Errorf("got %+v %v, want the decision that was made", a, err)
			}
			if err := h.Retract(ctx, second, "withdrawn"); err != nil {
				t.Error(err)
			}
			if a, err := h.Await(ctx, second); err != nil || a.Decision != narad.DecisionExpired || a.Reason != "withdrawn" {
				t.Errorf("got %+v %v, want that it was withdrawn", a, err)
			}
			if err := h.Retract(ctx, first, "withdrawn"); err != nil {
				t.Errorf("of what was decided: %v", err)
			}
			_ = h.FinishTool(ctx, call, agent.ToolResult{Outcome: narad.OutcomeSuccess})
			return agent.Ending{}
		}}, host.Options{})
		defer s.close()
		s.create("s1")
		s.say("s1", "go")
		synctest.Wait()
		list := s.inbox()
		if len(list) != 2 {
			t.Fatalf("got %d questions, want two", len(list))
		}
		s.resolve(list[0].InterruptID, "approve")
		time.Sleep(time.Minute)
		gate := "run.started interrupt.requested run.paused"
		want := strings.Join([]string{created, begun, "tool.call.started", gate, gate, "progress.recorded", decided, decided, "tool.call.finished run.finished"}, " ")
		if got := s.story("s1"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if a := s.resolve(list[1].InterruptID, "approve"); a.Status != decide.Expired {
			t.Errorf("a decision that comes too late: got %+v, want expired", a)
		}
	})
}

// R42: a round names its provider and its model.
func TestRound(t *testing.T) {
	performs(t, func(t *testing.T, ctx context.Context, h agent.Handle) agent.Ending {
		_ = h.Text(ctx, "before")
		if err := h.Round(ctx, agent.Round{Provider: "acp", Model: "m\xff"}); err != nil {
			t.Error(err)
		}
		for _, r := range []agent.Round{{Provider: "p"}, {Model: "m"}, {Provider: "p", Model: strings.Repeat("m", 257)}} {
			if err := h.Round(ctx, r); !errors.Is(err, agent.ErrInvalid) {
				t.Errorf("%+v: got %v, want invalid", r, err)
			}
		}
		return agent.Ending{}
	}, func(s *stage) {
		var got []facts.Rounded
		for _, f := range s.facts("s1") {
			if r, ok := facts.Read[facts.Rounded](f, facts.Round); ok {
				got = append(got, r)
			}
		}
		if len(got) != 1 || got[0] != (facts.Rounded{Provider: "acp", Model: "m\uFFFD"}) {
			t.Errorf("got %+v, want one round", got)
		}
		if story := s.story("s1"); !strings.Contains(story, "message.text.delta run.custom message.text.completed") {
			t.Errorf("the text before it stands elsewhere: %s", story)
		}
	})
}

// An agent that tells more than the disk takes waits, also if it does not wait for each
// call: what is taken meanwhile is bounded.
func TestFloodOfText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold, flooded := make(chan struct{}), make(chan struct{})
		var held atomic.Bool
		j := memory(t, journal.Options{Fault: func(stage journal.Stage, _ journal.Group) error {
			if held.Load() && stage == journal.StageBuilt {
				<-hold
			}
			return nil
		}})
		late := 0
		s := open(t, j, acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
			defer close(flooded)
			held.Store(true)
			var first sync.WaitGroup
			defer first.Wait()
			first.Go(func() { _ = h.Text(ctx, strings.Repeat("x", 64<<10)) }) // is being written all the time
			pass(time.Millisecond)
			defer func() { held.Store(false); close(hold) }()
			for range 200 {
				within, cancel := context.WithTimeout(ctx, time.Millisecond)
				if err := h.Text(within, strings.Repeat("x", 64<<10)); errors.Is(err, context.DeadlineExceeded) {
					late++
				}
				cancel()
			}
			return agent.Ending{}
		}}, host.Options{})
		defer s.close()
		s.create("s1")
		s.say("s1", "go")
		<-flooded
		time.Sleep(time.Minute)
		synctest.Wait()
		if text, _ := s.said(""); late != 200 || len(text) < 1<<20 || len(text) > 1<<20+64<<10 {
			t.Errorf("%d calls were late and %d bytes taken, want 200 and about 1 MiB", late, len(text))
		}
	})
}

// What is told with a context that is done is not taken.
func TestTextOfADoneContext(t *testing.T) {
	performs(t, func(t *testing.T, ctx context.Context, h agent.Handle) agent.Ending {
		done, cancel := context.WithCancel(ctx)
		cancel()
		for _, tell := range []func(context.Context, string) error{h.Text, h.Thought} {
			if err := tell(done, "late"); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want cancelled", err)
			}
		}
		return agent.Ending{}
	}, func(s *stage) {
		if got := s.story("s1"); got != created+" "+begun+" run.finished" {
			t.Errorf("got %s", got)
		}
	})
}

// Whatever bytes an agent gives, they end no host: they are replaced, or refused.
func TestBytesThatAreNoText(t *testing.T) {
	const bad = "a\xff\x00\xed\xa0\x80b"
	performs(t, func(t *testing.T, ctx context.Context, h agent.Handle) agent.Ending {
		for _, raw := range []narad.Raw{narad.Raw(`{"a":"` + "\xff" + `"}`), narad.Raw(bad), nil} {
			call, err := h.StartTool(ctx, agent.Tool{AgentID: bad, Name: bad, Kind: bad, Title: bad, Paths: []string{bad}, Args: raw})
			if err != nil {
				call, _ = h.StartTool(ctx, agent.Tool{Name: "x"})
			}
			_ = h.ToolOutput(ctx, call, bad)
			id, err := h.OpenGate(ctx, agent.Permission{
				ToolCallID: call, Title: bad, Message: bad, Resource: bad, Detail: bad,
				Options: []agent.Option{{ID: bad, Name: bad, Action: "approve"}, {Action: "deny"}},
			})
			if err == nil {
				_ = h.Retract(ctx, id, bad)
			}
			_ = h.FinishTool(ctx, call, agent.ToolResult{Outcome: narad.OutcomeError, Response: raw, Code: bad, Message: bad})
			_ = h.Progress(ctx, agent.Progress{ID: bad, Category: bad, Label: bad, Detail: bad, Status: narad.ProgressActive, Privacy: narad.PrivacyPublic})
			_ = h.Custom(ctx, "a.b", raw)
			_ = h.Custom(ctx, bad, raw)
			_ = h.Remember(ctx, bad)
			_ = h.Round(ctx, agent.Round{Provider: bad, Model: bad})
			if n, err := h.StartRun(ctx, agent.Nested{AgentID: bad, Name: bad, Prompt: bad}); err == nil {
				_ = n.Text(ctx, bad)
				_ = n.End(ctx, agent.Ending{Outcome: agent.Failed, Code: bad, Message: bad})
			}
			within, cancel := context.WithTimeout(ctx, time.Second)
			_, _ = h.Ask(within, agent.Ask{
				AgentID: bad, Kind: "approval", Title: bad, Message: bad, Actions: []string{"approve", "deny", bad}, Input: raw,
			})
			cancel()
		}
		return agent.Ending{Outcome: agent.Failed, Code: bad, Message: bad}
	}, func(s *stage) {
		if got := s.story("s1"); !strings.HasSuffix(got, "run.error") {
			t.Errorf("got %s", got)
		}
		if got := s.summary("s1").State; got != "idle" {
			t.Errorf("got %s, want an idle session", got)
		}
	})
}
