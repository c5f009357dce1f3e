package harness

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxLineBytes is the longest line of a log, a carriage return included and the line feed
// not.
const MaxLineBytes = 1<<20 - 1

const lengthRule = "a line is at most 1048575 bytes long"

// lines reads lines in bounded memory. A line ends in LF, one CR before it is dropped, and
// the last may lack its end.
type lines struct {
	in   *bufio.Reader
	n    int    // lines so far
	long []byte // a line that is longer than the reader's buffer
}

func newLines(in io.Reader) *lines { return &lines{in: bufio.NewReaderSize(in, 64<<10)} }

// next returns the next line, valid until the following call, or io.EOF after the last one.
// Of a line that is too long nothing is kept; reading may go on after it.
func (l *lines) next() ([]byte, *Error) {
	line, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.rest(line)
	}
	if errors.Is(err, io.EOF) && len(line) == 0 {
		return nil, endOfLog
	}
	l.n++
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, &Error{Code: CodeIO, Line: l.n, Rule: "the log cannot be read", cause: err}
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	if len(line) > MaxLineBytes {
		l.long = nil
		return nil, &Error{Code: CodeLength, Line: l.n, Rule: lengthRule}
	}
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

// rest collects a line that fills the buffer, and one byte more than fits if it is too
// long.
func (l *lines) rest(part []byte) ([]byte, error) {
	l.long = l.long[:0]
	for {
		room := MaxLineBytes + 2 - len(l.long) // the line feed, and a byte that tells
		l.long = append(l.long, part[:min(len(part), room)]...)
		var err error
		part, err = l.in.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			l.long = append(l.long, part[:min(len(part), MaxLineBytes+2-len(l.long))]...)
			return l.long, err
		}
	}
}

var endOfLog = &Error{Code: CodeIO, Rule: "the log has ended", cause: io.EOF}
