package host_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/numbers"
	"github.com/mahati-host/mahati/narad"
)

// logging are the options of a host that keeps headless logs and speaks Narya.
func logging() host.Options {
	return host.Options{Numbers: numbers.Of, LogMapping: harness.Mapping, Mappings: facts.Mappings{Narya: 1}}
}

func (s *stage) signer() *harness.Signer {
	return harness.NewSigner([32]byte(s.journal.Identity().Key), s.journal.Identity().Epoch)
}

func (s *stage) openLog(run string) *host.RunLog {
	s.t.Helper()
	l, err := s.host.Log(s.t.Context(), access.Owner(), access.ReadLog, run)
	if err != nil {
		s.t.Fatalf("open the log of %s: %v", run, err)
	}
	return l
}

// project makes the records of stored facts.
func (s *stage) project(l *host.RunLog, records []host.Record) []harness.Event {
	s.t.Helper()
	start, err := l.Start(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	run, err := harness.RunOf(start)
	if err != nil {
		s.t.Fatal(err)
	}
	signer := s.signer()
	var events []harness.Event
	for _, r := range records {
		rec, err := narad.Decode(r.Bytes)
		if err != nil {
			s.t.Fatal(err)
		}
		list, err := run.Project(rec.(narad.Authority), r.FirstLog, int(r.LogCount), func(n uint64) harness.Cursor {
			return signer.Cursor(run.ID, n)
		})
		if err != nil {
			s.t.Fatalf("project %s: %v", r.Bytes, err)
		}
		events = append(events, list...)
	}
	return events
}

// log is the whole log of a run.
func (s *stage) log(run string) []harness.Event {
	s.t.Helper()
	l := s.openLog(run)
	chunk, err := l.Read(s.t.Context(), 0, host.Page{})
	if err != nil || chunk.More {
		s.t.Fatalf("read the log of %s: %v, more %v", run, err, chunk.More)
	}
	return s.project(l, chunk.Records)
}

func types(events []harness.Event) string {
	var list []string
	for _, e := range events {
		list = append(list, string(e.Type))
	}
	return strings.Join(list, " ")
}

// R35, R36: the log of a run, from its start to the checkpoint.
func TestLogOfARun(t *testing.T) {
	alone(t, acts{run: asks}, logging(), func(t *testing.T, s *stage) {
		run := s.say("s1", "write it").RunID
		pass(1)
		s.resolve(s.inbox()[0].InterruptID, "approve")
		pass(1)
		got := types(s.log(run))
		want := "run.started message.completed tool.started approval.requested approval.resolved tool.completed run.completed checkpoint"
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		for i, e := range s.log(run) {
			if e.Sequence != uint64(i)+1 {
				t.Errorf("record %d has sequence %d", i+1, e.Sequence)
			}
		}
	})
}

// R16: a run that waits has a log without records, one that was withdrawn has its end.
func TestLogOfAWaitingRun(t *testing.T) {
	alone(t, acts{run: waits}, logging(), func(t *testing.T, s *stage) {
		first, second := s.say("s1", "one").RunID, s.say("s1", "two").RunID
		l := s.openLog(second)
		if start, err := l.Start(t.Context()); start != nil || err != nil {
			t.Errorf("the start of a run that waits: %v %v", start, err)
		}
		if last, ended, err := l.End(t.Context()); last != 0 || ended || err != nil {
			t.Errorf("the end of a run that waits: %d %v %v", last, ended, err)
		}
		f, err := l.Follow(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if records, err := f.Poll(t.Context()); len(records) != 0 || err != nil {
			t.Errorf("a run that waits: got %d records, %v", len(records), err)
		}
		s.do(access.StopRun, "s1", decide.Stop{RootRunID: second}, "")
		records, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := types(s.project(l, records)); got != "run.canceled checkpoint" {
			t.Errorf("withdrawn: got %s", got)
		}
		if _, err := f.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: got %v, want EOF", err)
		}
		// Who comes after the end is told so, and waits for nothing.
		late, err := l.Follow(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		defer late.Close()
		if _, err := late.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("from the end: got %v, want EOF", err)
		}
		s.do(access.StopRun, "s1", decide.Stop{RootRunID: first}, "")
	})
}

// R36: what led to the end of a run is its cause, and nothing of the run comes after it.
func TestLogOfAStoppedRun(t *testing.T) {
	alone(t, acts{run: asks}, logging(), func(t *testing.T, s *stage) {
		run := s.say("s1", "write it").RunID
		pass(1)
		_, err := s.host.Do(t.Context(), access.Owner(), host.Request{
			Action: access.StopRun, Session: "s1", Command: decide.Stop{RootRunID: run}, InputID: "cancel-1", RunID: run,
		})
		if err != nil {
			t.Fatal(err)
		}
		pass(1)
		log := s.log(run)
		want := "run.started message.completed tool.started approval.requested run.canceled checkpoint"
		if got := types(log); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
		if end := log[4]; end.CausationID != "cancel-1" {
			t.Errorf("run.canceled is caused by %q, want the input", end.CausationID)
		}
		if last := log[5]; last.CausationID != log[4].EventID {
			t.Errorf("the checkpoint is caused by %q, want %q", last.CausationID, log[4].EventID)
		}
	})
}

// R21: an input has one effect within its run, whoever tells it again.
func TestInputsAreIdempotent(t *testing.T) {
	alone(t, acts{run: asks}, logging(), func(t *testing.T, s *stage) {
		run := s.say("s1", "write it").RunID
		pass(1)
		asked := s.inbox()[0].InterruptID
		decision := func(word, run, input string) host.Answer {
			t.Helper()
			a, err := s.host.Do(t.Context(), access.Owner(), host.Request{
				Action: access.ResolveInterrupt, Session: "s1", InputID: input, RunID: run,
				Command: decide.Resolve{InterruptID: asked, Decision: word},
			})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		first := decision("approve", run, "in-1")
		if again := decision("approve", run, "in-1"); again != repeated(first) || first.Status != decide.Accepted {
			t.Errorf("told again: %+v, at first %+v", again, first)
		}
		if other := decision("deny", run, "in-1"); other.Status != decide.Conflict {
			t.Errorf("other content: %+v", other)
		}
		if elsewhere := decision("approve", "another", "in-1"); elsewhere.Status != decide.AlreadyApplied {
			t.Errorf("the id in another run: %+v, want to be judged by itself", elsewhere)
		}
		pass(1)
		for _, e := range s.log(run) {
			if e.Type == harness.ApprovalResolved && e.CausationID != "in-1" {
				t.Errorf("approval.resolved is caused by %q, want the input", e.CausationID)
			}
		}
	})
}

// R1: a run that started before there were logs has none, also when it goes on under a
// host that keeps them; what starts there has one.
func TestRunsFromBeforeLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		before := open(t, j, acts{run: asks, resumes: true}, host.Options{})
		before.create("s1")
		old, waiting := before.say("s1", "one").RunID, before.say("s1", "two").RunID
		pass(1)
		before.close()

		s := open(t, j, acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
			if h.Info().RunID == old {
				<-ctx.Done()
			}
			return agent.Ending{}
		}, resumes: true}, logging())
		defer s.close()
		for _, run := range []string{old, waiting} {
			if _, err := s.host.Log(t.Context(), access.Owner(), access.ReadLog, run); !errors.Is(err, host.ErrNotFound) {
				t.Errorf("run %s of the host before: got %v, want ErrNotFound", run, err)
			}
		}
		s.resolve(s.inbox()[0].InterruptID, "approve")
		s.do(access.StopRun, "s1", decide.Stop{RootRunID: old}, "")
		pass(1)
		s.do(access.ChangeQueue, "s1", decide.Release{}, "")
		pass(1)
		if _, err := s.host.Log(t.Context(), access.Owner(), access.ReadLog, old); !errors.Is(err, host.ErrNotFound) {
			t.Errorf("the run that went on: got %v, want ErrNotFound", err)
		}
		if got := types(s.log(waiting)); got != "run.started message.completed run.completed checkpoint" {
			t.Errorf("the run that started here: got %s", got)
		}
	})
}

// Who may decide or drive may follow a run, but sees no private payload; a run elsewhere,
// a nested one and one that is not there are the same to everybody.
func TestWhoReadsALog(t *testing.T) {
	nested := ""
	alone(t, acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
		child, err := h.StartRun(ctx, agent.Nested{AgentID: "n"})
		if err == nil {
			nested = child.Info().RunID
			_ = child.End(ctx, agent.Ending{})
		}
		return agent.Ending{}
	}}, logging(), func(t *testing.T, s *stage) {
		run := s.say("s1", "go").RunID
		synctest.Wait()
		for _, c := range []struct {
			role     access.Role
			space    string
			run      string
			want     error
			observes bool
		}{
			{access.Observe, "default", run, nil, true},
			{access.Decide, "default", run, nil, false},
			{access.Drive, "default", run, nil, false},
			{access.Admin, "default", run, nil, true},
			{access.Execute, "default", run, access.ErrForbidden, false},
			{access.Observe, "elsewhere", run, host.ErrNotFound, false},
			{access.Observe, "default", nested, host.ErrNotFound, false},
			{access.Observe, "default", "nothing", host.ErrNotFound, false},
			{access.Observe, "default", "", host.ErrNotFound, false},
			{"", "", run, access.ErrUnauthenticated, false},
		} {
			l, err := s.host.Log(t.Context(), withRole(t, c.role, c.space), access.ReadLog, c.run)
			if !errors.Is(err, c.want) || err == nil && l.Observes() != c.observes {
				t.Errorf("%s in %q, run %q: got %v, want %v", c.role, c.space, c.run, err, c.want)
			}
		}
	})
}

// withRole has one role in one workspace; nobody has none.
func withRole(t *testing.T, role access.Role, workspace string) access.Principal {
	t.Helper()
	if role == "" {
		return access.Principal{}
	}
	p, err := access.NewPrincipal("p", "p", access.Grant{Roles: []access.Role{role}, Workspaces: []string{workspace}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func requestStop(session, run string) host.Request {
	return host.Request{Action: access.StopRun, Session: session, Command: decide.Stop{RootRunID: run}}
}

// Who comes back at the end of a long log is given what is behind the cursor and nothing
// that was before, with one look into the journal for each page.
func TestLogIsResumedAtItsEnd(t *testing.T) {
	alone(t, acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
		for i := range 2_000 {
			_ = h.Progress(ctx, agent.Progress{
				ID: "p", Category: "c", Label: strconv.Itoa(i), Status: narad.ProgressActive, Privacy: narad.PrivacyPublic,
			})
		}
		return agent.Ending{}
	}}, logging(), func(t *testing.T, s *stage) {
		run := s.say("s1", "go").RunID
		synctest.Wait()
		l := s.openLog(run)
		last, ended, err := l.End(t.Context())
		if err != nil || !ended || last < 2_000 {
			t.Fatalf("the end: %d %v %v", last, ended, err)
		}
		before := s.feed.Stats().Reads
		f, err := l.Follow(t.Context(), last-3)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		records, err := f.Next(t.Context())
		if err != nil || len(records) != 2 || s.feed.Stats().Reads-before > 1 {
			t.Errorf("got %d facts with %d reads, %v; want 2 with one", len(records), s.feed.Stats().Reads-before, err)
		}
		if got := types(s.project(l, records)); got != "ui.block run.completed checkpoint" {
			t.Errorf("got %s", got)
		}
	})
}
