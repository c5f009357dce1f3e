package host_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/numbers"
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
