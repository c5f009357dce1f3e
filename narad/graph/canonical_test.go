package graph_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/mahati-host/mahati/narad"
	"github.com/mahati-host/mahati/narad/graph"
)

// RFC 8785, appendix B: doubles by their bits, and how they are written.
func TestCanonicalNumbers(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0", 0x8000000000000000: "0",
		0x0000000000000001: "5e-324", 0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308", 0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992", 0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22", 0x44b52d02c7e14af6: "1e+23", 0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000", 0x444b1ae4d6e2ef4f: "999999999999999900000", 0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7", 0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332", 0x41b3de4355555554: "333333333.33333325", 0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334", 0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333", 0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		in := strconv.FormatFloat(math.Float64frombits(bits), 'e', -1, 64)
		if got, err := graph.Canonical(narad.Raw(in)); err != nil || got.String() != want {
			t.Errorf("%#x, given as %s: got %s, %v, want %s", bits, in, got, err, want)
		}
	}
}

// RFC 8785, section 3.2: strings, literals, white space, and names by UTF-16 units, so
// that a character beyond the first plane stands before U+FB33.
func TestCanonicalValues(t *testing.T) {
	for in, want := range map[string]string{
		"{\"numbers\": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],\n" +
			` "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}`: `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],` + `"string":"€$\u000f\nA'B\"\\\\\"/"}`,
		`{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}`: "{\"\\r\":2,\"1\":4,\"\u0080\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\ufb33\":3}",
		`"\b\t\n\f\r\u0000\u001f\u007f\u2028<>&"`:                                     "\"\\b\\t\\n\\f\\r\\u0000\\u001f\u007f\u2028<>&\"",
		` [ ] `:                      `[]`,
		`{"b":{"d":1,"c":2},"a":[]}`: `{"a":[],"b":{"c":2,"d":1}}`,
	} {
		if got, err := graph.Canonical(narad.Raw(in)); err != nil || got.String() != want {
			t.Errorf("%s\ngot  %s, %v\nwant %s", in, got, err, want)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, in := range []string{"", "{", `{"a":1,"a":2}`, "\"\xff\"", `"\ud800"`, "1 2", "NaN"} {
		given := narad.Raw(in)
		if got, err := graph.Canonical(given); err == nil {
			t.Errorf("%q: got %s, want an error", in, got)
		}
		if string(given) != in {
			t.Errorf("%q was changed to %q", in, given)
		}
	}
}
