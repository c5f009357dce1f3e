package host_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narya"
)

// Whatever the stream names leads back to what it stands for.
func TestAliases(t *testing.T) {
	alone(t, acts{run: asks}, logging(), func(t *testing.T, s *stage) {
		run := s.say("s1", "hello").RunID
		synctest.Wait()
		asked := s.inbox()[0]
		for _, c := range []struct {
			kind     narya.Kind
			uuid, id string
		}{
			{narya.KindSession, narya.UUID(narya.KindSession, "s1"), "s1"},
			{narya.KindMainLane, narya.MainLaneID("s1"), "s1"},
			{narya.KindRun, run, run},
			{narya.KindInterrupt, asked.InterruptID, asked.InterruptID},
		} {
			session, id, err := s.host.Alias(t.Context(), access.Owner(), c.kind, c.uuid)
			if err != nil || session != "s1" || id != c.id {
				t.Errorf("%s %s: got %q in %q, %v, want %q in s1", c.kind, c.uuid, id, session, err, c.id)
			}
		}
		for kind, uuid := range map[narya.Kind]string{
			narya.KindSession: "s1", narya.KindMainLane: "s1", narya.KindRun: strings.ToUpper(run), narya.KindInterrupt: run,
			narya.KindLane: narya.LaneID(run), narya.KindWorkflow: "", narya.KindMember: "a\x00",
		} {
			if _, _, err := s.host.Alias(t.Context(), access.Owner(), kind, uuid); !errors.Is(err, host.ErrNotFound) {
				t.Errorf("%s %q: got %v, want ErrNotFound", kind, uuid, err)
			}
		}
	})
}

// A session from before the contract is none of it, nor what is in it.
func TestAliasesOfASessionFromBefore(t *testing.T) {
	before := logging()
	before.Mappings.Narya = 0
	alone(t, acts{run: speaks}, before, func(t *testing.T, s *stage) {
		const named = "0198c2f0-7c1e-7b0a-9f0e-3a5b7c9d1e2f"
		s.create(named)
		run := s.say(named, "hello").RunID
		synctest.Wait()
		for kind, uuid := range map[narya.Kind]string{
			narya.KindSession: named, narya.KindRun: run, narya.KindMainLane: narya.MainLaneID(named),
		} {
			if _, _, err := s.host.Alias(t.Context(), access.Owner(), kind, uuid); !errors.Is(err, host.ErrNotFound) {
				t.Errorf("%s: got %v, want ErrNotFound", kind, err)
			}
		}
		if mark := s.journal.Durable().Event; mark != s.journal.Identity().FirstEvent-1 {
			t.Errorf("event numbers were given: the mark is %d", mark)
		}
	})
}

// The session of one id cannot take the UUID under which that of another is shown.
func TestSessionsShownAlike(t *testing.T) {
	alone(t, acts{run: speaks}, logging(), func(t *testing.T, s *stage) {
		for first, second := range map[string]string{
			"s1": narya.UUID(narya.KindSession, "s1"), narya.UUID(narya.KindSession, "later"): "later",
		} {
			s.create(first)
			if a := s.do(access.CreateSession, second, create(), ""); a.Status.Accepted() {
				t.Errorf("%s after %s: got %+v, want a refusal", second, first, a)
			}
		}
	})
}

// The numbers that facts get are those of the events that they cause: consecutive, over all
// sessions.
func TestEventNumbers(t *testing.T) {
	alone(t, acts{run: speaks}, logging(), func(t *testing.T, s *stage) {
		s.create("s2")
		for range 3 {
			s.say("s1", "hello")
			s.say("s2", "hello")
			synctest.Wait()
		}
		next := s.journal.Identity().FirstEvent
		chunk, err := s.journal.Read(t.Context(), journal.ByOffset{}, journal.Page{})
		if err != nil || chunk.More {
			t.Fatalf("read: %v, more: %v", err, chunk.More)
		}
		for _, r := range chunk.Records {
			rec, err := narad.Decode(r.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			events := narya.Mapping1.Project(rec.(narad.Authority))
			if len(events) != int(r.EventCount) || len(events) > 0 && r.FirstEvent != next {
				t.Errorf("%s: got %d numbers from %d, want %d from %d", rec.Type(), r.EventCount, r.FirstEvent, len(events), next)
			}
			next += uint64(len(events))
		}
		if got := s.journal.Durable().Event; got != next-1 || next == s.journal.Identity().FirstEvent {
			t.Errorf("the mark is %d, want %d", got, next-1)
		}
	})
}

func TestAliasOfAMember(t *testing.T) {
	if i, r := index.Member("i1/a/b"); i != "i1" || r != "a/b" {
		t.Errorf("got %q and %q", i, r)
	}
}
