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

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// counts the runs of agents that are under way at once.
type crowd struct{ now, most atomic.Int64 }

func (c *crowd) works(d time.Duration) func(context.Context, agent.Handle) agent.Ending {
	return func(ctx context.Context, _ agent.Handle) agent.Ending {
		n := c.now.Add(1)
		defer c.now.Add(-1)
		for most := c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
		}
		select {
		case <-time.After(d):
			return agent.Ending{}
		case <-ctx.Done():
			return agent.Ending{Outcome: agent.Cancelled}
		}
	}
}

// prompts is what was recorded of a session's messages, in order.
func (s *stage) prompts(id string) []string {
	s.t.Helper()
	var said []string
	for _, f := range s.facts(id) {
		if m, ok := f.(*narad.MessageUserRecorded); ok && m.RunID == m.RootRunID {
			said = append(said, m.Content)
		}
	}
	return said
}

// Field case 109: of a hundred starts at once one begins, the others wait or are
// refused with a definite answer, and no two are ever active together.
func TestHundredStartsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c crowd
		s := open(t, memory(t, journal.Options{}), acts{run: c.works(time.Second)}, host.Options{QueueLimit: 30, Mailbox: 200})
		defer s.close()
		s.create("s1")
		var accepted, refused atomic.Int64
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				m := decide.Message{Content: fmt.Sprint(i)}
				if i%4 == 0 {
					m.WhenBusy = decide.WhenBusyReject
				}
				switch a := s.do(access.SendMessage, "s1", m, fmt.Sprint("c", i)); a.Status {
				case decide.Accepted:
					accepted.Add(1)
				case decide.Conflict:
					refused.Add(1)
				default:
					t.Errorf("message %d: %+v", i, a)
				}
			})
		}
		all.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(s.prompts("s1")); int64(n) != accepted.Load() || n < 20 || accepted.Load()+refused.Load() != 100 {
			t.Errorf("%d messages of %d accepted and %d refused", n, accepted.Load(), refused.Load())
		}
		if c.most.Load() != 1 {
			t.Errorf("%d runs of one session at once", c.most.Load())
		}
	})
}

// A new message in the moment a run ends starts or waits; it is never lost.
func TestMessageAsARunEnds(t *testing.T) {
	alone(t, acts{run: speaks}, host.Options{}, func(t *testing.T, s *stage) {
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() { s.say("s1", fmt.Sprint(i)) })
			if i%8 == 0 {
				synctest.Wait()
			}
		}
		all.Wait()
		synctest.Wait()
		if n := len(s.prompts("s1")); n != 40 {
			t.Errorf("%d of 40 messages had their turn", n)
		}
	})
}

// No more agents run than there are places, whoever comes; every message has its turn,
// those of one session in order; a follow-up keeps the place of the run before it.
func TestPlacesOverManySessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c crowd
		s := open(t, memory(t, journal.Options{}), acts{run: c.works(50 * time.Millisecond)}, host.Options{MaxRunning: 3})
		defer s.close()
		rng := rand.New(rand.NewSource(1))
		for i := range 12 {
			s.create(fmt.Sprint("s", i))
		}
		want := map[string][]string{}
		for i := range 120 {
			id, text := fmt.Sprint("s", rng.Intn(12)), fmt.Sprint(i)
			s.say(id, text)
			want[id] = append(want[id], text)
			if rng.Intn(4) == 0 {
				time.Sleep(time.Duration(rng.Intn(60)) * time.Millisecond)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for id, texts := range want {
			if got := s.prompts(id); strings.Join(got, " ") != strings.Join(texts, " ") {
				t.Errorf("%s: got %v, want %v", id, got, texts)
			}
		}
		if c.most.Load() != 3 {
			t.Errorf("%d agents ran at once, want 3", c.most.Load())
		}
	})
}

// Sessions get a place in the order in which they came for one.
func TestPlacesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		s := open(t, memory(t, journal.Options{}), acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
			mu.Lock()
			order = append(order, h.Info().SessionID+h.Info().Prompt.Content)
			mu.Unlock()
			time.Sleep(time.Second)
			return agent.Ending{}
		}}, host.Options{MaxRunning: 1})
		defer s.close()
		for _, id := range []string{"a", "b", "c"} {
			s.create(id)
			s.say(id, "1")
			synctest.Wait()
		}
		s.say("a", "2") // keeps the place of a's first
		s.do(access.ArchiveSession, "b", decide.Archive{}, "")
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := strings.Join(order, " "); got != "a1 a2 b1 c1" {
			t.Errorf("got %s, want a1 a2 b1 c1", got)
		}
	})
}

// Field case 111: what was said while busy is consumed once, in order, also after a
// stop; a steer goes to the run under way, in order, also one that comes before the
// agent is there.
func TestSaidWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var steered []string
		a := acts{
			run:   waits,
			opens: func() error { time.Sleep(time.Second); return nil },
			steers: func(m agent.Message) error {
				mu.Lock()
				defer mu.Unlock()
				steered = append(steered, m.Content)
				return nil
			},
		}
		s := open(t, memory(t, journal.Options{}), a, host.Options{})
		defer s.close()
		s.create("s1")
		run := s.say("s1", "work").RunID
		for i := range 5 {
			s.do(access.SendMessage, "s1", decide.Message{Content: fmt.Sprint("left", i), WhenBusy: decide.WhenBusySteer}, "")
		}
		s.say("s1", "f1")
		s.say("s1", "f2")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := strings.Join(steered, " "); got != "left0 left1 left2 left3 left4" {
			t.Errorf("the agent was told %q", got)
		}
		s.do(access.StopRun, "s1", decide.Stop{RootRunID: run}, "")
		time.Sleep(time.Second)
		synctest.Wait()
		if got := s.summary("s1"); got.State != "waiting" {
			t.Errorf("after the stop: got %+v, want waiting", got)
		}
		second := s.say("s1", "f3")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := s.prompts("s1"); strings.Join(got[6:], " ") != "f1" {
			t.Errorf("after the next message: got %v, want f1 at its turn", got)
		}
		s.do(access.ChangeQueue, "s1", decide.Withdraw{RunID: second.RunID}, "")
	})
}

func (s *stage) summary(id string) host.Summary {
	s.t.Helper()
	v, err := s.host.Attach(s.t.Context(), access.Owner(), access.ReadSession, id)
	if err != nil {
		s.t.Fatal(err)
	}
	sum, err := v.Summary(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return sum
}

// Field case 63: a run that was withdrawn never starts, and holds up nothing.
func TestWithdrawnNeverStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		s := open(t, j, acts{run: waits}, host.Options{})
		s.create("s1")
		first := s.say("s1", "one").RunID
		second := s.say("s1", "two").RunID
		s.do(access.StopRun, "s1", decide.Stop{RootRunID: second}, "")
		s.do(access.StopRun, "s1", decide.Stop{RootRunID: first}, "")
		synctest.Wait()
		s.say("s1", "three")
		synctest.Wait()
		if got := strings.Join(s.prompts("s1"), " "); got != "one three" {
			t.Errorf("got %s, want one three", got)
		}
		s.close()
		s = open(t, j, acts{run: waits}, host.Options{})
		defer s.close()
		if a := s.do(access.StopRun, "s1", decide.Stop{RootRunID: second}, ""); a.Status != decide.AlreadyApplied {
			t.Errorf("stop of what was withdrawn, after a restart: %+v", a)
		}
	})
}

// A mailbox that is full refuses, and nothing was done.
func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		var held atomic.Bool
		j := memory(t, journal.Options{Fault: func(stage journal.Stage, _ journal.Group) error {
			if held.Load() && stage == journal.StageBuilt {
				<-hold
			}
			return nil
		}})
		s := open(t, j, acts{run: waits}, host.Options{Mailbox: 2})
		defer s.close()
		s.create("s1")
		held.Store(true)
		var all sync.WaitGroup
		var done, refused atomic.Int64
		for i := range 10 {
			all.Go(func() {
				_, err := s.host.Do(t.Context(), access.Owner(), host.Request{
					Action: access.SendMessage, Session: "s1", Command: decide.Message{Content: fmt.Sprint(i)},
				})
				switch {
				case err == nil:
					done.Add(1)
				case errors.Is(err, host.ErrOverloaded):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		held.Store(false)
		close(hold)
		all.Wait()
		if done.Load() != 3 || refused.Load() != 7 {
			t.Errorf("%d done and %d refused, want 3 and 7", done.Load(), refused.Load())
		}
		synctest.Wait()
		if n := strings.Count(s.story("s1"), "session.custom") + len(s.prompts("s1")); n != 4 {
			t.Errorf("%d facts of messages and session, want 4", n)
		}
	})
}

// R1: a run that waited names the command of its message, also when the host ended in
// between and a recovery starts it; so does a steer.
func TestFollowUpNamesItsCommandAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		a := acts{run: waits, steers: func(agent.Message) error { return nil }}
		s := open(t, j, a, host.Options{})
		s.create("s1")
		s.do(access.SendMessage, "s1", decide.Message{Content: "one"}, "c-one")
		s.do(access.SendMessage, "s1", decide.Message{Content: "two"}, "c-two")
		s.do(access.SendMessage, "s1", decide.Message{Content: "left", WhenBusy: decide.WhenBusySteer}, "c-left")
		s.close()
		s = open(t, j, a, host.Options{})
		defer s.close()
		synctest.Wait()
		var got []string
		for _, f := range s.facts("s1") {
			switch f := f.(type) {
			case *narad.RunStarted:
				got = append(got, "run "+facts.Caused(&f.Event))
			case *narad.MessageUserRecorded:
				got = append(got, f.Content+" "+facts.Caused(&f.Event))
			}
		}
		if got, want := strings.Join(got, ", "), "run c-one, one c-one, left c-left, run c-two, two c-two"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
