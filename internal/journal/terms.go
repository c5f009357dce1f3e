package journal

import "sync"

// Terms are the terms of an engine whose owners all live in its process. They
// are given on the committer, so that what was accepted under an older term is
// visible when a newer one is known.
type Terms struct {
	mu     sync.Mutex
	last   Term
	newest map[string]Term
}

// NewTerms starts above every term that an earlier opening can have given.
func NewTerms(options Options) *Terms {
	return &Terms{last: Term(options.Now().UnixMicro()), newest: map[string]Term{}}
}

// Give makes a new newest term of a session.
func (t *Terms) Give(session string) Term {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	t.newest[session] = t.last
	return t.last
}

// Newest is the newest term of a session, 0 when none is held.
func (t *Terms) Newest(session string) Term {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.newest[session]
}

// Release forgets a term unless a newer one was given.
func (t *Terms) Release(session string, term Term) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.newest[session] == term {
		delete(t.newest, session)
	}
}
