package host_test

import (
	"bytes"
	"context"
	"math/rand"
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
	"github.com/mahati-host/mahati/narad"
)

// stopAfter stops the run of s1 when so many facts are there, and waits for its end.
func stopAfter(t *testing.T, facts int) (story string, reached bool) {
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		stop := make(chan struct{})
		var once sync.Once
		forget := j.OnDurable(func(m journal.Mark) {
			if m.Offset >= uint64(facts) {
				once.Do(func() { close(stop) })
			}
		})
		defer forget()
		s := open(t, j, acts{run: rich}, host.Options{})
		defer s.close()
		s.create("s1")
		run := s.say("s1", "work").RunID
		go func() { // somebody approves whatever is asked
			for range 100 {
				for _, i := range s.inbox() {
					_, _ = s.host.Do(t.Context(), access.Owner(), host.Request{
						Action: access.ResolveInterrupt, Command: decide.Resolve{InterruptID: i.InterruptID, Decision: i.Actions[0]},
					})
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		select {
		case <-stop:
			reached = true
			s.do(access.StopRun, "s1", decide.Stop{RootRunID: run}, "")
		case <-time.After(time.Minute):
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		story = s.story("s1")
		if got := s.summary("s1"); got.State != "idle" || len(s.inbox()) != 0 {
			t.Errorf("stopped after %d facts: %+v with %d questions\n%s", facts, got, len(s.inbox()), story)
		}
	})
	return story, reached
}

// Field cases 36, 58: wherever a stop comes, one terminal follows, nothing starts after
// it, and nothing stays open.
func TestStopAnywhere(t *testing.T) {
	for n := 2; ; n++ {
		story, reached := stopAfter(t, n)
		if t.Failed() {
			return
		}
		before, after, stopped := strings.Cut(story, "run.stop.requested")
		if stopped {
			for _, start := range []string{"tool.call.started", "run.started", "interrupt.requested"} {
				if strings.Contains(after, start) {
					t.Errorf("stopped after %d facts: %s after the stop\n%s", n, start, story)
				}
			}
			if !strings.HasSuffix(after, "run.cancelled") || strings.Contains(before, "run.finished run.finished run.finished") {
				t.Errorf("stopped after %d facts: got %s", n, story)
			}
		}
		if !reached {
			if n < 30 {
				t.Errorf("the story has only %d facts", n)
			}
			return
		}
	}
}

// Field case 69: a stop races with the end of the run; there is one terminal, and the
// answers agree with it.
func TestStopRacesWithTheEnd(t *testing.T) {
	j := memory(t, journal.Options{})
	ends := make(chan struct{})
	s := open(t, j, acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
		_ = h.Text(ctx, "x")
		select {
		case <-ends:
		case <-ctx.Done():
		}
		return agent.Ending{Outcome: agent.Failed, Code: "broke", Message: "It broke."}
	}}, host.Options{})
	defer s.close()
	s.create("s1")
	rng := rand.New(rand.NewSource(1))
	cancelled := 0
	for round := range 500 {
		said := s.say("s1", "go")
		run := said.RunID
		var both sync.WaitGroup
		var answer host.Answer
		end := func() {
			select {
			case ends <- struct{}{}:
			case <-time.After(time.Millisecond): // it was stopped
			}
		}
		stop := func() { answer = s.do(access.StopRun, "s1", decide.Stop{RootRunID: run}, "") }
		if rng.Intn(2) == 0 {
			both.Go(end)
			both.Go(stop)
		} else {
			end() // its record is on the way
			both.Go(stop)
		}
		both.Wait()
		terminal := s.endOf(said)
		if (terminal == narad.TypeRunCancelled) != (answer.Status == decide.Accepted) {
			t.Fatalf("round %d: the stop was answered %+v, the run ended as %s", round, answer, terminal)
		}
		if terminal == narad.TypeRunCancelled {
			cancelled++
		}
	}
	t.Logf("%d of 500 were stopped before their end", cancelled)
	terminals := map[string]int{}
	for _, f := range s.facts("s1") {
		switch f.(type) {
		case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
			terminals[f.Envelope().RunID]++
		}
	}
	for run, n := range terminals {
		if n != 1 {
			t.Errorf("run %s has %d terminals", run, n)
		}
	}
	if len(terminals) != 500 {
		t.Errorf("%d of 500 runs ended", len(terminals))
	}
}

// endOf waits for the end of the run of a message and returns its type.
func (s *stage) endOf(said host.Answer) narad.Type {
	s.t.Helper()
	v, err := s.host.Attach(s.t.Context(), access.Owner(), access.ReadSession, "s1")
	if err != nil {
		s.t.Fatal(err)
	}
	framer := s.host.NewFramer(func(r host.Record) []byte { return append(r.Bytes, '\n') })
	frames := v.Follow(framer, uint64(said.SessionSequence))
	defer frames.Close()
	for {
		chunk, err := frames.Next(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for line := range bytes.Lines(chunk) {
			rec, err := narad.Decode(line)
			if err != nil {
				s.t.Fatal(err)
			}
			switch f := rec.(type) {
			case *narad.RunFinished, *narad.RunError, *narad.RunCancelled:
				if rec.(narad.Authority).Envelope().RunID == said.RunID {
					return f.Type()
				}
			}
		}
	}
}

// An agent that neither stops nor closes costs the session nothing: its run ends, and
// the next one gets another agent.
func TestAgentThatIgnoresEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		deaf := func(ctx context.Context, h agent.Handle) agent.Ending {
			if h.Info().Prompt.Content == "next" {
				return speaks(ctx, h)
			}
			_ = h.Text(ctx, "last words")
			<-gone
			return agent.Ending{}
		}
		s := open(t, memory(t, journal.Options{}), acts{run: deaf}, host.Options{})
		defer s.close()
		defer close(gone)
		s.create("s1")
		run := s.say("s1", "work").RunID
		synctest.Wait()
		s.do(access.StopRun, "s1", decide.Stop{RootRunID: run}, "")
		time.Sleep(21 * time.Second)
		synctest.Wait()
		want := "run.stop.requested message.text.started message.text.delta message.text.completed run.cancelled"
		if got := s.story("s1"); !strings.HasSuffix(got, want) {
			t.Fatalf("got %s, want it to end in %s", got, want)
		}
		s.say("s1", "next")
		synctest.Wait()
		if got := s.story("s1"); !strings.HasSuffix(got, "run.finished") {
			t.Errorf("the next run: got %s", got)
		}
	})
}

// Field case 64: who stops need not be who started.
func TestAnotherPrincipalStops(t *testing.T) {
	alone(t, acts{run: waits}, host.Options{}, func(t *testing.T, s *stage) {
		ctx, hangUp := context.WithCancel(t.Context())
		_, err := s.host.Do(ctx, access.Owner(), host.Request{Action: access.SendMessage, Session: "s1", Command: decide.Message{Content: "x"}})
		if err != nil {
			t.Fatal(err)
		}
		before := s.story("s1")
		hangUp()
		time.Sleep(time.Hour)
		if got := s.story("s1"); got != before {
			t.Fatalf("the client that left caused %s", strings.TrimPrefix(got, before))
		}
		other, err := access.NewPrincipal("other", "other", access.Grant{Roles: []access.Role{access.Drive}})
		if err != nil {
			t.Fatal(err)
		}
		a, err := s.host.Do(t.Context(), other, host.Request{Action: access.StopRun, Session: "s1", Command: decide.Stop{}})
		if err != nil || a.Status != decide.Accepted {
			t.Errorf("got %+v %v, want accepted", a, err)
		}
		synctest.Wait()
	})
}
