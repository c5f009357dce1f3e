package access

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func TestCookieStandsForItsToken(t *testing.T) {
	s := open(t, t.TempDir())
	token, secret := create(t, s, "browser", Grant{Roles: []Role{Observe}}, time.Time{})
	cookies := NewCookies(s, CookieOptions{Lifetime: time.Hour})

	cookie, expires, err := cookies.Issue(secret.Reveal(), noon)
	if err != nil || !expires.Equal(noon.Add(time.Hour)) {
		t.Fatalf("Issue: %v, %v", expires, err)
	}
	p, err := cookies.Authenticate(cookie.Reveal(), noon.Add(time.Hour-1))
	if err != nil || p.ID() != token.ID || !p.May(Observe, "w") || p.May(Drive, "w") {
		t.Errorf("principal of the cookie: %v, %v", p, err)
	}
	if _, err := cookies.Authenticate(cookie.Reveal(), expires); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("at its end: %v", err)
	}
	if _, err := cookies.Authenticate(secret.Reveal(), noon); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("a token in place of a cookie: %v", err)
	}
	if _, err := s.Authenticate(cookie.Reveal(), noon); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("a cookie in place of a token: %v", err)
	}
}

func TestCookieEnds(t *testing.T) {
	home := t.TempDir()
	s := open(t, home)
	cookies := NewCookies(s, CookieOptions{})
	tests := map[string]func(token Token, cookie Secret) time.Time{
		"signed out": func(_ Token, cookie Secret) time.Time {
			cookies.End(cookie.Reveal())
			return noon
		},
		"token revoked": func(token Token, _ Secret) time.Time {
			if _, err := s.Revoke(token.ID, noon); err != nil {
				t.Fatal(err)
			}
			return noon
		},
		"token expired": func(Token, Secret) time.Time { return noon.Add(time.Minute) },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			token, secret := create(t, s, name, Grant{Roles: []Role{Observe}}, noon.Add(time.Minute))
			cookie, expires, err := cookies.Issue(secret.Reveal(), noon)
			if err != nil || !expires.Equal(token.Expires) {
				t.Fatalf("Issue: until %v, %v; want the end of the token", expires, err)
			}
			if _, err := cookies.Authenticate(cookie.Reveal(), noon); err != nil {
				t.Fatalf("before: %v", err)
			}
			now := end(token, cookie)
			if _, err := cookies.Authenticate(cookie.Reveal(), now); !errors.Is(err, ErrUnauthenticated) {
				t.Errorf("after: %v", err)
			}
		})
	}
}

func TestDamagedFileIsNoReasonToSignInAgain(t *testing.T) {
	home := t.TempDir()
	s := open(t, home)
	_, secret := create(t, s, "browser", Grant{Roles: []Role{Observe}}, time.Time{})
	cookies := NewCookies(s, CookieOptions{})
	cookie, _, err := cookies.Issue(secret.Reveal(), noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "tokens.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cookies.Authenticate(cookie.Reveal(), noon); !errors.Is(err, ErrDamaged) || errors.Is(err, ErrUnauthenticated) {
		t.Errorf("cookie with a damaged tokens file: %v", err)
	}
}

func TestNoCookieForABadToken(t *testing.T) {
	cookies := NewCookies(open(t, t.TempDir()), CookieOptions{})
	if _, _, err := cookies.Issue("mht_guess", noon); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("Issue: %v", err)
	}
}

func TestCookiesOfOnePrincipalAreBounded(t *testing.T) {
	s := open(t, t.TempDir())
	_, secret := create(t, s, "browser", Grant{Roles: []Role{Observe}}, time.Time{})
	_, other := create(t, s, "other", Grant{Roles: []Role{Observe}}, time.Time{})
	cookies := NewCookies(s, CookieOptions{})
	kept, _, err := cookies.Issue(other.Reveal(), noon)
	if err != nil {
		t.Fatal(err)
	}
	var issued []Secret
	for i := range maxCookiesPerPrincipal + 1 {
		cookie, _, err := cookies.Issue(secret.Reveal(), noon.Add(time.Duration(i)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		issued = append(issued, cookie)
	}
	now := noon.Add(time.Minute)
	if _, err := cookies.Authenticate(issued[0].Reveal(), now); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("the oldest is still signed in: %v", err)
	}
	for i, cookie := range append(issued[1:], kept) {
		if _, err := cookies.Authenticate(cookie.Reveal(), now); err != nil {
			t.Errorf("cookie %d: %v", i+1, err)
		}
	}
	if len(cookies.byHash) != maxCookiesPerPrincipal+1 {
		t.Errorf("%d cookies are kept", len(cookies.byHash))
	}
}

func TestExpiredCookiesAreForgotten(t *testing.T) {
	s := open(t, t.TempDir())
	_, secret := create(t, s, "browser", Grant{Roles: []Role{Observe}}, time.Time{})
	cookies := NewCookies(s, CookieOptions{Lifetime: time.Minute})
	for i := range 3 {
		if _, _, err := cookies.Issue(secret.Reveal(), noon.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if len(cookies.byHash) != 1 {
		t.Errorf("%d cookies are kept, want the latest alone", len(cookies.byHash))
	}
}

func TestCookiesConcurrently(t *testing.T) {
	s := open(t, t.TempDir())
	cookies := NewCookies(s, CookieOptions{})
	var group sync.WaitGroup
	for i := range 8 {
		_, secret := create(t, s, fmt.Sprintf("browser %d", i), Grant{Roles: []Role{Observe}}, time.Time{})
		group.Go(func() {
			for range 20 {
				cookie, _, err := cookies.Issue(secret.Reveal(), noon)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := cookies.Authenticate(cookie.Reveal(), noon); err != nil {
					t.Error(err)
				}
				cookies.End(cookie.Reveal())
			}
		})
	}
	group.Wait()
	if len(cookies.byHash) != 0 {
		t.Errorf("%d cookies are left", len(cookies.byHash))
	}
}
