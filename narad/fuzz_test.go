package narad

import (
	"bytes"
	"strings"
	"testing"
)

// seeds adds every example, and inputs that are hard on a parser.
func seeds(f *testing.F) {
	for _, texts := range examples(f) {
		for _, text := range texts {
			f.Add([]byte(text))
		}
	}
	for _, text := range []string{
		"", " ", "null", "{}", `{"type":"run.started"}`, `{"type":"x","type":"x"}`, "\ufeff{}", strings.Repeat("[", 70), nested(70, "1"),
		`{"a":1e400,"b":-0,"c":9007199254740993,"d":1.10,"e":"\ud83c\udf0a","f":"\\\\\"","g":["",{}],"":0}`,
	} {
		f.Add([]byte(text))
	}
}

// FuzzDecode: nothing panics, what a host may emit a client takes, and what was read
// strictly is written and read again as the same record.
func FuzzDecode(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		input := bytes.Clone(data)
		lenient, err := Decode(data)
		if err != nil && refusalOf(err).Code == "" {
			t.Fatalf("an error without a code: %v", err)
		}
		skipped, skipErr := Decoder{Without: AllProfiles}.Decode(data)
		if err == nil && skipErr != nil {
			t.Fatalf("a client that claims nothing refuses what one that claims all takes: %v\n%s", skipErr, data)
		}
		if skipErr == nil && skipped.Type() == "" {
			t.Fatalf("no type: %s", data)
		}
		if m, ok := lenient.(*MessagesSnapshot); ok {
			m.Items()
		}
		if _, err := DecodeStrict(data); err == nil {
			out := checkWritten(t, string(data))
			if again := checkWritten(t, out); again != out {
				t.Fatalf("written in two ways\n%s\n%s", out, again)
			}
		}
		if !bytes.Equal(data, input) {
			t.Fatalf("decoding changed its input")
		}
	})
}

// FuzzPatch: nothing panics, a failed patch leaves every byte, and what an applied
// one leaves is JSON within its bounds.
func FuzzPatch(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":[1,{"b":1.10}]}`, `[{"op":"add","path":"/a/-","value":{}},{"op":"move","from":"/a/0","path":"/c"},{"op":"test","path":"/c","value":1}]`},
		{`[ [ ] ]`, `[{"op":"copy","from":"/0","path":"/0/0"},{"op":"remove","path":"/0/0/0"}]`},
		{`{"":{"~":"/"}}`, `[{"op":"replace","path":"//~0","value":null},{"op":"remove","path":"/"},{"op":"remove","path":"/"}]`},
		{`7`, `[{"op":"add","path":"/a","value":1}]`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, document, patch []byte) {
		if valid(document) != nil || valid(patch) != nil || len(document) > 1<<16 {
			return
		}
		var s scanner
		if s.scan(string(document)); s.deepest > MaxDepth {
			return
		}
		p, err := ParsePatch(patch)
		if err != nil {
			return
		}
		doc := NewDocument(Raw(document))
		err = doc.Apply(p)
		after := doc.Raw()
		if err != nil && !bytes.Equal(after, document) {
			t.Fatalf("a failed patch (%v) changed\n%s\nto\n%s", err, document, after)
		}
		if invalid := valid(after); invalid != nil {
			t.Fatalf("%v: %s", invalid, after)
		}
		if s.scan(string(after)); s.deepest > MaxDepth {
			t.Fatalf("%d deep: %s", s.deepest, after)
		}
		again := NewDocument(Raw(document))
		if err2 := again.Apply(p); (err == nil) != (err2 == nil) || !bytes.Equal(again.Raw(), after) {
			t.Fatalf("the same patch did two things\n%s\n%s", after, again.Raw())
		}
	})
}

// FuzzFingerprint: white space never counts, and a value and the same value inside an
// array never look alike.
func FuzzFingerprint(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		if valid(data) != nil {
			return
		}
		var plain, compact, inside scanner
		print := plain.scan(string(data))
		spread := bytes.TrimSpace(appendRaw(nil, Raw("\n"+string(data)))) // compacted, since it has a line break
		if compact.scan(string(spread)) != print || compact.size != plain.size || compact.deepest != plain.deepest {
			t.Fatalf("white space counts: %d and %d bytes\n%q\n%q", plain.size, compact.size, data, spread)
		}
		if inside.scan("["+string(data)+"]") == print || inside.deepest != plain.deepest+1 || inside.size != plain.size+2 {
			t.Fatalf("inside an array: depth %d, was %d\n%q", inside.deepest, plain.deepest, data)
		}
		if !strings.ContainsAny(string(data), "eE") && plain.size != len(spread) {
			t.Fatalf("counted %d of %d bytes: %q", plain.size, len(spread), spread)
		}
	})
}
