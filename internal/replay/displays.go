package replay

import (
	"container/list"
	"sync"
)

// displays keeps the display states that were used last.
type displays struct {
	maxCount, maxBytes int

	mu        sync.Mutex
	bySession map[string]*list.Element // of order
	order     list.List                // of *display, the last used first
	bytes     int
}

func newDisplays(maxCount, maxBytes int) *displays {
	return &displays{maxCount: maxCount, maxBytes: maxBytes, bySession: map[string]*list.Element{}}
}

// get gives a session's display state, or a new one.
func (c *displays) get(sessionID string) *display {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, kept := c.bySession[sessionID]; kept {
		c.order.MoveToFront(e)
		return e.Value.(*display)
	}
	d := newDisplay(sessionID)
	c.bySession[sessionID] = c.order.PushFront(d)
	c.boundLocked()
	return d
}

// settle tells that facts were applied to a state by who holds it, and whether it
// is worth keeping.
func (c *displays) settle(d *display, bytes int, keep bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d.size += bytes
	e := c.bySession[d.sessionID]
	if e == nil || e.Value != d {
		return // put out meanwhile
	}
	c.bytes += bytes
	if !keep {
		c.removeLocked(e)
	}
	c.boundLocked()
}

// boundLocked puts out what was used longest ago. Who uses it keeps it alive.
func (c *displays) boundLocked() {
	for c.order.Len() > c.maxCount || c.bytes > c.maxBytes {
		c.removeLocked(c.order.Back())
	}
}

func (c *displays) removeLocked(e *list.Element) {
	d := c.order.Remove(e).(*display)
	delete(c.bySession, d.sessionID)
	c.bytes -= d.size
}
