package host_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
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

func logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// An idle session gives up its agent and its owner, and the next message loads it.
func TestIdleSessionIsEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan struct{})
		s := open(t, memory(t, journal.Options{}), acts{run: speaks, closed: closed}, host.Options{IdleAfter: 5 * time.Minute})
		defer s.end() // the agent can be closed once
		s.create("s1")
		s.say("s1", "one")
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		select {
		case <-closed:
			t.Fatal("the agent was closed too early")
		default:
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		select {
		case <-closed:
		default:
			t.Fatal("the agent of an idle session is kept")
		}
		for n := range 3 {
			time.Sleep(time.Hour)
			if a := s.do(access.ArchiveSession, "s1", decide.Archive{}, ""); a.Status != decide.Accepted {
				t.Errorf("round %d: %+v", n, a)
			}
			time.Sleep(time.Hour)
			s.do(access.RestoreSession, "s1", decide.Restore{}, "")
		}
		if got := s.story("s1"); strings.Count(got, "session.custom") != 7 {
			t.Errorf("got %s", got)
		}
	})
}

// A run under way keeps its session, however long nothing is said.
func TestLongRunIsNotEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory(t, journal.Options{}), acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
			time.Sleep(48 * time.Hour)
			return speaks(ctx, h)
		}}, host.Options{})
		defer s.close()
		s.create("s1")
		s.say("s1", "one")
		time.Sleep(49 * time.Hour)
		synctest.Wait()
		if got := s.story("s1"); !strings.HasSuffix(got, "run.finished") {
			t.Errorf("got %s", got)
		}
	})
}

// Commands that come in the moment an owner leaves are neither lost nor done twice.
func TestCommandsAsOwnersLeave(t *testing.T) {
	alone(t, acts{run: speaks}, host.Options{IdleAfter: time.Millisecond, Mailbox: 500}, func(t *testing.T, s *stage) {
		var accepted atomic.Int64
		var all sync.WaitGroup
		for i := range 300 {
			all.Go(func() {
				pass(time.Duration(i) * 500 * time.Microsecond)
				c := decide.Command(decide.Archive{})
				action := access.ArchiveSession
				if i%2 == 1 {
					c, action = decide.Restore{}, access.RestoreSession
				}
				if s.do(action, "s1", c, "").Status == decide.Accepted {
					accepted.Add(1)
				}
			})
		}
		all.Wait()
		if n := strings.Count(s.story("s1"), "session.custom"); int64(n-1) != accepted.Load() || n < 100 {
			t.Errorf("%d were accepted, %d are there", accepted.Load(), n-1)
		}
	})
}

// Close at any moment joins everything, answers everybody, and cancels no run.
func TestCloseAtAnyMoment(t *testing.T) {
	for n := range 60 {
		synctest.Test(t, func(t *testing.T) {
			j := memory(t, journal.Options{Fault: func(journal.Stage, journal.Group) error {
				time.Sleep(time.Millisecond)
				return nil
			}})
			s := open(t, j, acts{run: rich}, host.Options{MaxRunning: 2})
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() {
					for _, r := range []host.Request{
						{Action: access.CreateSession, Session: fmt.Sprint("s", i), Command: create()},
						{Action: access.SendMessage, Session: fmt.Sprint("s", i), Command: decide.Message{Content: "x"}},
						{Action: access.StopRun, Session: fmt.Sprint("s", i), Command: decide.Stop{}},
					} {
						_, err := s.host.Do(t.Context(), access.Owner(), r)
						if err != nil && !errors.Is(err, host.ErrClosed) {
							t.Errorf("%T as the host ends: %v", r.Command, err)
						}
					}
				})
			}
			time.Sleep(time.Duration(n) * 2 * time.Millisecond)
			s.close()
			all.Wait()
			if err := s.host.Close(); err != nil {
				t.Error(err)
			}
			if _, err := s.host.Do(t.Context(), access.Owner(), host.Request{Action: access.StopRun, Session: "s1", Command: decide.Stop{}}); !errors.Is(err, host.ErrClosed) {
				t.Errorf("after the end: %v", err)
			}
			for _, id := range s.sessions() {
				story := s.story(id)
				if strings.Contains(story, "run.cancelled") && !strings.Contains(story, "run.stop.requested") {
					t.Errorf("%s was cancelled by the end of the host: %s", id, story)
				}
			}
		})
	}
}

// While the host recovers it serves nobody; a start that was interrupted can be given
// again; agents wait until it is over.
func TestRecoveringServesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		const sessions = 20
		s := open(t, j, acts{run: waits, resumes: true}, host.Options{MaxRunning: sessions})
		for i := range sessions {
			s.create(fmt.Sprint("s", i))
			s.say(fmt.Sprint("s", i), "work")
		}
		s.close()

		var ran, early atomic.Int64
		var h *host.Host
		f := newFeed(j)
		defer f.Close()
		h = host.New(j, f, cast{acts{resumes: true, run: func(ctx context.Context, a agent.Handle) agent.Ending {
			ran.Add(1)
			if !h.Ready() {
				early.Add(1)
			}
			return waits(ctx, a)
		}}}, host.Options{})
		defer h.Close()
		if _, err := h.Do(t.Context(), access.Owner(), host.Request{Action: access.StopRun, Session: "s1", Command: decide.Stop{}}); !errors.Is(err, host.ErrRecovering) {
			t.Errorf("before Start: %v", err)
		}
		if _, err := h.Attach(t.Context(), access.Owner(), access.ReadSession, "s1"); !errors.Is(err, host.ErrRecovering) {
			t.Errorf("attach before Start: %v", err)
		}
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		if err := h.Start(dead); err == nil {
			t.Error("a start that was cancelled succeeded")
		}
		synctest.Wait()
		if h.Ready() || ran.Load() != 0 {
			t.Errorf("ready %v with %d agents before the end of recovery", h.Ready(), ran.Load())
		}
		if err := h.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !h.Ready() || ran.Load() != sessions || early.Load() != 0 {
			t.Errorf("ready %v with %d agents, %d of them too early; want %d", h.Ready(), ran.Load(), early.Load(), sessions)
		}
	})
}

// Runs that go on after a restart go on, more than there are places; nothing new starts
// before a place is free.
func TestResumedRunsKeepTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		s := open(t, j, acts{run: waits, resumes: true}, host.Options{MaxRunning: 2})
		var runs []string
		for _, id := range []string{"s1", "s2", "s3"} {
			s.create(id)
			if id != "s3" {
				runs = append(runs, s.say(id, "work").RunID)
			}
		}
		synctest.Wait()
		s.close()
		s = open(t, j, acts{run: waits, resumes: true}, host.Options{MaxRunning: 1})
		defer s.close()
		s.say("s3", "work")
		for i, run := range runs {
			synctest.Wait()
			if got := s.prompts("s3"); len(got) != 0 {
				t.Errorf("with %d runs under way and one place s3 started", len(runs)-i)
			}
			s.do(access.StopRun, fmt.Sprint("s", i+1), decide.Stop{RootRunID: run}, "")
		}
		synctest.Wait()
		if got := s.prompts("s3"); len(got) != 1 {
			t.Errorf("s3 has no turn: %s", s.story("s3"))
		}
	})
}

// R17: what a dead host left running is ended before anything else, and forgotten.
func TestLeftProcessesAreEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		owns := acts{run: waits}
		p := agent.Process{PID: 7, StartTime: 8, BootID: "b"}
		s := open(t, j, owner{owns, p}, host.Options{})
		s.create("s1")
		s.say("s1", "work")
		synctest.Wait()
		s.close()
		var ended []agent.Process
		o := host.Options{EndLeft: func(_ context.Context, p agent.Process) error {
			ended = append(ended, p)
			return nil
		}}
		for range 2 {
			s = open(t, j, owns, o)
			synctest.Wait()
			s.close()
		}
		if len(ended) != 1 || ended[0] != p {
			t.Errorf("ended %+v, want %+v once", ended, p)
		}
	})
}

// owner is an agent with a process.
type owner struct {
	acts
	p agent.Process
}

func (o owner) Open(ctx context.Context, s agent.Session) (agent.Agent, error) {
	return o.acts, s.Own(ctx, o.p)
}

// detach records that nobody is there to ask in the session s1, which was only created.
func detach(t *testing.T, j journal.Journal) {
	t.Helper()
	posture := facts.Session(facts.Posture, facts.Postured{Posture: facts.Detached, Was: facts.Attended})
	posture.EventID, posture.SessionID, posture.SessionSequence, posture.Timestamp = "2.aaaaaaaa", "s1", 2, "2026-01-02T03:04:05Z"
	data, err := narad.Encode(posture)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append(t.Context(), journal.Batch{Session: "s1", ExpectHead: 1, Facts: []journal.Fact{{EventID: posture.EventID, Bytes: data}}}); err != nil {
		t.Fatal(err)
	}
}

// R18: the posture is a fact of the session, and holds for permissions and questions.
func TestDetachedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		s := open(t, j, acts{run: rich}, host.Options{})
		s.create("s1")
		s.close()
		detach(t, j)
		s = open(t, j, acts{run: rich}, host.Options{})
		defer s.close()
		s.say("s1", "work")
		time.Sleep(time.Second)
		synctest.Wait()
		var got []string
		for _, f := range s.facts("s1") {
			if r, ok := f.(*narad.InterruptResolved); ok {
				got = append(got, r.Decision+" "+r.Reason)
			}
		}
		if want := "deny detached, deny detached, dismiss detached"; strings.Join(got, ", ") != want || s.summary("s1").State != "idle" {
			t.Errorf("got %v, want %s: %s", got, want, s.story("s1"))
		}
	})
}

// A session is made with an agent that is there, in a directory that it may have.
func TestCreateIsChecked(t *testing.T) {
	root := t.TempDir()
	inside, outside := filepath.Join(root, "in"), t.TempDir()
	for _, err := range []error{
		os.Mkdir(inside, 0o700), os.Symlink(outside, filepath.Join(root, "link")), os.WriteFile(filepath.Join(root, "file"), nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, memory(t, journal.Options{}), acts{run: speaks}, host.Options{Roots: []string{filepath.Join(root, "not there"), root}})
	defer s.close()
	for i, tt := range []struct {
		id, cwd string
		want    decide.Status
	}{
		{"", "", decide.Accepted},
		{"", root, decide.Accepted},
		{"", inside + "/../in", decide.Accepted},
		{"", outside, decide.Rejected},
		{"", filepath.Join(root, "link"), decide.Rejected},
		{"", filepath.Join(root, "nowhere"), decide.Rejected},
		{"", filepath.Join(root, "file"), decide.Rejected},
		{"", root + "/..", decide.Rejected},
		{"", "in", decide.Rejected},
		{"s~trace", "", decide.Rejected},
		{"~host", "", decide.Rejected},
	} {
		if tt.id == "" {
			tt.id = fmt.Sprint("s", i)
		}
		c := create()
		c.Payload.Cwd = tt.cwd
		if a := s.do(access.CreateSession, tt.id, c, ""); a.Status != tt.want {
			t.Errorf("%q in %q: got %+v, want %s", tt.id, tt.cwd, a, tt.want)
		}
	}
	if a := s.do(access.CreateSession, "s1", create(), ""); a.Status != decide.AlreadyApplied {
		t.Errorf("again: %+v", a)
	}
	if got := s.summary("s1"); got.Agent != "test" || got.Cwd != root {
		t.Errorf("got %+v, want the default agent in %s", got, root)
	}
}

// Roots that are an empty list are no roots at all, and not all directories.
func TestCreateWithoutRoots(t *testing.T) {
	s := open(t, memory(t, journal.Options{}), acts{run: speaks}, host.Options{Roots: []string{}})
	defer s.close()
	c := create()
	c.Payload.Cwd = t.TempDir()
	if a := s.do(access.CreateSession, "s1", c, ""); a.Status != decide.Rejected {
		t.Errorf("got %+v, want a directory to be refused", a)
	}
	s.create("s1")
}

func TestCreateWithoutAgent(t *testing.T) {
	s := open(t, memory(t, journal.Options{}), nil, host.Options{})
	defer s.close()
	if a := s.do(access.CreateSession, "s1", create(), ""); a.Status != decide.Rejected {
		t.Errorf("got %+v, want rejected", a)
	}
}

// The same message under the same id is one message; the id of another's is refused.
func TestMessageIDHasOneEffect(t *testing.T) {
	alone(t, acts{run: speaks}, host.Options{}, func(t *testing.T, s *stage) {
		m := decide.Message{MessageID: "m", Content: "hi"}
		first := s.do(access.SendMessage, "s1", m, "")
		synctest.Wait()
		if a := s.do(access.SendMessage, "s1", m, "c-other"); a != repeated(first) {
			t.Errorf("again: got %+v, want %+v", a, first)
		}
		m.Content = "other"
		if a := s.do(access.SendMessage, "s1", m, ""); a.Status != decide.Conflict {
			t.Errorf("another content: got %+v, want conflict", a)
		}
		var said string
		for _, f := range s.facts("s1") {
			if f, ok := f.(*narad.MessageTextStarted); ok {
				said = f.MessageID
			}
		}
		if a := s.do(access.SendMessage, "s1", decide.Message{MessageID: said, Content: "x"}, ""); a.Status != decide.Conflict {
			t.Errorf("the id of an assistant's message: got %+v, want conflict", a)
		}
		if a := s.do(access.RedactMessage, "s1", decide.Redact{MessageID: said, Reason: "r"}, ""); a.Status != decide.Accepted {
			t.Errorf("redact: got %+v", a)
		}
		if n := len(s.prompts("s1")); n != 1 {
			t.Errorf("%d messages, want one", n)
		}
	})
}

// A command id is a principal's own (R21).
func TestCommandIDsOfTwoPrincipals(t *testing.T) {
	alone(t, acts{run: speaks}, host.Options{}, func(t *testing.T, s *stage) {
		first := s.do(access.SendMessage, "s1", decide.Message{Content: "hi"}, "c")
		other, err := access.NewPrincipal("other", "other", access.Grant{Roles: []access.Role{access.Drive}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := s.host.Do(t.Context(), other, host.Request{
			Action: access.SendMessage, Session: "s1", CommandID: "c", Command: decide.Message{Content: "hello"},
		})
		if err != nil || a.Status != decide.Accepted || a.RunID == first.RunID {
			t.Errorf("got %+v %v, want a run of its own", a, err)
		}
		synctest.Wait()
	})
}
