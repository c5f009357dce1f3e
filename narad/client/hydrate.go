package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/mahati-host/mahati/narad"
)

// Messages returns the transcript of a session as one record. It adds to the facts
// and replaces none (R29).
func (c *Client) Messages(ctx context.Context, sessionID string) (*narad.MessagesSnapshot, error) {
	return hydrate[*narad.MessagesSnapshot](ctx, c, "read messages", sessionID, "/messages", nil)
}

// Graph returns the graph of a run tree as one record.
func (c *Client) Graph(ctx context.Context, sessionID, rootRunID string) (*narad.GraphSnapshot, error) {
	query := url.Values{"rootRunId": {rootRunID}}
	return hydrate[*narad.GraphSnapshot](ctx, c, "read graph", sessionID, "/graph", query)
}

// hydrate reads one record of the type T.
func hydrate[T narad.Record](ctx context.Context, c *Client, op, sessionID, tail string, query url.Values) (record T, err error) {
	path, err := sessionPath(op, sessionID, tail)
	if err != nil {
		return record, err
	}
	read := func(r response) error {
		if !r.ok() {
			return c.readError(op, r)
		}
		decoded, err := narad.Decode(r.body)
		if err != nil {
			return refused(op, err)
		}
		var ok bool
		if record, ok = decoded.(T); !ok {
			return invalidAnswer(op, "the answer is another record")
		}
		return nil
	}
	return record, c.do(ctx, call{op: op, method: http.MethodGet, path: path, query: query, read: read})
}

// refused wraps the refusal of a record, whose text holds no value of it.
func refused(op string, err error) *Error {
	e := fail(op, CodeRecordRefused, "")
	e.cause = safe(err)
	if e.cause != nil {
		e.Detail = e.cause.Error()
	}
	return e
}
