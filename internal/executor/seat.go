package executor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mahati-host/mahati/internal/access"
	"github.com/mahati-host/mahati/internal/journal"
)

// seat is the place of one executor.
type seat struct {
	all *Executors
	id  string
	// attaching holds the one attach under way, so that leases are recorded in the order
	// in which they are given.
	attaching chan struct{}

	mu         sync.Mutex
	lease      lease       // guarded by mu
	connection *Connection // guarded by mu: the newest, of the present lease
	calls      []*call     // guarded by mu: unfinished, in order
	offered    uint64      // guarded by mu: the number of the last call
	timer      *time.Timer // guarded by mu: fires when the lease ends
}

// call is a call on its way, or under way.
type call struct {
	Grant
	number  uint64 // rises in the order of offers
	writers int    // connections that write it now: the newest, and older ones that end
	taken   bool   // a connection has taken it (R32)
}

// waits reports whether nobody has the call, or is about to.
func (c *call) waits() bool { return !c.taken && c.writers == 0 }

func newSeat(x *Executors, id string) *seat {
	return &seat{all: x, id: id, attaching: make(chan struct{}, 1)}
}

// turn waits for the attach before.
func (s *seat) turn(ctx context.Context) (release func(), err error) {
	select {
	case s.attaching <- struct{}{}:
		return func() { <-s.attaching }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// take makes a lease the seat's. The calls that wait for a connection of the lease before
// are returned: a new lease never gets them. What is being written is decided by how the
// writing ends.
func (s *seat) take(l lease) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lease = l
	s.endConnectionLocked(errSuperseded)
	s.watchLocked()
	return s.waitingLocked()
}

// waitingLocked takes out the calls that wait for a connection.
func (s *seat) waitingLocked() []Call {
	var left []Call
	s.calls = slices.DeleteFunc(s.calls, func(c *call) bool {
		if c.waits() {
			left = append(left, c.Call)
		}
		return c.waits()
	})
	return left
}

// watchLocked sees to it that the end of the lease is noticed.
func (s *seat) watchLocked() {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(s.lease.expires.Sub(s.all.opt.Now()), s.lapse)
}

// lapse looks whether the lease has ended, and then ends what goes with it.
func (s *seat) lapse() {
	done, ok := s.all.begin()
	if !ok {
		return
	}
	defer done()
	s.mu.Lock()
	if s.holdsLocked() {
		s.watchLocked()
		s.mu.Unlock()
		return
	}
	ended := s.lease
	s.lease = lease{}
	s.endConnectionLocked(ErrLeaseExpired)
	left := s.waitingLocked()
	s.mu.Unlock()
	s.all.tellUndelivered(left)
	s.forget(ended)
}

// forget removes what is stored of a lease that has ended, unless there is a newer one.
// That it stays is no harm: after a restart it ends again.
func (s *seat) forget(l lease) {
	defer s.all.drop(s)
	if l.hash == "" {
		return
	}
	_, _ = s.all.store.Append(context.Background(), journal.Batch{
		Session: journal.RowStream, Time: s.all.opt.Now().UTC(), Closing: true,
		Changes:    []journal.Change{journal.Remove{Key: journal.LeaseKey(s.id)}},
		Conditions: []journal.Condition{journal.IfEqual{Row: l.row(s.id)}},
	})
}

func (s *seat) holdsLocked() bool {
	return s.lease.hash != "" && s.all.opt.Now().Before(s.lease.expires)
}

// renew moves the end of the lease and tells the connection.
func (s *seat) renew(p access.Principal, id string) (lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.showLocked(p, id); err != nil {
		return lease{}, err
	}
	s.lease.expires = s.all.opt.Now().Add(s.all.opt.Lease)
	if s.connection != nil {
		s.connection.renewed = true
		s.connection.poke()
	}
	return s.lease, nil
}

// showLocked checks a lease that its holder shows, and remembers its secret.
func (s *seat) showLocked(p access.Principal, id string) error {
	if err := s.lease.check(p, id, s.all.opt.Now()); err != nil {
		return err
	}
	s.lease.id = id
	return nil
}

// connect makes the one connection of the seat.
func (s *seat) connect(p access.Principal, id string) (*Connection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.showLocked(p, id); err != nil {
		return nil, err
	}
	s.endConnectionLocked(errReplaced)
	s.connection = &Connection{seat: s, lease: s.lease.hash, wake: make(chan struct{}, 1), done: make(chan struct{})}
	s.connection.poke()
	return s.connection, nil
}

func (s *seat) endConnectionLocked(why error) {
	if c := s.connection; c != nil {
		s.connection = nil
		c.endLocked(why)
	}
}

// leaseOfConnection is the lease under which a call can be begun now.
func (s *seat) leaseOfConnection() (lease, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease, s.connection != nil && s.holdsLocked()
}

// offer puts a call in line for the connection of its lease.
func (s *seat) offer(g Grant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease.hash != g.lease || !s.holdsLocked() {
		return false
	}
	s.offered++
	s.calls = append(s.calls, &call{Grant: g, number: s.offered})
	if s.connection != nil {
		s.connection.poke()
	}
	return true
}

func (s *seat) settle(toolCallID string) {
	s.mu.Lock()
	s.removeLocked(toolCallID)
	s.mu.Unlock()
	s.all.drop(s)
}

// removeLocked takes a call out; false if it is not there.
func (s *seat) removeLocked(toolCallID string) bool {
	before := len(s.calls)
	s.calls = slices.DeleteFunc(s.calls, func(c *call) bool { return c.Call.ToolCallID == toolCallID })
	return len(s.calls) < before
}

func (s *seat) delivered(toolCallID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.calls, func(c *call) bool { return c.taken && c.Call.ToolCallID == toolCallID })
}

// idle reports whether nothing holds the seat.
func (s *seat) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.hash == "" && s.connection == nil && len(s.calls) == 0 && len(s.attaching) == 0
}

func (s *seat) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	s.endConnectionLocked(errClosed)
}
