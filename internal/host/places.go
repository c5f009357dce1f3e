package host

import "sync"

// places counts the agents that run, and remembers the sessions that wait for a place
// in the order in which they came.
type places struct {
	wake func(session string)

	mu      sync.Mutex
	free    int      // guarded by mu
	waiting []string // guarded by mu
}

func newPlaces(n int, wake func(string)) *places { return &places{free: n, wake: wake} }

// take takes a place if one is free and nobody else waits for it.
func (p *places) take(session string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free <= 0 || len(p.waiting) > 0 && p.waiting[0] != session {
		return false
	}
	p.free--
	p.forgetLocked(session)
	return true
}

// force takes a place whether one is free or not: for a run that was active before a
// restart.
func (p *places) force() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free--
}

// give gives a place back, and wakes the first session that waits.
func (p *places) give() {
	p.mu.Lock()
	p.free++
	p.mu.Unlock()
	p.poke()
}

// wait notes that a session waits for a place. It is woken when it is its turn.
func (p *places) wait(session string) {
	p.mu.Lock()
	p.forgetLocked(session)
	p.waiting = append(p.waiting, session)
	p.mu.Unlock()
	p.poke()
}

// leave forgets that a session waits.
func (p *places) leave(session string) {
	p.mu.Lock()
	before := len(p.waiting)
	p.forgetLocked(session)
	left := len(p.waiting) < before
	p.mu.Unlock()
	if left {
		p.poke()
	}
}

// poke wakes the first session that waits, if a place is free.
func (p *places) poke() {
	p.mu.Lock()
	first := ""
	if p.free > 0 && len(p.waiting) > 0 {
		first = p.waiting[0]
	}
	p.mu.Unlock()
	if first != "" {
		p.wake(first)
	}
}

func (p *places) forgetLocked(session string) {
	for i, s := range p.waiting {
		if s == session {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			return
		}
	}
}
