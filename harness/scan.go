package harness

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A scanner reads one JSON text in a single pass, and only where every reader of JSON says
// the same: fields of their declared type under their exact names, once each, valid UTF-8,
// integers in plain digits, little nesting. Everything else (folded or repeated keys, lone
// surrogates, errors) it declines, and encoding/json decides (R38).
type scanner struct {
	text    []byte
	at      int
	members int    // members of the last object that was left, known or not
	nulled  bool   // whether the last field that was read is null
	scratch []byte // strings with escapes, decoded; grows only
}

// target is an object's fields by name, at most 32, and how each is read.
type target interface {
	fields() []string
	// set reads the value of a field; false declines.
	set(field int, s *scanner) bool
}

// scanDepth is where the scanner declines. It counts below the object that it reads.
const scanDepth = 64

// document reads a text that is one object and nothing else. Seen has a bit for each field
// that was there and not null.
func (s *scanner) document(t target) (seen uint32, ok bool) {
	s.at = 0
	seen, ok = s.object(t)
	s.space()
	return seen, ok && s.at == len(s.text)
}

func (s *scanner) object(t target) (seen uint32, ok bool) {
	if !s.is('{') {
		return 0, false
	}
	names, next, members := t.fields(), 0, 0
	var had uint32 // null or not
	if s.is('}') {
		s.members = 0
		return 0, true
	}
	for {
		key, ok := s.key()
		if !ok {
			return 0, false
		}
		members++
		field := find(names, key, next)
		if field < 0 {
			if foldsInto(names, key) || !s.skip(0) {
				return 0, false
			}
		} else {
			bit := uint32(1) << field
			s.nulled = false
			if had&bit != 0 || !t.set(field, s) {
				return 0, false
			}
			had, next = had|bit, field+1
			if !s.nulled {
				seen |= bit
			}
		}
		if !s.is(',') {
			s.members = members
			return seen, s.is('}')
		}
	}
}

// array reads an array, whose elements element reads.
func (s *scanner) array(element func() bool) bool {
	if !s.is('[') {
		return false
	}
	if s.is(']') {
		return true
	}
	for element() {
		if !s.is(',') {
			return s.is(']')
		}
	}
	return false
}

// find looks for a name, first where it stands if the fields come in their order.
func find(names []string, key []byte, from int) int {
	for i := from; i < len(names); i++ {
		if names[i] == string(key) {
			return i
		}
	}
	for i := range min(from, len(names)) {
		if names[i] == string(key) {
			return i
		}
	}
	return -1
}

// foldsInto reports whether encoding/json could take a key for one of the names though it
// is none of them. A key beyond ASCII might.
func foldsInto(names []string, key []byte) bool {
	for _, c := range key {
		if c >= utf8.RuneSelf {
			return true
		}
	}
	for _, name := range names {
		if len(name) == len(key) && strings.EqualFold(name, string(key)) {
			return true
		}
	}
	return false
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

// is consumes a byte of punctuation and the white space around it, if it is there.
func (s *scanner) is(c byte) bool {
	s.space()
	if s.at >= len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

// key reads a key without escapes and its colon.
func (s *scanner) key() ([]byte, bool) {
	s.space()
	key, plain := s.plain()
	return key, plain && s.is(':')
}

// plain reads a string if it has no escape; otherwise it stays before it.
func (s *scanner) plain() ([]byte, bool) {
	start, end, ok := s.quoted()
	if !ok || s.text[end] != '"' {
		return nil, false
	}
	s.at = end + 1
	return s.text[start:end], true
}

// quoted finds the first quote or backslash of a string after its opening quote. It
// declines control bytes and what is not UTF-8.
func (s *scanner) quoted() (start, end int, ok bool) {
	if s.at >= len(s.text) || s.text[s.at] != '"' {
		return 0, 0, false
	}
	start = s.at + 1
	var bits byte
	for i, c := range s.text[start:] {
		switch {
		case c == '"' || c == '\\':
			end = start + i
			return start, end, bits < utf8.RuneSelf || utf8.Valid(s.text[start:end])
		case c < ' ':
			return 0, 0, false
		}
		bits |= c
	}
	return 0, 0, false
}

// bytes reads a string; the result is valid as long as the text and until reset.
func (s *scanner) bytes() ([]byte, bool) {
	s.space()
	start, end, ok := s.quoted()
	if !ok {
		return nil, false
	}
	if s.text[end] == '"' {
		s.at = end + 1
		return s.text[start:end], true
	}
	return s.unquote(start, end)
}

// unquote decodes a string whose first escape is at escape.
func (s *scanner) unquote(start, escape int) ([]byte, bool) {
	from := len(s.scratch)
	s.scratch = append(s.scratch, s.text[start:escape]...)
	for i := escape; i < len(s.text); {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			decoded := s.scratch[from:]
			return decoded, utf8.Valid(decoded)
		case c < ' ':
			return nil, false
		case c != '\\':
			s.scratch = append(s.scratch, c)
			i++
		default:
			n := s.escape(s.text[i+1:])
			if n == 0 {
				return nil, false
			}
			i += 1 + n
		}
	}
	return nil, false
}

// escape decodes what follows a backslash and returns its length. It declines, with 0, what
// is none, and half a surrogate pair.
func (s *scanner) escape(text []byte) int {
	if len(text) == 0 {
		return 0
	}
	if text[0] == 'u' {
		return s.escapeRune(text[1:])
	}
	c := unescaped(text[0])
	if c == 0 {
		return 0
	}
	s.scratch = append(s.scratch, c)
	return 1
}

func (s *scanner) escapeRune(text []byte) int {
	r, ok := hex4(text)
	n := 5
	if utf16.IsSurrogate(r) {
		if len(text) < 6 || text[4] != '\\' || text[5] != 'u' {
			return 0
		}
		var low rune
		low, ok = hex4(text[6:])
		r, n = utf16.DecodeRune(r, low), 11
	}
	if !ok || n == 11 && r == utf8.RuneError {
		return 0
	}
	s.scratch = utf8.AppendRune(s.scratch, r)
	return n
}

// unescaped is the byte that an escape of two characters means, 0 if it is none.
func unescaped(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return 0
}

func hex4(text []byte) (r rune, ok bool) {
	if len(text) < 4 {
		return 0, false
	}
	for _, c := range text[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// null consumes a null, which leaves a field as if it were absent.
func (s *scanner) null() bool {
	s.nulled = s.literal("null")
	return s.nulled
}

func (s *scanner) string(to *string) bool {
	if s.null() {
		return true
	}
	text, ok := s.bytes()
	*to = string(text)
	return ok
}

// same is string for a value that is often the one before, which it then keeps.
func (s *scanner) same(to *string, before *string) bool {
	if s.null() {
		return true
	}
	text, ok := s.bytes()
	if string(text) != *before {
		*before = string(text)
	}
	*to = *before
	return ok
}

func (s *scanner) boolean(to *bool) bool {
	if s.null() {
		return true
	}
	if s.literal("true") {
		*to = true
		return true
	}
	*to = false
	return s.literal("false")
}

func (s *scanner) literal(word string) bool {
	s.space()
	if len(s.text)-s.at < len(word) || string(s.text[s.at:s.at+len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}

// natural reads an integer of at most 19 digits without sign, which 64 bits hold.
func (s *scanner) natural(to *uint64) bool {
	if s.null() {
		return true
	}
	return s.digitsOf(to)
}

func (s *scanner) digitsOf(to *uint64) bool {
	start := s.at
	*to = 0
	for ; s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9'; s.at++ {
		*to = *to*10 + uint64(s.text[s.at]-'0')
	}
	digits := s.at - start
	if digits == 0 || digits > 19 || digits > 1 && s.text[start] == '0' {
		return false
	}
	return s.at == len(s.text) || s.text[s.at] != '.' && s.text[s.at]|0x20 != 'e'
}

func (s *scanner) integer(to *int64) bool {
	if s.null() {
		return true
	}
	negative := s.at < len(s.text) && s.text[s.at] == '-'
	if negative {
		s.at++
		if s.at >= len(s.text) || s.text[s.at] < '0' || s.text[s.at] > '9' {
			return false
		}
	}
	var n uint64
	if !s.digitsOf(&n) || n >= 1<<63 {
		return false
	}
	*to = int64(n)
	if negative {
		*to = -*to
	}
	return true
}

// raw returns the bytes of one value of any kind, which are those of the text.
func (s *scanner) raw() ([]byte, bool) {
	s.space()
	start := s.at
	ok := s.skip(0)
	return s.text[start:s.at], ok
}

// skip passes over one value.
func (s *scanner) skip(depth int) bool {
	s.space()
	if s.at >= len(s.text) || depth > scanDepth {
		return false
	}
	switch s.text[s.at] {
	case '{':
		return s.skipObject(depth)
	case '[':
		return s.array(func() bool { return s.skip(depth + 1) })
	case '"':
		return s.skipString()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	}
	return s.skipNumber()
}

func (s *scanner) skipObject(depth int) bool {
	s.at++
	if s.is('}') {
		return true
	}
	for {
		s.space()
		if !s.skipString() || !s.is(':') || !s.skip(depth+1) {
			return false
		}
		if !s.is(',') {
			return s.is('}')
		}
	}
}

// skipString passes over a string of sound grammar. That it is UTF-8 nobody asks of a
// value that is kept as it is.
func (s *scanner) skipString() bool {
	if s.at >= len(s.text) || s.text[s.at] != '"' {
		return false
	}
	for i := s.at + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			return true
		case c < ' ':
			return false
		case c == '\\':
			i++
			if i >= len(s.text) {
				return false
			}
			if s.text[i] == 'u' {
				if _, ok := hex4(s.text[i+1:]); !ok {
					return false
				}
				i += 4
			} else if unescaped(s.text[i]) == 0 {
				return false
			}
		}
	}
	return false
}

func (s *scanner) skipNumber() bool {
	if s.text[s.at] == '-' {
		s.at++
	}
	leading := s.at
	if !s.digits() || s.text[leading] == '0' && s.at > leading+1 {
		return false
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if !s.digits() {
			return false
		}
	}
	if s.at < len(s.text) && s.text[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}
