package sessiontest

import (
	"fmt"
	"math/rand"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// spelling writes a value as JSON. The zero value writes names in order and nothing
// that need not be there; with a random source it spells the same value otherwise.
type spelling struct{ rng *rand.Rand }

func (s spelling) line(v any) []byte { return s.append(nil, v) }

func (s spelling) append(out []byte, v any) []byte {
	switch v := v.(type) {
	case object:
		return s.appendObject(out, v)
	case []any:
		out = append(out, '[')
		for i, item := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = s.append(s.blank(out), item)
		}
		return append(out, ']')
	case string:
		return s.appendText(out, v)
	case Number:
		return append(out, s.number(v)...)
	case int:
		return append(out, s.number(number(int64(v)))...)
	case int64:
		return append(out, s.number(number(v))...)
	case bool:
		return strconv.AppendBool(out, v)
	case nil:
		return append(out, "null"...)
	default:
		panic(fmt.Sprintf("sessiontest: %T is no JSON value", v))
	}
}

func (s spelling) appendObject(out []byte, o object) []byte {
	names := sortedKeys(o)
	if s.rng != nil {
		s.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	}
	out = append(out, '{')
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(s.appendText(s.blank(out), name), ':')
		out = s.append(s.blank(out), o[name])
	}
	return append(s.blank(out), '}')
}

func (s spelling) blank(out []byte) []byte {
	if s.rng != nil && s.rng.Intn(4) == 0 {
		return append(out, " \t"[s.rng.Intn(2)])
	}
	return out
}

// appendText writes a string, sometimes with an escape that need not be there.
func (s spelling) appendText(out []byte, text string) []byte {
	quoted, _ := jsontext.AppendQuote(nil, text)
	if s.rng != nil && text != "" && text[0] >= 'a' && text[0] <= 'z' && s.rng.Intn(4) == 0 {
		return append(fmt.Appendf(append(out, '"'), `\u%04x`, text[0]), quoted[2:]...)
	}
	return append(out, quoted...)
}

// number spells a number, sometimes as another decimal of the same value.
func (s spelling) number(n Number) string {
	if s.rng == nil || strings.ContainsAny(string(n), ".eE") {
		return string(n)
	}
	if n == "0" || n == "-0" {
		return pick(s.rng, "0", "-0", "0.0", "0e5")
	}
	switch s.rng.Intn(4) {
	case 0:
		return string(n) + ".0"
	case 1:
		return string(n) + "0e-1"
	}
	return string(n)
}
