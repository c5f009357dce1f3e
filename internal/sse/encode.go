package sse

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// MaxFrame is the largest frame that is written, in bytes of the whole frame,
// and the default for the largest joined data that is read.
const MaxFrame = 1 << 20

// ErrFrameTooLarge says that a frame is, or is growing, beyond the limit.
var ErrFrameTooLarge = errors.New("event-stream frame is too large")

// An UnsafeByteError says that a value cannot stand in one line of an event
// stream, because it holds a line break or NUL.
type UnsafeByteError struct {
	Field  string // "id", "data" or "comment"
	Offset int    // where in the value
	Byte   byte   // CR, LF or NUL
}

// Error names the field and the place, not the value.
func (e *UnsafeByteError) Error() string {
	return fmt.Sprintf("event-stream %s holds byte 0x%02x at offset %d", e.Field, e.Byte, e.Offset)
}

// AppendFrame appends to dst one frame with one data line, and before it an id
// line unless id is empty. It writes no event field, so that a browser's
// onmessage sees every frame. On error it returns dst as it was.
func AppendFrame(dst []byte, id string, data []byte) ([]byte, error) {
	if err := checkLine("id", []byte(id)); err != nil {
		return dst, err
	}
	if err := checkLine("data", data); err != nil {
		return dst, err
	}
	size := len("data: ") + len(data) + len("\n\n")
	if id != "" {
		size += len("id: ") + len(id) + len("\n")
	}
	if size > MaxFrame {
		return dst, fmt.Errorf("frame of %d bytes, limit %d: %w", size, MaxFrame, ErrFrameTooLarge)
	}
	dst = slices.Grow(dst, size)
	if id != "" {
		dst = append(dst, "id: "...)
		dst = append(dst, id...)
		dst = append(dst, '\n')
	}
	dst = append(dst, "data: "...)
	dst = append(dst, data...)
	return append(dst, "\n\n"...), nil
}

// AppendComment appends to dst a comment and a blank line: bytes that keep a
// connection open and that no reader of the stream takes for a frame. On error
// it returns dst as it was.
func AppendComment(dst []byte, text string) ([]byte, error) {
	if err := checkLine("comment", []byte(text)); err != nil {
		return dst, err
	}
	if size := len(": ") + len(text) + len("\n\n"); size > MaxFrame {
		return dst, fmt.Errorf("comment of %d bytes, limit %d: %w", size, MaxFrame, ErrFrameTooLarge)
	}
	dst = append(dst, ": "...)
	dst = append(dst, text...)
	return append(dst, "\n\n"...), nil
}

// checkLine refuses the bytes that would end a line early (CR counts: the
// format ends lines at it) and NUL, for which a reader drops the whole id.
func checkLine(field string, value []byte) error {
	first := len(value)
	for _, c := range []byte("\n\r\x00") {
		if i := bytes.IndexByte(value[:first], c); i >= 0 {
			first = i
		}
	}
	if first == len(value) {
		return nil
	}
	return &UnsafeByteError{Field: field, Offset: first, Byte: value[first]}
}
