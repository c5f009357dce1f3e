package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/mahati-host/mahati/harness"
	"github.com/mahati-host/mahati/internal/server/harnesshttp"
	"github.com/mahati-host/mahati/internal/sse"
	"github.com/mahati-host/mahati/narad"
)

// logClient speaks to a host by the headless run contract. It belongs to one goroutine.
type logClient struct{ *apiClient }

// connectLog returns a client of the host's headless binding.
func (h hostFlags) connectLog(a *app) (*logClient, error) {
	c, err := h.connectTo(a, harnesshttp.Prefix)
	if err != nil {
		return nil, err
	}
	return &logClient{c}, nil
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

// connection follows over one stream until that ends. Credit is of the stream alone: each
// begins with a whole window.
func (r *logReader) connection(ctx context.Context) error {
	query := url.Values{"subscriber": {r.subscriber}, "credit": {strconv.Itoa(window)}}
	if token := r.cursor.Token(); token != "" {
		query.Set("cursor", token)
	}
	status, err := r.client.stream(ctx, "follow the run", "/runs/"+url.PathEscape(r.run)+"/stream", query, nil,
		func(frames *sse.Reader) error { return r.frames(ctx, frames) })
	r.over = r.over || status == http.StatusNoContent
	return err
}

// frames takes the records of one stream, and grants more credit as it takes them.
func (r *logReader) frames(ctx context.Context, frames *sse.Reader) error {
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
