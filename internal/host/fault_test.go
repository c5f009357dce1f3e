package host_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// Field case 89: commits fail now and then. What a client was told is there when it is
// told, what failed is nowhere, and every session comes to rest by itself.
func TestCommitsFailNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewSource(7))
		var failing atomic.Bool
		var failed atomic.Int64
		j := memory(t, journal.Options{Fault: func(stage journal.Stage, _ journal.Group) error {
			if failing.Load() && stage == journal.StageBuilt && rng.Intn(30) == 0 {
				failed.Add(1)
				return errors.New("one of many")
			}
			return nil
		}})
		s := open(t, j, acts{run: asks}, host.Options{})
		defer s.close()
		for i := range 5 {
			s.create(fmt.Sprint("s", i))
		}
		failing.Store(true)
		var all sync.WaitGroup
		for i := range 5 {
			id := fmt.Sprint("s", i)
			all.Go(func() {
				for n := range 20 {
					a, err := s.host.Do(t.Context(), access.Owner(), host.Request{
						Action: access.SendMessage, Session: id, Command: decide.Message{Content: fmt.Sprint(n)},
					})
					if err == nil && a.Status == decide.Accepted {
						if head, err := j.Head(t.Context(), id); err != nil || head.Sequence < uint64(a.SessionSequence) {
							t.Errorf("%s was told of %d, the head is %+v %v", id, a.SessionSequence, head, err)
						}
					}
					for _, asked := range s.inbox() {
						_, _ = s.host.Do(t.Context(), access.Owner(), host.Request{
							Action: access.ResolveInterrupt, Command: decide.Resolve{InterruptID: asked.InterruptID, Decision: "approve"},
						})
					}
					time.Sleep(300 * time.Millisecond)
				}
			})
		}
		all.Wait()
		failing.Store(false)
		for range 30 {
			for _, asked := range s.inbox() {
				s.resolve(asked.InterruptID, "approve")
			}
			time.Sleep(2 * time.Second)
		}
		if failed.Load() < 5 {
			t.Errorf("only %d commits failed", failed.Load())
		}
		for i := range 5 {
			if sum := s.summary(fmt.Sprint("s", i)); sum.State != "idle" {
				t.Errorf("s%d is %s: %s", i, sum.State, s.story(fmt.Sprint("s", i)))
			}
		}
	})
}

// A run whose end could not be written is closed without anybody asking for it.
func TestSessionComesBackByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refuse atomic.Bool
		j := memory(t, journal.Options{Fault: func(stage journal.Stage, _ journal.Group) error {
			if refuse.Load() && stage == journal.StageBuilt {
				return errors.New("no")
			}
			return nil
		}})
		ends := make(chan struct{})
		s := open(t, j, acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
			if h.Info().Prompt.Content == "two" {
				return speaks(ctx, h)
			}
			<-ends
			return agent.Ending{}
		}}, host.Options{})
		defer s.close()
		s.create("s1")
		s.say("s1", "one")
		s.say("s1", "two")
		synctest.Wait()
		refuse.Store(true)
		close(ends)
		synctest.Wait()
		time.Sleep(5 * time.Second) // tried again in vain
		refuse.Store(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want := "run.error run.started message.user.recorded message.text.started message.text.delta message.text.completed run.finished"
		if got := s.story("s1"); !strings.HasSuffix(got, want) {
			t.Errorf("got %s, want it to end in %s", got, want)
		}
	})
}

// A failed write is final: everybody is told, nothing is shown, and the host ends.
func TestBrokenStore(t *testing.T) {
	for _, stage := range []journal.Stage{journal.StageWritten, journal.StageSynced} {
		synctest.Test(t, func(t *testing.T) {
			var broken atomic.Bool
			j := memory(t, journal.Options{Fault: func(at journal.Stage, _ journal.Group) error {
				if broken.Load() && at == stage {
					return errors.New("disk is gone")
				}
				return nil
			}})
			s := open(t, j, acts{run: waits}, host.Options{})
			defer s.close()
			s.create("s1")
			broken.Store(true)
			for range 3 {
				_, err := s.host.Do(t.Context(), access.Owner(), host.Request{Action: access.SendMessage, Session: "s1", Command: decide.Message{Content: "x"}})
				if !errors.Is(err, journal.ErrBroken) {
					t.Errorf("%v: got %v, want broken", stage, err)
				}
			}
			if s.host.Ready() {
				t.Error("a host over a broken store says that it is ready")
			}
			if got := s.story("s1"); got != created {
				t.Errorf("%v: got %s", stage, got)
			}
		})
	}
}

// Another owner fences this one off: it writes nothing more and its agent is ended. The
// client is not told: the next owner takes the command, and finds what the other wrote.
func TestFencedOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		one := open(t, j, acts{run: waits}, host.Options{})
		defer one.close()
		one.create("s1")
		run := one.say("s1", "x").RunID
		synctest.Wait()
		two := open(t, j, acts{run: waits}, host.Options{}) // its start closes the run
		defer two.end()
		for n, s := range []*stage{one, two, one, two, one} {
			m := decide.Message{Content: fmt.Sprint(n)}
			if a := s.do(access.SendMessage, "s1", m, ""); a.Status != decide.Accepted || a.RunID == run {
				t.Errorf("round %d: got %+v, want a run of its own", n, a)
			}
			synctest.Wait()
		}
		time.Sleep(time.Minute) // neither takes the session back without a command
		if got := strings.Join(one.prompts("s1"), " "); got != "x 0 1 2 3 4" {
			t.Errorf("got %s, want every message once", got)
		}
		if n := strings.Count(one.story("s1"), "run.error"); n != 5 {
			t.Errorf("%d runs were closed as those of another owner, want 5: %s", n, one.story("s1"))
		}
	})
}

// fencing is a journal in which somebody else is always faster.
type fencing struct {
	journal.Journal
	on atomic.Bool
}

func (f *fencing) Append(ctx context.Context, b journal.Batch) (journal.Receipt, error) {
	if f.on.Load() && b.Session == "s1" {
		if _, err := f.AcquireTerm(ctx, "s1"); err != nil {
			return journal.Receipt{}, err
		}
	}
	return f.Journal.Append(ctx, b)
}

// A client does not wait for ever while owners fence each other off.
func TestFencedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &fencing{Journal: memory(t, journal.Options{})}
		s := open(t, j, acts{run: speaks}, host.Options{})
		defer s.close()
		s.create("s1")
		j.on.Store(true)
		_, err := s.host.Do(t.Context(), access.Owner(), host.Request{Action: access.SendMessage, Session: "s1", Command: decide.Message{Content: "x"}})
		if !errors.Is(err, host.ErrOverloaded) {
			t.Errorf("got %v, want that the client shall try again", err)
		}
		if got := s.story("s1"); got != created {
			t.Errorf("a refused command left %s", got)
		}
		j.on.Store(false)
		if a := s.say("s1", "x"); a.Status != decide.Accepted || a.SessionSequence != 2 {
			t.Errorf("afterwards: got %+v, want accepted at 2", a)
		}
		synctest.Wait()
	})
}

// Below the reserve commands are refused, what only closes is not, and an agent's
// record waits for room. What waited starts when there is room again.
func TestStorageFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Uint64
		free.Store(10 << 30)
		j := memory(t, journal.Options{Free: func() (uint64, error) { return free.Load(), nil }})
		begin := make(chan struct{})
		s := open(t, j, acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
			if h.Info().Prompt.Content != "work" {
				return speaks(ctx, h)
			}
			select {
			case <-begin:
			case <-ctx.Done():
				return agent.Ending{}
			}
			return asks(ctx, h)
		}}, host.Options{})
		defer s.close()
		s.create("s1")
		s.say("s1", "work")
		s.say("s1", "next")
		synctest.Wait()

		free.Store(1<<30 - 1<<20)
		time.Sleep(2 * time.Second)
		_, err := s.host.Do(t.Context(), access.Owner(), host.Request{Action: access.SendMessage, Session: "s1", Command: decide.Message{Content: "x"}})
		if !errors.Is(err, host.ErrStorageFull) {
			t.Errorf("got %v, want storage full", err)
		}
		before := s.story("s1")
		close(begin)
		time.Sleep(10 * time.Second)
		if got := s.story("s1"); got != before {
			t.Errorf("an agent recorded %s", strings.TrimPrefix(got, before))
		}
		free.Store(10 << 30)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(s.inbox()) != 1 {
			t.Fatalf("the agent did not go on: %s", s.story("s1"))
		}

		free.Store(1<<30 - 1<<20)
		time.Sleep(2 * time.Second)
		if a := s.resolve(s.inbox()[0].InterruptID, "approve"); a.Status != decide.Accepted {
			t.Errorf("a decision only closes: %+v", a)
		}
		time.Sleep(time.Minute)
		if got := s.story("s1"); !strings.HasSuffix(got, "run.resumed run.finished tool.call.finished run.finished") &&
			!strings.HasSuffix(got, "run.resumed run.finished") {
			t.Errorf("got %s", got)
		}
		free.Store(10 << 30)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := strings.Join(s.prompts("s1"), " "); got != "work next" || s.summary("s1").State != "idle" {
			t.Errorf("with room again: got %s, %s", got, s.story("s1"))
		}
	})
}

// A run can be stopped and ended with the last of the space, also when its agent waits
// for room with text on its lips.
func TestStopWithLittleSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Uint64
		free.Store(10 << 30)
		j := memory(t, journal.Options{Free: func() (uint64, error) { return free.Load(), nil }})
		begin := make(chan struct{})
		s := open(t, j, acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
			<-begin
			_ = h.Text(ctx, "on my lips")
			<-ctx.Done()
			return agent.Ending{}
		}}, host.Options{})
		defer s.close()
		s.create("s1")
		run := s.say("s1", "work").RunID
		s.say("s1", "next")
		free.Store(1<<30 - 1<<20)
		time.Sleep(2 * time.Second)
		close(begin)
		time.Sleep(5 * time.Second)
		if a := s.do(access.StopRun, "s1", decide.Stop{RootRunID: run}, ""); a.Status != decide.Accepted {
			t.Errorf("stop: %+v", a)
		}
		time.Sleep(5 * time.Second)
		want := "run.stop.requested message.text.started message.text.delta message.text.completed run.cancelled"
		if got := s.story("s1"); !strings.HasSuffix(got, want) {
			t.Errorf("got %s, want it to end in %s", got, want)
		}
		free.Store(0)
		time.Sleep(2 * time.Second)
		if _, err := s.host.Do(t.Context(), access.Owner(), host.Request{Action: access.ChangeQueue, Session: "s1", Command: decide.Release{}}); !errors.Is(err, host.ErrStorageFull) {
			t.Errorf("with no space at all: %v", err)
		}
		free.Store(10 << 30)
		time.Sleep(2 * time.Second)
	})
}

// DESIGN §4: what only closes uses the last of the space, so the outcome of a call that has
// run is a fact before its run is stopped.
func TestOutcomeWithLittleSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Uint64
		free.Store(10 << 30)
		j := memory(t, journal.Options{Free: func() (uint64, error) { return free.Load(), nil }})
		s := open(t, j, acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
			call, _ := h.StartTool(ctx, agent.Tool{Name: "write"})
			pass(time.Minute)
			_ = h.FinishTool(ctx, call, agent.ToolResult{Outcome: narad.OutcomeSuccess, Response: narad.Raw("7")})
			return waits(ctx, h)
		}}, host.Options{})
		defer s.close()
		s.create("s1")
		s.say("s1", "work")
		synctest.Wait()
		free.Store(1<<30 - 1<<20)
		time.Sleep(2 * time.Minute)
		s.do(access.StopRun, "s1", decide.Stop{}, "")
		synctest.Wait()
		want := strings.Join([]string{created, begun, "tool.call.started tool.call.finished run.stop.requested run.cancelled"}, " ")
		if got := s.story("s1"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// Field case 22: what is refused has changed nothing, anywhere.
func TestRefusalsChangeNothing(t *testing.T) {
	alone(t, acts{run: asks}, host.Options{}, func(t *testing.T, s *stage) {
		s.create("s2")
		s.say("s1", "work")
		synctest.Wait()
		id := s.inbox()[0].InterruptID
		before := fmt.Sprint(s.journal.Durable(), s.inbox())
		for _, r := range []host.Request{
			{Action: access.ResolveInterrupt, Command: decide.Resolve{InterruptID: "random", Decision: "approve"}},
			{Action: access.ResolveInterrupt, Session: "s2", Command: decide.Resolve{InterruptID: id, Decision: "approve"}},
			{Action: access.ResolveInterrupt, Command: decide.Resolve{InterruptID: id, Decision: "yes"}},
			{Action: access.StopRun, Session: "s1", Command: decide.Stop{RootRunID: "random"}},
			{Action: access.ChangeQueue, Session: "s1", Command: decide.Withdraw{RunID: "random"}},
			{Action: access.RedactMessage, Session: "s1", Command: decide.Redact{MessageID: "random", Reason: "r"}},
			{Action: access.SendMessage, Session: "~host", Command: decide.Message{Content: "x"}},
			{Action: access.ArchiveSession, Session: "s1", Command: decide.Archive{}},
		} {
			a, err := s.host.Do(t.Context(), access.Owner(), r)
			if err != nil || a.Status == decide.Accepted {
				t.Errorf("%+v: got %+v %v", r, a, err)
			}
		}
		for _, r := range []host.Request{ // an action that the command does not take, and no client's command
			{Action: access.SendMessage, Session: "s1", Command: decide.Redact{MessageID: "m", Reason: "r"}},
			{Session: "s1", Command: decide.Message{Content: "x"}},
			{Action: access.SendMessage, Session: "s1", Command: decide.Say{}},
			{Action: access.SendMessage, Session: "s1"},
		} {
			if _, err := s.host.Do(t.Context(), access.Owner(), r); !errors.Is(err, access.ErrForbidden) {
				t.Errorf("%+v: got %v, want forbidden", r, err)
			}
		}
		if after := fmt.Sprint(s.journal.Durable(), s.inbox()); after != before {
			t.Errorf("got %s, want %s", after, before)
		}
		s.resolve(id, "approve")
		synctest.Wait()
	})
}

// Deleted for ever: whoever asks is told so, and the id is never given again.
func TestDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		s := open(t, j, acts{run: asks}, host.Options{})
		s.create("s1")
		s.say("s1", "work")
		synctest.Wait()
		if a, err := s.host.Delete(t.Context(), access.Owner(), "s1"); err != nil || a.Status != decide.Conflict {
			t.Errorf("a session at work: %+v %v", a, err)
		}
		s.resolve(s.inbox()[0].InterruptID, "approve")
		synctest.Wait()
		if a, err := s.host.Delete(t.Context(), access.Owner(), "s1"); err != nil || a.Status != decide.Accepted {
			t.Fatalf("got %+v %v", a, err)
		}
		gone := func() {
			t.Helper()
			_, err := s.host.Attach(t.Context(), access.Owner(), access.ReadSession, "s1")
			if !errors.Is(err, host.ErrGone) {
				t.Errorf("attach: got %v, want gone", err)
			}
			for _, r := range []host.Request{
				{Action: access.SendMessage, Session: "s1", CommandID: "c", Command: decide.Message{Content: "x"}},
				{Action: access.CreateSession, Session: "s1", Command: create()},
			} {
				if _, err := s.host.Do(t.Context(), access.Owner(), r); !errors.Is(err, host.ErrGone) {
					t.Errorf("%T: got %v, want gone", r.Command, err)
				}
			}
		}
		gone()
		s.close()
		s = open(t, j, acts{run: asks}, host.Options{})
		defer s.close()
		gone()
		if _, err := s.host.Delete(t.Context(), access.Owner(), "nothing"); !errors.Is(err, host.ErrNotFound) {
			t.Errorf("delete of nothing: %v", err)
		}
	})
}

// Field case 102: whatever the clock does, order is by sequence and there is one turn a
// message.
func TestClockJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shift atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }
		s := open(t, memory(t, journal.Options{Now: now}), acts{run: asks}, host.Options{Now: now})
		defer s.close()
		s.create("s1")
		for _, jump := range []time.Duration{0, -time.Hour, 2 * time.Hour, -10 * time.Minute} {
			shift.Add(int64(jump))
			s.say("s1", jump.String())
			synctest.Wait()
			s.resolve(s.inbox()[0].InterruptID, "approve")
			synctest.Wait()
		}
		if got := strings.Join(s.prompts("s1"), " "); got != "0s -1h0m0s 2h0m0s -10m0s" {
			t.Errorf("got %s", got)
		}
		for _, f := range s.facts("s1") {
			if c, ok := f.(*narad.ToolCallFinished); ok && strings.HasPrefix(string(c.Optional("durationMs")), "-") {
				t.Errorf("a call took %s ms", c.Optional("durationMs"))
			}
		}
	})
}

// unwritable is a journal whose stream for rows of no session is damaged.
type unwritable struct {
	journal.Journal
	on atomic.Bool
}

func (u *unwritable) Append(ctx context.Context, b journal.Batch) (journal.Receipt, error) {
	if u.on.Load() && b.Session == journal.RowStream {
		return journal.Receipt{}, &journal.DamagedError{Session: b.Session, Cause: errors.New("a block")}
	}
	return u.Journal.Append(ctx, b)
}

// DESIGN §4: a record of a process that cannot be removed keeps no host from starting. The
// process is ended, and looked for at each start.
func TestRecordThatCannotBeForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &unwritable{Journal: memory(t, journal.Options{})}
		s := open(t, j, owner{acts{run: waits}, agent.Process{PID: 7, StartTime: 8, BootID: "b"}}, host.Options{})
		s.create("s1")
		s.say("s1", "work")
		synctest.Wait()
		s.close()
		j.on.Store(true)
		ended := 0
		for start := range 2 {
			s = open(t, j, acts{run: speaks}, host.Options{EndLeft: func(context.Context, agent.Process) error { ended++; return nil }})
			if a := s.say("s1", "go on"); a.Status != decide.Accepted || ended != start+1 {
				t.Errorf("start %d: got %+v, and %d processes ended", start, a, ended)
			}
			synctest.Wait()
			s.close()
		}
	})
}
