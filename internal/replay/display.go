package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/mahati-host/mahati/narad/session"
)

// Display lends the whole state of a session at its head, or behind it, to use.
// The state is use's alone until it returns, and must not be changed. An error of
// use is returned as it is.
func (r *Replay) Display(ctx context.Context, sessionID string, use func(State) error) error {
	d := r.displays.get(sessionID)
	if err := d.lock(ctx); err != nil {
		return fmt.Errorf("display session %q: %w", sessionID, err)
	}
	defer d.unlock()
	size, err := r.advance(ctx, d.state, sessionID, head)
	if err != nil {
		// What was applied is sound after an interruption, not after damage, and a
		// session that is gone needs no place.
		r.displays.settle(d, size, isContext(err))
		return fmt.Errorf("display session %q: %w", sessionID, err)
	}
	r.displays.settle(d, size, true)
	return use(d.state)
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// display is one display state. Its token is held by who uses the state.
type display struct {
	sessionID string
	token     chan struct{}
	state     State
	size      int // bytes of its facts; guarded by displays
}

func newDisplay(sessionID string) *display {
	return &display{
		sessionID: sessionID, token: make(chan struct{}, 1),
		state: newState(session.Options{SessionID: sessionID}),
	}
}

func (d *display) lock(ctx context.Context) error {
	select {
	case d.token <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *display) unlock() { <-d.token }
