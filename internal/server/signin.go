package server

import (
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/internal/access"
)

// cookieName names the cookie of a browser that has signed in (R30). Browsers keep one
// jar for all ports of a machine, so each store has a name of its own; and where there is
// TLS the prefix has them refuse such a cookie from anywhere but this origin.
func (s *Server) cookieName(secure bool) string {
	name := "mahati_session"
	if s.options.Store != "" {
		name = "mahati_" + s.options.Store
	}
	if secure {
		name = "__Host-" + name
	}
	return name
}

// secure says whether a browser reaches this host by TLS.
func (s *Server) secure(r *http.Request) bool { return r.TLS != nil || s.options.BehindProxy }

// cookieOf returns the value of the host's cookie. Of two nobody can tell which was put
// there by somebody else, so two are none.
func (s *Server) cookieOf(r *http.Request) (string, bool) {
	found := r.CookiesNamed(s.cookieName(s.secure(r)))
	if len(found) != 1 {
		return "", false
	}
	return found[0].Value, true
}

// authenticate finds out who asks. A token that was sent counts, also where
// something else would do: whoever sends a limited token wants its limits.
func (s *Server) authenticate(r *http.Request) (access.Principal, error) {
	now := time.Now()
	if header := r.Header.Values("Authorization"); len(header) > 0 {
		token, err := bearer(header)
		if err != nil {
			return access.Principal{}, err
		}
		return s.tokens.Authenticate(token, now)
	}
	if fromOwner(r.Context()) {
		return access.Owner(), nil
	}
	cookie, ok := s.cookieOf(r)
	if !ok {
		return access.Principal{}, fmt.Errorf("no credentials: %w", access.ErrUnauthenticated)
	}
	return s.cookies.Authenticate(cookie, now)
}

func bearer(header []string) (string, error) {
	scheme, token, ok := strings.Cut(header[0], " ")
	if len(header) > 1 || !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", fmt.Errorf("not a bearer token: %w", access.ErrUnauthenticated)
	}
	return strings.TrimSpace(token), nil
}

// login turns a token into a cookie, so that pages need not keep the token. It
// takes JSON only: a form of another site cannot send that.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		WriteProblem(w, r, &Problem{HTTPStatus: http.StatusUnsupportedMediaType, Code: CodeBadRequest, Detail: "send application/json"})
		return
	}
	body, err := ReadBody(r)
	if err != nil {
		WriteProblem(w, r, err)
		return
	}
	var request struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(body, &request, json.RejectUnknownMembers(true)); err != nil {
		// What is wrong with the body stays untold: it holds a token.
		WriteProblem(w, r, &Problem{HTTPStatus: http.StatusBadRequest, Code: CodeBadRequest, Detail: `send {"token": "..."}`})
		return
	}
	now := time.Now()
	secret, expires, err := s.cookies.Issue(request.Token, now)
	if err != nil {
		WriteProblem(w, r, err)
		return
	}
	cookie := s.cookie(r, secret.Reveal())
	cookie.Expires = expires
	cookie.MaxAge = max(1, int(expires.Sub(now)/time.Second))
	http.SetCookie(w, cookie)
	w.WriteHeader(http.StatusNoContent)
}

// logout forgets the sign-in, in the browser and here.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if cookie, ok := s.cookieOf(r); ok {
		s.cookies.End(cookie)
	}
	gone := s.cookie(r, "")
	gone.MaxAge = -1
	http.SetCookie(w, gone)
	w.WriteHeader(http.StatusNoContent)
}

// cookie is out of reach of scripts, of requests that other sites cause, and of
// plain connections where there are others.
func (s *Server) cookie(r *http.Request, value string) *http.Cookie {
	secure := s.secure(r)
	return &http.Cookie{
		Name: s.cookieName(secure), Value: value, Path: "/",
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure,
	}
}
