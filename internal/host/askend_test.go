package host_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
)

// putAway archives or deletes a session.
func (s *stage) putAway(how, id string) error {
	if how == "delete" {
		a, err := s.host.Delete(s.t.Context(), access.Owner(), id)
		if err == nil && a.Status != decide.Accepted {
			s.t.Errorf("delete %s: %+v", id, a)
		}
		return err
	}
	a, err := s.host.Do(s.t.Context(), access.Owner(), host.Request{Action: access.ArchiveSession, Session: id, Command: decide.Archive{}})
	if err == nil && a.Status != decide.Accepted && a.Status != decide.AlreadyApplied {
		s.t.Errorf("archive %s: %+v", id, a)
	}
	return err
}

// asksOf are the asks that a session is part of, none where it is gone.
func (s *stage) asksOf(id string) (asking, asked []string) {
	s.t.Helper()
	if !slices.Contains(s.sessions(), id) {
		return nil, nil
	}
	d := s.desk(id)
	for _, a := range d.Asking {
		asking = append(asking, a.AskID)
	}
	for _, a := range d.Asked {
		asked = append(asked, a.AskID)
	}
	return asking, asked
}

// Asks of no turn end with either session, for both: limits are free again, and nobody can
// answer.
func TestAsksEndWithTheirSessions(t *testing.T) {
	for _, how := range []string{"archive", "delete"} {
		for _, id := range []string{"s1", "s2"} {
			t.Run(how+" "+id, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := open(t, memory(t, journal.Options{}), acts{run: speaks}, speaking())
					defer s.close()
					s.create("s1")
					s.create("s2")
					s.create("s3")
					var askID string
					for range 32 {
						askID = s.tell("s1", "s2", "?", true).RequestID
						synctest.Wait()
					}
					if err := s.putAway(how, id); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					asking, _ := s.asksOf("s1")
					_, asked := s.asksOf("s2")
					if len(asking)+len(asked) > 0 {
						t.Errorf("open still: %d that s1 asks, %d that s2 is asked", len(asking), len(asked))
					}
					if id == "s2" {
						if a := s.tell("s1", "s3", "?", true); a.Status != decide.Accepted {
							t.Errorf("ask another one: %+v", a)
						}
						return
					}
					a := s.do(access.SendMessage, "s2", decide.AnswerAsk{AskID: askID, Content: "!"}, "")
					if a.Err != decide.RefusedAskClosed {
						t.Errorf("answer: %+v, want that the ask is closed", a)
					}
				})
			})
		}
	}
}

// A turn that waits for an answer goes on when who was asked is put away or deleted, or its
// waiting message withdrawn: nobody will answer.
func TestWhoAsksIsToldThatNobodyAnswers(t *testing.T) {
	for _, how := range []string{"archive", "delete", "withdraw"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s *stage
				ended := make(chan bool, 1)
				kind := acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
					if h.Info().SessionID == "s2" {
						if how == "withdraw" {
							<-ctx.Done()
						}
						return agent.Ending{}
					}
					askID, err := h.Tell(ctx, agent.Telling{To: h.Info().Prompt.Content, Content: "?", Ask: true})
					if err != nil {
						t.Error(err)
					}
					_, answered, err := h.AwaitAnswer(ctx, askID)
					if err != nil {
						t.Error(err)
					}
					ended <- answered
					return agent.Ending{}
				}}
				s = open(t, memory(t, journal.Options{}), kind, speaking())
				defer s.close()
				s.create("s1")
				s.create("s2")
				if how == "withdraw" {
					s.say("s2", "work")
					synctest.Wait()
				}
				s.say("s1", s.callable("s2"))
				synctest.Wait()
				if how == "withdraw" {
					s.do(access.ChangeQueue, "s2", decide.Withdraw{RunID: s.desk("s2").Queue[0].RunID}, "")
				} else if err := s.putAway(how, "s2"); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				select {
				case answered := <-ended:
					if answered {
						t.Error("it was answered, want that nobody will")
					}
				default:
					t.Error("the turn waits still")
				}
				if _, asked := s.asksOf("s2"); len(asked) > 0 {
					t.Errorf("s2 is asked still: %q", asked)
				}
			})
		})
	}
}

// Wherever a host dies while a session is archived or deleted that asks and is asked: it is
// there with all that it was part of open or ended for both, or gone with nothing left open.
func TestAsksEndOverCrashes(t *testing.T) {
	for _, how := range []string{"archive", "delete"} {
		for cut := int64(1); cut <= 10; cut++ {
			for _, after := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					j := memory(t, journal.Options{})
					s := open(t, j, acts{run: speaks}, speaking())
					for _, id := range []string{"s1", "s2", "s3"} {
						s.create(id)
					}
					s.tell("s1", "s2", "?", true)
					s.tell("s2", "s3", "?", true)
					synctest.Wait()
					s.close()
					broken := &dying{Journal: j, after: after}
					broken.left.Store(cut)
					s = open(t, broken, acts{run: speaks}, speaking())
					err := s.putAway(how, "s2")
					synctest.Wait()
					s.end()
					s = open(t, j, acts{run: speaks}, speaking())
					defer s.close()
					pass(time.Minute)
					s.sameForBoth(err == nil)
					if err := s.putAway(how, "s2"); err != nil && !errors.Is(err, host.ErrGone) {
						t.Errorf("again: %v", err)
					}
					synctest.Wait()
					s.sameForBoth(true)
					if t.Failed() {
						t.Errorf("%s, cut at %d (after: %v): %v", how, cut, after, err)
					}
				})
			}
		}
	}
}

// sameForBoth demands that an ask is open where it was put if it is where it was asked.
func (s *stage) sameForBoth(closed bool) {
	s.t.Helper()
	first, _ := s.asksOf("s1")
	asking, asked := s.asksOf("s2")
	_, last := s.asksOf("s3")
	if !slices.Equal(first, asked) || !slices.Equal(asking, last) || closed && len(first)+len(last) > 0 {
		s.t.Errorf("s1 asks %q, s2 is asked %q and asks %q, s3 is asked %q; want all closed: %v", first, asked, asking, last, closed)
	}
}

// R44: the name of a session that was deleted is nobody else's.
func TestNameIsNotGivenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memory(t, journal.Options{}), acts{run: speaks}, speaking())
		defer s.close()
		one, two := "11111111-1111-4111-8111-111111abcdef", "41111111-1111-4111-8111-111111abcdef"
		s.create(one)
		name := s.callable(one)
		if err := s.putAway("delete", one); err != nil {
			t.Fatal(err)
		}
		s.create(two)
		if got := s.callable(two); got == name {
			t.Errorf("a new session is called %s, as the deleted one was", got)
		}
	})
}
