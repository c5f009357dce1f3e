package narad

import (
	"fmt"
	"strings"
	"testing"
)

// padded returns a record whose counted size is size: filler stands for the text of
// an unknown field.
func padded(t *testing.T, size int, more ...string) string {
	t.Helper()
	o := object{{"type", Raw(`"server.heartbeat"`)}, {"protocolVersion", Raw(`"narad/v1"`)}}
	for i := 0; i < len(more); i += 2 {
		o = o.with(more[i], more[i+1])
	}
	o = o.with("filler", `""`)
	return o.with("filler", `"`+strings.Repeat("f", size-len(o.text()))+`"`).text()
}

// nested wraps a value in objects.
func nested(wraps int, inner string) string {
	return strings.Repeat(`{"child":`, wraps) + inner + strings.Repeat("}", wraps)
}

// TestSize measures as R7 does: UTF-8 bytes without white space, a number with an
// exponent as at least 25 bytes.
func TestSize(t *testing.T) {
	const most = MaxEventBytes
	exact := padded(t, most)
	for _, tc := range []struct {
		name, text string
		want       Code
	}{
		{"exactly the limit", exact, ""},
		{"one byte more", padded(t, most+1), CodeTooLarge},
		{"white space does not count", " \r\n\t" + strings.Replace(exact, `,`, strings.Repeat(" ", 4000)+",\n\t", 1) + "\n", ""},
		{"white space inside a string does", strings.Replace(exact, `"filler":"f`, `"filler":" f`, 1), CodeTooLarge},
		{"three-byte text counts its bytes", padded(t, most, "x", `"水"`), ""},
		{"three-byte text above", padded(t, most+1, "x", `"水"`), CodeTooLarge},
		{"short exponents count 25", padded(t, most-2*22, "x", `[1e5,1E5]`), ""},
		{"short exponents above", padded(t, most-2*22+1, "x", `[1e5,1E5]`), CodeTooLarge},
		{"a long one counts its own length", padded(t, most, "x", `1.00000000000000000000000001e5`), ""},
		{"numbers without exponents count their own", padded(t, most, "x", `[100000,-0,1.10]`), ""},
		{"just below the frame limit", exact + strings.Repeat(" ", MaxFrameBytes-len(exact)), ""},
		{"above the frame limit", exact + strings.Repeat(" ", MaxFrameBytes-len(exact)+1), CodeTooLarge},
		{"far above the frame limit", strings.Repeat("[", 2*MaxFrameBytes), CodeTooLarge},
	} {
		for _, d := range decoders {
			rec, err := d.Decode([]byte(tc.text))
			if got := refusalOf(err).Code; got != tc.want {
				t.Errorf("%s, strict %v: got %q, want %q (%d bytes)", tc.name, d.Strict, got, tc.want, len(tc.text))
			}
			if err == nil {
				if _, err := Encode(rec); err != nil {
					t.Errorf("%s: what was read cannot be written: %v", tc.name, err)
				}
			}
		}
	}
}

// TestDepth counts as the public client does: the record is depth 0, scalars count
// (V9: 62 wraps of {"leaf":true} pass, 63 do not).
func TestDepth(t *testing.T) {
	for _, tc := range []struct {
		name, value string
		want        Code
	}{
		{"62 wraps of an object", nested(62, `{"leaf":true}`), ""},
		{"63 wraps of an object", nested(63, `{"leaf":true}`), CodeTooDeep},
		{"68 wraps, as V9", nested(68, `{"leaf":true}`), CodeTooDeep},
		{"63 objects around a scalar", nested(63, "1"), ""},
		{"64 objects around a scalar", nested(64, "1"), CodeTooDeep},
		{"63 arrays around an empty one", strings.Repeat("[", 64) + strings.Repeat("]", 64), ""},
		{"64 arrays around an empty one", strings.Repeat("[", 65) + strings.Repeat("]", 65), CodeTooDeep},
		{"deeper than the parser goes", strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000), CodeTooDeep},
		{"deep and cut short", strings.Repeat("[", 300), CodeInvalidJSON},
	} {
		for _, d := range decoders {
			text := example(t, TypeRunStarted).with("payload", tc.value).text()
			if _, err := d.Decode([]byte(text)); refusalOf(err).Code != tc.want {
				t.Errorf("%s, strict %v: got %v, want %q", tc.name, d.Strict, err, tc.want)
			}
		}
	}
}

// TestNotJSON gives input that is not exactly one JSON value.
func TestNotJSON(t *testing.T) {
	good := example(t, TypeRunStarted).text()
	inside := func(value string) string {
		return example(t, TypeRunStarted).text()[:1] + `"x":` + value + `,` + good[1:]
	}
	for name, text := range map[string]string{
		"nothing":                   "",
		"white space":               " \n",
		"byte order mark":           "\ufeff" + good,
		"trailing text":             good + "x",
		"two records":               good + "\n" + good,
		"trailing comma":            good + ",",
		"cut short":                 good[:len(good)-1],
		"cut inside a string":       good[:20],
		"NUL behind":                good + "\x00",
		"NUL before":                "\x00" + good,
		"NUL in a string":           inside("\"a\x00b\""),
		"control in a string":       inside("\"a\nb\""),
		"invalid UTF-8":             inside("\"a\xffb\""),
		"overlong UTF-8":            inside("\"\xc0\xaf\""),
		"surrogate as UTF-8":        inside("\"\xed\xa0\x80\""),
		"invalid UTF-8 in a name":   inside("{\"\xff\":1}"),
		"lone high surrogate":       inside(`"\ud800"`),
		"lone low surrogate":        inside(`"\udc00 x"`),
		"surrogates swapped":        inside(`"\udc00\ud800"`),
		"lone surrogate in a name":  inside(`{"\ud800":1}`),
		"repeated name":             inside(`1,"x":1`),
		"repeated name, escaped":    inside(`1,"\u0078":1`),
		"repeated type":             inside(`1,"type":"run.started"`),
		"repeated name deeper":      inside(`{"a":[{"b":1,"b":1}]}`),
		"leading zero":              inside(`01`),
		"plus":                      inside(`+1`),
		"no digit after the point":  inside(`1.`),
		"hexadecimal":               inside(`0x10`),
		"NaN":                       inside(`NaN`),
		"Infinity":                  inside(`-Infinity`),
		"single quotes":             inside(`'x'`),
		"comment":                   inside(`1/**/`),
		"unknown escape":            inside(`"\x41"`),
		"trailing comma in array":   inside(`[1,]`),
		"capital literal":           inside(`True`),
		"other white space":         inside("\u00a01"),
		"unquoted name":             inside(`{a:1}`),
		"UTF-16":                    "{\x00\"\x00",
		"server-sent event, not it": "data: " + good,
	} {
		for _, d := range decoders {
			if _, err := d.Decode([]byte(text)); refusalOf(err).Code != CodeInvalidJSON {
				t.Errorf("%s, strict %v: got %v, want %s\n%q", name, d.Strict, err, CodeInvalidJSON, text)
			}
		}
	}
	for name, text := range map[string]string{
		"white space around":   " \t\r\n" + good + "\n",
		"a pair of surrogates": inside(`"\ud83c\udf0a"`),
		"DEL, U+2028, U+FFFE":  inside("\"\x7f\u2028\ufffe\""),
		"an empty name":        inside(`{"":0}`),
		"one name in two":      inside(`{"a":{"x":1},"b":{"x":1}}`),
		"escaped slashes":      strings.ReplaceAll(good, "narad/v1", `narad\/v1`),
		"an escaped type":      strings.ReplaceAll(good, `"run.started"`, `"\u0072un.started"`),
		"an escaped name":      strings.ReplaceAll(good, `"runId"`, `"\u0072unId"`),
	} {
		for _, d := range decoders {
			if _, err := d.Decode([]byte(text)); err != nil {
				t.Errorf("%s, strict %v: %v\n%q", name, d.Strict, err, text)
			}
		}
	}
}

// TestIntegers reads whole numbers however they are spelled, up to the largest that
// every client reads alike (§18.19).
func TestIntegers(t *testing.T) {
	for _, tc := range []struct {
		text string
		want int64 // 0 is a refusal
	}{
		{"1", 1}, {"1.0", 1}, {"1e0", 1}, {"10e-1", 1}, {"0.1e1", 1}, {"1E+2", 100}, {"100.00", 100},
		{"9007199254740991", MaxInteger}, {"9.007199254740991e15", MaxInteger},
		{"9007199254740992", 0}, {"9007199254740993", 0}, {"9007199254740991.4", 0}, {"1e16", 0},
		{"1e300", 0}, {"1e400", 0}, {"1e2147483648", 0}, {"123456789012345678901234567890", 0},
		{"0", 0}, {"-0", 0}, {"0e0", 0}, {"-1", 0}, {"1.5", 0}, {"1.00000000000000000000001", 0}, {"1e-1", 0}, {"1e-9999999999", 0},
	} {
		for _, d := range decoders {
			text := example(t, TypeRunStarted).with("sessionSequence", tc.text).text()
			rec, err := d.Decode([]byte(text))
			got := int64(0)
			if err == nil {
				got = rec.(*RunStarted).SessionSequence
			}
			if got != tc.want {
				t.Errorf("%s, strict %v: got %d, %v; want %d", tc.text, d.Strict, got, err, tc.want)
			}
		}
	}
}

// TestManyFields keeps an adversary's record from costing more than its length.
func TestManyFields(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"server.heartbeat","protocolVersion":"narad/v1"`)
	for i := range 20_000 {
		fmt.Fprintf(&b, `,"%d":%d`, i, i)
	}
	b.WriteString("}")
	rec := mustDecode(t, Decoder{Strict: true}, b.String())
	if out := mustEncode(t, rec); out != b.String() {
		t.Errorf("20,000 unknown fields became %d bytes, were %d", len(out), b.Len())
	}
}

// TestErrorsHoldNoValues plants a secret in every field of every type, in every form
// that is refused: no text of an error may repeat it.
func TestErrorsHoldNoValues(t *testing.T) {
	const secret = "hunter2"
	refused := 0
	for _, s := range shapes {
		o := example(t, s.kind)
		for _, m := range o {
			for _, value := range []string{`"` + secret + `"`, `{"` + secret + `":"` + secret + `"}`, `["` + secret + `",{"` + secret + `":1}]`} {
				for _, d := range decoders {
					_, err := d.Decode([]byte(o.with(m.Name, value).text()))
					if err == nil {
						continue
					}
					refused++
					if strings.Contains(err.Error(), secret) {
						t.Errorf("%s, %s = %s: %v", s.kind, m.Name, value, err)
					}
				}
			}
		}
	}
	if refused < 1000 {
		t.Errorf("only %d refusals were looked at", refused)
	}
}
