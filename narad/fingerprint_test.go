package narad

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func fingerprint(t testing.TB, payload string) uint64 {
	t.Helper()
	return mustDecode(t.(*testing.T), Decoder{}, example(t, TypeRunStarted).with("payload", payload).text()).(*RunStarted).Fingerprint()
}

// TestFingerprint compares contents as JSON values: what a re-encoding may change
// does not count, all else does (§18.15).
func TestFingerprint(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[2]}`, `{"b":[2],"a":1}`, true},
		{`{"a":{"x":1,"y":2}}`, `{ "a" : {"y":2,"x":1} }`, true},
		{`"a/é\n🌊"`, `"\u0061\/\u00e9\u000a\ud83c\udf0a"`, true},
		{`{"a":1}`, `{"\u0061":1}`, true},
		{`100`, `1e2`, true},
		{`100`, `100.0`, true},
		{`1.10`, `1.1`, true},
		{`0.001`, `1E-3`, true},
		{`-0`, `0`, true},
		{`0`, `0.0e10`, true},
		{`123456789012345678901234567890`, `12345678901234567890123456789e1`, true},

		{`9007199254740992`, `9007199254740993`, false},
		{`1.0`, `1.00000000000000000000000000001`, false},
		{`1`, `-1`, false},
		{`1`, `10`, false},
		{`12`, `1.2`, false},
		{`1e400`, `1e401`, false},
		{`1`, `"1"`, false},
		{`null`, `"null"`, false},
		{`null`, `false`, false},
		{`true`, `false`, false},
		{`""`, `null`, false},
		{`0`, `""`, false},
		{`[]`, `{}`, false},
		{`[]`, `""`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[1,1]`, `[1]`, false},
		{`[[1],2]`, `[[1,2]]`, false},
		{`[[1,2]]`, `[1,2]`, false},
		{`[[],[1]]`, `[[1],[]]`, false},
		{`[null]`, `[]`, false},
		{`{"a":null}`, `{}`, false},
		{`{"a":{"b":1}}`, `{"a":{},"b":1}`, false},
		{`{"a":1,"b":2}`, `{"a":2,"b":1}`, false},
		{`{"a":"b"}`, `{"b":"a"}`, false},
		{`{"a":["b"]}`, `["a","b"]`, false},
		{`{"a":{"a":1}}`, `{"a":1}`, false},
		{`"ab"`, `"ba"`, false},
		{`"abcdefgh"`, `"abcdefgh\u0000"`, false},
		{`"\u00e9"`, `"e\u0301"`, false},
	} {
		if got := fingerprint(t, tc.a) == fingerprint(t, tc.b); got != tc.same {
			t.Errorf("%s and %s: same %v, want %v", tc.a, tc.b, got, tc.same)
		}
	}
}

// TestFingerprintCoversAll changes each field of each event once.
func TestFingerprintCoversAll(t *testing.T) {
	print := func(text string) uint64 {
		var s scanner
		return s.scan(text)
	}
	for _, s := range shapes {
		if class := s.kind.Class(); class != ClassAuthority && class != ClassWatch {
			continue
		}
		o := example(t, s.kind)
		reversed := object{}
		for i := range o {
			reversed = append(reversed, o[len(o)-1-i])
		}
		whole := mustDecode(t, Decoder{}, o.text()).(interface{ Fingerprint() uint64 }).Fingerprint()
		if print(reversed.text()) != whole || print(" "+strings.ReplaceAll(o.text(), `":`, "\" :\t")) != whole {
			t.Errorf("%s: order or white space changes the fingerprint", s.kind)
		}
		for _, m := range o {
			if print(o.with(m.Name, `[`+string(m.Value)+`]`).text()) == whole || print(o.without(m.Name).text()) == whole {
				t.Errorf("%s: %s does not count", s.kind, m.Name)
			}
		}
	}
	if got := (&RunStarted{}).Fingerprint(); got != 0 {
		t.Errorf("an event that was not decoded has the fingerprint %x", got)
	}
}

// value is a JSON value that a test can spell in several ways.
type value struct {
	kind  byte // '{', '[', '"', '0', or 'l' for a literal
	text  string
	names []string
	items []value
}

func genValue(depth int) *rapid.Generator[value] {
	return rapid.Custom(func(t *rapid.T) value {
		kinds := []byte{'"', '0', 'l', '{', '['}
		if depth == 0 {
			kinds = kinds[:3]
		}
		v := value{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch v.kind {
		case '"':
			v.text = rapid.StringOf(rapid.RuneFrom([]rune("ab/\"\\\n\x00é水🌊"))).Draw(t, "text")
		case '0':
			v.text = genNumber().Draw(t, "number")
		case 'l':
			v.text = rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "literal")
		case '{':
			v.names = rapid.SliceOfNDistinct(rapid.StringOf(rapid.RuneFrom([]rune("ab\"é"))), 0, 4, rapid.ID[string]).Draw(t, "names")
			for range v.names {
				v.items = append(v.items, genValue(depth-1).Draw(t, "member"))
			}
		case '[':
			v.items = rapid.SliceOfN(genValue(depth-1), 0, 4).Draw(t, "items")
		}
		return v
	})
}

func genNumber() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		text := strconv.FormatInt(rapid.Int64().Draw(t, "whole"), 10)
		if rapid.Bool().Draw(t, "fraction") {
			text += "." + rapid.StringMatching(`[0-9]{1,20}`).Draw(t, "digits")
		}
		if rapid.Bool().Draw(t, "exponent") {
			text += "e" + strconv.Itoa(rapid.IntRange(-400, 400).Draw(t, "power"))
		}
		return text
	})
}

// spell writes a value in one of its many spellings.
func (v value) spell(t *rapid.T) string {
	space := func() string { return rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "space") }
	switch v.kind {
	case '"':
		return spellText(t, v.text)
	case '0':
		return spellNumber(t, v.text)
	case 'l':
		return v.text
	}
	order := make([]int, len(v.items))
	for i := range order {
		order[i] = i
	}
	if v.kind == '{' {
		order = rapid.Permutation(order).Draw(t, "order")
	}
	var parts []string
	for _, i := range order {
		part := v.items[i].spell(t)
		if v.kind == '{' {
			part = spellText(t, v.names[i]) + space() + ":" + space() + part
		}
		parts = append(parts, space()+part+space())
	}
	return string(v.kind) + space() + strings.Join(parts, ",") + string(v.kind+2)
}

func spellText(t *rapid.T, text string) string {
	var b strings.Builder
	for _, r := range text {
		switch escape := rapid.Bool().Draw(t, "escape"); {
		case r > 0xffff && escape:
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		case escape:
			fmt.Fprintf(&b, `\u%04x`, r)
		case r == '/':
			b.WriteString(`\/`)
		case r < ' ' || r == '"' || r == '\\':
			quoted := Quote(string(r)).String()
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

// spellNumber moves the point of a number, or adds zeros.
func spellNumber(t *rapid.T, text string) string {
	mantissa, power := text, 0
	if i := strings.IndexByte(text, 'e'); i >= 0 {
		mantissa, power = text[:i], must(strconv.Atoi(text[i+1:]))
	}
	switch rapid.IntRange(0, 3).Draw(t, "spelling") {
	case 0:
		return text
	case 1: // more zeros behind the point
		if !strings.Contains(mantissa, ".") {
			mantissa += "."
		}
		return mantissa + "000" + rapid.SampledFrom([]string{"e", "E"}).Draw(t, "e") + strconv.Itoa(power)
	case 2: // no point at all
		whole, fraction, _ := strings.Cut(mantissa, ".")
		digits := strings.TrimLeft(strings.TrimPrefix(whole, "-")+fraction, "0")
		if digits == "" {
			return "-0"
		}
		return strings.Repeat("-", btoi(strings.HasPrefix(whole, "-"))) + digits + "00E" + strconv.Itoa(power-len(fraction)-2)
	default: // the point in front
		whole, fraction, _ := strings.Cut(mantissa, ".")
		digits := strings.TrimPrefix(whole, "-")
		return strings.Repeat("-", btoi(strings.HasPrefix(whole, "-"))) + "0." + digits + fraction + "e" + strconv.Itoa(power+len(digits))
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// canonical is the slow second opinion: one text for each value.
func (v value) canonical() string {
	var b strings.Builder
	switch v.kind {
	case '"':
		return strconv.Quote(v.text)
	case 'l':
		return v.text
	case '0':
		number, ok := new(big.Rat).SetString(v.text)
		if !ok {
			panic("no number: " + v.text)
		}
		return number.RatString()
	case '{':
		members := map[string]string{}
		for i, name := range v.names {
			members[name] = v.items[i].canonical()
		}
		fmt.Fprintf(&b, "%q", members) // fmt writes maps in the order of their keys
	default:
		for _, item := range v.items {
			fmt.Fprintf(&b, "%q,", item.canonical())
		}
		return "[" + b.String() + "]"
	}
	return b.String()
}

// TestFingerprintProperty: two random values share a fingerprint exactly if they are
// the same value, and every spelling of a value has its fingerprint.
func TestFingerprintProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := genValue(3).Draw(t, "a")
		var s, again, other scanner
		text := a.spell(t)
		first := s.scan(text)
		if spelled := a.spell(t); again.scan(spelled) != first {
			t.Fatalf("one value, two fingerprints\n%s\n%s", text, spelled)
		}
		b := change(t, a)
		spelled := b.spell(t)
		if same := other.scan(spelled) == first; same != (a.canonical() == b.canonical()) {
			t.Fatalf("same fingerprint %v, but the values are\n%s\n%s", same, text, spelled)
		}
	})
}

// change changes one place of a value at random; now and then the result is equal.
func change(t *rapid.T, v value) value {
	if len(v.items) == 0 || rapid.IntRange(0, 3).Draw(t, "here") == 0 {
		return genValue(1).Draw(t, "other")
	}
	v.items = append([]value(nil), v.items...)
	i := rapid.IntRange(0, len(v.items)-1).Draw(t, "at")
	switch how := rapid.IntRange(0, 3).Draw(t, "how"); {
	case how == 0:
		j := rapid.IntRange(0, len(v.items)-1).Draw(t, "with")
		v.items[i], v.items[j] = v.items[j], v.items[i]
	case how == 1:
		v.items[i] = value{kind: '[', items: []value{v.items[i]}}
	case how == 2 && v.kind == '[':
		v.items = append(v.items[:i], v.items[i+1:]...)
	default:
		v.items[i] = change(t, v.items[i])
	}
	return v
}
