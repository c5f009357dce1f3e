package acp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const (
	// maxLine bounds a line in both directions.
	maxLine = 64 << 20
	// keptLine is how much of a buffer is kept for the next line.
	keptLine = 1 << 20
)

var (
	errLineTooLong = errors.New("a line is too long")
	errLineCut     = errors.New("the last line has no end")
)

// lineReader reads lines of any length up to a bound.
type lineReader struct {
	r    *bufio.Reader
	most int
	buf  []byte
}

func newLineReader(r io.Reader, most int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), most: most}
}

// next returns the next line without its end. It is good until the next call.
func (l *lineReader) next() ([]byte, error) {
	if cap(l.buf) > keptLine {
		l.buf = nil
	}
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.buf)+len(part) > l.most+1 {
			return nil, errLineTooLong
		}
		l.buf = append(l.buf, part...)
		switch {
		case err == nil:
			return bytes.TrimSpace(l.buf), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case len(bytes.TrimSpace(l.buf)) > 0:
			return nil, errors.Join(errLineCut, err)
		default:
			return nil, err
		}
	}
}
