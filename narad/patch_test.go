package narad

import (
	"strings"
	"testing"
)

// TestParsePatch follows RFC 6902, and the public client where that refuses more
// (facts §9): a host that sent such a patch would be left alone.
func TestParsePatch(t *testing.T) {
	for _, tc := range []struct {
		patch string
		code  Code
		path  string
	}{
		{`[{"op":"add","path":"/a","value":null}]`, "", ""},
		{`[{"op":"add","path":"/a/-","value":1,"comment":"x"}]`, "", ""},
		{`[{"value":1,"path":"/","op":"replace"}]`, "", ""},
		{`[{"op":"remove","path":"/a//b"}]`, "", ""},
		{`[{"op":"remove","path":"/constructors/proto/__proto"}]`, "", ""},
		{`[{"op":"remove","path":"/a/constructor~0"}]`, "", ""},
		{`[{"op":"test","path":"/~0~1~01","value":{"__proto__":1}}]`, "", ""},
		{`[{"op":"move","from":"/a","path":"/b"}]`, "", ""},
		{`[{"op":"remove","path":"/a","from":null}]`, "", ""},
		{`[{"op":"\u0061dd","path":"\/a","value":1}]`, "", ""},

		{`[]`, CodeInvalidPatch, ""},
		{`{}`, CodeInvalidPatch, ""},
		{`null`, CodeInvalidPatch, ""},
		{`"x"`, CodeInvalidPatch, ""},
		{`[7]`, CodeInvalidPatch, "/0/op"},
		{`[[]]`, CodeInvalidPatch, "/0/op"},
		{`[{"path":"/a","value":1}]`, CodeInvalidPatch, "/0/op"},
		{`[{"op":"invoke","path":"/a"}]`, CodeInvalidPatch, "/0/op"}, // V5
		{`[{"op":"ADD","path":"/a","value":1}]`, CodeInvalidPatch, "/0/op"},
		{`[{"op":"add","path":"/a","value":1},{"op":"remove"}]`, CodeInvalidPatch, "/1/path"},
		{`[{"op":"remove","path":7}]`, CodeInvalidPatch, "/0/path"},
		{`[{"op":"remove","path":["a"]}]`, CodeInvalidPatch, "/0/path"},
		{`[{"op":"add","path":"/a"}]`, CodeInvalidPatch, "/0/value"},
		{`[{"op":"replace","path":"/a"}]`, CodeInvalidPatch, "/0/value"},
		{`[{"op":"test","path":"/a"}]`, CodeInvalidPatch, "/0/value"},
		{`[{"op":"move","path":"/a"}]`, CodeInvalidPatch, "/0/from"},
		{`[{"op":"copy","path":"/a","from":null}]`, CodeInvalidPatch, "/0/from"},
		{`[{"op":"remove","path":"/a~"}]`, CodeInvalidPatch, "/0/path"},
		{`[{"op":"remove","path":"/~2"}]`, CodeInvalidPatch, "/0/path"},
		{`[{"op":"move","from":"/~","path":"/a"}]`, CodeInvalidPatch, "/0/from"},

		{`[{"op":"remove","path":""}]`, CodeUnsafePatch, "/0/path"},
		{`[{"op":"add","path":"","value":{}}]`, CodeUnsafePatch, "/0/path"},
		{`[{"op":"remove","path":"a"}]`, CodeUnsafePatch, "/0/path"},
		{`[{"op":"remove","path":"#/a"}]`, CodeUnsafePatch, "/0/path"},
		{`[{"op":"copy","from":"","path":"/a"}]`, CodeUnsafePatch, "/0/from"},
		{`[{"op":"add","path":"/__proto__/polluted","value":true}]`, CodeUnsafePatch, "/0/path"}, // V4
		{`[{"op":"add","path":"/a/constructor","value":1}]`, CodeUnsafePatch, "/0/path"},
		{`[{"op":"remove","path":"/prototype"}]`, CodeUnsafePatch, "/0/path"},
		{`[{"op":"remove","path":"/\u005f_proto__/x"}]`, CodeUnsafePatch, "/0/path"},
		{`[{"op":"move","from":"/a/prototype/b","path":"/b"}]`, CodeUnsafePatch, "/0/from"},
		{`[{"op":"add","path":"/a","value":1,"from":"/__proto__/x"}]`, CodeUnsafePatch, "/0/from"},
	} {
		patch, err := ParsePatch(Raw(tc.patch))
		if got := refusalOf(err); got.Code != tc.code || got.Path != tc.path {
			t.Errorf("%s: got %v, want %s at %q", tc.patch, err, tc.code, tc.path)
		}
		if err == nil && len(patch) != 1 {
			t.Errorf("%s: %d operations", tc.patch, len(patch))
		}
	}
	patch, err := ParsePatch(Raw(`[{"op":"move","from":"/a~1b/~01","path":"//0"}]`))
	if err != nil || strings.Join(patch[0].From, "|") != "a/b|~1" || strings.Join(patch[0].Path, "|") != "|0" {
		t.Errorf("tokens are %q and %q, %v", patch[0].From, patch[0].Path, err)
	}
}
