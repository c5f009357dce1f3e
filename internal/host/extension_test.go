package host_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/host"
	"github.com/mahati-host/mahati/internal/index"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/internal/numbers"
	"github.com/mahati-host/mahati/narad"
)

var progress = decide.Publish{Extension: "lab/review", Name: "progress", Payload: narad.Raw(`{"left":3}`)}

// published lists what extensions said in a stream.
func (s *stage) published(id string) (list []facts.Published) {
	s.t.Helper()
	for _, fact := range s.facts(id) {
		if p, ok := facts.Read[facts.Published](fact, facts.Extension); ok {
			list = append(list, p)
		}
	}
	return list
}

// R44: what an extension says stands in the session that it names, else in the stream of
// the host, which is no session: nothing else reaches it, and nothing lists it.
func TestExtensions(t *testing.T) {
	alone(t, acts{run: speaks}, host.Options{Numbers: numbers.Of}, func(t *testing.T, s *stage) {
		if a := s.do(access.PublishExtension, "s1", progress, ""); a.Status != decide.Accepted || a.SessionSequence != 2 {
			t.Fatalf("in a session: got %+v, want accepted at 2", a)
		}
		for want := int64(1); want <= 2; want++ {
			if a := s.do(access.PublishExtension, "", progress, ""); a.Status != decide.Accepted || a.SessionSequence != want {
				t.Fatalf("on the host: got %+v, want accepted at %d", a, want)
			}
		}
		for id, want := range map[string]int{"s1": 1, journal.HostStream: 2} {
			if got := s.published(id); len(got) != want || string(got[0].Payload) != `{"left":3}` || got[0].Name != "progress" {
				t.Errorf("%s: got %+v, want %d times %+v", id, got, want, progress)
			}
		}
		for _, id := range []string{journal.HostStream, journal.RowStream} {
			if a := s.do(access.PublishExtension, id, progress, ""); a.Status != decide.NotFound {
				t.Errorf("by the name %s: got %+v, want not_found", id, a)
			}
			if _, err := s.host.Attach(t.Context(), access.Owner(), access.ReadSession, id); !errors.Is(err, host.ErrNotFound) {
				t.Errorf("read %s as a session: %v, want not found", id, err)
			}
		}
		if got := s.sessions(); len(got) != 1 {
			t.Errorf("sessions: got %q, want s1 alone", got)
		}
		s.do(access.ArchiveSession, "s1", decide.Archive{}, "")
		if a := s.do(access.PublishExtension, "s1", progress, ""); a.Status != decide.Conflict || a.Err != decide.RefusedArchived {
			t.Errorf("in an archived session: got %+v, want a conflict", a)
		}
	})
}

// The stream of the host outlives the host, and rows of no session, which executors and
// agents' processes write at any time, do not stand in its way.
func TestHostStreamOutlivesTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := memory(t, journal.Options{})
		for life := range 3 {
			s := open(t, j, acts{run: speaks}, host.Options{Numbers: numbers.Of})
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					if _, err := s.host.AttachExecutor(t.Context(), access.Owner(), "desk"); err != nil {
						t.Error(err)
					}
				})
				all.Go(func() {
					_, err := s.host.Do(t.Context(), access.Owner(), host.Request{Action: access.PublishExtension, Command: progress})
					if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			once := s.do(access.PublishExtension, "", progress, "c1")
			if again := s.do(access.PublishExtension, "", progress, "c1"); again != repeated(once) {
				t.Errorf("told again: got %+v, want %+v", again, once)
			}
			if got, want := len(s.published(journal.HostStream)), 8*(life+1)+1; got != want {
				t.Errorf("life %d: got %d facts of the host, want %d", life, got, want)
			}
			s.close()
		}
		report, err := j.Verify(t.Context(), journal.VerifyOptions{Derive: index.Deriver(numbers.Of)})
		if err != nil || !report.OK() {
			t.Errorf("verify: %v %+v", err, report.Problems)
		}
	})
}

// To publish takes the right to drive, on the host as a whole one that no workspace limits.
func TestWhoMayPublish(t *testing.T) {
	alone(t, acts{run: speaks}, host.Options{Numbers: numbers.Of}, func(t *testing.T, s *stage) {
		for _, tt := range []struct {
			grant   access.Grant
			session string
			want    string
		}{
			{access.Grant{Roles: []access.Role{access.Drive}}, "", ""},
			{access.Grant{Roles: []access.Role{access.Drive}}, "s1", ""},
			{access.Grant{Roles: []access.Role{access.Observe}}, "", "forbidden"},
			{access.Grant{Roles: []access.Role{access.Drive}, Workspaces: []string{"default"}}, "s1", ""},
			{access.Grant{Roles: []access.Role{access.Drive}, Workspaces: []string{"default"}}, "", "forbidden"},
			{access.Grant{Roles: []access.Role{access.Drive}, Workspaces: []string{"other"}}, "s1", "not_found"},
		} {
			p, err := access.NewPrincipal("p", "p", tt.grant)
			if err != nil {
				t.Fatal(err)
			}
			a, err := s.host.Do(t.Context(), p, host.Request{Action: access.PublishExtension, Session: tt.session, Command: progress})
			got := ""
			switch {
			case errors.Is(err, access.ErrForbidden):
				got = "forbidden"
			case a.Status != decide.Accepted:
				got = string(a.Status)
			}
			if got != tt.want {
				t.Errorf("%+v in %q: got %q %v, want %q", tt.grant, tt.session, got, err, tt.want)
			}
		}
		if !strings.Contains(s.story("s1"), "session.custom session.custom session.custom") {
			t.Errorf("got %s", s.story("s1"))
		}
	})
}
