package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"
)

const (
	// maxAnswer bounds what is read of one answer. A page of history has 4 MiB (R26).
	maxAnswer = 16 << 20
	// patience is the longest wait that a call takes on itself; what asks for more is
	// the caller's decision.
	patience = 30 * time.Second
)

// errNoAnswer ends an attempt that has lasted Options.Timeout.
var errNoAnswer = errors.New("no answer in time")

// A call is one request and how its answer is read.
type call struct {
	op     string // for errors: what is being done
	method string
	path   string // below the base, escaped
	query  url.Values
	body   any    // nil for none
	lease  string // of an executor, "" for none
	once   bool   // has no id: must not be sent again when its answer is lost
	read   func(response) error
}

// A response is an answer that was read to its end.
type response struct {
	status  int
	header  http.Header
	body    []byte
	attempt int // of the call, from 1
}

// do sends a call, again if its error says so.
func (c *Client) do(ctx context.Context, k call) error {
	var payload []byte
	if k.body != nil {
		var err error
		if payload, err = json.Marshal(k.body); err != nil {
			return fail(k.op, CodeInvalidRequest, "a value of the request is not JSON")
		}
	}
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx, k, payload, attempt)
		if err == nil {
			return nil
		}
		wait := max(c.backoff(attempt), err.RetryAfter)
		if attempt >= c.attempts || !k.mayRepeat(err) || wait > patience {
			return err
		}
		if pause(ctx, wait) != nil {
			return err
		}
	}
}

// mayRepeat reports whether a call that failed may be sent again: what the host
// refused before doing anything always may.
func (k call) mayRepeat(err *Error) bool {
	refused := err.Status == http.StatusTooManyRequests || err.Status == http.StatusServiceUnavailable
	return err.Action == Retry && (!k.once || refused)
}

func (c *Client) attempt(ctx context.Context, k call, payload []byte, number int) *Error {
	limited, cancel := context.WithTimeoutCause(ctx, c.timeout, errNoAnswer)
	defer cancel()
	req, err := c.request(limited, k, payload)
	if err != nil {
		return fail(k.op, CodeInvalidRequest, "the request cannot be made")
	}
	answer, err := c.http.Do(req)
	if err != nil {
		return transportError(ctx, k.op, err)
	}
	r, err := readAll(answer)
	if errors.Is(err, errTooLong) {
		return invalidAnswer(k.op, "the answer is too large")
	}
	if err != nil {
		return transportError(ctx, k.op, err)
	}
	r.attempt = number
	if err := k.read(r); err != nil {
		return Public(err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, k call, payload []byte) (*http.Request, error) {
	target := c.base + k.path
	if len(k.query) > 0 {
		target += "?" + k.query.Encode()
	}
	var body io.Reader
	if payload != nil {
		body = bytes.NewReader(payload)
	}
	req, err := http.NewRequestWithContext(ctx, k.method, target, body)
	if err != nil {
		return nil, err
	}
	if payload != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.userAgent)
	if k.lease != "" {
		req.Header.Set("Narad-Lease", k.lease)
	}
	c.authorize(req.Header)
	return req, nil
}

var errTooLong = errors.New("too long")

// readAll reads an answer to its end and closes it.
func readAll(answer *http.Response) (response, error) {
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = errTooLong
	}
	return response{status: answer.StatusCode, header: answer.Header, body: body}, err
}

func (r response) ok() bool { return r.status >= 200 && r.status <= 299 }

// into reads a successful answer as JSON; into(nil) has no use for its body.
func (c *Client) into(op string, value any) func(response) error {
	return func(r response) error {
		if !r.ok() {
			return c.readError(op, r)
		}
		if value == nil {
			return nil
		}
		if err := json.Unmarshal(r.body, value); err != nil {
			return invalidAnswer(op, "the answer is not of the expected form")
		}
		return nil
	}
}

// get reads one resource.
func (c *Client) get(ctx context.Context, op, path string, query url.Values, value any) error {
	return c.do(ctx, call{op: op, method: http.MethodGet, path: path, query: query, read: c.into(op, value)})
}
