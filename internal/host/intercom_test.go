package host_test

import (
	"context"
	"slices"
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
	"github.com/mahati-host/mahati/internal/numbers"
	"github.com/mahati-host/mahati/narya"
)

// dying is a journal that breaks the host off at one append, before or after it is done.
type dying struct {
	journal.Journal
	left  atomic.Int64 // appends until then
	after bool
}

func (d *dying) Append(ctx context.Context, b journal.Batch) (journal.Receipt, error) {
	n := d.left.Add(-1)
	if n > 0 || n == 0 && d.after {
		r, err := d.Journal.Append(ctx, b)
		if n > 0 {
			return r, err
		}
	}
	return journal.Receipt{}, journal.ErrClosed
}

// R44: wherever a host dies, what was said and acknowledged is heard once, in its order.
func TestIntercomOverCrashes(t *testing.T) {
	for cut := int64(1); cut <= 14; cut++ {
		for _, after := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				j := memory(t, journal.Options{})
				o := host.Options{Numbers: numbers.Of, Mappings: facts.Mappings{Narya: 1}}
				s := open(t, j, acts{run: speaks}, o)
				s.create("s1")
				s.create("s2")
				s.close()
				broken := &dying{Journal: j, after: after}
				broken.left.Store(cut)
				s = open(t, broken, acts{run: speaks}, o)
				var said []string
				for _, content := range []string{"a", "b", "c"} {
					a, err := s.host.Do(t.Context(), access.Owner(), host.Request{
						Action: access.SendMessage, Session: "s1", Command: decide.Tell{To: s.callable("s2"), Content: content},
					})
					if err == nil && a.Status == decide.Accepted {
						said = append(said, content)
					}
				}
				synctest.Wait()
				s.end()
				s = open(t, j, acts{run: speaks}, o)
				defer s.close()
				pass(time.Minute)
				synctest.Wait()
				heard, started := []string{}, 0
				for _, f := range s.facts("s2") {
					if told, ok := facts.Read[facts.Told](f, facts.Intercom); ok {
						heard = append(heard, told.Content)
					}
					if strings.HasPrefix(string(f.Type()), "message.user") {
						started++
					}
				}
				once := slices.Compact(slices.Sorted(slices.Values(heard)))
				lost := slices.ContainsFunc(said, func(c string) bool { return !slices.Contains(heard, c) })
				if lost || !slices.Equal(heard, once) || started != len(heard) {
					t.Errorf("cut at %d (after: %v): acknowledged %q, heard %q, %d turns", cut, after, said, heard, started)
				}
			})
		}
	}
}

// callable is the name by which others call a session.
func (s *stage) callable(id string) string {
	s.t.Helper()
	list, _, err := s.host.Callables(s.t.Context(), access.Owner(), "", 10)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range list {
		if c.SessionID == id {
			return c.Name
		}
	}
	s.t.Fatalf("%s is not listed: %+v", id, list)
	return ""
}

// deaf is a journal in which the facts of one session cannot be read.
type deaf struct {
	journal.Journal
	session string
}

func (d deaf) Read(ctx context.Context, order journal.Order, page journal.Page) (journal.Chunk, error) {
	if o, ok := order.(journal.BySession); ok && o.Session == d.session {
		return journal.Chunk{}, journal.ErrDamaged
	}
	return d.Journal.Read(ctx, order, page)
}

func (d deaf) Scan(ctx context.Context, order journal.Order, page journal.Page, visit func(*journal.Record)) (bool, error) {
	if o, ok := order.(journal.BySession); ok && o.Session == d.session {
		return false, journal.ErrDamaged
	}
	return d.Journal.Scan(ctx, order, page, visit)
}

// A session that is damaged hears nothing, and keeps no other one from hearing.
func TestIntercomBesideDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		o := host.Options{Numbers: numbers.Of, Mappings: facts.Mappings{Narya: 1}}
		s := open(t, j, acts{run: speaks}, o)
		for _, id := range []string{"s1", "s2", "s3"} {
			s.create(id)
		}
		s.close()
		s = open(t, deaf{j, "s2"}, acts{run: speaks}, o)
		defer s.end()
		for _, to := range []string{"s2", "s3"} {
			a, err := s.host.Do(t.Context(), access.Owner(), host.Request{
				Action: access.SendMessage, Session: "s1", Command: decide.Tell{To: s.callable(to), Content: "hear"},
			})
			if err != nil || a.Status != decide.Accepted {
				t.Fatalf("tell %s: %v, %v", to, a.Status, err)
			}
		}
		pass(time.Minute)
		var codes []string
		for _, f := range s.facts("s1") {
			if d, ok := facts.Read[facts.Delivered](f, facts.IntercomDelivered); ok {
				codes = append(codes, d.Code)
			}
		}
		if want := []string{"damaged", ""}; !slices.Equal(codes, want) {
			t.Errorf("what was said ended as %q, want %q", codes, want)
		}
	})
}

// overtaken is a journal in which something happens right before the first append to a
// session.
type overtaken struct {
	journal.Journal
	session string
	by      func()
}

func (o *overtaken) Append(ctx context.Context, b journal.Batch) (journal.Receipt, error) {
	if by := o.by; by != nil && b.Session == o.session {
		o.by = nil
		by()
	}
	return o.Journal.Append(ctx, b)
}

// R44, R5: of two sessions that are made at once, and would be called or shown alike, the
// second one gets the name that it would have got a moment later, or the same refusal.
func TestSessionsMadeAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, second string
		want          decide.Status
		names         []string
	}{
		{"called alike", "10000000-0000-4000-8000-000000abcdef", "20000000-0000-4000-8000-111111abcdef", decide.Accepted, []string{"session-abcdef", "session-111111abcdef"}},
		{"called alike to the last", "10000000-0000-4000-8000-000000abcdef", "20000000-0000-4000-8000-000000abcdef", decide.Accepted, []string{"session-abcdef", "session-000000abcdef"}},
		{"shown alike, the name first", "plain", narya.UUID(narya.KindSession, "plain"), decide.Rejected, nil},
		{"shown alike, the UUID first", narya.UUID(narya.KindSession, "plain"), "plain", decide.Rejected, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &overtaken{Journal: memory(t, journal.Options{}), session: tt.second}
				s := open(t, j, acts{run: speaks}, host.Options{Mappings: facts.Mappings{Narya: 1}})
				defer s.close()
				made, other := create(), create()
				made.Payload.Title = "Session"
				if tt.names != nil {
					other.Payload.Title = "Session"
				}
				j.by = func() { s.do(access.CreateSession, tt.first, other, "") }
				if a := s.do(access.CreateSession, tt.second, made, "k"); a.Status != tt.want {
					t.Fatalf("the second: got %+v, want %s", a, tt.want)
				}
				if tt.want != decide.Accepted {
					return
				}
				if a := s.do(access.CreateSession, tt.second, made, "k"); !a.Repeated {
					t.Errorf("told again: got %+v, want the first answer", a)
				}
				if got := []string{s.callable(tt.first), s.callable(tt.second)}; !slices.Equal(got, tt.names) {
					t.Errorf("got %q, want %q", got, tt.names)
				}
			})
		})
	}
}

// An agent that waits for other sessions leaves them its one place, however often it asks at
// once, and gets it back.
func TestParallelAsksLeaveOnePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		var working, most atomic.Int64
		s := open(t, memory(t, journal.Options{}), acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
			if h.Info().Prompt.Content != "ask" {
				most.Store(max(most.Load(), working.Add(1)))
				pass(time.Minute)
				working.Add(-1)
				return agent.Ending{}
			}
			var all sync.WaitGroup
			for _, to := range names {
				askID, err := h.Tell(ctx, agent.Telling{To: to, Content: "what?", Ask: true})
				if err != nil {
					t.Error(err)
				}
				all.Go(func() { _, _, _ = h.AwaitAnswer(ctx, askID) })
			}
			all.Wait()
			return agent.Ending{Outcome: agent.Cancelled}
		}}, host.Options{MaxRunning: 1, Mappings: facts.Mappings{Narya: 1}})
		defer s.close()
		for _, id := range []string{"s1", "s2", "s3", "s4"} {
			s.create(id)
		}
		names = []string{s.callable("s2"), s.callable("s3"), s.callable("s4")}
		s.say("s1", "ask")
		pass(time.Hour)
		s.say("s2", "more")
		s.say("s3", "more")
		pass(time.Hour)
		if most.Load() != 1 {
			t.Errorf("%d agents worked at once in the one place that was left, want 1", most.Load())
		}
		s.do(access.StopRun, "s1", decide.Stop{}, "")
		pass(time.Minute)
		if now := s.host.Stats(); now.Running != 0 || now.Waiting != 0 {
			t.Errorf("at the end: %+v, want that all places are free", now)
		}
	})
}
