package client

import (
	"context"
	"time"

	"github.com/mahati-host/mahati/narad"
)

// A connection is the part of a run from one attach to the end of its stream.
type connection struct {
	*run
	ctx      context.Context
	live     *subscription
	boundary int64
	whole    bool // the stream begins at the cursor, not at the boundary
	pageSize int
	pending  []Frame // read live, waiting behind a hole, in the order of arrival
	repairs  int     // attempts at the present hole that did not close it
	again    <-chan time.Time
}

// connection attaches, subscribes beyond the boundary, reads what lies before it, and
// then follows the stream to its end (§10.3). The heartbeat is 0 if the host was not
// reached. The error is never nil.
func (r *run) connection(ctx context.Context) (heartbeat time.Duration, err error) {
	if err := r.enter(Connecting); err != nil {
		return 0, err
	}
	a, err := r.client.Attach(ctx, r.sessionID, AttachQuery{Profiles: r.opt.Profiles, SkipUnclaimed: len(r.opt.Profiles) > 0})
	if err != nil {
		return 0, err
	}
	if err := r.attached(a); err != nil {
		return 0, err
	}
	c := &connection{run: r, ctx: ctx, boundary: a.Boundary, pageSize: r.pageSize(a)}
	if err := c.subscribe(a); err != nil {
		return 0, err
	}
	defer c.live.close()
	if err := c.replay(); err != nil {
		return a.Heartbeat(), err
	}
	return a.Heartbeat(), c.stream()
}

func (r *run) pageSize(a Attachment) int {
	size := r.opt.PageSize
	if size <= 0 {
		size = defaultPage
	}
	if limit := a.Capabilities.HistoryLimit; limit > 0 {
		size = min(size, limit)
	}
	return size
}

// hydrated reports whether the transcript comes first: only on a stream from the
// beginning (R29).
func (c *connection) hydrated() bool { return c.opt.Messages && c.Last() == 0 }

func (c *connection) subscribe(a Attachment) (err error) {
	c.mu.Lock()
	skip := c.withoutLocked()
	c.mu.Unlock()
	q := StreamQuery{
		AfterSessionSequence: c.boundary, Watch: c.opt.Watch, HydrateGraph: c.opt.Graph, Without: skip,
		Silence: silentIntervals * a.Heartbeat(),
	}
	q.HydrateMessages = c.hydrated()
	if q.HydrateMessages || q.HydrateGraph { // such a stream brings all facts itself
		q.AfterSessionSequence, c.whole = c.Last(), true
	}
	c.live, err = c.client.subscribe(c.ctx, c.sessionID, q, c.opt.MaxPending)
	return err
}

// replay reads history up to the boundary. The stream holds what comes after it.
func (c *connection) replay() error {
	if c.whole || c.Last() >= c.boundary {
		return nil
	}
	if err := c.enter(Replaying); err != nil {
		return err
	}
	for c.Last() < c.boundary {
		more, err := c.page()
		if err != nil {
			return err
		}
		if !more && c.Last() < c.boundary {
			return c.hole("history ends before the boundary")
		}
	}
	return nil
}

// receive takes one record, and asks for the snapshot that a refused graph record makes
// necessary (§9.7).
func (c *connection) receive(raw narad.Raw, rec narad.Record) (early bool, err error) {
	early, err = c.run.receive(raw, rec)
	if err != nil || c.lost == "" {
		return early, err
	}
	return early, c.resyncGraph(c.lost)
}

// resyncGraph takes a snapshot of a graph. A host that has none, since it would be too
// large, leaves the graph as it is, and the state says so.
func (c *connection) resyncGraph(rootRunID string) error {
	snapshot, err := c.client.Graph(c.ctx, c.sessionID, rootRunID)
	if err != nil {
		if broken := Public(err); broken.Action == Retry {
			return broken
		}
		return nil
	}
	raw, err := narad.Encode(snapshot)
	if err != nil {
		return refused("read graph", err)
	}
	_, err = c.run.receive(raw, snapshot)
	return err
}

// page reads and takes one page of history. It reports whether there is more.
func (c *connection) page() (more bool, err error) {
	after := c.Last()
	page, err := c.client.History(c.ctx, c.sessionID, HistoryQuery{AfterSessionSequence: after, Limit: c.pageSize})
	if err != nil {
		return false, err
	}
	decode := c.live.decode
	for _, raw := range page.Events {
		rec, err := decode.Decode(raw)
		if err != nil {
			return false, refused("read history", err)
		}
		early, err := c.receive(raw, rec)
		if err != nil {
			return false, err
		}
		if early {
			return false, c.hole("history itself has a hole")
		}
	}
	if page.NextSessionSequence == nil {
		return false, nil
	}
	if c.Last() == after {
		return false, invalidAnswer("read history", "a page does not lead on")
	}
	return true, nil
}

// hole is the end of following: nobody has what is missing.
func (c *connection) hole(detail string) error {
	e := fail("follow session", CodeGap, detail)
	if !c.given && c.Last() == 0 {
		e.Action = GiveUp // the beginning itself is missing; to begin anew is no help
	}
	return e
}

// stream follows the stream to its end.
func (c *connection) stream() error {
	for {
		if err := c.caughtUp(); err != nil {
			return err
		}
		select {
		case frame, ok := <-c.live.frames:
			if !ok {
				return c.live.failure()
			}
			if err := c.arrive(frame); err != nil {
				return err
			}
		case <-c.again:
			if err := c.repair(); err != nil {
				return err
			}
		case <-c.ctx.Done():
			return transportError(c.ctx, "follow session", c.ctx.Err())
		}
	}
}

// caughtUp shows whether all is there that was there at the beginning, and nothing
// waits behind a hole.
func (c *connection) caughtUp() error {
	if c.Last() >= c.boundary && len(c.pending) == 0 {
		return c.enter(Live)
	}
	return c.enter(Replaying)
}

// arrive takes a record of the stream. Behind a hole all wait in their order.
func (c *connection) arrive(frame Frame) error {
	if _, beat := frame.Record.(*narad.ServerHeartbeat); beat {
		return nil
	}
	if len(c.pending) > 0 {
		return c.hold(frame)
	}
	early, err := c.receive(frame.Raw, frame.Record)
	if err != nil || !early {
		return err
	}
	if err := c.hold(frame); err != nil {
		return err
	}
	if err := c.enter(Replaying); err != nil {
		return err
	}
	return c.repair()
}

// hold puts a record behind the hole, if there is room for it.
func (c *connection) hold(frame Frame) error {
	if len(c.pending) >= c.opt.MaxPending {
		return fail("follow session", CodePendingOverflow, "overflow: too many records wait behind a hole")
	}
	c.pending = append(c.pending, frame)
	return nil
}

// maxRepairs is how often history is asked for what the stream has jumped over.
const maxRepairs = 5

// repair reads history from the cursor on, then takes what waits. History may lag
// behind the stream, so it is asked again for a while.
func (c *connection) repair() error {
	c.again = nil
	for more := true; more; {
		var err error
		if more, err = c.page(); err != nil {
			return err
		}
	}
	if err := c.release(); err != nil {
		return err
	}
	if len(c.pending) == 0 {
		c.repairs = 0
		return nil
	}
	if c.repairs++; c.repairs >= maxRepairs {
		return c.hole("history does not have what the stream has jumped over")
	}
	c.again = time.After(c.client.backoff(c.repairs))
	return nil
}

// release takes what waits, up to the next hole.
func (c *connection) release() error {
	for len(c.pending) > 0 {
		early, err := c.receive(c.pending[0].Raw, c.pending[0].Record)
		if err != nil || early {
			return err
		}
		c.pending = c.pending[1:]
	}
	return nil
}
