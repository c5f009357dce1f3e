package narad

import (
	"bytes"
	"errors"
	"io"
	"math/bits"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A scanner takes one valid JSON value apart in a single pass: the members of the
// outermost object, the depth, the size as R7 counts it, and a fingerprint that
// two spellings of the same value share. Validity is jsontext's business, so the
// scanner trusts its input and only counts.
type scanner struct {
	text    string
	pos     int
	size    int
	deepest int
	keeps   bool // whether members are wanted
	members []member
}

// parserDepth is where jsontext gives up, whatever comes next.
const parserDepth = 10_000

// valid returns nil for exactly one JSON value: UTF-8, no repeated names.
func valid(data []byte) *Error {
	if jsontext.Value(data).IsValid() {
		return nil
	}
	dec := jsontext.NewDecoder(strings.NewReader(string(data)))
	for {
		_, err := dec.ReadToken()
		if err == nil {
			continue
		}
		if dec.StackDepth() >= parserDepth {
			return &Error{CodeTooDeep, "", "values nest at most 64 deep"}
		}
		rule := "exactly one JSON value is required"
		var syntax *jsontext.SyntacticError
		switch {
		case errors.Is(err, io.EOF):
			return &Error{CodeInvalidJSON, "", rule}
		case errors.Is(err, io.ErrUnexpectedEOF):
			rule = "the JSON text ends early"
		case errors.Is(err, jsontext.ErrDuplicateName):
			rule = "a name may stand only once in an object"
		case errors.As(err, &syntax):
			rule = "the JSON text is malformed"
		}
		return &Error{CodeInvalidJSON, "", rule}
	}
}

// scan reads the whole text, which must be valid, and returns its fingerprint.
func (s *scanner) scan(text string) uint64 {
	*s = scanner{text: text, keeps: s.keeps, members: s.members[:0]}
	return s.value(0)
}

// exponentSize is what R7 counts for a number with an exponent: a JavaScript
// client may write 1e20 as 21 digits, and no number longer than this.
const exponentSize = 25

func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) value(depth int) uint64 {
	s.space()
	s.deepest = max(s.deepest, depth)
	switch c := s.text[s.pos]; c {
	case '{':
		return s.object(depth)
	case '[':
		return s.array(depth)
	case '"':
		return hash('"', unquote(s.quoted()))
	case 't', 'f', 'n':
		return hash('l', s.bare())
	default:
		number := s.bare()
		if exponentAt(number) >= 0 {
			s.size += max(exponentSize-len(number), 0)
		}
		return hashNumber(number)
	}
}

func (s *scanner) object(depth int) uint64 {
	sum := uint64('{')
	for more := s.open('}'); more; more = s.next('}') {
		quoted := s.quoted()
		end := s.pos
		s.skip()
		start := s.pos
		name := unquote(quoted)
		value := s.value(depth + 1)
		if depth == 0 && s.keeps {
			s.members = append(s.members, member{
				name:    span{uint32(end - len(quoted) + 1), uint32(end - 1)},
				value:   span{uint32(start), uint32(s.pos)},
				escaped: len(name) != len(quoted)-2,
			})
		}
		sum += mix(hash('k', name) ^ mix(value)) // a sum: order does not count
	}
	return mix(sum)
}

func (s *scanner) array(depth int) uint64 {
	sum := uint64('[')
	for more := s.open(']'); more; more = s.next(']') {
		sum = mix(sum) ^ s.value(depth+1)
	}
	return mix(sum)
}

// open steps over the first byte of an object or array and reports whether
// something is inside.
func (s *scanner) open(end byte) bool {
	s.skip()
	if s.text[s.pos] != end {
		return true
	}
	return s.close()
}

// next steps over the comma after an element and reports whether there was one.
func (s *scanner) next(end byte) bool {
	s.space()
	if s.text[s.pos] == end {
		return s.close()
	}
	s.skip()
	return true
}

func (s *scanner) close() bool {
	s.pos, s.size = s.pos+1, s.size+1
	return false
}

// skip steps over one byte of punctuation and the white space around it.
func (s *scanner) skip() {
	s.space()
	s.pos, s.size = s.pos+1, s.size+1
	s.space()
}

// quoted returns a string with its quotes.
func (s *scanner) quoted() string {
	start := s.pos
	s.pos++
	for {
		s.pos += strings.IndexByte(s.text[s.pos:], '"') + 1
		escapes := 0
		for i := s.pos - 2; s.text[i] == '\\'; i-- {
			escapes++
		}
		if escapes%2 == 0 {
			s.size += s.pos - start
			return s.text[start:s.pos]
		}
	}
}

// bare returns a literal or a number.
func (s *scanner) bare() string {
	start := s.pos
	for s.pos < len(s.text) && !ends(s.text[s.pos]) {
		s.pos++
	}
	s.size += s.pos - start
	return s.text[start:s.pos]
}

// ends reports whether c ends a literal or a number.
func ends(c byte) bool {
	switch c {
	case ',', ']', '}', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}

// hashNumber gives equal decimal numbers one hash: 100, 1e2 and 100.0 are one
// number, while 9007199254740993 and 9007199254740992 stay two. Numbers with an
// exponent of ten digits or more are compared as they are spelled.
func hashNumber(number string) uint64 {
	var room [24]byte
	d, ok := decimalOf(number, room[:0])
	if !ok {
		return hash('0', number)
	}
	h := hash('0', string(d.digits)) + mix(uint64(d.exponent))
	if d.negative {
		h = mix(h)
	}
	return h
}

// decimal is a number as digits · 10^exponent, in which the digits neither start
// nor end with a zero. Zero has no digits, exponent or sign.
type decimal struct {
	negative bool
	digits   []byte
	exponent int
}

// exponentAt returns the place of a number's e, or -1.
func exponentAt(number string) int {
	for i := range len(number) {
		if number[i]|0x20 == 'e' {
			return i
		}
	}
	return -1
}

// decimalOf reads a valid JSON number, unless its exponent has ten digits or more. It
// writes the digits into room, or elsewhere if that is too small.
func decimalOf(number string, room []byte) (d decimal, ok bool) {
	digits := number
	if i := exponentAt(number); i >= 0 {
		var err error
		if d.exponent, err = strconv.Atoi(number[i+1:]); err != nil || len(number)-i > 10 {
			return d, false
		}
		digits = number[:i]
	}
	digits, d.negative = strings.CutPrefix(digits, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	d.exponent -= len(fraction)
	all := append(append(room, whole...), fraction...)
	trimmed := bytes.TrimRight(all, "0")
	d.exponent += len(all) - len(trimmed)
	if d.digits = bytes.TrimLeft(trimmed, "0"); len(d.digits) == 0 {
		return decimal{}, true
	}
	return d, true
}

// hash is a fast, fixed hash of text; kind keeps values of different kinds apart.
// It tells two contents of one event id apart and is no defence against somebody
// who makes collisions: only the host that issued the first content could.
func hash(kind uint64, text string) uint64 {
	h := mix(kind<<56 ^ uint64(len(text)))
	for len(text) >= 8 {
		h = mix(h ^ load64(text))
		text = text[8:]
	}
	var tail uint64
	for i := range len(text) {
		tail = tail<<8 | uint64(text[i])
	}
	return mix(h ^ tail)
}

func load64(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func mix(x uint64) uint64 {
	high, low := bits.Mul64(x^0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9)
	return high ^ low
}
