package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mahati-host/mahati/narad"
)

// A ToolCall is one call that a host orders from an executor.
type ToolCall struct {
	ToolCallID string
	ToolName   string
	Args       narad.Raw
}

// A ToolFunc runs a call and returns its response, one JSON value. Its context ends when
// the token of the call does, and when the executor is told to end. Of an error that is
// no [*ToolError] the host learns nothing but that there was one.
type ToolFunc func(ctx context.Context, call ToolCall) (narad.Raw, error)

// A ToolError is a failure that the host may know: it becomes the response.
type ToolError struct {
	Code    string
	Message string
}

func (e *ToolError) Error() string { return e.Code + ": " + e.Message }

// ExecutorOptions are the optional parts of an executor, but for its tools.
type ExecutorOptions struct {
	// Tools run the calls, by the name of the tool. A call of another name ends as an
	// error with the code "unknown_tool".
	Tools map[string]ToolFunc
	// Parallel is how many calls run at once; 8 when 0. Others wait, and are not
	// accepted before they begin.
	Parallel int
	// Grace is how long a call may take to end, and to tell how, when the executor is
	// told to end; 5 s when 0.
	Grace time.Duration
	// Notify is told what happens, from any goroutine, one at a time. Nil: nobody is.
	Notify func(ExecutorNotice)
}

// An ExecutorNotice says what happens to an executor. It holds no secret.
type ExecutorNotice struct {
	// What is "attached", "connected", "disconnected", "running", "finished", "told",
	// "refused", "ignored" or "unknown".
	What string
	// ToolCallID and ToolName name the call, where it is about one.
	ToolCallID string
	ToolName   string
	// Outcome is how a call ended.
	Outcome narad.Outcome
	// Err is why, where something went wrong.
	Err error
}

// Codes with which an executor answers for a tool (§11.3), or ends.
const (
	CodeUnknownTool      Code = "unknown_tool"       // no tool of this executor has the name
	CodeExecutionFailed  Code = "execution_failed"   // the tool failed
	CodeOutcomeUnknown   Code = "outcome_unknown"    // the program was killed while the tool ran
	CodeResponseTooLarge Code = "response_too_large" // no fact can hold it (R7)
	CodeWrongLease       Code = "wrong_lease"        // a newer attach has superseded this one
	CodeLeaseExpired     Code = "lease_expired"      // it was not renewed in time
	CodeExecutorMismatch Code = "executor_mismatch"  // a record for another executor
)

// Execute attaches as an executor and runs what the host orders from it, until the
// context ends, another process attaches under the same id (CodeWrongLease), or the host
// refuses for good. Every token is recorded in the ledger before its tool begins, so no
// tool runs twice; a call that a process before was killed in is told as "outcome_unknown"
// and not run again. It dials out only.
func (c *Client) Execute(ctx context.Context, executorID string, ledger *Ledger, o ExecutorOptions) error {
	const op = "run an executor"
	name, ok := segment(executorID)
	if !ok {
		return badID(op, "an executor id")
	}
	if ledger == nil {
		return missing(op, "a ledger")
	}
	if o.Parallel <= 0 {
		o.Parallel = 8
	}
	if o.Grace <= 0 {
		o.Grace = 5 * time.Second
	}
	x := &executor{
		client: c, id: executorID, path: "/executors/" + name, ledger: ledger, opt: o,
		places: make(chan struct{}, o.Parallel), seen: map[string]bool{},
	}
	return x.live(ctx)
}

// executor is one call of Execute.
type executor struct {
	client *Client
	id     string
	path   string
	ledger *Ledger
	opt    ExecutorOptions
	places chan struct{} // as many as calls may run at once
	work   sync.WaitGroup
	life   context.Context // calls may run
	last   context.Context // calls that end may be told

	mu      sync.Mutex
	seen    map[string]bool // guarded by mu: tokens that this process has in hand
	expires time.Time       // guarded by mu: the end of the lease

	noting sync.Mutex
}

// live attaches, again when a lease has expired, until there is no point in it.
func (x *executor) live(ctx context.Context) error {
	ctx, end := context.WithCancel(ctx)
	last, endLast := context.WithCancel(context.WithoutCancel(ctx))
	x.life, x.last = ctx, last
	defer endLast()
	defer x.work.Wait()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(x.opt.Grace, endLast) })()
	defer end()
	x.takeUp()
	for attempt := 1; ; attempt++ {
		a, err := x.attach(ctx)
		if err == nil {
			attempt = 1
			x.note(ExecutorNotice{What: "attached"})
			err = x.serve(ctx, a)
		}
		known := Public(err)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if known.Action != Retry && known.Code != CodeLeaseExpired {
			return err
		}
		if a == nil {
			x.note(ExecutorNotice{What: "disconnected", Err: known})
		}
		if pause(ctx, max(x.client.backoff(attempt), known.RetryAfter)) != nil {
			return ctx.Err()
		}
	}
}

// attach takes a new lease, which supersedes the one before (§11.1).
func (x *executor) attach(ctx context.Context) (*narad.ClientAttached, error) {
	const op = "attach executor"
	var a *narad.ClientAttached
	err := x.client.do(ctx, call{op: op, method: http.MethodPost, path: x.path + "/attach", read: func(r response) (err error) {
		if !r.ok() {
			return x.client.readError(op, r)
		}
		a, err = x.readAttached(op, r.body)
		return err
	}})
	return a, err
}

// readAttached reads a client.attached, and notes the end of the lease.
func (x *executor) readAttached(op string, data []byte) (*narad.ClientAttached, error) {
	record, err := narad.Decode(data)
	if err != nil {
		return nil, invalidAnswer(op, "the answer is no record of the protocol")
	}
	a, ok := record.(*narad.ClientAttached)
	if !ok || a.ClientExecutorID != x.id {
		return nil, invalidAnswer(op, "the answer is no client.attached of this executor")
	}
	x.noteExpiry(a)
	return a, nil
}

func (x *executor) noteExpiry(a *narad.ClientAttached) {
	expires, err := time.Parse(time.RFC3339Nano, a.LeaseExpiresAt)
	x.mu.Lock()
	defer x.mu.Unlock()
	if err == nil {
		x.expires = expires
	}
}

// serve keeps a stream open under one lease, over breaks of the network.
func (x *executor) serve(ctx context.Context, a *narad.ClientAttached) error {
	beat := time.Duration(a.HeartbeatIntervalMs) * time.Millisecond
	for attempt := 1; ; attempt++ {
		begun := time.Now()
		err := x.follow(ctx, a.LeaseID, beat)
		known := Public(err)
		x.note(ExecutorNotice{What: "disconnected", Err: known})
		if ctx.Err() != nil || known.Action != Retry {
			return err
		}
		if time.Since(begun) > beat {
			attempt = 1
		}
		if pause(ctx, max(x.client.backoff(attempt), known.RetryAfter)) != nil {
			return ctx.Err()
		}
	}
}

// follow reads one stream to its end; the lease is renewed meanwhile. The error is never
// nil.
func (x *executor) follow(ctx context.Context, lease string, beat time.Duration) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	host := x.client.hiding(lease)
	s, err := host.open(ctx, call{op: "stream executor", path: x.path + "/stream", lease: lease}, StreamQuery{Silence: 3 * beat})
	if err != nil {
		return err
	}
	defer s.Close()
	x.note(ExecutorNotice{What: "connected"})
	beats := make(chan struct{})
	go func() {
		defer close(beats)
		x.beat(ctx, end, lease, beat)
	}()
	defer func() { end(nil); <-beats }()
	for {
		frame, err := s.Next()
		if why := refusalOf(ctx); why != nil {
			return why
		}
		if err != nil {
			return err
		}
		if err := x.take(lease, frame.Record); err != nil {
			return err
		}
	}
}

// refusalOf is the host's refusal that ended a context, or nil.
func refusalOf(ctx context.Context) error {
	var refusal *Error
	if errors.As(context.Cause(ctx), &refusal) {
		return refusal
	}
	return nil
}

// beat renews the lease until the context ends or the host refuses.
func (x *executor) beat(ctx context.Context, end context.CancelCauseFunc, lease string, every time.Duration) {
	const op = "renew lease"
	body, err := narad.Encode(&narad.ClientHeartbeat{Lease: narad.Lease{ClientExecutorID: x.id, LeaseID: lease}})
	if err != nil {
		end(fail(op, CodeInvalidRequest, "the lease cannot be told"))
		return
	}
	host := x.client.hiding(lease)
	for pause(ctx, every) == nil {
		err := host.do(ctx, x.control(op, lease, body, func(r response) error {
			if !r.ok() {
				return host.readError(op, r)
			}
			_, err := x.readAttached(op, r.body)
			return err
		}))
		if known := Public(err); known != nil && known.Action != Retry {
			end(known)
			return
		}
	}
}

func (x *executor) control(op, lease string, body []byte, read func(response) error) call {
	return call{op: op, method: http.MethodPost, path: x.path + "/controls", body: narad.Raw(body), lease: lease, read: read}
}

// take acts on one record of the stream.
func (x *executor) take(lease string, r narad.Record) error {
	switch r := r.(type) {
	case *narad.ClientAttached:
		x.noteExpiry(r)
	case *narad.ClientToolExecute:
		if r.ClientExecutorID != x.id {
			return fail("stream executor", CodeExecutorMismatch, "a call for another executor came")
		}
		x.order(lease, r)
	}
	return nil
}

// order takes a call in hand, once (§11.3 rules 2 and 5).
func (x *executor) order(lease string, e *narad.ClientToolExecute) {
	x.mu.Lock()
	twice, over := x.seen[e.ExecutionToken], !time.Now().Before(x.expires)
	if !twice {
		x.seen[e.ExecutionToken] = true
	}
	x.mu.Unlock()
	if twice {
		return
	}
	expires, err := time.Parse(time.RFC3339Nano, e.ExecutionTokenExpiresAt)
	var why error
	switch {
	case e.LeaseID != lease || over:
		why = errors.New("the call is of a lease that has ended")
	case err != nil || !time.Now().Before(expires):
		why = errors.New("the token of the call has expired")
	}
	if why != nil {
		x.noteCall("ignored", e.ToolCallID, e.ToolName, "", why)
		x.drop(e.ExecutionToken)
		return
	}
	x.work.Go(func() { // it outlives the stream that brought it
		defer x.drop(e.ExecutionToken)
		x.perform(e, expires)
	})
}

func (x *executor) drop(token string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.seen, token)
}

func (x *executor) note(n ExecutorNotice) {
	if x.opt.Notify == nil {
		return
	}
	x.noting.Lock()
	defer x.noting.Unlock()
	x.opt.Notify(n)
}

func (x *executor) noteCall(what, id, tool string, o narad.Outcome, err error) {
	x.note(ExecutorNotice{What: what, ToolCallID: id, ToolName: tool, Outcome: o, Err: err})
}

// describe words a failure as a response that shows nothing internal.
func describe(err error) narad.Raw {
	code, message := string(CodeExecutionFailed), ""
	var known *ToolError
	if errors.As(err, &known) {
		code, message = known.Code, known.Message
	}
	return failure(code, message)
}

func failure(code, message string) narad.Raw {
	out := append([]byte(`{"code":`), narad.Quote(code)...)
	if message != "" {
		out = append(append(out, `,"message":`...), narad.Quote(message)...)
	}
	return append(out, '}')
}

// maxResponse leaves room for the rest of a fact (R7).
const maxResponse = 500_000

// checked is the outcome and response of a call that a tool has ended. ctx is the call's.
func checked(ctx context.Context, response narad.Raw, err error) (narad.Outcome, narad.Raw) {
	switch {
	case err != nil && ctx.Err() != nil:
		return narad.OutcomeCancelled, narad.Raw("null")
	case err != nil:
		return narad.OutcomeError, describe(err)
	case len(response) == 0:
		return narad.OutcomeSuccess, narad.Raw("null")
	case !jsontext.Value(response).IsValid():
		return narad.OutcomeError, failure(string(CodeExecutionFailed), "the tool's response is not JSON")
	case len(response) > maxResponse:
		return narad.OutcomeError, failure(string(CodeResponseTooLarge), fmt.Sprintf("the response has more than %d bytes", maxResponse))
	}
	return narad.OutcomeSuccess, response
}
