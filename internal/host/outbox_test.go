package host_test

import (
	"bytes"
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
	"github.com/mahati-host/mahati/internal/decide"
	sessiondesk "github.com/mahati-host/mahati/internal/desk"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/numbers"
)

// speaking are the options of hosts whose sessions speak to each other.
func speaking() host.Options {
	return host.Options{Numbers: numbers.Of, Mappings: facts.Mappings{Narya: 1}}
}

// tell says something to another session.
func (s *stage) tell(from, to, content string, ask bool) host.Answer {
	s.t.Helper()
	return s.do(access.SendMessage, from, decide.Tell{To: s.callable(to), Content: content, Ask: ask}, "")
}

// heard lists what others said to a session.
func (s *stage) heard(id string) (list []string) {
	s.t.Helper()
	for _, f := range s.facts(id) {
		if told, ok := facts.Read[facts.Told](f, facts.Intercom); ok {
			list = append(list, told.Content)
		}
	}
	return list
}

// desk is what a session's facts add up to.
func (s *stage) desk(id string) *sessiondesk.State {
	s.t.Helper()
	d := &sessiondesk.State{}
	for _, f := range s.facts(id) {
		d.Apply(f)
	}
	return d
}

func count(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(prefix, i))
	}
	return list
}

func TestTellAnArchivedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory(t, journal.Options{}), acts{run: speaks}, speaking())
		defer s.close()
		s.create("s1")
		s.create("s2")
		name := s.callable("s2")
		s.do(access.ArchiveSession, "s2", decide.Archive{}, "")
		for _, ask := range []bool{false, true} {
			a := s.do(access.SendMessage, "s1", decide.Tell{To: name, Content: "hear", Ask: ask}, "")
			if a.Status != decide.Conflict || a.Err != decide.RefusedArchivedOther || !strings.Contains(a.Detail, name) {
				t.Errorf("ask %v: got %+v, want a refusal that names %s", ask, a, name)
			}
		}
		if d := s.desk("s1"); len(d.Outbox)+len(d.Asking) > 0 {
			t.Errorf("what was refused is kept: %+v", d.Intercom)
		}
	})
}

// tight is a journal that has no room from the moment on at which a session has spoken.
type tight struct {
	journal.Journal
	full atomic.Bool
}

func (j *tight) Admit(closing bool) error {
	if j.full.Load() {
		return journal.ErrStorageFull
	}
	return j.Journal.Admit(closing)
}

func (j *tight) Append(ctx context.Context, b journal.Batch) (journal.Receipt, error) {
	for _, f := range b.Facts {
		if bytes.Contains(f.Bytes, []byte(facts.IntercomSent)) {
			j.full.Store(true)
		}
	}
	return j.Journal.Append(ctx, b)
}

// Who was archived after something was accepted for it hears a message when it is taken back,
// and an ask ends.
func TestArchivedAfterItWasTold(t *testing.T) {
	for _, ask := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			j := &tight{Journal: memory(t, journal.Options{})}
			s := open(t, j, acts{run: speaks}, speaking())
			s.create("s1")
			s.create("s2")
			s.tell("s1", "s2", "hear", ask)
			synctest.Wait()
			j.full.Store(false)
			s.do(access.ArchiveSession, "s2", decide.Archive{}, "")
			pass(10 * time.Minute)
			s.close()
			s = open(t, j, acts{run: speaks}, speaking())
			defer s.close()
			if d := s.desk("s1"); len(d.Asking) > 0 || len(d.Outbox) > 0 == ask {
				t.Errorf("ask %v: left with %+v", ask, d.Intercom)
			}
			s.do(access.RestoreSession, "s2", decide.Restore{}, "")
			synctest.Wait()
			want := []string{"hear"}
			if ask {
				want = nil
			}
			if got := s.heard("s2"); !slices.Equal(got, want) {
				t.Errorf("ask %v: heard %q, want %q", ask, got, want)
			}
		})
	}
}

// What a full queue does not take waits, over restarts too, and keeps no other session from
// hearing. What is too much is refused.
func TestTellABusySession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, done := memory(t, journal.Options{}), make(chan struct{})
		kind := acts{resumes: true, run: func(ctx context.Context, h agent.Handle) agent.Ending {
			if h.Info().SessionID == "s2" {
				select {
				case <-done:
				case <-ctx.Done():
				}
			}
			return agent.Ending{}
		}}
		o := speaking()
		o.QueueLimit = 3
		s := open(t, j, kind, o)
		for _, id := range []string{"s1", "s2", "s3"} {
			s.create(id)
		}
		said := count("n", 70)
		var accepted []string
		for _, content := range said {
			a := s.tell("s1", "s2", content, false)
			synctest.Wait()
			if a.Status == decide.Accepted {
				accepted = append(accepted, content)
			}
		}
		if want := 1 + 3 + 64; len(accepted) != want || !slices.Equal(accepted, said[:want]) {
			t.Errorf("%d of %d were accepted, want the first %d", len(accepted), len(said), want)
		}
		s.close()
		s = open(t, j, kind, o)
		defer s.close()
		pass(time.Hour)
		if got := s.heard("s2"); len(got) != 4 {
			t.Errorf("full, and heard %q", got)
		}
		close(done)
		synctest.Wait()
		if got := s.heard("s2"); !slices.Equal(got, accepted) {
			t.Errorf("heard %q, want %q", got, accepted)
		}
	})
}

func TestTellOthersBesideAFullQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
			if h.Info().SessionID == "s2" {
				<-ctx.Done()
			}
			return agent.Ending{}
		}}
		o := speaking()
		o.QueueLimit = 1
		s := open(t, memory(t, journal.Options{}), kind, o)
		defer s.close()
		for _, id := range []string{"s1", "s2", "s3"} {
			s.create(id)
		}
		for _, content := range count("n", 5) {
			s.tell("s1", "s2", content, false)
			s.tell("s1", "s3", content, false)
			synctest.Wait()
		}
		if got, want := s.heard("s3"), count("n", 5); !slices.Equal(got, want) {
			t.Errorf("beside a full queue heard %q, want %q", got, want)
		}
	})
}

// As many asks wait in a session as may: the next ones wait where they were put, and come as
// soon as others have ended.
func TestAskMoreThanMayWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory(t, journal.Options{}), acts{run: speaks}, speaking())
		defer s.close()
		for _, id := range []string{"s1", "s2", "s3"} {
			s.create(id)
		}
		var put []string
		for i := range 20 {
			for _, from := range []string{"s1", "s3"} {
				content := fmt.Sprint(from, i)
				if a := s.tell(from, "s2", content, true); a.Status != decide.Accepted {
					t.Fatalf("%s: %+v", content, a)
				}
				put = append(put, content)
				synctest.Wait()
			}
		}
		if d := s.desk("s2"); len(d.Asked) != 32 {
			t.Errorf("%d asks wait, want 32", len(d.Asked))
		}
		s.do(access.ArchiveSession, "s1", decide.Archive{}, "") // its asks end, those in its outbox too
		synctest.Wait()
		s.do(access.ArchiveSession, "s3", decide.Archive{}, "")
		pass(10 * time.Minute)
		if d := s.desk("s2"); len(d.Asked) != 0 {
			t.Errorf("%d asks wait that nobody asks any more", len(d.Asked))
		}
		got := s.heard("s2")
		slices.Sort(got)
		slices.Sort(put)
		if !slices.Equal(got, put) {
			t.Errorf("heard %q, want %q", got, put)
		}
	})
}

// An answer is taken, and heard, while the disk is as good as full, and whatever else of the
// session waits for somebody who takes nothing: who asked waits for it.
func TestAnswersGoThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Uint64
		free.Store(10 << 30)
		j := memory(t, journal.Options{Free: func() (uint64, error) { return free.Load(), nil }})
		o := speaking()
		o.QueueLimit = 1
		s := open(t, j, acts{run: waits}, o)
		defer s.close()
		for _, id := range []string{"s1", "s2", "s3"} {
			s.create(id)
		}
		s.tell("s1", "s2", "which?", true)
		s.say("s3", "work")
		s.say("s3", "next")
		for i := range 64 {
			if a := s.tell("s2", "s3", fmt.Sprint("m", i), false); a.Status != decide.Accepted {
				t.Fatalf("message %d: %+v", i, a)
			}
		}
		synctest.Wait()
		if a := s.tell("s2", "s3", "more", false); a.Err != decide.RefusedOutbox {
			t.Errorf("one message too many: %+v", a)
		}
		free.Store(1<<30 - 1<<20)
		pass(2 * time.Second)
		if _, err := s.host.Do(t.Context(), access.Owner(), host.Request{
			Action: access.SendMessage, Session: "s1", Command: decide.Message{Content: "x"},
		}); !errors.Is(err, host.ErrStorageFull) {
			t.Fatalf("a message in the reserve: %v", err)
		}
		asked := s.desk("s2").Asked
		if len(asked) != 1 {
			t.Fatalf("open asks: %+v", asked)
		}
		s.do(access.SendMessage, "s2", decide.AnswerAsk{AskID: asked[0].AskID, Content: "this one"}, "")
		synctest.Wait()
		if got := s.heard("s1"); len(got) != 1 || got[0] != "this one" {
			t.Errorf("who asked heard %q", got)
		}
	})
}
