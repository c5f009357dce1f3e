package host_test

import (
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/narad"
)

// What is decided stands in the audit as the facts tell it, which verify derives again.
func TestDecisionsOfTheAudit(t *testing.T) {
	alone(t, acts{run: asks}, logging(), func(t *testing.T, s *stage) {
		for range 2 {
			s.say("s1", "hello")
			synctest.Wait()
			id := s.inbox()[0].InterruptID
			s.do(access.ResolveInterrupt, "s1", decide.DecidePermission{InterruptID: id, Decision: decide.Allow}, "")
			synctest.Wait()
			list, next, err := s.host.Decisions(t.Context(), access.Owner(), host.DecisionFilter{Decision: "allow"})
			if err != nil || next != "" || len(list) == 0 || list[0].PermissionID != id {
				t.Fatalf("got %+v, %q, %v; want %s first", list, next, err, id)
			}
			if f, ok := list[0].Decided.(*narad.InterruptResolved); !ok || f.InterruptID != id {
				t.Errorf("decided by %+v, want the resolution of %s", list[0].Decided, id)
			}
		}
		if list, _, err := s.host.Decisions(t.Context(), access.Owner(), host.DecisionFilter{Session: "s1", Decision: "deny"}); err != nil || len(list) != 0 {
			t.Errorf("denied: got %+v, %v", list, err)
		}
	})
}
