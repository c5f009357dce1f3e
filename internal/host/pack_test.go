package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent"
	"github.com/mahati-host/mahati/internal/agent/script"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
)

// decideMembers decides some members of the one pack that waits.
func (s *stage) decideMembers(decision string, members ...string) {
	s.t.Helper()
	a := s.do(access.ResolveInterrupt, "s1", decide.Resolve{
		InterruptID: s.inbox()[0].InterruptID, Decision: decision, Members: members,
	}, "")
	if a.Status != decide.Accepted {
		s.t.Fatalf("%s %v: got %+v, want accepted", decision, members, a)
	}
}

// R12: a member that was allowed is done although the rest of its pack has expired, and
// one that was denied is not; a restart in between changes nothing.
func TestAgentIsToldOfEachMember(t *testing.T) {
	kind, err := script.New([]byte(`
script: 1
steps:
  - ask:
      title: Three
      expires: 1m
      members:
        - {id: a, on: {approve: [{say: "a done. "}], expired: [{say: "a lost. "}]}}
        - {id: b, on: {deny: [{say: "b left. "}], expired: [{say: "b lost. "}]}}
        - {id: c, on: {approve: [{say: "c done. "}], expired: [{say: "c lost. "}]}}
      on: {deny: [{say: "Not all."}]}
`), script.Options{Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for _, restart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			j := memory(t, journal.Options{})
			s := open(t, j, kind, host.Options{})
			defer func() { s.close() }()
			s.create("s1")
			s.say("s1", "go")
			synctest.Wait()
			s.decideMembers("approve", "a")
			s.decideMembers("deny", "b")
			if restart {
				s.close()
				s = open(t, j, kind, host.Options{})
			}
			pass(2 * time.Minute)
			synctest.Wait()
			var said strings.Builder
			for _, f := range s.facts("s1") {
				said.WriteString(s.text(f))
			}
			if want := "a done. b left. c lost. Not all."; !strings.Contains(said.String(), want) {
				t.Errorf("restart %v: the agent said %q, want %q", restart, said.String(), want)
			}
		})
	}
}

// R12, R14: a stop ends what waits for a pack, whatever was decided of its members; a person
// who gives the reason of a stop stops nothing.
func TestStopOfAPackInParts(t *testing.T) {
	for _, tt := range []struct {
		name string
		then func(*stage)
		want error
		told map[string]string
	}{
		{"a stop", func(s *stage) {
			if a := s.do(access.StopRun, "s1", decide.Stop{}, ""); a.Status != decide.Accepted {
				s.t.Errorf("stop: got %+v", a)
			}
		}, agent.ErrStopped, nil},
		{"the word of a stop", func(s *stage) {
			s.do(access.ResolveInterrupt, "s1", decide.Resolve{InterruptID: s.inbox()[0].InterruptID, Decision: "deny", Reason: "stopped"}, "")
		}, nil, map[string]string{"a": "approve", "b": "deny"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got error
				var answer agent.Answer
				s := open(t, memory(t, journal.Options{}), acts{run: func(ctx context.Context, h agent.Handle) agent.Ending {
					answer, got = h.Ask(context.WithoutCancel(ctx), agent.Ask{
						Kind: "approval", Actions: []string{"approve", "deny"}, Members: []agent.Member{{RequestID: "a"}, {RequestID: "b"}},
					})
					return agent.Ending{}
				}}, host.Options{})
				defer s.close()
				s.create("s1")
				s.say("s1", "go")
				synctest.Wait()
				s.decideMembers("approve", "a")
				tt.then(s)
				synctest.Wait()
				if !errors.Is(got, tt.want) || cmp.Diff(tt.told, answer.Members) != "" {
					t.Errorf("the agent was told %+v and %v, want %v and %v", answer.Members, got, tt.told, tt.want)
				}
			})
		})
	}
}
