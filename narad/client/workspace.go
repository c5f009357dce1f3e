package client

import (
	"cmp"
	"context"
	"iter"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/mahati-host/mahati/narad"
)

// WorkspaceStream opens the stream of watch events of a workspace. Of the query,
// LastEventID, AfterRevision and Silence count.
func (c *Client) WorkspaceStream(ctx context.Context, workspaceID string, q StreamQuery) (*Stream, error) {
	const op = "stream workspace"
	name, ok := segment(workspaceID)
	if !ok {
		return nil, badID(op, "a workspace id")
	}
	query := url.Values{}
	if q.AfterRevision != nil {
		query.Set("afterRevision", decimal(*q.AfterRevision))
	}
	q = StreamQuery{LastEventID: q.LastEventID, Silence: q.Silence}
	return c.open(ctx, call{op: op, path: "/workspaces/" + name + "/stream", query: query}, q)
}

// WorkspaceOptions are the optional parts of following a workspace. The zero value follows
// what happens from now on.
type WorkspaceOptions struct {
	// After is where to go on, as Position told it. Nil: from now on.
	After *WorkspacePosition
	// MaxAttempts is how many connections in a row may fail before following ends.
	// Zero: no bound.
	MaxAttempts int
}

// WorkspacePosition is a place to come back to.
type WorkspacePosition struct {
	WorkspaceID string
	// Revision is that of the last watch event, or the one at which following began.
	Revision int64
	Epoch    string
}

// A WorkspaceUpdate is one turn of the loop over [WorkspaceFollower.Updates]: an event, or,
// without one, a new phase.
type WorkspaceUpdate struct {
	Phase Phase
	// Event says that something of the workspace has changed: one of its sessions as such,
	// or, as a workspace.revision, anything at all. It is a hint: what is, the host tells
	// who asks. What changes often is told of once.
	Event *narad.Revision
	// Err is what broke the connection and Wait how long the next attempt is put off.
	// Both are set in the phase Waiting alone.
	Err  *Error
	Wait time.Duration
}

// A WorkspaceFollower follows the watch events of a workspace over every break of the
// network. It must be made by [Client.FollowWorkspace]. Updates is ranged over by one
// goroutine at a time; Position may be called by anybody.
type WorkspaceFollower struct {
	client      *Client
	workspaceID string
	maxAttempts int

	mu    sync.Mutex
	known bool // a position was given, or a stream has told it
	at    WorkspacePosition
}

// FollowWorkspace returns a follower of a workspace. Nothing happens before its Updates
// are ranged over.
func (c *Client) FollowWorkspace(workspaceID string, o WorkspaceOptions) *WorkspaceFollower {
	once := *c
	once.attempts = 1
	w := &WorkspaceFollower{client: &once, workspaceID: workspaceID, maxAttempts: o.MaxAttempts}
	if o.After != nil {
		w.known, w.at = true, *o.After
	}
	w.at.WorkspaceID = workspaceID
	return w
}

// Position returns the place to come back to; false before the host was reached.
func (w *WorkspaceFollower) Position() (WorkspacePosition, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at, w.known
}

// Updates follows the workspace until the loop is left, the context ends, or an error comes
// that no further attempt can help, as the last turn. Each event comes once, revisions
// rise, and none that was told while the connection was away is missed, but for those that
// a later one makes needless. A host with another store than before is an error that asks
// for a resync: list the sessions, and follow from now on.
func (w *WorkspaceFollower) Updates(ctx context.Context) iter.Seq2[WorkspaceUpdate, error] {
	return func(yield func(WorkspaceUpdate, error) bool) {
		t := &watching{WorkspaceFollower: w, show: func(u WorkspaceUpdate) bool { return yield(u, nil) }}
		if err := t.follow(ctx); err != nil && !t.left {
			yield(WorkspaceUpdate{}, Public(err))
		}
	}
}

// watching is one loop over Updates.
type watching struct {
	*WorkspaceFollower
	show func(WorkspaceUpdate) bool
	left bool
}

func (t *watching) tell(u WorkspaceUpdate) error {
	if t.left = t.left || !t.show(u); t.left {
		return errLeft
	}
	return nil
}

func (t *watching) follow(ctx context.Context) error {
	for failed := 0; ; {
		reached, err := t.connection(ctx)
		if t.left {
			return errLeft
		}
		if ctx.Err() != nil {
			return transportError(ctx, "follow workspace", ctx.Err())
		}
		broken := Public(err)
		if broken.Action != Retry {
			return broken
		}
		if failed++; reached {
			failed = 1
		}
		if t.maxAttempts > 0 && failed >= t.maxAttempts {
			return broken
		}
		wait := max(t.client.backoff(failed), min(broken.RetryAfter, maxWait))
		if err := t.tell(WorkspaceUpdate{Phase: Waiting, Err: broken, Wait: wait}); err != nil {
			return err
		}
		if pause(ctx, wait) != nil {
			return transportError(ctx, "follow workspace", ctx.Err())
		}
	}
}

// connection follows one stream to its end. The error is never nil.
func (t *watching) connection(ctx context.Context) (reached bool, err error) {
	if err := t.tell(WorkspaceUpdate{Phase: Connecting}); err != nil {
		return false, err
	}
	caps, err := t.client.Capabilities(ctx)
	if err != nil {
		return false, err
	}
	beat, _ := strconv.ParseFloat(caps.Limits.Field("heartbeatIntervalMs").String(), 64)
	q := StreamQuery{Silence: silentIntervals * heartbeat(beat)}
	if at, known := t.Position(); known {
		if at.Epoch != "" && caps.Epoch != "" && at.Epoch != caps.Epoch {
			return false, fail("follow workspace", CodeEpochChanged, "the host has another store than before")
		}
		q.AfterRevision = &at.Revision
	}
	s, err := t.client.WorkspaceStream(ctx, t.workspaceID, q)
	if err != nil {
		return false, err
	}
	defer s.Close()
	t.advance(parseNumber(s.header.Get("Narad-Workspace-Revision")), caps.Epoch)
	if err := t.tell(WorkspaceUpdate{Phase: Live}); err != nil {
		return true, err
	}
	for {
		frame, err := s.Next()
		if err != nil {
			return true, err
		}
		event, ok := frame.Record.(*narad.Revision)
		if !ok || event.WorkspaceID != t.workspaceID || !t.advance(event.Revision, "") {
			continue
		}
		if err := t.tell(WorkspaceUpdate{Phase: Live, Event: event}); err != nil {
			return true, err
		}
	}
}

// advance moves the position, and reports whether it has moved.
func (w *WorkspaceFollower) advance(revision int64, epoch string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	moved := revision > w.at.Revision
	w.known, w.at.Revision = true, max(w.at.Revision, revision)
	w.at.Epoch = cmp.Or(epoch, w.at.Epoch)
	return moved
}
