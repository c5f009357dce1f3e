package acp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// FuzzText compares with the standard library where that loses nothing.
func FuzzText(f *testing.F) {
	for _, s := range []string{`"a"`, `"\u00e9\n\ud83d\ude00\/\\"`, `"\ud83d"`, "\"\xff\"", `7`, `null`, `""`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		var want string
		err := json.Unmarshal(data, &want)
		var got text
		gotErr := json.Unmarshal(data, &got)
		if (err == nil) != (gotErr == nil) {
			t.Fatalf("%q: got %v, want %v", data, gotErr, err)
		}
		if !strings.Contains(want, "\uFFFD") && string(got) != want {
			t.Fatalf("%q: got %q, want %q", data, got, want)
		}
		if !utf8.ValidString(got.plain()) || !utf8.ValidString(got.settled()) || !utf8.ValidString(label(string(got), 10)) {
			t.Fatalf("%q: %q is no text", data, got)
		}
	})
}

// TestJoiner cuts text anywhere between its UTF-16 units, as a program in JavaScript
// does, and puts it together again.
func TestJoiner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.StringOfN(rapid.SampledFrom([]rune("aé漢😀👩\u0301\U0010FFFF")), 0, 20, -1).Draw(t, "text")
		units := utf16.Encode([]rune(want))
		var j joiner
		var got strings.Builder
		for len(units) > 0 {
			n := rapid.IntRange(1, min(3, len(units))).Draw(t, "size")
			got.WriteString(j.add(decode(t, units[:n])))
			units = units[n:]
		}
		got.WriteString(j.rest())
		if got.String() != want {
			t.Fatalf("got %q, want %q", got.String(), want)
		}
	})
}

// decode reads units as an agent would write them.
func decode(t *rapid.T, units []uint16) text {
	var b strings.Builder
	const digits = "0123456789abcdef"
	for _, u := range units {
		b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			b.WriteByte(digits[u>>shift&15])
		}
	}
	var s text
	if err := json.Unmarshal([]byte(`"`+b.String()+`"`), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLabel(t *testing.T) {
	for _, c := range []struct {
		in   string
		most int
		want string
	}{
		{"Run\n`ls`\t\x1b[31m\x00", 100, "Run `ls` [31m"},
		{"漢漢", 5, "漢"},
		{"a\xff\u0085b", 100, "ab"},
		{"  ", 100, ""},
	} {
		if got := label(c.in, c.most); got != c.want {
			t.Errorf("%q in %d: got %q, want %q", c.in, c.most, got, c.want)
		}
	}
}
