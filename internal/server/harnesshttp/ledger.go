package harnesshttp

import (
	"errors"
	"sync"
)

// The bounds of a ledger.
const (
	// maxCredit is how many records a subscriber may have in credit at most.
	maxCredit = 1<<32 - 1
	// maxGrants is how many grants a ledger remembers, the latest.
	maxGrants = 4096
)

var (
	// errCreditExceeded says that a grant would be more than a ledger holds.
	errCreditExceeded = errors.New("more credit than a subscriber can have")
	// errGrantConflict says that a grant was told before with another amount.
	errGrantConflict = errors.New("the input granted another credit")
)

// ledger is the credit of one stream: how many records may still be sent. It lives as long
// as the stream, so that nothing of it is carried over a reconnect. Its methods may be called
// by any goroutine.
type ledger struct {
	// granted gets a value when there is credit again.
	granted chan struct{}

	mu     sync.Mutex
	left   uint64
	grants map[string]uint32 // by input id
	order  []string          // of the grants, the oldest first
}

func newLedger(credit uint32) *ledger {
	return &ledger{granted: make(chan struct{}, 1), left: uint64(credit), grants: make(map[string]uint32)}
}

// grant adds the credit of an input, once: an input that is told again adds nothing.
func (l *ledger) grant(inputID string, credit uint32) (repeated bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, known := l.grants[inputID]; known {
		if before != credit {
			return false, errGrantConflict
		}
		return true, nil
	}
	if l.left+uint64(credit) > maxCredit {
		return false, errCreditExceeded
	}
	l.left += uint64(credit)
	l.rememberLocked(inputID, credit)
	select {
	case l.granted <- struct{}{}:
	default:
	}
	return false, nil
}

func (l *ledger) rememberLocked(inputID string, credit uint32) {
	if len(l.order) == maxGrants {
		delete(l.grants, l.order[0])
		l.order = l.order[1:]
	}
	l.grants[inputID] = credit
	l.order = append(l.order, inputID)
}

// knows reports whether an input granted credit here.
func (l *ledger) knows(inputID string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := l.grants[inputID]
	return known
}

// credit is how many records may be sent.
func (l *ledger) credit() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left
}

// spend takes credit for up to so many records, and returns for how many there was.
func (l *ledger) spend(records int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(uint64(max(records, 0)), l.left)
	l.left -= n
	return int(n)
}
