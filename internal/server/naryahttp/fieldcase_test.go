package naryahttp_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
	"github.com/mahati-host/mahati/narya/naryatest"
)

// overARestart plays something, ends the host in the midst of it, goes on, and returns what
// the stream of the next host tells from its beginning, held to what is promised.
func overARestart(t *testing.T, o bedOptions, before, after func(b *bed)) (events []event) {
	t.Helper()
	bubble(t, o, func(t *testing.T, b *bed) {
		live := b.stream("", "")
		before(b)
		first := live.now()
		b.close()
		o.before = b
		next := begin(t, o)
		after(next)
		events = slices.Concat(first[:1], next.stream("", narya.FormatID(first[0].ID)).now())
		judge := naryatest.NewJudge()
		for i, e := range events {
			if i < len(first) && e.data != first[i].data {
				t.Errorf("was told as %s, is told again as %s", first[i].data, e.data)
			}
			if err := judge.See(e.Event); err != nil {
				t.Error(err)
			}
		}
		if err := judge.Rest(); err != nil {
			t.Error(err)
		}
	})
	return events
}

// Of a batch that a crash has cut, what was done is not done again: the call under way ends
// as one of unknown outcome, and those after it run once.
func TestCase39ACrashInABatch(t *testing.T) {
	const script = `
script: 1
steps:
  - tool: {name: one}
  - tool: {name: two, delay: 1h}
  - tool: {name: three}
`
	events := overARestart(t, bedOptions{agent: scripted(t, script)}, func(b *bed) {
		b.create("one", "hello")
	}, func(*bed) { synctest.Wait() })
	wantList(t, "calls", fields(events, narya.TypeToolCallStarted, "tool"), "one", "two", "three")
	wantList(t, "ends", fields(events, narya.TypeToolCallFinished, "status"), "ok", "error", "ok")
}

// Starts and ends of calls go together by their id, whatever their order; one that fails
// takes no other with it.
func TestCase50ParallelCalls(t *testing.T) {
	calls := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		var ids [3]string
		for i := range ids {
			ids[i], _ = h.StartTool(ctx, agent.Tool{Name: "same", Args: narad.Raw(fmt.Sprintf(`{"n":%d}`, i))})
		}
		for _, i := range []int{2, 0, 1} {
			r := agent.ToolResult{Outcome: narad.OutcomeSuccess}
			if i == 0 {
				r = agent.ToolResult{Outcome: narad.OutcomeError, Message: "why"}
			}
			_ = h.FinishTool(ctx, ids[i], r)
		}
		return done
	})
	events := promise(t, bedOptions{agent: calls}, func(b *bed) { b.create("one", "hello") })
	ids := fields(events, narya.TypeToolCallStarted, "toolCallId")
	wantList(t, "ends", fields(events, narya.TypeToolCallFinished, "toolCallId"), ids[2], ids[0], ids[1])
	wantList(t, "statuses", fields(events, narya.TypeToolCallFinished, "status"), "ok", "error", "ok")
}

// A crash leaves nothing under way: a call, an answer, a run below, a permission and a
// message that waits all come to their end, and the session works on.
func TestCase51NothingRunsForEver(t *testing.T) {
	hangs := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		if h.Info().Prompt.Content != "hang" {
			return speaks(ctx, h)
		}
		id, _ := h.StartTool(ctx, agent.Tool{Name: "open"})
		below, _ := h.StartRun(ctx, agent.Nested{Name: "child", ParentToolCallID: id})
		_ = below.Text(ctx, "half")
		_, _ = h.OpenGate(ctx, agent.Permission{ToolCallID: id, Options: []agent.Option{{ID: "y", Action: "approve"}, {ID: "n", Action: "deny"}}})
		_ = h.Text(ctx, "an ans")
		<-ctx.Done()
		return agent.Ending{Outcome: agent.Cancelled}
	})
	events := overARestart(t, bedOptions{agent: hangs}, func(b *bed) {
		b.create("one", "hang")
		pass(time.Second)
		b.say("one", "queued")
	}, func(b *bed) {
		pass(time.Second)
		b.say("one", "new")
		pass(time.Second)
	})
	wantList(t, "ends", fields(events, narya.TypeTurnFinished, "stopReason"), "error", "error", "completed", "completed")
	wantList(t, "decisions", fields(events, narya.TypePermissionDecided, "decision"), "expired")
	wantList(t, "calls", fields(events, narya.TypeToolCallFinished, "status"), "error")
	if last := events[len(events)-1]; last.Type() != narya.TypeSessionStatusChanged || !strings.Contains(last.data, `"status":"idle"`) {
		t.Errorf("the last event is %s", last.data)
	}
}

// What a grandchild asks is on the stream, on its own lane, and its id alone answers it.
func TestCase65AGrandchildAsks(t *testing.T) {
	const script = `
script: 1
steps:
  - agent:
      name: child
      tool: task
      steps:
        - agent:
            name: grandchild
            tool: task
            steps:
              - tool: {name: rm, permit: true}
`
	events := promise(t, bedOptions{agent: scripted(t, script)}, func(b *bed) {
		b.create("one", "hello")
		synctest.Wait()
		b.resolve(b.asked()[0], "approve")
		synctest.Wait()
	})
	var lanes []string
	for _, e := range events {
		if slices.Contains([]narya.Type{narya.TypeLaneStarted, narya.TypePermissionAsked, narya.TypePermissionDecided}, e.Type()) {
			lanes = append(lanes, e.LaneID)
		}
	}
	if len(lanes) != 5 || lanes[3] != lanes[2] || lanes[4] != lanes[2] || lanes[2] == lanes[1] {
		t.Errorf("lanes of three starts, the ask and its decision: %q", lanes)
	}
	wantList(t, "ends", fields(events, narya.TypeTurnFinished, "stopReason"), "completed", "completed", "completed")
}

// Pieces of answers that are said at once are told apart by their lanes, and a reader of the
// main lane reads nothing of the others.
func TestCase68EachLaneSpeaksForItself(t *testing.T) {
	speak := acts(func(ctx context.Context, h agent.Handle) agent.Ending {
		var below [2]agent.Handle
		for i := range below {
			below[i], _ = h.StartRun(ctx, agent.Nested{Name: fmt.Sprint(i)})
		}
		for range 3 {
			_ = h.Text(ctx, "r")
			for i, n := range below {
				_ = n.Text(ctx, fmt.Sprint(i))
			}
			<-time.After(time.Second)
		}
		for _, n := range below {
			_ = n.End(ctx, done)
		}
		return done
	})
	var main string
	events := promise(t, bedOptions{agent: speak}, func(b *bed) {
		b.create("one", "hello")
		pass(10 * time.Second)
		for _, e := range b.allItems(b.session("one") + "/transcript?laneId=" + narya.MainLaneID("one")) {
			main += text(e, "content") + " "
		}
	})
	said := map[string]string{}
	for _, e := range events {
		if d, ok := e.Payload.(*narya.MessageDelta); ok {
			said[e.LaneID] += d.Delta
		}
	}
	var texts []string
	for _, one := range said {
		texts = append(texts, one)
	}
	slices.Sort(texts)
	wantList(t, "texts by lane", texts, "000", "111", "rrr")
	if main != "hello rrr " {
		t.Errorf("the main lane reads %q", main)
	}
}

// A stop that races with the end of a turn leaves it with one end.
func TestCase69OneEnd(t *testing.T) {
	const rounds = 50
	events := promise(t, bedOptions{}, func(b *bed) {
		b.create("one", "")
		for range rounds {
			run := b.say("one", "hello").RunID
			_, err := b.host.Do(b.t.Context(), access.Owner(), host.Request{
				Action: access.StopRun, Session: "one", Command: decide.Stop{RootRunID: run},
			})
			if err != nil {
				b.t.Error(err)
			}
			synctest.Wait()
		}
	})
	if got := len(told(events, narya.TypeTurnFinished)); got != rounds {
		t.Errorf("got %d ends of %d turns", got, rounds)
	}
}

// A session is at work from the first call to the end of the message that waited behind it,
// with no idle in between.
func TestCase71NoIdleWithinAChain(t *testing.T) {
	const script = `
script: 1
steps:
  - tool: {name: one, delay: 1s}
  - tool: {name: two, outcome: error}
  - tool: {name: two}
`
	events := promise(t, bedOptions{agent: scripted(t, script)}, func(b *bed) {
		b.create("one", "hello")
		b.say("one", "follow up")
		pass(10 * time.Second)
	})
	wantList(t, "statuses", fields(events, narya.TypeSessionStatusChanged, "status"), "running", "idle")
	if last := events[len(events)-2:]; last[0].Type() != narya.TypeTurnFinished || last[1].Type() != narya.TypeSessionStatusChanged {
		t.Errorf("the end is %v", kinds(last))
	}
}

// Whatever the clock does, ids grow, and each message has one turn.
func TestCase102ClockJumps(t *testing.T) {
	var shift atomic.Int64
	o := bedOptions{host: host.Options{Now: func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }}}
	events := promise(t, o, func(b *bed) {
		b.create("one", "")
		for _, jump := range []time.Duration{0, -time.Hour, 2 * time.Hour, -10 * time.Minute} {
			shift.Add(int64(jump))
			b.say("one", jump.String())
			synctest.Wait()
		}
	})
	if got := len(told(events, narya.TypeTurnStarted)); got != 4 {
		t.Errorf("got %d turns of 4 messages", got)
	}
	for i, e := range events[1:] {
		if e.ID != events[i].ID+1 {
			t.Errorf("%d follows %d", e.ID, events[i].ID)
		}
	}
}
