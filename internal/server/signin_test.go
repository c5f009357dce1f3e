package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/internal/server"
)

func (r *rig) login(body, media string) (answer, *http.Cookie) {
	r.t.Helper()
	got := r.do(r.request("POST", "/login", body, func(q *http.Request) {
		q.Header.Del("Authorization")
		q.Header.Set("Content-Type", media)
	}))
	for _, cookie := range (&http.Response{Header: got.header}).Cookies() {
		if strings.HasPrefix(strings.TrimPrefix(cookie.Name, "__Host-"), "mahati_") {
			return got, cookie
		}
	}
	return got, nil
}

func withCookie(cookie *http.Cookie) func(*http.Request) {
	return func(q *http.Request) {
		q.Header.Del("Authorization")
		q.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
	}
}

// R30.
func TestBrowserSignsInAndOut(t *testing.T) {
	r := start(t, rigOptions{}, plain)
	got, cookie := r.login(`{"token":"`+r.token+`"}`, "application/json; charset=utf-8")
	if got.status != 204 || cookie == nil {
		t.Fatalf("login: %+v", got)
	}
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Secure {
		t.Errorf("cookie %q", got.header.Get("Set-Cookie"))
	}
	if life := time.Until(cookie.Expires); cookie.MaxAge != 12*3600 || life > 12*time.Hour || life < 11*time.Hour {
		t.Errorf("the cookie lives %d s, %v", cookie.MaxAge, life)
	}
	if strings.Contains(cookie.Value, r.token[4:]) {
		t.Error("the cookie holds the token")
	}
	if got := r.do(r.request("GET", "/whoami", "", withCookie(cookie))); got.body != r.tokenID {
		t.Errorf("with the cookie: %+v", got)
	}
	foreign := r.do(r.request("GET", "/whoami", "", func(q *http.Request) {
		withCookie(cookie)(q)
		q.Header.Set("Origin", "https://evil.example")
	}))
	r.wantProblem(foreign, 403, "origin_not_allowed")
	wrong := r.do(r.request("GET", "/whoami", "", func(q *http.Request) {
		withCookie(cookie)(q)
		q.Header.Set("Authorization", "Bearer mht_wrong")
	}))
	r.wantProblem(wrong, 401, "unauthenticated")

	out := r.do(r.request("POST", "/logout", "", withCookie(cookie)))
	if out.status != 204 || !strings.Contains(out.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("logout: %+v", out)
	}
	r.wantProblem(r.do(r.request("GET", "/whoami", "", withCookie(cookie))), 401, "unauthenticated")
}

func TestCookieDiesWithItsToken(t *testing.T) {
	r := start(t, rigOptions{}, plain)
	_, cookie := r.login(`{"token":"`+r.token+`"}`, "application/json")
	if _, err := r.tokens.Revoke(r.tokenID, time.Now()); err != nil {
		t.Fatal(err)
	}
	r.wantProblem(r.do(r.request("GET", "/whoami", "", withCookie(cookie))), 401, "unauthenticated")
}

func TestCookieIsSecureBehindAProxy(t *testing.T) {
	r := start(t, rigOptions{edge: server.Options{BehindProxy: true}}, plain)
	if _, cookie := r.login(`{"token":"`+r.token+`"}`, "application/json"); cookie == nil || !cookie.Secure {
		t.Errorf("cookie %+v", cookie)
	}
}

// A browser has one jar for all ports of a machine: hosts on it must not share a name.
// With TLS the browser itself holds the cookie to this origin.
func TestCookiesAreNamedByTheirStore(t *testing.T) {
	for _, tt := range []struct {
		edge server.Options
		want string
	}{
		{server.Options{}, "mahati_session"},
		{server.Options{Store: "0af3"}, "mahati_0af3"},
		{server.Options{Store: "0af4"}, "mahati_0af4"},
		{server.Options{Store: "0af3", BehindProxy: true}, "__Host-mahati_0af3"},
	} {
		r := start(t, rigOptions{edge: tt.edge}, plain)
		got, cookie := r.login(`{"token":"`+r.token+`"}`, "application/json")
		if cookie == nil || cookie.Name != tt.want || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode ||
			cookie.Path != "/" || cookie.Domain != "" || cookie.Secure != tt.edge.BehindProxy {
			t.Errorf("%+v: got %q, want the name %s", tt.edge, got.header.Get("Set-Cookie"), tt.want)
			continue
		}
		if got := r.do(r.request("GET", "/whoami", "", withCookie(cookie))); got.body != r.tokenID {
			t.Errorf("%s: %+v", cookie.Name, got)
		}
		for _, other := range []string{"mahati_session2", "mahati_0af5", "__Host-mahati_0af4", strings.TrimPrefix(cookie.Name, "__Host-") + "x"} {
			renamed := &http.Cookie{Name: other, Value: cookie.Value}
			r.wantProblem(r.do(r.request("GET", "/whoami", "", withCookie(renamed))), 401, "unauthenticated")
		}
	}
	for _, store := range []string{"a b", "a;b", "a=b", "é", "a/b"} {
		if _, err := server.New(nil, nil, nil, nil, server.Options{Store: store}); err == nil {
			t.Errorf("store %q makes no name of a cookie, and was taken", store)
		}
	}
}

// Of two cookies of the name one was put there by somebody else, and nobody can tell
// which: the request is nobody's.
func TestTwoCookiesAreNone(t *testing.T) {
	r := start(t, rigOptions{}, plain)
	_, cookie := r.login(`{"token":"`+r.token+`"}`, "application/json")
	for _, values := range [][]string{{cookie.Value, "mhc_other"}, {"mhc_other", cookie.Value}, {cookie.Value, cookie.Value}} {
		got := r.do(r.request("GET", "/whoami", "", func(q *http.Request) {
			q.Header.Del("Authorization")
			for _, value := range values {
				q.AddCookie(&http.Cookie{Name: cookie.Name, Value: value})
			}
		}))
		r.wantProblem(got, 401, "unauthenticated")
	}
}

func TestLoginRefusals(t *testing.T) {
	r := start(t, rigOptions{}, plain)
	tests := []struct {
		name, body, media string
		status            int
		code              string
	}{
		{"unknown token", `{"token":"mht_` + strings.Repeat("A", 43) + `"}`, "application/json", 401, "unauthenticated"},
		{"no token", `{}`, "application/json", 401, "unauthenticated"},
		{"a form", "token=" + r.token, "application/x-www-form-urlencoded", 415, "bad_request"},
		{"JSON that says it is text", `{"token":"` + r.token + `"}`, "text/plain", 415, "bad_request"},
		{"not JSON", r.token, "application/json", 400, "bad_request"},
		{"another field", `{"token":"` + r.token + `","role":"admin"}`, "application/json", 400, "bad_request"},
		{"too large", `{"token":"` + strings.Repeat("x", server.MaxBody) + `"}`, "application/json", 413, "body_too_large"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, cookie := r.login(tt.body, tt.media)
			r.wantProblem(got, tt.status, tt.code)
			if cookie != nil || strings.Contains(got.body, r.token) {
				t.Errorf("%+v", got)
			}
		})
	}
	r.wantProblem(r.get("/login"), 405, "method_not_allowed")
}
