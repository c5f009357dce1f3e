package host

import (
	"bytes"
	"unicode/utf8"
)

// The sizes of what is recorded together (DESIGN §7, R43).
const (
	textEnough   = 2 << 10
	outputEnough = 8 << 10
	stretchMost  = 16 << 10
	outputMost   = 1 << 20 // of one tool call
	pendingMost  = 1 << 20 // of everything that waits
)

type streamKind uint8

const (
	streamText streamKind = iota
	streamThought
	streamOutput
)

// stream is one of the things that an agent tells bit by bit.
type stream struct {
	kind streamKind
	tool string // of output
}

func (s stream) enough() int {
	if s.kind == streamOutput {
		return outputEnough
	}
	return textEnough
}

// pending is what an agent said and no fact holds yet, in its order. It never holds the
// half of a character: what is not whole waits aside for its rest (case 77).
type pending struct {
	list    []entry
	size    int // of the list, in bytes
	tails   map[stream][]byte
	outputs map[string]int // bytes of output so far, by tool call; -1 once it was cut
}

type entry struct {
	stream
	bytes []byte
	cut   bool // more came than is kept
}

// stretch is what is recorded next.
type stretch struct {
	stream
	text      string
	bytes     int  // of the entry
	truncated bool // it is the last of an output that was cut
}

// add takes what comes next of a stream, and reports whether there is enough to record.
func (p *pending) add(s stream, text string) bool {
	cut := false
	if s.kind == streamOutput {
		var more bool
		if text, cut, more = p.limit(s.tool, text); !more {
			return false
		}
	}
	whole := append(p.tails[s], text...)
	n := completeRunes(whole)
	p.setTail(s, whole[n:])
	if cut {
		p.setTail(s, nil)
	}
	return p.put(s, whole[:n], cut)
}

func (p *pending) put(s stream, b []byte, cut bool) bool {
	if len(b) == 0 && !cut {
		return false
	}
	if n := len(p.list); n == 0 || p.list[n-1].stream != s {
		p.list = append(p.list, entry{stream: s})
	}
	last := &p.list[len(p.list)-1]
	last.bytes = append(last.bytes, b...)
	p.size += len(b)
	last.cut = last.cut || cut
	return len(last.bytes) >= s.enough()
}

func (p *pending) setTail(s stream, tail []byte) {
	if len(tail) == 0 {
		delete(p.tails, s)
		return
	}
	if p.tails == nil {
		p.tails = map[stream][]byte{}
	}
	p.tails[s] = bytes.Clone(tail)
}

// end gives up the character that a stream has not completed: nothing follows.
func (p *pending) end(s stream) {
	if tail := p.tails[s]; len(tail) > 0 {
		delete(p.tails, s)
		p.put(s, tail, false)
	}
	if s.kind == streamOutput {
		delete(p.outputs, s.tool)
	}
}

// endText ends the message that is being told.
func (p *pending) endText() {
	p.end(stream{kind: streamThought})
	p.end(stream{kind: streamText})
}

// endAll ends every stream.
func (p *pending) endAll() {
	p.endText()
	for s := range p.tails {
		p.end(s)
	}
}

// limit cuts the output of a tool call that has had its share. more is false once that
// was said.
func (p *pending) limit(tool, text string) (kept string, cut, more bool) {
	if p.outputs == nil {
		p.outputs = map[string]int{}
	}
	had := p.outputs[tool]
	switch {
	case had < 0:
		return "", false, false
	case had+len(text) > outputMost:
		p.outputs[tool] = -1
		return text[:outputMost-had], true, true
	}
	p.outputs[tool] = had + len(text)
	return text, false, true
}

// next returns the next stretch to record, and leaves it where it is.
func (p *pending) next() (stretch, bool) {
	if len(p.list) == 0 {
		return stretch{}, false
	}
	e := &p.list[0]
	n := len(e.bytes)
	if n > stretchMost {
		n = completeRunes(e.bytes[:stretchMost])
	}
	return stretch{e.stream, toUTF8(e.bytes[:n]), n, e.cut && n == len(e.bytes)}, true
}

// drop removes a stretch that next returned. More may have come behind it meanwhile.
func (p *pending) drop(s stretch) {
	e := &p.list[0]
	e.bytes = e.bytes[s.bytes:]
	p.size -= s.bytes
	e.cut = e.cut && !s.truncated
	if len(e.bytes) == 0 && !e.cut {
		p.list[0] = entry{}
		p.list = p.list[1:]
	}
}

// completeRunes returns how many of the bytes end with a whole character. Bytes that
// are no text count as whole.
func completeRunes(b []byte) int {
	for back := 1; back <= min(utf8.UTFMax-1, len(b)); back++ {
		if utf8.RuneStart(b[len(b)-back]) {
			if !utf8.FullRune(b[len(b)-back:]) {
				return len(b) - back
			}
			break
		}
	}
	return len(b)
}

// toUTF8 replaces bytes that are no text.
func toUTF8(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b)))
}
