package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/internal/server"
	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// apiClient asks a host over one of the bindings that have no client package. It belongs to one
// goroutine.
type apiClient struct {
	base  string
	http  *http.Client
	token client.Token
	agent string
}

// connectTo returns a client of the host's binding under a prefix.
func (h hostFlags) connectTo(a *app, prefix string) (*apiClient, error) {
	address, token, err := h.find(a)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("use address %s: it must be http://HOST, https://HOST or unix:///PATH", oneLine(address))
	}
	c := &apiClient{base: strings.TrimRight(address, "/"), token: token, agent: "mahati/" + a.version()}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if u.Scheme == "unix" {
		c.base = "http://localhost"
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", u.Path)
		}
	}
	c.base += strings.TrimRight(prefix, "/")
	c.http = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Close lets go of idle connections.
func (c *apiClient) Close() { c.http.CloseIdleConnections() }

// refusal is a problem document, an error envelope of Narya, or another answer that is none of
// the contract's.
type refusal struct {
	op     string
	status int
	code   string
	detail string
	after  time.Duration
}

func (r *refusal) Error() string {
	text := r.op + ": " + r.code
	if r.status != 0 {
		text += " (HTTP " + strconv.Itoa(r.status) + ")"
	}
	if r.detail != "" {
		text += ": " + r.detail
	}
	return text
}

// passing reports whether the same request may succeed later.
func (r *refusal) passing() bool {
	switch r.status {
	case 0, http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// codeUnreachable is for a request that got no answer.
const codeUnreachable = "unreachable"

// request makes one with the token.
func (c *apiClient) request(ctx context.Context, method, path string, query url.Values, body []byte) (*http.Request, error) {
	address := c.base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	req.Header.Set("User-Agent", c.agent)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+string(c.token))
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// maxAnswer bounds what is read of one answer.
const maxAnswer = 16 << 20

// maxAttempts is how often a request is sent that may be sent again.
const maxAttempts = 5

// post sends a request that is idempotent by its input id, again while that may help.
func (c *apiClient) post(ctx context.Context, op, path string, body any) (answer narad.Raw, err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return c.again(ctx, func() (narad.Raw, error) { return c.once(ctx, op, http.MethodPost, path, nil, data) })
}

// answerTime bounds the wait for an answer.
const answerTime = 30 * time.Second

// get reads something, again while that may help.
func (c *apiClient) get(ctx context.Context, op, path string, query url.Values) (narad.Raw, error) {
	return c.again(ctx, func() (narad.Raw, error) { return c.once(ctx, op, http.MethodGet, path, query, nil) })
}

func (c *apiClient) again(ctx context.Context, once func() (narad.Raw, error)) (answer narad.Raw, err error) {
	for attempt := 1; ; attempt++ {
		answer, err = once()
		var no *refusal
		if err == nil || attempt == maxAttempts || !errors.As(err, &no) || !no.passing() || sleep(ctx, pauseAfter(attempt, no)) != nil {
			return answer, err
		}
	}
}

func (c *apiClient) once(ctx context.Context, op, method, path string, query url.Values, body []byte) (narad.Raw, error) {
	limited, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	req, err := c.request(limited, method, path, query, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, noAnswer(ctx, op)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch {
	case err != nil:
		return nil, noAnswer(ctx, op)
	case resp.StatusCode/100 != 2:
		return nil, refusalOf(op, resp, data)
	}
	return data, nil
}

// noAnswer tells of a request that got none, in no words of the network's.
func noAnswer(ctx context.Context, op string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &refusal{op: op, code: codeUnreachable, detail: "the host did not answer"}
}

func refusalOf(op string, resp *http.Response, body narad.Raw) *refusal {
	r := &refusal{op: op, status: resp.StatusCode, code: "refused"}
	if code, ok := body.Field("code").IsString(); ok {
		r.code = oneLine(code)
		detail, problem := body.Field("detail").IsString()
		if !problem {
			detail, _ = body.Field("message").IsString()
		}
		r.detail = oneLine(detail)
	}
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		r.after = time.Duration(seconds) * time.Second
	}
	return r
}

// pauseAfter is the wait after an attempt that failed, from 1.
func pauseAfter(attempt int, r *refusal) time.Duration {
	wait := min(50*time.Millisecond<<min(attempt-1, 10), time.Second)
	return max(wait, min(r.after, 30*time.Second))
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// beatsMissed is how many heartbeats may stay away before a stream counts as lost, usualHeartbeat what
// is taken for their interval where the host does not say, as no answer has come yet.
const (
	beatsMissed    = 3
	usualHeartbeat = 15 * time.Second
)

// silenceOf is how long a stream may say nothing that began with this header.
func silenceOf(header http.Header) time.Duration {
	ms, err := strconv.Atoi(header.Get(server.HeaderHeartbeat))
	if err != nil || ms <= 0 || ms > int(time.Hour/time.Millisecond) {
		return beatsMissed * usualHeartbeat
	}
	return beatsMissed * time.Duration(ms) * time.Millisecond
}

// stream opens an event stream and has it read to its end; one that is silent for too long is
// cut. An answer without one, which is no refusal either, is told by its status alone.
func (c *apiClient) stream(ctx context.Context, op, path string, query url.Values, header http.Header, read func(*sse.Reader) error) (status int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(silenceOf(nil), cancel)
	defer quiet.Stop()
	req, err := c.request(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return 0, err
	}
	maps.Copy(req.Header, header)
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, &refusal{op: op, code: codeUnreachable, detail: "the host did not answer"}
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNoContent:
		return resp.StatusCode, nil
	case http.StatusOK:
		quiet.Stop()
		return resp.StatusCode, read(sse.NewReader(&watchedBody{resp.Body, quiet, silenceOf(resp.Header)}, sse.Options{}))
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, refusalOf(op, resp, body)
}

// watchedBody measures the silence of a stream: the time within a read, and none in which nobody reads.
type watchedBody struct {
	io.Reader
	quiet   *time.Timer
	silence time.Duration
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.quiet.Reset(b.silence)
	n, err := b.Reader.Read(p)
	b.quiet.Stop()
	return n, err
}
