package script

import (
	"context"
	"sync"
	"time"

	"github.com/mahati-host/mahati/internal/agent"
)

// mailbox holds the messages to a run under way that no step has taken yet.
type mailbox struct {
	mu      sync.Mutex
	waiting []agent.Message
	came    chan struct{} // closed and replaced when a message comes
}

func newMailbox() *mailbox { return &mailbox{came: make(chan struct{})} }

func (b *mailbox) add(list ...agent.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, list...)
	close(b.came)
	b.came = make(chan struct{})
}

// take takes the oldest agent.Message, and waits a while for one.
func (b *mailbox) take(ctx context.Context, within time.Duration) (agent.Message, bool, error) {
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		m, ok, came := b.next()
		if ok || within == 0 {
			return m, ok, ctx.Err()
		}
		select {
		case <-came:
		case <-timer.C:
			m, ok, _ = b.next()
			return m, ok, nil
		case <-ctx.Done():
			return agent.Message{}, false, ctx.Err()
		}
	}
}

func (b *mailbox) next() (agent.Message, bool, chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting) == 0 {
		return agent.Message{}, false, b.came
	}
	m := b.waiting[0]
	b.waiting = b.waiting[1:]
	return m, true, b.came
}
