package agenttest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/agenttest"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/session"
)

// performer is an agent that does what a function does.
type performer func(ctx context.Context, h agent.Handle) agent.Ending

func (p performer) Run(ctx context.Context, h agent.Handle) agent.Ending { return p(ctx, h) }

func (performer) Steer(context.Context, agent.Message) error { return nil }

func (performer) Close() error { return nil }

// perform runs p in a bubble and compares the story.
func perform(t *testing.T, opt agenttest.Options, p performer, want string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		host := agenttest.New(t, opt)
		host.Do(p, "go")
		compare(t, host, want)
	})
}

func compare(t *testing.T, host *agenttest.Session, want string) {
	t.Helper()
	want = strings.ReplaceAll(strings.TrimPrefix(want, "\n"), "\t", "")
	if diff := cmp.Diff(want, host.Story()); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

// must fails for an error that is not expected.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Errorf("got error %v", err)
		}
		return v
	}
}

func approve(session.Interrupt) (agenttest.Decision, bool) {
	return agenttest.Decision{Decision: "approve"}, true
}

var options = []agent.Option{{ID: "y", Name: "Yes", Action: "approve"}, {ID: "n", Name: "No", Action: "deny"}}

func TestTextIsGathered(t *testing.T) {
	perform(t, agenttest.Options{}, func(ctx context.Context, h agent.Handle) agent.Ending {
		for _, part := range []string{"a", "b \xf0\x9f", "\x98\x80"} {
			h.Text(ctx, part)
		}
		<-time.After(41 * time.Millisecond) // the bubble's time
		h.Text(ctx, "c \xe6")
		h.Thought(ctx, "hm")
		h.Text(ctx, "\x97\xa5 \xff \xe6\x97")
		h.Custom(ctx, "in.between", narad.Raw("1"))
		h.Text(ctx, "\xa5")
		id := must[string](t)(h.StartTool(ctx, agent.Tool{AgentID: "x", Name: "tool", Kind: "read"}))
		h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess})
		h.Text(ctx, "cut \xe6")
		h.EndMessage(ctx)
		h.Text(ctx, "new")
		return agent.Ending{StopReason: "completed"}
	}, `
	run-1 run.started
	run-1 message.user.recorded id=message-1 scope=session text="go"
	run-1 message.text.started id=message-2 scope=session
	run-1 message.text.delta id=message-2 text="ab 😀"
	run-1 message.text.delta id=message-2 text="c "
	run-1 reasoning.started
	run-1 reasoning.delta id=reasoning-1 text="hm"
	run-1 message.text.delta id=message-2 text="日 � "
	run-1 run.custom name=in.between value=1
	run-1 message.text.delta id=message-2 text="日"
	run-1 reasoning.completed
	run-1 message.text.completed id=message-2
	run-1 tool.call.started id=call-1 tool=tool kind=read agent=x args={}
	run-1 tool.call.finished id=call-1 outcome=success response=null
	run-1 message.text.started id=message-3 scope=session
	run-1 message.text.delta id=message-3 text="cut �"
	run-1 message.text.completed id=message-3
	run-1 message.text.started id=message-4 scope=session
	run-1 message.text.delta id=message-4 text="new"
	run-1 message.text.completed id=message-4
	run-1 run.finished reason=completed
	`)
}

func TestLongTextIsCutBetweenCharacters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat("日本語😀", 10_000)
		host := agenttest.New(t, agenttest.Options{})
		host.Do(performer(func(ctx context.Context, h agent.Handle) agent.Ending {
			h.Text(ctx, text)
			return agent.Ending{}
		}), "go")
		var joined strings.Builder
		for _, rec := range host.Facts() {
			if d, ok := rec.(*narad.MessageTextDelta); ok {
				if len(d.Delta) > 16<<10 {
					t.Errorf("got a delta of %d bytes, want at most 16 KiB", len(d.Delta))
				}
				joined.WriteString(d.Delta)
			}
		}
		if joined.String() != text {
			t.Error("the joined deltas are not the text")
		}
	})
}

func TestOutputEndsWithMarker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := agenttest.New(t, agenttest.Options{})
		host.Do(performer(func(ctx context.Context, h agent.Handle) agent.Ending {
			id, _ := h.StartTool(ctx, agent.Tool{Name: "tool"})
			for range 3 {
				h.ToolOutput(ctx, id, strings.Repeat("x", 600_000))
			}
			h.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Quote(strings.Repeat("y", 600_000))})
			return agent.Ending{}
		}), "go")
		if n := strings.Count(host.Story(), `"truncated":true`); n != 2 {
			t.Errorf("got %d marks of truncation, want one of the output (R43) and one of the response (R7)", n)
		}
	})
}

func TestAsk(t *testing.T) {
	members := []agent.Member{{RequestID: "a", ToolName: "edit"}, {RequestID: "b"}}
	answer := func(session.Interrupt) (agenttest.Decision, bool) {
		return agenttest.Decision{Decision: "approve", Members: map[string]string{"b": "deny"}, Reason: "why"}, true
	}
	perform(t, agenttest.Options{Answer: answer}, func(ctx context.Context, h agent.Handle) agent.Ending {
		got := must[agent.Answer](t)(h.Ask(ctx, agent.Ask{AgentID: "q", Kind: "approval", Actions: []string{"approve", "deny"}, Members: members}))
		want := agent.Answer{InterruptID: "interrupt-1", Decision: "deny", Reason: "why", Said: "why", Members: map[string]string{"a": "approve", "b": "deny"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("answer (-want +got):\n%s", diff)
		}
		again := must[agent.Answer](t)(h.Await(ctx, got.InterruptID))
		if diff := cmp.Diff(want, again); diff != "" {
			t.Errorf("answer of Await (-want +got):\n%s", diff)
		}
		return agent.Ending{}
	}, `
	run-1 run.started
	run-1 message.user.recorded id=message-1 scope=session text="go"
	run-1 interrupt.requested id=interrupt-1 kind=approval actions=approve,deny agent=q
	run-1 run.paused
	run-1 interrupt.resolved id=interrupt-1 decision=deny members=a:approve,b:deny
	run-1 run.resumed
	run-1 run.finished
	`)
}

func TestQuestionIsAskedThroughTool(t *testing.T) {
	answer := func(session.Interrupt) (agenttest.Decision, bool) { return agenttest.Decision{Decision: "1"}, true }
	perform(t, agenttest.Options{Answer: answer}, func(ctx context.Context, h agent.Handle) agent.Ending {
		must[agent.Answer](t)(h.Ask(ctx, agent.Ask{AgentID: "q", Questions: []agent.Question{{Text: "?", Options: []string{"x", "y"}, Recommended: -1}}}))
		return agent.Ending{}
	}, `
	run-1 run.started
	run-1 message.user.recorded id=message-1 scope=session text="go"
	run-1 tool.call.started id=call-1 tool=ask_user kind=other agent=q args={"questions":[{"Text":"?","Options":["x","y"],"Recommended":-1,"Multiple":false,"Free":false}]}
	run-1 interrupt.requested id=interrupt-1 kind=question actions=0,1,dismiss agent=q
	run-1 run.paused
	run-1 interrupt.resolved id=interrupt-1 decision=1
	run-1 run.resumed
	run-1 tool.call.finished id=call-1 outcome=success response="1"
	run-1 run.finished
	`)
}

// TestClosingOrder holds the facts of R14 and R15 to their order.
func TestClosingOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := agenttest.New(t, agenttest.Options{})
		run := host.Start(performer(func(ctx context.Context, h agent.Handle) agent.Ending {
			id := must[string](t)(h.StartTool(ctx, agent.Tool{Name: "tool"}))
			h.Progress(ctx, agent.Progress{ID: "p", Category: "c", Label: "busy", Status: narad.ProgressActive, Privacy: narad.PrivacyPublic})
			child := must[agent.Handle](t)(h.StartRun(ctx, agent.Nested{AgentID: "n", ParentToolCallID: id, Prompt: "sub"}))
			h.Text(ctx, "root")
			child.Text(ctx, "child")
			if _, err := h.Permit(ctx, agent.Permission{ToolCallID: id, Options: options}); err == nil {
				t.Error("got no error of a permit that was stopped")
			}
			for what, err := range map[string]error{
				"StartTool": second(h.StartTool(context.Background(), agent.Tool{Name: "late"})),
				"StartRun":  second(child.StartRun(context.Background(), agent.Nested{})),
				"Ask":       second(h.Ask(context.Background(), agent.Ask{Kind: "approval", Actions: []string{"x"}})),
				"Permit":    second(h.Permit(context.Background(), agent.Permission{ToolCallID: id, Options: options})),
			} {
				if !errors.Is(err, agent.ErrStopped) {
					t.Errorf("%s after the stop: got %v, want ErrStopped", what, err)
				}
			}
			h.Text(context.Background(), " last words")
			return agent.Ending{Outcome: agent.Finished, StopReason: "completed"}
		}), "go")
		synctest.Wait()
		run.Stop()
		run.Stop()
		run.Wait()
		compare(t, host, `
		run-1 run.started
		run-1 message.user.recorded id=message-1 scope=session text="go"
		run-1 tool.call.started id=call-1 tool=tool args={}
		run-1 progress.recorded id=p status=active category=c label="busy"
		run-2 run.started parent=run-1 call=call-1 agent=n
		run-2 message.user.recorded id=message-2 scope=run text="sub"
		run-1 message.text.started id=message-3 scope=session
		run-1 message.text.delta id=message-3 text="root"
		run-3 run.started parent=run-1 call=call-1 gate=true
		run-3 interrupt.requested id=interrupt-1 kind=approval actions=approve,deny
		run-3 run.paused
		run-1 run.stop.requested target=run-1
		run-1 run.stop.requested target=run-2
		run-1 run.stop.requested target=run-3
		run-3 interrupt.resolved id=interrupt-1 decision=expired
		run-3 run.resumed
		run-3 run.cancelled
		run-2 message.text.started id=message-4 scope=run
		run-2 message.text.delta id=message-4 text="child"
		run-2 message.text.completed id=message-4
		run-2 run.cancelled
		run-1 message.text.delta id=message-3 text=" last words"
		run-1 tool.call.finished id=call-1 outcome=cancelled response=null
		run-1 message.text.completed id=message-3
		run-1 progress.recorded id=p status=cancelled category=c label="busy"
		run-1 run.cancelled
		`)
	})
}

func second[T any](_ T, err error) error { return err }

// TestRefusals: what makes no sense is refused, changes nothing, and is told.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := agenttest.New(t, agenttest.Options{})
		var kept agent.Handle
		host.Do(performer(func(ctx context.Context, h agent.Handle) agent.Ending {
			kept = h
			before := host.Batches()
			for what, err := range map[string]error{
				"FinishTool":   h.FinishTool(ctx, "call-9", agent.ToolResult{Outcome: narad.OutcomeSuccess}),
				"End of root":  h.End(ctx, agent.Ending{}),
				"Custom":       h.Custom(ctx, "mahati.mine", narad.Raw("1")),
				"Custom name":  h.Custom(ctx, "No", narad.Raw("1")),
				"Resume":       second(h.Resume(ctx, "run-9")),
				"Await":        second(h.Await(ctx, "interrupt-9")),
				"Permit":       second(h.Permit(ctx, agent.Permission{ToolCallID: "call-9", Options: options})),
				"tool no name": second(h.StartTool(ctx, agent.Tool{})),
				"pack":         second(h.Ask(ctx, agent.Ask{Kind: "approval", Actions: []string{"x"}, Members: make([]agent.Member, 33)})),
			} {
				if !errors.Is(err, agent.ErrInvalid) {
					t.Errorf("%s: got %v, want ErrInvalid", what, err)
				}
			}
			_, err := h.StartTool(ctx, agent.Tool{Name: "big", Args: narad.Quote(strings.Repeat("x", 600_000))})
			if !errors.Is(err, agent.ErrTooLarge) {
				t.Errorf("large arguments: got %v, want ErrTooLarge", err)
			}
			if host.Batches() != before {
				t.Errorf("refused records changed something; facts:\n%s", host.Story())
			}
			return agent.Ending{}
		}), "go")
		if err := kept.EndMessage(context.Background()); !errors.Is(err, agent.ErrEnded) {
			t.Errorf("after the end: got %v, want ErrEnded", err)
		}
		if len(host.Refused()) < 8 {
			t.Errorf("got refusals %q, want all of them", host.Refused())
		}
	})
}

// TestCutAndResume: after a cut nothing is recorded by the first life; recovery closes
// the open call and keeps the one whose gate is open (R17).
func TestCutAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := agenttest.New(t, agenttest.Options{})
		run := host.Start(performer(func(ctx context.Context, h agent.Handle) agent.Ending {
			h.StartTool(ctx, agent.Tool{AgentID: "a", Name: "open"})
			gated, _ := h.StartTool(ctx, agent.Tool{AgentID: "b", Name: "gated"})
			h.Text(ctx, "said")
			h.Permit(ctx, agent.Permission{ToolCallID: gated, Options: options})
			if err := h.Text(context.Background(), "late"); !errors.Is(err, agent.ErrEnded) {
				t.Errorf("after the cut: got %v, want ErrEnded", err)
			}
			return agent.Ending{}
		}), "go")
		synctest.Wait()
		host.Cut()
		run.Wait()
		host.Resume(performer(func(ctx context.Context, h agent.Handle) agent.Ending {
			var types []string
			for _, rec := range h.Info().Past {
				types = append(types, string(rec.Type()))
			}
			if n := len(types); n != 10 || !slices.Contains(types, "tool.call.finished") || h.Info().Prompt.Content != "go" {
				t.Errorf("got a past of %d facts %q", n, types)
			}
			go func() {
				synctestWait(host)
				host.Resolve("interrupt-1", agenttest.Decision{Decision: "approve"})
			}()
			must[agent.Answer](t)(h.Await(ctx, "interrupt-1"))
			h.FinishTool(ctx, "call-2", agent.ToolResult{Outcome: narad.OutcomeSuccess})
			h.Text(ctx, " more")
			return agent.Ending{}
		}), agenttest.Cut{}).Wait()
		compare(t, host, `
		run-1 run.started
		run-1 message.user.recorded id=message-1 scope=session text="go"
		run-1 tool.call.started id=call-1 tool=open agent=a args={}
		run-1 tool.call.started id=call-2 tool=gated agent=b args={}
		run-1 message.text.started id=message-2 scope=session
		run-1 message.text.delta id=message-2 text="said"
		run-2 run.started parent=run-1 call=call-2 gate=true
		run-2 interrupt.requested id=interrupt-1 kind=approval actions=approve,deny
		run-2 run.paused
		run-1 tool.call.finished id=call-1 outcome=error code=outcome_unknown response=null
		run-2 interrupt.resolved id=interrupt-1 decision=approve
		run-2 run.resumed
		run-2 run.finished
		run-1 tool.call.finished id=call-2 outcome=success response=null
		run-1 message.text.delta id=message-2 text=" more"
		run-1 message.text.completed id=message-2
		run-1 run.finished
		`)
	})
}

// synctestWait waits until the session has an open interrupt.
func synctestWait(host *agenttest.Session) {
	for n := 1; len(host.Waiting()) == 0; n++ {
		host.Reach(n, nil)
	}
}

func TestCutPlaces(t *testing.T) {
	agentOf := func(told *[]error) performer {
		return func(ctx context.Context, h agent.Handle) agent.Ending {
			_, err := h.StartTool(ctx, agent.Tool{Name: "one"})
			*told = append(*told, err)
			return agent.Ending{}
		}
	}
	for _, test := range []struct {
		cut     agenttest.Cut
		batches int
		told    bool // whether the agent learns that its tool call is recorded
	}{
		{agenttest.Cut{After: 1}, 1, false}, {agenttest.Cut{Before: 2}, 1, false}, {agenttest.Cut{After: 2}, 2, false},
		{agenttest.Cut{Before: 3}, 2, true}, {agenttest.Cut{After: 3}, 3, true}, {agenttest.Cut{}, 3, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var told []error
			host := agenttest.New(t, agenttest.Options{Cut: test.cut})
			host.Do(agentOf(&told), "go")
			if got := host.Batches(); got != test.batches {
				t.Errorf("cut %+v: got %d batches, want %d", test.cut, got, test.batches)
			}
			if got := len(told) == 1 && told[0] == nil; got != test.told {
				t.Errorf("cut %+v: the agent was told %v, want success %t", test.cut, told, test.told)
			}
		})
	}
}

func TestExpiry(t *testing.T) {
	perform(t, agenttest.Options{}, func(ctx context.Context, h agent.Handle) agent.Ending {
		began := time.Now()
		got := must[agent.Answer](t)(h.Ask(ctx, agent.Ask{Kind: "approval", Actions: []string{"approve"}, ExpiresIn: time.Minute}))
		if took := time.Since(began); got.Decision != narad.DecisionExpired || took != time.Minute {
			t.Errorf("got %+v after %s, want expired after 1m", got, took)
		}
		return agent.Ending{Outcome: agent.Failed, Code: "late", Message: "Too late."}
	}, `
	run-1 run.started
	run-1 message.user.recorded id=message-1 scope=session text="go"
	run-1 interrupt.requested id=interrupt-1 kind=approval actions=approve
	run-1 run.paused
	run-1 interrupt.resolved id=interrupt-1 decision=expired
	run-1 run.resumed
	run-1 run.error code=late message="Too late."
	`)
}

// TestEveryFactIsAHosts: the recorded bytes are admitted by a fresh state.
func TestEveryFactIsAHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := agenttest.New(t, agenttest.Options{Answer: approve})
		host.Do(performer(func(ctx context.Context, h agent.Handle) agent.Ending {
			child := must[agent.Handle](t)(h.StartRun(ctx, agent.Nested{AgentID: "n", Name: "helper"}))
			id := must[string](t)(child.StartTool(ctx, agent.Tool{Name: "tool"}))
			must[agent.Answer](t)(child.Permit(ctx, agent.Permission{ToolCallID: id, Options: options}))
			child.FinishTool(ctx, id, agent.ToolResult{Outcome: narad.OutcomeSuccess})
			child.End(ctx, agent.Ending{})
			h.Remember(ctx, "ref")
			h.Custom(ctx, "my.fact", narad.Raw(`{"a":1}`))
			return agent.Ending{}
		}), "go")
		state := session.New(session.Options{Remember: session.RememberAll})
		for _, rec := range host.Facts() {
			if r := state.Admit(rec); r.Kind != session.Applied {
				t.Errorf("%s: got %v, want applied", rec.Type(), r)
			}
		}
		if host.Remembered() != "ref" {
			t.Errorf("got remembered %q, want ref", host.Remembered())
		}
	})
}
