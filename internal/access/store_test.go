package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, home string) *Store {
	t.Helper()
	s, err := Open(home, StoreOptions{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return s
}

func create(t *testing.T, s *Store, name string, grant Grant, expires time.Time) (Token, Secret) {
	t.Helper()
	token, secret, err := s.Create(TokenRequest{Name: name, Grant: grant, Expires: expires}, noon)
	if err != nil {
		t.Fatalf("Create(%q): %v", name, err)
	}
	return token, secret
}

func TestTokenAuthenticatesItsPrincipal(t *testing.T) {
	s := open(t, t.TempDir())
	token, secret := create(t, s, "laptop", Grant{Roles: []Role{Drive}, Workspaces: []string{"w"}}, time.Time{})

	p, err := s.Authenticate(secret.Reveal(), noon)
	if err != nil {
		t.Fatalf("Authenticate: %v", err)
	}
	if p.ID() != token.ID || p.Name() != "laptop" || !p.May(Drive, "w") || p.May(Drive, "x") || p.May(Observe, "w") {
		t.Errorf("principal %+v of token %+v", p, token)
	}
}

func TestWhatIsNoValidTokenIsUnauthenticated(t *testing.T) {
	s := open(t, t.TempDir())
	_, good := create(t, s, "good", Grant{Roles: []Role{Admin}}, time.Time{})
	text := good.Reveal()
	guesses := map[string]string{
		"nothing":        "",
		"prefix":         tokenPrefix,
		"shorter":        text[:len(text)-1],
		"longer":         text + "A",
		"another letter": text[:len(text)-2] + "__",
		"other prefix":   cookiePrefix + strings.TrimPrefix(text, tokenPrefix),
		"case":           strings.ToUpper(text),
		"huge":           strings.Repeat("x", 1<<20),
	}
	for name, guess := range guesses {
		if p, err := s.Authenticate(guess, noon); !errors.Is(err, ErrUnauthenticated) || !p.IsZero() {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

func TestTokenEndsAtItsTime(t *testing.T) {
	s := open(t, t.TempDir())
	_, secret := create(t, s, "short", Grant{Roles: []Role{Observe}}, noon.Add(time.Hour))
	for _, tt := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {time.Hour - 1, true}, {time.Hour, false}, {2 * time.Hour, false}} {
		_, err := s.Authenticate(secret.Reveal(), noon.Add(tt.after))
		if (err == nil) != tt.want || err != nil && !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("after %v: %v, valid should be %v", tt.after, err, tt.want)
		}
	}
	if _, _, err := s.Create(TokenRequest{Name: "past", Grant: Grant{Roles: []Role{Observe}}, Expires: noon}, noon); !errors.Is(err, ErrInvalid) {
		t.Errorf("a token that is born expired: %v", err)
	}
}

func TestOtherProcessesCreateAndRevoke(t *testing.T) {
	home := t.TempDir()
	host, tool := open(t, home), open(t, home)

	token, secret := create(t, tool, "late", Grant{Roles: []Role{Observe}}, time.Time{})
	p, err := host.Authenticate(secret.Reveal(), noon)
	if err != nil {
		t.Fatalf("the host does not see a token made beside it: %v", err)
	}
	if err := host.Check(p, noon); err != nil {
		t.Errorf("Check: %v", err)
	}
	if _, err := tool.Revoke(token.ID, noon); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Authenticate(secret.Reveal(), noon); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("the host still takes a revoked token: %v", err)
	}
	if err := host.Check(p, noon); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("Check of a revoked principal: %v", err)
	}
	if err := host.Check(Owner(), noon); err != nil {
		t.Errorf("Check of the owner: %v", err)
	}
}

func TestRevoke(t *testing.T) {
	s := open(t, t.TempDir())
	first, _ := create(t, s, "laptop", Grant{Roles: []Role{Observe}}, time.Time{})

	if _, _, err := s.Create(TokenRequest{Name: "laptop", Grant: Grant{Roles: []Role{Observe}}}, noon); !errors.Is(err, ErrExists) {
		t.Errorf("a second token of one name: %v", err)
	}
	if _, err := s.Revoke("phone", noon); !errors.Is(err, ErrNotFound) {
		t.Errorf("revoking an unknown one: %v", err)
	}
	got, err := s.Revoke("laptop", noon)
	if err != nil || got.ID != first.ID || !got.Revoked.Equal(noon) {
		t.Errorf("Revoke by name: %+v, %v", got, err)
	}
	if got, err := s.Revoke(first.ID, noon.Add(time.Hour)); err != nil || !got.Revoked.Equal(noon) {
		t.Errorf("Revoke again: %+v, %v; want the first time kept", got, err)
	}
	second, _ := create(t, s, "laptop", Grant{Roles: []Role{Observe}}, time.Time{})
	if token, err := s.Lookup(first.ID); err != nil || token.Name != "laptop" || token.ID == second.ID {
		t.Errorf("a revoked token cannot be looked up: %+v, %v", token, err)
	}
}

func TestTokensSurviveReopening(t *testing.T) {
	home := t.TempDir()
	s := open(t, home)
	create(t, s, "a", Grant{Roles: []Role{Observe, Decide}, Workspaces: []string{"w"}}, noon.Add(time.Hour))
	create(t, s, "b", Grant{Roles: []Role{Execute}, Executors: []string{"ci"}}, time.Time{})
	if _, err := s.Revoke("a", noon); err != nil {
		t.Fatal(err)
	}
	want, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	got, err := open(t, home).List()
	if err != nil || len(got) != 2 {
		t.Fatalf("List after reopening: %v, %v", got, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tokens (-before +after):\n%s", diff)
	}
}

func TestFirstStart(t *testing.T) {
	home := t.TempDir()
	s := open(t, home)
	if made, err := s.EnsureFirst(noon); err != nil || !made {
		t.Fatalf("EnsureFirst: %v, %v", made, err)
	}
	secret, err := ReadFirst(home)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Authenticate(secret.Reveal(), noon)
	if err != nil || !p.May(Admin, "") || !p.MayAttach("any") {
		t.Errorf("the first token: %v, %v", p, err)
	}
	for _, name := range []string{"token", "tokens.json", "tokens.lock"} {
		info, err := os.Stat(filepath.Join(home, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", name, info.Mode(), err)
		}
	}

	if made, err := open(t, home).EnsureFirst(noon); err != nil || made {
		t.Errorf("a second start made a token again: %v, %v", made, err)
	}
	if again, err := ReadFirst(home); err != nil || again != secret {
		t.Errorf("a second start changed the first token: %v", err)
	}
}

// A crash after the text was written and before the hash was: the next start
// makes another.
func TestFirstStartCutShort(t *testing.T) {
	home := t.TempDir()
	left := tokenPrefix + strings.Repeat("A", 43)
	if err := os.WriteFile(filepath.Join(home, "token"), []byte(left), 0o600); err != nil {
		t.Fatal(err)
	}
	// A draft that a crash left behind is no obstacle either.
	if err := os.WriteFile(filepath.Join(home, "tokens.json.new"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, home)
	if _, err := s.Authenticate(left, noon); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("a token without its hash: %v", err)
	}
	if made, err := s.EnsureFirst(noon); err != nil || !made {
		t.Fatalf("EnsureFirst: %v, %v", made, err)
	}
	secret, err := ReadFirst(home)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authenticate(secret.Reveal(), noon); err != nil {
		t.Errorf("the token made at last: %v", err)
	}
}

func TestDamagedFileSaysSoAndLetsNobodyIn(t *testing.T) {
	entry := func(change func(map[string]any)) string {
		e := map[string]any{
			"id": "p", "name": "n", "sha256": strings.Repeat("0", 64), "roles": []string{"admin"}, "created": "2026-01-01T00:00:00Z",
		}
		change(e)
		data, _ := json.Marshal(map[string]any{"version": 1, "tokens": []any{e}})
		return string(data)
	}
	whole := entry(func(map[string]any) {})
	tests := map[string]string{
		"empty":              "",
		"cut":                whole[:len(whole)/2],
		"not JSON":           "tokens",
		"more after the end": whole + "{}",
		"unknown field":      strings.Replace(whole, `"version"`, `"limit":3,"version"`, 1),
		"unknown field of a token": entry(func(e map[string]any) {
			e["only_on_mondays"] = true
		}),
		"doubled field":   strings.Replace(whole, `"id":"p"`, `"id":"p","id":"q"`, 1),
		"later version":   strings.Replace(whole, `"version":1`, `"version":2`, 1),
		"unknown role":    entry(func(e map[string]any) { e["roles"] = []string{"root"} }),
		"no role":         entry(func(e map[string]any) { e["roles"] = []string{} }),
		"short hash":      entry(func(e map[string]any) { e["sha256"] = "00" }),
		"hash not hex":    entry(func(e map[string]any) { e["sha256"] = strings.Repeat("z", 64) }),
		"id of the owner": entry(func(e map[string]any) { e["id"] = "owner" }),
		"bad time":        entry(func(e map[string]any) { e["created"] = "yesterday" }),
		"no time":         entry(func(e map[string]any) { delete(e, "created") }),
		"control in name": entry(func(e map[string]any) { e["name"] = "a\x1bb" }),
	}
	for name, content := range tests {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			s := open(t, home)
			_, secret := create(t, s, "good", Grant{Roles: []Role{Admin}}, time.Time{})
			path := filepath.Join(home, "tokens.json")
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Authenticate(secret.Reveal(), noon); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrUnauthenticated) {
				t.Errorf("Authenticate with the file %q: %v", content, err)
			}
			if _, err := Open(home, StoreOptions{}); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
				t.Errorf("Open with the file %q: %v; want ErrDamaged and the path", content, err)
			}
			if _, _, err := s.Create(TokenRequest{Name: "x", Grant: Grant{Roles: []Role{Admin}}}, noon); !errors.Is(err, ErrDamaged) {
				t.Errorf("Create with the file %q: %v", content, err)
			}
			if after, _ := os.ReadFile(path); string(after) != content {
				t.Errorf("the damaged file was changed to %q", after)
			}
		})
	}
	if _, err := decodeRecords([]byte(whole)); err != nil {
		t.Errorf("the undamaged file is refused, so the test shows nothing: %v", err)
	}
}

func TestFileOpenToOthersIsRefused(t *testing.T) {
	home := t.TempDir()
	s := open(t, home)
	_, secret := create(t, s, "good", Grant{Roles: []Role{Admin}}, time.Time{})
	for _, mode := range []os.FileMode{0o640, 0o604, 0o622} {
		if err := os.Chmod(filepath.Join(home, "tokens.json"), mode); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Authenticate(secret.Reveal(), noon); !errors.Is(err, ErrDamaged) {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
}

func TestVanishedFileLetsNobodyIn(t *testing.T) {
	home := t.TempDir()
	s := open(t, home)
	_, secret := create(t, s, "good", Grant{Roles: []Role{Admin}}, time.Time{})
	if err := os.Remove(filepath.Join(home, "tokens.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Authenticate(secret.Reveal(), noon); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("without the file: %v", err)
	}
}

func TestFailingRandomnessMakesNoToken(t *testing.T) {
	home := t.TempDir()
	for _, bytesLeft := range []int{0, 9, 20, 41} {
		s, err := Open(home, StoreOptions{Random: io.LimitReader(zeroes{}, int64(bytesLeft))})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Create(TokenRequest{Name: "x", Grant: Grant{Roles: []Role{Admin}}}, noon); err == nil {
			t.Errorf("a token was made of %d random bytes", bytesLeft)
		}
	}
	if tokens, err := open(t, home).List(); err != nil || len(tokens) != 0 {
		t.Errorf("tokens: %v, %v", tokens, err)
	}
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	home := t.TempDir()
	s := open(t, home)
	token, secret := create(t, s, "marked", Grant{Roles: []Role{Admin}}, time.Time{})
	cookies := NewCookies(s, CookieOptions{})
	cookie, _, err := cookies.Issue(secret.Reveal(), noon)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Authenticate(secret.Reveal(), noon)
	if err != nil {
		t.Fatal(err)
	}
	_, unknown := s.Authenticate(tokenPrefix+strings.Repeat("B", 43), noon)

	var out bytes.Buffer
	for _, value := range []any{secret, &secret, cookie, token, p, unknown, struct{ S Secret }{secret}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
		slog.New(slog.NewTextHandler(&out, nil)).Info("text", "value", value)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("json", "value", value)
	}
	if data, err := json.Marshal(secret); err == nil {
		t.Errorf("a secret was encoded as %s", data)
	}
	file, err := os.ReadFile(filepath.Join(home, "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	out.Write(file)
	for _, text := range []string{secret.Reveal(), cookie.Reveal(), strings.Repeat("B", 43)} {
		body := text[len(text)-43:]
		for _, form := range []string{body, fmt.Sprintf("%x", body), fmt.Sprintf("%X", body)} {
			if strings.Contains(out.String(), form) {
				t.Errorf("a secret was printed in:\n%s", out.String())
			}
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	home := t.TempDir()
	host := open(t, home)
	_, steady := create(t, host, "steady", Grant{Roles: []Role{Observe}}, time.Time{})

	const makers, each = 4, 5
	var group sync.WaitGroup
	for maker := range makers {
		group.Go(func() {
			tool, err := Open(home, StoreOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			for i := range each {
				name := fmt.Sprintf("t-%d-%d", maker, i)
				_, secret, err := tool.Create(TokenRequest{Name: name, Grant: Grant{Roles: []Role{Drive}}}, noon)
				if err != nil {
					t.Errorf("create %s: %v", name, err)
					return
				}
				if _, err := host.Authenticate(secret.Reveal(), noon); err != nil {
					t.Errorf("authenticate %s: %v", name, err)
				}
				if i%2 == 0 {
					if _, err := tool.Revoke(name, noon); err != nil {
						t.Errorf("revoke %s: %v", name, err)
					}
					if _, err := host.Authenticate(secret.Reveal(), noon); !errors.Is(err, ErrUnauthenticated) {
						t.Errorf("after revoking %s: %v", name, err)
					}
				}
			}
		})
		group.Go(func() {
			for range 50 {
				if _, err := host.Authenticate(steady.Reveal(), noon); err != nil {
					t.Errorf("the steady token: %v", err)
				}
			}
		})
	}
	group.Wait()
	if tokens, err := host.List(); err != nil || len(tokens) != 1+makers*each {
		t.Errorf("%d tokens, %v; want %d: none lost", len(tokens), err, 1+makers*each)
	}
}
