package client

import (
	"context"

	"github.com/mahati-host/mahati/narad"
)

// A subscription reads a stream ahead of its owner, as far as there is room. What
// then is not read stays with the host, for which a reader is a cursor: nothing is
// lost, and an owner who is busy with history is never overrun.
type subscription struct {
	frames chan Frame // closed at the end of the stream, after err is set
	decode narad.Decoder
	stream *Stream
	cancel context.CancelFunc
	done   chan struct{} // closed when the reader is gone
	err    error
}

// subscribe opens a stream and reads up to room frames ahead. The caller closes it.
func (c *Client) subscribe(ctx context.Context, sessionID string, q StreamQuery, room int) (*subscription, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := c.Stream(ctx, sessionID, q)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &subscription{
		frames: make(chan Frame, room), decode: stream.decode, stream: stream, cancel: cancel,
		done: make(chan struct{}),
	}
	go s.read(ctx)
	return s, nil
}

func (s *subscription) read(ctx context.Context) {
	defer close(s.done)
	defer close(s.frames)
	for {
		frame, err := s.stream.Next()
		if err != nil {
			s.err = err
			return
		}
		select {
		case s.frames <- frame:
		case <-ctx.Done():
			return
		}
	}
}

// failure is why the stream ended. It may be asked once frames is closed.
func (s *subscription) failure() error {
	if s.err == nil {
		return fail(s.stream.op, CodeStreamEnded, "the stream was closed")
	}
	return s.err
}

// close ends the stream and waits for the reader.
func (s *subscription) close() {
	s.cancel()
	_ = s.stream.Close()
	<-s.done
}
