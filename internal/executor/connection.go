package executor

import (
	"errors"

	"github.com/mahati-host/mahati/narad"
)

// Why a connection has ended, besides ErrLeaseExpired.
var (
	errSuperseded = errors.New("a new lease supersedes the one of this connection")
	errReplaced   = errors.New("a newer connection of the lease takes its place")
	errClosed     = errors.New("the host ends")
)

// A Connection is the channel to one executor. Its user writes what Next gives, says
// with Wrote how that went, and waits for Wake.
type Connection struct {
	seat  *seat
	lease hash
	wake  chan struct{}
	done  chan struct{}

	// Guarded by the seat's mu.
	why     error   // why it has ended
	renewed bool    // the lease was renewed since it was last told
	given   uint64  // the number of the last call that it was given
	writing []*call // what Next gave last
}

// Wake gives something when Next may have something, and when the connection ends.
func (c *Connection) Wake() <-chan struct{} { return c.wake }

// Done is closed when the connection ends.
func (c *Connection) Done() <-chan struct{} { return c.done }

func (c *Connection) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Next gives the records to be written now, none if there are none: client.attached
// after a renewal, and each unfinished call of the lease that this connection was not
// given yet. An error says that the connection has ended. Records hold secrets.
func (c *Connection) Next() ([][]byte, error) {
	s := c.seat
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.why != nil {
		return nil, c.why
	}
	var out [][]byte
	if c.renewed {
		c.renewed = false
		record, err := narad.Encode(s.all.attached(s.id, s.lease))
		if err != nil {
			return nil, err
		}
		out = append(out, record)
	}
	if !s.holdsLocked() {
		return out, nil // an expired lease takes no call
	}
	for _, call := range s.calls {
		if call.lease != c.lease || call.number <= c.given {
			continue
		}
		call.writers++
		c.given = call.number
		c.writing = append(c.writing, call)
		out = append(out, call.record)
	}
	return out, nil
}

// Wrote says how writing what Next gave went: a call that was written is taken (R32), one
// that neither this connection nor another of its lease has written is undelivered.
func (c *Connection) Wrote(err error) {
	s := c.seat
	s.mu.Lock()
	written := c.writing
	c.writing = nil
	var lost []Call
	for _, w := range written {
		w.writers--
		w.taken = w.taken || err == nil
		if w.waits() && s.removeLocked(w.Call.ToolCallID) {
			lost = append(lost, w.Call)
		}
	}
	s.mu.Unlock()
	s.all.tellUndelivered(lost)
}

func (c *Connection) endLocked(why error) {
	if c.why == nil {
		c.why = why
		close(c.done)
		c.poke()
	}
}

// Close ends the connection. What was given to it and not said to be written is
// undelivered. It may be called twice.
func (c *Connection) Close() {
	s := c.seat
	s.mu.Lock()
	if s.connection == c {
		s.connection = nil
	}
	c.endLocked(errClosed)
	s.mu.Unlock()
	c.Wrote(errClosed)
	s.all.drop(s)
}
