package access

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func principal(t *testing.T, grant Grant) Principal {
	t.Helper()
	p, err := NewPrincipal("p-1", "tester", grant)
	if err != nil {
		t.Fatalf("NewPrincipal(%+v): %v", grant, err)
	}
	return p
}

// policy is the table as the contract has it: for each action the roles that may
// do it, Admin apart, which may do all.
var policy = map[Action][]Role{
	ReadCapabilities: {Observe, Decide, Drive, Execute, Trace},
	CreateSession:    {Drive},
	ListSessions:     {Observe},
	ReadSession:      {Observe},
	ReadLog:          {Observe, Decide, Drive},
	ReadTrace:        {Trace},
	ReadArtifact:     {Observe},
	UpdateSession:    {Drive},
	ArchiveSession:   {Drive},
	RestoreSession:   {Drive},
	DeleteSession:    {},
	AuditSession:     {},
	SendMessage:      {Drive},
	StartWorkflow:    {Drive},
	StopRun:          {Drive},
	ChangeQueue:      {Drive},
	UploadAttachment: {Drive},
	RedactMessage:    {},
	ReadInbox:        {Decide},
	ReadAudit:        {},
	ResolveInterrupt: {Decide},
	WatchWorkspace:   {Observe},
	AttachExecutor:   {Execute},
	PublishExtension: {Drive},
	ReadHostEvents:   {Observe},
	ReadMetrics:      {Observe},
	ManageHost:       {},
}

func TestEveryActionTakesItsRole(t *testing.T) {
	if len(policy) != len(rules) {
		t.Errorf("the policy has %d actions, the test %d", len(rules), len(policy))
	}
	for action, allowed := range policy {
		for _, role := range Roles() {
			want := role == Admin || slices.Contains(allowed, role)
			err := Authorize(principal(t, Grant{Roles: []Role{role}}), action, "w")
			if (err == nil) != want || err != nil && !errors.Is(err, ErrForbidden) {
				t.Errorf("%s by %s: %v, allowed should be %v", action, role, err, want)
			}
		}
		if err := Authorize(Principal{}, action, "w"); !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("%s by nobody: %v", action, err)
		}
		if err := Authorize(Owner(), action, "w"); err != nil {
			t.Errorf("%s by the owner: %v", action, err)
		}
	}
}

func TestWorkspacesLimitEveryRole(t *testing.T) {
	all := Roles()
	limited := principal(t, Grant{Roles: all, Workspaces: []string{"a", "b"}})
	for action := range policy {
		reach := rules[action].reach
		tests := []struct {
			workspace string
			want      bool
		}{
			{"a", reach != wholeHost},
			{"b", reach != wholeHost},
			{"c", action == ReadCapabilities},
			{"", reach == somewhere},
		}
		for _, tt := range tests {
			if err := Authorize(limited, action, tt.workspace); (err == nil) != tt.want {
				t.Errorf("%s in %q: %v, allowed should be %v", action, tt.workspace, err, tt.want)
			}
		}
	}
}

func TestWorkspaceActionNeedsAWorkspace(t *testing.T) {
	if err := Authorize(Owner(), ReadSession, ""); !errors.Is(err, ErrForbidden) {
		t.Errorf("reading a session of no workspace: %v", err)
	}
}

func TestUnknownActionIsForbidden(t *testing.T) {
	if err := Authorize(Owner(), "session.explode", "w"); !errors.Is(err, ErrForbidden) {
		t.Errorf("an unknown action: %v", err)
	}
}

func TestExecutorsAreListed(t *testing.T) {
	tests := []struct {
		name     string
		grant    Grant
		executor string
		want     bool
	}{
		{"listed", Grant{Roles: []Role{Execute}, Executors: []string{"laptop", "ci"}}, "ci", true},
		{"not listed", Grant{Roles: []Role{Execute}, Executors: []string{"laptop"}}, "ci", false},
		{"none listed", Grant{Roles: []Role{Execute}}, "ci", false},
		{"any", Grant{Roles: []Role{Execute}, Executors: []string{AnyExecutor}}, "ci", true},
		{"the word for any is no executor", Grant{Roles: []Role{Execute}, Executors: []string{AnyExecutor}}, AnyExecutor, false},
		{"no id", Grant{Roles: []Role{Execute}, Executors: []string{AnyExecutor}}, "", false},
		{"another role", Grant{Roles: []Role{Drive, Observe}}, "ci", false},
		{"administrator of the host", Grant{Roles: []Role{Admin}}, "ci", true},
		{"administrator of a workspace", Grant{Roles: []Role{Admin}, Workspaces: []string{"w"}}, "ci", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := AuthorizeExecutor(principal(t, tt.grant), tt.executor)
			if (err == nil) != tt.want || err != nil && !errors.Is(err, ErrForbidden) {
				t.Errorf("attach %q with %+v: %v, allowed should be %v", tt.executor, tt.grant, err, tt.want)
			}
		})
	}
	if err := AuthorizeExecutor(Principal{}, "ci"); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("nobody attaches: %v", err)
	}
}

func TestPrincipalKeepsItsGrant(t *testing.T) {
	grant := Grant{Roles: []Role{Observe}}
	p := principal(t, grant)
	grant.Roles[0] = Admin
	if p.May(Admin, "w") {
		t.Error("changing the grant after the fact changed the principal")
	}
}

func TestBoundsOfNamesAndIDs(t *testing.T) {
	ok := Grant{Roles: []Role{Observe}}
	tests := []struct {
		what  string
		id    string
		name  string
		grant Grant
		want  bool
	}{
		{"plain", "p", "Ada's laptop", ok, true},
		{"longest", strings.Repeat("i", 128), strings.Repeat("n", 256), ok, true},
		{"name too long", "p", strings.Repeat("n", 257), ok, false},
		{"name too long in bytes", "p", strings.Repeat("é", 129), ok, false},
		{"no name", "p", "", ok, false},
		{"escape in name", "p", "a\x1b[2Jb", ok, false},
		{"line break in name", "p", "a\nb", ok, false},
		{"C1 control in name", "p", "a\u009bb", ok, false},
		{"name not UTF-8", "p", "a\xff", ok, false},
		{"no id", "", "n", ok, false},
		{"id too long", strings.Repeat("i", 129), "n", ok, false},
		{"id with a slash", "a/b", "n", ok, false},
		{"no role", "p", "n", Grant{}, false},
		{"unknown role", "p", "n", Grant{Roles: []Role{"root"}}, false},
		{"bad workspace", "p", "n", Grant{Roles: []Role{Observe}, Workspaces: []string{"a b"}}, false},
		{"empty workspace", "p", "n", Grant{Roles: []Role{Observe}, Workspaces: []string{""}}, false},
		{"bad executor", "p", "n", Grant{Roles: []Role{Execute}, Executors: []string{"a*"}}, false},
		{"executors without the role", "p", "n", Grant{Roles: []Role{Drive}, Executors: []string{"a"}}, false},
		{"too many workspaces", "p", "n", Grant{Roles: []Role{Observe}, Workspaces: slices.Repeat([]string{"w"}, 257)}, false},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			_, err := NewPrincipal(tt.id, tt.name, tt.grant)
			if (err == nil) != tt.want || err != nil && !errors.Is(err, ErrInvalid) {
				t.Errorf("NewPrincipal(%q, %q, %+v): %v", tt.id, tt.name, tt.grant, err)
			}
		})
	}
}
