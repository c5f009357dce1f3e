package client

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
)

// StreamQuery selects what a stream of a session sends.
type StreamQuery struct {
	// AfterSessionSequence is the sequence of the last fact that the caller has.
	AfterSessionSequence int64
	// LastEventID is the id of the last frame that had one; it wins over the sequence
	// (R27).
	LastEventID string
	// AfterRevision is the revision that the caller has of a workspace. Nil: from now on.
	AfterRevision *int64
	// Watch asks for watch events too (R28).
	Watch bool
	// HydrateMessages and HydrateGraph ask for hydrate records; that of the messages
	// comes first, and only on a stream from the beginning (R29).
	HydrateMessages bool
	HydrateGraph    bool
	// Silence ends the stream after that long without a byte. Zero: never.
	Silence time.Duration
	// Without holds profiles of whose events only the envelope is read.
	Without narad.Profile
}

func (q StreamQuery) values() url.Values {
	v := url.Values{"afterSessionSequence": {decimal(q.AfterSessionSequence)}}
	if q.Watch {
		v.Set("watch", "1")
	}
	switch {
	case q.HydrateMessages && q.HydrateGraph:
		v.Set("hydrate", "messages,graph")
	case q.HydrateMessages:
		v.Set("hydrate", "messages")
	case q.HydrateGraph:
		v.Set("hydrate", "graph")
	}
	return v
}

// A Frame is one record of a stream.
type Frame struct {
	// ID is the frame's id: the eventId of a fact or watch event, else usually "".
	ID string
	// Raw is the record's bytes, Record what they say.
	Raw    narad.Raw
	Record narad.Record
}

// A Stream is an open stream of records.
type Stream struct {
	op     string
	ctx    context.Context // the caller's: tells its end from the stream's own
	cancel context.CancelCauseFunc
	body   io.ReadCloser
	reader *sse.Reader
	decode narad.Decoder
	header http.Header
}

// Stream opens the stream of a session. The host answers at once, also when nothing
// happens. Close the stream when done; the end of the context ends it too.
func (c *Client) Stream(ctx context.Context, sessionID string, q StreamQuery) (*Stream, error) {
	const op = "stream session"
	path, err := sessionPath(op, sessionID, "/stream")
	if err != nil {
		return nil, err
	}
	return c.open(ctx, call{op: op, path: path, query: q.values()}, q)
}

func (c *Client) open(ctx context.Context, k call, q StreamQuery) (*Stream, error) {
	lifetime, cancel := context.WithCancelCause(ctx)
	op := k.op
	k.method = http.MethodGet
	req, err := c.request(lifetime, k, nil)
	if err != nil {
		cancel(nil)
		return nil, fail(op, CodeInvalidRequest, "the request cannot be made")
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Accept-Encoding", "identity") // a compressor on the way would hold frames back
	req.Header.Set("Cache-Control", "no-store")
	if q.LastEventID != "" {
		req.Header.Set("Last-Event-ID", q.LastEventID)
	}
	watch := watchFor(c.timeout, cancel, errNoAnswer)
	defer watch.stop()
	answer, err := c.http.Do(req)
	if err != nil {
		err = transportError(ctx, op, because(lifetime, err))
		cancel(nil)
		return nil, err
	}
	if err := c.opened(op, answer); err != nil {
		cancel(nil)
		return nil, err
	}
	body := &watchedBody{ReadCloser: answer.Body, ctx: lifetime, watch: watchFor(q.Silence, cancel, errSilent)}
	body.watch.stop() // nobody reads yet
	return &Stream{
		op: op, ctx: ctx, cancel: cancel, body: body, header: answer.Header,
		reader: sse.NewReader(body, sse.Options{MaxFrame: c.maxFrame}), decode: narad.Decoder{Without: q.Without},
	}, nil
}

// opened returns why an answer is no stream, after reading and closing it.
func (c *Client) opened(op string, answer *http.Response) error {
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if answer.StatusCode == http.StatusOK && kind == "text/event-stream" {
		return nil
	}
	if answer.StatusCode == http.StatusOK {
		_ = answer.Body.Close()
		return invalidAnswer(op, "the answer is no event stream")
	}
	r, err := readAll(answer)
	if err != nil {
		r.body = nil // the status alone says enough
	}
	return c.readError(op, r)
}

// Head is the sequence of the session's last fact when the stream opened; 0 if the
// host did not say.
func (s *Stream) Head() int64 { return parseNumber(s.header.Get("Narad-Session-Sequence")) }

// Next returns the next record. Control messages of a type that narad/v1 lacks are
// passed over. An error is final; at an end that the host made, its code is
// CodeStreamEnded.
func (s *Stream) Next() (Frame, error) {
	for {
		read, err := s.reader.Next()
		if err != nil {
			return Frame{}, s.ended(err)
		}
		frame, err := readFrame(s.op, read, s.decode)
		if err != nil {
			return Frame{}, err
		}
		if frame.Record != nil {
			return frame, nil
		}
	}
}

// Close ends the stream, also a Next that waits. It may be called more than once.
func (s *Stream) Close() error {
	s.cancel(nil)
	_ = s.body.Close() // what is not read is not wanted
	return nil
}

func (s *Stream) ended(err error) error {
	switch {
	case errors.Is(err, sse.ErrFrameTooLarge):
		e := fail(s.op, CodeFrameTooLarge, "a frame is larger than it may be")
		e.cause = sse.ErrFrameTooLarge
		return e
	case s.ctx.Err() == nil && errors.Is(err, io.EOF):
		e := fail(s.op, CodeStreamEnded, "the host ended the stream")
		e.cause = io.EOF
		return e
	}
	return transportError(s.ctx, s.op, err)
}

// readFrame decodes a frame and checks its id. The record is nil for a frame that
// claims to be neither fact nor watch event and is of no known type: the protocol
// says nothing about such control messages.
func readFrame(op string, read sse.Frame, decode narad.Decoder) (Frame, error) {
	record, err := decode.Decode(read.Data)
	if err != nil {
		return Frame{}, unreadable(op, read, err)
	}
	switch r := record.(type) {
	case narad.Authority:
		err = sameID(op, read, r.Envelope().EventID)
	case *narad.Revision:
		err = sameID(op, read, r.EventID)
	}
	if err != nil {
		return Frame{}, err
	}
	return Frame{ID: read.ID, Raw: read.Data, Record: record}, nil
}

// unreadable says what a frame without a record means; nil to pass it over.
func unreadable(op string, read sse.Frame, err error) error {
	if !jsontext.Value(read.Data).IsValid() {
		// Cut on the way: history has the fact whole.
		e := fail(op, CodeInvalidFrame, "the data of a frame is not JSON")
		e.Action, e.cause = Retry, safe(err)
		return e
	}
	data := narad.Raw(read.Data)
	kind, _ := data.Field("type").IsString()
	class := narad.Type(kind).Class()
	if id, ok := data.Field("eventId").IsString(); ok && class != narad.ClassControl && class != narad.ClassHydrate {
		if err := sameID(op, read, id); err != nil {
			return err
		}
	}
	var refusal *narad.Error
	if errors.As(err, &refusal) && refusal.Code == narad.CodeUnknownRecord && !read.HasID {
		return nil
	}
	return refused(op, err)
}

// sameID holds a fact or watch event to the id of its frame (specification §10.1).
func sameID(op string, read sse.Frame, eventID string) error {
	switch {
	case read.ID == "": // an id of an earlier frame proves nothing about this one
		return fail(op, CodeInvalidFrame, "a frame with a fact or a watch event requires id")
	case read.ID != eventID:
		return fail(op, CodeFrameIDMismatch, "the id of a frame is not the eventId of its record")
	}
	return nil
}
