package field_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mahati-host/mahati/narad"
)

// socket is the path of the host's own.
func (b *bed) socket() string { return filepath.Join(b.home, "narya.sock") }

// socketClient is a client in the hands of the owner of its home, over the socket and without a token.
func (b *bed) socketClient() *http.Client {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", b.socket())
	}}}
	b.t.Cleanup(c.CloseIdleConnections)
	return c
}

// overSocket sends a request as the owner. Headers are name and value in turn.
func (b *bed) overSocket(method, path, body string, headers ...string) (*http.Response, error) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.context(), method, "http://localhost"+path, strings.NewReader(body))
	b.must(err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return b.socketClient().Do(req)
}

// Case 91. Owed: the socket that a killed host left does not keep the next one from starting; at
// the end there is none.
func TestCase91TheSocketOfAKilledHost(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps: [{say: hello}]\n")
	b.kill()
	if info, err := os.Lstat(b.socket()); err != nil || info.Mode().Type() != fs.ModeSocket {
		t.Fatalf("the killed host left no socket: %v %v", info, err)
	}
	b.start()
	answer, err := b.overSocket("GET", "/v1/host", "")
	b.must(err)
	_ = answer.Body.Close()
	if answer.StatusCode != 200 {
		t.Errorf("the next host: got %d over the socket, want 200", answer.StatusCode)
	}
	b.stop()
	if info, err := os.Lstat(b.socket()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a host that ended left its socket: %v %v", info, err)
	}
}

// Case 97. Owed: followers of the events hold up no end, neither those that wait nor one that takes
// nothing; each has whole frames alone.
func TestCase97ShutdownWaitsForNoFollower(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\ndefaults: {chunk: 1000, pace: 0s}\nsteps: [{say: {bytes: 3000000}}]\n")
	b.session("s1")
	b.awaitEnd("s1", b.say("s1", "go"))
	answer, err := b.overSocket("GET", "/v1/host", "")
	b.must(err)
	body, err := io.ReadAll(answer.Body)
	b.must(err)
	id := func(name string) int {
		text, _ := narad.Raw(body).Field("store").Field(name).IsString()
		n, err := strconv.Atoi(text)
		b.must(err)
		return n
	}
	oldest, newest := id("oldestEventId"), id("newestEventId")

	type follower struct {
		body *bufio.Reader
		last string
	}
	var followers []*follower
	for range 50 {
		response, err := b.overSocket("GET", "/v1/events", "", "Last-Event-ID", strconv.Itoa(newest-2))
		b.must(err)
		defer response.Body.Close()
		f := &follower{body: bufio.NewReader(response.Body)}
		for f.last != "id: "+strconv.Itoa(newest)+"\n" {
			if f.last, err = f.body.ReadString('\n'); err != nil {
				b.fatalf("follow: %v", err)
			}
		}
		followers = append(followers, f)
	}
	stalled, err := net.Dial("unix", b.socket())
	b.must(err)
	defer stalled.Close()
	_, err = io.WriteString(stalled, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: "+strconv.Itoa(oldest-1)+"\r\n\r\n")
	b.must(err)
	first, err := bufio.NewReader(stalled).ReadString('\n')
	if b.must(err); !strings.Contains(first, "200") {
		t.Fatalf("the stalled follower: got %q", first)
	}

	began := time.Now()
	b.must(b.host.Process.Signal(syscall.SIGTERM))
	late := time.AfterFunc(patience, func() { _ = b.host.Process.Kill() })
	err = b.host.Wait()
	b.host = nil
	if !late.Stop() || err != nil {
		t.Fatalf("the host waits for its followers, or ended with %v", err)
	}
	if took := time.Since(began); took > 10*time.Second { // 2 s are owed on an idle machine
		t.Errorf("the host was gone after %s", took)
	}
	for i, f := range followers {
		if rest, err := io.ReadAll(f.body); err != nil || !strings.HasSuffix(string(rest), "\n\n") {
			t.Errorf("follower %d ended with %q, %v, want an end between two frames", i, rest, err)
		}
	}
	if info, err := os.Lstat(b.socket()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket stays: %v %v", info, err)
	}
	if text, code := b.mahati("verify"); code != 0 {
		t.Errorf("verify after the stop: exit %d\n%s", code, text)
	}
}

// Case 98. Owed: what a refused request carried is neither in its answer nor in the host's log.
func TestCase98NoSecretsOfTheHostAPIInLogs(t *testing.T) {
	t.Parallel()
	b := newBed(t, "script: 1\nsteps: [{say: \"mk-words {{prompt}}\"}]\n", "MAHATI_LOG_LEVEL=debug")
	b.session("5d0b6a54-3c7e-4f21-9a86-4e71c290d813")
	const one = "/v1/sessions/5d0b6a54-3c7e-4f21-9a86-4e71c290d813"
	told := ""
	for _, r := range []struct{ method, path, body, header string }{
		{"GET", "/v1/events?sessionId=mk-query", "", ""},
		{"GET", "/v1/events?hostEvents=mk-query", "", ""},
		{"GET", "/v1/events", "", "mk-cursor"},
		{"GET", "/v1/mk-path", "", ""},
		{"PUT", "/v1/host", "mk-body", ""},
		{"GET", "/v1/sessions?cursor=mk-cursor", "", ""},
		{"POST", "/v1/sessions", `{"title":"mk-broken`, ""},
		{"POST", "/v1/sessions", `{"repository":"/mk-nowhere","title":"mk-title\u0007"}`, ""},
		{"PUT", one + "/style", `{"style":"mk-style"}`, ""},
		{"POST", one + "/messages", `{"content":{"mk":"mk-content"},"kind":"mk-kind"}`, ""},
		{"POST", "/v1/permissions/mk-permission/decision", `{"decision":"mk-decision","reason":"mk-reason"}`, ""},
		{"POST", "/v1/questions/mk-question/answer", `{"answers":[{"text":"mk-answer"}]}`, ""},
	} {
		response, err := b.overSocket(r.method, r.path, r.body, "Last-Event-ID", r.header)
		b.must(err)
		text, err := io.ReadAll(response.Body)
		b.must(err)
		_ = response.Body.Close()
		if code, _ := narad.Raw(text).Field("code").IsString(); response.StatusCode < 400 || !strings.HasPrefix(code, "NRY-") {
			t.Errorf("%s %s: got %d %s, want a refusal of the contract", r.method, r.path, response.StatusCode, text)
		}
		told += string(text)
	}
	response, err := b.overSocket("GET", "/v1/host", "", "Authorization", "Bearer mht_mk-token")
	b.must(err)
	text, err := io.ReadAll(response.Body)
	b.must(err)
	if response.StatusCode != 401 {
		t.Errorf("a token that is not known: got %d %s", response.StatusCode, text)
	}
	b.awaitEnd("5d0b6a54-3c7e-4f21-9a86-4e71c290d813", b.say("5d0b6a54-3c7e-4f21-9a86-4e71c290d813", "mk-prompt"))
	told += string(text) + b.log()
	if at := strings.Index(told, "mk-"); at >= 0 {
		t.Errorf("it is told: ...%s...", told[max(0, at-200):min(len(told), at+100)])
	}
	if !strings.Contains(told, "/v1/permissions/") && !strings.Contains(told, "GET /v1/events") {
		t.Error("the log names no route: nothing was shown")
	}
}
