package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mahati-host/mahati/facts"
	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/decide"
	"github.com/mahati-host/mahati/internal/executor"
	"github.com/mahati-host/mahati/internal/journal"
	"github.com/mahati-host/mahati/narad"
)

// ExecutorConnection is the channel to one executor.
type ExecutorConnection = executor.Connection

// Errors of the executors' part of a Host, besides those of Do.
var (
	ErrWrongLease       = executor.ErrWrongLease
	ErrLeaseExpired     = executor.ErrLeaseExpired
	ErrTooManyExecutors = executor.ErrTooMany
)

// AttachExecutor gives an executor a new lease, which supersedes the one before (§11.1).
// The errors are those of executor.Executors.Attach, and those of a host that does not
// serve.
func (h *Host) AttachExecutor(ctx context.Context, p access.Principal, id string) (*narad.ClientAttached, error) {
	if !h.ready.Load() {
		return nil, h.notReady()
	}
	return h.executors.Attach(ctx, p, id)
}

// RenewLease is the host's side of client.heartbeat (§11.2).
func (h *Host) RenewLease(p access.Principal, id, leaseID string) (*narad.ClientAttached, error) {
	if !h.ready.Load() {
		return nil, h.notReady()
	}
	return h.executors.Renew(p, id, leaseID)
}

// ConnectExecutor opens the one channel to an executor.
func (h *Host) ConnectExecutor(p access.Principal, id, leaseID string) (*ExecutorConnection, error) {
	if !h.ready.Load() {
		return nil, h.notReady()
	}
	return h.executors.Connect(p, id, leaseID)
}

// FinishClientTool is the host's side of client.tool.finish: the answers are those of R33.
// The call's owner judges it, so of several finishes one ends the call.
func (h *Host) FinishClientTool(ctx context.Context, p access.Principal, f *narad.ClientToolFinish) (decide.Answer, error) {
	if !h.ready.Load() {
		return decide.Answer{}, h.notReady()
	}
	if err := access.AuthorizeExecutor(p, f.ClientExecutorID); err != nil {
		return decide.Answer{}, err
	}
	row, err := h.token(ctx, f.ClientExecutorID, f.ToolCallID)
	if errors.Is(err, journal.ErrNotFound) {
		return foreignToken, nil
	}
	if err != nil {
		return decide.Answer{}, err
	}
	return h.hand(ctx, row.Session, &task{
		command: decide.FinishClientTool{ToolCallID: f.ToolCallID, Outcome: f.Outcome, Response: f.Response},
		actor:   facts.Actor{ID: p.ID()}, claim: &claim{p, f}, reply: make(chan reply, 1),
	})
}

// token returns the row of a call's token.
func (h *Host) token(ctx context.Context, executorID, toolCallID string) (journal.TokenRow, error) {
	key := journal.TokenKey(executorID, toolCallID)
	if key.Validate() != nil {
		return journal.TokenRow{}, journal.ErrNotFound
	}
	return journal.Get[journal.TokenRow](ctx, h.journal, key)
}

// claim is what an executor says of a call, before it is believed.
type claim struct {
	principal access.Principal
	finish    *narad.ClientToolFinish
}

var foreignToken = decide.Answer{Status: decide.Forbidden, Detail: "this is no token of that call"}

// judge answers a finish that does not end its call; false for one that does.
func (o *owner) judge(ctx context.Context, c *claim) (decide.Answer, bool, error) {
	row, err := o.host.token(ctx, c.finish.ClientExecutorID, c.finish.ToolCallID)
	if errors.Is(err, journal.ErrNotFound) || err == nil && row.Session != o.id {
		return foreignToken, true, nil
	}
	if err != nil {
		return decide.Answer{}, true, err
	}
	verdict, err := executor.Judge(row, c.principal, c.finish, o.host.opt.Now())
	if err != nil {
		return decide.Answer{}, true, fmt.Errorf("judge a finish: %w", err)
	}
	switch verdict {
	case executor.Accept:
		return decide.Answer{}, false, nil
	case executor.Repeat:
		return decide.Answer{Status: decide.AlreadyApplied}, true, nil
	case executor.Differs:
		return decide.Answer{Status: decide.Conflict, Detail: "the call has ended otherwise"}, true, nil
	case executor.Late:
		return decide.Answer{Status: decide.Expired, Detail: "the token of the call has expired"}, true, nil
	}
	return foreignToken, true, nil
}

// tokens is what a batch does to client tool calls.
type tokens struct {
	grants  []executor.Grant
	lost    []string      // calls that were to be issued when their executor had just gone
	settled []journal.Key // of the tokens of calls that end
	rows    []journal.Change
}

// clientTimer names the timer of a client tool call.
func clientTimer(toolCallID string) string { return clientTimerPrefix + toolCallID }

const clientTimerPrefix = "client:"

// settling finds the tokens of the client calls that a list of facts ends, before it is
// applied. finish is what an executor said, if one did.
func (o *owner) settling(ctx context.Context, list []narad.Authority, c *claim) (tokens, error) {
	var out tokens
	for _, fact := range list {
		f, ok := fact.(*narad.ToolCallFinished)
		if !ok {
			continue
		}
		tool, known := o.control.Session.Tool(f.ToolCallID)
		if !known || tool.Executor != narad.ExecutorClient {
			continue
		}
		run, _ := o.control.Session.Run(tool.RunID)
		out.rows = append(out.rows, journal.Remove{Key: journal.TimerKey(o.id, clientTimer(f.ToolCallID))})
		row, err := o.host.token(ctx, run.ClientExecutorID, f.ToolCallID)
		if errors.Is(err, journal.ErrNotFound) {
			continue // it waited for its executor
		}
		if err == nil {
			row, err = settled(row, f, c)
		}
		if err != nil {
			return out, fmt.Errorf("settle the token of a call: %w", err)
		}
		out.settled = append(out.settled, row.Key())
		out.rows = append(out.rows, journal.Put{Row: row})
	}
	return out, nil
}

// settled is the row of a token after its call has ended.
func settled(row journal.TokenRow, f *narad.ToolCallFinished, c *claim) (journal.TokenRow, error) {
	switch {
	case c != nil && c.finish.ToolCallID == f.ToolCallID:
		return executor.Finished(row, c.finish)
	case f.Code == decide.CodeExecutionExpired:
		return executor.Closed(row, executor.Expired)
	case f.Code == decide.CodeDeliveryFailed, f.Code == decide.CodeClientUnavailable:
		return executor.Closed(row, executor.Undelivered)
	}
	return executor.Closed(row, executor.Cancelled)
}

// issue adds the tokens of the calls that a batch issues, and the timers of those that
// wait.
func (o *owner) issue(ctx context.Context, out *tokens, outcome *decide.Outcome) error {
	due := o.host.opt.Now().Add(o.host.executors.TokenLife())
	for _, id := range outcome.Await {
		out.rows = append(out.rows, o.clientTimer(id, due))
	}
	for _, id := range outcome.Issue {
		call, err := o.clientCall(ctx, id, outcome.Facts)
		if err != nil {
			return err
		}
		grant, ok, err := o.host.executors.Issue(call)
		switch {
		case err != nil:
			return fmt.Errorf("issue a call: %w", err)
		case !ok:
			out.lost = append(out.lost, id)
			out.rows = append(out.rows, o.clientTimer(id, due))
			continue
		}
		out.grants = append(out.grants, grant)
		out.rows = append(out.rows, journal.Put{Row: grant.Row}, o.clientTimer(id, grant.ExpiresAt))
	}
	return nil
}

func (o *owner) clientTimer(id string, due time.Time) journal.Change {
	return journal.Put{Row: journal.TimerRow{
		Session: o.id, ID: clientTimer(id), Due: due, Carried: true, Value: []byte(id),
	}}
}

// clientCall is a call as its start tells it: in this batch, or in the journal.
func (o *owner) clientCall(ctx context.Context, id string, list []narad.Authority) (executor.Call, error) {
	tool, _ := o.control.Session.Tool(id)
	run, _ := o.control.Session.Run(tool.RunID)
	call := executor.Call{
		Executor: run.ClientExecutorID, Session: o.id, Workspace: o.control.Desk.Created.WorkspaceID, RunID: tool.RunID, ToolCallID: id, ToolName: tool.ToolName,
	}
	for _, fact := range list {
		if f, ok := fact.(*narad.ToolCallStarted); ok && f.ToolCallID == id {
			call.Args = f.Args
			return call, nil
		}
	}
	fact, err := o.fact(ctx, tool.StartedSequence)
	if err != nil {
		return call, fmt.Errorf("read the start of a call: %w", err)
	}
	start, ok := fact.(*narad.ToolCallStarted)
	if !ok || start.ToolCallID != id {
		return call, fmt.Errorf("%w: fact %d is not the start of the call", ErrInternal, tool.StartedSequence)
	}
	call.Args = start.Args
	return call, nil
}

// fact reads one fact of the session.
func (o *owner) fact(ctx context.Context, sequence int64) (narad.Authority, error) {
	return o.host.fact(ctx, o.id, sequence)
}

func (h *Host) fact(ctx context.Context, session string, sequence int64) (narad.Authority, error) {
	chunk, err := h.journal.Read(ctx, journal.BySession{Session: session, After: uint64(sequence) - 1}, journal.Page{Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(chunk.Records) == 0 {
		return nil, journal.ErrNotFound
	}
	rec, err := narad.Decode(chunk.Records[0].Bytes)
	fact, ok := rec.(narad.Authority)
	if err != nil || !ok {
		return nil, errors.Join(err, journal.ErrDamaged)
	}
	return fact, nil
}

// hand out what is durable: the calls go to their executors, those that ended go no more.
func (o *owner) handOut(t tokens) {
	for _, key := range t.settled {
		o.host.executors.Settle(key.Space, key.ID)
	}
	for _, g := range t.grants {
		o.host.executors.Deliver(g)
	}
	for _, id := range t.lost {
		o.host.undelivered(executor.Call{Session: o.id, ToolCallID: id})
	}
}

// undelivered ends a call that no connection took (§11.3 rule 11).
func (h *Host) undelivered(c executor.Call) {
	h.tellOwner(c.Session, decide.EndClientTool{ToolCallID: c.ToolCallID, Undelivered: true})
}

// tellOwner hands a command of the host's own to a session, until it has been taken.
func (h *Host) tellOwner(session string, c decide.Command) {
	h.spawn(func() {
		for {
			_, err := h.hand(h.life, session, &task{command: c, actor: hostActor, reply: make(chan reply, 1)})
			if err == nil || errors.Is(err, journal.ErrNotFound) || errors.Is(err, journal.ErrDeleted) || !h.pause() {
				return
			}
			h.opt.Logger.Warn("tell a session", "session", session, "command", fmt.Sprintf("%T", c), "error", err)
		}
	})
}

// expiredCall is the command of a client tool call's timer.
func expiredCall(row journal.TimerRow) (decide.Command, bool) {
	id, ok := strings.CutPrefix(row.ID, clientTimerPrefix)
	return decide.EndClientTool{ToolCallID: id}, ok
}

// awaited holds the sessions in which runs wait for an executor.
type awaited struct {
	mu       sync.Mutex
	sessions map[string]map[string]bool // guarded by mu: by executor
}

func (a *awaited) add(executorID, session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions == nil {
		a.sessions = map[string]map[string]bool{}
	}
	if a.sessions[executorID] == nil {
		a.sessions[executorID] = map[string]bool{}
	}
	a.sessions[executorID][session] = true
}

func (a *awaited) take(executorID string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := slices.Sorted(maps.Keys(a.sessions[executorID]))
	delete(a.sessions, executorID)
	return out
}

// arrived lets the runs go on that wait for an executor.
func (h *Host) arrived(executorID string) {
	for _, session := range h.awaited.take(executorID) {
		h.tellOwner(session, decide.ExecutorArrived{Executor: executorID})
	}
}

// remove forgets that a session waits for an executor.
func (a *awaited) remove(executorID, session string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sessions[executorID], session)
	if len(a.sessions[executorID]) == 0 {
		delete(a.sessions, executorID)
	}
}

// noteAwaited notes for which executors the session's runs wait now. One that has come in
// between is told at once.
func (o *owner) noteAwaited() {
	before := o.awaits
	o.awaits = decide.AwaitedExecutors(o.control.Session)
	for _, id := range before {
		if !slices.Contains(o.awaits, id) {
			o.host.awaited.remove(id, o.id)
		}
	}
	for _, id := range o.awaits {
		o.host.awaited.add(id, o.id)
		if o.present(id) {
			o.host.arrived(id)
		}
	}
}

// present reports whether an executor could take a call of the session now.
func (o *owner) present(executorID string) bool {
	return o.host.executors.Present(executorID, o.control.Desk.Created.WorkspaceID)
}
