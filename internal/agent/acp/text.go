package acp

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// text is a JSON string that may have been cut inside a character. A half that JSON can
// write, the one of a surrogate pair, stands in it as three bytes that are no UTF-8;
// bytes that are no text stay what they are. So nothing is lost until the rest comes.
type text string

var errNoText = errors.New("a string is required")

// UnmarshalJSON decodes a valid JSON string. Null is a text left out: the protocol
// allows it wherever a text need not be there.
func (t *text) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if len(data) < 2 || data[0] != '"' {
		return errNoText
	}
	body := string(data[1 : len(data)-1])
	if strings.IndexByte(body, '\\') < 0 {
		*t = text(body)
		return nil
	}
	var b strings.Builder
	for len(body) > 0 {
		if body[0] != '\\' {
			n := strings.IndexByte(body, '\\')
			if n < 0 {
				n = len(body)
			}
			b.WriteString(body[:n])
			body = body[n:]
			continue
		}
		body = unescape(&b, body)
	}
	*t = text(b.String())
	return nil
}

var escapes = map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape writes what an escape at the beginning of s stands for, and returns the rest.
func unescape(b *strings.Builder, s string) string {
	if s[1] != 'u' {
		if c, ok := escapes[s[1]]; ok {
			b.WriteByte(c)
		} else {
			b.WriteByte(s[1])
		}
		return s[2:]
	}
	unit, rest := codeUnit(s)
	if strings.HasPrefix(rest, `\u`) {
		second, after := codeUnit(rest)
		if r := utf16.DecodeRune(unit, second); r != utf8.RuneError {
			b.WriteRune(r)
			return after
		}
	}
	if utf16.IsSurrogate(unit) {
		b.WriteString(half(unit))
		return rest
	}
	b.WriteRune(unit)
	return rest
}

// codeUnit reads the \uXXXX that s begins with.
func codeUnit(s string) (rune, string) {
	n, _ := strconv.ParseUint(s[2:6], 16, 16) // the string is valid
	return rune(n), s[6:]
}

// half encodes one half of a surrogate pair as if it were a character.
func half(unit rune) string {
	return string([]byte{0xE0 | byte(unit>>12), 0x80 | byte(unit>>6)&0x3F, 0x80 | byte(unit)&0x3F})
}

const halfSize = 3

// unitAt returns the half of a pair that s begins with, 0 if it begins with none.
func unitAt(s string) rune {
	if len(s) < halfSize || s[0] != 0xED || s[1] < 0xA0 {
		return 0
	}
	return rune(s[0]&0x0F)<<12 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F)
}

// joiner puts characters together again that were cut between two chunks.
type joiner struct{ held string }

// add returns what can be handed on. A first half of a pair at the end waits.
func (j *joiner) add(t text) string {
	s := j.held + string(t)
	if j.held != "" && len(s) >= 2*halfSize {
		if r := utf16.DecodeRune(unitAt(s), unitAt(s[halfSize:])); r != utf8.RuneError {
			s = string(r) + s[2*halfSize:]
		}
	}
	j.held = ""
	if n := len(s) - halfSize; n >= 0 && isFirstHalf(unitAt(s[n:])) {
		j.held, s = s[n:], s[:n]
	}
	return s
}

// rest returns what waits and will not be completed.
func (j *joiner) rest() string {
	held := j.held
	j.held = ""
	return held
}

func isFirstHalf(unit rune) bool { return unit >= 0xD800 && unit < 0xDC00 }

// plain returns text as valid UTF-8.
func (t text) plain() string { return strings.ToValidUTF8(string(t), "\uFFFD") }

// settled returns text without a character at its end that may still be completed.
func (t text) settled() string {
	var j joiner
	s := j.add(t)
	for back := 1; back < utf8.UTFMax && back <= len(s); back++ {
		tail := s[len(s)-back:]
		if utf8.RuneStart(tail[0]) {
			if !utf8.FullRuneInString(tail) {
				s = s[:len(s)-back]
			}
			break
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// label makes the agent's text fit for a name or a title: one line, without control
// characters, of at most so many bytes.
func label(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < ' ' || r >= 0x7F && r < 0xA0 || r == utf8.RuneError:
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(short(s, most))
}

// short cuts text to at most so many bytes, never inside a character.
func short(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
