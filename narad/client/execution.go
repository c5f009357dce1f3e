package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mahati-host/mahati/narad"
)

// takeUp tells the host of what a process before this one has left: how calls ended, and
// of those that nobody knows, that it is not known.
func (x *executor) takeUp() {
	for _, e := range x.ledger.open(x.id) {
		if e.Outcome == "" {
			known, err := x.ledger.finish(e.Token, narad.OutcomeError, failure(string(CodeOutcomeUnknown),
				"The executor ended while the tool ran; nobody knows whether it took effect."))
			x.noteCall("unknown", e.Call, e.Tool, narad.OutcomeError, err)
			if err != nil {
				continue
			}
			e = known
		}
		x.work.Go(func() { x.tell(e) })
	}
}

// perform runs one call: accepted durably, acted on, its end recorded, and then told.
func (x *executor) perform(e *narad.ClientToolExecute, expires time.Time) {
	select {
	case x.places <- struct{}{}:
		defer func() { <-x.places }()
	case <-x.life.Done():
	}
	if x.life.Err() != nil {
		return // it was not accepted
	}
	var known entry
	fresh, err := false, errTokenExpired
	if time.Now().Before(expires) {
		known, fresh, err = x.ledger.accept(e, expires)
	}
	if err != nil {
		x.noteCall("ignored", e.ToolCallID, e.ToolName, "", err)
		return
	}
	if fresh {
		x.noteCall("running", e.ToolCallID, e.ToolName, "", nil)
		known, err = x.act(e, expires)
		x.noteCall("finished", e.ToolCallID, e.ToolName, known.Outcome, err)
	}
	if err == nil && known.Outcome != "" && !known.Told {
		x.tell(known)
	}
}

var errTokenExpired = errors.New("the token of the call has expired")

// act runs the tool and records how it ended. A tool that does not end when the executor
// does leaves an outcome that nobody knows.
func (x *executor) act(e *narad.ClientToolExecute, expires time.Time) (entry, error) {
	tool, ok := x.opt.Tools[e.ToolName]
	if !ok {
		return x.ledger.finish(e.ExecutionToken, narad.OutcomeError,
			failure(string(CodeUnknownTool), "this executor has no such tool"))
	}
	ctx, end := context.WithDeadline(x.life, expires)
	defer end()
	type result struct {
		outcome  narad.Outcome
		response narad.Raw
	}
	ended := make(chan result, 1)
	go func() {
		response, err := safely(ctx, tool, ToolCall{e.ToolCallID, e.ToolName, e.Args})
		outcome, response := checked(ctx, response, err)
		ended <- result{outcome, response}
	}()
	select {
	case r := <-ended:
		return x.ledger.finish(e.ExecutionToken, r.outcome, r.response)
	case <-x.last.Done():
		return entry{}, errors.New("the tool did not end with the executor")
	}
}

// safely runs a tool, and makes a panic of it an error: it is no reason to lose the
// other calls.
func safely(ctx context.Context, tool ToolFunc, call ToolCall) (response narad.Raw, err error) {
	defer func() {
		if p := recover(); p != nil {
			response, err = nil, fmt.Errorf("the tool panicked: %T", p)
		}
	}()
	return tool(ctx, call)
}

// tell says to the host how a call ended, under the lease that brought it, until the host
// has understood (§11.3 rules 6 and 8). A host that is not reached is tried again for as
// long as the token lives, and a little.
func (x *executor) tell(e entry) {
	const op = "finish tool call"
	ctx, end := context.WithDeadline(x.last, e.expires().Add(lateTelling))
	defer end()
	body, err := narad.Encode(&narad.ClientToolFinish{
		Lease:          narad.Lease{ClientExecutorID: e.Executor, LeaseID: e.Lease},
		ExecutionToken: e.Token, ToolCallID: e.Call, Outcome: e.Outcome, Response: e.Response,
	})
	if err != nil {
		x.noteCall("refused", e.Call, e.Tool, e.Outcome, fail(op, CodeInvalidRequest, "the outcome is no record of the protocol"))
		return
	}
	host := x.client.hiding(e.Lease, e.Token)
	for attempt := 1; ; attempt++ {
		err := host.do(ctx, x.control(op, e.Lease, body, host.into(op, nil)))
		known := Public(err)
		switch {
		case known == nil:
			x.told("told", e, nil)
			return
		case ctx.Err() != nil:
			return // the ledger still has it, for the next process
		case known.Status == http.StatusRequestEntityTooLarge && e.Outcome != narad.OutcomeError:
			x.tellTooLarge(e)
			return
		case known.Action != Retry:
			x.told("refused", e, known)
			return
		}
		if pause(ctx, max(x.client.backoff(attempt), known.RetryAfter)) != nil {
			return
		}
	}
}

// tellTooLarge ends a call whose response no fact can hold: its token is still open (R7).
func (x *executor) tellTooLarge(e entry) {
	e, err := x.ledger.finish(e.Token, narad.OutcomeError,
		failure(string(CodeResponseTooLarge), "the response is larger than the host takes"))
	if err == nil {
		x.tell(e)
	}
}

// told records that the host knows, or wants to hear no more.
func (x *executor) told(what string, e entry, why *Error) {
	err := x.ledger.told(e.Token)
	if why != nil {
		err = errors.Join(why, err)
	}
	x.noteCall(what, e.Call, e.Tool, e.Outcome, err)
}
