package host_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
)

// stuck is an agent with a process that ignores its context, and whose Run or Close, or
// both, end only when the test lets them.
type stuck struct {
	acts
	free         chan struct{} // closed to let everything end
	hangsInClose bool
}

var stuckProcess = agent.Process{PID: 7, StartTime: 8, BootID: "b"}

func newStuck(hangsInClose bool) stuck {
	s := stuck{free: make(chan struct{}), hangsInClose: hangsInClose}
	s.run = func(ctx context.Context, h agent.Handle) agent.Ending {
		_ = h.Text(ctx, "before")
		<-s.free
		_ = h.Text(context.WithoutCancel(ctx), "after")
		return agent.Ending{StopReason: "completed"}
	}
	return s
}

func (s stuck) Open(ctx context.Context, about agent.Session) (agent.Agent, error) {
	return s, about.Own(ctx, stuckProcess)
}

func (s stuck) Close() error {
	if s.hangsInClose {
		<-s.free
	}
	return nil
}

// kills notes the processes that the host ends itself.
type kills struct {
	mu   sync.Mutex
	list []agent.Process
}

func (k *kills) end(_ context.Context, p agent.Process) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, p)
	return nil
}

func (k *kills) once() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.list) == 1 && k.list[0] == stuckProcess
}

func owned(s *stage) int {
	n := 0
	for range journal.Each[journal.AgentRow](context.Background(), s.journal, journal.Agents{}, noDamage(s.t)) {
		n++
	}
	return n
}

// An agent that neither its context nor its Close can end does not keep the host from
// ending: its processes are killed after the grace, and the error names its session.
// What it says later is recorded nowhere, and the next start closes its run.
func TestCloseWithAnAgentThatDoesNotEnd(t *testing.T) {
	for name, hangsInClose := range map[string]bool{"in its run": false, "in its close": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j, a, killed := memory(t, journal.Options{}), newStuck(hangsInClose), &kills{}
				s := open(t, j, a, host.Options{EndLeft: killed.end, CancelGrace: 10 * time.Second})
				s.create("s1")
				s.create("s2")
				s.say("s1", "work")
				synctest.Wait()
				before := time.Now()
				err := s.host.Close()
				if err == nil || !strings.Contains(err.Error(), "s1") || strings.Contains(err.Error(), "s2") {
					t.Errorf("got %v, want an error that names s1 alone", err)
				}
				if took := time.Since(before); took < 10*time.Second || took > 30*time.Second {
					t.Errorf("it took %v, want the grace and one more", took)
				}
				if !killed.once() || owned(s) != 0 {
					t.Errorf("killed %v with %d records left, want %v and none", killed.list, owned(s), stuckProcess)
				}
				story := s.story("s1")
				close(a.free)
				synctest.Wait()
				if err := s.host.Close(); err != nil {
					t.Errorf("when the agent has ended after all: %v", err)
				}
				s.feed.Close()
				if got := s.story("s1"); got != story || strings.Contains(got, "run.finished") {
					t.Errorf("it went on to tell: %s", got)
				}
				again := open(t, j, acts{run: speaks}, host.Options{})
				defer again.close()
				if got := again.story("s1"); !strings.HasSuffix(got, "run.error") {
					t.Errorf("after the next start: %s", got)
				}
			})
		})
	}
}

// R14: a stopped run ends also where its agent does nothing to end it, and the session
// goes on with a new one.
func TestStopOfAnAgentThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, killed := newStuck(true), &kills{}
		s := open(t, memory(t, journal.Options{}), a, host.Options{EndLeft: killed.end})
		s.create("s1")
		run := s.say("s1", "work").RunID
		synctest.Wait()
		s.do(access.StopRun, "s1", decide.Stop{RootRunID: run}, "")
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := s.story("s1"); !strings.HasSuffix(got, "message.text.completed run.cancelled") || !killed.once() {
			t.Errorf("killed %v: %s", killed.list, got)
		}
		if again := s.say("s1", "more"); again.Status != decide.Accepted || again.RunID == run {
			t.Errorf("the next message: %+v", again)
		}
		synctest.Wait()
		close(a.free)
		synctest.Wait()
		if got := s.story("s1"); !strings.HasSuffix(got, "message.text.completed run.finished") || strings.Count(got, "run.cancelled") != 1 {
			t.Errorf("got %s", got)
		}
		s.close()
	})
}
