package sse

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

const byteOrderMark = "\xEF\xBB\xBF"

// A Frame is one dispatched event of a stream.
type Frame struct {
	// ID is the value of the frame's own id line, the last one if there are
	// several. It may be empty with HasID set.
	ID string
	// HasID says that the frame had an id line of its own. A line whose value
	// holds NUL counts as none, as the format has it.
	HasID bool
	// LastEventID is the sticky id: that of the latest block up to this frame
	// which had one, blocks without data included.
	LastEventID string
	// Event is the value of the event field, empty if there was none.
	Event string
	// Data is the data lines joined by LF. It belongs to the receiver.
	Data []byte
}

// Options are the optional parts of a Parser or Reader.
type Options struct {
	// MaxFrame is the largest joined data of a frame in bytes. Zero or less
	// means the constant MaxFrame.
	MaxFrame int
}

// A Parser reads an event stream that arrives in pieces.
type Parser struct {
	max  int
	line []byte // the unterminated line so far; empty if the last line ended
	err  error  // final once set

	begun  bool // the first line has ended, so no byte order mark can follow
	skipLF bool // the last line ended at CR: an LF that follows belongs to it

	data     []byte
	hasData  bool
	event    string
	id       string
	hasID    bool
	sticky   string // last event id, as of the latest blank line
	retry    time.Duration
	hasRetry bool
}

// NewParser returns a Parser at the start of a stream.
func NewParser(o Options) *Parser {
	if o.MaxFrame <= 0 {
		o.MaxFrame = MaxFrame
	}
	return &Parser{max: o.MaxFrame}
}

// Next reads chunk up to the end of the first frame in it. It returns the bytes
// that it took; ok says that a frame was completed by them. The caller passes
// the rest again, then whatever arrives next. Without ok and error, the whole
// chunk was taken. An error is final.
func (p *Parser) Next(chunk []byte) (n int, frame Frame, ok bool, err error) {
	if p.err != nil {
		return 0, Frame{}, false, p.err
	}
	for n < len(chunk) {
		if p.skipLF {
			p.skipLF = false
			if chunk[n] == '\n' {
				n++
				continue
			}
		}
		end := lineEnd(chunk[n:])
		if end < 0 {
			return len(chunk), Frame{}, false, p.keep(chunk[n:])
		}
		line := p.takeLine(chunk[n : n+end])
		p.skipLF = chunk[n+end] == '\r'
		n += end + 1
		frame, ok, err = p.endLine(line)
		if ok || err != nil {
			return n, frame, ok, err
		}
	}
	return n, Frame{}, false, nil
}

// LastEventID is the sticky id at the latest blank line: what a reconnecting
// client sends.
func (p *Parser) LastEventID() string { return p.sticky }

// Retry is the latest reconnection time that the stream asked for.
func (p *Parser) Retry() (time.Duration, bool) { return p.retry, p.hasRetry }

// Partial says that the stream is inside a frame: if it ended here, something
// would be thrown away.
func (p *Parser) Partial() bool {
	return len(p.line) > 0 || p.hasData || p.hasID || p.event != ""
}

// keep holds on to the start of a line whose end has not come.
func (p *Parser) keep(tail []byte) error {
	// Checked before the bytes are copied: a chunk may be of any size.
	if len(p.line)+len(tail) > p.maxLine() {
		return p.fail()
	}
	p.line = append(p.line, tail...)
	return p.checkData(p.line, false)
}

// takeLine joins the end of a line to what was kept of it. The result is valid
// until the next line.
func (p *Parser) takeLine(end []byte) []byte {
	if len(p.line) == 0 {
		return end
	}
	line := append(p.line, end...)
	p.line = line[:0]
	return line
}

// endLine acts on one whole line.
func (p *Parser) endLine(line []byte) (Frame, bool, error) {
	if len(line) > p.maxLine() {
		return Frame{}, false, p.fail()
	}
	if err := p.checkData(line, true); err != nil {
		return Frame{}, false, err
	}
	line = p.trimBOM(line)
	p.begun = true
	if len(line) == 0 {
		frame, ok := p.dispatch()
		return frame, ok, nil
	}
	p.field(splitField(line))
	return Frame{}, false, nil
}

// maxLine is the longest line of any kind: a data line at the limit, with all
// that may stand before its value.
func (p *Parser) maxLine() int { return p.max + len(byteOrderMark+"data: ") }

// checkData measures what the frame's data would be with this line. More of a
// line never passes where less of it failed, so it does not matter where the
// input was cut.
func (p *Parser) checkData(line []byte, whole bool) error {
	line = p.trimBOM(line)
	value, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		if !whole || string(line) != "data" {
			return nil
		}
		value = nil
	}
	size := len(p.data) + len(bytes.TrimPrefix(value, []byte(" ")))
	if p.hasData {
		size++ // the LF that joins
	}
	if size > p.max {
		return p.fail()
	}
	return nil
}

func (p *Parser) fail() error {
	p.err = fmt.Errorf("limit %d bytes: %w", p.max, ErrFrameTooLarge)
	p.line, p.data = nil, nil
	return p.err
}

// trimBOM removes the byte order mark that may begin the first line of a stream.
func (p *Parser) trimBOM(line []byte) []byte {
	if p.begun {
		return line
	}
	return bytes.TrimPrefix(line, []byte(byteOrderMark))
}

// lineEnd is the index of the first CR or LF, or -1. It looks for each with the
// machine's search, in steps, so that a stream of short CR lines is not searched
// to its end for an LF at every line.
func lineEnd(chunk []byte) int {
	const step = 512
	for start := 0; start < len(chunk); start += step {
		window := chunk[start:min(start+step, len(chunk))]
		lf := bytes.IndexByte(window, '\n')
		if lf >= 0 {
			window = window[:lf]
		}
		if cr := bytes.IndexByte(window, '\r'); cr >= 0 {
			return start + cr
		}
		if lf >= 0 {
			return start + lf
		}
	}
	return -1
}

// splitField cuts a line at its first colon and drops one space after it. A
// comment has an empty name.
func splitField(line []byte) (name, value []byte) {
	name, value, _ = bytes.Cut(line, []byte(":"))
	return name, bytes.TrimPrefix(value, []byte(" "))
}

func (p *Parser) field(name, value []byte) {
	switch string(name) {
	case "data":
		if p.hasData {
			p.data = append(p.data, '\n')
		}
		p.data = append(p.data, value...)
		p.hasData = true
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			p.id, p.hasID = string(value), true
		}
	case "event":
		p.event = string(value)
	case "retry":
		p.setRetry(value)
	}
}

// setRetry takes ASCII digits and nothing else. A number that no clock can wait
// for is ignored like any other malformed one.
func (p *Parser) setRetry(value []byte) {
	for _, c := range value {
		if c < '0' || c > '9' {
			return
		}
	}
	const most = uint64(1<<63-1) / uint64(time.Millisecond)
	ms, err := strconv.ParseUint(string(value), 10, 64)
	if err != nil || ms > most {
		return
	}
	p.retry, p.hasRetry = time.Duration(ms)*time.Millisecond, true
}

// dispatch ends a block at its blank line. A block without a data line gives no
// frame, but its id sticks.
func (p *Parser) dispatch() (Frame, bool) {
	if p.hasID {
		p.sticky = p.id
	}
	frame := Frame{ID: p.id, HasID: p.hasID, LastEventID: p.sticky, Event: p.event, Data: p.data}
	ok := p.hasData
	p.id, p.hasID, p.event, p.data, p.hasData = "", false, "", nil, false
	if !ok {
		return Frame{}, false
	}
	return frame, true
}
