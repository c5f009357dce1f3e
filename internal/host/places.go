package host

import (
	"slices"
	"sync"
)

// places counts the agents that run, and remembers the sessions that wait for a place
// in the order in which they came.
type places struct {
	wake func(session string) // must not wait

	mu      sync.Mutex
	free    int             // guarded by mu; below 0 after force
	waiting []string        // guarded by mu
	lent    map[string]int  // guarded by mu: how many in a session have left its place to others
	waking  map[string]bool // guarded by mu: were woken and have not answered
}

func newPlaces(n int, wake func(string)) *places {
	return &places{free: n, wake: wake, lent: map[string]int{}, waking: map[string]bool{}}
}

// take takes a place if one is free that nobody else waits for longer.
func (p *places) take(session string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	ahead := slices.Index(p.waiting, session)
	if ahead < 0 {
		ahead = len(p.waiting)
	}
	if p.free <= ahead {
		return false
	}
	p.free--
	return true
}

// force takes a place whether one is free or not: for a run that was active before a
// restart.
func (p *places) force() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free--
}

// give gives a place back, and wakes who waits for it.
func (p *places) give() {
	p.change(func() { p.free++ })
}

// lend gives the place of a session away while somebody in it waits for a person or for another
// session. A
// session has one place, however many wait in it.
func (p *places) lend(session string) {
	p.change(func() {
		if p.lent[session] == 0 {
			p.free++
		}
		p.lent[session]++
	})
}

// reclaim takes back what lend gave, whether a place is free or not.
func (p *places) reclaim(session string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lent[session]--; p.lent[session] == 0 {
		delete(p.lent, session)
		p.free--
	}
}

// wait notes that a session waits for a place; it keeps its turn if it does already.
// It is woken when a place is free for it.
func (p *places) wait(session string) {
	p.change(func() {
		if !slices.Contains(p.waiting, session) {
			p.waiting = append(p.waiting, session)
		}
	})
}

// leave forgets that a session waits.
func (p *places) leave(session string) {
	p.change(func() {
		p.waiting = slices.DeleteFunc(p.waiting, func(s string) bool { return s == session })
	})
}

// woken notes that a session that was woken has answered. If it waits still, it is
// woken again.
func (p *places) woken(session string) {
	p.change(func() { delete(p.waking, session) })
}

// change is the one door to the line: after a change those are woken for whom there
// are places, each once.
func (p *places) change(f func()) {
	p.mu.Lock()
	f()
	var wake []string
	for _, session := range p.waiting[:min(max(p.free, 0), len(p.waiting))] {
		if !p.waking[session] {
			p.waking[session] = true
			wake = append(wake, session)
		}
	}
	p.mu.Unlock()
	for _, session := range wake {
		p.wake(session)
	}
}
