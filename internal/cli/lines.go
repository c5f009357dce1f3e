package cli

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineReader reads lines of any length in bounded memory: of a line longer than most
// bytes it keeps most+1, which is enough to see that it is too long.
type lineReader struct {
	in   *bufio.Reader
	most int
	line []byte
}

// next returns the next line without its end, valid until the following call, or io.EOF
// when there is none. A last line without an end counts; nothing after the last end does
// not.
func (r *lineReader) next() ([]byte, error) {
	r.line = r.line[:0]
	read := 0
	for {
		part, err := r.in.ReadSlice('\n')
		read += len(part)
		r.line = append(r.line, part[:min(len(part), r.most+1-min(len(r.line), r.most+1))]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && read > 0:
			return r.line, nil
		case err != nil:
			return nil, err
		}
		return bytes.TrimSuffix(r.line, []byte("\n")), nil
	}
}
