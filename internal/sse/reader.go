package sse

import (
	"errors"
	"io"
	"time"
)

const (
	readSize = 32 << 10
	// maxEmptyReads is how often a source may answer nothing and no error.
	maxEmptyReads = 100
)

// A Reader reads the frames of an event stream from an io.Reader.
type Reader struct {
	source  io.Reader
	parser  *Parser
	buffer  []byte
	pending []byte // read and not yet parsed; part of buffer
	err     error  // from the source; given out after pending is parsed
}

// NewReader returns a Reader of a stream from its beginning. To stop a Next that
// waits, close the source.
func NewReader(source io.Reader, o Options) *Reader {
	return &Reader{source: source, parser: NewParser(o), buffer: make([]byte, readSize)}
}

// Next returns the next frame. At the end of the stream it returns io.EOF if the
// stream ended between frames, io.ErrUnexpectedEOF if it ended inside one (which
// is dropped), otherwise the error of the source, or ErrFrameTooLarge. An error
// is final.
func (r *Reader) Next() (Frame, error) {
	for {
		n, frame, ok, err := r.parser.Next(r.pending)
		r.pending = r.pending[n:]
		if err != nil {
			return Frame{}, err
		}
		if ok {
			return frame, nil
		}
		if r.err != nil {
			return Frame{}, r.endOfStream()
		}
		r.fill()
	}
}

// LastEventID is the sticky id so far.
func (r *Reader) LastEventID() string { return r.parser.LastEventID() }

// Retry is the latest reconnection time that the stream asked for.
func (r *Reader) Retry() (time.Duration, bool) { return r.parser.Retry() }

// fill reads once, and keeps the error of the source for after what came with it.
func (r *Reader) fill() {
	for range maxEmptyReads {
		n, err := r.source.Read(r.buffer)
		r.pending, r.err = r.buffer[:n], err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

func (r *Reader) endOfStream() error {
	if errors.Is(r.err, io.EOF) && r.parser.Partial() {
		return io.ErrUnexpectedEOF
	}
	return r.err
}
