package host

import (
	"time"
	"unicode/utf8"
)

// The sizes of what is recorded together (DESIGN §7, R43).
const (
	textEnough     = 2 << 10
	textMost       = 16 << 10
	textPatience   = 40 * time.Millisecond
	outputEnough   = 8 << 10
	outputPatience = 100 * time.Millisecond
	outputMost     = 1 << 20 // of one tool call
)

type pieceKind uint8

const (
	pieceText pieceKind = iota
	pieceThought
	pieceOutput
)

// piece says what pending bytes are.
type piece struct {
	kind      pieceKind
	tool      string
	truncated bool
}

// patience is how long a piece may wait for more.
func (p piece) patience() time.Duration {
	if p.kind == pieceOutput {
		return outputPatience
	}
	return textPatience
}

// pending is what an agent said and no fact holds yet, in its order.
type pending struct {
	list    []entry
	outputs map[string]int // bytes of output so far, by tool call; -1 once it was cut
}

type entry struct {
	piece
	bytes []byte
}

func (p *pending) empty() bool { return len(p.list) == 0 }

// add adds to the last entry if it is of the same piece, and reports whether there is
// enough to be recorded.
func (p *pending) add(what piece, text string) bool {
	if what.kind == pieceOutput {
		var more bool
		if text, what.truncated, more = p.limit(what.tool, text); !more {
			return false
		}
	}
	if n := len(p.list); n == 0 || p.list[n-1].kind != what.kind || p.list[n-1].tool != what.tool {
		p.list = append(p.list, entry{piece: what})
	}
	last := &p.list[len(p.list)-1]
	last.bytes = append(last.bytes, text...)
	last.truncated = last.truncated || what.truncated
	if what.kind == pieceOutput {
		return len(last.bytes) >= outputEnough
	}
	return len(last.bytes) >= textEnough
}

// limit cuts the output of a tool call that has had its share. more is false once that
// was said.
func (p *pending) limit(tool, text string) (kept string, truncated, more bool) {
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

// take removes the next stretch to record: at most textMost bytes and never the half of
// a character, unless nothing follows it. ok is false when nothing can be taken.
func (p *pending) take(last bool) (what piece, text string, ok bool) {
	if len(p.list) == 0 {
		return piece{}, "", false
	}
	e := &p.list[0]
	whole := last || len(p.list) > 1 || e.truncated
	n := min(len(e.bytes), textMost)
	if n < len(e.bytes) || !whole {
		n = completeRunes(e.bytes[:n])
	}
	what, text = e.piece, toUTF8(e.bytes[:n])
	e.bytes = e.bytes[n:]
	if len(e.bytes) == 0 {
		p.list = p.list[1:]
		return what, text, true
	}
	what.truncated = false // said with the last stretch
	return what, text, n > 0
}

// completeRunes returns how many of the bytes end with a whole character. Bytes that
// are no text count as whole.
func completeRunes(b []byte) int {
	for back := 1; back <= min(utf8.UTFMax-1, len(b)); back++ {
		c := b[len(b)-back]
		if utf8.RuneStart(c) {
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
