package client

import (
	"context"
	"errors"
	"io"
	"time"
)

// errSilent ends a stream whose host has not been heard for too long.
var errSilent = errors.New("the stream is silent")

// A watchdog ends a context with a cause unless it is stopped or fed in time. The
// zero duration makes one that never does.
type watchdog struct {
	timer *time.Timer
	after time.Duration
}

func watchFor(after time.Duration, end context.CancelCauseFunc, cause error) watchdog {
	if after <= 0 {
		return watchdog{}
	}
	return watchdog{time.AfterFunc(after, func() { end(cause) }), after}
}

func (w watchdog) feed() {
	if w.timer != nil {
		w.timer.Reset(w.after)
	}
}

func (w watchdog) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// A watchedBody is the body of a stream whose silence is measured. Only time inside
// Read counts: a consumer that takes its time does not make a host silent.
type watchedBody struct {
	io.ReadCloser
	ctx   context.Context // the stream's: its cause says why a read failed
	watch watchdog
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.feed()
	n, err := b.ReadCloser.Read(p)
	b.watch.stop()
	if err != nil {
		err = because(b.ctx, err)
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.watch.stop()
	return b.ReadCloser.Close()
}

// because returns the cause of a context's end where this package is the cause, else
// the error itself.
func because(ctx context.Context, err error) error {
	for _, own := range []error{errSilent, errNoAnswer} {
		if errors.Is(context.Cause(ctx), own) {
			return own
		}
	}
	return err
}
