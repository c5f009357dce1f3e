package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/server/harnesshttp"
	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/client"
)

// logClient speaks to a host by the headless run contract. It belongs to one goroutine.
type logClient struct {
	base  string
	http  *http.Client
	token client.Token
	agent string
}

// connectLog returns a client of the host's headless binding.
func (h hostFlags) connectLog(a *app) (*logClient, error) {
	address, token, err := h.find(a)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("use address %s: it must be http://HOST, https://HOST or unix:///PATH", oneLine(address))
	}
	c := &logClient{base: strings.TrimRight(address, "/"), token: token, agent: "mahati/" + a.version()}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if u.Scheme == "unix" {
		c.base = "http://localhost"
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", u.Path)
		}
	}
	c.base += harnesshttp.Prefix
	c.http = &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Close lets go of idle connections.
func (c *logClient) Close() { c.http.CloseIdleConnections() }

// refusal is a problem document, or another answer that is none of the contract's.
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
func (c *logClient) request(ctx context.Context, method, path string, query url.Values, body []byte) (*http.Request, error) {
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
func (c *logClient) post(ctx context.Context, op, path string, body any) (answer narad.Raw, err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return c.again(ctx, func() (narad.Raw, error) { return c.once(ctx, op, http.MethodPost, path, nil, data) })
}

// answerTime bounds the wait for an answer.
const answerTime = 30 * time.Second

// get reads something, again while that may help.
func (c *logClient) get(ctx context.Context, op, path string, query url.Values) (narad.Raw, error) {
	return c.again(ctx, func() (narad.Raw, error) { return c.once(ctx, op, http.MethodGet, path, query, nil) })
}

func (c *logClient) again(ctx context.Context, once func() (narad.Raw, error)) (answer narad.Raw, err error) {
	for attempt := 1; ; attempt++ {
		answer, err = once()
		var no *refusal
		if err == nil || attempt == maxAttempts || !errors.As(err, &no) || !no.passing() || sleep(ctx, pauseAfter(attempt, no)) != nil {
			return answer, err
		}
	}
}

func (c *logClient) once(ctx context.Context, op, method, path string, query url.Values, body []byte) (narad.Raw, error) {
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
		detail, _ := body.Field("detail").IsString()
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

// start begins a run.
func (c *logClient) start(ctx context.Context, s newRun) (startedRun, error) {
	var run startedRun
	data, err := c.post(ctx, "start a run", "/runs", s)
	if err != nil {
		return run, err
	}
	if err := json.Unmarshal(data, &run); err != nil || run.RunID == "" {
		return run, errors.New("start a run: the answer is not that of a host of " + harness.Version)
	}
	return run, nil
}

// newRun is the body of a start.
type newRun struct {
	Version          string `json:"version"`
	InputID          string `json:"input_id"`
	Text             string `json:"text"`
	SessionID        string `json:"session_id,omitzero"`
	WorkspaceID      string `json:"workspace_id,omitzero"`
	CWD              string `json:"cwd,omitzero"`
	Title            string `json:"title,omitzero"`
	Agent            string `json:"agent,omitzero"`
	ClientExecutorID string `json:"client_executor_id,omitzero"`
}

// startedRun is its answer.
type startedRun struct {
	RunID     string `json:"run_id"`
	SessionID string `json:"session_id"`
	Duplicate bool   `json:"duplicate,omitzero"`
}

// input tells a run something.
func (c *logClient) input(ctx context.Context, in harness.Input) (narad.Raw, error) {
	in.Version = harness.Version
	if in.InputID == "" {
		in.InputID = rand.Text()
	}
	return c.post(ctx, string(in.Type), "/runs/"+url.PathEscape(in.RunID)+"/inputs", in)
}

// tell tells a run something for as long as that may help: until the host answers, however
// long it is away, or the context ends.
func (c *logClient) tell(ctx context.Context, in harness.Input) (narad.Raw, error) {
	in.InputID = rand.Text() // the same each time: it has its effect once
	for {
		answer, err := c.input(ctx, in)
		var no *refusal
		if err == nil || !errors.As(err, &no) || !no.passing() {
			return answer, err
		}
		if err := sleep(ctx, pauseAfter(maxAttempts, no)); err != nil {
			return nil, err
		}
	}
}

// logReader follows the log of a run over any number of connections.
type logReader struct {
	client *logClient
	run    string
	// cursor is behind the last record that was taken.
	cursor harness.Cursor
	// take gets each record once, in order, as it came.
	take func(harness.Event, narad.Raw) error
	// lost is told why a connection ended, where the reader comes back; nil for nobody.
	lost func(error)

	subscriber string
	over       bool // the final record was taken
	ending     bool // the record before it was
}

// window is how many records a reader has credit for at most; half of it is granted anew
// when that much was taken.
const window = 1024

// read follows until the log has ended (nil), the context does, the host refuses, or take
// fails.
func (r *logReader) read(ctx context.Context) error {
	if r.subscriber == "" {
		r.subscriber = rand.Text()
	}
	for attempt := 1; ; attempt++ {
		before := r.cursor.Sequence
		err := r.connection(ctx)
		var no *refusal
		switch {
		case r.over:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && (!errors.As(err, &no) || !no.passing()):
			return err
		case no == nil:
			no = &refusal{op: "follow the run", code: "stream_ended"}
		}
		if r.cursor.Sequence > before {
			attempt = 1
		}
		if r.lost != nil && attempt == 2 { // once for each loss that lasts
			r.lost(no)
		}
		if err := sleep(ctx, pauseAfter(attempt, no)); err != nil {
			return err
		}
	}
}

// silence is how long a stream may say nothing: three of a host's heartbeats.
const silence = 45 * time.Second

// connection follows over one stream until that ends. Credit is of the stream alone: each
// begins with a whole window.
func (r *logReader) connection(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	query := url.Values{"subscriber": {r.subscriber}, "credit": {strconv.Itoa(window)}}
	if token := r.cursor.Token(); token != "" {
		query.Set("cursor", token)
	}
	req, err := r.client.request(ctx, http.MethodGet, "/runs/"+url.PathEscape(r.run)+"/stream", query, nil)
	if err != nil {
		return err
	}
	const op = "follow the run"
	resp, err := r.client.http.Do(req)
	if err != nil {
		return &refusal{op: op, code: codeUnreachable, detail: "the host did not answer"}
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusNoContent:
		r.over = true
		return nil
	case http.StatusOK:
		return r.frames(ctx, &watchedBody{resp.Body, quiet})
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return refusalOf(op, resp, body)
}

// watchedBody says with each read that the stream is not silent.
type watchedBody struct {
	io.Reader
	quiet *time.Timer
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.quiet.Reset(silence)
	return n, err
}

// frames takes the records of one stream, and grants more credit as it takes them.
func (r *logReader) frames(ctx context.Context, body io.Reader) error {
	frames := sse.NewReader(body, sse.Options{})
	for taken := 0; !r.over; {
		frame, err := frames.Next()
		if err != nil {
			return nil // the reader comes back
		}
		if err := r.record(frame); err != nil {
			return err
		}
		if taken++; taken < window/2 || r.over {
			continue
		}
		in := harness.Input{RunID: r.run, CorrelationID: r.subscriber, Type: harness.FlowCredit, Credit: uint32(taken)}
		if _, err := r.client.input(ctx, in); err != nil {
			return nil // the stream is of no use without it
		}
		taken = 0
	}
	return nil
}

// record takes the record of a frame, whose id is the cursor behind it.
func (r *logReader) record(frame sse.Frame) error {
	if err := r.event(frame.Data); err != nil {
		return err
	}
	cursor, err := harness.ParseToken(frame.ID)
	if err != nil || cursor.Sequence > r.cursor.Sequence || cursor.RunID != r.run {
		return fmt.Errorf("follow the run: the cursor of record %d is not its own", r.cursor.Sequence)
	}
	if cursor.Sequence == r.cursor.Sequence {
		r.cursor = cursor
	}
	return nil
}

// event takes one record, if it is the next. One that came before is not shown again.
func (r *logReader) event(raw narad.Raw) error {
	var e harness.Event
	if err := json.Unmarshal(raw, &e); err != nil {
		return fmt.Errorf("follow the run: that is no record of %s", harness.Version)
	}
	switch {
	case e.Version != harness.Version || e.RunID != r.run:
		return fmt.Errorf("follow the run: record %d is of another run or version", e.Sequence)
	case e.Sequence <= r.cursor.Sequence:
		return nil
	case e.Sequence != r.cursor.Sequence+1:
		return fmt.Errorf("follow the run: record %d came after record %d", e.Sequence, r.cursor.Sequence)
	}
	if err := r.take(e, raw); err != nil {
		return err
	}
	r.cursor.Sequence = e.Sequence // its token comes with the frame, or the page
	r.over = r.ending && e.Type == harness.Checkpointed
	r.ending = e.Type == harness.RunCompleted || e.Type == harness.RunCanceled
	return nil
}

// rest takes what is there now, and waits for nothing.
func (r *logReader) rest(ctx context.Context) error {
	for !r.over {
		query := url.Values{"credit": {strconv.Itoa(window / 2)}}
		if token := r.cursor.Token(); token != "" {
			query.Set("cursor", token)
		}
		data, err := r.client.get(ctx, "read the log", "/runs/"+url.PathEscape(r.run)+"/events", query)
		if err != nil {
			return err
		}
		events, _ := data.Field("events").Elements()
		next, _ := data.Field("next_cursor").IsString()
		cursor, err := harness.ParseToken(next)
		if err != nil {
			return errors.New("read the log: the answer is not that of a host of " + harness.Version)
		}
		for _, raw := range events {
			if err := r.event(raw); err != nil {
				return err
			}
		}
		if len(events) > 0 && cursor.Sequence != r.cursor.Sequence {
			return fmt.Errorf("read the log: the cursor of record %d is not its own", r.cursor.Sequence)
		}
		r.cursor, r.over = cursor, string(data.Field("ended")) == "true"
		if len(events) == 0 {
			return nil
		}
	}
	return nil
}
