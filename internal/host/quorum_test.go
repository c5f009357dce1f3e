package host_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/agent/script"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/journal"
)

// Votes are facts: a restart in the middle keeps them, and who has voted.
func TestRestartKeepsVotes(t *testing.T) {
	kind, err := script.New([]byte(`
script: 1
steps:
  - ask: {title: Both, members: [{id: a, kind: edit, on: {approve: [{say: "did a"}]}}, {id: b, kind: read, on: {deny: [{say: "left b"}]}}]}
`), script.Options{Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	o := host.Options{Rules: []host.Rule{{Name: "two", Effect: host.AskOn, Kinds: []string{"edit"}, Quorum: 2}}}
	vote := func(s *stage, who, decision, member string) host.Answer {
		s.t.Helper()
		p, err := access.NewPrincipal(who, who, access.Grant{Roles: []access.Role{access.Decide}})
		if err != nil {
			s.t.Fatal(err)
		}
		a, err := s.host.Do(s.t.Context(), p, host.Request{
			Action:  access.ResolveInterrupt,
			Command: decide.Resolve{InterruptID: s.inbox()[0].InterruptID, Decision: decision, Members: []string{member}},
		})
		if err != nil {
			s.t.Fatal(err)
		}
		return a
	}
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		s := open(t, j, kind, o)
		s.create("s1")
		s.say("s1", "go")
		synctest.Wait()
		vote(s, "ada", "approve", "a")
		vote(s, "ada", "deny", "b")
		s.close()

		s = open(t, j, kind, o)
		defer s.close()
		synctest.Wait()
		if a := vote(s, "ada", "approve", "a"); a.Status != decide.AlreadyApplied {
			t.Errorf("ada again: got %+v, want that she has voted", a)
		}
		if a := vote(s, "bob", "approve", "b"); a.Status != decide.Conflict || a.Decision != "deny" {
			t.Errorf("got %+v, want what was decided of b", a)
		}
		if a := vote(s, "bob", "approve", "a"); a.Status != decide.Accepted {
			t.Errorf("got %+v, want the decision", a)
		}
		synctest.Wait()
		text := ""
		for _, f := range s.facts("s1") {
			text += s.text(f)
		}
		if !strings.Contains(text, "did a") || !strings.Contains(text, "left b") {
			t.Errorf("the agent said %q", text)
		}
	})
}
