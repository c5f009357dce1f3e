package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad/client"
	"github.com/mahati-host/mahati/narad/client/clienttest"
)

const secret = "tok-5ecret"

func wantHidden(t *testing.T, what string, text string) {
	t.Helper()
	if strings.Contains(text, secret) {
		t.Errorf("%s shows the token: %s", what, text)
	}
}

func TestTokenIsSentAndNeverShown(t *testing.T) {
	bubble(t, clienttest.Options{Token: secret}, func(t *testing.T, h *clienttest.Host) {
		o := client.Options{Token: secret}
		c := dial(t, h, o)
		if _, err := c.Capabilities(t.Context()); err != nil {
			t.Fatalf("with the token: %v", err)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			for _, value := range []any{o, o.Token, c, *c, c.Follow("s", client.FollowOptions{})} {
				wantHidden(t, verb, fmt.Sprintf(verb, value))
			}
		}
		var log strings.Builder
		slog.New(slog.NewJSONHandler(&log, nil)).Info("made", "token", o.Token)
		wantHidden(t, "slog", log.String())
		encoded, _ := json.Marshal(struct{ T client.Token }{o.Token})
		wantHidden(t, "JSON", string(encoded))
	})
}

func TestHostThatRepeatsTheTokenIsNotQuoted(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		answers(h, 403, `{"code":"forbidden","detail":"Bearer `+secret+` may not\nread"}`)
		_, err := dial(t, h, client.Options{Token: secret}).Session(t.Context(), "s")
		e := wantCode(t, err, "forbidden", client.GiveUp)
		wantHidden(t, "the error", fmt.Sprintf("%v %+v %#v", e, e, e))
		if e.Detail != "Bearer [token] may not read" {
			t.Errorf("detail %q", e.Detail)
		}
	})
}

func TestNetworksWordsAreNotRepeated(t *testing.T) {
	c, err := client.New("http://127.0.0.1:1/"+secret, client.Options{Attempts: 1, HTTPClient: &http.Client{Transport: failing{}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Session(t.Context(), "s")
	e := wantCode(t, err, client.CodeUnreachable, client.Retry)
	wantHidden(t, "the error", fmt.Sprintf("%v %#v", e, e))
	if !e.Redacted {
		t.Error("the error does not say that it was redacted")
	}
}

type failing struct{}

func (failing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("proxy said: Authorization: Bearer %s", secret)
}

func TestRedirectIsNotFollowed(t *testing.T) {
	bubble(t, clienttest.Options{}, func(t *testing.T, h *clienttest.Host) {
		h.Wrap(func(next http.Handler) http.Handler {
			return http.RedirectHandler("http://elsewhere.test/", http.StatusTemporaryRedirect)
		})
		_, err := dial(t, h, client.Options{Token: secret}).Session(t.Context(), "s")
		wantCode(t, err, client.CodeInvalidAnswer, client.GiveUp)
		if n := len(h.Requests("")); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
	})
}

func TestBaseURL(t *testing.T) {
	for raw, want := range map[string]string{
		"http://h:1":               "narad client of http://h:1/api/narad/v1",
		"http://h:1/":              "narad client of http://h:1/api/narad/v1",
		"https://h/behind/narad//": "narad client of https://h/behind/narad",
		"unix:///run/m.sock":       "narad client of http://localhost/api/narad/v1",
		"":                         "", "h:1": "", "ftp://h": "", "http://": "", "unix://run/m.sock": "", "unix:///": "",
		"http://user:" + secret + "@h": "", "http://h/?t=" + secret: "", "http://h/#" + secret: "", "http://h/%zz" + secret: "",
	} {
		c, err := client.New(raw, client.Options{})
		if (err == nil) != (want != "") || err == nil && c.String() != want {
			t.Errorf("%q: got %v, %v; want %q", raw, c, err, want)
		}
		if err != nil {
			wantHidden(t, raw, err.Error())
		}
	}
	if _, err := client.New("http://h", client.Options{Token: secret + "\n"}); err == nil {
		t.Error("a token with a line break was taken")
	} else {
		wantHidden(t, "the error", err.Error())
	}
	if _, err := client.New("unix:///s", client.Options{HTTPClient: &http.Client{}}); err == nil {
		t.Error("a unix base URL was taken together with an HTTP client")
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	h := clienttest.New(t, clienttest.Options{Token: secret})
	h.Append("s", clienttest.Turn(1)...)
	server := &http.Server{Handler: h}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(listener) }()
	c, err := client.New("unix://"+path, client.Options{Token: secret})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s := follow(ctx, c.Follow("s", client.FollowOptions{}), live)
	wantRun(t, s.sequences, 1, int64(clienttest.TurnLength))
	c.Close()
	_ = server.Close()
	<-served
	_, err = c.Session(t.Context(), "s")
	if e := wantCode(t, err, client.CodeUnreachable, client.Retry); e.Detail == "" {
		t.Errorf("error %+v says nothing", e)
	}
}
